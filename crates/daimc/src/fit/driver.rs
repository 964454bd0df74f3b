//! The driver of a fit: the stages from rows to a model, wherever the rows are.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::explore::{Decision, Found, clusters};
use super::fitted::MapSource;
use super::plan::NeighbourPlan;
use super::run::{Clock, Course, Each, Runs};
use super::{Daimc, Fit, Iteration, Run, chance, importance, tune};
use crate::backend::{Backend, Distributed, Executor, Local, labels_of};
use crate::combine;
use crate::consolidate::{attempt, restarted, rows_of, squares};
use crate::descent::{Descent, Outcome};
use crate::estimate::{Shape, neighbours_bytes};
use crate::leaders::{Leaders, stability};
use crate::missingness::Missingness;
use crate::model::{Model, ViewModel};
use crate::novelty;
use crate::numbering;
use crate::options::{Neighbours, Options, Penalty, ViewWeights};
use crate::partition::TableId;
use crate::partition::clusters::{
    Adopt, Assign, CountMissing, Finish, Renumber, Sizes, SumClusters, SumMembers,
};
use crate::partition::rows::Ready;
use crate::place::{self, Place};
use crate::retained::{Learnt, Retained};
use crate::significance::Significance;
use daimc_core::forest::Forest;
use daimc_core::index::index;
use daimc_core::kmeans::Members;
use daimc_core::prepared::MissingCells;
use daimc_core::scale::{Observed, rejected};
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::{off_the_pool, pool};
use daimc_core::source::Source;
use daimc_core::table::{Table, unsuitable};
use daimc_core::watch::Stage;
use daimc_core::{Error, Ids, Matrix, Result, Scaling, Schema, Stop, ViewOf};
use daimc_graph::neighbours::{Graph, References};

/// The clusters of all instances, numbered by size.
struct Clustered {
    latent_scaling: Scaling,
    /// One per column.
    centres: Matrix,
    means: Matrix,
    sizes: Vec<usize>,
}

/// Clusters from neighbourhoods and V together, numbered by size.
struct Cut {
    labels: Vec<usize>,
    confidence: Vec<f64>,
    /// References for new instances; `None` if the fit was stopped before.
    references: Option<References>,
    /// The graph, if a map is requested.
    graph: Option<Graph>,
}

impl Daimc {
    /// Fits to rows in memory ([`Views`](daimc_core::Views)) or in another source.
    ///
    /// # Errors
    /// When an option is invalid for these data, a scaling cannot be applied, or rows cannot be read.
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
        mut each: impl FnMut(&Iteration) -> ControlFlow<()> + Send,
    ) -> Result<Fit> {
        let clock = Clock::new();
        self.on_threads(source, || self.fit_local(source, &mut each, true, clock))
    }

    /// Fits to rows in [partitions](crate::Partition), and calls `each` after every iteration, as [`Daimc::fit_with`] does. The
    /// result is that of [`Daimc::fit`] to all rows, to the last bit, for any number of partitions, with one exception: for
    /// neighbourhoods, rows are gathered in this process, within its [memory](Daimc::memory). Rows of up to 128 features, and sparse
    /// rows of up to 512 bytes, are gathered as they are, others as their projections on the 128 leading directions;
    /// [`Decision::recall`] then counts neighbours of projected rows.
    ///
    /// If V, labels and confidence of all instances fit into the memory of this process, the result has them; otherwise it has no
    /// instances. In both cases each partition [returns](crate::Partition::place) those of its own instances. A map is left out if
    /// V of all instances and its graph do not fit.
    ///
    /// # Errors
    /// As [`Daimc::fit`], when this process lacks the memory for neighbourhoods that were requested by name, and when the executor
    /// fails.
    pub fn fit_on(
        &self,
        executor: &mut dyn Executor,
        mut each: impl FnMut(&Iteration) -> ControlFlow<()> + Send,
    ) -> Result<Fit> {
        let clock = Clock::new();
        let mut fitted = || {
            let stop = self.watch.stop.part();
            let rows = Distributed::new(&mut *executor, &stop)?;
            self.drive(rows, &mut each, true, clock)
        };
        match self.threads {
            Some(threads) => pool(threads)?.install(fitted),
            None => fitted(),
        }
    }

    /// Runs work on threads of its own if their number is set, or if rows have to be read.
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

    /// A fit within a fit, on the current rayon pool: without a map, an accelerator and an assessment of the clusters.
    pub(crate) fn fit_here(
        &self,
        source: &dyn Source,
        mut each: impl FnMut(&Iteration) -> ControlFlow<()> + Send,
    ) -> Result<Fit> {
        self.fit_local(source, &mut each, false, Clock::new())
    }

    fn fit_local(&self, source: &dyn Source, each: Each<'_>, result: bool, clock: Clock) -> Result<Fit> {
        source.schema().check()?;
        let stop = self.watch.stop.part();
        let ids = source.schema().ids().clone();
        Ok(Fit { ids, ..self.drive(Local::new(source, &stop), each, result, clock)? })
    }

    /// All stages of a fit, which began with the clock. A top-level fit has a `result` that is assessed.
    fn drive<'a, B: Backend<'a>>(
        &self,
        mut rows: B,
        each: Each<'_>,
        result: bool,
        mut clock: Clock,
    ) -> Result<Fit> {
        let stop = rows.stop().clone();
        let mut fit = self.clone();
        let (schema, observed, others) = fit.prepare(&mut rows, result)?;
        let device = fit.hand_over(&mut rows, &schema)?;
        let options = &fit.options;
        clock.lap(|own| &mut own.prepare);

        let runs = Runs::new(&fit, &stop, each, clock.start);
        let (mut descent, courses, leaders);
        if options.runs == 1 {
            let course;
            (descent, course) = runs.once(&rows, options, 1)?;
            (courses, leaders) = (vec![course], Vec::new());
        } else {
            let combined = runs.combined(rows)?;
            (rows, descent, courses, leaders) =
                (combined.rows, combined.descent, combined.courses, combined.leaders);
        }
        clock.lap_of(&courses);

        let (cut, decision) = fit.neighbourhoods(&rows, &stop)?;
        clock.lap(|own| &mut own.neighbours);
        // From here on a fit that is stopped skips what is optional and ends with the result so far.
        let (mut references, mut graph) = (None, None);
        let clustered = match cut {
            None => fit.cluster_latent(&rows)?,
            Some(cut) => {
                (references, graph) = (cut.references, cut.graph);
                if let Some(adopted) = fit.adopt(&rows, cut.labels, cut.confidence)? {
                    descent = adopted;
                }
                fit.cluster_means(&rows)?
            }
        };
        clock.lap(|own| &mut own.assign);
        let (map, map_source) = fit.lay_out(&rows, graph, &stop)?;
        clock.lap(|own| &mut own.map);

        let interrupted = stop.is_set();
        let (passes, objective) = (rows.passes(), descent.objective());
        let retained = Retained::new(&descent, squares(&rows)?, &schema);
        let (bases, alignments) = descent.into_parts();
        let Compared { course, runs, stability } =
            compare_runs(&rows, courses, &leaders, &alignments, &clustered.centres, schema.instances())?;
        let Course { history, mut outcome, .. } = course;
        let (views, missing_cells) =
            learnt(&schema, &rows.scaled_views()?, observed, bases, alignments, stability);
        let Clustered { latent_scaling, centres, means, sizes } = clustered;
        let mut model = Model {
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
        clock.lap(|own| &mut own.assign);

        let significance = if result {
            fit.assess_clusters(&rows, &mut model, (others.as_deref(), decision.mixture), interrupted)?
        } else {
            None
        };
        if interrupted || stop.is_set() {
            outcome = Outcome::Interrupted;
        }
        rows.run(Finish { reproducibility: model.reproducibility })?;
        let missingness = if result { missingness(&rows, &schema, options)? } else { Missingness::default() };
        if rows.run(Ready)? != schema.instances() {
            return Err(unsuitable("partitions lack some of the instances"));
        }
        clock.lap(|own| &mut own.assess);
        let place = rows.into_place(fit.memory)?.unwrap_or_else(|| Place {
            latent: Matrix::zeros(0, options.latent),
            labels: Vec::new(),
            confidence: Vec::new(),
        });
        clock.lap(|own| &mut own.assign);
        Ok(Fit {
            model,
            missing_cells,
            ids: Ids::Numbers(place.labels.len()),
            learnt: Learnt::default(),
            latent: place.latent,
            map,
            map_source,
            labels: place.labels,
            confidence: place.confidence,
            neighbours: decision,
            missingness,
            significance,
            runs,
            objective,
            history,
            outcome,
            passes,
            timings: clock.timings,
            device,
        })
    }

    /// Compares the clusters with chance and with those of parts of the data, and records in the model how far instances are from their
    /// reconstructions.
    fn assess_clusters<'a>(
        &self,
        rows: &impl Backend<'a>,
        model: &mut Model,
        (others, mixture): (Option<&[Scaling]>, bool),
        interrupted: bool,
    ) -> Result<Option<Significance>> {
        let stop = rows.stop();
        let prepared = rows.table(TableId::Prepared, stop)?;
        if !interrupted {
            let v = rows.table(TableId::Latent, stop)?;
            let latent = |some: &[u32]| rows_of(&v, some);
            chance::if_available(novelty::observe(prepared.rows(), model, latent))?;
        }
        if !self.options.assess {
            return Ok(None);
        }
        let scalings: Vec<Scaling> = model.views.iter().map(|view| view.scaling.clone()).collect();
        let Some(mut sampled) = self.sampled(prepared.rows(), &scalings, others)? else { return Ok(None) };
        sampled.mixture = mixture;
        let significance = self.significance(&sampled, stop)?;
        let own = labels_of(rows, &sampled.instances)?;
        model.reproducibility = self.reproducibility(&sampled, &own, stop)?;
        Ok(significance)
    }

    /// Chooses the scaling and weights of the views and, with [`Penalty::Auto`](crate::Penalty::Auto), the penalty. Returns the
    /// schema of the prepared rows, the observations of the views, and the rejected scalings.
    fn prepare<'a, B: Backend<'a>>(
        &mut self,
        rows: &mut B,
        result: bool,
    ) -> Result<(Schema, Vec<Observed>, Option<Vec<Scaling>>)> {
        let stop = rows.stop().clone();
        let given = rows.table(TableId::Given, &stop)?;
        let (schema, instances) = (given.schema().clone(), given.instances());
        self.options.check(instances, (0..schema.len()).map(|view| schema.view_name(view)))?;
        self.check_start(instances)?;
        self.options.map &= result;
        self.accelerator = self.accelerator.take().filter(|_| result);
        let observed = self.observe(&given)?;
        drop(given);
        rows.prepare(&observed)?;
        let (given, prepared) = (rows.table(TableId::Given, &stop)?, rows.table(TableId::Prepared, &stop)?);
        if B::GATHERS {
            // Fails early if this process lacks the memory.
            self.plan_to_gather(prepared.schema())?;
        }
        let scalings = self.scalings(prepared.rows(), &observed)?;
        if self.options.penalty == Penalty::Auto {
            let watch = self.watch.begin(Stage::Penalty);
            let resolved = self.scaled_by(&schema, &scalings);
            let Options { penalty, alpha, beta, .. } =
                *tune::penalty(&resolved, given.rows(), &watch)?.options();
            (self.options.penalty, self.options.alpha, self.options.beta) = (penalty, alpha, beta);
        }
        let others = rejected(&observed, &scalings);
        let scaled_views = self.weigh(&given, &prepared, scalings)?;
        let schema = prepared.schema().clone();
        drop((given, prepared));
        rows.scale(scaled_views, self.options.latent)?;
        Ok((schema, observed, others))
    }

    /// Fails if the given V, if any, is not one for this number of instances.
    fn check_start(&self, instances: usize) -> Result<()> {
        let (Some(v), latent) = (&self.start, self.options.latent) else { return Ok(()) };
        let bad = |value, reason| Err(Error::Option { option: "start", value, reason });
        if (v.rows(), v.columns()) != (instances, latent) {
            let reason = format!("must be {instances} × {latent}, instances × latent");
            return bad(format!("a {} × {} matrix", v.rows(), v.columns()), reason);
        }
        let usable = |value: f64| value == 0.0 || (1e-100..=1e100).contains(&value);
        match v.values().iter().find(|value| !usable(**value)) {
            Some(value) => bad(value.to_string(), "every entry must be 0 or from 1e-100 to 1e100".into()),
            None => Ok(()),
        }
    }

    /// The possible scalings of each view, and its missing cells.
    pub(crate) fn observe(&self, given: &impl Table) -> Result<Vec<Observed>> {
        let views = given.schema().views().enumerate();
        let observe = |(view, known): (usize, ViewOf<'_>)| {
            let scale = self.options.view_scales.get(known.name()).unwrap_or(&self.options.scale);
            Scaling::observe(given, view, *scale, self.options.top_features)
        };
        views.map(observe).collect()
    }

    /// The views with their scalings and weights, from the given and the prepared rows.
    fn weigh(
        &self,
        given: &impl Table,
        prepared: &impl Table,
        scalings: Vec<Scaling>,
    ) -> Result<Vec<ScaledView>> {
        let options = &self.options;
        let resolved = self.scaled_by(given.schema(), &scalings);
        let scaled_view = |(view, scaling)| ScaledView::fit(prepared, view, scaling, options.equal_weight);
        let mut scaled_views =
            scalings.into_iter().enumerate().map(scaled_view).collect::<Result<Vec<_>>>()?;
        let learned = match (&self.importance, options.view_weights) {
            (Some(known), _) => known.clone(),
            (None, ViewWeights::Equal) => return Ok(scaled_views),
            (None, ViewWeights::Learned) => {
                importance::learn(&resolved, given.rows(), &self.watch.begin(Stage::ViewWeights))?
            }
        };
        scaled_views
            .iter_mut()
            .zip(learned)
            .for_each(|(scaled_view, importance)| scaled_view.weigh(importance));
        Ok(scaled_views)
    }

    /// The clusters from neighbourhoods and V together; `None` if neighbourhoods are not used or the fit is stopped before.
    fn neighbourhoods<'a>(&self, rows: &impl Backend<'a>, stop: &Stop) -> Result<(Option<Cut>, Decision)> {
        let found = if stop.is_set() && self.options.neighbours != Neighbours::Off {
            Err(Error::Interrupted)
        } else {
            self.cut(rows, stop)
        };
        match found {
            Err(error @ Error::Interrupted) => Ok((None, Decision::without(Some(error.to_string())))),
            found => found,
        }
    }

    fn cut<'a, B: Backend<'a>>(&self, rows: &B, stop: &Stop) -> Result<(Option<Cut>, Decision)> {
        let (options, watch) = (&self.options, self.watch.within(stop));
        let Options { clusters: count, seed, .. } = *options;
        let (plan, gathered);
        if B::GATHERS {
            plan = self.plan_to_gather(rows.table(TableId::Prepared, stop)?.schema())?;
            if plan.ways == Neighbours::Off {
                return Ok((None, Decision::without(plan.refusal)));
            }
            gathered = rows.gather(seed, &watch)?;
        } else {
            gathered = rows.gather(seed, &watch)?;
            plan = NeighbourPlan::alongside(&gathered.sweep, options, self.memory, &watch)?;
        }
        let (found, decision) = clusters(&gathered.sweep, plan, options, &gathered.v, &watch)?;
        let Some(Found { mut labels, confidence, directions, graph }) = found else {
            return Ok((None, decision));
        };
        // Before the bases are fitted to the clusters, because columns of V follow their numbers.
        numbering::by_size(&mut labels, count);
        let (scan, scaled_views) = (&gathered.sweep.scan, &gathered.sweep.scaled_views);
        let references = match References::new(scan, scaled_views, directions, &labels, count, seed, &watch) {
            Err(Error::Interrupted) => None,
            made => {
                let mut made = made?;
                gathered.lengthen(&mut made);
                Some(made)
            }
        };
        Ok((Some(Cut { labels, confidence, references, graph }), decision))
    }

    /// The uses of neighbourhoods if rows are gathered in this process.
    fn plan_to_gather(&self, schema: &Schema) -> Result<NeighbourPlan> {
        NeighbourPlan::new(schema, &self.options).within(self.memory, schema, &self.options)
    }

    /// Sets clusters of all instances, and fits the bases to them in one iteration, unless the fit is stopped.
    fn adopt<'a>(
        &self,
        rows: &impl Backend<'a>,
        labels: Vec<usize>,
        confidence: Vec<f64>,
    ) -> Result<Option<Descent>> {
        let sizes = Sizes::of(&labels, self.options.clusters, 0).sizes;
        rows.run(Adopt { labels: labels.into_iter().map(index).collect(), confidence })?;
        attempt(rows, || restarted(rows, &self.options, sizes))
    }

    /// Clusters V, whose columns stand for clusters, and numbers the clusters by size.
    fn cluster_latent<'a>(&self, rows: &impl Backend<'a>) -> Result<Clustered> {
        let (latent_scaling, scaled_view, centres) =
            place::cluster_columns(&rows.table(TableId::Latent, &Stop::new())?, &self.options)?;
        let found = rows.run(Assign {
            table: TableId::Latent,
            scaled_view: scaled_view.parts(),
            centres: centres.clone(),
        })?;
        let order = numbering::order(&found.sizes, &found.first);
        rows.run(Renumber(numbering::numbers(&order)))?;
        self.clustered(rows, latent_scaling, numbering::columns(&centres, &order))
    }

    /// The means of the present clusters.
    fn cluster_means<'a>(&self, rows: &impl Backend<'a>) -> Result<Clustered> {
        let (latent_scaling, scaled_view) =
            place::scaled(&rows.table(TableId::Latent, &Stop::new())?, &self.options)?;
        let clusters = self.options.clusters;
        let members =
            rows.run(SumMembers { scaled_view: scaled_view.parts(), clusters })?.sum(Members::default())?;
        self.clustered(rows, latent_scaling, members.means(&scaled_view, clusters))
    }

    fn clustered<'a>(
        &self,
        rows: &impl Backend<'a>,
        latent_scaling: Scaling,
        centres: Matrix,
    ) -> Result<Clustered> {
        let Options { clusters, latent, .. } = self.options;
        let sums: Forest<_> = rows.run(SumClusters(clusters))?;
        let (means, sizes) = sums.sum(crate::cluster_sums::ClusterSums::new(clusters, latent))?.means();
        Ok(Clustered { latent_scaling, centres, means, sizes })
    }

    /// The map, if it is requested, this process has the memory for it, and the fit is not stopped before; or what it can be laid
    /// out from later.
    fn lay_out<'a, B: Backend<'a>>(
        &self,
        rows: &B,
        graph: Option<Graph>,
        stop: &Stop,
    ) -> Result<(Option<Matrix>, Option<Arc<MapSource>>)> {
        if !self.options.map {
            return Ok((None, None));
        }
        let source = graph.map_or(MapSource::Latent, MapSource::Graph);
        if self.map_later && !B::GATHERS {
            return Ok((None, Some(Arc::new(source))));
        }
        let instances = rows.table(TableId::Prepared, stop)?.instances();
        let needed = map_bytes(instances, &self.options);
        if B::GATHERS && self.memory.is_some_and(|memory| needed > memory as f64) {
            return Ok((None, None));
        }
        let (seed, watch) = (self.options.seed, self.watch.within(stop));
        match rows.latent().and_then(|v| source.lay_out(&v, seed, &watch)) {
            Err(Error::Interrupted) => Ok((None, None)),
            map => Ok((Some(map?), None)),
        }
    }
}

/// The runs of a fit, compared with its clusters.
struct Compared {
    /// The run that agrees most, or the only one.
    course: Course,
    /// Summaries of several runs.
    runs: Vec<Run>,
    stability: Option<Vec<Matrix>>,
}

/// Compares several runs with the clusters; their agreement becomes the confidence of the instances.
fn compare_runs<'a>(
    rows: &impl Backend<'a>,
    mut courses: Vec<Course>,
    leaders: &[Leaders],
    alignments: &[Matrix],
    centres: &Matrix,
    instances: usize,
) -> Result<Compared> {
    if leaders.is_empty() {
        return Ok(Compared { course: courses.swap_remove(0), runs: Vec::new(), stability: None });
    }
    let (matched, shares) = combine::agreement(rows, courses.len(), instances)?;
    let of_runs = leaders.iter().zip(matched.iter().map(Vec::as_slice));
    let stability = (leaders.len() > 1).then(|| stability(of_runs, alignments, centres));
    let best = (0..shares.len()).fold(0, |best, run| if shares[run] > shares[best] { run } else { best });
    let runs = courses.iter().zip(shares).map(|(course, share)| course.summary(share)).collect();
    Ok(Compared { course: courses.swap_remove(best), runs, stability })
}

/// The memory for V of all instances and the graph of its rows.
fn map_bytes(instances: usize, options: &Options) -> f64 {
    let Options { latent, clusters, .. } = *options;
    let v =
        Shape { present: instances, features: latent, entries: instances * latent, value: 8, sparse: false };
    v.bytes() + neighbours_bytes(Neighbours::Refine, instances, &[v], clusters)
}

/// How far clusters and presence patterns are associated.
fn missingness<'a>(rows: &impl Backend<'a>, schema: &Schema, options: &Options) -> Result<Missingness> {
    let Options { clusters, seed, .. } = *options;
    let labels = |chosen: &[usize]| {
        let mut instances: Vec<u32> = chosen.iter().map(|&i| index(i)).collect();
        instances.sort_unstable();
        instances.dedup();
        let labels = labels_of(rows, &instances)?;
        let label = |&i: &usize| instances.binary_search(&index(i)).map_or(0, |at| labels[at]);
        Ok::<_, Error>(chosen.iter().map(label).collect())
    };
    Missingness::asked(schema, clusters, seed, labels, || rows.run(CountMissing(clusters)))
}

/// The part of the model that belongs to each view, and the missing cells of each view.
fn learnt(
    schema: &Schema,
    scaled_views: &[ScaledView],
    observed: Vec<Observed>,
    bases: Vec<Matrix>,
    alignments: Vec<Matrix>,
    stability: Option<Vec<Matrix>>,
) -> (Vec<ViewModel>, Vec<MissingCells>) {
    let mut stability = stability.map(Vec::into_iter);
    let views = scaled_views.iter().zip(observed).zip(bases).zip(alignments).enumerate();
    let learnt = views.map(|(view, (((scaled_view, observed), basis), alignment))| {
        let model = ViewModel {
            name: schema.view_name(view).into(),
            feature_names: schema.view(view).names().map(<[String]>::to_vec),
            basis,
            alignment,
            preparation: observed.preparation,
            scaling: scaled_view.scaling.clone(),
            stability: stability.as_mut().and_then(Iterator::next),
        };
        (model, observed.missing)
    });
    learnt.unzip()
}
