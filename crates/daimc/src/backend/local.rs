//! Rows in this process: in memory, on disk, or on an accelerator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Backend, Gathered};
use crate::partition::{Partition, Reduction, TableId};
use crate::place::Place;
use daimc_core::accelerator::{Accelerator, Use};
use daimc_core::prepared::Prepared;
use daimc_core::scale::Observed;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::Scan;
use daimc_core::source::Source;
use daimc_core::sweep::Sweep;
use daimc_core::watch::Watch;
use daimc_core::{Matrix, Result, Stop};

/// A single partition with all instances.
pub(crate) struct Local<'a> {
    stop: Stop,
    partition: Mutex<Partition<'a>>,
}

impl<'a> Local<'a> {
    pub fn new(source: &'a dyn Source, stop: &Stop) -> Self {
        Self::of(Partition::of(Scan::new(source, stop)), stop)
    }

    /// Rows that are prepared and scaled.
    pub fn scaled(sweep: Arc<Sweep<'a>>) -> Self {
        let stop = sweep.scan.stop().clone();
        let mut partition = Partition::of(sweep.scan.clone());
        partition.set_scaled(sweep);
        Self::of(partition, &stop)
    }

    fn of(partition: Partition<'a>, stop: &Stop) -> Self {
        Self { stop: stop.clone(), partition: Mutex::new(partition) }
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
        let given = self.lock().table(TableId::Given)?.shared_source();
        self.lock().set_prepared(Prepared::observed(given, observed)?);
        Ok(())
    }

    fn scale(&mut self, scaled_views: Vec<ScaledView>, latent: usize) -> Result<()> {
        let scan = self.lock().table(TableId::Prepared)?;
        self.lock().set_sweep(Arc::new(Sweep::new(scan, scaled_views, latent)));
        Ok(())
    }

    fn hand_to(&mut self, accelerator: &dyn Accelerator, when: Use) -> Result<()> {
        self.lock().hand_over(|sweep| sweep.hand_to(accelerator, when))
    }

    fn scaled_views(&self) -> Result<Arc<[ScaledView]>> {
        Ok(self.sweep()?.scaled_views.clone())
    }

    fn run<R: Reduction>(&self, reduction: R) -> Result<R::Partial> {
        reduction.local(&mut self.lock())
    }

    fn fork(&self) -> Result<Self> {
        Ok(Self::of(self.lock().fork(), &self.stop))
    }

    fn release(self) -> Result<()> {
        Ok(())
    }

    fn concurrency(&self) -> usize {
        // An accelerator serves one fork at a time, and may not have the memory for another V.
        let resident = self.sweep().is_ok_and(|sweep| sweep.resident().is_some());
        if resident { 1 } else { rayon::current_num_threads() }
    }

    const GATHERS: bool = false;

    fn gather(&self, _: u64, _: &Watch) -> Result<Gathered<'a>> {
        let sweep = self.sweep()?;
        let whole = sweep.scaled_views.clone();
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
