//! Rows of V and their clusters.

use rayon::prelude::*;

use crate::options::Options;
use daimc_core::kmeans;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scaling::Scaling;
use daimc_core::scan::Scan;
use daimc_core::table::Table;
use daimc_core::{Matrix, Result, Stop, Views};
use daimc_graph::neighbours::Predictions;

/// The rows of V of some instances, and their clusters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Place {
    /// The rows of V.
    pub latent: Matrix,
    /// The clusters.
    pub labels: Vec<usize>,
    /// The confidence of the clusters, from 0 to 1; see [`Fit::confidence`](crate::Fit::confidence).
    pub confidence: Vec<f64>,
}

impl Place {
    /// Assigns rows of V to given centres.
    pub(crate) fn new(v: Matrix, scaling: &Scaling, centres: &Matrix, stop: &Stop) -> Result<Self> {
        let (labels, confidence) = {
            let rows = Views::of_matrix(&v)?;
            let rows = Scan::new(&rows, stop);
            let scaled_view = ScaledView::new(&rows, 0, scaling.clone())?;
            let found = kmeans::assign(&rows, 0, &scaled_view, centres)?;
            (found.labels.par_iter().map(|&label| label as usize).collect(), found.confidence)
        };
        Ok(Self { latent: v, labels, confidence })
    }

    /// Replaces clusters by those that neighbours predict. The margin is that between the two most likely clusters.
    pub(crate) fn follow(&mut self, predictions: &Predictions) {
        for (i, row) in predictions.posterior.iter_rows().enumerate() {
            let best = |without: Option<usize>| {
                let others = row.iter().enumerate().filter(|(k, _)| Some(*k) != without);
                others.fold((0, 0.0), |best, (k, share)| if *share > best.1 { (k, *share) } else { best })
            };
            let (first, share) = best(None);
            if share > 0.0 {
                self.labels[i] = first;
                self.confidence[i] = share - best(Some(first)).1;
            }
            if let Some(label) = predictions.same[i].filter(|label| *label != first) {
                self.labels[i] = label;
                self.confidence[i] = (row[label] - share).max(0.0);
            }
        }
    }

    /// Clusters rows.
    pub(crate) fn cluster(v: Matrix, options: &Options, stop: &Stop) -> Result<Self> {
        Self::cluster_by(v, stop, |rows| {
            let (scaling, scaled_view) = scaled(rows, options)?;
            let centres = kmeans::centres(rows, &scaled_view, &options.kmeans(None, stop))?;
            Ok((scaling, centres))
        })
    }

    /// Clusters rows of V, whose columns stand for clusters.
    pub(crate) fn by_columns(v: Matrix, options: &Options, stop: &Stop) -> Result<Self> {
        Self::cluster_by(v, stop, |rows| {
            cluster_columns(rows, options).map(|(scaling, _, centres)| (scaling, centres))
        })
    }

    fn cluster_by(
        v: Matrix,
        stop: &Stop,
        cluster: impl FnOnce(&Scan<'_>) -> Result<(Scaling, Matrix)>,
    ) -> Result<Self> {
        let (scaling, centres) = {
            let rows = Views::of_matrix(&v)?;
            cluster(&Scan::new(&rows, stop))?
        };
        Self::new(v, &scaling, &centres, stop)
    }
}

/// The scaling of rows of V before they are clustered.
pub(crate) fn scaled(rows: &impl Table, options: &Options) -> Result<(Scaling, ScaledView)> {
    let scaling = Scaling::fit(rows, 0, options.latent_scale)?;
    let scaled_view = ScaledView::new(rows, 0, scaling.clone())?;
    Ok((scaling, scaled_view))
}

/// Clusters rows of V whose columns stand for clusters. Returns their scaling, and the centres, one per column.
pub(crate) fn cluster_columns(rows: &impl Table, options: &Options) -> Result<(Scaling, ScaledView, Matrix)> {
    let (scaling, scaled_view) = scaled(rows, options)?;
    let first = first(rows, &scaled_view, options)?;
    let centres = kmeans::centres(rows, &scaled_view, &options.kmeans(first.as_ref(), rows.stop()))?;
    Ok((scaling, scaled_view, centres))
}

/// The centres of the clusters that the columns of V stand for: a start for k-means with more than [`kmeans::FEW`] clusters,
/// which reduces the number of other starts. An instance belongs to the column in which its entry is largest relative to the
/// average of the column.
pub(crate) fn first(
    rows: &impl Table,
    scaled_view: &ScaledView,
    options: &Options,
) -> Result<Option<Matrix>> {
    let clusters = options.clusters;
    if scaled_view.features() != clusters || clusters <= kmeans::FEW {
        return Ok(None);
    }
    kmeans::of_columns(rows, scaled_view).map(Some)
}
