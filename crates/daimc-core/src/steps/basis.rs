//! The U step.

use crate::linalg::{
    add_product, column_squares, lift, product, product_transposed, symmetric_eigen, transposed_product,
};
use crate::{Matrix, Result};

/// The initial bases of a descent.
#[derive(Clone, Debug)]
pub enum Bases {
    /// The best fit for the initial V.
    Fitted,
    /// The given bases.
    Given(Vec<Matrix>),
    /// The given bases, with V normalised first as after every iteration, so that B has the scale of the following
    /// bases. At another scale the alignment would dominate the first U step, which would discard the given bases.
    Normalised(Vec<Matrix>),
}

/// Solves Eq. 14 for the basis U of one view, given the alignment B (d × K) and the statistics of the latent
/// matrix, `S = Σ_j w_j v_j v_jᵀ` (K × K) and `C = Σ_j w_j x_j v_jᵀ` (d × K):
///
/// ```text
/// α B Bᵀ U + U S = C + α B
/// ```
///
/// With `S = Q Λ Qᵀ` and `α BᵀB = Z Γ Zᵀ`, both K × K, and `E_ik = 1 / (γ_i + λ_k)`, the solution for a right
/// side R is
///
/// ```text
/// U = [ R Q − α B Z ( (Zᵀ Bᵀ R Q) ∘ E ) ] Λ⁻¹ Qᵀ
/// ```
///
/// and for the part of it that is `α B` it becomes `U = α B Z ( (Zᵀ Q) ∘ E ) Qᵀ`, without cancellation however small λ
/// is. O(d K²); no d × d matrix. One step of iterative refinement restores the digits that cancel in the first form
/// when γ ≫ λ. Eigenvalues of S near zero (an empty cluster) are raised.
///
/// # Errors
/// When the eigenvalues of S or of the products of B cannot be computed.
pub fn update(gram: &Matrix, cross: &Matrix, alignment: &Matrix, alpha: f64) -> Result<Matrix> {
    let equation = Sylvester::new(gram, alignment, alpha)?;
    let mut basis = equation.solve(cross);
    let from_alignment = equation.solve_alignment();
    for (u, own) in basis.values_mut().iter_mut().zip(from_alignment.values()) {
        *u += own;
    }
    if alpha > 0.0 {
        let correction = equation.solve(&equation.residual(cross, &basis));
        for (u, correction) in basis.values_mut().iter_mut().zip(correction.values()) {
            *u += correction;
        }
    }
    Ok(basis)
}

/// Columns of B Z shorter than this share of the longest are rounding errors.
const ROUNDING: f64 = 1e-14;

struct Sylvester<'a> {
    alignment: &'a Matrix,
    alpha: f64,
    /// S with its small eigenvalues raised.
    gram: Matrix,
    lambda: Vec<f64>,
    q: Matrix,
    gamma: Vec<f64>,
    /// `B Z`.
    bz: Matrix,
    z: Matrix,
}

impl<'a> Sylvester<'a> {
    fn new(gram: &Matrix, alignment: &'a Matrix, alpha: f64) -> Result<Self> {
        let (_, z) = symmetric_eigen(&transposed_product(alignment, alignment))?;
        let mut bz = product(alignment, &z);
        // ‖B z‖² is more precise than the eigenvalue, and rounding errors of zero must be zero: they would be divided by λ.
        let mut squares = column_squares(&bz);
        let largest = squares.iter().copied().fold(0.0, f64::max);
        let real = |square: f64| f64::from(u8::from(square > ROUNDING * ROUNDING * largest));
        bz.scale_columns(&squares.iter().map(|&square| real(square)).collect::<Vec<_>>());
        squares.iter_mut().for_each(|square| *square *= alpha * real(*square));
        let gamma = squares;

        let (mut lambda, q) = symmetric_eigen(gram)?;
        lift(&mut lambda, alpha * largest);
        let mut scaled = q.clone();
        scaled.scale_columns(&lambda);
        Ok(Self { alignment, alpha, gram: product_transposed(&scaled, &q), lambda, q, gamma, bz, z })
    }

    /// `A ∘ E`.
    fn divide(&self, mut a: Matrix) -> Matrix {
        for (i, gamma) in self.gamma.iter().enumerate() {
            for (value, lambda) in a.row_mut(i).iter_mut().zip(&self.lambda) {
                *value /= gamma + lambda;
            }
        }
        a
    }

    /// The solution for the right-hand side `right`.
    fn solve(&self, right: &Matrix) -> Matrix {
        let mut rq = product(right, &self.q);
        if self.alpha > 0.0 {
            let inner = self.divide(transposed_product(&self.bz, &rq));
            add_product(&mut rq, -self.alpha, &self.bz, &inner);
        }
        let reciprocals: Vec<f64> = self.lambda.iter().map(|lambda| 1.0 / lambda).collect();
        rq.scale_columns(&reciprocals);
        product_transposed(&rq, &self.q)
    }

    /// The solution for the right-hand side `α B`.
    fn solve_alignment(&self) -> Matrix {
        let inner = product_transposed(&self.divide(transposed_product(&self.z, &self.q)), &self.q);
        let mut out = Matrix::zeros(self.alignment.rows(), self.alignment.columns());
        add_product(&mut out, self.alpha, &self.bz, &inner);
        out
    }

    /// `C + α B − α B Bᵀ U − U S`.
    fn residual(&self, cross: &Matrix, basis: &Matrix) -> Matrix {
        let mut inner = transposed_product(self.alignment, basis);
        for k in 0..inner.rows() {
            inner[(k, k)] -= 1.0;
        }
        let mut residual = cross.clone();
        add_product(&mut residual, -self.alpha, self.alignment, &inner);
        add_product(&mut residual, -1.0, basis, &self.gram);
        residual
    }
}
