//! A partition: some of the instances, their rows in all views, and their part of V.
//!
//! A [`Reduction`] has a local half, which a [`Partition`] computes over its rows and its part of V, and a
//! [merge](Partial::merge) of two results. In one process the driver of a fit calls the local half directly; to other processes
//! the reduction is [sent as a message](registry).

pub(crate) mod clusters;
pub(crate) mod latent;
pub(crate) mod registry;
pub(crate) mod rows;
pub(crate) mod runs;

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::latent_rows::LatentRows;
use crate::place::Place;
use daimc_core::blocks::Blocks;
use daimc_core::scan::Scan;
use daimc_core::shard::Shard;
use daimc_core::source::Source;
use daimc_core::sweep::Sweep;
use daimc_core::table::{Partial, unsuitable};
use daimc_core::{Error, Matrix, Result, Stop};

/// Rows that can be passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TableId {
    /// The views as they were given.
    Given,
    /// The views with logarithms taken and missing cells filled.
    Prepared,
    /// V.
    Latent,
    /// The rows of V of several runs, side by side: this many columns.
    Runs(usize),
}

/// The effect of a reduction on the state of a partition: its prepared and scaled rows, V and labels. It determines which
/// requests a partition that replaces a lost one answers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Reads the state.
    None,
    /// Sets part of the state, which stays until the same reduction sets it again.
    Sets,
    /// Computes V from data in the request: earlier changes of V become irrelevant.
    Begins,
    /// Changes V or labels, based on their present values.
    Changes,
    /// Saves V before an attempt at a better one.
    Saves,
    /// Ends such an attempt and restores V.
    Restores,
    /// Ends such an attempt and keeps the new V.
    Accepts,
    /// Stores something derived from V permanently.
    Keeps,
    /// Resets all state.
    Resets,
}

/// A computation over the instances of all partitions.
pub(crate) trait Reduction: Serialize + DeserializeOwned + Send + Sync {
    /// The name in messages.
    const NAME: &'static str;
    /// The result over some of the instances.
    type Partial: Partial;

    /// Its effect on the state of a partition.
    fn effect(&self) -> Effect {
        Effect::None
    }

    /// The number of views, out of this many, of which it reads all rows.
    fn views_read(&self, _views: usize) -> usize {
        0
    }

    /// The result over the instances of a partition.
    ///
    /// # Errors
    /// When rows cannot be read, when the partition is stopped, or when it lacks the state that the reduction needs.
    fn local(&self, partition: &mut Partition<'_>) -> Result<Self::Partial>;
}

/// A range of the instances of a data set, with their rows in all views, and their part of V, labels and confidence.
///
/// The driver of a [distributed fit](crate::Daimc::fit_on) sends requests, which every partition [answers](Self::answer); answers
/// are [merged](crate::merge) in any order. V stays in the partition from request to request. After the fit,
/// [`place`](Self::place) returns the results for the instances of the partition.
///
/// ```
/// use daimc::{Daimc, Executor, Neighbours, Partition, Result, Task, View, Views, aligned, merge};
///
/// /// Partitions in this process, one after the other.
/// struct Sequential<'a>(Vec<Partition<'a>>);
///
/// impl Executor for Sequential<'_> {
///     fn instances(&self) -> usize {
///         self.0.iter().map(Partition::instances).sum()
///     }
///
///     fn run(&mut self, task: &Task<'_>) -> Result<Vec<u8>> {
///         let answers = self.0.iter_mut().map(|partition| partition.answer(task.request));
///         answers.reduce(|one, other| merge(&one?, &other?)).expect("there is a partition")
///     }
/// }
///
/// let n = 40_000;
/// let values: Vec<f64> = (0..2 * n).map(|cell| ((cell / 2 % 3) * (1 + cell % 2)) as f64).collect();
/// let ranges = aligned(n, 2);
/// let rows = |range: &std::ops::Range<usize>| values[2 * range.start..2 * range.end].to_vec();
/// let views: Vec<Views> = ranges
///     .iter()
///     .map(|range| Views::part(vec![View::dense("x", 2, rows(range))?]))
///     .collect::<Result<_>>()?;
/// let partitions = views.iter().zip(&ranges).map(|(views, range)| Partition::new(views, range.clone(), n));
/// let mut partitions = Sequential(partitions.collect::<Result<_>>()?);
///
/// let options = Daimc::new(3).neighbours(Neighbours::Off).assess(false);
/// let fit = options.fit_on(&mut partitions, |_| std::ops::ControlFlow::Continue(()))?;
/// let second = partitions.0[1].place()?;
/// assert_eq!(fit.labels[ranges[1].clone()], second.labels);
/// # Ok::<(), daimc::Error>(())
/// ```
pub struct Partition<'a> {
    given: Scan<'a>,
    prepared: Option<Scan<'a>>,
    sweep: Option<Arc<Sweep<'a>>>,
    latent: Latent<'a>,
    /// V before an attempt at a better one.
    saved: Option<Arc<Matrix>>,
    /// States of row reductions, by name.
    states: HashMap<&'static str, Box<dyn Any + Send>>,
    found: Option<Found>,
    /// Shared by all forks.
    runs: Arc<Mutex<BTreeMap<u32, Run>>>,
    stacked: Option<Scan<'a>>,
    forks: BTreeMap<u32, Partition<'a>>,
}

/// V of a partition.
enum Latent<'a> {
    None,
    Host(Arc<Matrix>),
    /// With the shard that sweeps it: in memory or on an accelerator.
    Shard(Box<dyn Shard + 'a>),
}

/// The data of a run that a partition keeps.
struct Run {
    /// The rows of V, scaled to length 1, in single precision; empty once they are stacked.
    rows: Vec<f32>,
    latent: usize,
    labels: Vec<u32>,
}

/// The clusters of the instances, and their margins or confidence.
struct Found {
    labels: Vec<usize>,
    confidence: Vec<f64>,
}

impl<'a> Partition<'a> {
    /// The rows of a source, which are `range` of `total` instances: one of [`aligned`](daimc_core::aligned).
    ///
    /// # Errors
    /// When the number of instances of the range differs from that of the source, or when the range does not consist of whole
    /// [`leaves`](daimc_core::leaves).
    pub fn new(source: &'a dyn Source, range: Range<usize>, total: usize) -> Result<Self> {
        let wrong = |reason: String| Error::Unsuitable { what: "range", value: format!("{range:?}"), reason };
        if range.len() != source.instances() {
            return Err(wrong(format!("the source has {} instances", source.instances())));
        }
        let blocks = Blocks::some(range.clone(), total).ok_or_else(|| {
            wrong(format!("not whole leaves of {total} instances; use ranges from `aligned`"))
        })?;
        Ok(Self::of(Scan::part(source, blocks, &Stop::new())))
    }

    pub(crate) fn of(given: Scan<'a>) -> Self {
        Self {
            given,
            prepared: None,
            sweep: None,
            latent: Latent::None,
            saved: None,
            states: HashMap::new(),
            found: None,
            runs: Arc::default(),
            stacked: None,
            forks: BTreeMap::new(),
        }
    }

    /// The number of instances.
    pub fn instances(&self) -> usize {
        self.blocks().instances()
    }

    /// The results for the instances of the partition, once the fit has ended: rows of V, clusters and confidence.
    ///
    /// # Errors
    /// When no fit has ended.
    pub fn place(&mut self) -> Result<Place> {
        let latent = self.latent()?.as_ref().clone();
        let Found { labels, confidence } = self.found()?;
        Ok(Place { latent, labels: labels.clone(), confidence: confidence.clone() })
    }

    /// The results, from a partition that is no longer needed.
    pub(crate) fn into_place(mut self) -> Result<Place> {
        let latent = self.latent()?;
        self.latent = Latent::None;
        let latent = Arc::try_unwrap(latent).unwrap_or_else(|shared| shared.as_ref().clone());
        let Found { labels, confidence } =
            self.found.ok_or_else(|| unsuitable("there are no clusters yet"))?;
        Ok(Place { latent, labels, confidence })
    }

    /// The same rows with a V of their own.
    pub(crate) fn fork(&self) -> Self {
        Self {
            prepared: self.prepared.clone(),
            sweep: self.sweep.clone(),
            runs: self.runs.clone(),
            ..Self::of(self.given.clone())
        }
    }

    /// The fork with a number; 0 is the partition itself.
    pub(crate) fn forked(&mut self, number: u32) -> Result<&mut Self> {
        if number == 0 {
            return Ok(self);
        }
        if !self.forks.contains_key(&number) {
            self.sweep()?;
            self.forks.insert(number, self.fork());
        }
        self.forks.get_mut(&number).ok_or_else(|| unsuitable("there is no such fork"))
    }

    pub(crate) fn blocks(&self) -> &Blocks {
        self.given.blocks()
    }

    /// The rows of a table.
    pub(crate) fn table(&mut self, table: TableId) -> Result<Scan<'a>> {
        let prepared = || unsuitable("the rows are not prepared yet");
        match table {
            TableId::Given => Ok(self.given.clone()),
            TableId::Prepared => self.prepared.clone().ok_or_else(prepared),
            TableId::Latent => {
                let rows = LatentRows::new(self.latent()?)?;
                Ok(Scan::shared(Arc::new(rows), *self.blocks(), &Stop::new()))
            }
            TableId::Runs(_) => self.stacked.clone().ok_or_else(|| unsuitable("no runs are stacked yet")),
        }
    }

    /// Hands the scaled rows to an accelerator.
    pub(crate) fn hand_over<T>(&mut self, work: impl FnOnce(&mut Sweep<'a>) -> Result<T>) -> Result<T> {
        let sweep = self.sweep.as_mut().and_then(Arc::get_mut);
        work(sweep.ok_or_else(|| unsuitable("the scaled rows are in use"))?)
    }

    pub(crate) fn sweep(&self) -> Result<&Arc<Sweep<'a>>> {
        self.sweep.as_ref().ok_or_else(|| unsuitable("the views are not scaled yet"))
    }

    /// V, copied back from an accelerator if necessary.
    pub(crate) fn latent(&mut self) -> Result<Arc<Matrix>> {
        if let Latent::Shard(_) = &self.latent
            && let Latent::Shard(shard) = std::mem::replace(&mut self.latent, Latent::None)
        {
            let v = shard.into_latent();
            if !v.is_finite() && self.sweep()?.resident().is_some() {
                return Err(daimc_core::accelerator::refused(
                    "the accelerator",
                    "V could not be copied back; use the CPU",
                ));
            }
            self.latent = Latent::Host(Arc::new(v));
        }
        match &self.latent {
            Latent::Host(v) => Ok(v.clone()),
            _ => Err(unsuitable("there is no V yet")),
        }
    }

    fn found(&self) -> Result<&Found> {
        self.found.as_ref().ok_or_else(|| unsuitable("there are no clusters yet"))
    }
}
