//! The map of the instances.

use std::borrow::Cow;

use daimc::{Fit, Matrix, Neighbours, Result};
use serde::Serialize;

use super::instances::Instances;
use super::latent::scaled_rows;
use super::pca::Plane;
use super::sample::{POINTS, stratified};

/// A sample of the instances, by the layout of the kNN graph and by PCA of the scaled rows of V.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Map {
    /// The instances drawn, as indices into the columns of [`Instances`].
    pub instances: Vec<usize>,
    /// Their clusters.
    pub clusters: Vec<usize>,
    /// The layout of the graph.
    pub layout: Projection,
    /// Whether the graph is that of neighbours in the views; otherwise it is the kNN graph of the rows of V.
    pub of_views: bool,
    /// The principal plane.
    pub plane: Projection,
    /// The share of the variance along each axis of the plane.
    pub shares: [f64; 2],
    /// The number of instances from which the plane was computed.
    pub plane_from: usize,
}

/// Coordinates of instances and clusters in two dimensions.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Projection {
    /// The coordinates of each instance.
    pub points: Vec<[f64; 2]>,
    /// The centre of each cluster; none if it is empty.
    pub centres: Vec<Option<[f64; 2]>>,
}

/// The maximum number of rows for the plane, and the maximum work for their covariance.
const ROWS: usize = 20_000;
const WORK: usize = 4_000_000_000;

impl Map {
    /// Computes the map. `members` are the instances of each cluster; `instances` contains those that are drawn.
    pub(super) fn of(fit: &Fit, members: &[Vec<usize>], instances: &Instances) -> Result<Self> {
        let clusters = members.len();
        let width = fit.latent.columns();
        let rows = (WORK / (width * width).max(1)).clamp(POINTS, ROWS);
        let plane_from = stratified(members, rows);
        let plane = Plane::of(&scaled_rows(fit, &plane_from));

        let drawn = stratified(members, POINTS);
        let labels: Vec<usize> = drawn.iter().map(|&i| fit.labels[i]).collect();
        let map: Cow<'_, Matrix> = match &fit.map {
            Some(map) => Cow::Borrowed(map),
            None => Cow::Owned(fit.map_of_latent()?),
        };
        let laid_out = drawn.iter().map(|&i| [map[(i, 0)], map[(i, 1)]]);
        let in_plane = scaled_rows(fit, &drawn);
        let in_plane = in_plane.iter_rows().map(|row| plane.project(row));
        Ok(Self {
            instances: instances.indices(&drawn),
            layout: Projection::of(laid_out.collect(), &labels, clusters),
            of_views: fit.map.is_some() && fit.neighbours.used != Neighbours::Off,
            plane: Projection::of(in_plane.collect(), &labels, clusters),
            shares: plane.shares(),
            plane_from: plane_from.len(),
            clusters: labels,
        })
    }
}

impl Projection {
    fn of(points: Vec<[f64; 2]>, labels: &[usize], clusters: usize) -> Self {
        let centres = (0..clusters).map(|cluster| middle(&points, labels, cluster)).collect();
        Self { points, centres }
    }
}

/// The median of a cluster along each axis, which is robust to outliers.
fn middle(points: &[[f64; 2]], labels: &[usize], cluster: usize) -> Option<[f64; 2]> {
    let median = |axis: usize| {
        let members = points.iter().zip(labels).filter(|(_, label)| **label == cluster);
        let mut values: Vec<f64> = members.map(|(point, _)| point[axis]).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    Some([median(0)?, median(1)?])
}
