//! Rows in this process: in memory, on disk, or on an accelerator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Backend, Gathered};
use crate::blocks::Blocks;
use crate::fit::Daimc;
use crate::lens::Lens;
use crate::model::Place;
use crate::neighbours::Plan;
use crate::options::Options;
use crate::partition::{Partition, TableId};
use crate::prepared::Prepared;
use crate::reduction::Reduction;
use crate::scale::Observed;
use crate::scan::Scan;
use crate::source::Source;
use crate::sweep::Sweep;
use crate::watch::Watch;
use crate::{DeviceUsed, Matrix, Result, Stop};

/// A single partition with all instances.
pub(crate) struct Local<'a> {
    source: &'a dyn Source,
    stop: Stop,
    partition: Mutex<Partition<'a>>,
}

impl<'a> Local<'a> {
    pub fn new(source: &'a dyn Source, stop: &Stop) -> Self {
        let partition = Partition::of(source, Blocks::all(source.instances()), stop);
        Self { source, stop: stop.clone(), partition: Mutex::new(partition) }
    }

    /// A source whose rows need no preparation, and how its views are scaled.
    pub fn scaled(source: &'a dyn Source, lenses: Vec<Lens>, latent: usize, stop: &Stop) -> Self {
        let local = Self::new(source, stop);
        local.lock().set_sweep(Sweep::new(Scan::new(source, stop), lenses, latent));
        local
    }

    pub fn sweep(&self) -> Result<Arc<Sweep<'a>>> {
        self.lock().sweep().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Partition<'a>> {
        self.partition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Backend<'a> for Local<'a> {
    type Rows<'t>
        = Scan<'t>
    where
        Self: 't;

    fn table(&self, table: TableId, stop: &Stop) -> Result<Scan<'_>> {
        Ok(self.lock().table(table)?.stopped_by(stop))
    }

    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn prepare(&mut self, observed: &[Observed]) -> Result<()> {
        let prepared = Prepared::observed(self.source, observed)?;
        self.lock().set_prepared(prepared);
        Ok(())
    }

    fn scale(&mut self, lenses: Vec<Lens>, latent: usize) -> Result<()> {
        let scan = self.lock().table(TableId::Prepared)?;
        self.lock().set_sweep(Sweep::new(scan, lenses, latent));
        Ok(())
    }

    fn hand_over(&mut self, fit: &Daimc) -> Result<DeviceUsed> {
        self.lock().hand_over(|sweep| fit.hand_over(sweep))
    }

    fn lenses(&self) -> Result<Arc<[Lens]>> {
        Ok(self.sweep()?.lenses.clone())
    }

    fn run<R: Reduction>(&self, reduction: R) -> Result<R::Partial> {
        reduction.local(&mut self.lock())
    }

    fn fork(&self) -> Result<Self> {
        let (source, stop) = (self.source, self.stop.clone());
        Ok(Self { source, stop, partition: Mutex::new(self.lock().fork()) })
    }

    fn release(self) -> Result<()> {
        Ok(())
    }

    fn concurrency(&self) -> usize {
        // An accelerator works for one fork at a time, and may not have the memory for another V.
        let resident = self.sweep().is_ok_and(|sweep| sweep.resident().is_some());
        if resident { 1 } else { rayon::current_num_threads() }
    }

    fn check_memory(&self, _: &Options, _: Option<u64>) -> Result<()> {
        Ok(())
    }

    fn plan(&self, options: &Options, memory: Option<u64>, watch: &Watch) -> Result<Plan> {
        Plan::beside(&*self.sweep()?, options, memory, watch)
    }

    fn gather(&self, _: u64, _: &Watch) -> Result<Gathered<'a>> {
        let sweep = self.sweep()?;
        let whole = sweep.lenses.clone();
        Ok(Gathered { sweep, v: self.latent()?, shortened: Vec::new(), whole })
    }

    fn latent(&self) -> Result<Arc<Matrix>> {
        self.lock().latent()
    }

    fn into_place(self, _: Option<u64>) -> Result<Option<Place>> {
        self.partition.into_inner().unwrap_or_else(PoisonError::into_inner).into_place().map(Some)
    }

    fn passes(&self) -> usize {
        self.sweep().map_or(0, |sweep| sweep.scan.passes())
    }
}
