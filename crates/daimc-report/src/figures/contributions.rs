//! Mean contributions of the views to the clusters.

use daimc::{Contributions, Fit};
use rayon::prelude::*;
use serde::Serialize;

/// The mean contributions of the views to the clusters.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// Each view.
    pub views: Vec<ViewEvidence>,
}

/// The mean contributions of a view.
#[derive(Clone, Debug, Serialize)]
pub struct ViewEvidence {
    /// Its name.
    pub name: String,
    /// Over all instances present in the view.
    pub overall: Option<Contribution>,
    /// For each cluster; none if no instance of it is present in the view.
    pub by_cluster: Vec<Option<Contribution>>,
}

/// The mean contribution of a view to some instances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Contribution {
    /// The mean contribution, from −1 to 1.
    pub mean: f64,
    /// The share of the instances with a negative contribution, which is evidence against their cluster.
    pub against: f64,
}

/// Sums over instances: their number, their contributions, and how many of these are below zero.
type EvidenceSums = (f64, f64, f64);

fn add(a: EvidenceSums, b: EvidenceSums) -> EvidenceSums {
    (a.0 + b.0, a.1 + b.1, a.2 + b.2)
}

/// The number of instances per parallel task.
const BLOCK: usize = 1 << 14;

impl Evidence {
    pub(super) fn of(fit: &Fit, contributions: &Contributions) -> Self {
        let (views, clusters) = (fit.model.views.len(), fit.model.options.clusters);
        let of_block = |(block, labels): (usize, &[usize])| {
            let mut sums: Vec<EvidenceSums> = vec![(0.0, 0.0, 0.0); views * clusters];
            for (i, label) in labels.iter().enumerate() {
                for (view, share) in contributions.shares(block * BLOCK + i).enumerate() {
                    let Some(share) = share else { continue };
                    let own = (1.0, share, f64::from(u8::from(share < 0.0)));
                    let sum = &mut sums[view * clusters + label];
                    *sum = add(*sum, own);
                }
            }
            sums
        };
        // Summed in the order of the blocks, so that the result does not depend on the threads.
        let blocks: Vec<Vec<EvidenceSums>> = fit.labels.par_chunks(BLOCK).enumerate().map(of_block).collect();
        let mut sums: Vec<EvidenceSums> = vec![(0.0, 0.0, 0.0); views * clusters];
        for block in blocks {
            sums.iter_mut().zip(block).for_each(|(sum, own)| *sum = add(*sum, own));
        }
        let mean = |(count, sum, against): EvidenceSums| {
            (count > 0.0).then(|| Contribution { mean: sum / count, against: against / count })
        };
        let of = |(view, sums): (usize, &[EvidenceSums])| ViewEvidence {
            name: fit.model.views[view].name.clone(),
            overall: mean(sums.iter().copied().fold((0.0, 0.0, 0.0), add)),
            by_cluster: sums.iter().map(|own| mean(*own)).collect(),
        };
        Self { views: sums.chunks(clusters).enumerate().map(of).collect() }
    }
}
