//! The normalisation after the V step.

use crate::{Matrix, Totals};

/// Eq. 20–21: `V ← V Q⁻¹`, `U ← U Q`, `Q = diag(column sums of V)`. The loss does not change; the alignment term does,
/// because B is not rescaled.
///
/// Normalisation is lazy: it rescales the statistics, `S ← Q⁻¹SQ⁻¹` and `C ← CQ⁻¹`, and the bases, but not V. Returns
/// the factors, `1/q`, with which the columns of V must be multiplied when it is next read. A column of zeros keeps its
/// scale.
pub fn normalise(bases: &mut [Matrix], statistics: &mut Totals) -> Vec<f64> {
    let usable = |q: f64| if q > 0.0 && (1.0 / q).is_finite() { q } else { 1.0 };
    let q: Vec<f64> = statistics.column_sums.iter().map(|&sum| usable(sum)).collect();
    let reciprocals: Vec<f64> = q.iter().map(|q| 1.0 / q).collect();
    for basis in bases {
        basis.scale_columns(&q);
    }
    rescale(statistics, &reciprocals);
    reciprocals
}

/// The statistics of V after multiplication of its columns with these factors.
pub fn rescale(statistics: &mut Totals, factors: &[f64]) {
    for cross in &mut statistics.cross {
        cross.scale_columns(factors);
    }
    for gram in &mut statistics.gram {
        gram.scale_columns(factors);
        for (k, factor) in factors.iter().enumerate() {
            gram.row_mut(k).iter_mut().for_each(|value| *value *= factor);
        }
    }
    for (sum, factor) in statistics.column_sums.iter_mut().zip(factors) {
        *sum *= factor;
    }
}
