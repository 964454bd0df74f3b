//! The instances that the page knows one by one.

use std::collections::HashSet;

use daimc::{Contributions, Fit, Ids, Schema};
use serde::Serialize;

use super::classes::{Classes, largest};
use super::latent::scaled_rows;
use super::map::POINTS;
use super::sample::stratified;

/// Instances by ID, column by column: all of them, or a sample in which every cluster has its share.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Instances {
    /// Their numbers in the data.
    pub numbers: Vec<usize>,
    /// Their IDs.
    pub ids: Vec<String>,
    /// Their clusters.
    pub clusters: Vec<usize>,
    /// How sure the clusters are.
    pub confidence: Vec<f64>,
    /// How many views show each.
    pub views: Vec<usize>,
    /// What each view contributes to the cluster of each instance; none where it does not show the instance.
    pub contributions: Vec<Vec<Option<f64>>>,
    /// The true classes, if any are known: places in `class_names`, whose end stands for all other classes.
    pub classes: Option<Vec<Option<usize>>>,
    /// The names of the largest classes.
    pub class_names: Vec<String>,
    /// The scaled rows of V, in steps from 0 to 255 between the smallest and the largest entry, to find who is near whom; none if
    /// there are very many columns.
    pub latent: Option<Vec<u8>>,
}

/// Instances that the page knows, at most, and what they may take there, in bytes.
const MOST: usize = 20_000;
const BYTES: usize = 900_000;
/// Columns of V that are told, at most.
const COLUMNS: usize = 64;
/// The longest ID that is told in full.
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
        // A digit of base64 holds six bits; numbers that are written out take about ten letters.
        let each = (columns.unwrap_or(0) + schema.len()) * 4 / 3 + letters(schema.ids()) + 10;
        let mut known = stratified(members, (BYTES / each).clamp(POINTS, MOST));
        // Whoever is drawn is known.
        let drawn: HashSet<usize> = known.iter().copied().collect();
        known.extend(stratified(members, POINTS).into_iter().filter(|instance| !drawn.contains(instance)));
        let named = classes.map(|classes| largest(&classes.sizes())).unwrap_or_default();
        let place = |class: usize| named.binary_search(&class).unwrap_or(named.len());
        Self {
            ids: known.iter().map(|&i| schema.ids().get(i)).collect(),
            clusters: known.iter().map(|&i| fit.labels[i]).collect(),
            confidence: known.iter().map(|&i| fit.confidence[i]).collect(),
            views: known.iter().map(|&i| schema.views().filter(|view| view.shows(i)).count()).collect(),
            contributions: known.iter().map(|&i| contributions.shares(i).collect()).collect(),
            classes: classes.map(|classes| known.iter().map(|&i| Some(place(classes.of[i]?))).collect()),
            class_names: classes
                .map(|classes| named.iter().map(|&class| classes.names[class].clone()).collect())
                .unwrap_or_default(),
            latent: columns.map(|_| coded(scaled_rows(fit, &known).values())),
            numbers: known,
        }
    }

    /// The places of some instances of the data that are among those known.
    pub(crate) fn places(&self, numbers: &[usize]) -> Vec<usize> {
        let mut places: Vec<(usize, usize)> =
            self.numbers.iter().enumerate().map(|(place, &number)| (number, place)).collect();
        places.sort_unstable();
        let place = |number: &usize| places.binary_search_by_key(number, |own| own.0).ok();
        numbers.iter().filter_map(place).map(|at| places[at].1).collect()
    }
}

/// How many letters an ID has, about.
fn letters(ids: &Ids) -> usize {
    let Ids::Names(names) = ids else { return 8 };
    let some = names.iter().step_by((names.len() / 1000).max(1));
    some.clone().map(|name| name.len().min(LETTERS)).sum::<usize>() / some.count().max(1) + 3
}

fn coded(values: &[f64]) -> Vec<u8> {
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    let step = if high > low { 255.0 / (high - low) } else { 0.0 };
    values.iter().map(|value| ((value - low) * step).round() as u8).collect()
}
