//! Linear algebra for the steps, and the only module that uses `faer`.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par, Side};

use crate::{Error, Matrix, Result};

fn view(matrix: &Matrix) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(matrix.values(), matrix.rows(), matrix.columns())
}

fn view_mut(matrix: &mut Matrix) -> MatMut<'_, f64> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    MatMut::from_row_major_slice_mut(matrix.values_mut(), rows, columns)
}

/// `A B`.
pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.rows(), b.columns());
    matmul(view_mut(&mut out), Accum::Replace, view(a), view(b), 1.0, Par::Seq);
    out
}

/// `Aᵀ B`.
pub fn transposed_product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.columns(), b.columns());
    matmul(view_mut(&mut out), Accum::Replace, view(a).transpose(), view(b), 1.0, Par::Seq);
    out
}

/// `A Bᵀ`.
pub fn product_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.rows(), b.rows());
    matmul(view_mut(&mut out), Accum::Replace, view(a), view(b).transpose(), 1.0, Par::Seq);
    out
}

/// `C ← Aᵀ A`, with A given row by row.
pub fn gram_into(c: &mut Matrix, rows: &[f64]) {
    let width = c.columns();
    let a = MatRef::from_row_major_slice(rows, rows.len() / width.max(1), width);
    matmul(view_mut(c), Accum::Replace, a.transpose(), a, 1.0, Par::Seq);
}

/// `C ← C + factor · A B`.
pub(crate) fn add_product(c: &mut Matrix, factor: f64, a: &Matrix, b: &Matrix) {
    matmul(view_mut(c), Accum::Add, view(a), view(b), factor, Par::Seq);
}

/// The eigenvalues λ of a symmetric matrix and its eigenvectors, one per column: `A = Q diag(λ) Qᵀ`.
///
/// # Errors
/// [`Error::OutOfRange`] if the matrix has entries that are not finite, [`Error::NoConvergence`] if the iterations do
/// not converge.
pub fn symmetric_eigen(a: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    let n = a.rows();
    if a.values().iter().any(|value| !value.is_finite()) {
        return Err(Error::OutOfRange);
    }
    let eigen = view(a).self_adjoint_eigen(Side::Lower).map_err(|_| Error::NoConvergence { order: n })?;
    let values: Vec<f64> = (0..n).map(|i| eigen.S()[i]).collect();
    let vectors = Matrix::from_fn(n, n, |i, j| eigen.U()[(i, j)]);
    // Entries near the largest number may overflow in between.
    let sound = values.iter().chain(vectors.values()).all(|value| value.is_finite());
    if sound { Ok((values, vectors)) } else { Err(Error::OutOfRange) }
}

/// Eigenvalues below this share of the largest are raised to it.
pub const SMALLEST_EIGENVALUE: f64 = 1e-12;

/// Smaller numbers cannot be divided by.
const NEGLIGIBLE: f64 = 1e-250;

/// Raises eigenvalues below [`SMALLEST_EIGENVALUE`] of the largest (an empty cluster, a rank-deficient basis), or of
/// `otherwise` if all are zero.
pub fn lift(eigenvalues: &mut [f64], otherwise: f64) {
    let largest = eigenvalues.iter().copied().fold(0.0, f64::max);
    let scale = [largest, otherwise, 1.0].into_iter().find(|&scale| scale > NEGLIGIBLE).unwrap_or(1.0);
    for value in eigenvalues {
        *value = value.max(scale * SMALLEST_EIGENVALUE);
    }
}

/// The squared length of each column.
pub fn column_squares(matrix: &Matrix) -> Vec<f64> {
    let mut squares = vec![0.0; matrix.columns()];
    for row in matrix.iter_rows() {
        for (square, value) in squares.iter_mut().zip(row) {
            *square += value * value;
        }
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_without_eigenvalues_is_an_error_and_not_a_diagonal_one() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for (i, j) in [(0, 0), (1, 1), (1, 0), (0, 1)] {
                let mut a = Matrix::from_fn(3, 3, |i, j| if i == j { 2.0 } else { 1.0 });
                a[(i, j)] = bad;
                assert!(matches!(symmetric_eigen(&a), Err(Error::OutOfRange)), "{bad} at {i}, {j}");
            }
        }
        let (values, _) =
            symmetric_eigen(&Matrix::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 1.0 })).unwrap();
        assert!((values[0] - 1.0).abs() < 1e-12 && (values[1] - 3.0).abs() < 1e-12, "{values:?}");
    }
}
