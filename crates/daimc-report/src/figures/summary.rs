//! The headline numbers.

use daimc::{Fit, Outcome, Schema, Significance};
use rayon::prelude::*;
use serde::Serialize;

/// The headline numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Instances.
    pub instances: usize,
    /// Views.
    pub views: usize,
    /// Features of all views.
    pub features: usize,
    /// Clusters that were asked for.
    pub clusters: usize,
    /// The share of the instances on which each of several runs agrees with all together; empty where there was one.
    pub agreement: Vec<f64>,
    /// Iterations.
    pub iterations: usize,
    /// Why the fit ended.
    pub outcome: Outcome,
    /// J of the fit.
    pub objective: f64,
    /// Seconds of the fit, from data in memory to clusters.
    pub seconds: f64,
    /// The mean of the instances' confidence.
    pub confidence: f64,
    /// How far parts of the data lead to the same clusters.
    pub reproducibility: Option<f64>,
    /// Whether the clusters are clearer than chance.
    pub significance: Option<Significance>,
}

/// Instances whose confidence is added up by one thread at a time.
const BLOCK: usize = 1 << 14;

impl Summary {
    pub(super) fn of(schema: &Schema, fit: &Fit) -> Self {
        let timings = fit.timings;
        // Added up in the order of the blocks, whichever thread was first.
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
            seconds: timings.prepare
                + timings.initialise
                + timings.iterate
                + timings.assign
                + timings.neighbours,
            reproducibility: fit.model.reproducibility,
            significance: fit.significance,
            confidence: blocks.into_iter().sum::<f64>() / fit.confidence.len().max(1) as f64,
        }
    }
}
