//! The fit: options and rows in, clusters and a model out.

mod bring;
mod chance;
mod compare;
mod device;
mod elsewhere;
mod explore;
mod fitted;
pub(crate) mod held_out;
mod importance;
mod plan;
mod resampled;
mod run;
mod sample;
mod tune;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::accelerator::{Accelerator, Use};
use crate::cluster_sums::mean_rows;
use crate::confidence::confidence;
use crate::consolidate::{from_clusters, restart};
use crate::descent::Outcome;
use crate::initialise::{Initialisation, Start, initialise};
use crate::layout;
use crate::lens::Lens;
use crate::missingness::Missingness;
use crate::model::{Model, ViewModel};
use crate::neighbours::{Graph, References};
use crate::novelty;
use crate::numbering;
use crate::options::{Neighbours, Options, Penalty, Preset, ViewWeights};
use crate::place::Place;
use crate::prepared::{MissingCells, Prepared};
use crate::retained::{Learnt, Retained};
use crate::scale::{Alternatives, Observed, Scale, Scaling};
use crate::scan::{Scan, off_the_pool, pool};
use crate::source::Source;
use crate::steps::basis::Bases;
use crate::steps::latent::Solver;
use crate::steps::objective::Objective;
use crate::sweep::Sweep;
use crate::watch::{Stage, Watch};
use crate::{Error, Matrix, Result, Schema, Stop, ViewOf};
pub use explore::Decision;
use explore::Found;
pub use fitted::{Fit, Run, Timings};
use plan::Plan;
use run::{Clock, Course, Work};

/// Clusters instances that are seen through several incomplete views.
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
    /// Bytes that a fit to rows elsewhere may take for neighbourhoods.
    memory: Option<u64>,
    start: Option<Matrix>,
    /// The importance of each view, where it is known.
    importance: Option<Vec<f64>>,
    /// Whether scalings are compared; else the first of them is taken.
    compares: bool,
    accelerator: Option<(Arc<dyn Accelerator>, Use)>,
    pub(crate) watch: Watch,
}

/// The data as a fit sees them.
struct Ready<'a> {
    scan: Scan<'a>,
    lenses: Vec<Lens>,
    observed: Vec<Observed>,
    stop: &'a Stop,
    clock: Clock,
}

/// What a callback is told after each iteration.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Iteration {
    /// The run, from 1; see [`Daimc::runs`].
    pub run: usize,
    /// The iteration, from 1.
    pub number: usize,
    /// The objective after it.
    pub objective: Objective,
    /// The share by which J changed; `None` in the first iteration.
    pub change: Option<f64>,
    /// Time since the fit began.
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

    /// Sets all options but the number of clusters and the seed to those of a preset.
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Self {
        let Options { clusters, latent, seed, .. } = self.options;
        self.options = Options { latent, seed, ..Options::new(clusters, preset) };
        self
    }

    /// Columns of V, where that is not the number of clusters.
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

    /// What α and β are measured by (default [`Penalty::Published`]). With [`Penalty::Relative`] set both:
    /// `alpha(1.0).beta(0.15)` is a good start; [`Penalty::Auto`] sets them itself.
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

    /// Only so many features of each view are used, those of largest variance (of logarithms, where these are taken); the
    /// others are scaled by zero. By default all are.
    #[must_use]
    pub fn top_features(mut self, most: usize) -> Self {
        self.options.top_features = Some(most);
        self
    }

    /// Whether views are brought to equal weight (default yes).
    #[must_use]
    pub fn equal_weight(mut self, equal: bool) -> Self {
        self.options.equal_weight = equal;
        self
    }

    /// How much the views count (default [`ViewWeights::Equal`]).
    #[must_use]
    pub fn view_weights(mut self, weights: ViewWeights) -> Self {
        self.options.view_weights = weights;
        self
    }

    /// How V starts.
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

    /// How V is updated.
    #[must_use]
    pub fn solver(mut self, solver: Solver) -> Self {
        self.options.solver = solver;
        self
    }

    /// Passes of the V solver over a row in one iteration, at most.
    #[must_use]
    pub fn passes(mut self, passes: usize) -> Self {
        self.options.passes = passes;
        self
    }

    /// Iterations, at most.
    #[must_use]
    pub fn max_iterations(mut self, iterations: usize) -> Self {
        self.options.max_iterations = iterations;
        self
    }

    /// The share of J below which a change counts as none.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.options.tolerance = tolerance;
        self
    }

    /// Starts of each k-means (default 10) with up to 20 clusters; with more there are in proportion fewer, so that their
    /// cost does not grow with both.
    #[must_use]
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.options.restarts = restarts;
        self
    }

    /// Runs from different starts (default 1) that are combined into one clustering: their rows of V are clustered
    /// together, and the clusters become the start of one more iteration. The confidence of an instance then rises
    /// with the share of the runs that agree with its cluster, and [`ViewModel::stability`] tells in how many of them a feature leads a
    /// cluster. Runs are counted as they are before [neighbourhoods](Daimc::neighbours), which then see what all found
    /// together. `history` and `outcome` are those of the run that agrees most. As many runs as there are threads go on at
    /// once; V of each is kept in single precision until all are combined.
    #[must_use]
    pub fn runs(mut self, runs: usize) -> Self {
        self.options.runs = runs;
        self
    }

    /// Whether and how it is used who is near whom in each view (default [`Neighbours::Auto`]); what became of it is told
    /// in [`Fit::neighbours`].
    #[must_use]
    pub fn neighbours(mut self, neighbours: Neighbours) -> Self {
        self.options.neighbours = neighbours;
        self
    }

    /// The processor time that neighbourhoods may take with [`Neighbours::Auto`], in seconds of one core; by default ten times
    /// that of the fit without them, and at least a minute. What they would take is estimated from the shape of the data
    /// ([`Effort`](crate::estimate::Effort)), so that the decision is the same on every machine.
    #[must_use]
    pub fn neighbours_budget(mut self, seconds: f64) -> Self {
        self.options.neighbours_budget = Some(seconds);
        self
    }

    /// Whether clusters are compared with those of permuted data ([`Fit::significance`]) and of parts of the data
    /// ([`Model::reproducibility`], by which confidence is tempered) once they are found (default yes). It takes 17 quick fits
    /// to a sample of a few hundred instances, most of the time of a fit to small data; the clusters do not depend on it.
    #[must_use]
    pub fn assess(mut self, assess: bool) -> Self {
        self.options.assess = assess;
        self
    }

    /// Whether a map of the instances is laid out once the clusters are found ([`Fit::map`], default no): a layout in two
    /// dimensions of the graph that the clusters were cut from, or, where neighbourhoods were not used, of the graph of the nearest
    /// rows of V. The clusters do not depend on it.
    #[must_use]
    pub fn map(mut self, map: bool) -> Self {
        self.options.map = map;
        self
    }

    /// Seed of every random draw (default 0).
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Threads to use; the result does not depend on them. By default those of the current rayon pool.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// A machine beside the processor, which is to hold rows and V during the iterations and to find neighbours;
    /// [`Fit::device`] tells which did. Its sums are not those of the processor to the last bit. Whatever a fit does beside, such as
    /// fits to samples, stays on the processor, and so does [`Daimc::fit_elsewhere`].
    #[must_use]
    pub fn accelerator(mut self, machine: Arc<dyn Accelerator>, when: Use) -> Self {
        self.accelerator = Some((machine, when));
        self
    }

    /// Bytes of memory that neighbourhoods may take in this process, beside the data and the fit, or, in
    /// [`Daimc::fit_elsewhere`], with the rows that are gathered for them. With [`Neighbours::Auto`] what does not fit is left out, and
    /// [`Fit::neighbours`] tells. By default as many as it takes.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// A switch that ends the fit wherever it is once somebody sets it, also from another thread. The model is what there was
    /// by then, with [`Outcome::Cancelled`]: the V that the iterations had reached, even in the middle of one. Before the
    /// first iteration has ended there is none, and the fit is an error, [`Error::Interrupted`].
    #[must_use]
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.watch.stop = stop.clone();
        self
    }

    /// Calls `each` when work begins that may take long and is no iteration, and, where its amount is known, as it goes on: with
    /// the share of it that is done, from 0 to 1.
    #[must_use]
    pub fn stages(mut self, each: impl Fn(&Stage, f64) + Send + Sync + 'static) -> Self {
        self.watch.listener = Some(Arc::new(each));
        self
    }

    /// The options as they stand.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Fits to rows in memory ([`Views`](crate::Views)) or anywhere else.
    ///
    /// # Errors
    /// When an option makes no sense for these data, a scaling cannot be applied, or rows cannot be read.
    pub fn fit(&self, source: &dyn Source) -> Result<Fit> {
        self.fit_with(source, |_| ControlFlow::Continue(()))
    }

    /// Fits and calls `each` after every iteration. If it breaks, the fit ends as if [stopped](Daimc::stop).
    ///
    /// # Errors
    /// As [`Daimc::fit`].
    pub fn fit_with(
        &self,
        source: &dyn Source,
        each: impl FnMut(&Iteration) -> ControlFlow<()> + Send,
    ) -> Result<Fit> {
        // Fits within a fit (to resamples, to eigenvectors) are nobody's result and are not tested.
        self.on_threads(source, || {
            let (mut fit, schema) = self.fitted(source, each, true)?;
            let Options { clusters, seed, .. } = self.options;
            fit.missingness = Missingness::of(&schema, &fit.labels, clusters, seed);
            Ok(fit)
        })
    }

    /// Does work on threads of its own, if it was told how many or rows have to be read.
    pub(crate) fn on_threads<T: Send>(
        &self,
        source: &dyn Source,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        match self.threads {
            Some(threads) => pool(threads)?.install(work),
            None => off_the_pool(source, work),
        }
    }

    /// The same fit for another number of clusters and another seed. Columns of V follow the number of clusters unless
    /// they were set apart from it.
    pub(crate) fn with(mut self, clusters: usize, seed: u64) -> Self {
        if self.options.latent == self.options.clusters {
            self.options.latent = clusters;
        }
        self.options.clusters = clusters;
        self.options.seed = seed;
        self
    }

    /// As [`Daimc::fit_with`], always on the current rayon pool.
    pub(crate) fn fit_here(
        &self,
        source: &dyn Source,
        each: impl FnMut(&Iteration) -> ControlFlow<()> + Send,
    ) -> Result<Fit> {
        self.fitted(source, each, false).map(|(fit, _)| fit)
    }

    /// The fit, and who was found to be seen where. If it is somebody's result, its clusters are compared with chance.
    fn fitted(
        &self,
        source: &dyn Source,
        each: impl FnMut(&Iteration) -> ControlFlow<()> + Send,
        result: bool,
    ) -> Result<(Fit, Schema)> {
        source.schema().check()?;
        let names = (0..source.views()).map(|view| source.name(view));
        self.options.check(source.instances(), names)?;
        let clock = Clock::new();
        let stop = self.watch.stop.part();
        let given = Scan::new(source, &stop);
        let observed = self.observe(&given)?;
        let prepared = Prepared::observed(source, &observed)?;
        let scan = given.as_source(&prepared);
        let scalings = self.scalings(&scan, &observed)?;
        let mut fit = self.clone();
        fit.options.map &= result;
        fit.accelerator = fit.accelerator.filter(|_| result);
        if self.options.penalty == Penalty::Auto {
            let watch = self.watch.begin(Stage::Penalty);
            let Options { penalty, alpha, beta, .. } =
                *tune::penalty(&self.scaled_by(&given, &scalings), &given, &watch)?.options();
            fit = fit.penalty(penalty).alpha(alpha).beta(beta);
        }
        let others = rejected(&observed, &scalings);
        let lenses = fit.prepare(&given, &scan, scalings)?;
        let (mut found, schema) = fit.run(Ready { scan, lenses, observed, stop: &stop, clock }, each)?;
        if result && !stop.is_set() {
            let (scan, v) = (given.as_source(&prepared), &found.latent);
            let rows =
                |some: &[u32]| Ok(Matrix::from_fn(some.len(), v.columns(), |i, k| v[(some[i] as usize, k)]));
            chance::if_it_can_be_had(novelty::observe(&scan, &mut found.model, rows))?;
        }
        if result && self.options.assess {
            let scalings: Vec<Scaling> = found.model.views.iter().map(|view| view.scaling.clone()).collect();
            let scan = given.as_source(&prepared);
            if let Some(sampled) = fit.sampled(&scan, &scalings, others.as_deref())? {
                found.significance = fit.significance(&sampled, &stop)?;
                let own: Vec<usize> = sampled.instances.iter().map(|&i| found.labels[i as usize]).collect();
                found.model.reproducibility = fit.reproducibility(&sampled, &own, &stop)?;
                found.confidence = confidence(found.confidence, found.model.reproducibility);
            }
            if stop.is_set() {
                found.outcome = Outcome::Cancelled;
            }
        }
        Ok((found, schema))
    }

    fn run(
        &self,
        ready: Ready<'_>,
        mut each: impl FnMut(&Iteration) -> ControlFlow<()> + Send,
    ) -> Result<(Fit, Schema)> {
        let options = &self.options;
        let Ready { scan, lenses, observed, stop, mut clock } = ready;
        let source = scan.source();
        let mut sweep = Sweep::new(scan, lenses, options.latent);
        let device = self.hand_over(&mut sweep)?;
        let sweep = Arc::new(sweep);
        let prepare = clock.lap();

        let work = Work::new(self, sweep.clone(), stop, &mut each, clock.start);
        let (mut descent, mut v, mut courses, several) = if options.runs == 1 {
            let (descent, v, course) = work.once(options, 1)?;
            (descent, v, vec![course], None)
        } else {
            let (descent, v, courses, runs) = work.combined()?;
            (descent, v, courses, Some(runs))
        };
        let mut timings = Timings { prepare, ..run::shared(&courses, clock.lap()) };
        let (found, decision) = self.neighbourhoods(&sweep, &v, stop)?;
        timings.neighbours += clock.lap();
        // What was found is told, whoever wants to stop now.
        let to_the_end = Stop::new();
        let (mut references, mut graph) = (None, None);
        let (latent_scaling, centres, mut place) = match found {
            None => numbering::of_place(Place::by_columns(v, options, &to_the_end)?),
            Some(Found { mut labels, confidence, directions, graph: found }) => {
                graph = found;
                // Before the bases are fitted to them: columns of V follow the clusters.
                numbering::by_size(&mut labels, options.clusters);
                let Options { clusters, seed, .. } = *options;
                let (scan, watch) = (&sweep.scan, self.watch.within(stop));
                references =
                    match References::new(scan, &sweep.lenses, directions, &labels, clusters, seed, &watch) {
                        Err(Error::Interrupted) => None,
                        made => Some(made?),
                    };
                match from_clusters(&sweep, options, restart(&labels, options.clusters)) {
                    // The bases are still those of the V before.
                    Err(Error::Interrupted) => {}
                    fitted => (descent, v) = fitted?,
                }
                Place::given(v, options, labels, confidence)?
            }
        };
        timings.assign += clock.lap();
        let map = self.laid_out(graph, &place.latent, stop)?;
        timings.map += clock.lap();
        let cancelled = stop.is_set();
        let (passes, objective) = (sweep.scan.passes(), descent.objective());
        let retained = Retained::new(&descent, sweep.sums_of_squares(), source.schema());
        let (bases, alignments) = descent.into_parts();
        let (mut runs, mut stability) = (Vec::new(), None);
        if let Some(found) = several {
            let matched = found.matched(&place.labels)?;
            stability = found.stability(&matched, &alignments, &centres);
            let (agreement, by_run) = found.agreement(&place.labels, &matched);
            place.confidence = agreement;
            runs.extend(courses.iter().zip(by_run).map(|(course, agreement)| course.told(agreement)));
        }
        let better = |best: usize, run: usize| runs[run].agreement > runs[best].agreement;
        let chosen = (0..runs.len()).fold(0, |best, run| if better(best, run) { run } else { best });
        let Course { history, outcome, .. } = courses.swap_remove(chosen);
        let outcome = if cancelled { Outcome::Cancelled } else { outcome };
        timings.assign += clock.lap();
        let (views, missing_cells) =
            learnt(source.schema(), &sweep.lenses, observed, bases, alignments, stability);
        let (means, sizes) = mean_rows(&place.latent, &place.labels, options.clusters);
        let model = Model {
            options: options.clone(),
            views,
            latent_scaling,
            retained: Some(retained.of_clusters(options, &centres, &sizes)),
            centres,
            means,
            sizes,
            reproducibility: None,
            references,
        };
        let fit = Fit {
            model,
            missing_cells,
            ids: source.schema().ids().clone(),
            learnt: Learnt::default(),
            latent: place.latent,
            map,
            labels: place.labels,
            confidence: place.confidence,
            neighbours: decision,
            missingness: Missingness::default(),
            significance: None,
            runs,
            objective,
            history,
            outcome,
            passes,
            timings,
            device,
        };
        Ok((fit, source.schema().clone()))
    }

    /// The clusters that neighbourhoods and V give together, if they are to be used and there is time for them.
    fn neighbourhoods(
        &self,
        sweep: &Sweep<'_>,
        v: &Matrix,
        stop: &Stop,
    ) -> Result<(Option<Found>, Decision)> {
        let (options, watch) = (&self.options, self.watch.within(stop));
        let found = if stop.is_set() && options.neighbours != Neighbours::Off {
            Err(Error::Interrupted)
        } else {
            Plan::beside(sweep, options, self.memory, &watch)
                .and_then(|plan| explore::clusters(sweep, plan, options, v, &watch))
        };
        match found {
            Err(error @ Error::Interrupted) => Ok((None, Decision::without(Some(error.to_string())))),
            found => found,
        }
    }

    /// The map, if it is wanted and there is time for it.
    fn laid_out(&self, graph: Option<Graph>, latent: &Matrix, stop: &Stop) -> Result<Option<Matrix>> {
        if !self.options.map {
            return Ok(None);
        }
        let (seed, watch) = (self.options.seed, self.watch.within(stop));
        let map = match graph {
            Some(graph) => layout::of_graph(&graph, latent, seed, &watch),
            None => layout::of_latent(latent, seed, &watch),
        };
        match map {
            Err(Error::Interrupted) => Ok(None),
            map => map.map(Some),
        }
    }

    /// How each view may be scaled, and what is missing in it.
    pub(crate) fn observe(&self, given: &Scan<'_>) -> Result<Vec<Observed>> {
        let views = given.schema().views().enumerate();
        let observe = |(view, known): (usize, ViewOf<'_>)| {
            let scale = self.options.view_scales.get(known.name()).unwrap_or(&self.options.scale);
            Scaling::observe(given, view, *scale, self.options.top_features)
        };
        views.map(observe).collect()
    }

    /// The views as the algorithm sees them, from rows as they were given and as they were prepared.
    fn prepare(&self, given: &Scan<'_>, scan: &Scan<'_>, scalings: Vec<Scaling>) -> Result<Vec<Lens>> {
        let options = &self.options;
        let resolved = self.scaled_by(given, &scalings);
        let lens = |(view, scaling)| Lens::fit(scan, view, scaling, options.equal_weight);
        let mut lenses = scalings.into_iter().enumerate().map(lens).collect::<Result<Vec<_>>>()?;
        let learned = match (&self.importance, options.view_weights) {
            (Some(known), _) => known.clone(),
            (None, ViewWeights::Equal) => return Ok(lenses),
            (None, ViewWeights::Learned) => {
                importance::learn(&resolved, given, &self.watch.begin(Stage::ViewWeights))?
            }
        };
        lenses.iter_mut().zip(learned).for_each(|(lens, importance)| lens.weigh(importance));
        Ok(lenses)
    }

    /// The same fit, with the importance of each view as given.
    pub(crate) fn weighed(mut self, importance: Vec<f64>) -> Self {
        self.importance = Some(importance);
        self
    }

    /// The same fit to part of the data: from another seed, from no start but its own, by V alone, which is what
    /// predicts, and without a word.
    pub(crate) fn alone(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self.options.neighbours = Neighbours::Off;
        self.compares = false;
        self.start = None;
        self.watch.listener = None;
        self
    }

    fn begin(&self, sweep: &Sweep<'_>, seed: u64) -> Result<Start> {
        let Options { latent, restarts, initialisation, .. } = self.options;
        let Some(v) = &self.start else {
            return initialise(initialisation, sweep, restarts, seed);
        };
        let instances = sweep.scan.instances();
        if (v.rows(), v.columns()) != (instances, latent) {
            return Err(Error::Option {
                option: "start",
                value: format!("a {} × {} matrix", v.rows(), v.columns()),
                reason: format!("must be {instances} × {latent}, instances × latent"),
            });
        }
        let usable = |value: f64| value == 0.0 || (1e-100..=1e100).contains(&value);
        if let Some(bad) = v.values().iter().find(|value| !usable(**value)) {
            let reason =
                "every entry must be finite and zero or above, and if it is above, from 1e-100 to 1e100"
                    .into();
            return Err(Error::Option { option: "start", value: bad.to_string(), reason });
        }
        let mut v = v.clone();
        let statistics = sweep.gather(&mut v, sweep.scan.stop())?;
        Ok(Start { v, statistics, bases: Bases::Fitted })
    }
}

/// What belongs to each view of the model, and the cells that are missing in it.
fn learnt(
    schema: &Schema,
    lenses: &[Lens],
    observed: Vec<Observed>,
    bases: Vec<Matrix>,
    alignments: Vec<Matrix>,
    stability: Option<Vec<Matrix>>,
) -> (Vec<ViewModel>, Vec<MissingCells>) {
    let mut stability = stability.map(Vec::into_iter);
    let views = lenses.iter().zip(observed).zip(bases).zip(alignments).enumerate();
    let learnt = views.map(|(view, (((lens, observed), basis), alignment))| {
        let model = ViewModel {
            name: schema.view_name(view).into(),
            feature_names: schema.view(view).names().map(<[String]>::to_vec),
            basis,
            alignment,
            preparation: observed.preparation,
            scaling: lens.scaling.clone(),
            stability: stability.as_mut().and_then(Iterator::next),
        };
        (model, observed.missing)
    });
    learnt.unzip()
}

/// The scalings that were not taken, where there were two to choose from; those of other views are as they are. `None` if there
/// was no choice.
fn rejected(observed: &[Observed], taken: &[Scaling]) -> Option<Vec<Scaling>> {
    observed.iter().any(|view| view.scalings.by_feature.is_some()).then(|| {
        let other = |(view, taken): (&Observed, &Scaling)| match &view.scalings {
            Alternatives { by_feature: Some(own), .. } if own.scale != taken.scale => own.clone(),
            Alternatives { plain, .. } => plain.clone(),
        };
        observed.iter().zip(taken).map(other).collect()
    })
}
