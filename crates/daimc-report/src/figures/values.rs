//! The values of the features that matter, of some instances: a heat map, and how each feature is distributed over the clusters.

use daimc::{Error, Fit, Result, Source, internal};
use serde::Serialize;

use super::features::{Features, ViewFeatures};
use super::sample::stratified;

/// Values of features that matter, of instances sorted by cluster.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Values {
    /// The instances, by number: cluster after cluster, and in a cluster those first whose cluster is surest.
    pub instances: Vec<usize>,
    /// Their clusters.
    pub clusters: Vec<usize>,
    /// Each view, as far as features are listed.
    pub views: Vec<ViewValues>,
}

/// The values of a view.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ViewValues {
    /// Whether `ln(1 + x)` is shown of each value x, as the fit sees it.
    pub log: bool,
    /// Which of the instances the view shows.
    pub shown: Vec<bool>,
    /// The features of the heat map: places in [`ViewFeatures::names`] with the cluster that they lead.
    pub rows: Vec<(usize, usize)>,
    /// Features whose values are there: those of the heat map and as many others as there is room for.
    pub features: Vec<FeatureValues>,
}

/// The values of a feature.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FeatureValues {
    /// Its place in [`ViewFeatures::names`].
    pub place: usize,
    /// The smallest and the largest value.
    pub range: (f64, f64),
    /// For each instance, where between these its value is, in steps from 0 to [`STEPS`]; [`ABSENT`] if there is none.
    pub codes: Vec<u16>,
}

/// Steps between the smallest and the largest value of a feature.
pub const STEPS: u16 = u16::MAX - 1;
/// What stands for a missing value.
pub const ABSENT: u16 = u16::MAX;

/// Instances that are shown, at most.
const COLUMNS: usize = 600;
/// Rows of the heat map of a view, at most, those of all views, and features that a cluster has among them.
const ROWS: usize = 60;
const ALL_ROWS: usize = 1200;
const LEADERS: usize = 5;
/// Values in all, at most; two bytes each.
const VALUES: usize = 360_000;

impl Values {
    pub(super) fn of(
        source: &dyn Source,
        fit: &Fit,
        features: &Features,
        members: &[Vec<usize>],
    ) -> Result<Self> {
        let rows: Vec<Vec<(usize, usize)>> = features.views.iter().map(|view| rows(view, features)).collect();
        let drawn: usize = rows.iter().map(Vec::len).sum();
        let mut instances = stratified(members, COLUMNS.min(VALUES / drawn.max(1)));
        instances.sort_by(|&a, &b| {
            let surer = fit.confidence[b].total_cmp(&fit.confidence[a]);
            fit.labels[a].cmp(&fit.labels[b]).then(surer).then(a.cmp(&b))
        });
        let mut room = VALUES / instances.len().max(1);
        room = room.saturating_sub(drawn);
        let mut views = Vec::new();
        for (number, (view, rows)) in features.views.iter().zip(rows).enumerate() {
            let mut places: Vec<usize> = rows.iter().map(|row| row.0).collect();
            // What is left is shared by the views that are still to come.
            let own = room / (features.views.len() - number);
            let others = (0..view.names.len()).filter(|place| !places.contains(place)).take(own);
            let others: Vec<usize> = others.collect();
            room -= others.len();
            places.extend(others);
            views.push(ViewValues::of(source, fit, view, &instances, rows, &places)?);
        }
        Ok(Self { clusters: instances.iter().map(|&i| fit.labels[i]).collect(), instances, views })
    }
}

/// The features that lead each cluster, each of them once.
fn rows(view: &ViewFeatures, features: &Features) -> Vec<(usize, usize)> {
    let most = (ALL_ROWS / features.views.len().max(1)).clamp(10, ROWS);
    let clusters = features.clusters.len().clamp(1, most);
    let each = (most / clusters).clamp(1, LEADERS);
    let mut rows: Vec<(usize, usize)> = Vec::new();
    for (&cluster, leaders) in features.clusters.iter().zip(&view.by_cluster).take(clusters) {
        let free = leaders.iter().filter(|leader| leader.weight > 0.0);
        let free = free.map(|leader| leader.place).filter(|place| rows.iter().all(|row| row.0 != *place));
        let own: Vec<usize> = free.take(each).collect();
        rows.extend(own.into_iter().map(|place| (place, cluster)));
    }
    rows
}

impl ViewValues {
    fn of(
        source: &dyn Source,
        fit: &Fit,
        view: &ViewFeatures,
        instances: &[usize],
        rows: Vec<(usize, usize)>,
        places: &[usize],
    ) -> Result<Self> {
        let known = fit.model.view(&view.name)?;
        let views = source.schema();
        let number = (0..views.len()).find(|&number| views.view_name(number) == view.name);
        let number =
            number.ok_or_else(|| Error::UnknownView { view: view.name.clone(), known: String::new() })?;
        let mut order: Vec<usize> = (0..instances.len()).collect();
        order.sort_unstable_by_key(|&at| instances[at]);
        let sorted: Vec<u32> = order.iter().map(|&at| instances[at] as u32).collect();
        let wanted: Vec<usize> = places.iter().map(|&place| view.mentioned[place]).collect();
        let values = internal::values(source, number, &sorted, &wanted)?;
        let log = known.preparation.log;
        let of = |(column, &place): (usize, &usize)| {
            let mut own = vec![f64::NAN; instances.len()];
            for (row, &at) in order.iter().enumerate() {
                let value = values[(row, column)];
                own[at] = if log { value.ln_1p() } else { value };
            }
            FeatureValues::of(place, &own)
        };
        Ok(Self {
            log,
            shown: instances.iter().map(|&i| views.view(number).shows(i)).collect(),
            rows,
            features: places.iter().enumerate().map(of).collect(),
        })
    }
}

impl FeatureValues {
    fn of(place: usize, values: &[f64]) -> Self {
        let there = values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = there
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let step = if high > low { f64::from(STEPS) / (high - low) } else { 0.0 };
        let code =
            |value: &f64| if value.is_finite() { ((value - low) * step).round() as u16 } else { ABSENT };
        let range = if low.is_finite() { (low, high) } else { (0.0, 0.0) };
        Self { place, range, codes: values.iter().map(code).collect() }
    }

    /// The value of an instance, if it has one.
    #[must_use]
    pub fn value(&self, instance: usize) -> Option<f64> {
        let code = self.codes[instance];
        let (low, high) = self.range;
        (code != ABSENT).then(|| low + (high - low) * f64::from(code) / f64::from(STEPS))
    }
}
