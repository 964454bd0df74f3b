//! Partial multi-view clustering (Li, Jiang and Zhou, AAAI 2014), for two views.

use std::ops::ControlFlow;

use daimc::{Matrix, Result, Scale, Source};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::methods::algebra::{gram, sum, uniform, unit_rows};
use crate::methods::data::{Scaled, check_clusters, check_weight, cluster};
use crate::methods::least_squares::least_squares;
use crate::methods::pair::{Pair, Side, stack};
use crate::methods::{Clustering, Method};

/// PVC: instances in both views share their coefficients, instances in one view have their own, and all share the bases.
///
/// Rows are instances: `X_c`, `Y_c` of those in both views, `X̂` of those in the first only, `Ŷ` of those in the second
/// only. With all factors non-negative,
///
/// ```text
/// J = ‖[X_c; X̂] − [P_c; P_x] U_xᵀ‖² + ‖[Y_c; Ŷ] − [P_c; P_y] U_yᵀ‖² + λ ( ‖P_c‖₁ + ‖P_x‖₁ + ‖P_y‖₁ )
/// ```
///
/// is minimised block by block; every block is a non-negative least-squares problem and is solved exactly:
///
/// ```text
/// P_x = argmin ‖X̂ − P U_xᵀ‖² + λ‖P‖₁            P_y = argmin ‖Ŷ − P U_yᵀ‖² + λ‖P‖₁
/// U_x = argmin ‖[X_c; X̂] − [P_c; P_x] Uᵀ‖²      U_y = argmin ‖[Y_c; Ŷ] − [P_c; P_y] Uᵀ‖²
/// P_c = argmin ‖X_c − P U_xᵀ‖² + ‖Y_c − P U_yᵀ‖² + λ‖P‖₁
/// ```
///
/// The start is the same descent on the instances in both views alone, from uniform random factors. The clusters are those of
/// k-means on the rows of P, scaled to length 1. An instance in neither view gets a row of zeros and the largest
/// cluster.
///
/// Memory: a copy of the rows of the two views, in double precision.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use daimc_experiments::methods::{Method, Pvc};
/// use daimc::{View, Views};
///
/// let a = View::dense("a", 2, vec![1.0, 0.1, 0.9, 0.0, 0.1, 1.0, 0.0, 0.8])?;
/// let b = View::dense("b", 2, vec![0.0, 3.0, 0.1, 2.9, 3.0, 0.2, 0.0, 0.0])?.mask(&[true, true, true, false])?;
/// let views = Views::new(vec![a, b])?;
/// let found = Pvc::default().fit(&views, 2, 0, &mut |_, _| ControlFlow::Continue(()))?;
/// assert_eq!(found.labels[0], found.labels[1]);
/// assert_eq!(found.labels[2], found.labels[3]);
/// assert_ne!(found.labels[0], found.labels[2]);
/// # Ok::<(), daimc::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pvc {
    /// The indices of the two views.
    pub views: (usize, usize),
    /// The weight of the sum of the coefficients, λ ≥ 0.
    pub lambda: f64,
    /// How the views are scaled; nothing may be negative afterwards.
    pub scale: Scale,
    /// Maximum number of rounds over the blocks, for the start and for the descent.
    pub max_rounds: usize,
    /// The descent ends when J changes by less than this share.
    pub tolerance: f64,
}

impl Default for Pvc {
    fn default() -> Self {
        Self { views: (0, 1), lambda: 1e-2, scale: Scale::Unit, max_rounds: 20, tolerance: 1e-6 }
    }
}

impl Method for Pvc {
    fn name(&self) -> String {
        "PVC".into()
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
        check_weight("lambda", self.lambda)?;
        let name = self.name();
        let side = |view, only| pair.side(&Scaled::new(source, view, self.scale)?, only, Some(&name));
        let sides = [side(self.views.0, &pair.first)?, side(self.views.1, &pair.second)?];
        let mut factors = Factors::new(&sides, clusters, seed);
        factors.start(&sides, self);
        let mut history: Vec<f64> = Vec::new();
        for round in 0..self.max_rounds {
            factors.descend(&sides, self.lambda);
            let now = factors.objective(&sides, self.lambda);
            let settled = history.last().is_some_and(|before| (before - now).abs() <= self.tolerance * now);
            history.push(now);
            if each(round + 1, now).is_break() || settled {
                break;
            }
        }
        let stacked = stack([&factors.both, &factors.only[0], &factors.only[1]]);
        let (labels, _) = cluster(&unit_rows(&stacked), clusters, seed)?;
        let (embedding, labels) = pair.unstack(&stacked, &labels);
        Ok(Clustering { labels, embedding, history, confidence: Vec::new() })
    }
}

/// `P_c`; `P_x` and `P_y`; `U_x` and `U_y`.
struct Factors {
    both: Matrix,
    only: [Matrix; 2],
    bases: [Matrix; 2],
}

impl Factors {
    fn new(sides: &[Side; 2], clusters: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let both = uniform(sides[0].both.count(), clusters, &mut rng);
        let only = sides.each_ref().map(|side| uniform(side.only.count(), clusters, &mut rng));
        let bases = sides.each_ref().map(|side| uniform(side.both.features(), clusters, &mut rng));
        Self { both, only, bases }
    }

    /// The descent on the instances in both views.
    fn start(&mut self, sides: &[Side; 2], options: &Pvc) {
        let mut before = f64::INFINITY;
        for _ in 0..options.max_rounds {
            for (side, basis) in sides.iter().zip(&mut self.bases) {
                least_squares(basis, &gram(&self.both), &side.both.transposed_times(&self.both), 0.0);
            }
            self.update_both(sides, options.lambda);
            let misfit = |(side, basis): (&Side, &Matrix)| side.both.misfit(&self.both, basis);
            let misfits: f64 = sides.iter().zip(&self.bases).map(misfit).sum();
            let now = misfits + options.lambda * self.both.values().iter().sum::<f64>();
            if (before - now).abs() <= options.tolerance * now {
                break;
            }
            before = now;
        }
    }

    /// One round over the blocks.
    fn descend(&mut self, sides: &[Side; 2], lambda: f64) {
        self.update_only(sides, lambda);
        self.update_bases(sides);
        self.update_both(sides, lambda);
    }

    fn update_only(&mut self, sides: &[Side; 2], lambda: f64) {
        for ((side, basis), only) in sides.iter().zip(&self.bases).zip(&mut self.only) {
            least_squares(only, &gram(basis), &side.only.times(basis), lambda);
        }
    }

    fn update_bases(&mut self, sides: &[Side; 2]) {
        for ((side, basis), only) in sides.iter().zip(&mut self.bases).zip(&self.only) {
            let m = sum(&gram(&self.both), 1.0, &gram(only));
            let r = sum(&side.both.transposed_times(&self.both), 1.0, &side.only.transposed_times(only));
            least_squares(basis, &m, &r, 0.0);
        }
    }

    fn update_both(&mut self, sides: &[Side; 2], lambda: f64) {
        let [x, y] = sides;
        let [u, v] = &self.bases;
        let m = sum(&gram(u), 1.0, &gram(v));
        let r = sum(&x.both.times(u), 1.0, &y.both.times(v));
        least_squares(&mut self.both, &m, &r, lambda);
    }

    /// J.
    fn objective(&self, sides: &[Side; 2], lambda: f64) -> f64 {
        let misfit = |(v, side): (usize, &Side)| {
            side.both.misfit(&self.both, &self.bases[v]) + side.only.misfit(&self.only[v], &self.bases[v])
        };
        let size = |p: &Matrix| p.values().iter().sum::<f64>();
        let sizes = size(&self.both) + size(&self.only[0]) + size(&self.only[1]);
        sides.iter().enumerate().map(misfit).sum::<f64>() + lambda * sizes
    }
}

#[cfg(test)]
mod tests {
    use daimc_core::linalg::column_squares;
    use daimc_naive::{add, frobenius, mul, subtract, transpose};
    use proptest::prelude::*;

    use super::*;
    use crate::methods::testing::{assert_close, below, dense, exhaustive, plain, views};

    fn example(seed: u64) -> ([Side; 2], Factors) {
        let views = views(30, &[7, 5], 0.0, seed);
        let pair = Pair::new(&views, (0, 1)).unwrap();
        let side = |v, only: &[usize]| {
            pair.side(&Scaled::new(&views, v, Scale::None).unwrap(), only, Some("PVC")).unwrap()
        };
        let sides = [side(0, &pair.first), side(1, &pair.second)];
        let factors = Factors::new(&sides, 3, seed);
        (sides, factors)
    }

    /// J as in the description.
    fn literal(factors: &Factors, sides: &[Side; 2], lambda: f64) -> f64 {
        let mut sum = 0.0;
        for (v, side) in sides.iter().enumerate() {
            let x = below(dense(&side.both), dense(&side.only));
            let p = below(plain(&factors.both), plain(&factors.only[v]));
            sum += frobenius(&subtract(&x, &mul(&p, &transpose(&plain(&factors.bases[v]))))).powi(2);
        }
        let all = [&factors.both, &factors.only[0], &factors.only[1]];
        sum + lambda * all.iter().flat_map(|p| p.values()).map(|x| x.abs()).sum::<f64>()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn no_block_raises_the_objective(seed in 0_u64..1000, lambda in 0.0..0.5) {
            let (sides, mut factors) = example(seed);
            let mut before = literal(&factors, &sides, lambda);
            for _ in 0..3 {
                for block in [Factors::update_only, |f: &mut Factors, s: &[Side; 2], _| f.update_bases(s), Factors::update_both] {
                    block(&mut factors, &sides, lambda);
                    let now = literal(&factors, &sides, lambda);
                    prop_assert!(now <= before * (1.0 + 1e-12), "{before} {now}");
                    prop_assert!((factors.objective(&sides, lambda) - now).abs() <= 1e-10 * now);
                    before = now;
                }
            }
        }

        #[test]
        fn every_block_is_the_literal_least_squares_solution(seed in 0_u64..1000, lambda in 0.0..0.1) {
            let (sides, mut factors) = example(seed);
            factors.start(&sides, &Pvc { lambda, max_rounds: 2, ..Pvc::default() });
            // The solution is not unique for a dead cluster.
            let alive = |a: &Matrix| column_squares(a).iter().all(|&square| square > 1e-6);
            prop_assume!(alive(&factors.both) && factors.bases.iter().all(alive));
            factors.update_only(&sides, lambda);
            for v in 0..2 {
                let u = plain(&factors.bases[v]);
                let expected = exhaustive(&mul(&transpose(&u), &u), &mul(&dense(&sides[v].only), &u), lambda);
                assert_close(&factors.only[v], &expected);
            }
            factors.update_bases(&sides);
            for v in 0..2 {
                let p = below(plain(&factors.both), plain(&factors.only[v]));
                let x = below(dense(&sides[v].both), dense(&sides[v].only));
                let expected = exhaustive(&mul(&transpose(&p), &p), &mul(&transpose(&x), &p), 0.0);
                assert_close(&factors.bases[v], &expected);
            }
            prop_assume!(factors.bases.iter().all(alive));
            factors.update_both(&sides, lambda);
            let [u, v] = factors.bases.each_ref().map(plain);
            let m = add(&mul(&transpose(&u), &u), &mul(&transpose(&v), &v));
            let r = add(&mul(&dense(&sides[0].both), &u), &mul(&dense(&sides[1].both), &v));
            assert_close(&factors.both, &exhaustive(&m, &r, lambda));
        }
    }
}
