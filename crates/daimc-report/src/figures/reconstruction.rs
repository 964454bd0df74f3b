//! How well the views are explained.

use daimc::{Model, Result, Views};
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
    pub(super) fn of(views: &Views<'_>, model: &Model) -> Result<Self> {
        let count = model.options.clusters;
        let mut errors = Vec::with_capacity(model.views.len());
        for view in &model.views {
            let misfit = model.misfit(views, &view.name)?;
            let mut sums = vec![(0.0, 0.0); count];
            for (&label, (error, square)) in model.labels.iter().zip(misfit.error.iter().zip(&misfit.square))
            {
                sums[label].0 += error;
                sums[label].1 += square;
            }
            let total = sums.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            errors.push(ViewError {
                name: view.name.clone(),
                overall: share(total),
                by_cluster: sums.into_iter().map(share).collect(),
            });
        }
        Ok(Self { views: errors })
    }
}

fn share((error, square): (f64, f64)) -> Option<f64> {
    (square > 0.0).then(|| error / square)
}
