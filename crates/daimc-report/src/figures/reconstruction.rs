//! How well the views are explained.

use daimc::{Fit, Residual, ViewModel};
use serde::Serialize;

/// The relative error `Σ‖x − Uv‖² / Σ‖x‖²` over the instances that are present.
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
    /// Over all instances; none if the view shows nothing but zeros.
    pub overall: Option<f64>,
    /// For each cluster; none where the view shows no instance of it, or nothing but zeros.
    pub by_cluster: Vec<Option<f64>>,
}

impl Reconstruction {
    /// `residuals` are those of each view and cluster.
    pub(super) fn of(fit: &Fit, residuals: &[Vec<Residual>]) -> Self {
        let of = |(view, residuals): (&ViewModel, &Vec<Residual>)| ViewError {
            name: view.name.clone(),
            overall: share(
                residuals.iter().map(|own| own.error).sum(),
                residuals.iter().map(|own| own.square).sum(),
            ),
            by_cluster: residuals.iter().map(|own| share(own.error, own.square)).collect(),
        };
        Self { views: fit.model.views.iter().zip(residuals).map(of).collect() }
    }
}

fn share(error: f64, square: f64) -> Option<f64> {
    (square > 0.0).then(|| error / square)
}
