//! Each step of NMF, `MultiNMF` and MIC against its equation, written out in dense loops, and that no step raises its
//! objective.

use daimc::{Matrix, Scale, View, Views};
use daimc_naive::{self as naive, Mat, build, mul, relative_difference, transpose};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::methods::data::Filled;
use crate::methods::nmf::{Factors, NmfStart, chained, iterate};
use crate::methods::{mic, multi_nmf};

/// Small data without negative values, a few instances missing, dense or sparse.
struct Case {
    x: Filled,
    /// The same, filled with means and divided by its sum, written out.
    dense: Mat,
    present: Vec<bool>,
    factors: Factors,
    consensus: Matrix,
}

impl Case {
    fn new(n: usize, d: usize, k: usize, sparse: bool, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut present: Vec<bool> = (0..n).map(|_| rng.random::<f64>() < 0.7).collect();
        present[0] = true;
        let entry = |rng: &mut ChaCha8Rng| if rng.random::<f64>() < 0.4 { 0.0 } else { rng.random() };
        let mut rows: Mat = build(n, d, |_, _| entry(&mut rng));
        rows[0][0] = 0.5;
        let own = if sparse { sparse_view(&rows) } else { View::dense("x", d, rows.concat()).unwrap() };
        let other = View::dense("other", 1, vec![1.0; n]).unwrap();
        let views = Views::new(vec![own.mask(&present).unwrap(), other]).unwrap();
        let x = Filled::distributions(&views, Scale::None, "nmf").unwrap().swap_remove(0);
        let count = present.iter().filter(|here| **here).count() as f64;
        let mean: Vec<f64> =
            (0..d).map(|f| (0..n).filter(|&j| present[j]).map(|j| rows[j][f]).sum::<f64>() / count).collect();
        let filled = build(n, d, |j, f| if present[j] { rows[j][f] } else { mean[f] });
        let total: f64 = filled.iter().flatten().sum();
        let dense = naive::scale(1.0 / total, &filled);
        // Of the magnitude of factors of such data.
        let mut random = |rows, columns, size: f64| {
            Matrix::from_fn(rows, columns, |_, _| size * rng.random_range(0.1..1.0))
        };
        let mut factors =
            Factors { basis: random(d, k, 1.0), latent: random(n, k, 1.0 / (n * d * k) as f64) };
        factors.normalise();
        Self { x, dense, present, factors, consensus: random(n, k, 1.0 / (n * k) as f64) }
    }

    /// U and V of `MultiNMF`, V* of it.
    fn parts(&self) -> (Mat, Mat, Mat) {
        (plain(&self.factors.basis), plain(&self.factors.latent), plain(&self.consensus))
    }

    fn c(&self) -> Vec<f64> {
        let share = self.present.iter().filter(|here| **here).count() as f64 / self.present.len() as f64;
        self.present.iter().map(|&here| if here { 1.0 } else { share }).collect()
    }
}

fn sparse_view(rows: &Mat) -> View<'static> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        for (f, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(u32::try_from(f).unwrap());
            values.push(value);
        }
        offsets.push(values.len());
    }
    View::sparse("x", rows[0].len(), offsets, columns, values).unwrap()
}

fn plain(a: &Matrix) -> Mat {
    a.iter_rows().map(<[f64]>::to_vec).collect()
}

/// `A ∘ N ⊘ D`, denominators being at least 1e-10.
fn quotient(a: &Mat, above: &Mat, below: &Mat) -> Mat {
    let (rows, columns) = naive::shape(a);
    build(rows, columns, |i, k| a[i][k] * above[i][k] / below[i][k].max(1e-10))
}

fn squared_distance(a: &Mat, b: &Mat) -> f64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).powi(2)).sum()
}

#[track_caller]
fn assert_close(a: &Matrix, b: &Mat) {
    let difference = relative_difference(&plain(a), b);
    assert!(difference < 1e-9, "{difference}");
}

#[track_caller]
fn assert_not_raised(before: f64, after: f64) {
    // Entries sum to one, so their squares to 1e-3 or more: 1e-18 is rounding.
    assert!(after <= before * (1.0 + 1e-9) + 1e-18, "{before:e} → {after:e}");
}

fn cases() -> impl Strategy<Value = (usize, usize, usize, bool, u64)> {
    (2..14_usize, 1..10_usize, 1..5_usize, any::<bool>(), any::<u64>())
}

/// `‖X − V Uᵀ‖² + λ ‖V Q − V*‖²`.
fn multi_objective(x: &Mat, u: &Mat, v: &Mat, star: &Mat, lambda: f64) -> f64 {
    let (n, k) = naive::shape(v);
    let sum = |k: usize| u.iter().map(|row| row[k]).sum::<f64>();
    let scaled = build(n, k, |j, k| v[j][k] * sum(k));
    squared_distance(x, &mul(v, &transpose(u))) + lambda * squared_distance(&scaled, star)
}

/// `‖C (X − U Vᵀ)‖² + α ‖C (U − U*)‖² + β ‖U‖_{2,1}`; u is the latent matrix.
fn mic_objective(x: &Mat, u: &Mat, v: &Mat, star: &Mat, c: &[f64], (alpha, beta): (f64, f64)) -> f64 {
    let c = naive::diagonal(c);
    let norms: f64 = u.iter().map(|row| row.iter().map(|u| u * u).sum::<f64>().sqrt()).sum();
    squared_distance(&mul(&c, x), &mul(&c, &mul(u, &transpose(v))))
        + alpha * squared_distance(&mul(&c, u), &mul(&c, star))
        + beta * norms
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn products_with_a_filled_view_are_those_with_the_mean_written_out((n, d, k, sparse, seed) in cases()) {
        let case = Case::new(n, d, k, sparse, seed);
        let (u, v, _) = case.parts();
        assert_close(&case.x.dense(), &case.dense);
        assert_close(&case.x.times(&case.factors.basis), &mul(&case.dense, &u));
        assert_close(&case.x.transposed_times(&case.factors.latent), &mul(&transpose(&case.dense), &v));
        let weighed = mul(&naive::diagonal(&case.c()), &case.dense);
        let expected: f64 = weighed.iter().flatten().map(|x| x * x).sum();
        prop_assert!((case.x.sum_squares(case.x.share()) - expected).abs() <= 1e-9 * expected);
    }

    #[test]
    fn nmf_follows_its_equations_and_never_raises_its_loss((n, d, k, sparse, seed) in cases()) {
        let mut case = Case::new(n, d, k, sparse, seed);
        let (mut u, mut v, _) = case.parts();
        let x = case.dense.clone();
        let mut loss = squared_distance(&x, &mul(&v, &transpose(&u)));
        for _ in 0..5 {
            v = quotient(&v, &mul(&x, &u), &mul(&v, &mul(&transpose(&u), &u)));
            u = quotient(&u, &mul(&transpose(&x), &v), &mul(&u, &mul(&transpose(&v), &v)));
            case.factors.iterate(&case.x);
            assert_close(&case.factors.basis, &u);
            assert_close(&case.factors.latent, &v);
            let now = squared_distance(&x, &mul(&v, &transpose(&u)));
            assert_not_raised(loss, now);
            prop_assert!((case.factors.loss(&case.x) - now).abs() <= 1e-9 * case.x.sum_squares(1.0));
            loss = now;
        }
    }

    #[test]
    fn multi_nmf_follows_its_equations((n, d, k, sparse, seed) in cases(), lambda in 0.0..1.0_f64) {
        let mut case = Case::new(n, d, k, sparse, seed);
        let (u, v, star) = case.parts();
        let x = &case.dense;

        let xu = mul(x, &u);
        let vg = mul(&v, &mul(&transpose(&u), &u));
        let expected = build(n, k, |j, k| {
            v[j][k] * (xu[j][k] + lambda * star[j][k]) / (vg[j][k] + lambda * v[j][k]).max(1e-10)
        });
        multi_nmf::update_latent(&mut case.factors, &case.x, &case.consensus, lambda);
        assert_close(&case.factors.latent, &expected);

        // The U step holds for any basis, not only for one whose columns sum to one.
        let factors: Vec<f64> = (0..k).map(|k| 1.0 + k as f64 / 2.0).collect();
        case.factors.basis.scale_columns(&factors);
        let (u, v) = (plain(&case.factors.basis), expected);
        let xv = mul(&transpose(x), &v);
        let ug = mul(&u, &mul(&transpose(&v), &v));
        let expected = build(d, k, |i, k| {
            let drawn: f64 = (0..n).map(|j| v[j][k] * star[j][k]).sum();
            let held: f64 = (0..n).map(|j| v[j][k] * v[j][k]).sum();
            let sum: f64 = (0..d).map(|l| u[l][k]).sum();
            u[i][k] * (xv[i][k] + lambda * drawn) / (ug[i][k] + lambda * sum * held).max(1e-10)
        });
        multi_nmf::update_basis(&mut case.factors, &case.x, &case.consensus, lambda);
        assert_close(&case.factors.basis, &expected);

        let j = multi_objective(x, &expected, &v, &star, lambda);
        let own = multi_nmf::objective(&case.factors, &case.x, &case.consensus, lambda);
        prop_assert!((own - j).abs() <= 1e-9 * (j + case.x.sum_squares(1.0)));

        let sums: Vec<f64> = (0..k).map(|k| (0..d).map(|i| expected[i][k]).sum()).collect();
        case.factors.normalise();
        assert_close(&case.factors.latent, &build(n, k, |j, k| v[j][k] * sums[k]));
        assert_close(&case.factors.basis, &build(d, k, |i, k| expected[i][k] / sums[k]));
    }

    #[test]
    fn no_step_of_multi_nmf_raises_its_objective((n, d, k, sparse, seed) in cases(), lambda in 0.0..1.0_f64) {
        let mut case = Case::new(n, d, k, sparse, seed);
        let objective = |factors: &Factors| {
            let (u, v, star) = (plain(&factors.basis), plain(&factors.latent), plain(&case.consensus));
            multi_objective(&case.dense, &u, &v, &star, lambda)
        };
        let mut before = objective(&case.factors);
        for _ in 0..10 {
            multi_nmf::update_latent(&mut case.factors, &case.x, &case.consensus, lambda);
            let latent = objective(&case.factors);
            assert_not_raised(before, latent);
            multi_nmf::update_basis(&mut case.factors, &case.x, &case.consensus, lambda);
            let basis = objective(&case.factors);
            assert_not_raised(latent, basis);
            // Neither raised nor lowered.
            case.factors.normalise();
            let after = objective(&case.factors);
            assert_not_raised(basis, after);
            assert_not_raised(after, basis);
            before = after;
        }
    }

    #[test]
    fn the_consensus_of_multi_nmf_is_the_mean_and_the_best((n, d, k, sparse, seed) in cases(), lambda in 0.0..1.0_f64) {
        let (a, b) = (Case::new(n, d, k, sparse, seed), Case::new(n, d, k, sparse, seed ^ 1));
        let star = multi_nmf::mean(&[a.factors.clone(), b.factors.clone()]);
        let (v, w) = (plain(&a.factors.latent), plain(&b.factors.latent));
        assert_close(&star, &build(n, k, |j, k| f64::midpoint(v[j][k], w[j][k])));
        let total = |star: &Matrix| {
            let star = plain(star);
            let of = |case: &Case, v: &Mat| multi_objective(&case.dense, &plain(&case.factors.basis), v, &star, lambda);
            of(&a, &v) + of(&b, &w)
        };
        assert_not_raised(total(&a.consensus), total(&star));
    }

    #[test]
    fn mic_follows_its_equations((n, d, k, sparse, seed) in cases(), alpha in 0.0..1.0_f64, beta in 0.0..1e-3_f64) {
        let mut case = Case::new(n, d, k, sparse, seed);
        // The publication's letters: U is the latent matrix.
        let (v, u, star) = case.parts();
        let (x, c) = (&case.dense, case.c());
        let view = mic::Weighted::new(&case.x, alpha, beta);

        let xv = mul(x, &v);
        let ug = mul(&u, &mul(&transpose(&v), &v));
        let expected = build(n, k, |j, k| {
            let norm = u[j].iter().map(|u| u * u).sum::<f64>().sqrt();
            let above = c[j] * c[j] * (xv[j][k] + alpha * star[j][k]);
            let below = c[j] * c[j] * (ug[j][k] + alpha * u[j][k]) + beta / 2.0 / norm * u[j][k];
            u[j][k] * (above / below).sqrt()
        });
        view.update_latent(&mut case.factors, &case.consensus);
        assert_close(&case.factors.latent, &expected);

        let u = expected;
        let c2 = naive::diagonal(&c.iter().map(|c| c * c).collect::<Vec<_>>());
        let xu = mul(&transpose(x), &mul(&c2, &u));
        let vg = mul(&v, &mul(&transpose(&u), &mul(&c2, &u)));
        let expected = build(d, k, |i, k| v[i][k] * (xu[i][k] / vg[i][k].max(1e-30)).sqrt());
        view.update_basis(&mut case.factors);
        assert_close(&case.factors.basis, &expected);

        let j = mic_objective(x, &u, &expected, &star, &c, (alpha, beta));
        let own = view.objective(&case.factors, &case.consensus);
        prop_assert!((own - j).abs() <= 1e-9 * (j + case.x.sum_squares(1.0)));
    }

    // Its normalisation may raise it, by design: the penalties see the scale of the latent matrix.
    #[test]
    fn no_update_of_mic_raises_its_objective(
        (n, d, k, sparse, seed) in cases(), alpha in 0.0..1.0_f64, beta in 0.0..1e-3_f64
    ) {
        let mut case = Case::new(n, d, k, sparse, seed);
        let view = mic::Weighted::new(&case.x, alpha, beta);
        let c = case.c();
        let objective = |factors: &Factors, consensus: &Matrix| {
            let (v, u, star) = (plain(&factors.basis), plain(&factors.latent), plain(consensus));
            mic_objective(&case.dense, &u, &v, &star, &c, (alpha, beta))
        };
        for _ in 0..10 {
            let start = objective(&case.factors, &case.consensus);
            view.update_latent(&mut case.factors, &case.consensus);
            let latent = objective(&case.factors, &case.consensus);
            assert_not_raised(start, latent);
            view.update_basis(&mut case.factors);
            assert_not_raised(latent, objective(&case.factors, &case.consensus));
            case.factors.normalise();
        }
    }

    #[test]
    fn the_consensus_of_mic_is_the_weighted_mean_and_the_best((n, d, k, sparse, seed) in cases()) {
        let (a, b) = (Case::new(n, d, k, sparse, seed), Case::new(n, d, k, sparse, seed ^ 1));
        let views = [mic::Weighted::new(&a.x, 1.0, 0.0), mic::Weighted::new(&b.x, 1.0, 0.0)];
        let star = mic::consensus(&views, &[a.factors.clone(), b.factors.clone()]);
        let (c, e, u, w) = (a.c(), b.c(), plain(&a.factors.latent), plain(&b.factors.latent));
        let expected = build(n, k, |j, k| {
            let (c, e) = (c[j] * c[j], e[j] * e[j]);
            (c * u[j][k] + e * w[j][k]) / (c + e)
        });
        assert_close(&star, &expected);
        let total = |star: &Matrix| views[0].objective(&a.factors, star) + views[1].objective(&b.factors, star);
        assert_not_raised(total(&a.consensus), total(&star));
    }
}

#[test]
fn iterations_end_when_ten_of_them_change_too_little() {
    // Each step halves what is left above 1.
    let run = |iterations, tolerance| {
        let mut state = (0, 2.0);
        iterate(&mut state, iterations, tolerance, |s| *s = (s.0 + 1, 1.0 + (s.1 - 1.0) / 2.0), |s| s.1);
        state.0
    };
    assert_eq!(run(100, 0.0), 100);
    assert_eq!(run(5, 1e-4), 5);
    // The first ten change it by 0.998 of what it then is, the next by 1e-3, the third by 1e-6.
    assert_eq!([run(100, 1.0), run(100, 1e-2), run(100, 1e-4)], [10, 20, 30]);
}

#[test]
fn the_chain_gives_every_view_factors_that_fit_it() {
    let xs: Vec<Filled> = (0..3).map(|seed| Case::new(12, 6, 2, seed == 1, seed).x).collect();
    let start = NmfStart { sweeps: 2, trials: 4, trial_iterations: 10, iterations: 50 };
    let factors = chained(&xs, 2, &start, 1e-4, 1);
    assert_eq!(factors, chained(&xs, 2, &start, 1e-4, 1));
    for (own, x) in factors.iter().zip(&xs) {
        assert!(own.loss(x) < 0.5 * x.sum_squares(1.0));
        let sums = super::nmf::column_sums(&own.basis);
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-12));
    }
}
