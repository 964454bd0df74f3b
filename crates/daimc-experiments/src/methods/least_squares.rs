//! Non-negative least squares, exact, for many rows with one small system.

use daimc::Matrix;
use daimc_core::linalg;
use daimc_core::matrix::dot;
use rayon::prelude::*;

use crate::methods::algebra::add;

/// Coordinate descent on a row ends when a step gains less than this share of what a step from zero could gain ...
const SMALLEST_GAIN: f64 = 1e-6;
/// ... or after this many times K steps.
const MOST_STEPS: usize = 4;
/// A bound holds unless the gradient at it is below zero by more than this share of its terms.
const SMALLEST_SLOPE: f64 = 1e-13;

/// Non-negative least squares, row by row: for each row w of W
///
/// ```text
/// min_{w ≥ 0}  w M wᵀ − 2 r·w + μ Σ w
/// ```
///
/// by greedy coordinate descent (Hsieh and Dhillon, 2011) from the given W: with the gradient
/// `g = 2wM − 2r + μ`, the step `s_k = max(−w_k, −g_k / 2M_kk)` whose gain `−g_k s_k − M_kk s_k²` is largest is taken
/// until the gain is negligible. This quickly finds which coordinates are zero but converges slowly for the others; these are
/// then solved for exactly, which also corrects wrong zeros (Lawson and Hanson, 1974).
pub(super) fn least_squares(w: &mut Matrix, m: &Matrix, r: &Matrix, penalty: f64) {
    let k = w.columns();
    let rows = w.values_mut().par_chunks_exact_mut(k).zip(r.values().par_chunks_exact(k));
    rows.with_min_len(256).for_each_init(
        || Scratch::new(k),
        |scratch, (w, r)| {
            descend(w, m, r, penalty, &mut scratch.gradient);
            solve_exactly(w, m, r, penalty, scratch);
        },
    );
}

/// Scratch memory for a row.
struct Scratch {
    gradient: Vec<f64>,
    /// The coordinates that are free, the factor of their system, row by row, and its solution.
    free: Vec<usize>,
    lower: Vec<f64>,
    goal: Vec<f64>,
}

impl Scratch {
    fn new(k: usize) -> Self {
        let free = Vec::with_capacity(k);
        Self { gradient: vec![0.0; k], free, lower: vec![0.0; k * k], goal: Vec::with_capacity(k) }
    }
}

fn descend(w: &mut [f64], m: &Matrix, r: &[f64], penalty: f64, gradient: &mut [f64]) {
    let k = w.len();
    gradient.iter_mut().zip(r).for_each(|(gradient, r)| *gradient = penalty - 2.0 * r);
    for (l, &own) in w.iter().enumerate() {
        add(gradient, 2.0 * own, m.row(l));
    }
    let possible = |l: usize| if m[(l, l)] > 0.0 { r[l] * r[l] / m[(l, l)] } else { 0.0 };
    let enough = SMALLEST_GAIN * (0..k).map(possible).fold(0.0, f64::max);
    for _ in 0..MOST_STEPS * k {
        let mut best = (0, 0.0, enough);
        for l in 0..k {
            let (g, curvature) = (gradient[l], m[(l, l)]);
            // The parabola of a dead column has no curvature: the coordinate can only fall to zero.
            let step = if curvature > 0.0 { (-g / (2.0 * curvature)).max(-w[l]) } else { -w[l] };
            let gain = -g * step - curvature * step * step;
            if gain > best.2 {
                best = (l, step, gain);
            }
        }
        let (l, step, gain) = best;
        if gain <= enough || step == 0.0 {
            break;
        }
        // A step to the bound ends exactly at zero.
        w[l] = if step == -w[l] { 0.0 } else { w[l] + step };
        add(gradient, 2.0 * step, m.row(l));
    }
}

/// Lawson and Hanson's method from a row w ≥ 0: solves for the coordinates that are free, goes as far towards the solution as
/// the bounds allow, binds coordinates that reach their bound, and frees the coordinate with the largest gradient at its
/// bound. If the system of the free coordinates is singular, w does not change.
fn solve_exactly(w: &mut [f64], m: &Matrix, r: &[f64], penalty: f64, scratch: &mut Scratch) {
    let k = w.len();
    scratch.free.clear();
    scratch.free.extend((0..k).filter(|&l| w[l] > 0.0));
    for _ in 0..4 * k + 8 {
        if !scratch.solve(m, r, penalty) {
            return;
        }
        let Scratch { free, goal, .. } = &mut *scratch;
        // How far each coordinate can go; the one that can go least far meets its bound exactly.
        let reach = |(&l, goal): (&usize, &f64)| if *goal > 0.0 { 1.0 } else { w[l] / (w[l] - goal) };
        let shares = free.iter().zip(&*goal).map(reach);
        let (first, share) = shares.enumerate().fold((k, 1.0), |a, b| if b.1 < a.1 { b } else { a });
        for (i, (&l, goal)) in free.iter().zip(&*goal).enumerate() {
            w[l] = if i == first { 0.0 } else { (w[l] + share * (goal - w[l])).max(0.0) };
        }
        if first < k {
            free.retain(|&l| w[l] > 0.0);
            continue;
        }
        let slope = |l: usize| {
            let pull = dot(m.row(l), w);
            let size = pull.abs() + r[l].abs() + penalty;
            (l, 2.0 * (pull - r[l]) + penalty, SMALLEST_SLOPE * size)
        };
        let held =
            (0..k).filter(|l| !free.contains(l)).map(slope).filter(|(_, slope, least)| *slope < -least);
        let Some((l, ..)) = held.min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        free.push(l);
    }
}

impl Scratch {
    /// Sets the goal to the `x` of `M x = r − μ/2` on the free coordinates, by Cholesky's decomposition; `false` if M is
    /// singular there.
    fn solve(&mut self, m: &Matrix, r: &[f64], penalty: f64) -> bool {
        let Self { free, lower, goal: x, .. } = self;
        let n = free.len();
        x.clear();
        for i in 0..n {
            let (above, own) = lower.split_at_mut(i * n);
            let (own, row) = (&mut own[..n], m.row(free[i]));
            for j in 0..i {
                let other = &above[j * n..=j * n + j];
                let inner: f64 = own[..j].iter().zip(other).map(|(a, b)| a * b).sum();
                own[j] = (row[free[j]] - inner) / other[j];
            }
            let rest = row[free[i]] - own[..i].iter().map(|a| a * a).sum::<f64>();
            if rest <= linalg::SMALLEST_EIGENVALUE * row[free[i]] {
                return false;
            }
            own[i] = rest.sqrt();
            let inner: f64 = own[..i].iter().zip(&*x).map(|(a, b)| a * b).sum();
            x.push((r[free[i]] - penalty / 2.0 - inner) / own[i]);
        }
        for i in (0..n).rev() {
            let inner: f64 = (i + 1..n).map(|l| lower[l * n + i] * x[l]).sum();
            x[i] = (x[i] - inner) / lower[i * n + i];
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::methods::algebra::{gram, uniform};
    use crate::methods::testing::{assert_close, exhaustive, plain};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn least_squares_finds_the_best_support(k in 1_usize..6, seed in 0_u64..1000, penalty in 0.0..0.5) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let basis = Matrix::from_fn(k + 6, k, |_, _| rng.random_range(-0.3..1.0));
            let m = gram(&basis);
            let r = Matrix::from_fn(8, k, |_, _| rng.random_range(-1.0..2.0));
            let mut w = uniform(8, k, &mut rng);
            least_squares(&mut w, &m, &r, penalty);
            assert_close(&w, &exhaustive(&plain(&m), &plain(&r), penalty));
        }

        /// Coordinate descent alone would take millions of steps.
        #[test]
        fn least_squares_solves_systems_that_are_nearly_singular(seed in 0_u64..1000) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut basis = uniform(12, 3, &mut rng);
            (0..12).for_each(|f| basis[(f, 1)] = basis[(f, 0)] + 1e-3 * rng.random::<f64>());
            let m = gram(&basis);
            let r = linalg::product(&uniform(8, 12, &mut rng), &basis);
            let mut w = uniform(8, 3, &mut rng);
            least_squares(&mut w, &m, &r, 0.0);
            assert_close(&w, &exhaustive(&plain(&m), &plain(&r), 0.0));
        }
    }

    #[test]
    fn a_dead_column_is_left_or_falls_to_zero() {
        let m = Matrix::from_fn(2, 2, |i, j| if (i, j) == (0, 0) { 2.0 } else { 0.0 });
        let r = Matrix::from_fn(1, 2, |_, k| if k == 0 { 3.0 } else { 0.0 });
        for (penalty, expected) in [(0.0, [1.5, 0.7]), (1.0, [1.25, 0.0])] {
            let mut w = Matrix::from_fn(1, 2, |_, _| 0.7);
            least_squares(&mut w, &m, &r, penalty);
            assert_close(&w, &vec![expected.to_vec()]);
        }
    }
}
