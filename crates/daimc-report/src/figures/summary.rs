//! The key figures at the top of the page.

use daimc::{Fit, Outcome, Schema, Significance};
use rayon::prelude::*;
use serde::Serialize;

/// The key figures.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The number of instances.
    pub instances: usize,
    /// The number of views.
    pub views: usize,
    /// The total number of features of all views.
    pub features: usize,
    /// The number of clusters.
    pub clusters: usize,
    /// The share of the instances that each of several runs assigns to the cluster of the combined result; empty after one run.
    pub agreement: Vec<f64>,
    /// The number of iterations.
    pub iterations: usize,
    /// The reason for the end of the fit.
    pub outcome: Outcome,
    /// The objective J of the fit.
    pub objective: f64,
    /// The time of the fit in seconds, from data in memory to assessed clusters.
    pub seconds: f64,
    /// The mean confidence.
    pub confidence: f64,
    /// The reproducibility of the clusters from parts of the data.
    pub reproducibility: Option<f64>,
    /// Whether the clusters are clearer than chance.
    pub significance: Option<Significance>,
}

/// The number of instances per parallel task.
const BLOCK: usize = 1 << 14;

impl Summary {
    pub(super) fn of(schema: &Schema, fit: &Fit) -> Self {
        // Summed in the order of the blocks, so that the result does not depend on the threads.
        let blocks: Vec<f64> = fit.confidence.par_chunks(BLOCK).map(|block| block.iter().sum()).collect();
        Self {
            instances: schema.instances(),
            views: schema.len(),
            features: schema.views().map(|view| view.features()).sum(),
            clusters: fit.model.options.clusters,
            agreement: fit.runs.iter().map(|run| run.agreement).collect(),
            iterations: fit.iterations(),
            outcome: fit.outcome,
            objective: fit.objective.total,
            seconds: fit.timings.total(),
            reproducibility: fit.model.reproducibility,
            significance: fit.significance,
            confidence: blocks.into_iter().sum::<f64>() / fit.confidence.len().max(1) as f64,
        }
    }
}
