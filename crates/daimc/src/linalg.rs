//! What the steps need of linear algebra, and the only place that knows `faer`.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par, Side};

use crate::Matrix;

fn view(matrix: &Matrix) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(matrix.values(), matrix.rows(), matrix.columns())
}

fn view_mut(matrix: &mut Matrix) -> MatMut<'_, f64> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    MatMut::from_row_major_slice_mut(matrix.values_mut(), rows, columns)
}

/// `A B`.
pub(crate) fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.rows(), b.columns());
    matmul(view_mut(&mut out), Accum::Replace, view(a), view(b), 1.0, Par::Seq);
    out
}

/// `Aᵀ B`.
pub(crate) fn transposed_product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.columns(), b.columns());
    matmul(view_mut(&mut out), Accum::Replace, view(a).transpose(), view(b), 1.0, Par::Seq);
    out
}

/// `A Bᵀ`.
pub(crate) fn product_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.rows(), b.rows());
    matmul(view_mut(&mut out), Accum::Replace, view(a), view(b).transpose(), 1.0, Par::Seq);
    out
}

/// `C ← C + factor · A B`.
pub(crate) fn add_product(c: &mut Matrix, factor: f64, a: &Matrix, b: &Matrix) {
    matmul(view_mut(c), Accum::Add, view(a), view(b), factor, Par::Seq);
}

/// The eigenvalues λ of a symmetric matrix and its eigenvectors, one per column: `A = Q diag(λ) Qᵀ`.
///
/// A matrix that holds NaN or does not converge is taken as diagonal; callers guard the values they get.
pub(crate) fn symmetric_eigen(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.rows();
    let Ok(eigen) = view(a).self_adjoint_eigen(Side::Lower) else {
        let identity = Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)));
        return ((0..n).map(|i| a[(i, i)]).collect(), identity);
    };
    ((0..n).map(|i| eigen.S()[i]).collect(), Matrix::from_fn(n, n, |i, j| eigen.U()[(i, j)]))
}

/// Eigenvalues that cannot be divided by are lifted to this share of the largest.
pub(crate) const SMALLEST_EIGENVALUE: f64 = 1e-12;

/// Below this nothing can be divided by.
const NEGLIGIBLE: f64 = 1e-250;

/// Lifts eigenvalues below [`SMALLEST_EIGENVALUE`] of the largest (a dead cluster, a rank-deficient basis), or of
/// `otherwise` if all are zero.
pub(crate) fn lift(eigenvalues: &mut [f64], otherwise: f64) {
    let largest = eigenvalues.iter().copied().fold(0.0, f64::max);
    let scale = [largest, otherwise, 1.0].into_iter().find(|&scale| scale > NEGLIGIBLE).unwrap_or(1.0);
    for value in eigenvalues {
        *value = value.max(scale * SMALLEST_EIGENVALUE);
    }
}

/// The squared length of each column.
pub(crate) fn column_squares(matrix: &Matrix) -> Vec<f64> {
    let mut squares = vec![0.0; matrix.columns()];
    for row in matrix.iter_rows() {
        for (square, value) in squares.iter_mut().zip(row) {
            *square += value * value;
        }
    }
    squares
}
