//! The runs of a fit: from a start to a V that can be clustered.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rayon::prelude::*;

use super::{Daimc, Iteration, Run, Timings};
use crate::backend::{AllRows, Backend};
use crate::combine;
use crate::consolidate::{self, attempt, solve_to_optimality};
use crate::descent::{Descent, Outcome};
use crate::initialise::Votes;
use crate::leaders::Leaders;
use crate::options::Options;
use crate::partition::TableId;
use crate::partition::clusters::Assign;
use crate::partition::latent::{Begin, Rescale, Start};
use crate::partition::runs::Keep;
use crate::place;
use daimc_core::index::index;
use daimc_core::statistics::Statistics;
use daimc_core::steps::basis::Bases;
use daimc_core::steps::objective::Objective;
use daimc_core::table::Table;
use daimc_core::{Error, Result, Stop};

/// The progress and results of a run.
pub(super) struct Course {
    pub seed: u64,
    pub history: Vec<Objective>,
    pub outcome: Outcome,
    pub clock: Clock,
}

impl Course {
    /// The summary in a fit of several runs.
    pub fn summary(&self, agreement: f64) -> Run {
        let objective = self.history.last().map_or(f64::NAN, |last| last.total);
        Run { seed: self.seed, iterations: self.history.len(), objective, agreement }
    }
}

/// The callback after each iteration.
pub(super) type Each<'a> = &'a mut (dyn FnMut(&Iteration) -> ControlFlow<()> + Send);

/// What the runs of a fit share.
pub(super) struct Runs<'a> {
    fit: &'a Daimc,
    stop: &'a Stop,
    each: Mutex<Each<'a>>,
    begun: Instant,
}

/// The runs of a fit, after which V stands for what they found together.
pub(super) struct Combined<B> {
    pub rows: B,
    pub descent: Descent,
    pub courses: Vec<Course>,
    /// The features that lead the clusters of each run.
    pub leaders: Vec<Leaders>,
}

impl<'f> Runs<'f> {
    pub fn new(fit: &'f Daimc, stop: &'f Stop, each: Each<'f>, begun: Instant) -> Self {
        Self { fit, stop, each: Mutex::new(each), begun }
    }

    /// One run, from its start to a V that can be clustered.
    ///
    /// # Errors
    /// [`Error::Interrupted`] only if it was stopped before the end of its first iteration.
    pub fn once<'a, B: Backend<'a>>(
        &self,
        rows: &B,
        options: &Options,
        run: usize,
    ) -> Result<(Descent, Course)> {
        let mut clock = Clock::new();
        let (statistics, bases) = self.fit.begin(rows, options.seed)?;
        let mut descent = Descent::new(options, consolidate::squares(rows)?, bases, statistics)?;
        clock.lap(|own| &mut own.initialise);

        let (history, mut outcome) =
            descent.iterate(&mut AllRows(rows), self.stop, |number, objective, change| {
                self.report(&Iteration { run, number, objective, change, elapsed: self.begun.elapsed() })
            })?;
        clock.lap(|own| &mut own.iterate);

        rows.run(Rescale(descent.take_scale()))?;
        if !self.stop.is_set() {
            let refined = if options.consolidate && options.latent == options.clusters {
                attempt(rows, || consolidate::consolidate(rows, options, &self.fit.watch))?
            } else if options.solve_to_optimality {
                attempt(rows, || {
                    let mut descent = descent.clone();
                    solve_to_optimality(&mut AllRows(rows), &mut descent, self.stop).map(|()| descent)
                })?
            } else {
                None
            };
            descent = refined.unwrap_or(descent);
        }
        if self.stop.is_set() {
            outcome = Outcome::Interrupted;
        }
        clock.lap(|own| &mut own.assign);
        Ok((descent, Course { seed: options.seed, history, outcome, clock }))
    }

    fn report(&self, report: &Iteration) -> ControlFlow<()> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.stop.is_set() && each(report).is_break() {
            self.stop.set();
        }
        if self.stop.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Several runs, and one more iteration from the clusters that they find together. As many run at a time as the backend
    /// allows; V of finished runs is kept in single precision.
    pub fn combined<'a, B: Backend<'a>>(&self, rows: B) -> Result<Combined<B>> {
        let options = &self.fit.options;
        let one = |run: usize| -> Result<Option<(Leaders, Course, Descent, B)>> {
            if self.stop.is_set() {
                return Ok(None);
            }
            let own = Options { seed: seed_of_run(options.seed, run), ..options.clone() };
            let fork = rows.fork()?;
            let (descent, mut course) = match self.once(&fork, &own, run + 1) {
                Err(Error::Interrupted) => return fork.release().map(|()| None),
                ended => ended?,
            };
            let (_, scaled_view, centres) =
                place::cluster_columns(&fork.table(TableId::Latent, &Stop::new())?, &own)?;
            fork.run(Assign {
                table: TableId::Latent,
                scaled_view: scaled_view.parts(),
                centres: centres.clone(),
            })?;
            fork.run(Keep { run: index(run) })?;
            let leaders = Leaders::of(descent.alignments(), &centres);
            course.clock.lap(|own| &mut own.assign);
            Ok(Some((leaders, course, descent, fork)))
        };
        let (mut courses, mut leaders) = (Vec::new(), Vec::new());
        let mut first: Option<(Descent, B)> = None;
        let mut begun = 0;
        while begun < options.runs && !self.stop.is_set() {
            let end = begun.saturating_add(rows.concurrency()).min(options.runs);
            let some = (begun..end).into_par_iter().with_max_len(1);
            for (own, course, descent, fork) in
                some.map(one).collect::<Result<Vec<_>>>()?.into_iter().flatten()
            {
                leaders.push(own);
                courses.push(course);
                match first {
                    None => first = Some((descent, fork)),
                    Some(_) => fork.release()?,
                }
            }
            begun = end;
        }
        // Combining requires that one run has completed an iteration.
        let Some((descent, fork)) = first else { return Err(Error::Interrupted) };
        match combine::combine(&rows, options, courses.len()) {
            // Returns the first run, which is still in memory.
            Err(Error::Interrupted) => Ok(Combined { rows: fork, descent, courses, leaders }),
            combined => {
                fork.release()?;
                Ok(Combined { descent: combined?, rows, courses, leaders })
            }
        }
    }
}

impl Daimc {
    /// Makes the first V, and returns its statistics and the bases to begin with.
    fn begin<'a, B: Backend<'a>>(&self, rows: &B, seed: u64) -> Result<(Statistics, Bases)> {
        let Options { latent, restarts, initialisation, .. } = self.options;
        let prepared = rows.table(TableId::Prepared, rows.stop())?;
        let Some(v) = &self.start else {
            let scaled_views = rows.scaled_views()?;
            let votes =
                Votes::gather(initialisation, prepared.rows(), &scaled_views, latent, restarts, seed)?;
            return Ok((rows.run(Begin(votes.clone()))?, votes.into_bases()));
        };
        Ok((rows.run(Start(v.clone()))?, Bases::Fitted))
    }
}

/// The first run has the seed of the fit; the others are far from commonly chosen seeds.
fn seed_of_run(seed: u64, run: usize) -> u64 {
    seed.wrapping_add((run as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Divides the time since its creation between the stages of a fit, without a gap: after a lap, [`Timings::total`] is the time
/// until then.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub start: Instant,
    lap: Instant,
    pub timings: Timings,
}

impl Clock {
    pub fn new() -> Self {
        let now = Instant::now();
        Self { start: now, lap: now, timings: Timings::default() }
    }

    /// Adds the time since the last lap to a stage.
    pub fn lap(&mut self, stage: impl FnOnce(&mut Timings) -> &mut f64) {
        *stage(&mut self.timings) += self.since();
    }

    /// Divides the time since the last lap between the stages of runs, some of which were concurrent.
    pub fn lap_of(&mut self, courses: &[Course]) {
        let sum =
            |stage: fn(&Timings) -> f64| courses.iter().map(|own| stage(&own.clock.timings)).sum::<f64>();
        let part = self.since() / sum(Timings::total).max(f64::MIN_POSITIVE);
        self.timings.initialise += part * sum(|own| own.initialise);
        self.timings.iterate += part * sum(|own| own.iterate);
        self.timings.assign += part * sum(|own| own.assign);
    }

    /// Seconds since the last lap.
    fn since(&mut self) -> f64 {
        let before = std::mem::replace(&mut self.lap, Instant::now());
        self.lap.duration_since(before).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_add_up_to_the_time_until_the_last_lap() {
        let run = |seed: u64| {
            let mut clock = Clock::new();
            clock.lap(|own| &mut own.initialise);
            clock.lap(|own| &mut own.iterate);
            clock.lap(|own| &mut own.assign);
            Course { seed, history: Vec::new(), outcome: Outcome::Converged, clock }
        };
        let mut clock = Clock::new();
        clock.lap(|own| &mut own.prepare);
        let courses: Vec<Course> = (0..3).map(run).collect();
        clock.lap_of(&courses);
        clock.lap(|own| &mut own.assign);
        clock.lap(|own| &mut own.assess);
        clock.lap(|own| &mut own.assign);
        let elapsed = clock.lap.duration_since(clock.start).as_secs_f64();
        assert!((clock.timings.total() - elapsed).abs() <= 1e-9 * elapsed, "{:?} {elapsed}", clock.timings);
    }
}
