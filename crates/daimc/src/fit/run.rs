//! The runs of a fit: from a start to a V that can be clustered.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rayon::prelude::*;

use super::{Daimc, Iteration, Outcome, Run, Timings};
use crate::accelerator::refused;
use crate::combine::Runs;
use crate::consolidate::{consolidate, from_clusters, settle};
use crate::descent::Descent;
use crate::initialise::Start;
use crate::leaders::Leaders;
use crate::options::Options;
use crate::place::Place;
use crate::steps::objective::Objective;
use crate::sweep::Sweep;
use crate::{Error, Matrix, Result, Stop};

/// How a run went.
pub(super) struct Course {
    pub seed: u64,
    pub history: Vec<Objective>,
    pub outcome: Outcome,
    pub timings: Timings,
}

impl Course {
    /// As the model tells of it.
    pub fn told(&self, agreement: f64) -> Run {
        let objective = self.history.last().map_or(f64::NAN, |last| last.total);
        Run { seed: self.seed, iterations: self.history.len(), objective, agreement }
    }
}

/// What one of several runs has found.
type Ended = (Place, Leaders, Course, Descent);

/// What is asked after each iteration.
type Each<'a> = &'a mut (dyn FnMut(&Iteration) -> ControlFlow<()> + Send);

/// A fit at work: what its runs share.
pub(super) struct Work<'a, 's> {
    fit: &'a Daimc,
    sweep: Arc<Sweep<'s>>,
    stop: &'a Stop,
    each: Mutex<Each<'a>>,
    begun: Instant,
}

impl<'a, 's> Work<'a, 's> {
    pub fn new(
        fit: &'a Daimc,
        sweep: Arc<Sweep<'s>>,
        stop: &'a Stop,
        each: Each<'a>,
        begun: Instant,
    ) -> Self {
        Self { fit, sweep, stop, each: Mutex::new(each), begun }
    }

    /// One run, from its start to a V that can be clustered.
    ///
    /// # Errors
    /// [`Error::Interrupted`] only if it was stopped before the end of its first iteration.
    pub fn once(&self, options: &Options, run: usize) -> Result<(Descent, Matrix, Course)> {
        let mut clock = Clock::new();
        let mut timings = Timings::default();
        let Start { v, statistics, bases } = self.fit.begin(&self.sweep, options.seed)?;
        let mut shard = self.sweep.shard_with(v, self.stop)?;
        let mut descent = Descent::new(options, self.sweep.sums_of_squares(), bases, statistics)?;
        timings.initialise = clock.lap();

        let (history, mut outcome) =
            descent.iterate(&mut *shard, self.stop, |number, objective, change| {
                self.tell(&Iteration { run, number, objective, change, elapsed: self.begun.elapsed() })
            })?;
        timings.iterate = clock.lap();

        let mut v = shard.into_latent();
        if self.sweep.resident().is_some() && !v.is_finite() {
            return Err(refused("the accelerator", "V could not be brought back; use the processor"));
        }
        descent.apply_scale(&mut v);
        if !self.stop.is_set() {
            let refined = if options.consolidate && options.latent == options.clusters {
                consolidate(&self.sweep, options, &v, &self.fit.watch)
            } else if options.settle {
                self.sweep.shard_with(v.clone(), self.stop).and_then(|mut shard| {
                    let mut descent = descent.clone();
                    settle(&mut *shard, &mut descent, self.stop)?;
                    Ok((descent, shard.into_latent()))
                })
            } else {
                Err(Error::Interrupted)
            };
            match refined {
                Err(Error::Interrupted) => {}
                refined => (descent, v) = refined?,
            }
        }
        if self.stop.is_set() {
            outcome = Outcome::Cancelled;
        }
        timings.assign = clock.lap();
        Ok((descent, v, Course { seed: options.seed, history, outcome, timings }))
    }

    fn tell(&self, report: &Iteration) -> ControlFlow<()> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.stop.is_set() && each(report).is_break() {
            self.stop.set();
        }
        if self.stop.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Several runs, and one more iteration from the clusters that they find together. There are as many at a time as there
    /// are threads; of those that are done V is kept in single precision.
    pub fn combined(&self) -> Result<(Descent, Matrix, Vec<Course>, Runs)> {
        let options = &self.fit.options;
        let to_the_end = Stop::new();
        let one = |run: usize| -> Result<Option<Ended>> {
            if self.stop.is_set() {
                return Ok(None);
            }
            let own = Options { seed: seed_of_run(options.seed, run), ..options.clone() };
            let (descent, v, mut course) = match self.once(&own, run + 1) {
                Err(Error::Interrupted) => return Ok(None),
                ended => ended?,
            };
            let mut clock = Clock::new();
            let (_, centres, place) = Place::by_columns(v, &own, &to_the_end)?;
            let leaders = Leaders::of(descent.alignments(), &centres);
            course.timings.assign += clock.lap();
            Ok(Some((place, leaders, course, descent)))
        };
        let mut runs = Runs::default();
        let mut courses = Vec::new();
        let mut first = None;
        let mut begun = 0;
        while begun < options.runs && !self.stop.is_set() {
            // An accelerator works for one at a time, and may have no room for another V.
            let at_once = if self.sweep.resident().is_some() { 1 } else { rayon::current_num_threads() };
            let end = begun.saturating_add(at_once).min(options.runs);
            let some = (begun..end).into_par_iter().with_max_len(1);
            let ended = some.map(one).collect::<Result<Vec<_>>>()?;
            for (place, leaders, course, descent) in ended.into_iter().flatten() {
                runs.add(&place, leaders);
                courses.push(course);
                first.get_or_insert((descent, place.latent));
            }
            begun = end;
        }
        // There is something to combine if one run has made an iteration.
        let Some(first) = first else { return Err(Error::Interrupted) };
        match runs.combine(options).and_then(|v| from_clusters(&self.sweep, options, v)) {
            // What the first of them has found is still there.
            Err(Error::Interrupted) => Ok((first.0, first.1, courses, runs)),
            combined => combined.map(|(descent, v)| (descent, v, courses, runs)),
        }
    }
}

/// The first run has the seed of the fit; the others are far from the seeds that people choose.
fn seed_of_run(seed: u64, run: usize) -> u64 {
    seed.wrapping_add((run as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// How the time of all runs, some of which went on at once, was shared between their stages.
pub(super) fn shared(courses: &[Course], elapsed: f64) -> Timings {
    let sum = |stage: fn(&Timings) -> f64| courses.iter().map(|course| stage(&course.timings)).sum::<f64>();
    let (initialise, iterate) = (sum(|own| own.initialise), sum(|own| own.iterate));
    let assign = sum(|own| own.assign);
    let part = elapsed / (initialise + iterate + assign).max(f64::MIN_POSITIVE);
    Timings {
        initialise: initialise * part,
        iterate: iterate * part,
        assign: assign * part,
        ..Timings::default()
    }
}

pub(super) struct Clock {
    pub start: Instant,
    lap: Instant,
}

impl Clock {
    pub fn new() -> Self {
        let now = Instant::now();
        Self { start: now, lap: now }
    }

    /// Seconds since the last time this was asked.
    pub fn lap(&mut self) -> f64 {
        let before = std::mem::replace(&mut self.lap, Instant::now());
        self.lap.duration_since(before).as_secs_f64()
    }
}
