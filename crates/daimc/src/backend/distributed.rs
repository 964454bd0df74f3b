//! Rows in partitions that an executor reaches: other threads, processes or machines.

mod log;
mod schema;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::gathered::{GatheredRows, fetch_latent};
use super::{Backend, Gathered};
use crate::latent_rows::LatentRows;
use crate::partition::rows::{Describe, Over, Pick, Prepare, Read, Reset, ScaleViews, in_order};
use crate::partition::{Reduction, TableId, clusters, registry, runs};
use crate::place::Place;
use daimc_core::accelerator::{Accelerator, Use, refused};
use daimc_core::blocks::Blocks;
use daimc_core::index::index;
use daimc_core::scale::Observed;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::Scan;
use daimc_core::source::{Buffer, RandomAccess, ReadError, Source};
use daimc_core::sweep::Sweep;
use daimc_core::table::{RowReduction, Table, unsuitable};
use daimc_core::watch::Watch;
use daimc_core::{Matrix, Result, Schema, Stop};
use daimc_graph::neighbours::Shortened;
use log::Log;

/// A task of a distributed fit, which the executor sends to every partition.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Task<'a> {
    /// Tasks are numbered from 1.
    pub number: u64,
    /// The request, for [`Partition::answer`](crate::Partition::answer).
    pub request: &'a [u8],
    /// The numbers of the earlier tasks that the state of a partition follows from, in increasing order. A partition that takes the
    /// place of a lost one answers [`reset`] and their requests first, and is then in the state of the lost one. A number that a
    /// setup no longer has is in no later one.
    pub setup: &'a [u64],
}

/// Carries tasks to the partitions of a data set.
///
/// [`Daimc::fit_on`](crate::Daimc::fit_on) calls [`run`](Self::run) from the thread that drives the fit, some tens of times and once
/// per iteration, and waits for each answer. The executor sends the request to every [`Partition`](crate::Partition), each of which
/// answers exactly once, and [merges](crate::merge) the answers, in any order. A second answer to the same task can change the state
/// of a partition: one that may have answered already is reset first. Every fit numbers its tasks from 1. An error ends the fit; to stop a fit and keep its
/// result so far, set the switch of [`Daimc::stop`](crate::Daimc::stop). See [`Partition`](crate::Partition) for an example.
pub trait Executor: Send {
    /// The number of instances in all partitions. Each partition has one of the ranges of [`aligned`](daimc_core::aligned).
    fn instances(&self) -> usize;

    /// Runs a task on all partitions and returns their merged answers.
    ///
    /// # Errors
    /// The error of a partition, or [`Error::Partition`](daimc_core::Error::Partition) if it cannot be reached.
    fn run(&mut self, task: &Task<'_>) -> Result<Vec<u8>>;
}

/// Merges the answers of two partitions to the same request, or answers that are merged already.
///
/// # Errors
/// When they do not answer the same request, or when both cover the same instances.
pub fn merge(one: &[u8], other: &[u8]) -> Result<Vec<u8>> {
    registry::merge(one, other)
}

/// The request by which a partition forgets everything but its rows, before it answers the [setup](Task::setup) of a task.
///
/// # Panics
/// Never: it has no content.
#[must_use]
pub fn reset() -> Vec<u8> {
    registry::request(0, &Reset).expect("a request without content")
}

/// Numbers tasks and records which requests determine the state of the partitions.
struct Coordinator<'a> {
    executor: &'a mut dyn Executor,
    number: u64,
    log: Log,
    forks: u32,
    /// The number of times that all rows of a view were read.
    views_read: usize,
}

/// A data set in partitions that an executor reaches, with one V.
pub(crate) struct Distributed<'a> {
    coordinator: Arc<Mutex<Coordinator<'a>>>,
    stop: Stop,
    fork: u32,
    given: Arc<Schema>,
    prepared: Option<Arc<Schema>>,
    scaled_views: Option<Arc<[ScaledView]>>,
    latent: usize,
}

impl Coordinator<'_> {
    fn run<R: Reduction>(&mut self, fork: u32, reduction: &R, views: usize) -> Result<R::Partial> {
        self.number += 1;
        let (request, setup) = (registry::request(fork, reduction)?, self.log.setup());
        let task = Task { number: self.number, request: &request, setup: &setup };
        let answer = registry::result::<R>(&self.executor.run(&task)?)?;
        self.log.keep(fork, self.number, R::NAME, reduction.effect());
        self.views_read += reduction.views_read(views);
        Ok(answer)
    }
}

impl<'a> Distributed<'a> {
    pub fn new(executor: &'a mut dyn Executor, stop: &Stop) -> Result<Self> {
        let instances = executor.instances();
        let mut coordinator =
            Coordinator { executor, number: 0, log: Log::default(), forks: 0, views_read: 0 };
        let given = Arc::new(schema::whole(coordinator.run(0, &Describe, 0)?, instances)?);
        Ok(Self {
            coordinator: Arc::new(Mutex::new(coordinator)),
            stop: stop.clone(),
            fork: 0,
            given,
            prepared: None,
            scaled_views: None,
            latent: 0,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Coordinator<'a>> {
        self.coordinator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn schema(&self, table: TableId) -> Result<Arc<Schema>> {
        let instances = self.given.instances();
        match table {
            TableId::Given => Ok(self.given.clone()),
            TableId::Prepared => self.prepared.clone().ok_or_else(|| unsuitable("rows are not prepared yet")),
            TableId::Latent => LatentRows::schema(instances, self.latent).map(Arc::new),
            TableId::Runs(columns) => runs::schema(instances, columns).map(Arc::new),
        }
    }
}

impl<'a> Backend<'a> for Distributed<'a> {
    type Rows<'t>
        = DistributedTable<'t, 'a>
    where
        Self: 't;

    fn table(&self, table: TableId, stop: &Stop) -> Result<DistributedTable<'_, 'a>> {
        let schema = self.schema(table)?;
        let blocks = Blocks::all(schema.instances());
        let single = Arc::new(SingleRows { backend: self, table, schema });
        Ok(DistributedTable { backend: self, table, single: Scan::shared(single, blocks, stop) })
    }

    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn prepare(&mut self, observed: &[Observed]) -> Result<()> {
        self.run(Prepare(observed.iter().map(|view| view.preparation.clone()).collect()))?;
        self.prepared = Some(Arc::new(schema::prepared(&self.given, observed)?));
        Ok(())
    }

    fn scale(&mut self, scaled_views: Vec<ScaledView>, latent: usize) -> Result<()> {
        self.run(ScaleViews { latent, scaled_views: scaled_views.iter().map(ScaledView::parts).collect() })?;
        (self.scaled_views, self.latent) = (Some(scaled_views.into()), latent);
        Ok(())
    }

    fn hand_to(&mut self, accelerator: &dyn Accelerator, _: Use) -> Result<()> {
        Err(refused(&accelerator.name(), "not supported for distributed fits; use the device cpu"))
    }

    fn scaled_views(&self) -> Result<Arc<[ScaledView]>> {
        self.scaled_views.clone().ok_or_else(|| unsuitable("the views are not scaled yet"))
    }

    fn run<R: Reduction>(&self, reduction: R) -> Result<R::Partial> {
        let views = self.given.len();
        // A fit that is stopped still puts V and the clusters in order.
        if reduction.views_read(views) > 0 {
            self.stop.check()?;
        }
        self.lock().run(self.fork, &reduction, views)
    }

    fn fork(&self) -> Result<Self> {
        self.scaled_views()?;
        let mut all = self.lock();
        all.forks += 1;
        let fork = all.forks;
        drop(all);
        Ok(Self {
            coordinator: self.coordinator.clone(),
            stop: self.stop.clone(),
            fork,
            given: self.given.clone(),
            prepared: self.prepared.clone(),
            scaled_views: self.scaled_views.clone(),
            latent: self.latent,
        })
    }

    fn release(self) -> Result<()> {
        self.run(Reset)
    }

    fn concurrency(&self) -> usize {
        1
    }

    const GATHERS: bool = true;

    fn gather(&self, seed: u64, watch: &Watch) -> Result<Gathered<'a>> {
        let (rows, whole) = (self.table(TableId::Prepared, &watch.stop)?, self.scaled_views()?);
        let shorten = |(view, scaled_view)| Shortened::new(rows.rows(), view, scaled_view, seed, watch);
        let shortened = whole.iter().enumerate().map(shorten).collect::<Result<Vec<_>>>()?;
        let read = |read: Read| self.run(read);
        let gathered = GatheredRows::views(&read, rows.schema(), &shortened, &watch.stop)?;
        let v = Arc::new(fetch_latent(&read, &*self.schema(TableId::Latent)?, &watch.stop)?);
        let scan = Scan::shared(Arc::new(gathered), Blocks::all(rows.instances()), &watch.stop);
        let scaled_view =
            |(view, shortened): (usize, &Shortened)| shortened.scaled_view(&scan, view, &whole[view]);
        let scaled_views = shortened.iter().enumerate().map(scaled_view).collect::<Result<Vec<_>>>()?;
        let sweep = Arc::new(Sweep::new(scan, scaled_views, self.latent));
        let shortened = shortened.into_iter().enumerate().map(|(view, own)| (own, view)).collect();
        Ok(Gathered { sweep, v, shortened, whole })
    }

    fn latent(&self) -> Result<Arc<Matrix>> {
        fetch_latent(&|read| self.run(read), &*self.schema(TableId::Latent)?, &self.stop).map(Arc::new)
    }

    fn into_place(self, memory: Option<u64>) -> Result<Option<Place>> {
        let instances = self.given.instances();
        let bytes = (8 * self.latent + 16) as u64 * instances as u64;
        if memory.is_some_and(|memory| bytes > memory) {
            return Ok(None);
        }
        let latent = Arc::unwrap_or_clone(self.latent()?);
        let (mut labels, mut confidence) = (Vec::with_capacity(instances), Vec::with_capacity(instances));
        for start in (0..instances).step_by(RESULTS) {
            let range = start..(start + RESULTS).min(instances);
            for (own, sure) in in_order(self.run(clusters::Confidence(range))?) {
                labels.extend(own.into_iter().map(|label| label as usize));
                confidence.extend(sure);
            }
        }
        Ok(Some(Place { latent, labels, confidence }))
    }

    fn passes(&self) -> usize {
        self.lock().views_read.div_ceil(self.given.len().max(1))
    }
}

/// The number of instances whose results are sent at a time.
const RESULTS: usize = 1 << 20;

/// A table whose rows are in the partitions.
pub(crate) struct DistributedTable<'t, 'a> {
    backend: &'t Distributed<'a>,
    table: TableId,
    single: Scan<'t>,
}

impl Table for DistributedTable<'_, '_> {
    fn rows(&self) -> &Scan<'_> {
        &self.single
    }

    fn reduce<R: RowReduction>(&self, reduction: &R, _: &mut R::State) -> Result<R::Partial> {
        self.single.stop().check()?;
        self.backend.run(Over::<R> { table: self.table, request: reduction.request() })
    }
}

/// Single rows, fetched from the partitions.
struct SingleRows<'t, 'a> {
    backend: &'t Distributed<'a>,
    table: TableId,
    schema: Arc<Schema>,
}

impl Source for SingleRows<'_, '_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        RandomAccess::pick(self, view, &instances.map(index).collect::<Vec<u32>>(), buffer)
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        Some(self)
    }
}

impl RandomAccess for SingleRows<'_, '_> {
    fn pick(&self, view: usize, instances: &[u32], buffer: &mut Buffer) -> Result<(), ReadError> {
        let rows = self.backend.run(Pick { table: self.table, view, instances: instances.to_vec() })?;
        buffer.clear();
        in_order(rows).for_each(|mut rows| buffer.append(&mut rows));
        Ok(())
    }
}
