//! What the views say for the clusters.

use daimc::{Contributions, Model};
use serde::Serialize;

/// What each view contributes to the clusters, on average.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// Each view.
    pub views: Vec<ViewEvidence>,
}

/// What a view contributes.
#[derive(Clone, Debug, Serialize)]
pub struct ViewEvidence {
    /// Its name.
    pub name: String,
    /// Over all instances that the view shows.
    pub overall: Option<Contribution>,
    /// For each cluster; none where the view shows no instance of it.
    pub by_cluster: Vec<Option<Contribution>>,
}

/// What a view contributes to some instances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Contribution {
    /// The mean contribution, from −1 to 1.
    pub mean: f64,
    /// The share of the instances against whose cluster the view speaks.
    pub against: f64,
}

/// Sums over instances: their number, their contributions, and how many of these are below zero.
type Sums = (f64, f64, f64);

impl Evidence {
    pub(super) fn of(model: &Model, contributions: &Contributions) -> Self {
        let (views, clusters) = (model.views.len(), model.options.clusters);
        let mut sums: Vec<Sums> = vec![(0.0, 0.0, 0.0); views * clusters];
        for (instance, label) in model.labels.iter().enumerate() {
            for (view, share) in contributions.shares(instance).enumerate() {
                let Some(share) = share else { continue };
                let (count, sum, against) = &mut sums[view * clusters + label];
                *count += 1.0;
                *sum += share;
                *against += f64::from(u8::from(share < 0.0));
            }
        }
        let mean = |(count, sum, against): Sums| {
            (count > 0.0).then(|| Contribution { mean: sum / count, against: against / count })
        };
        let of = |(view, sums): (usize, &[Sums])| ViewEvidence {
            name: model.views[view].name.clone(),
            overall: mean(
                sums.iter().fold((0.0, 0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1, all.2 + own.2)),
            ),
            by_cluster: sums.iter().map(|own| mean(*own)).collect(),
        };
        Self { views: sums.chunks(clusters).enumerate().map(of).collect() }
    }
}
