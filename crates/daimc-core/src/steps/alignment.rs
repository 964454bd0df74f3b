//! The B step.
//!
//! The alignment term needs a matching scale: Eq. 20 does not rescale B. After a start whose V is not normalised, the
//! second U step would be dominated by the alignment, and the result of k-means would be lost. The `Aligned` start is
//! therefore normalised; the `Paper` start is left as published.

use crate::linalg::{lift, product, product_transposed, symmetric_eigen, transposed_product};
use crate::matrix::dot;
use crate::{Matrix, Result};

/// Keeps the norm of a row of B away from zero: `‖b‖ ≈ √(‖b‖² + η)`.
pub const ETA: f64 = 1e-10;

/// One step of Eq. 26 for the alignment B of one view (d × K), given its basis U (d × K). By the push-through identity
/// the equation becomes
///
/// ```text
/// B = D⁻¹U ( UᵀD⁻¹U + (β/2) I )⁻¹,      (D⁻¹)_jj = √(‖b_j‖² + η)
/// ```
///
/// where `b_j` are the rows of the current B. O(d K²), without cancellation; the difference in Eq. 26 as printed loses
/// all digits on unscaled data.
///
/// # Errors
/// When the eigenvalues of the K × K matrix cannot be computed.
pub fn update(basis: &Matrix, alignment: &Matrix, beta: f64) -> Result<Matrix> {
    let mut weighted = basis.clone();
    for (j, row) in alignment.iter_rows().enumerate() {
        let norm = row_norm(row);
        weighted.row_mut(j).iter_mut().for_each(|value| *value *= norm);
    }
    solve(basis, &weighted, beta)
}

/// The initial B: the B step with D = I, a ridge regression.
///
/// # Errors
/// As [`update`].
pub fn start(basis: &Matrix, beta: f64) -> Result<Matrix> {
    solve(basis, basis, beta)
}

/// The B step of `Penalty::Relative`. The exact regression, `B̂ = U (UᵀU)⁻¹`, selects
/// features, and the selected features align the basis:
///
/// ```text
/// S = { j : ‖b̂_j‖ > β max_i ‖b̂_i‖ },      B_S = U_S (U_SᵀU_S)⁻¹,      all other rows zero
/// ```
///
/// With β = 0 all features are kept, with β = 1 none. Each feature is judged by itself. The minimum of the published
/// `‖BᵀU − I‖² + β‖B‖₂,₁` has at most K² nonzero rows, so redundant features compete and most of those that matter are
/// lost. Rows are not shrunk either: with enough selected features `BᵀU = I`, and the alignment does not change the
/// basis, whereas shrunken rows never reach `BᵀU = I`, α then pulls the basis towards the selected features in every
/// iteration, and clusters are lost.
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

/// `W (UᵀW + (β/2) I)⁻¹`, where `W = D⁻¹U`, so that `UᵀW` is symmetric and positive semidefinite.
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

/// `√(‖b‖² + η)`, the norm of a row of B in the objective and the step.
pub fn row_norm(row: &[f64]) -> f64 {
    (row.iter().map(|b| b * b).sum::<f64>() + ETA).sqrt()
}
