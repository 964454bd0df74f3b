//! The result of a fit: the model and the instances that it was fitted to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::explore::Decision;
use crate::descent::Outcome;
use crate::missingness::Missingness;
use crate::model::Model;
use crate::retained::Learnt;
use crate::significance::Significance;
use daimc_core::accelerator::DeviceUsed;
use daimc_core::prepared::MissingCells;
use daimc_core::source::Source;
use daimc_core::steps::objective::Objective;
use daimc_core::text::quoted;
use daimc_core::watch::Watch;
use daimc_core::{Error, Ids, Matrix, Result, Stop};
use daimc_graph::layout;
use daimc_graph::neighbours::Graph;

/// The result of a fit: the [`Model`] and the instances that it was fitted to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fit {
    /// The model.
    pub model: Model,
    /// The number of missing cells inside the rows of each view.
    pub missing_cells: Vec<MissingCells>,
    /// The instances.
    pub ids: Ids,
    /// The instances that the model had learnt from before, if it was [updated](crate::Online) and they had IDs.
    pub learnt: Learnt,
    /// V: a row for each instance.
    pub latent: Matrix,
    /// A map of the instances, if [requested](crate::Daimc::map): their positions in two dimensions, instances × 2. Distances
    /// between separate clusters have little meaning.
    pub map: Option<Matrix>,
    /// What [`Fit::with_map`] lays out. Files do not contain it.
    pub(crate) map_source: Option<Arc<MapSource>>,
    /// The cluster of each instance, numbered by size: 0 is the largest; of two equal ones, the one with the earlier first
    /// instance comes first.
    pub labels: Vec<usize>,
    /// The confidence in each instance's cluster, from 0 to 1: an estimate of the share of fits to resampled data in which the
    /// instance keeps its cluster. If [`Model::reproducibility`] is `None`, it is the margin of the cluster, 0 if two clusters
    /// are equally near.
    pub confidence: Vec<f64>,
    /// How neighbourhoods were used, and why.
    pub neighbours: Decision,
    /// The association of the clusters with missing views.
    pub missingness: Missingness,
    /// Whether the clusters are clearer than chance; `None` if there are too few instances for the comparison or the fit was
    /// stopped.
    pub significance: Option<Significance>,
    /// A summary of each run; empty for a single run.
    pub runs: Vec<Run>,
    /// The objective of this U, V and B.
    pub objective: Objective,
    /// The objective after each iteration until the fit converged. With the default preset, one more iteration
    /// follows, from the clusters found.
    pub history: Vec<Objective>,
    /// Why the fit ended.
    pub outcome: Outcome,
    /// The number of times that all rows were read.
    pub passes: usize,
    /// The duration of the stages.
    pub timings: Timings,
    /// The device that stored rows and V during the iterations.
    pub device: DeviceUsed,
}

impl Fit {
    /// Wraps a bare model: per-instance fields are empty.
    pub(crate) fn of_model(model: Model) -> Self {
        Self {
            missing_cells: vec![MissingCells::default(); model.views.len()],
            ids: Ids::Numbers(0),
            learnt: Learnt::default(),
            latent: Matrix::zeros(0, model.options.latent),
            map: None,
            map_source: None,
            labels: Vec::new(),
            confidence: Vec::new(),
            neighbours: Decision::without(Some("unknown: the file contains a model alone".into())),
            missingness: Missingness::default(),
            significance: None,
            runs: Vec::new(),
            objective: Objective::default(),
            history: Vec::new(),
            outcome: Outcome::Converged,
            passes: 0,
            timings: Timings::default(),
            device: DeviceUsed::default(),
            model,
        }
    }

    /// The same fit without its instances: their IDs, rows of V, clusters, confidence and map.
    #[must_use]
    pub fn without_instances(&self) -> Self {
        Self {
            ids: Ids::Numbers(0),
            latent: Matrix::zeros(0, self.model.options.latent),
            map: None,
            map_source: None,
            labels: Vec::new(),
            confidence: Vec::new(),
            ..self.clone()
        }
    }

    /// The number of iterations.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.history.len()
    }

    /// A map of the instances by V alone, for a fit without a [map](Fit::map): a layout of the graph of the nearest rows of V.
    ///
    /// # Errors
    /// When rows of V are not finite; those of a fit are.
    pub fn map_of_latent(&self) -> Result<Matrix> {
        layout::of_latent(&self.latent, self.model.options.seed, &Watch::default())
    }

    /// The same fit with its map, if that was left for [later](crate::Daimc::map_later); `None` if it was not.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the layout is stopped.
    pub fn with_map(&self, stop: &Stop) -> Result<Option<Self>> {
        let Some(source) = &self.map_source else { return Ok(None) };
        let map = source.lay_out(&self.latent, self.model.options.seed, &Watch::default().within(stop))?;
        Ok(Some(Self { map: Some(map), map_source: None, ..self.clone() }))
    }

    /// Fails unless these are the instances of the fit, in the same order.
    pub(crate) fn check_instances(&self, source: &dyn Source) -> Result<()> {
        let (expected, found) = (self.labels.len(), source.instances());
        if expected != found {
            return Err(Error::LengthMismatch { what: "instances".into(), expected, found });
        }
        if let (Ids::Names(own), Ids::Names(given)) = (&self.ids, source.schema().ids())
            && let Some(row) = own.iter().zip(given).position(|(own, given)| own != given)
        {
            return Err(Error::Unsuitable {
                what: "views",
                value: given[row].clone(),
                reason: format!(
                    "instance {row} of the fit is {}: pass the instances in the order of the fit",
                    quoted(&own[row])
                ),
            });
        }
        Ok(())
    }
}

/// What a map is laid out from.
#[derive(Debug, PartialEq)]
pub(crate) enum MapSource {
    /// The graph that the clusters were cut from.
    Graph(Graph),
    /// V alone.
    Latent,
}

impl MapSource {
    pub fn lay_out(&self, v: &Matrix, seed: u64, watch: &Watch) -> Result<Matrix> {
        match self {
            Self::Graph(graph) => layout::of_graph(graph, v, seed, watch),
            Self::Latent => layout::of_latent(v, seed, watch),
        }
    }
}

/// The summary of a run; see [`Daimc::runs`](crate::Daimc::runs).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// The seed of its start.
    pub seed: u64,
    /// The number of iterations.
    pub iterations: usize,
    /// The objective after the last iteration.
    pub objective: f64,
    /// The share of the instances whose cluster agrees with that of all runs combined.
    pub agreement: f64,
}

/// The duration of the stages, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Timings {
    /// Scaling and presence patterns.
    pub prepare: f64,
    /// The start.
    pub initialise: f64,
    /// The iterations.
    pub iterate: f64,
    /// Clusters from V, and the results of the instances.
    pub assign: f64,
    /// Neighbourhoods, and clusters from their graph.
    #[serde(default)]
    pub neighbours: f64,
    /// The map.
    #[serde(default)]
    pub map: f64,
    /// The assessment of the clusters: chance, reproducibility, missing views.
    #[serde(default)]
    pub assess: f64,
}

impl Timings {
    /// The duration of all stages.
    #[must_use]
    pub fn total(&self) -> f64 {
        let Self { prepare, initialise, iterate, assign, neighbours, map, assess } = self;
        prepare + initialise + iterate + assign + neighbours + map + assess
    }
}
