//! Each step against its equation: the literal solution, the gradient, and the promise that it never raises J.

use daimc::Matrix;
use daimc::steps::{alignment, basis};
use daimc_naive::{self as naive, Mat};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn random(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> Mat {
    naive::build(rows, columns, |_, _| rng.random_range(-1.0..1.0))
}

fn matrix(a: &Mat) -> Matrix {
    let (rows, columns) = naive::shape(a);
    Matrix::from_fn(rows, columns, |i, j| a[i][j])
}

fn plain(a: &Matrix) -> Mat {
    a.iter_rows().map(<[f64]>::to_vec).collect()
}

/// One view: data, presence, V, B.
struct View {
    x: Mat,
    w: Mat,
    v: Mat,
    b: Mat,
}

impl View {
    fn random(n: usize, d: usize, k: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let presence: Vec<f64> = (0..n).map(|_| f64::from(u8::from(rng.random::<f64>() < 0.7))).collect();
        let x = random(d, n, &mut rng);
        let v = naive::build(n, k, |_, _| rng.random_range(0.0..1.0));
        Self { x, w: naive::diagonal(&presence), v, b: random(d, k, &mut rng) }
    }

    /// `S = VᵀWV` and `C = XWV`.
    fn statistics(&self) -> (Mat, Mat) {
        let wv = naive::mul(&self.w, &self.v);
        (naive::mul(&naive::transpose(&self.v), &wv), naive::mul(&self.x, &wv))
    }

    fn u_step(&self, alpha: f64) -> Mat {
        let (s, c) = self.statistics();
        plain(&basis::update(&matrix(&s), &matrix(&c), &matrix(&self.b), alpha).unwrap())
    }
}

#[test]
fn u_step_equals_the_kronecker_solution_of_eq_15() {
    for (seed, (d, k)) in [(7, 3), (3, 5), (1, 1), (12, 4), (5, 5), (2, 6), (20, 2)].into_iter().enumerate() {
        for alpha in [0.01, 1.0, 10.0, 100.0] {
            let view = View::random(30, d, k, seed as u64);
            let expected = naive::update_u_kronecker(&view.x, &view.w, &view.v, &view.b, alpha);
            let difference = naive::relative_difference(&view.u_step(alpha), &expected);
            assert!(difference < 1e-9, "d = {d}, K = {k}, α = {alpha}: {difference}");
        }
    }
}

#[test]
fn u_step_equals_the_kronecker_solution_when_b_has_not_full_rank() {
    let mut view = View::random(30, 8, 4, 1);
    for row in &mut view.b {
        row[2] = row[0] + row[1];
        row[3] = 0.0;
    }
    let expected = naive::update_u_kronecker(&view.x, &view.w, &view.v, &view.b, 5.0);
    let difference = naive::relative_difference(&view.u_step(5.0), &expected);
    assert!(difference < 1e-9, "{difference}");
}

/// A dead cluster makes S singular and Eq. 15 unsolvable as it stands: both sides take S with its zero eigenvalue
/// lifted to 1e-12 of the largest, here by hand because the dead column is an eigenvector.
#[test]
fn u_step_equals_the_kronecker_solution_when_a_cluster_is_dead() {
    for (d, k) in [(8, 4), (3, 4)] {
        let mut view = View::random(40, d, k, 3);
        for row in &mut view.v {
            row[1] = 0.0;
        }
        let (s, c) = view.statistics();
        let found = view.u_step(2.0);
        // The other columns do not depend on the dead one (S is block diagonal, and so is the equation).
        let alive: Vec<usize> = (0..k).filter(|&j| j != 1).collect();
        let keep = |a: &Mat| -> Mat { a.iter().map(|row| alive.iter().map(|&j| row[j]).collect()).collect() };
        let s_alive: Mat = alive.iter().map(|&i| alive.iter().map(|&j| s[i][j]).collect()).collect();
        let right = naive::add(&c, &naive::scale(2.0, &view.b));
        let system = naive::add(
            &naive::kronecker(
                &naive::identity(k - 1),
                &naive::scale(2.0, &naive::mul(&view.b, &naive::transpose(&view.b))),
            ),
            &naive::kronecker(&s_alive, &naive::identity(d)),
        );
        let solution = naive::solve(&system, &naive::vectorise(&keep(&right)));
        let expected = naive::build(d, k - 1, |i, j| solution[j * d + i][0]);
        let difference = naive::relative_difference(&keep(&found), &expected);
        assert!(difference < 1e-9, "d = {d}, K = {k}: {difference}");
        // The dead column is determined by the alignment alone: Bᵀu = e as nearly as B allows, and finite.
        let dead: Mat = found.iter().map(|row| vec![row[1]]).collect();
        let gram = naive::mul(&naive::transpose(&view.b), &view.b);
        let at_optimum = naive::mul(&naive::mul(&view.b, &naive::transpose(&view.b)), &dead);
        let target: Mat = view.b.iter().map(|row| vec![row[1]]).collect();
        let difference = naive::relative_difference(&at_optimum, &target);
        assert!(difference < 1e-9, "d = {d}, K = {k}, dead column: {difference}, {gram:?}");
    }
}

#[test]
fn the_gradient_of_j_vanishes_at_the_u_step() {
    for seed in 0..20 {
        let view = View::random(25, 6, 3, seed);
        for alpha in [1e-4, 1.0, 1e4] {
            let u = view.u_step(alpha);
            let gradient = naive::gradient_u(&view.x, &view.w, &u, &view.v, &view.b, alpha);
            let right = naive::add(&view.statistics().1, &naive::scale(alpha, &view.b));
            let relative = naive::frobenius(&gradient) / naive::frobenius(&right);
            assert!(relative < 1e-9, "seed {seed}, α = {alpha}: {relative}");
        }
    }
}

#[test]
fn b_step_equals_eq_25_solved_densely() {
    for (seed, (d, k)) in [(7, 3), (3, 5), (1, 1), (15, 4), (5, 5), (2, 6)].into_iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        let (u, b) = (random(d, k, &mut rng), random(d, k, &mut rng));
        for beta in [1e-3, 0.1, 1.0, 100.0] {
            let expected = naive::update_b_dense(&u, &b, beta, alignment::ETA);
            let found = plain(&alignment::update(&matrix(&u), &matrix(&b), beta).unwrap());
            let difference = naive::relative_difference(&found, &expected);
            assert!(difference < 1e-9, "d = {d}, K = {k}, β = {beta}: {difference}");
        }
    }
}

#[test]
fn b_step_equals_eq_25_when_b_or_u_has_not_full_rank() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut u, mut b) = (random(9, 4, &mut rng), random(9, 4, &mut rng));
    b[3] = vec![0.0; 4];
    for row in &mut u {
        row[1] = 0.0;
        row[2] = row[0];
    }
    let expected = naive::update_b_dense(&u, &b, 0.5, alignment::ETA);
    let found = plain(&alignment::update(&matrix(&u), &matrix(&b), 0.5).unwrap());
    let difference = naive::relative_difference(&found, &expected);
    assert!(difference < 1e-9, "{difference}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// In the order of Algorithm 1: U, then B, on random data; J is Eq. 11 with dense W.
    #[test]
    fn u_and_b_steps_never_raise_j(
        n in 2_usize..12, d in 1_usize..10, k in 1_usize..6, seed in any::<u64>(),
        alpha in (-4.0..4.0_f64).prop_map(|e| 10_f64.powf(e)),
        beta in (-4.0..4.0_f64).prop_map(|e| 10_f64.powf(e)),
    ) {
        let View { x, w, v, b } = View::random(n, d, k, seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 1);
        let u = random(d, k, &mut rng);
        let j = |u: &Mat, b: &Mat| {
            naive::objective(
                std::slice::from_ref(&x), std::slice::from_ref(&w), std::slice::from_ref(u), &v,
                std::slice::from_ref(b), alpha, beta, alignment::ETA,
            )
        };
        let wv = naive::mul(&w, &v);
        let s = naive::mul(&naive::transpose(&v), &wv);
        let c = naive::mul(&x, &wv);
        let new_u = plain(&basis::update(&matrix(&s), &matrix(&c), &matrix(&b), alpha).unwrap());
        let before = j(&u, &b);
        let after_u = j(&new_u, &b);
        prop_assert!(after_u <= before * (1.0 + 1e-9) + 1e-9, "U: {before} → {after_u}");
        let new_b = plain(&alignment::update(&matrix(&new_u), &matrix(&b), beta).unwrap());
        let after_b = j(&new_u, &new_b);
        prop_assert!(after_b <= after_u * (1.0 + 1e-9) + 1e-9, "B: {after_u} → {after_b}");
    }
}
