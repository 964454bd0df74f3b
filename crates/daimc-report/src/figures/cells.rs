//! Missing cells within rows that are present.

use daimc::Fit;
use serde::Serialize;

/// The number of features with most missing values that are named.
const NAMED: usize = 3;

/// The missing cells of one view.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ViewCells {
    /// The view.
    pub name: String,
    /// The number of missing cells.
    pub cells: usize,
    /// Their share of the cells of the instances present in the view.
    pub share: f64,
    /// The number of instances with missing cells.
    pub instances: usize,
    /// The number of features with missing cells.
    pub features: usize,
    /// The features with most missing cells, with the share of instances that lack them.
    pub most: Vec<(String, f64)>,
    /// The number of features without any value, which the fit ignored.
    pub without_value: usize,
}

/// The views with missing cells.
pub(super) fn of(fit: &Fit) -> Vec<ViewCells> {
    let views = fit.model.views.iter().zip(&fit.missing_cells).filter(|(_, own)| own.cells() > 0);
    let counts = views.map(|(view, own)| {
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
    counts.collect()
}
