//! The features that B selects.

use daimc::{Fit, ViewModel};
use serde::Serialize;

use crate::numbers::largest;

/// The most relevant features, by view and cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Features {
    /// The views listed: all of them, or the first.
    pub views: Vec<ViewFeatures>,
    /// The clusters for which weights are listed: all of them, or the largest.
    pub clusters: Vec<usize>,
    /// The maximum number of features per view and cluster.
    pub top: usize,
    /// The number of runs whose features were compared, if there were several.
    pub runs: Option<usize>,
}

/// The most relevant features of a view.
#[derive(Clone, Debug, Serialize)]
pub struct ViewFeatures {
    /// The view.
    pub name: String,
    /// The number of its features.
    pub features: usize,
    /// The names of the features in any of the lists below.
    pub names: Vec<String>,
    /// Their numbers in the view.
    pub mentioned: Vec<usize>,
    /// The most relevant for all clusters together, as (index in `names`, norm of the row of B).
    pub overall: Vec<(usize, f64)>,
    /// For each listed cluster, the features with the largest weights.
    pub by_cluster: Vec<Vec<Leader>>,
    /// The number of features that lead a cluster.
    pub leading: usize,
}

/// A feature with a large weight for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Leader {
    /// Its index in [`ViewFeatures::names`].
    pub place: usize,
    /// Its weight for the cluster.
    pub weight: f64,
    /// The share of the runs in which it leads the cluster; none if there was only one run.
    pub stability: Option<f64>,
}

/// Limits of the lists: features of a view and cluster, clusters, views, and entries in total.
const TOP: usize = 20;
const CLUSTERS: usize = 200;
const VIEWS: usize = 100;
const ENTRIES: usize = 40_000;

impl Features {
    pub(super) fn of(fit: &Fit, sizes: &[usize]) -> Self {
        let clusters = largest(sizes, CLUSTERS);
        let views = fit.model.views.len().min(VIEWS);
        let top = (ENTRIES / (views * (clusters.len() + 1))).clamp(2, TOP);
        let of = |view| ViewFeatures::of(fit, view, &clusters, top);
        Self {
            views: fit.model.views.iter().take(views).map(of).collect(),
            clusters,
            top,
            runs: fit.model.views.iter().all(|view| view.stability.is_some()).then_some(fit.runs.len()),
        }
    }
}

impl ViewFeatures {
    fn of(fit: &Fit, view: &ViewModel, clusters: &[usize], top: usize) -> Self {
        let mut mentioned = Vec::new();
        let overall = strongest(&view.relevance(), top, &mut mentioned);
        let mut of = |&cluster: &usize| {
            let found = strongest(&fit.model.weights(view, cluster), top, &mut mentioned);
            let leader = |&(place, weight): &(usize, f64)| Leader {
                place,
                weight,
                stability: view.stability.as_ref().map(|shares| shares[(mentioned[place], cluster)]),
            };
            found.iter().map(leader).collect()
        };
        let by_cluster = clusters.iter().map(&mut of).collect();
        let name = |feature: usize| match &view.feature_names {
            Some(names) => names[feature].clone(),
            None => format!("feature {feature}"),
        };
        Self {
            name: view.name.clone(),
            features: view.alignment.rows(),
            names: mentioned.iter().copied().map(name).collect(),
            mentioned,
            overall,
            by_cluster,
            leading: view.leading(),
        }
    }
}

/// The features with the largest absolute values, as indices into `mentioned`, to which new ones are appended.
fn strongest(values: &[f64], top: usize, mentioned: &mut Vec<usize>) -> Vec<(usize, f64)> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    let by_size = |a: &usize, b: &usize| values[*b].abs().total_cmp(&values[*a].abs()).then(a.cmp(b));
    if order.len() > top {
        order.select_nth_unstable_by(top, by_size);
        order.truncate(top);
    }
    order.sort_unstable_by(by_size);
    let mut index_of = |feature: usize| {
        mentioned.iter().position(|&known| known == feature).unwrap_or_else(|| {
            mentioned.push(feature);
            mentioned.len() - 1
        })
    };
    order.into_iter().map(|feature| (index_of(feature), values[feature])).collect()
}
