//! Cells that are missing inside rows.

use daimc::Fit;
use serde::Serialize;

/// Features that are named, of those that lack most values.
const NAMED: usize = 3;

/// What is missing inside the rows of one view.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ViewCells {
    /// The view.
    pub name: String,
    /// Cells that are missing.
    pub cells: usize,
    /// Their share of the cells of all instances that the view shows.
    pub share: f64,
    /// Instances that lack some.
    pub instances: usize,
    /// Features that some instance lacks.
    pub features: usize,
    /// The features that most instances lack, with the share of these.
    pub most: Vec<(String, f64)>,
    /// Features without any value, which took no part in the fit.
    pub without_value: usize,
}

/// Views whose rows lack cells.
pub(super) fn of(fit: &Fit) -> Vec<ViewCells> {
    let views = fit.model.views.iter().zip(&fit.missing_cells).filter(|(_, own)| own.cells() > 0);
    let told = views.map(|(view, own)| {
        let most = own.most(NAMED).into_iter();
        ViewCells {
            name: view.name.clone(),
            cells: own.cells(),
            share: own.share(),
            instances: own.instances,
            features: own.features(),
            most: most
                .map(|(feature, missing)| (view.feature_name(feature), missing as f64 / own.present as f64))
                .collect(),
            without_value: own.without_value().len(),
        }
    });
    told.collect()
}
