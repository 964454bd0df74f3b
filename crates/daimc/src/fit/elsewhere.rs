//! A fit to rows that others hold: the stages are those of every fit, and where one goes over all rows, these others do.

mod neighbourhoods;

use std::ops::ControlFlow;

use super::plan::Plan;
use super::run::Clock;
use super::{Daimc, Fit, Iteration, Outcome, Timings, chance, learnt, rejected};
use crate::accelerator::DeviceUsed;
use crate::cluster_sums::ClusterSums;
use crate::consolidate::{clusters, rows_of, settle, settled};
use crate::descent::Descent;
use crate::distributed::{Ask, Clusters, Held, Holders, Nearest, Remote, Request, Table, Team, last_request};
use crate::forest::Forest;
use crate::initialise::Votes;
use crate::kmeans;
use crate::lens::{Lens, Parts};
use crate::missingness::{Lacking, Missingness};
use crate::model::Model;
use crate::novelty;
use crate::numbering;
use crate::options::{Options, Penalty, ViewWeights};
use crate::place::Place;
use crate::retained::{Learnt, Retained};
use crate::scale::Scaling;
use crate::scan::{Scan, pool};
use crate::source::Source;
use crate::steps::objective::Objective;
use crate::views::index;
use crate::watch::Stage;
use crate::{Error, Ids, Matrix, Result, Stop};

/// The rows of a fit, elsewhere, and how they are seen.
struct Rows<'t> {
    holders: &'t dyn Holders,
    scan: Scan<'t>,
    lenses: Vec<Lens>,
    latent: Scan<'t>,
}

/// The clusters among rows of V.
struct Placed {
    scaling: Scaling,
    /// One in each column.
    centres: Matrix,
    clusters: Clusters,
    sums: ClusterSums,
}

impl Daimc {
    /// Fits to so many instances that others hold, each a range of [`aligned`](crate::aligned), answering by
    /// [`serve`](crate::serve). `carry` takes a request to all of them and returns their replies,
    /// [merged](crate::merge_replies). Calls `each` after every iteration, as [`Daimc::fit_with`] does.
    ///
    /// The result has no instances: these are where the rows are. Beside it comes the last request, by which each holder tells what
    /// was found for its own ([`gather_place`](crate::gather_place)); nobody merges these replies. It is the same to the last bit for
    /// any number of holders, and with [`Neighbours::Off`](crate::Neighbours::Off) the same as that of [`Daimc::fit`].
    ///
    /// For neighbourhoods, V and the rows of the views are gathered in this process, within its [memory](Daimc::memory): rows of up to
    /// 128 features, and sparse ones of up to 512 bytes, as they are, others along the 128 directions in which they are longest.
    /// Unless rows were shortened in this way, the result is that of [`Daimc::fit`] to rows in memory here, too; if they were,
    /// [`Decision::recall`](crate::Decision::recall) counts neighbours of shortened rows. There is no map.
    ///
    /// # Errors
    /// As [`Daimc::fit`], when an option needs all rows at one place (several runs, learned view weights, an automatic penalty, a
    /// given start), when there is not the memory for neighbourhoods that were asked for by name, and when requests cannot be
    /// carried.
    pub fn fit_elsewhere(
        &self,
        instances: usize,
        mut carry: impl FnMut(&Ask<'_>) -> Result<Vec<u8>> + Send,
        mut each: impl FnMut(&Iteration) -> ControlFlow<()> + Send,
    ) -> Result<(Fit, Vec<u8>)> {
        self.check_elsewhere()?;
        let mut fitted = || {
            let team = Team::new(&mut carry);
            self.fitted_elsewhere(&team, instances, &mut each)
        };
        match self.threads {
            Some(threads) => pool(threads)?.install(fitted),
            None => fitted(),
        }
    }

    /// Fails if an option needs all rows at one place.
    fn check_elsewhere(&self) -> Result<()> {
        let options = &self.options;
        let refused = |option, value: String, instead: &str| {
            let reason = format!("not where several hold the rows; {instead}");
            Err(Error::Option { option, value, reason })
        };
        if options.runs > 1 {
            return refused("runs", options.runs.to_string(), "use 1");
        }
        if options.penalty == Penalty::Auto {
            return refused("penalty", options.penalty.to_string(), "use `published` or `relative`");
        }
        if options.view_weights == ViewWeights::Learned {
            return refused("view_weights", options.view_weights.to_string(), "use `equal`");
        }
        if self.start.is_some() {
            return refused("start", "a matrix".into(), "start by an initialisation");
        }
        Ok(())
    }

    fn fitted_elsewhere(
        &self,
        team: &Team<'_>,
        instances: usize,
        each: &mut (dyn FnMut(&Iteration) -> ControlFlow<()> + Send),
    ) -> Result<(Fit, Vec<u8>)> {
        let options = &self.options;
        let mut clock = Clock::new();
        let stop = self.watch.stop.part();
        let source = Remote::views(team, instances)?;
        options.check(instances, (0..source.views()).map(|view| source.name(view)))?;
        let given = Scan::elsewhere(&source, team, Table::Views, &stop);
        let observed = self.observe(&given)?;
        let preparations = observed.iter().map(|view| view.preparation.clone()).collect();
        team.tell(Request::Prepare(preparations))?;
        let prepared = source.prepared(&observed)?;
        let plan = Plan::new(prepared.schema(), options).within(self.memory, prepared.schema(), options)?;
        let scan = Scan::elsewhere(&prepared, team, Table::Views, &stop);
        let scalings = self.scalings(&scan, &observed)?;
        let others = rejected(&observed, &scalings);
        let lenses = self.prepare(&given, &scan, scalings)?;
        let parts = lenses.iter().map(Lens::parts).collect();
        team.tell(Request::Lenses { latent: options.latent, lenses: parts })?;
        let latent = Remote::latent(team, instances, options.latent)?;
        let latent = Scan::elsewhere(&latent, team, Table::Latent, &stop);
        let rows = Rows { holders: team, scan, lenses, latent };
        let mut timings = Timings { prepare: clock.lap(), ..Timings::default() };

        let (mut descent, history, mut outcome) =
            self.descend(&rows, &stop, &mut timings, &mut clock, each)?;
        let (adopted, decision) = self.explored(&rows, plan, &stop)?;
        timings.neighbours = clock.lap();
        // What was found is told, whoever wants to stop now.
        let mut references = None;
        let Placed { scaling: latent_scaling, centres, clusters: found, sums } = match adopted {
            None => rows.place(options)?,
            Some(adopted) => {
                if let Some(fitted) = rows.adopt(&adopted, options, &stop)? {
                    descent = fitted;
                }
                references = adopted.references;
                rows.place_told(options)?
            }
        };
        let objective = descent.objective();
        let retained = Retained::new(&descent, rows.squares(), rows.scan.schema());
        let (bases, alignments) = descent.into_parts();
        let (means, sizes) = sums.means();
        let (views, missing_cells) = learnt(source.schema(), &rows.lenses, observed, bases, alignments, None);
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
        if !stop.is_set() {
            let latent = |some: &[u32]| rows_of(&rows.latent, some);
            chance::if_it_can_be_had(novelty::observe(&rows.scan, &mut model, latent))?;
        }
        let mut significance = None;
        if options.assess {
            let scalings: Vec<Scaling> = model.views.iter().map(|view| view.scaling.clone()).collect();
            if let Some(sampled) = self.sampled(&rows.scan, &scalings, others.as_deref())? {
                significance = self.significance(&sampled, &stop)?;
                let own = rows.labels(&found, &sampled.instances)?;
                model.reproducibility = self.reproducibility(&sampled, &own, &stop)?;
            }
        }
        let missingness = rows.missingness(&found, options)?;
        timings.assign += clock.lap();
        if stop.is_set() {
            outcome = Outcome::Cancelled;
        }
        let last = Request::Place { clusters: found, reproducibility: model.reproducibility, from: 0 };
        let fit = Fit {
            model,
            missing_cells,
            ids: Ids::Numbers(0),
            learnt: Learnt::default(),
            latent: Matrix::zeros(0, options.latent),
            map: None,
            labels: Vec::new(),
            confidence: Vec::new(),
            neighbours: decision,
            missingness,
            significance,
            runs: Vec::new(),
            objective,
            history,
            outcome,
            passes: team.views_read().div_ceil(source.views()),
            timings,
            device: DeviceUsed::default(),
        };
        Ok((fit, last_request(&last)?))
    }

    /// From the start to a V that can be clustered, as `Work::once` does with rows that are here.
    fn descend(
        &self,
        rows: &Rows<'_>,
        stop: &Stop,
        timings: &mut Timings,
        clock: &mut Clock,
        each: &mut (dyn FnMut(&Iteration) -> ControlFlow<()> + Send),
    ) -> Result<(Descent, Vec<Objective>, Outcome)> {
        let options = &self.options;
        let Options { initialisation, latent, restarts, seed, .. } = *options;
        let mut held = rows.held(options);
        let votes = Votes::gather(initialisation, &rows.scan, &rows.lenses, latent, restarts, seed)?;
        let statistics = rows.holders.ask(Request::Begin(votes.clone()))?.try_into()?;
        let mut descent = Descent::new(options, rows.squares(), votes.into_bases(), statistics)?;
        timings.initialise = clock.lap();

        let begun = clock.start;
        let (history, mut outcome) = descent.iterate(&mut held, stop, |number, objective, change| {
            let report = Iteration { run: 1, number, objective, change, elapsed: begun.elapsed() };
            if !stop.is_set() && each(&report).is_break() {
                stop.set();
            }
            if stop.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        timings.iterate = clock.lap();

        rows.holders.tell(Request::Rescale(descent.take_scale()))?;
        if !stop.is_set() {
            if options.consolidate && latent == options.clusters {
                self.watch.begin(Stage::Consolidate);
                descent = rows.consolidate(&mut held, options, stop)?;
            } else if options.settle {
                settle(&mut held, &mut descent, stop)?;
            }
        }
        if stop.is_set() {
            outcome = Outcome::Cancelled;
        }
        timings.assign = clock.lap();
        Ok((descent, history, outcome))
    }
}

impl Rows<'_> {
    /// All of them as one shard.
    fn held(&self, options: &Options) -> Held<'_> {
        Held { holders: self.holders, instances: self.scan.instances(), latent: options.latent }
    }

    fn squares(&self) -> Vec<f64> {
        self.lenses.iter().map(|lens| lens.sum_squares).collect()
    }

    /// Clusters V, starts again from the clusters, and makes one iteration.
    fn consolidate(&self, held: &mut Held<'_>, options: &Options, stop: &Stop) -> Result<Descent> {
        let (lens, centres) = clusters(&self.scan, &self.lenses, &self.latent, options)?;
        let found = unnumbered(lens.parts(), centres);
        let ClusterSums { sizes, .. } = self.sums(&found)?;
        let statistics = self.holders.ask(Request::Restart { clusters: found, sizes })?.try_into()?;
        let mut descent = settled(held, options, self.squares(), statistics, stop)?;
        self.holders.tell(Request::Rescale(descent.take_scale()))?;
        Ok(descent)
    }

    /// Clusters V, and numbers the clusters by size.
    fn place(&self, options: &Options) -> Result<Placed> {
        let rows = &self.latent;
        let scaling = Scaling::fit(rows, 0, options.latent_scale)?;
        let lens = Lens::new(rows, 0, scaling.clone())?;
        let first = Place::first(rows, &lens, options)?;
        let to_the_end = Stop::new();
        let centres = kmeans::centres(rows, &lens, &options.kmeans(first.as_ref(), &to_the_end))?;
        let sums = self.sums(&unnumbered(lens.parts(), centres.clone()))?;
        let order = numbering::order(&sums.sizes, &sums.first);
        let (numbered, numbers) = (numbering::columns(&centres, &order), numbering::numbers(&order));
        let clusters = Clusters::Nearest(Box::new(Nearest { lens: lens.parts(), centres, numbers }));
        Ok(Placed { scaling, centres: numbered, clusters, sums: sums.ordered(&order) })
    }

    /// The same of clusters that were told.
    fn place_told(&self, options: &Options) -> Result<Placed> {
        let (rows, clusters) = (&self.latent, options.clusters);
        let scaling = Scaling::fit(rows, 0, options.latent_scale)?;
        let lens = Lens::new(rows, 0, scaling.clone())?;
        let members: Forest<kmeans::Members> =
            self.holders.ask(Request::Means { lens: lens.parts(), clusters })?.try_into()?;
        let centres = members.sum(kmeans::Members::default())?.means(&lens, clusters);
        let clusters = Clusters::Told(clusters);
        Ok(Placed { scaling, centres, sums: self.sums(&clusters)?, clusters })
    }

    /// Sums over the instances of each cluster.
    fn sums(&self, found: &Clusters) -> Result<ClusterSums> {
        let sums: Forest<ClusterSums> = self.holders.ask(Request::Members(found.clone()))?.try_into()?;
        sums.sum(ClusterSums::new(found.count(), self.latent.schema().view(0).features()))
    }

    /// The clusters of some instances, in increasing order.
    fn labels(&self, found: &Clusters, instances: &[u32]) -> Result<Vec<usize>> {
        let request = Request::Labels { clusters: found.clone(), instances: instances.to_vec() };
        let mut labels: Vec<(u32, Vec<u32>)> = self.holders.ask(request)?.try_into()?;
        labels.sort_by_key(|(first, _)| *first);
        let labels: Vec<usize> =
            labels.into_iter().flat_map(|(_, own)| own).map(|own| own as usize).collect();
        if labels.len() != instances.len() {
            let (expected, found) = (instances.len(), labels.len());
            return Err(Error::LengthMismatch { what: "clusters of instances".into(), expected, found });
        }
        Ok(labels)
    }

    fn missingness(&self, found: &Clusters, options: &Options) -> Result<Missingness> {
        let labels_of = |chosen: &[usize]| {
            let mut instances: Vec<u32> = chosen.iter().map(|&i| index(i)).collect();
            instances.sort_unstable();
            instances.dedup();
            let labels = self.labels(found, &instances)?;
            let label = |&i: &usize| instances.binary_search(&index(i)).map_or(0, |at| labels[at]);
            Ok(chosen.iter().map(label).collect())
        };
        let lacking = || -> Result<Lacking> { self.holders.ask(Request::Lacking(found.clone()))?.try_into() };
        Missingness::asked(self.scan.schema(), options.clusters, options.seed, labels_of, lacking)
    }
}

/// Clusters that are numbered as they come.
fn unnumbered(lens: Parts, centres: Matrix) -> Clusters {
    Clusters::Nearest(Box::new(Nearest { lens, numbers: (0..centres.columns()).collect(), centres }))
}
