//! V in two dimensions.

use daimc::{Contributions, Fit, Schema};
use serde::Serialize;

use super::classes::{Classes, largest};
use super::latent::scaled_rows;
use super::pca::Plane;
use super::sample::stratified;

/// The principal plane of the scaled rows of V, and a sample of the instances in it, column by column.
#[derive(Clone, Debug, Serialize)]
pub struct Map {
    /// Where each instance lies.
    pub points: Vec<[f64; 2]>,
    /// The IDs.
    pub ids: Vec<String>,
    /// The clusters.
    pub clusters: Vec<usize>,
    /// How clear the clusters are.
    pub confidence: Vec<f64>,
    /// How many views show each instance.
    pub views: Vec<usize>,
    /// What each view contributes to the cluster of each instance, none where it does not show the instance; nothing if there
    /// are many views.
    pub contributions: Option<Vec<Vec<Option<f64>>>>,
    /// The true classes, if any are known: places in `class_names`, whose end stands for all other classes.
    pub classes: Option<Vec<Option<usize>>>,
    /// The names of the largest classes.
    pub class_names: Vec<String>,
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
/// Views of which is told what they contribute to single instances, at most.
const VIEWS: usize = 10;

impl Map {
    pub(super) fn of(
        schema: &Schema,
        fit: &Fit,
        classes: Option<&Classes>,
        contributions: &Contributions,
        members: &[Vec<usize>],
    ) -> Self {
        let clusters = members.len();
        let width = fit.latent.columns();
        let rows = (WORK / (width * width).max(1)).clamp(POINTS, ROWS);
        let plane_from = stratified(members, rows);
        let plane = Plane::of(&scaled_rows(fit, &plane_from));

        let drawn = stratified(members, POINTS);
        let points: Vec<[f64; 2]> =
            scaled_rows(fit, &drawn).iter_rows().map(|row| plane.project(row)).collect();
        let labels: Vec<usize> = drawn.iter().map(|&i| fit.labels[i]).collect();
        let named = classes.map(|classes| largest(&classes.sizes())).unwrap_or_default();
        Self {
            centres: (0..clusters).map(|cluster| middle(&points, &labels, cluster)).collect(),
            ids: drawn.iter().map(|&i| schema.ids().get(i)).collect(),
            confidence: drawn.iter().map(|&i| fit.confidence[i]).collect(),
            views: drawn.iter().map(|&i| schema.views().filter(|view| view.shows(i)).count()).collect(),
            contributions: (schema.len() <= VIEWS)
                .then(|| drawn.iter().map(|&i| contributions.shares(i).collect()).collect()),
            classes: classes
                .map(|classes| drawn.iter().map(|&i| Some(place(&named, classes.of[i]?))).collect()),
            class_names: classes
                .map(|classes| named.iter().map(|&class| classes.names[class].clone()).collect())
                .unwrap_or_default(),
            shares: plane.shares(),
            plane_from: plane_from.len(),
            clusters: labels,
            points,
        }
    }
}

/// The place of a class among those that are named, or their end.
fn place(named: &[usize], class: usize) -> usize {
    named.binary_search(&class).unwrap_or(named.len())
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
