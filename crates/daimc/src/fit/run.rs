//! The runs of a fit: from a start to a V that can be clustered.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rayon::prelude::*;

use super::{Daimc, Iteration, Outcome, Timings};
use crate::combine::Runs;
use crate::consolidate::{consolidate, from_clusters};
use crate::explain::leaders::Leaders;
use crate::lens::Lens;
use crate::model::{Place, Run};
use crate::options::Options;
use crate::source::Source;
use crate::state::State;
use crate::steps::objective::Objective;
use crate::sweep::Sweep;
use crate::watch::Watch;
use crate::{Error, Matrix, Result};

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

/// What is asked after each iteration.
type Each<'a> = &'a mut (dyn FnMut(&Iteration) -> ControlFlow<()> + Send);

/// A fit at work: what its runs share.
pub(super) struct Work<'a> {
    fit: &'a Daimc,
    source: &'a dyn Source,
    lenses: &'a [Lens],
    sweep: &'a Sweep<'a>,
    /// The same, but for rows that are refused once the fit is stopped.
    stoppable: &'a Sweep<'a>,
    each: Mutex<Each<'a>>,
    /// Whether `each` or the flag of the fit has asked to stop.
    stop: AtomicBool,
    begun: Instant,
}

impl<'a> Work<'a> {
    pub fn new(
        fit: &'a Daimc,
        source: &'a dyn Source,
        lenses: &'a [Lens],
        [sweep, stoppable]: [&'a Sweep<'a>; 2],
        each: Each<'a>,
        begun: Instant,
    ) -> Self {
        Self {
            fit,
            source,
            lenses,
            sweep,
            stoppable,
            each: Mutex::new(each),
            stop: AtomicBool::new(false),
            begun,
        }
    }

    /// One run, from its start to a V that can be clustered, which has left its state. A run that is stopped after its
    /// iterations ends with the V of the last.
    pub fn once<'o>(&self, options: &'o Options, run: usize) -> Result<(State<'o>, Matrix, Course)>
    where
        'a: 'o,
    {
        let mut clock = Clock::new();
        let mut timings = Timings::default();
        let start = self.fit.begin(self.source, self.lenses, options.seed)?;
        let mut state = State::new(self.sweep, options, start)?;
        timings.initialise = clock.lap();

        let (mut history, mut outcome) = (Vec::<Objective>::new(), Outcome::IterationLimit);
        for number in 1..=options.max_iterations {
            let objective = state.iterate()?;
            let change = history.last().map_or(f64::INFINITY, |last| {
                (last.total - objective.total).abs() / last.total.max(f64::MIN_POSITIVE)
            });
            history.push(objective);
            let report = Iteration { run, number, objective, change, elapsed: self.begun.elapsed() };
            if self.tell(&report).is_break() {
                outcome = Outcome::Cancelled;
                break;
            }
            if change <= options.tolerance {
                outcome = Outcome::Converged;
                break;
            }
        }
        timings.iterate = clock.lap();

        let consolidates = options.consolidate && options.latent == options.clusters;
        if options.settle && !consolidates {
            state.settle()?;
        }
        let mut v = state.take_v();
        if consolidates {
            match consolidate(self.source, self.lenses, self.stoppable, options, &v, &self.fit.watch) {
                Err(Error::Interrupted) => outcome = Outcome::Cancelled,
                consolidated => {
                    state = consolidated?;
                    v = state.take_v();
                }
            }
        }
        timings.assign = clock.lap();
        Ok((state, v, Course { seed: options.seed, history, outcome, timings }))
    }

    fn tell(&self, report: &Iteration) -> ControlFlow<()> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = self.stop.load(Ordering::Relaxed);
        if !stopped && each(report).is_continue() && !self.fit.watch.stopped() {
            return ControlFlow::Continue(());
        }
        self.stop.store(true, Ordering::Relaxed);
        ControlFlow::Break(())
    }

    /// Several runs, and one more iteration from the clusters that they find together. There are as many at a time as there
    /// are threads; of those that are done V is kept in single precision.
    pub fn combined(&self) -> Result<(State<'a>, Vec<Course>, Runs)> {
        let options = &self.fit.options;
        let one = |run: usize| -> Result<Option<(Place, Leaders, Course)>> {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let own = Options { seed: seed_of_run(options.seed, run), ..options.clone() };
            let (state, v, mut course) = self.once(&own, run + 1)?;
            let mut clock = Clock::new();
            let (_, centres, place) = Place::by_columns(v, &own, &Watch::default())?;
            let leaders = Leaders::of(&state.alignments, &centres);
            course.timings.assign += clock.lap();
            Ok(Some((place, leaders, course)))
        };
        let mut runs = Runs::default();
        let mut courses = Vec::new();
        let mut begun = 0;
        while begun < options.runs && !self.stop.load(Ordering::Relaxed) {
            let end = begun.saturating_add(rayon::current_num_threads()).min(options.runs);
            let some = (begun..end).into_par_iter().with_max_len(1);
            for (place, leaders, course) in some.map(one).collect::<Result<Vec<_>>>()?.into_iter().flatten() {
                runs.add(&place, leaders);
                courses.push(course);
            }
            begun = end;
        }
        let state = from_clusters(self.sweep, options, runs.combine(options)?)?;
        Ok((state, courses, runs))
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
