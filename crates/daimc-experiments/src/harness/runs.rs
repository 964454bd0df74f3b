//! Executes the runs that are not finished, one fit per thread.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::methods::Method;
use daimc::metrics::{self, Scores};

use super::contender::Contender;
use super::ledger::{Cell, Ledger, Row};
use super::monitor::Monitor;
use super::sample::Sample;
use crate::harness::{Error, Result};

/// A method on a sample of data.
pub struct Run<'a> {
    pub cell: Cell,
    pub sample: &'a Sample<'a>,
    pub fit: &'a dyn Method,
}

impl<'a> Run<'a> {
    pub fn new(
        experiment: &str,
        sample: &'a Sample<'a>,
        rate: f64,
        contender: &'a Contender,
        seed: u64,
    ) -> Self {
        let cell = Cell {
            experiment: experiment.into(),
            data: sample.name.clone(),
            rate,
            method: contender.method.into(),
            setting: contender.setting.clone(),
            seed,
        };
        Self { cell, sample, fit: contender.fit.as_ref() }
    }
}

/// A method that cannot handle the data, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    pub method: String,
    pub data: String,
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was left out on {}: {}", self.method, self.data, self.reason)
    }
}

/// Executes the runs that the ledger does not have, and appends each row as soon as it is known. With fewer runs than threads, a
/// fit has several threads. Returns the methods that cannot handle the data.
pub fn work(mut runs: Vec<Run<'_>>, ledger: &Ledger, monitor: &dyn Monitor) -> Result<Vec<Refusal>> {
    runs.retain(|run| !ledger.has(&run.cell));
    // Seed by seed: an interrupted series covers all methods and data sets.
    runs.sort_by_key(|run| run.cell.seed);
    monitor.begin(runs.len());
    let refused = if runs.is_empty() { Ok(Vec::new()) } else { series(&runs, ledger, monitor) };
    monitor.end();
    refused
}

fn series(runs: &[Run<'_>], ledger: &Ledger, monitor: &dyn Monitor) -> Result<Vec<Refusal>> {
    let threads = rayon::current_num_threads();
    let workers = threads.min(runs.len());
    let pace = Mutex::new(Pace::new(runs, workers, monitor));
    let (next, refused, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(None));
    let worker = || -> Result<()> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads / workers).build();
        let pool = pool.map_err(|error| Error::System(format!("threads cannot be started: {error}")))?;
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if monitor.interrupted() || lock(&failed).is_some() {
                break;
            }
            let start = Instant::now();
            match pool.install(|| one(run, monitor))? {
                Outcome::Found(row) => ledger.add(row)?,
                Outcome::Stopped => break,
                Outcome::Refused(reason) => {
                    let Cell { method, data, .. } = run.cell.clone();
                    lock(&refused).push(Refusal { method, data, reason });
                }
            }
            lock(&pace).done(&run.cell.method, start.elapsed());
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let work = || {
                if let Err(failure) = worker() {
                    lock(&failed).get_or_insert(failure);
                }
            };
            if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, work) {
                lock(&failed).get_or_insert(Error::System(format!("threads cannot be started: {error}")));
            }
        }
    });
    if let Some(failure) = lock(&failed).take() {
        return Err(failure);
    }
    let mut refused = std::mem::take(&mut *lock(&refused));
    refused.sort();
    // One setting is enough for the message.
    refused.dedup_by(|a, b| (&a.method, &a.data) == (&b.method, &b.data));
    Ok(refused)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Outcome {
    Found(Row),
    Refused(String),
    Stopped,
}

fn one(run: &Run<'_>, monitor: &dyn Monitor) -> Result<Outcome> {
    let Run { cell, sample, fit } = run;
    let start = Instant::now();
    let mut iterations = 0;
    let mut each = |number: usize, _: f64| {
        iterations = iterations.max(number);
        if monitor.interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let found = sample.with(cell.rate, cell.seed, |views, classes| {
        let found = match fit.fit(views, sample.data.clusters, cell.seed, &mut each) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let known = classes.iter().zip(found.labels).filter_map(|(class, label)| Some(((*class)?, label)));
        let (classes, labels): (Vec<usize>, Vec<usize>) = known.unzip();
        let scores =
            if classes.is_empty() { [f64::NAN; 3] } else { three(&metrics::scores(&classes, &labels)?) };
        let sure = found.confidence;
        let confidence = (!sure.is_empty()).then(|| sure.iter().sum::<f64>() / sure.len() as f64);
        Ok(Ok((scores, confidence)))
    })?;
    Ok(match found {
        _ if monitor.interrupted() => Outcome::Stopped,
        Err(reason) => Outcome::Refused(reason),
        Ok(([ac, nmi, ari], confidence)) => {
            let seconds = start.elapsed().as_secs_f64();
            Outcome::Found(Row { cell: cell.clone(), ac, nmi, ari, seconds, iterations, confidence })
        }
    })
}

/// The recorded scores.
fn three(scores: &Scores) -> [f64; 3] {
    [scores.ac, scores.nmi, scores.ari]
}

/// The progress of a series, and the time until its end. Methods differ a thousandfold in time, so each has a mean of its own.
struct Pace<'a> {
    monitor: &'a dyn Monitor,
    workers: usize,
    runs: usize,
    /// For each method: runs to come, finished runs, seconds of these.
    methods: HashMap<String, (usize, usize, f64)>,
}

impl<'a> Pace<'a> {
    fn new(runs: &[Run<'_>], workers: usize, monitor: &'a dyn Monitor) -> Self {
        let mut methods: HashMap<String, (usize, usize, f64)> = HashMap::new();
        runs.iter().for_each(|run| methods.entry(run.cell.method.clone()).or_default().0 += 1);
        Self { monitor, workers, runs: runs.len(), methods }
    }

    fn done(&mut self, method: &str, time: Duration) {
        if let Some((left, done, seconds)) = self.methods.get_mut(method) {
            *left -= 1;
            *done += 1;
            *seconds += time.as_secs_f64();
        }
        let done = self.methods.values().map(|method| method.1).sum();
        self.monitor.progress(done, self.runs, self.left());
    }

    /// Seconds until all runs are finished, once every method has finished one.
    fn left(&self) -> Option<f64> {
        let of = |&(left, done, seconds): &(usize, usize, f64)| match done {
            0 => None,
            done => Some(left as f64 * seconds / done as f64),
        };
        Some(self.methods.values().map(of).sum::<Option<f64>>()? / self.workers as f64)
    }
}
