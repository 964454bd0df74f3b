//! Reconstruction errors of the views.

use daimc::{Fit, Residual, ViewModel};
use serde::Serialize;

/// The relative error `Σ‖x − Uv‖² / Σ‖x‖²` over the instances present in a view, and the variance explained.
#[derive(Clone, Debug, Serialize)]
pub struct Reconstruction {
    /// Each view.
    pub views: Vec<ViewError>,
}

/// The errors of a view.
#[derive(Clone, Debug, Serialize)]
pub struct ViewError {
    /// Its name.
    pub name: String,
    /// Over all instances; none if all values of the view are zero.
    pub overall: Option<f64>,
    /// For each cluster; none if no instance of it is present in the view, or all their values are zero.
    pub by_cluster: Vec<Option<f64>>,
    /// The share of the variance explained: `1 − Σ‖x − Uv‖² / Σ‖x − x̄‖²`, where x̄ is the mean row. None if nothing varies.
    pub explained: Option<f64>,
}

impl Reconstruction {
    /// `residuals` are those of each view and cluster, `variations` the sums of squares about the means of each view.
    pub(super) fn of(fit: &Fit, residuals: &[Vec<Residual>], variations: &[f64]) -> Self {
        let of = |((view, residuals), variation): ((&ViewModel, &Vec<Residual>), &f64)| ViewError {
            name: view.name.clone(),
            explained: share(residuals.iter().map(|own| own.error).sum(), *variation)
                .map(|error| 1.0 - error),
            overall: share(
                residuals.iter().map(|own| own.error).sum(),
                residuals.iter().map(|own| own.square).sum(),
            ),
            by_cluster: residuals.iter().map(|own| share(own.error, own.square)).collect(),
        };
        Self { views: fit.model.views.iter().zip(residuals).zip(variations).map(of).collect() }
    }
}

fn share(error: f64, square: f64) -> Option<f64> {
    (square > 0.0).then(|| error / square)
}
