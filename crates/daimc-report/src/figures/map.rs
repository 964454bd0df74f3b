//! V in two dimensions.

use daimc::Fit;
use serde::Serialize;

use super::instances::Instances;
use super::latent::scaled_rows;
use super::pca::Plane;
use super::sample::stratified;

/// The principal plane of the scaled rows of V, and a sample of the instances in it.
#[derive(Clone, Debug, Serialize)]
pub struct Map {
    /// Where each instance lies.
    pub points: Vec<[f64; 2]>,
    /// Who it is: places in [`Instances`].
    pub instances: Vec<usize>,
    /// The clusters.
    pub clusters: Vec<usize>,
    /// The share of the variance along each axis.
    pub shares: [f64; 2],
    /// The middle of each cluster in the plane; none if it is empty.
    pub centres: Vec<Option<[f64; 2]>>,
    /// Instances from which the plane was worked out.
    pub plane_from: usize,
}

/// Points that are drawn, at most.
pub const POINTS: usize = 4000;
/// Rows that decide the plane, and the work that may be spent on their covariance.
const ROWS: usize = 20_000;
const WORK: usize = 4_000_000_000;

impl Map {
    /// `members` are the instances of each cluster; those that are drawn are among `instances`.
    pub(super) fn of(fit: &Fit, members: &[Vec<usize>], instances: &Instances) -> Self {
        let clusters = members.len();
        let width = fit.latent.columns();
        let rows = (WORK / (width * width).max(1)).clamp(POINTS, ROWS);
        let plane_from = stratified(members, rows);
        let plane = Plane::of(&scaled_rows(fit, &plane_from));

        let drawn = stratified(members, POINTS);
        let points: Vec<[f64; 2]> =
            scaled_rows(fit, &drawn).iter_rows().map(|row| plane.project(row)).collect();
        let labels: Vec<usize> = drawn.iter().map(|&i| fit.labels[i]).collect();
        Self {
            centres: (0..clusters).map(|cluster| middle(&points, &labels, cluster)).collect(),
            instances: instances.places(&drawn),
            shares: plane.shares(),
            plane_from: plane_from.len(),
            clusters: labels,
            points,
        }
    }
}

/// The median of a cluster along each axis: a far-off member does not draw the name away.
fn middle(points: &[[f64; 2]], labels: &[usize], cluster: usize) -> Option<[f64; 2]> {
    let median = |axis: usize| {
        let members = points.iter().zip(labels).filter(|(_, label)| **label == cluster);
        let mut values: Vec<f64> = members.map(|(point, _)| point[axis]).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    Some([median(0)?, median(1)?])
}
