//! The rows of V, scaled as for clustering.

use daimc::{Fit, Matrix};

/// The scaled rows of V of some instances.
pub(super) fn scaled_rows(fit: &Fit, instances: &[usize]) -> Matrix {
    let mut rows = Matrix::zeros(instances.len(), fit.latent.columns());
    for (index, &instance) in instances.iter().enumerate() {
        let row = rows.row_mut(index);
        row.copy_from_slice(fit.latent.row(instance));
        scale(fit, row);
    }
    rows
}

fn scale(fit: &Fit, row: &mut [f64]) {
    let scaling = &fit.model.latent_scaling;
    for (value, shift) in row.iter_mut().zip(&scaling.shift) {
        *value -= shift;
    }
    for (value, factor) in row.iter_mut().zip(&scaling.factor) {
        *value *= factor;
    }
    let length = row.iter().map(|value| value * value).sum::<f64>().sqrt();
    // A row of zeros cannot be normalised.
    let unit = if scaling.unit_rows() && length > 0.0 { 1.0 / length } else { 1.0 };
    row.iter_mut().for_each(|value| *value *= unit * scaling.weight);
}
