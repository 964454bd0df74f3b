//! Small dense matrices and random draws.

use daimc::Matrix;
use daimc_core::linalg;
use daimc_core::matrix::dot;
use rand::{Rng, RngExt};

/// `target ← target + factor · row`.
#[inline]
pub(super) fn add(target: &mut [f64], factor: f64, row: &[f64]) {
    for (target, value) in target.iter_mut().zip(row) {
        *target += factor * value;
    }
}

/// `A + factor · B`.
pub(super) fn sum(a: &Matrix, factor: f64, b: &Matrix) -> Matrix {
    let mut out = a.clone();
    add(out.values_mut(), factor, b.values());
    out
}

/// `AᵀA`.
pub(super) fn gram(a: &Matrix) -> Matrix {
    linalg::transposed_product(a, a)
}

/// Some rows of a matrix, in the order given.
pub(super) fn rows_of(a: &Matrix, rows: &[usize]) -> Matrix {
    Matrix::from_fn(rows.len(), a.columns(), |i, k| a[(rows[i], k)])
}

/// A with rows of length 1; rows of zeros stay zero.
pub(super) fn unit_rows(a: &Matrix) -> Matrix {
    let mut out = a.clone();
    for i in 0..out.rows() {
        let length = dot(a.row(i), a.row(i)).sqrt();
        if length > 0.0 {
            out.row_mut(i).iter_mut().for_each(|value| *value /= length);
        }
    }
    out
}

/// `(A + ridge · I)⁻¹` of a symmetric, positive semi-definite matrix; singular directions are
/// regularised. If the inverse cannot be computed its entries are NaN, which the clustering rejects.
pub(super) fn inverse(a: &Matrix, ridge: f64) -> Matrix {
    let Ok((mut values, vectors)) = linalg::symmetric_eigen(a) else {
        return Matrix::from_fn(a.rows(), a.columns(), |_, _| f64::NAN);
    };
    values.iter_mut().for_each(|value| *value = value.max(0.0) + ridge);
    linalg::lift(&mut values, 1.0);
    let mut scaled = vectors.clone();
    scaled.scale_columns(&values.iter().map(|value| 1.0 / value).collect::<Vec<_>>());
    linalg::product_transposed(&scaled, &vectors)
}

/// A matrix of uniform draws from 0 to 1.
pub(super) fn uniform(rows: usize, columns: usize, rng: &mut impl Rng) -> Matrix {
    Matrix::from_fn(rows, columns, |_, _| rng.random::<f64>())
}

/// All instances in a random order, `size` at a time.
pub(super) fn stream(instances: usize, size: usize, rng: &mut impl Rng) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..instances).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.random_range(0..=i));
    }
    order.chunks(size.max(1)).map(<[usize]>::to_vec).collect()
}
