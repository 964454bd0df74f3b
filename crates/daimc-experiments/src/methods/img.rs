//! Incomplete multi-modal grouping (Zhao, Liu and Fu, IJCAI 2016), for two views.

use std::ops::ControlFlow;

use daimc::{Error, Matrix, Result, Scale, Source};
use daimc_core::linalg::product;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::methods::algebra::{add, gram, inverse, sum, uniform};
use crate::methods::data::{Scaled, check_clusters, check_weight, cluster};
use crate::methods::graph::{Graph, bytes};
use crate::methods::memory::check_memory;
use crate::methods::pair::{Pair, Side, stack};
use crate::methods::{Clustering, Method};

/// IMG: the factors of [`Pvc`](super::Pvc), of any sign, and a graph A over all instances along which the coefficients are
/// smooth; A is learnt with them.
///
/// With `P = [P_c; P_x; P_y]` and the Laplacian `L_A` of `(A + Aᵀ)/2`,
///
/// ```text
/// J = ‖[X_c; X̂] − [P_c; P_x] U_xᵀ‖² + ‖[Y_c; Ŷ] − [P_c; P_y] U_yᵀ‖² + λ (‖U_x‖² + ‖U_y‖²)
///     + β tr(Pᵀ L_A P) + γ ‖A‖²,        each row of A on the simplex
/// ```
///
/// is split by a copy Q of P with the dual Y and a penalty μ that grows (ADMM). Each iteration sets
///
/// ```text
/// U_x = [X_c; X̂]ᵀ P (PᵀP + λI)⁻¹ with P = [P_c; P_x],   U_y likewise
/// P_c = (2 X_c U_x + 2 Y_c U_y − Y_c + μ Q_c) (2 U_xᵀU_x + 2 U_yᵀU_y + μI)⁻¹
/// P_x = (2 X̂ U_x − Y_x + μ Q_x) (2 U_xᵀU_x + μI)⁻¹,      P_y likewise
/// Q   = (2β L_A + μI)⁻¹ (Y + μP)
/// a_i = projection of −d_i on the simplex,  d_ij = β/4γ ‖q_i − q_j‖²
/// Y   ← Y + μ (P − Q),   μ ← 1.1 μ
/// ```
///
/// until P and Q agree. (The authors' program fits the bases to the instances in both views alone and stops the projection
/// after its first step, so that rows of A sum to more than 1; this is the published model.) A starts with equal affinities.
/// The clusters are those of spectral clustering of A: k-means on the embedding by the K smallest eigenvectors of its
/// normalised Laplacian. An instance in neither view gets a row of zeros and the largest cluster.
///
/// Memory: the graph takes at most 6 n² bytes, twice that while it is updated, and much less if almost all or few pairs of
/// instances are neighbours. A fit that could need more memory than is available is rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct Img {
    /// The indices of the two views.
    pub views: (usize, usize),
    /// The weight of the size of the bases, λ ≥ 0.
    pub lambda: f64,
    /// The weight of the smoothness along the graph, β ≥ 0.
    pub beta: f64,
    /// The weight of the size of the affinities, γ > 0: the larger it is, the more neighbours an instance has.
    pub gamma: f64,
    /// How the views are scaled.
    pub scale: Scale,
    /// Maximum number of iterations.
    pub max_iterations: usize,
    /// The iterations end when no entry of P differs from Q by more. Published is 1e-8, which takes twice the iterations
    /// for the same clusters.
    pub tolerance: f64,
}

impl Default for Img {
    fn default() -> Self {
        Self {
            views: (0, 1),
            lambda: 1e-2,
            beta: 1.0,
            gamma: 100.0,
            scale: Scale::Unit,
            max_iterations: 200,
            tolerance: 1e-4,
        }
    }
}

/// The penalty μ at the start, its growth, its limit.
const PENALTY: f64 = 0.1;
const GROWTH: f64 = 1.1;
const MOST_PENALTY: f64 = 1e10;

impl Method for Img {
    fn name(&self) -> String {
        "IMG".into()
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        let pair = Pair::new(source, self.views)?;
        check_clusters(pair.len(), clusters)?;
        for (option, weight) in [("lambda", self.lambda), ("beta", self.beta), ("gamma", self.gamma)] {
            check_weight(option, weight)?;
        }
        if self.gamma == 0.0 {
            let reason = "must be more than 0: without it every instance is its own neighbour".into();
            return Err(Error::Option { option: "gamma", value: "0".into(), reason });
        }
        check_memory("IMG keeps an affinity of every two instances", pair.len(), bytes(pair.len()))?;
        let side = |view, only| pair.side(&Scaled::new(source, view, self.scale)?, only, None);
        let sides = [side(self.views.0, &pair.first)?, side(self.views.1, &pair.second)?];
        let mut state = Variables::new(&sides, clusters, seed);
        let mut history = Vec::new();
        for iteration in 0..self.max_iterations {
            state.update_bases(&sides, self.lambda);
            state.update_coefficients(&sides);
            state.update_copy(self.beta);
            state.graph = Graph::nearest(&state.copy, self.beta / (4.0 * self.gamma));
            let gap = state.update_dual();
            let now = state.objective(&sides, self);
            history.push(now);
            if each(iteration + 1, now).is_break() || gap < self.tolerance {
                break;
            }
        }
        let stacked = state.graph.embed(clusters, seed)?;
        let (labels, _) = cluster(&stacked, clusters, seed)?;
        let (embedding, labels) = pair.unstack(&stacked, &labels);
        Ok(Clustering { labels, embedding, history, confidence: Vec::new() })
    }
}

struct Variables {
    /// `U_x` and `U_y`.
    bases: [Matrix; 2],
    /// P, its copy Q and the dual Y, stacked: both views, the first only, the second only.
    coefficients: Matrix,
    copy: Matrix,
    dual: Matrix,
    penalty: f64,
    graph: Graph,
}

impl Variables {
    fn new(sides: &[Side; 2], clusters: usize, seed: u64) -> Self {
        let n = sides[0].both.count() + sides[0].only.count() + sides[1].only.count();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let coefficients = uniform(n, clusters, &mut rng);
        Self {
            bases: sides.each_ref().map(|side| Matrix::zeros(side.both.features(), clusters)),
            copy: coefficients.clone(),
            dual: Matrix::zeros(n, clusters),
            coefficients,
            penalty: PENALTY,
            graph: Graph::uniform(n),
        }
    }

    /// The rows of a stacked matrix that belong to both views, to the first only, to the second only.
    fn split(sides: &[Side; 2], stacked: &Matrix) -> [Matrix; 3] {
        let sizes = [sides[0].both.count(), sides[0].only.count(), sides[1].only.count()];
        let starts = [0, sizes[0], sizes[0] + sizes[1]];
        [0, 1, 2].map(|part| {
            Matrix::from_fn(sizes[part], stacked.columns(), |i, k| stacked[(starts[part] + i, k)])
        })
    }

    fn update_bases(&mut self, sides: &[Side; 2], lambda: f64) {
        let [both, first, second] = Self::split(sides, &self.coefficients);
        for ((side, basis), only) in sides.iter().zip(&mut self.bases).zip([first, second]) {
            let right = sum(&side.both.transposed_times(&both), 1.0, &side.only.transposed_times(&only));
            *basis = product(&right, &inverse(&sum(&gram(&both), 1.0, &gram(&only)), lambda));
        }
    }

    fn update_coefficients(&mut self, sides: &[Side; 2]) {
        let [x, y] = sides;
        let [u, v] = &self.bases;
        let (uu, vv) = (gram(u), gram(v));
        let fits = [
            (sum(&x.both.times(u), 1.0, &y.both.times(v)), sum(&uu, 1.0, &vv)),
            (x.only.times(u), uu),
            (y.only.times(v), vv),
        ];
        // − Y + μ Q.
        let mut towards = self.dual.clone();
        towards.values_mut().iter_mut().for_each(|value| *value = -*value);
        add(towards.values_mut(), self.penalty, self.copy.values());
        let towards = Self::split(sides, &towards);
        let solved = [0, 1, 2].map(|part| {
            let (fit, gram) = &fits[part];
            let gram = sum(gram, 1.0, gram);
            product(&sum(&towards[part], 2.0, fit), &inverse(&gram, self.penalty))
        });
        self.coefficients = stack(solved.each_ref());
    }

    fn update_copy(&mut self, beta: f64) {
        let right = sum(&self.dual, self.penalty, &self.coefficients);
        self.copy = self.graph.solve(beta, self.penalty, &right, &self.copy);
    }

    /// Returns the largest difference between P and Q.
    fn update_dual(&mut self) -> f64 {
        let difference = sum(&self.coefficients, -1.0, &self.copy);
        add(self.dual.values_mut(), self.penalty, difference.values());
        self.penalty = (GROWTH * self.penalty).min(MOST_PENALTY);
        difference.values().iter().fold(0.0, |most, value| value.abs().max(most))
    }

    /// `‖[X_c; X̂] − [P_c; P_x] U_xᵀ‖²` and the same of the second view.
    fn misfit(&self, sides: &[Side; 2]) -> f64 {
        let [both, first, second] = Self::split(sides, &self.coefficients);
        let views = sides.iter().zip(&self.bases).zip([first, second]);
        let misfit = |((side, basis), only): ((&Side, &Matrix), Matrix)| {
            side.both.misfit(&both, basis) + side.only.misfit(&only, basis)
        };
        views.map(misfit).sum()
    }

    /// J.
    fn objective(&self, sides: &[Side; 2], options: &Img) -> f64 {
        let bases: f64 = self.bases.iter().map(Matrix::sum_squares).sum();
        self.misfit(sides)
            + options.lambda * bases
            + options.beta * self.graph.roughness(&self.coefficients)
            + options.gamma * self.graph.sum_squares
    }
}

#[cfg(test)]
mod tests {
    use daimc_naive::{self as naive, Mat, identity, mul, scale, solve, subtract, transpose};
    use proptest::prelude::*;

    use super::*;
    use crate::methods::testing::{assert_close, below, dense, plain, views};

    /// A state after some iterations, with a dual and a graph that differ from those of the start.
    fn example(seed: u64, options: &Img) -> ([Side; 2], Variables) {
        let views = views(30, &[7, 5], -1.0, seed);
        let pair = Pair::new(&views, (0, 1)).unwrap();
        let side =
            |v, only: &[usize]| pair.side(&Scaled::new(&views, v, Scale::None).unwrap(), only, None).unwrap();
        let sides = [side(0, &pair.first), side(1, &pair.second)];
        let mut state = Variables::new(&sides, 3, seed);
        for _ in 0..3 {
            state.update_bases(&sides, options.lambda);
            state.update_coefficients(&sides);
            state.update_copy(options.beta);
            state.graph = Graph::nearest(&state.copy, options.beta / (4.0 * options.gamma));
            state.update_dual();
        }
        (sides, state)
    }

    fn add(a: &Mat, b: &Mat) -> Mat {
        naive::add(a, b)
    }

    /// `R S⁻¹` for a symmetric S.
    fn divide(r: &Mat, s: &Mat) -> Mat {
        transpose(&solve(s, &transpose(r)))
    }

    /// The terms of the augmented Lagrangian in P and Q.
    fn lagrangian(state: &Variables, sides: &[Side; 2], beta: f64) -> f64 {
        let difference = sum(&state.coefficients, -1.0, &state.copy);
        state.misfit(sides)
            + beta * state.graph.roughness(&state.copy)
            + state.dual.dot(&difference)
            + state.penalty / 2.0 * difference.sum_squares()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn no_block_raises_its_objective(seed in 0_u64..1000, beta in 0.01..10.0, gamma in 0.1..10.0) {
            let options = Img { beta, gamma, ..Img::default() };
            let (sides, mut state) = example(seed, &options);
            let bases = |state: &Variables| {
                let size: f64 = state.bases.iter().map(Matrix::sum_squares).sum();
                state.misfit(&sides) + options.lambda * size
            };
            let before = bases(&state);
            state.update_bases(&sides, options.lambda);
            prop_assert!(bases(&state) <= before * (1.0 + 1e-12));

            let before = lagrangian(&state, &sides, beta);
            state.update_coefficients(&sides);
            let between = lagrangian(&state, &sides, beta);
            state.update_copy(beta);
            let after = lagrangian(&state, &sides, beta);
            let slack = 1e-10 * before.abs().max(1.0);
            prop_assert!(between <= before + slack && after <= between + slack, "{before} {between} {after}");

            let rough = |state: &Variables| beta * state.graph.roughness(&state.copy) + gamma * state.graph.sum_squares;
            let before = rough(&state);
            state.graph = Graph::nearest(&state.copy, beta / (4.0 * gamma));
            prop_assert!(rough(&state) <= before * (1.0 + 1e-10), "{before} {}", rough(&state));
        }

        #[test]
        fn the_dual_and_the_penalty_follow_their_equations(seed in 0_u64..1000) {
            let (_, mut state) = example(seed, &Img::default());
            let difference = subtract(&plain(&state.coefficients), &plain(&state.copy));
            let (mu, largest) = (state.penalty, difference.iter().flatten().fold(0.0, |a: f64, b| a.max(b.abs())));
            let expected = add(&plain(&state.dual), &scale(mu, &difference));
            prop_assert_eq!(state.update_dual(), largest);
            assert_close(&state.dual, &expected);
            prop_assert_eq!(state.penalty, 1.1 * mu);
        }

        #[test]
        fn bases_and_coefficients_are_the_literal_solutions(seed in 0_u64..1000) {
            let options = Img::default();
            let (sides, mut state) = example(seed, &options);
            let [both, first, second] = Variables::split(&sides, &state.coefficients);
            state.update_bases(&sides, options.lambda);
            for ((side, only), basis) in sides.iter().zip([first, second]).zip(&state.bases) {
                let (x, p) = (below(dense(&side.both), dense(&side.only)), below(plain(&both), plain(&only)));
                let system = add(&mul(&transpose(&p), &p), &scale(options.lambda, &identity(3)));
                assert_close(basis, &transpose(&solve(&system, &mul(&transpose(&p), &x))));
            }

            let mu = state.penalty;
            let pull = subtract(&scale(mu, &plain(&state.copy)), &plain(&state.dual));
            let [u, v] = state.bases.each_ref().map(plain);
            let (uu, vv) = (mul(&transpose(&u), &u), mul(&transpose(&v), &v));
            let (paired, alone) = (sides[0].both.count(), sides[0].only.count());
            let of = |fit: &Mat, gram: &Mat, pull: &[Vec<f64>]| {
                let system = add(&scale(2.0, gram), &scale(mu, &identity(3)));
                divide(&add(&scale(2.0, fit), &pull.to_vec()), &system)
            };
            let fit = add(&mul(&dense(&sides[0].both), &u), &mul(&dense(&sides[1].both), &v));
            let p_c = of(&fit, &add(&uu, &vv), &pull[..paired]);
            let p_x = of(&mul(&dense(&sides[0].only), &u), &uu, &pull[paired..paired + alone]);
            let p_y = of(&mul(&dense(&sides[1].only), &v), &vv, &pull[paired + alone..]);
            state.update_coefficients(&sides);
            assert_close(&state.coefficients, &below(p_c, below(p_x, p_y)));
        }
    }
}
