//! Fits: the builder, and the driver that runs the stages.

mod chance;
mod compare;
mod device;
mod driver;
mod explore;
mod fitted;
pub(crate) mod held_out;
mod importance;
mod plan;
mod resampled;
mod run;
mod sample;
mod search;
mod tune;

use std::sync::Arc;
use std::time::Duration;

use crate::initialise::Initialisation;
use crate::options::{Neighbours, Options, Penalty, Preset, ViewWeights};
use daimc_core::accelerator::{Accelerator, Use};
use daimc_core::scaling::Scale;
use daimc_core::steps::latent::Solver;
use daimc_core::steps::objective::Objective;
use daimc_core::watch::{Stage, Watch};
use daimc_core::{Matrix, Stop};
pub use explore::Decision;
pub use fitted::{Fit, Run, Timings};

/// Clusters instances with several incomplete views.
///
/// ```
/// use daimc::{Daimc, Views, metrics, simulate, synthetic::Synthetic};
///
/// let data = Synthetic::new(500, 4).seed(3);
/// let present = simulate::missing(500, &[0.4, 0.4], 3)?;
/// let views = Views::new(vec![
///     data.dense::<f64>("first", 30)?.mask(&present[0])?,
///     data.dense::<f64>("second", 50)?.mask(&present[1])?,
/// ])?;
/// let fit = Daimc::new(4).seed(7).fit(&views)?;
/// assert!(metrics::accuracy(&data.truth(), &fit.labels)? > 0.9);
/// # Ok::<(), daimc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Daimc {
    options: Options,
    threads: Option<usize>,
    /// Bytes of memory for neighbourhoods.
    memory: Option<u64>,
    start: Option<Matrix>,
    /// The importance of each view, if known.
    importance: Option<Vec<f64>>,
    /// Whether scalings are compared; otherwise the first is taken.
    compares: bool,
    /// Whether the map is left for [`Fit::with_map`].
    map_later: bool,
    accelerator: Option<(Arc<dyn Accelerator>, Use)>,
    pub(crate) watch: Watch,
}

/// The progress after an iteration, as passed to a callback.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Iteration {
    /// The run, from 1; see [`Daimc::runs`].
    pub run: usize,
    /// The iteration, from 1.
    pub number: usize,
    /// The objective after the iteration.
    pub objective: Objective,
    /// The relative change of J; `None` in the first iteration.
    pub change: Option<f64>,
    /// Time since the start of the fit.
    pub elapsed: Duration,
}

impl From<Options> for Daimc {
    fn from(options: Options) -> Self {
        Self {
            options,
            threads: None,
            memory: None,
            start: None,
            importance: None,
            compares: true,
            map_later: false,
            accelerator: None,
            watch: Watch::default(),
        }
    }
}

impl Daimc {
    /// A fit with this many clusters and the default options.
    #[must_use]
    pub fn new(clusters: usize) -> Self {
        Options::new(clusters, Preset::Default).into()
    }

    /// Sets all options except the number of clusters and the seed to those of a preset.
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Self {
        let Options { clusters, latent, seed, .. } = self.options;
        self.options = Options { latent, seed, ..Options::new(clusters, preset) };
        self
    }

    /// Number of clusters. The number of columns of V follows it unless it was set to another value.
    #[must_use]
    pub fn clusters(mut self, clusters: usize) -> Self {
        if self.options.latent == self.options.clusters {
            self.options.latent = clusters;
        }
        self.options.clusters = clusters;
        self
    }

    /// Columns of V, if different from the number of clusters.
    #[must_use]
    pub fn latent(mut self, latent: usize) -> Self {
        self.options.latent = latent;
        self
    }

    /// Weight of the alignment of the bases (default 10).
    #[must_use]
    pub fn alpha(mut self, alpha: f64) -> Self {
        self.options.alpha = alpha;
        self
    }

    /// Weight of the sparsity of B (default 0.1).
    #[must_use]
    pub fn beta(mut self, beta: f64) -> Self {
        self.options.beta = beta;
        self
    }

    /// The units of α and β (default [`Penalty::Published`]). With [`Penalty::Relative`] set both: `alpha(1.0).beta(0.15)` is a
    /// good start; [`Penalty::Auto`] sets them itself.
    #[must_use]
    pub fn penalty(mut self, penalty: Penalty) -> Self {
        self.options.penalty = penalty;
        self
    }

    /// How views are scaled (default [`Scale::Auto`]).
    #[must_use]
    pub fn scale(mut self, scale: Scale) -> Self {
        self.options.scale = scale;
        self
    }

    /// How one view is scaled.
    #[must_use]
    pub fn scale_view(mut self, view: impl Into<String>, scale: Scale) -> Self {
        self.options.view_scales.insert(view.into(), scale);
        self
    }

    /// Uses only this many features of each view, those with the largest variance (of logarithms, if these are taken); the others
    /// are scaled by zero. By default all are used.
    #[must_use]
    pub fn top_features(mut self, most: usize) -> Self {
        self.options.top_features = Some(most);
        self
    }

    /// Whether views are scaled to equal weight (default yes).
    #[must_use]
    pub fn equal_weight(mut self, equal: bool) -> Self {
        self.options.equal_weight = equal;
        self
    }

    /// The weights of the views (default [`ViewWeights::Equal`]).
    #[must_use]
    pub fn view_weights(mut self, weights: ViewWeights) -> Self {
        self.options.view_weights = weights;
        self
    }

    /// The initialisation of V.
    #[must_use]
    pub fn initialisation(mut self, how: Initialisation) -> Self {
        self.options.initialisation = how;
        self
    }

    /// Starts from this V (instances × latent, not negative) instead of an initialisation.
    #[must_use]
    pub fn start(mut self, v: Matrix) -> Self {
        self.start = Some(v);
        self
    }

    /// The update rule of V.
    #[must_use]
    pub fn solver(mut self, solver: Solver) -> Self {
        self.options.solver = solver;
        self
    }

    /// The maximum number of passes of the V solver over a row in one iteration.
    #[must_use]
    pub fn passes(mut self, passes: usize) -> Self {
        self.options.passes = passes;
        self
    }

    /// The maximum number of iterations.
    #[must_use]
    pub fn max_iterations(mut self, iterations: usize) -> Self {
        self.options.max_iterations = iterations;
        self
    }

    /// The relative change of J below which the fit has converged.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.options.tolerance = tolerance;
        self
    }

    /// Starts of each k-means (default 10) with up to 20 clusters; with more clusters their number falls in proportion, so that
    /// the cost does not grow with both.
    #[must_use]
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.options.restarts = restarts;
        self
    }

    /// Runs from different starts (default 1) that are combined into one clustering: their rows of V are clustered together, and
    /// one more iteration starts from these clusters. The confidence of an instance then rises with the share of the runs that
    /// agree with its cluster, and [`ViewModel::stability`](crate::ViewModel::stability) is the share of the runs in which a feature leads a cluster.
    /// [Neighbourhoods](Daimc::neighbours) are applied to the combined result. `history` and `outcome` are those of the run with
    /// the highest agreement. Runs execute in parallel, one per thread; V of finished runs is kept in single precision until all
    /// are combined.
    #[must_use]
    pub fn runs(mut self, runs: usize) -> Self {
        self.options.runs = runs;
        self
    }

    /// Whether and how the fit uses the nearest neighbours in each view (default [`Neighbours::Auto`]); [`Fit::neighbours`]
    /// records the decision.
    #[must_use]
    pub fn neighbours(mut self, neighbours: Neighbours) -> Self {
        self.options.neighbours = neighbours;
        self
    }

    /// The processor time that neighbourhoods may take with [`Neighbours::Auto`], in seconds of one core; by default ten times
    /// that of the fit without them, and at least a minute. The time is estimated from the shape of the data
    /// ([`Effort`](crate::estimate::Effort)), so that the decision is the same on every machine.
    #[must_use]
    pub fn neighbours_budget(mut self, seconds: f64) -> Self {
        self.options.neighbours_budget = Some(seconds);
        self
    }

    /// Whether the final clusters are compared with those of permuted data ([`Fit::significance`]) and of parts of the data
    /// ([`Model::reproducibility`](crate::Model::reproducibility), which calibrates the confidence) (default yes, with [`Preset::Paper`] no).
    /// This takes 17 quick fits to a sample of a few hundred instances, most of the time of a fit to small data; the clusters do
    /// not depend on it.
    #[must_use]
    pub fn assess(mut self, assess: bool) -> Self {
        self.options.assess = assess;
        self
    }

    /// Whether to compute a map of the instances ([`Fit::map`], default no): a layout in two dimensions of the graph that the
    /// clusters were cut from or, without neighbourhoods, of the graph of the nearest rows of V. The clusters do not depend on
    /// it.
    #[must_use]
    pub fn map(mut self, map: bool) -> Self {
        self.options.map = map;
        self
    }

    /// Leaves a requested [map](Daimc::map) for [`Fit::with_map`]: until then the fit keeps the graph that the clusters were cut
    /// from. [`Daimc::fit_on`] makes it in any case.
    #[must_use]
    pub fn map_later(mut self) -> Self {
        self.map_later = true;
        self
    }

    /// Seed of every random draw (default 0).
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Threads to use (default: those of the current rayon pool). The result does not depend on their number.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// An accelerator that stores rows and V during the iterations and finds neighbours; [`Fit::device`] is the device that was
    /// used. Its sums differ from those of the CPU in the last bits. Other work, such as fits to samples, stays on the CPU, and
    /// so does [`Daimc::fit_on`].
    #[must_use]
    pub fn accelerator(mut self, machine: Arc<dyn Accelerator>, when: Use) -> Self {
        self.accelerator = Some((machine, when));
        self
    }

    /// Bytes of memory that neighbourhoods may take in this process, in addition to the data and the fit; in [`Daimc::fit_on`],
    /// including the rows that are gathered for them. With [`Neighbours::Auto`], uses that exceed it are left out, and
    /// [`Fit::neighbours`] says so. Unlimited by default.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// A switch that ends the fit at any point, also from another thread. The result is the state at that point, even within an
    /// iteration, with [`Outcome::Interrupted`](crate::Outcome::Interrupted). Before the end of the first iteration the fit returns
    /// [`Error::Interrupted`](daimc_core::Error::Interrupted).
    ///
    /// ```
    /// use daimc::{Daimc, Outcome, Stop, Views, synthetic::Synthetic};
    ///
    /// let data = Synthetic::new(300, 3);
    /// let views = Views::new(vec![data.dense::<f64>("a", 20)?])?;
    /// let stop = Stop::new();
    /// let own = stop.clone();
    /// // From another thread, a signal handler, or as here from a callback.
    /// let model = Daimc::new(3).stop(&stop).fit_with(&views, move |_| { own.set(); std::ops::ControlFlow::Continue(()) })?;
    /// assert_eq!((model.outcome, model.iterations()), (Outcome::Interrupted, 1));
    /// # Ok::<(), daimc::Error>(())
    /// ```
    #[must_use]
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.watch.stop = stop.clone();
        self
    }

    /// Calls `each` at the start of long work outside the iterations and, if its amount is known, during it, with the completed
    /// share from 0 to 1.
    #[must_use]
    pub fn stages(mut self, each: impl Fn(&Stage, f64) + Send + Sync + 'static) -> Self {
        self.watch.listener = Some(Arc::new(each));
        self
    }

    /// The current options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The same fit, with this importance of each view.
    pub(crate) fn weighed(mut self, importance: Vec<f64>) -> Self {
        self.importance = Some(importance);
        self
    }

    /// The same fit to part of the data: with another seed, without a given start, by V alone, and without progress reports.
    pub(crate) fn alone(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self.options.neighbours = Neighbours::Off;
        self.compares = false;
        self.start = None;
        self.watch.listener = None;
        self
    }
}
