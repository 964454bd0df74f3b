//! The options of a fit, and their validation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::initialise::Initialisation;
use daimc_core::choice;
use daimc_core::kmeans::KMeans;
use daimc_core::scaling::Scale;
use daimc_core::steps::latent::Solver;
use daimc_core::text::{list, plain};
use daimc_core::{Error, Matrix, Result, Stop};
use daimc_graph::neighbours;

/// A set of options under one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Preset {
    /// The best settings without labels: automatic scaling, matched start, coordinate descent.
    #[default]
    Default,
    /// The published algorithm: rows of unit length, unmatched start, multiplicative updates (Eq. 19 ten times per
    /// iteration; the paper gives no number), k-means on V as it is. The clusters are not [assessed](crate::Daimc::assess).
    Paper,
}

choice!(Preset, "preset": Default = "default", Paper = "paper");

/// The units of α and β.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Penalty {
    /// As published: α and β are factors in J, whose terms differ by orders of magnitude.
    #[default]
    Published,
    /// Relative to the data. With α = 1, a basis without any alignment costs as much as a view without any reconstruction (`α_v =
    /// α Σ‖x‖² / K`). β, from 0 to 1, is the share of the largest row of B below which a feature is dropped: its row of B is
    /// zero. α matters if the remaining features cannot align the basis. See
    /// [`steps::alignment::select`](daimc_core::steps::alignment::select).
    Relative,
    /// [`Relative`](Self::Relative), with the α and β that predict hidden rows best.
    Auto,
}

choice!(Penalty, "penalty": Published = "published", Relative = "relative", Auto = "auto");

/// The weights of the views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ViewWeights {
    /// Equal weights.
    #[default]
    Equal,
    /// By how well the other views predict hidden rows of the view: a view that they cannot predict has almost no weight.
    Learned,
}

choice!(ViewWeights, "view_weights": Equal = "equal", Learned = "learned");

/// Whether and how a fit uses the nearest neighbours of instances in each view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Neighbours {
    /// Neighbours are not used.
    #[default]
    Off,
    /// The clusters are cut from the fused graph of the views, its links weighted by V and by the predictions of the views.
    Refine,
    /// Each view is replaced by the leading eigenvectors of its own graph, and DAIMC is fitted to those.
    Embed,
    /// A vote of three clusterings: V alone, [`Refine`](Self::Refine), and the same with links weighted by the V of both the
    /// views and their eigenvectors. The weight of each is how well neighbours in single views predict its clusters. Clusterings
    /// that would exceed the [budget](crate::Daimc::neighbours_budget) are left out; the result is V alone if the columns of V
    /// are not the clusters.
    Auto,
}

choice!(Neighbours, "neighbours": Off = "off", Refine = "refine", Embed = "embed", Auto = "auto");

impl Neighbours {
    /// The number of instances up to which every pair is compared. Beyond, neighbours are found by descent; [`Decision::recall`]
    /// is the share that was found.
    ///
    /// [`Decision::recall`]: crate::Decision::recall
    pub const EXACT: usize = neighbours::EXACT;

    /// The approximate number of pairs compared in a view that shows this many instances. The cost of a search is this number
    /// times the number of features.
    #[must_use]
    pub fn pairs(instances: usize) -> f64 {
        neighbours::pairs(instances)
    }
}

/// Everything that determines a fit, apart from the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate option")]
pub struct Options {
    /// Number of clusters.
    pub clusters: usize,
    /// Columns of V; by default the number of clusters.
    pub latent: usize,
    /// The preset that the other options started from.
    pub preset: Preset,
    /// The units of α and β.
    #[serde(default)]
    pub penalty: Penalty,
    /// Weight of the alignment of the bases, α ≥ 0.
    pub alpha: f64,
    /// Weight of the sparsity of B, β ≥ 0.
    pub beta: f64,
    /// Scaling of the views that `view_scales` does not name.
    pub scale: Scale,
    /// Scaling of single views, by name.
    pub view_scales: BTreeMap<String, Scale>,
    /// The number of features of each view that are used, those with the largest variance; `None`: all.
    #[serde(default)]
    pub top_features: Option<usize>,
    /// Whether views are scaled to equal weight.
    pub equal_weight: bool,
    /// The weights of the views after scaling.
    #[serde(default)]
    pub view_weights: ViewWeights,
    /// The initialisation of V.
    pub initialisation: Initialisation,
    /// The update rule of V.
    pub solver: Solver,
    /// The maximum number of passes of the V solver over a row in one iteration.
    pub passes: usize,
    /// The maximum number of iterations.
    pub max_iterations: usize,
    /// The relative change of J below which the fit has converged.
    pub tolerance: f64,
    /// Starts of each k-means with up to 20 clusters; with more clusters their number falls in proportion.
    pub restarts: usize,
    /// Scaling of V before its rows are clustered. The preset sets it.
    pub(crate) latent_scale: Scale,
    /// Whether V is made optimal for the bases after the iterations, as [`Model::transform`] does for new instances. The preset
    /// sets it.
    ///
    /// [`Model::transform`]: crate::Model::transform
    #[serde(rename = "settle")]
    pub(crate) solve_to_optimality: bool,
    /// Whether one more iteration starts from the clusters found: bases start as the means of the clusters in each view. Only if
    /// the number of clusters is the number of columns of V. The preset sets it.
    pub(crate) consolidate: bool,
    /// Runs from different starts that are combined into one clustering.
    #[serde(default = "one")]
    pub runs: usize,
    /// Whether and how neighbourhoods are used, if the number of clusters is the number of columns of V.
    #[serde(default)]
    pub neighbours: Neighbours,
    /// The processor time that neighbourhoods may take with [`Neighbours::Auto`], in seconds; `None`: ten times that of the fit
    /// without them, at least a minute. See [`Effort`](crate::estimate::Effort).
    #[serde(default)]
    pub neighbours_budget: Option<f64>,
    /// Whether clusters are compared with those of permuted and of resampled data.
    #[serde(default = "yes")]
    pub assess: bool,
    /// Whether a map of the instances is computed.
    #[serde(default)]
    pub map: bool,
    /// Seed of every random draw.
    pub seed: u64,
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

/// Larger weights leave no digits for other terms.
const LARGEST: f64 = 1e30;

impl Options {
    /// The options of k-means; the first start is from these centres, if any.
    pub(crate) fn kmeans<'a>(&self, first: Option<&'a Matrix>, stop: &'a Stop) -> KMeans<'a> {
        KMeans { clusters: self.clusters, restarts: self.restarts, seed: self.seed, first, stop }
    }

    pub(crate) fn new(clusters: usize, preset: Preset) -> Self {
        let paper = preset == Preset::Paper;
        Self {
            clusters,
            latent: clusters,
            preset,
            penalty: Penalty::Published,
            alpha: 10.0,
            beta: 0.1,
            scale: if paper { Scale::Unit } else { Scale::Auto },
            view_scales: BTreeMap::new(),
            top_features: None,
            equal_weight: !paper,
            view_weights: ViewWeights::Equal,
            initialisation: if paper { Initialisation::Paper } else { Initialisation::Aligned },
            solver: if paper { Solver::Multiplicative } else { Solver::Coordinate },
            passes: if paper { 10 } else { 2 },
            max_iterations: if paper { 30 } else { 100 },
            tolerance: 1e-4,
            restarts: 10,
            latent_scale: if paper { Scale::None } else { Scale::Unit },
            solve_to_optimality: !paper,
            consolidate: !paper,
            runs: 1,
            neighbours: if paper { Neighbours::Off } else { Neighbours::Auto },
            neighbours_budget: None,
            assess: !paper,
            map: false,
            seed: 0,
        }
    }

    /// Fails if an option is invalid for data with these instances and views.
    pub(crate) fn check<'a>(
        &self,
        instances: usize,
        mut views: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<()> {
        let at_most = format!("must be at least 1 and at most the number of instances, {instances}");
        for (option, value) in [("clusters", self.clusters), ("latent", self.latent)] {
            if value < 1 {
                return Err(Error::Option { option, value: "0".into(), reason: at_most });
            }
            if value > instances {
                let value = value.to_string();
                return Err(Error::Unsuitable { what: option, value, reason: at_most });
            }
        }
        self.check_alone()?;
        for name in self.view_scales.keys() {
            if !views.clone().any(|view| view == name) {
                let known = list(views.by_ref().map(plain));
                return Err(Error::UnknownView { view: name.clone(), known });
            }
        }
        Ok(())
    }

    /// Fails if an option is invalid for any data.
    pub(crate) fn check_alone(&self) -> Result<()> {
        let bad = |option, value: String, reason: String| Err(Error::Option { option, value, reason });
        for (option, value) in [("clusters", self.clusters), ("latent", self.latent)] {
            if value < 1 {
                return bad(option, "0".into(), "must be at least 1".into());
            }
        }
        for (option, value) in [("alpha", self.alpha), ("beta", self.beta), ("tolerance", self.tolerance)] {
            if !(0.0..=LARGEST).contains(&value) {
                return bad(
                    option,
                    value.to_string(),
                    format!("must be a finite number from 0 to {LARGEST:e}"),
                );
            }
        }
        if self.penalty == Penalty::Relative && self.beta > 1.0 {
            let reason = "a relative beta is a share: from 0 (keep all features) to 1 (keep none)";
            return bad("beta", self.beta.to_string(), reason.into());
        }
        let counts =
            [("passes", self.passes), ("max_iterations", self.max_iterations), ("restarts", self.restarts)];
        for (option, value) in
            counts.into_iter().chain([("runs", self.runs), ("top_features", self.top_features.unwrap_or(1))])
        {
            if value == 0 {
                return bad(option, "0".into(), "must be at least 1".into());
            }
        }
        if let Some(budget) = self.neighbours_budget.filter(|budget| !(*budget >= 0.0 && budget.is_finite()))
        {
            return bad(
                "neighbours_budget",
                budget.to_string(),
                "must be a number of seconds, zero or more".into(),
            );
        }
        if self.runs > 1 && self.latent != self.clusters {
            let reason = "must be 1 unless the latent dimension is the number of clusters";
            return bad("runs", self.runs.to_string(), reason.into());
        }
        if matches!(self.neighbours, Neighbours::Refine | Neighbours::Embed) && self.latent != self.clusters {
            let reason = "must be `off` unless the latent dimension is the number of clusters";
            return bad("neighbours", self.neighbours.to_string(), reason.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};
    use std::str::FromStr;

    use super::*;

    /// Display, serialisation and parsing use the same name.
    fn check<T>(all: impl IntoIterator<Item = T>)
    where
        T: Copy + Debug + PartialEq + Display + Serialize + FromStr<Err = Error>,
    {
        for one in all {
            assert_eq!(one.to_string().parse::<T>().unwrap(), one);
            assert_eq!(serde_json::to_value(one).unwrap(), one.to_string());
        }
    }

    #[test]
    fn every_name_leads_back_to_its_value_and_is_the_one_in_files() {
        check(Preset::ALL);
        check(Penalty::ALL);
        check(ViewWeights::ALL);
        check(Neighbours::ALL);
        check(Initialisation::ALL);
    }
}
