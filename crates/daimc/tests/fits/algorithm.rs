//! The whole fit against a literal, naive transcription of Algorithm 1 with dense W.

use daimc::steps::alignment::ETA;
use daimc::steps::{alignment, basis};
use daimc::{Daimc, Fit, Matrix, Preset, Scale, Solver, View, Views};
use daimc_naive::{self as naive, Mat, VSolver};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Small data in the paper's orientation: X is d × N.
struct Data {
    xs: Vec<Mat>,
    presence: Vec<Vec<bool>>,
    v0: Mat,
}

impl Data {
    fn random(n: usize, features: &[usize], k: usize, share_of_zeros: f64, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut value = || {
            let value: f64 = rng.random_range(-1.0..1.0);
            // A value that single precision holds exactly, so that both precisions see the same data.
            if rng.random::<f64>() < share_of_zeros { 0.0 } else { f64::from(value as f32) }
        };
        let xs: Vec<Mat> = features.iter().map(|&d| naive::build(d, n, |_, _| value())).collect();
        let mut presence: Vec<Vec<bool>> =
            features.iter().map(|_| (0..n).map(|_| rng.random::<f64>() < 0.6).collect()).collect();
        for i in 0..n {
            let keep = rng.random_range(0..features.len());
            presence[keep][i] = true;
        }
        for present in &mut presence {
            present[0] = true;
        }
        let v0 = naive::build(n, k, |_, _| rng.random_range(0.1..1.0));
        Self { xs, presence, v0 }
    }

    fn ws(&self) -> Vec<Mat> {
        let number = |&present: &bool| f64::from(u8::from(present));
        self.presence.iter().map(|w| naive::diagonal(&w.iter().map(number).collect::<Vec<_>>())).collect()
    }

    /// Bases that fit V best, and the alignments that start from them: ridge regression, Eq. 25 with D = I.
    fn start(&self, beta: f64) -> Vec<Mat> {
        let views = self.xs.iter().zip(self.ws());
        views
            .map(|(x, w)| {
                let wv = naive::mul(&w, &self.v0);
                let s = naive::mul(&naive::transpose(&self.v0), &wv);
                let (d, k) = (x.len(), self.v0[0].len());
                let none = naive::build(d, k, |_, _| 0.0);
                let u = naive::update_u_from_statistics(&s, &naive::mul(x, &wv), &none, 0.0);
                // Rows of norm √(1 − η), so that D is the identity.
                let unit = naive::build(d, k, |_, j| if j == 0 { (1.0 - ETA).sqrt() } else { 0.0 });
                naive::update_b_dense(&u, &unit, beta, ETA)
            })
            .collect()
    }

    fn views<T: Copy>(&self, sparse: bool, convert: impl Fn(f64) -> T + Copy) -> Views<'static>
    where
        Vec<T>: daimc::Values<'static>,
    {
        let views = self.xs.iter().zip(&self.presence).enumerate().map(|(number, (x, present))| {
            let rows = naive::transpose(x);
            let (d, name) = (x.len(), format!("view {number}"));
            let view = if sparse {
                let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
                for row in &rows {
                    for (f, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                        columns.push(f as u32);
                        values.push(convert(value));
                    }
                    offsets.push(columns.len());
                }
                View::sparse(name, d, offsets, columns, values)
            } else {
                View::dense(name, d, rows.iter().flatten().map(|&value| convert(value)).collect::<Vec<T>>())
            };
            view.unwrap().mask(present).unwrap()
        });
        Views::new(views.collect()).unwrap()
    }
}

fn literal(k: usize, solver: Solver, passes: usize, iterations: usize, v0: &Mat) -> Daimc {
    Daimc::new(k)
        .preset(Preset::Paper)
        .scale(Scale::None)
        .solver(solver)
        .passes(passes)
        .max_iterations(iterations)
        .tolerance(0.0)
        .start(matrix(v0))
}

fn matrix(a: &Mat) -> Matrix {
    let (rows, columns) = naive::shape(a);
    Matrix::from_fn(rows, columns, |i, j| a[i][j])
}

fn plain(a: &Matrix) -> Mat {
    a.iter_rows().map(<[f64]>::to_vec).collect()
}

#[track_caller]
fn assert_same(fitted: &Fit, run: &naive::Run, tolerance: f64, case: &str) {
    let check = |what: &str, found: &Matrix, expected: &Mat| {
        let difference = naive::relative_difference(&plain(found), expected);
        assert!(difference < tolerance, "{case}: {what} differs by {difference}");
    };
    check("V", &fitted.latent, &run.v);
    for (view, (u, b)) in fitted.model.views.iter().zip(run.us.iter().zip(&run.bs)) {
        check(&format!("U of {}", view.name), &view.basis, u);
        check(&format!("B of {}", view.name), &view.alignment, b);
    }
    assert_eq!(fitted.history.len(), run.history.len());
    for (found, expected) in fitted.history.iter().zip(&run.history) {
        let difference = (found.total - expected).abs() / expected;
        assert!(difference < tolerance, "{case}: J is {} instead of {expected}", found.total);
    }
}

#[test]
fn a_fit_equals_algorithm_1_dense_and_sparse_in_both_precisions() {
    for (seed, (solver, naive_solver)) in
        [(Solver::Coordinate, VSolver::Coordinate), (Solver::Multiplicative, VSolver::Multiplicative)]
            .into_iter()
            .enumerate()
    {
        for (passes, share_of_zeros) in [(1, 0.0), (3, 0.6)] {
            let (k, alpha, beta, iterations) = (3, 10.0, 0.1, 4);
            let data = Data::random(37, &[7, 2, 11], k, share_of_zeros, seed as u64);
            let run = naive::algorithm_1(
                &data.xs,
                &data.ws(),
                &data.v0,
                &data.start(beta),
                alpha,
                beta,
                ETA,
                iterations,
                passes,
                naive_solver,
            );
            let daimc = literal(k, solver, passes, iterations, &data.v0).alpha(alpha).beta(beta);
            for sparse in [false, true] {
                let case = format!("{solver:?}, {passes} passes, sparse: {sparse}");
                let double = daimc.fit(&data.views(sparse, |value| value)).unwrap();
                assert_same(&double, &run, 1e-8, &format!("{case}, f64"));
                let single = daimc.fit(&data.views(sparse, |value| value as f32)).unwrap();
                assert_same(&single, &run, 1e-3, &format!("{case}, f32"));
            }
        }
    }
}

#[test]
fn a_fit_equals_algorithm_1_over_several_blocks_and_patterns() {
    let (k, alpha, beta) = (4, 1.0, 1.0);
    let data = Data::random(300, &[3, 4, 2, 3], k, 0.0, 9);
    let (bs, ws) = (data.start(beta), data.ws());
    let run = naive::algorithm_1(&data.xs, &ws, &data.v0, &bs, alpha, beta, ETA, 2, 2, VSolver::Coordinate);
    let daimc = literal(k, Solver::Coordinate, 2, 2, &data.v0).alpha(alpha).beta(beta);
    assert_same(&daimc.fit(&data.views(false, |value| value)).unwrap(), &run, 1e-8, "300 instances");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The loss does not change under normalisation, so what the V step did to J can be read off it.
    #[test]
    fn v_steps_never_raise_j(
        n in 6_usize..16, d in 1_usize..6, k in 1_usize..4, passes in 1_usize..4, seed in any::<u64>(),
        alpha in (-4.0..4.0_f64).prop_map(|e| 10_f64.powf(e)),
        beta in (-4.0..4.0_f64).prop_map(|e| 10_f64.powf(e)),
    ) {
        let data = Data::random(n, &[d, d + 1], k.min(n), 0.2, seed);
        let k = k.min(n);
        let ws = data.ws();
        // U as the first iteration computes it. With fewer rows than columns of V, S is singular, B starts from
        // rounding, and U would not be the same here and there.
        prop_assume!(data.presence.iter().all(|w| w.iter().filter(|here| **here).count() >= k + 2));
        let v0 = matrix(&data.v0);
        let us: Vec<Mat> = (0..2)
            .map(|i| {
                let wv = naive::mul(&ws[i], &data.v0);
                let s = matrix(&naive::mul(&naive::transpose(&data.v0), &wv));
                let c = matrix(&naive::mul(&data.xs[i], &wv));
                let none = Matrix::zeros(c.rows(), v0.columns());
                let b = alignment::start(&basis::update(&s, &c, &none, 0.0).unwrap(), beta).unwrap();
                plain(&basis::update(&s, &c, &b, alpha).unwrap())
            })
            .collect();
        let before = naive::loss(&data.xs, &ws, &us, &data.v0);
        let total: f64 = data.xs.iter().zip(&ws).map(|(x, w)| naive::frobenius(&naive::mul(x, w)).powi(2)).sum();
        for solver in [Solver::Coordinate, Solver::Multiplicative] {
            let daimc = literal(k, solver, passes, 1, &data.v0).alpha(alpha).beta(beta);
            let after = daimc.fit(&data.views(false, |value| value)).unwrap().history[0].loss;
            prop_assert!(after <= before * (1.0 + 1e-7) + 1e-9 * total, "{solver:?}: {before} → {after}");
        }
    }
}
