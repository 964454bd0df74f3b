//! The objective and its parts.

use serde::{Deserialize, Serialize};

use super::alignment::row_norm;
use crate::Matrix;
use crate::linalg::transposed_product;

/// The objective J of Eq. 11 and its parts, each summed over the views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Objective {
    /// `J = loss + α (alignment + β sparsity)`; with `Penalty::Relative`
    /// `loss + Σ_v α_v alignment_v`.
    pub total: f64,
    /// `Σ_v Σ_j w_vj ‖x_vj − U_v v_j‖²`.
    pub loss: f64,
    /// `Σ_v ‖B_vᵀU_v − I‖²`.
    pub alignment: f64,
    /// `Σ_v ‖B_v‖_{2,1} = Σ_v Σ_j √(‖b_vj‖² + η)`.
    pub sparsity: f64,
}

impl Objective {
    /// Computes the total.
    pub fn new(loss: f64, alignment: f64, sparsity: f64, alpha: f64, beta: f64) -> Self {
        Self { total: loss + alpha * (alignment + beta * sparsity), loss, alignment, sparsity }
    }
}

/// The loss of one view, computed without residuals: `Σ_j w_j‖x_j‖² − 2⟨C, U⟩ + ⟨S, UᵀU⟩`.
#[must_use]
pub fn loss(sum_squares: f64, gram: &Matrix, cross: &Matrix, basis: &Matrix) -> f64 {
    let loss = sum_squares - 2.0 * cross.dot(basis) + gram.dot(&transposed_product(basis, basis));
    // Rounding can make it negative; NaN must stay NaN.
    if loss < 0.0 { 0.0 } else { loss }
}

/// `‖BᵀU − I‖²` of one view.
#[must_use]
pub fn misalignment(basis: &Matrix, alignment: &Matrix) -> f64 {
    let mut product = transposed_product(alignment, basis);
    for k in 0..product.rows() {
        product[(k, k)] -= 1.0;
    }
    product.sum_squares()
}

/// `‖B‖_{2,1}` of one view.
#[must_use]
pub fn sparsity(alignment: &Matrix) -> f64 {
    alignment.iter_rows().map(row_norm).sum()
}
