//! The check of an updated model before it replaces the earlier one.
//!
//! Of most earlier instances only sums are left. Both models therefore place rows between those that the earlier model expects of
//! its clusters, `U m_k` for the mean row `m_k` of V.
//!
//! With rows 0.4 of the way to another cluster instead of 0.3, a batch of 1000 digits was refused by a fit to 600 others, which it
//! made better. Of batches with the features of every view in reverse order (planted data and Digit, fits to 256 and 600 instances
//! without neighbourhoods), all were refused after which less than 70 % of the instances of the fit would have kept their clusters.

use super::cells::{placed, scaled_rows};
use crate::model::Model;
use daimc_core::linalg::product;
use daimc_core::{Error, Matrix, Result, Stop, View, Views};

/// The share of the way to another cluster, and the number of other clusters: the nearest.
const SHARE: f64 = 0.3;
const NEAREST: usize = 3;

/// Fails if the updated model places a row of one of these clusters in another cluster, and the earlier model does not.
///
/// # Errors
/// [`Error::ClusterLost`].
pub(super) fn check(before: &Model, after: &Model, clusters: &[usize], stop: &Stop) -> Result<()> {
    let expected: Vec<Matrix> = before.views.iter().map(|view| product(&view.basis, &before.means)).collect();
    let distance = |a: usize, b: usize| -> f64 {
        let of_view = |rows: &Matrix| rows.iter_rows().map(|row| (row[a] - row[b]).powi(2)).sum::<f64>();
        expected.iter().map(of_view).sum()
    };
    let nearest = |&cluster: &usize| {
        let mut others: Vec<(f64, usize)> = clusters
            .iter()
            .filter(|other| **other != cluster)
            .map(|&other| (distance(cluster, other), other))
            .collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        others.into_iter().take(NEAREST).map(move |(_, other)| (cluster, other))
    };
    let pairs: Vec<(usize, usize)> = clusters.iter().flat_map(nearest).collect();
    if pairs.is_empty() {
        return Ok(());
    }
    let between = |(view, rows): (&crate::ViewModel, &Matrix)| {
        let row = |&(cluster, other): &(usize, usize)| {
            rows.iter_rows().map(move |row| row[cluster] + SHARE * (row[other] - row[cluster]))
        };
        View::dense(view.name.clone(), rows.rows(), pairs.iter().flat_map(row).collect::<Vec<f64>>())
    };
    let rows = Views::new(before.views.iter().zip(&expected).map(between).collect::<Result<Vec<_>>>()?)?;
    let sweep = scaled_rows(&rows, before.options.latent, stop)?;
    let places: Vec<usize> = (0..before.views.len()).collect();
    let labels = |model: &Model| placed(&sweep, model, &places, stop).map(|place| place.labels);
    let (old, new) = (labels(before)?, labels(after)?);
    let moved =
        old.iter().zip(&new).zip(&pairs).find(|((old, new), (cluster, _))| *old == cluster && old != new);
    moved.map_or(Ok(()), |((&cluster, &other), _)| Err(Error::ClusterLost { cluster, other }))
}
