//! What the tests of the methods share.

use daimc::{Matrix, View, Views};
use daimc_naive::{self as naive, Mat};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::data::Rows;

pub fn plain(a: &Matrix) -> Mat {
    a.iter_rows().map(<[f64]>::to_vec).collect()
}

/// Rows as a matrix, by their own product.
pub fn dense(rows: &Rows) -> Mat {
    let identity = Matrix::from_fn(rows.features(), rows.features(), |i, j| f64::from(u8::from(i == j)));
    plain(&rows.times(&identity))
}

/// Matrices one below the other.
pub fn below(a: Mat, b: Mat) -> Mat {
    a.into_iter().chain(b).collect()
}

#[track_caller]
pub fn assert_close(found: &Matrix, expected: &Mat) {
    let difference = naive::frobenius(&naive::subtract(&plain(found), expected));
    let limit = 1e-8 * naive::frobenius(expected).max(1e-8);
    assert!(difference <= limit, "differs by {difference}, allowed is {limit}");
}

/// Views of `n` instances with values from `low` to 1, and about a third of the instances missing in each.
pub fn views(n: usize, features: &[usize], low: f64, seed: u64) -> Views<'static> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let view = |(v, &d): (usize, &usize)| {
        let values: Vec<f64> = (0..n * d).map(|_| rng.random_range(low..1.0)).collect();
        let present: Vec<bool> =
            (0..n).map(|i| i % features.len() == v || rng.random::<f64>() < 0.5).collect();
        View::dense(format!("view {v}"), d, values).unwrap().mask(&present).unwrap()
    };
    Views::new(features.iter().enumerate().map(view).collect()).unwrap()
}

/// Rows `w ≥ 0` with the least `w M wᵀ − 2 r·w + μ Σ w`: of the stationary points of every support, the one from
/// which no other coordinate wants to grow. (Values would tell supports apart to half the digits only.)
pub fn exhaustive(m: &Mat, r: &Mat, penalty: f64) -> Mat {
    let row = |r: &Vec<f64>| {
        let k = r.len();
        let mut best = (vec![0.0; k], f64::INFINITY);
        for support in 0_usize..1 << k {
            let inside: Vec<usize> = (0..k).filter(|l| support >> l & 1 == 1).collect();
            let system = naive::build(inside.len(), inside.len(), |i, j| m[inside[i]][inside[j]]);
            let right = naive::build(inside.len(), 1, |i, _| r[inside[i]] - penalty / 2.0);
            let mut w = vec![0.0; k];
            if !inside.is_empty() {
                inside.iter().zip(&naive::solve(&system, &right)).for_each(|(&l, x)| w[l] = x[0]);
            }
            let pull =
                |l: &usize| naive::compensated(r[*l] - penalty / 2.0, (0..k).map(|i| (-m[*l][i], w[i])));
            let outside = (0..k).filter(|l| !inside.contains(l));
            let wish = outside.map(|l| pull(&l)).fold(0.0, f64::max);
            if w.iter().all(|&x| x >= 0.0) && wish < best.1 {
                best = (w, wish);
            }
        }
        best.0
    };
    r.iter().map(row).collect()
}
