//! Helpers for the tests of the methods.

use daimc::{Matrix, View, Views};
use daimc_naive::{self as naive, Mat};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::methods::data::Rows;

pub fn plain(a: &Matrix) -> Mat {
    a.iter_rows().map(<[f64]>::to_vec).collect()
}

/// Rows as a matrix, from a product with the identity.
pub fn dense(rows: &Rows) -> Mat {
    let identity = Matrix::from_fn(rows.features(), rows.features(), |i, j| f64::from(u8::from(i == j)));
    plain(&rows.times(&identity))
}

/// Stacked matrices.
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

/// Rows `w ≥ 0` with the least `w M wᵀ − 2 r·w + μ Σ w`: of the stationary points of every support, the one at
/// which no other coordinate has a negative gradient. (Objective values separate supports to half the digits only.)
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

/// The rows, of length 1, of the leading eigenvectors of `D^{-½} W D^{-½}`, by the power method: each vector is orthogonalised
/// against the previous ones. The eigenvalues are moved from −1 … 1 to 0 … 1, so that the largest is also the longest.
pub fn spectral(weights: &Mat, count: usize) -> Mat {
    let n = weights.len();
    let degrees: Vec<f64> = weights.iter().map(|row| row.iter().sum()).collect();
    let normalised = naive::build(n, n, |i, j| {
        let own = if i == j { 0.5 } else { 0.0 };
        own + 0.5 * weights[i][j] / (degrees[i] * degrees[j]).sqrt()
    });
    let mut vectors: Vec<Mat> = Vec::new();
    for k in 0..count {
        let mut vector = naive::build(n, 1, |i, _| ((i * (k + 3)) % 7) as f64 - 2.5);
        for _ in 0..20_000 {
            vector = naive::mul(&normalised, &vector);
            for before in &vectors {
                let share = naive::mul(&naive::transpose(before), &vector)[0][0];
                vector = naive::subtract(&vector, &naive::scale(share, before));
            }
            vector = naive::scale(1.0 / naive::frobenius(&vector), &vector);
        }
        vectors.push(vector);
    }
    let rows = naive::build(n, count, |i, k| vectors[k][i][0]);
    rows.into_iter()
        .map(|row| {
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            row.into_iter().map(|x| x / length).collect()
        })
        .collect()
}
