//! The values of the most relevant features for a sample of the instances: the heat map, and the distributions by cluster.

use daimc::{Error, Fit, Result, Source};
use daimc_core::scan;
use serde::Serialize;

use super::features::{Features, ViewFeatures};
use super::sample::stratified;
use crate::numbers::extent;

/// Values of the most relevant features, for instances sorted by cluster.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Values {
    /// The numbers of the instances, ordered by cluster and, within a cluster, by descending confidence.
    pub instances: Vec<usize>,
    /// Their clusters.
    pub clusters: Vec<usize>,
    /// The views whose features are listed.
    pub views: Vec<ViewValues>,
}

/// The values of a view.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ViewValues {
    /// Whether values are `ln(1 + x)`, as in the fit.
    pub log: bool,
    /// For each instance whether it is present in the view.
    pub shown: Vec<bool>,
    /// The features of the heat map: indices into [`ViewFeatures::names`] with the cluster that they lead.
    pub rows: Vec<(usize, usize)>,
    /// The features with values: those of the heat map, and others up to the maximum total.
    pub features: Vec<FeatureValues>,
}

/// The values of a feature.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FeatureValues {
    /// Its index in [`ViewFeatures::names`].
    pub place: usize,
    /// The smallest and the largest value.
    pub range: (f64, f64),
    /// The value of each instance, quantised to 0–[`STEPS`] over this range; [`ABSENT`] if it is missing.
    pub codes: Vec<u16>,
}

/// The code of the largest value of a feature.
pub const STEPS: u16 = u16::MAX - 1;
/// The code of a missing value.
pub const ABSENT: u16 = u16::MAX;

/// The maximum number of instances.
const COLUMNS: usize = 600;
/// The maximum numbers of rows of the heat map of a view, of all views, and of features of one cluster.
const ROWS: usize = 60;
const ALL_ROWS: usize = 1200;
const LEADERS: usize = 5;
/// The maximum total number of values, of two bytes each.
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
        let mut remaining = VALUES / instances.len().max(1);
        remaining = remaining.saturating_sub(drawn);
        let mut views = Vec::new();
        for (number, (view, rows)) in features.views.iter().zip(rows).enumerate() {
            let mut indices: Vec<usize> = rows.iter().map(|row| row.0).collect();
            // The remaining features are divided evenly among the remaining views.
            let own = remaining / (features.views.len() - number);
            let others = (0..view.names.len()).filter(|index| !indices.contains(index)).take(own);
            let others: Vec<usize> = others.collect();
            remaining -= others.len();
            indices.extend(others);
            views.push(ViewValues::of(source, fit, view, &instances, rows, &indices)?);
        }
        Ok(Self { clusters: instances.iter().map(|&i| fit.labels[i]).collect(), instances, views })
    }
}

/// The leading features of each cluster, without repetitions.
fn rows(view: &ViewFeatures, features: &Features) -> Vec<(usize, usize)> {
    let most = (ALL_ROWS / features.views.len().max(1)).clamp(10, ROWS);
    let clusters = features.clusters.len().clamp(1, most);
    let each = (most / clusters).clamp(1, LEADERS);
    let mut rows: Vec<(usize, usize)> = Vec::new();
    for (&cluster, leaders) in features.clusters.iter().zip(&view.by_cluster).take(clusters) {
        let free = leaders.iter().filter(|leader| leader.weight > 0.0);
        let free = free.map(|leader| leader.place).filter(|index| rows.iter().all(|row| row.0 != *index));
        let own: Vec<usize> = free.take(each).collect();
        rows.extend(own.into_iter().map(|index| (index, cluster)));
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
        indices: &[usize],
    ) -> Result<Self> {
        let known = fit.model.view(&view.name)?;
        let views = source.schema();
        let number = (0..views.len()).find(|&number| views.view_name(number) == view.name);
        let number =
            number.ok_or_else(|| Error::UnknownView { view: view.name.clone(), known: String::new() })?;
        let mut order: Vec<usize> = (0..instances.len()).collect();
        order.sort_unstable_by_key(|&at| instances[at]);
        let sorted: Vec<u32> = order.iter().map(|&at| instances[at] as u32).collect();
        let wanted: Vec<usize> = indices.iter().map(|&index| view.mentioned[index]).collect();
        let values = scan::values(source, number, &sorted, &wanted)?;
        let log = known.preparation.log;
        let of = |(column, &index): (usize, &usize)| {
            let mut own = vec![f64::NAN; instances.len()];
            for (row, &at) in order.iter().enumerate() {
                let value = values[(row, column)];
                own[at] = if log { value.ln_1p() } else { value };
            }
            FeatureValues::of(index, &own)
        };
        Ok(Self {
            log,
            shown: instances.iter().map(|&i| views.view(number).shows(i)).collect(),
            rows,
            features: indices.iter().enumerate().map(of).collect(),
        })
    }
}

impl FeatureValues {
    fn of(place: usize, values: &[f64]) -> Self {
        let (low, high) = extent(values.iter().copied().filter(|value| value.is_finite()));
        let step = if high > low { f64::from(STEPS) / (high - low) } else { 0.0 };
        let code =
            |value: &f64| if value.is_finite() { ((value - low) * step).round() as u16 } else { ABSENT };
        let range = if low.is_finite() { (low, high) } else { (0.0, 0.0) };
        Self { place, range, codes: values.iter().map(code).collect() }
    }

    /// The value of an instance, if it is present.
    #[must_use]
    pub fn value(&self, instance: usize) -> Option<f64> {
        let code = self.codes[instance];
        let (low, high) = self.range;
        (code != ABSENT).then(|| low + (high - low) * f64::from(code) / f64::from(STEPS))
    }
}
