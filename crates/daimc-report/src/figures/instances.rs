//! The instances that the page can look up by ID.

use std::collections::HashSet;

use daimc::{Contributions, Fit, Ids, Schema};
use serde::Serialize;

use super::classes::{Classes, largest};
use super::latent::scaled_rows;
use super::sample::{POINTS, stratified};
use crate::numbers::extent;

/// Columns of data about instances: all of them, or a sample in which every cluster is represented.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Instances {
    /// Their numbers in the data.
    pub numbers: Vec<usize>,
    /// Their IDs.
    pub ids: Vec<String>,
    /// Their clusters.
    pub clusters: Vec<usize>,
    /// The confidence in their clusters.
    pub confidence: Vec<f64>,
    /// The number of views in which each is present.
    pub views: Vec<usize>,
    /// The contribution of each view to the cluster of each instance; none if the instance is missing from the view.
    pub contributions: Vec<Vec<Option<f64>>>,
    /// The true classes, if any are known: indices into `class_names`, whose length stands for all other classes.
    pub classes: Option<Vec<Option<usize>>>,
    /// The names of the largest classes.
    pub class_names: Vec<String>,
    /// The scaled rows of V, quantised to 0–255 between the smallest and the largest entry, for the search for nearest
    /// neighbours; none if V has many columns.
    pub latent: Option<Vec<u8>>,
}

/// The maximum number of instances in the page, and their approximate maximum size in bytes.
const MOST: usize = 20_000;
const BYTES: usize = 900_000;
/// The maximum number of columns of V in the page.
const COLUMNS: usize = 64;
/// The length up to which an ID counts towards the size.
const LETTERS: usize = 100;

impl Instances {
    pub(super) fn of(
        schema: &Schema,
        fit: &Fit,
        classes: Option<&Classes>,
        contributions: &Contributions,
        members: &[Vec<usize>],
    ) -> Self {
        let columns = Some(fit.latent.columns()).filter(|columns| *columns <= COLUMNS);
        // A base64 digit encodes six bits; the other numbers of an instance take about ten characters.
        let each = (columns.unwrap_or(0) + schema.len()) * 4 / 3 + letters(schema.ids()) + 10;
        let mut known = stratified(members, (BYTES / each).clamp(POINTS, MOST));
        // The instances on the map are included.
        let drawn: HashSet<usize> = known.iter().copied().collect();
        known.extend(stratified(members, POINTS).into_iter().filter(|instance| !drawn.contains(instance)));
        let named = classes.map(|classes| largest(&classes.sizes())).unwrap_or_default();
        let index_of = |class: usize| named.binary_search(&class).unwrap_or(named.len());
        Self {
            ids: known.iter().map(|&i| schema.ids().get(i)).collect(),
            clusters: known.iter().map(|&i| fit.labels[i]).collect(),
            confidence: known.iter().map(|&i| fit.confidence[i]).collect(),
            views: known.iter().map(|&i| schema.views().filter(|view| view.shows(i)).count()).collect(),
            contributions: known.iter().map(|&i| contributions.shares(i).collect()).collect(),
            classes: classes.map(|classes| known.iter().map(|&i| Some(index_of(classes.of[i]?))).collect()),
            class_names: classes
                .map(|classes| named.iter().map(|&class| classes.names[class].clone()).collect())
                .unwrap_or_default(),
            latent: columns.map(|_| coded(scaled_rows(fit, &known).values())),
            numbers: known,
        }
    }

    /// The indices in these columns of instances of the data, without those that are not in the page.
    pub(crate) fn indices(&self, numbers: &[usize]) -> Vec<usize> {
        let mut indices: Vec<(usize, usize)> =
            self.numbers.iter().enumerate().map(|(index, &number)| (number, index)).collect();
        indices.sort_unstable();
        let find = |number: &usize| indices.binary_search_by_key(number, |own| own.0).ok();
        numbers.iter().filter_map(find).map(|at| indices[at].1).collect()
    }
}

/// The approximate length of an ID.
fn letters(ids: &Ids) -> usize {
    let Ids::Names(names) = ids else { return 8 };
    let some = names.iter().step_by((names.len() / 1000).max(1));
    some.clone().map(|name| name.len().min(LETTERS)).sum::<usize>() / some.count().max(1) + 3
}

fn coded(values: &[f64]) -> Vec<u8> {
    let (low, high) = extent(values.iter().copied());
    let step = if high > low { 255.0 / (high - low) } else { 0.0 };
    values.iter().map(|value| ((value - low) * step).round() as u8).collect()
}
