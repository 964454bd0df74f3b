//! The B step.

use crate::linalg::{lift, product, product_transposed, symmetric_eigen, transposed_product};
use crate::matrix::dot;
use crate::{Matrix, Result};

/// Keeps the norm of a row of B away from zero: `‖b‖ ≈ √(‖b‖² + η)`.
pub const ETA: f64 = 1e-10;

/// One step of Eq. 26 for the alignment B of one view (d × K), given its basis U (d × K). By the push-through
/// identity the equation collapses to
///
/// ```text
/// B = D⁻¹U ( UᵀD⁻¹U + (β/2) I )⁻¹,      (D⁻¹)_jj = √(‖b_j‖² + η)
/// ```
///
/// where `b_j` are the rows of the present B. O(d K²), and nothing cancels; the difference in Eq. 26 as it is
/// printed loses every digit on unscaled data.
///
/// # Errors
/// When the eigenvalues of the K × K matrix cannot be found.
pub fn update(basis: &Matrix, alignment: &Matrix, beta: f64) -> Result<Matrix> {
    let mut weighted = basis.clone();
    for (j, row) in alignment.iter_rows().enumerate() {
        let norm = row_norm(row);
        weighted.row_mut(j).iter_mut().for_each(|value| *value *= norm);
    }
    solve(basis, &weighted, beta)
}

/// The B to start from: the B step with D = I, a ridge regression.
///
/// # Errors
/// As [`update`].
pub fn start(basis: &Matrix, beta: f64) -> Result<Matrix> {
    solve(basis, basis, beta)
}

/// The B step of [`Penalty::Relative`](crate::Penalty::Relative). The regression that aligns the basis exactly,
/// `B̂ = U (UᵀU)⁻¹`, says which features matter, and those align the basis:
///
/// ```text
/// S = { j : ‖b̂_j‖ > β max_i ‖b̂_i‖ },      B_S = U_S (U_SᵀU_S)⁻¹,      all other rows zero
/// ```
///
/// With β = 0 no feature is left out, with β = 1 all are. Every feature is judged by itself: in the published form
/// features that say the same compete, and at most K² rows can stay. And nothing is shrunk: where the features that
/// are left suffice, `BᵀU = I`, and the alignment does not pull at the basis.
///
/// # Errors
/// As [`update`].
pub fn select(basis: &Matrix, beta: f64) -> Result<Matrix> {
    let exact = solve(basis, basis, 0.0)?;
    let squares: Vec<f64> = exact.iter_rows().map(|row| dot(row, row)).collect();
    let threshold = beta * beta * squares.iter().copied().fold(0.0, f64::max);
    let mut kept = basis.clone();
    for (j, _) in squares.iter().enumerate().filter(|(_, square)| **square <= threshold) {
        kept.row_mut(j).fill(0.0);
    }
    solve(&kept, &kept, 0.0)
}

/// `W (UᵀW + (β/2) I)⁻¹`, where `W = D⁻¹U`, so that `UᵀW` is symmetric and not negative.
fn solve(basis: &Matrix, weighted: &Matrix, beta: f64) -> Result<Matrix> {
    let (mut eigenvalues, q) = symmetric_eigen(&transposed_product(basis, weighted))?;
    for value in &mut eigenvalues {
        *value = value.max(0.0) + 0.5 * beta;
    }
    lift(&mut eigenvalues, 0.0);
    let mut scaled = product(weighted, &q);
    let reciprocals: Vec<f64> = eigenvalues.iter().map(|value| 1.0 / value).collect();
    scaled.scale_columns(&reciprocals);
    Ok(product_transposed(&scaled, &q))
}

/// `√(‖b‖² + η)`, the norm of a row of B as the objective and the step take it.
pub(crate) fn row_norm(row: &[f64]) -> f64 {
    (row.iter().map(|b| b * b).sum::<f64>() + ETA).sqrt()
}
