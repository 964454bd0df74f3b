//! Online multi-view clustering with incomplete views (Shao, He, Lu and Yu, IEEE Big Data 2016).

use std::ops::ControlFlow;

use daimc::{Matrix, Result, Scale, Source};
use daimc_core::linalg::{product, transposed_product};
use daimc_core::matrix::dot;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::methods::algebra::{add, gram, inverse, stream, sum, uniform};
use crate::methods::data::{Scaled, check_clusters, check_weight, cluster};
use crate::methods::{Clustering, Method};

/// OMVC: a weighted non-negative factorisation of every view whose coefficients are drawn towards a consensus, block by block.
///
/// ```text
/// J = Σ_v { Σ_j c_vj² ( ‖x_vj − V_v u_vj‖² + α ‖u_vj − u*_j‖² ) + β ‖U_v‖₁ },   all ≥ 0
/// ```
///
/// An instance that is missing from a view is filled with the mean of the present ones so far, and its weight `c_vj` is their share
/// so far; a present instance has weight 1. (The authors' program uses the share of
/// the missing ones, so that imputed rows would weigh more the fewer rows are present, but never applies that weight. The intended
/// weight is that of [`Mic`](super::Mic), the share of present instances so far.) Each view is
/// divided by the sum of all its values. Of previous blocks the method keeps `A_v = Σ c² x uᵀ` and `B_v = Σ c² u uᵀ`. On a block,
///
/// ```text
/// u*   = Σ_v c_v² u_v / Σ_v c_v²
/// U_v ← max(0, U_v − η G H⁻¹)   G = 2C²(U VᵀV − XV + α(U − U*)) + β,   H = 2c²(VᵀV + αI)
/// V_v ← max(0, V_v − η G H⁻¹)   G = 2V(B + UᵀC²U) − 2(A + XᵀC²U),      H = 2(B + UᵀC²U)
/// columns of V_v to sum 1, those of U_v scaled the other way
/// ```
///
/// are repeated until J over all blocks so far converges; η is 1, halved until J does not rise. In a later pass a
/// block starts from its own U, and its previous contribution is subtracted. Instances come in a random order. The clusters are
/// those of k-means on U*.
///
/// Memory: the U of every view, and one block of rows in double precision; imputed rows are dense, so blocks of sparse
/// views are stored densely.
#[derive(Clone, Debug, PartialEq)]
pub struct Omvc {
    /// The weight of the consensus, α ≥ 0.
    pub alpha: f64,
    /// The weight of the sum of the coefficients, β ≥ 0; relative to values that sum to 1 in a view.
    pub beta: f64,
    /// Instances in a block; at least the number of clusters.
    pub block: usize,
    /// Passes over the data.
    pub passes: usize,
    /// How the views are scaled before they are divided by their sums; nothing may be negative afterwards.
    pub scale: Scale,
    /// Maximum number of iterations on a block.
    pub max_iterations: usize,
    /// A block has converged when J changes by less than this share.
    pub tolerance: f64,
}

impl Default for Omvc {
    fn default() -> Self {
        Self {
            alpha: 1e-2,
            beta: 1e-7,
            block: 50,
            passes: 2,
            scale: Scale::None,
            max_iterations: 200,
            tolerance: 1e-4,
        }
    }
}

impl Method for Omvc {
    fn name(&self) -> String {
        "OMVC".into()
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        check_clusters(source.instances(), clusters)?;
        check_weight("alpha", self.alpha)?;
        check_weight("beta", self.beta)?;
        let scaled = (0..source.views()).map(|view| Scaled::new(source, view, self.scale));
        let scaled = scaled.collect::<Result<Vec<_>>>()?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let blocks = stream(source.instances(), self.block.max(clusters), &mut rng);
        let mut states = Vec::new();
        for view in &scaled {
            let total = total(view, source.instances(), &self.name())?;
            states.push(ViewState::new(view.features(), total, clusters, &mut rng));
        }
        let mut latent: Vec<Vec<Matrix>> = Vec::new();
        let mut consensus = Matrix::zeros(source.instances(), clusters);
        let mut history = Vec::new();
        'passes: for pass in 0..self.passes {
            states.iter_mut().for_each(ViewState::rewind);
            for (number, instances) in blocks.iter().enumerate() {
                let rows = scaled.iter().zip(&mut states).map(|(view, state)| state.read(view, instances));
                let rows = rows.collect::<Result<Vec<_>>>()?;
                if pass == 0 {
                    latent.push(rows.iter().map(|rows| rows.random(clusters, &mut rng)).collect());
                } else {
                    give(&mut states, &rows, &latent[number], -1.0);
                }
                let us = &mut latent[number];
                let (star, objective) = self.iterate(&rows, &mut states, us);
                give(&mut states, &rows, us, 1.0);
                for (from, &to) in instances.iter().enumerate() {
                    consensus.row_mut(to).copy_from_slice(star.row(from));
                }
                history.push(objective);
                if each(history.len(), objective).is_break() {
                    break 'passes;
                }
            }
        }
        let (labels, _) = cluster(&consensus, clusters, seed)?;
        Ok(Clustering { labels, embedding: consensus, history, confidence: Vec::new() })
    }
}

impl Omvc {
    /// The iterations on a block: U* and J.
    fn iterate(&self, rows: &[Rows], states: &mut [ViewState], us: &mut [Matrix]) -> (Matrix, f64) {
        let mut star = mean(rows, us);
        let mut before = f64::INFINITY;
        for _ in 0..self.max_iterations.max(1) {
            for ((rows, state), u) in rows.iter().zip(&mut *states).zip(&mut *us) {
                *u = rows.update_latent(&state.basis, u, &star, self.alpha, self.beta);
                state.basis = state.update_basis(rows, u);
                state.normalise(u);
            }
            star = mean(rows, us);
            let views = rows.iter().zip(&*states).zip(&*us);
            let now: f64 = views
                .map(|((rows, state), u)| state.loss(rows, u) + rows.penalty(u, &star, self.alpha, self.beta))
                .sum();
            let settled = (before - now).abs() <= self.tolerance * now;
            before = now;
            if settled {
                break;
            }
        }
        (star, before)
    }
}

/// Rows in a partial sum, which avoids a copy of a whole view.
const TOTAL_BLOCK: usize = 1024;

/// The sum of all values of a view, none of which may be negative.
fn total(view: &Scaled<'_>, instances: usize, method: &str) -> Result<f64> {
    let mut total = 0.0;
    for start in (0..instances).step_by(TOTAL_BLOCK) {
        let shown: Vec<usize> =
            (start..(start + TOTAL_BLOCK).min(instances)).filter(|&i| view.shows(i)).collect();
        let rows = view.rows(&shown)?;
        view.refuse_negative(method, &shown, &rows)?;
        total += rows.sum();
    }
    Ok(total)
}

/// The rows of a block in a view, missing ones filled in, and `c²` of each.
struct Rows {
    values: Matrix,
    weights: Vec<f64>,
}

/// The state of a view: `A`, `B`, `Σ c²‖x‖²` of previous blocks, and the basis V.
struct ViewState {
    sums: Matrix,
    grams: Matrix,
    squares: f64,
    basis: Matrix,
    /// One over the sum of all values.
    factor: f64,
    /// Instances in this pass so far, the number of present ones, and the sum of their rows.
    met: f64,
    shown: f64,
    running: Vec<f64>,
}

impl ViewState {
    fn new(features: usize, total: f64, clusters: usize, rng: &mut ChaCha8Rng) -> Self {
        let mut state = Self {
            sums: Matrix::zeros(features, clusters),
            grams: Matrix::zeros(clusters, clusters),
            squares: 0.0,
            basis: uniform(features, clusters, rng),
            // A view of zeros stays zero.
            factor: if total > 0.0 { total.recip() } else { 1.0 },
            met: 0.0,
            shown: 0.0,
            running: vec![0.0; features],
        };
        state.normalise(&mut Matrix::zeros(0, clusters));
        state
    }

    /// Resets the running means before a pass, so that a block is filled as in the first pass.
    fn rewind(&mut self) {
        (self.met, self.shown) = (0.0, 0.0);
        self.running.fill(0.0);
    }

    fn read(&mut self, view: &Scaled<'_>, instances: &[usize]) -> Result<Rows> {
        let shown: Vec<usize> = instances.iter().copied().filter(|&i| view.shows(i)).collect();
        let own = view.rows(&shown)?;
        let mut values = Matrix::zeros(instances.len(), self.running.len());
        let mut weights = Vec::with_capacity(instances.len());
        let mut next = 0;
        for (i, &instance) in instances.iter().enumerate() {
            let row = values.row_mut(i);
            self.met += 1.0;
            if view.shows(instance) {
                own.each(next, |f, value| row[f] = value * self.factor);
                next += 1;
                self.shown += 1.0;
                add(&mut self.running, 1.0, row);
                weights.push(1.0);
            } else {
                add(row, self.shown.max(1.0).recip(), &self.running);
                weights.push((self.shown / self.met).powi(2));
            }
        }
        Ok(Rows { values, weights })
    }

    /// The Newton step of V, with the block.
    fn update_basis(&self, rows: &Rows, u: &Matrix) -> Matrix {
        let weighted = rows.weigh(u);
        let sums = sum(&self.sums, 1.0, &transposed_product(&rows.values, &weighted));
        let grams = sum(&self.grams, 1.0, &transposed_product(u, &weighted));
        let direction = product(&sum(&product(&self.basis, &grams), -1.0, &sums), &inverse(&grams, 0.0));
        let value = |v: &Matrix| product(v, &grams).dot(v) - 2.0 * sums.dot(v);
        backtrack(&self.basis, &direction, value)
    }

    /// Scales the columns of V to sum 1 and those of U inversely. Columns of zeros stay zero.
    fn normalise(&mut self, u: &mut Matrix) {
        let mut totals = vec![0.0; self.basis.columns()];
        self.basis.iter_rows().for_each(|row| add(&mut totals, 1.0, row));
        totals.iter_mut().filter(|total| **total <= 0.0).for_each(|total| *total = 1.0);
        u.scale_columns(&totals);
        self.basis.scale_columns(&totals.iter().map(|total| total.recip()).collect::<Vec<_>>());
    }

    /// `Σ c²‖x − V u‖²` over previous blocks and this one.
    fn loss(&self, rows: &Rows, u: &Matrix) -> f64 {
        let weighted = rows.weigh(u);
        let sums = sum(&self.sums, 1.0, &transposed_product(&rows.values, &weighted));
        let grams = sum(&self.grams, 1.0, &transposed_product(u, &weighted));
        self.squares + rows.squares() - 2.0 * sums.dot(&self.basis) + grams.dot(&gram(&self.basis))
    }
}

impl Rows {
    /// `C² U`.
    fn weigh(&self, u: &Matrix) -> Matrix {
        Matrix::from_fn(u.rows(), u.columns(), |i, k| self.weights[i] * u[(i, k)])
    }

    /// `Σ c²‖x‖²`.
    fn squares(&self) -> f64 {
        let square = |(row, weight): (&[f64], &f64)| weight * dot(row, row);
        self.values.iter_rows().zip(&self.weights).map(square).sum()
    }

    /// Uniform draws; the expected sum of a row is that of the row of the data, as it is when columns of V sum to 1.
    fn random(&self, clusters: usize, rng: &mut ChaCha8Rng) -> Matrix {
        let mut u = uniform(self.values.rows(), clusters, rng);
        for (i, row) in self.values.iter_rows().enumerate() {
            let factor = 2.0 / clusters as f64 * row.iter().sum::<f64>();
            u.row_mut(i).iter_mut().for_each(|value| *value *= factor);
        }
        u
    }

    /// The Newton step of U. The weight of a row cancels between its gradient and its Hessian, except in the term of β.
    fn update_latent(&self, basis: &Matrix, u: &Matrix, star: &Matrix, alpha: f64, beta: f64) -> Matrix {
        let (products, grams) = (product(&self.values, basis), gram(basis));
        let mut half = sum(&product(u, &grams), -1.0, &products);
        add(half.values_mut(), alpha, sum(u, -1.0, star).values());
        for (i, weight) in self.weights.iter().enumerate() {
            // With zero weight only β remains, and the row becomes zero.
            let push = if *weight > 0.0 { beta / (2.0 * weight) } else { f64::MAX.sqrt() * beta };
            half.row_mut(i).iter_mut().for_each(|value| *value += push);
        }
        let direction = product(&half, &inverse(&grams, alpha));
        let value = |u: &Matrix| {
            let fits = product(u, &grams);
            let fit = |i: usize| {
                let (own, u) = (fits.row(i), u.row(i));
                self.weights[i] * (dot(own, u) - 2.0 * dot(products.row(i), u))
            };
            (0..u.rows()).map(fit).sum::<f64>() + self.penalty(u, star, alpha, beta)
        };
        backtrack(u, &direction, value)
    }

    /// `α Σ c²‖u − u*‖² + β‖U‖₁` over the block.
    fn penalty(&self, u: &Matrix, star: &Matrix, alpha: f64, beta: f64) -> f64 {
        let far = |i: usize| {
            let squares = u.row(i).iter().zip(star.row(i)).map(|(u, star)| (u - star).powi(2));
            self.weights[i] * squares.sum::<f64>()
        };
        alpha * (0..u.rows()).map(far).sum::<f64>() + beta * u.values().iter().sum::<f64>()
    }
}

/// Adds a block to the state of each view, or subtracts it.
fn give(states: &mut [ViewState], rows: &[Rows], us: &[Matrix], sign: f64) {
    for ((state, rows), u) in states.iter_mut().zip(rows).zip(us) {
        let weighted = rows.weigh(u);
        add(state.sums.values_mut(), sign, transposed_product(&rows.values, &weighted).values());
        add(state.grams.values_mut(), sign, transposed_product(u, &weighted).values());
        state.squares += sign * rows.squares();
    }
}

/// U*: the mean of the U by the weights.
fn mean(rows: &[Rows], us: &[Matrix]) -> Matrix {
    let mut star = Matrix::zeros(us[0].rows(), us[0].columns());
    for i in 0..star.rows() {
        let total: f64 = rows.iter().map(|rows| rows.weights[i]).sum();
        for (rows, u) in rows.iter().zip(us) {
            add(star.row_mut(i), rows.weights[i] / total, u.row(i));
        }
    }
    star
}

/// Maximum number of halvings; then the step is zero.
const HALVINGS: usize = 60;

/// `max(0, start − η · direction)` with the largest η of 1, ½, ¼, … whose value is not above that of the start.
fn backtrack(start: &Matrix, direction: &Matrix, value: impl Fn(&Matrix) -> f64) -> Matrix {
    let limit = value(start);
    let mut eta = 1.0;
    for _ in 0..HALVINGS {
        let mut next = sum(start, -eta, direction);
        next.values_mut().iter_mut().for_each(|value| *value = value.max(0.0));
        if value(&next) <= limit {
            return next;
        }
        eta /= 2.0;
    }
    start.clone()
}

#[cfg(test)]
mod tests {
    use daimc::{View, Views};
    use daimc_core::linalg::product_transposed;
    use daimc_naive::{
        self as naive, Mat, add as plus, diagonal, identity, mul, scale, solve, subtract, transpose,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::methods::testing::{assert_close, plain, views};

    const CLUSTERS: usize = 3;

    /// A view after one block, the rows of the next block, its U and a U*.
    fn example(seed: u64) -> (ViewState, Rows, Matrix, Matrix) {
        let views = views(40, &[7, 5], 0.0, seed);
        let view = Scaled::new(&views, 0, Scale::None).unwrap();
        let instances: Vec<usize> = (0..40).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut state = [ViewState::new(7, 10.0, CLUSTERS, &mut rng)];
        let past = state[0].read(&view, &instances[..20]).unwrap();
        let u = past.random(CLUSTERS, &mut rng);
        give(&mut state, &[past], &[u], 1.0);
        let [mut state] = state;
        let rows = state.read(&view, &instances[20..]).unwrap();
        let (u, star) = (rows.random(CLUSTERS, &mut rng), rows.random(CLUSTERS, &mut rng));
        (state, rows, u, star)
    }

    fn squared(a: &Mat) -> f64 {
        naive::frobenius(a).powi(2)
    }

    /// `‖C(X − UVᵀ)‖² + α‖C(U − U*)‖² + β‖U‖₁` over the block.
    fn block_objective(rows: &Rows, v: &Mat, u: &Mat, star: &Mat, (alpha, beta): (f64, f64)) -> f64 {
        let c = diagonal(&rows.weights.iter().map(|weight| weight.sqrt()).collect::<Vec<_>>());
        let misfit = mul(&c, &subtract(&plain(&rows.values), &mul(u, &transpose(v))));
        squared(&misfit)
            + alpha * squared(&mul(&c, &subtract(u, star)))
            + beta * u.iter().flatten().sum::<f64>()
    }

    fn basis_objective(sums: &Mat, grams: &Mat, v: &Mat) -> f64 {
        let cross: f64 = sums.iter().flatten().zip(v.iter().flatten()).map(|(a, b)| a * b).sum();
        let square: f64 = mul(v, grams).iter().flatten().zip(v.iter().flatten()).map(|(a, b)| a * b).sum();
        square - 2.0 * cross
    }

    /// `max(0, start − η G H⁻¹)` with the first η of 1, ½, … that does not raise the value.
    fn newton(start: &Mat, step: &Mat, value: impl Fn(&Mat) -> f64) -> Mat {
        let mut eta = 1.0;
        loop {
            let next = naive::positive_part(&subtract(start, &scale(eta, step)));
            if value(&next) <= value(start) {
                return next;
            }
            eta /= 2.0;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn both_steps_are_the_literal_ones_and_raise_nothing(
            seed in 0_u64..1000, alpha in 1e-3..1.0, beta in 0.0..1e-3,
        ) {
            let (mut state, rows, u, star) = example(seed);
            let (x, v, c2) = (plain(&rows.values), plain(&state.basis), diagonal(&rows.weights));
            let (plain_u, plain_star) = (plain(&u), plain(&star));
            let inner = subtract(&mul(&plain_u, &mul(&transpose(&v), &v)), &mul(&x, &v));
            let pull = scale(alpha, &subtract(&plain_u, &plain_star));
            let smooth = scale(2.0, &mul(&c2, &plus(&inner, &pull)));
            let gradient = naive::build(u.rows(), CLUSTERS, |i, k| smooth[i][k] + beta);
            let hessian = scale(2.0, &plus(&mul(&transpose(&v), &v), &scale(alpha, &identity(CLUSTERS))));
            let step: Mat = (0..u.rows())
                .map(|i| {
                    let own = solve(&scale(rows.weights[i], &hessian), &transpose(&vec![gradient[i].clone()]));
                    transpose(&own).remove(0)
                })
                .collect();
            let value = |u: &Mat| block_objective(&rows, &v, u, &plain_star, (alpha, beta));
            let new = rows.update_latent(&state.basis, &u, &star, alpha, beta);
            assert_close(&new, &newton(&plain_u, &step, value));
            prop_assert!(value(&plain(&new)) <= value(&plain_u) * (1.0 + 1e-12));

            let weighted = mul(&c2, &plain(&new));
            let sums = plus(&plain(&state.sums), &mul(&transpose(&x), &weighted));
            let grams = plus(&plain(&state.grams), &mul(&transpose(&plain(&new)), &weighted));
            let gradient = scale(2.0, &subtract(&mul(&v, &grams), &sums));
            let step = transpose(&solve(&scale(2.0, &grams), &transpose(&gradient)));
            let value = |v: &Mat| basis_objective(&sums, &grams, v);
            let basis = state.update_basis(&rows, &new);
            assert_close(&basis, &newton(&v, &step, value));
            let slack = 1e-12 * value(&v).abs();
            prop_assert!(value(&plain(&basis)) <= value(&v) + slack);

            // Normalisation changes the factors but not their product.
            state.basis = basis;
            let before = mul(&plain(&new), &transpose(&plain(&state.basis)));
            let mut scaled = new;
            state.normalise(&mut scaled);
            assert_close(&product_transposed(&scaled, &state.basis), &before);
        }
    }

    #[test]
    fn missing_rows_are_the_mean_so_far_with_the_share_so_far_as_weight() {
        let view = View::dense("a", 1, vec![1.0, 3.0, 0.0, 8.0]).unwrap();
        let view = view.mask(&[true, true, false, true]).unwrap();
        let other = View::dense("b", 1, vec![1.0; 4]).unwrap();
        let views = Views::new(vec![view, other]).unwrap();
        let scaled = Scaled::new(&views, 0, Scale::None).unwrap();
        let mut state = ViewState::new(1, 2.0, 1, &mut ChaCha8Rng::seed_from_u64(0));
        let rows = state.read(&scaled, &[0, 1, 2, 3]).unwrap();
        assert_eq!(rows.values.values(), [0.5, 1.5, 1.0, 4.0]);
        assert_eq!(rows.weights, [1.0, 1.0, (2.0_f64 / 3.0).powi(2), 1.0]);
    }
}
