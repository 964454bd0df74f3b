//! Where the rows of a fit are: in this process, or in partitions that an executor reaches.
//!
//! The driver of a fit is written against [`Backend`] and does not know the difference. Each stage that passes over all rows
//! (features, lengths of rows, the start, sweeps, Lloyd's iterations, sums over clusters) is a
//! [reduction](crate::partition::Reduction). It has a local half, computed on the rows of one partition, and a merge along the
//! tree of the leaves. A distributed fit therefore has the same bits as a fit in one process.
//!
//! Only the neighbour search compares rows of different partitions. It runs in the driving process, on rows that
//! [`Backend::gather`] fetches. Short rows are gathered unchanged, and the result is that of a fit in one process. Long rows are
//! gathered as projections on the 128 leading directions, which descent would use anyway. The search itself does not depend on
//! where its rows came from.

mod distributed;
mod gathered;
mod local;

use std::sync::Arc;

use crate::partition::{Reduction, TableId, latent, rows};
use crate::place::Place;
use daimc_core::accelerator::{Accelerator, Use};
use daimc_core::scale::Observed;
use daimc_core::scaled_view::ScaledView;
use daimc_core::shard::{Shard, VStep};
use daimc_core::statistics::Factors;
use daimc_core::statistics::Statistics;
use daimc_core::sweep::Sweep;
use daimc_core::table::{Table, unsuitable};
use daimc_core::watch::Watch;
use daimc_core::{Matrix, Result, Stop};
use daimc_graph::neighbours::{References, Shortened};

pub(crate) use distributed::Distributed;
pub use distributed::{Executor, Task, merge, reset};
pub(crate) use local::Local;

/// The rows of a fit with one V.
pub(crate) trait Backend<'a>: Send + Sync + Sized {
    /// A table of the rows.
    type Rows<'t>: Table
    where
        Self: 't;

    /// The rows of a table; passes over it end when `stop` is set.
    ///
    /// # Errors
    /// When the state does not have the table yet.
    fn table(&self, table: TableId, stop: &Stop) -> Result<Self::Rows<'_>>;

    /// The switch that ends passes over the rows.
    fn stop(&self) -> &Stop;

    /// Takes logarithms and fills missing cells from now on.
    ///
    /// # Errors
    /// When rows cannot be read.
    fn prepare(&mut self, observed: &[Observed]) -> Result<()>;

    /// Scales each view from now on, for a V with this number of columns.
    ///
    /// # Errors
    /// When rows cannot be read.
    fn scale(&mut self, scaled_views: Vec<ScaledView>, latent: usize) -> Result<()>;

    /// Hands the scaled rows to an accelerator.
    ///
    /// # Errors
    /// When the accelerator does not take them.
    fn hand_to(&mut self, accelerator: &dyn Accelerator, when: Use) -> Result<()>;

    /// The views as they are scaled.
    ///
    /// # Errors
    /// When they are not scaled yet.
    fn scaled_views(&self) -> Result<Arc<[ScaledView]>>;

    /// Runs a reduction over all instances.
    ///
    /// # Errors
    /// When rows cannot be read, when a partition fails, and when the fit is stopped.
    fn run<R: Reduction>(&self, reduction: R) -> Result<R::Partial>;

    /// The same rows with a V of their own.
    ///
    /// # Errors
    /// When the views are not scaled yet.
    fn fork(&self) -> Result<Self>;

    /// Frees the memory of a fork.
    ///
    /// # Errors
    /// When a partition fails.
    fn release(self) -> Result<()>;

    /// The number of forks that work at the same time.
    fn concurrency(&self) -> usize;

    /// Whether [`gather`](Self::gather) copies rows into this process.
    const GATHERS: bool;

    /// All rows and V in this process, for what compares rows with each other.
    ///
    /// # Errors
    /// When rows cannot be read.
    fn gather(&self, seed: u64, watch: &Watch) -> Result<Gathered<'a>>;

    /// V of all instances, in this process.
    ///
    /// # Errors
    /// When a partition fails.
    fn latent(&self) -> Result<Arc<Matrix>>;

    /// The results of all instances; `None` if this process lacks the memory.
    ///
    /// # Errors
    /// When a partition fails.
    fn into_place(self, memory: Option<u64>) -> Result<Option<Place>>;

    /// The number of times that all rows were read.
    fn passes(&self) -> usize;
}

/// All rows in one process.
pub(crate) struct Gathered<'a> {
    pub sweep: Arc<Sweep<'a>>,
    pub v: Arc<Matrix>,
    /// How the rows of each view were shortened; empty if they are complete.
    shortened: Vec<(Shortened, usize)>,
    whole: Arc<[ScaledView]>,
}

impl Gathered<'_> {
    /// Makes references, which were learnt from shortened rows, into references for complete ones.
    pub fn lengthen(&self, references: &mut References) {
        for (shortened, view) in &self.shortened {
            if let Some(along) = &shortened.directions {
                references.lengthen(*view, along, &self.whole[*view]);
            }
        }
    }
}

/// A backend as the [`Shard`] of all instances.
pub(crate) struct AllRows<'b, B>(pub &'b B);

impl<'a, B: Backend<'a>> Shard for AllRows<'_, B> {
    fn instances(&self) -> usize {
        self.0.table(TableId::Prepared, self.0.stop()).map_or(0, |rows| rows.instances())
    }

    fn start(&mut self, v: Matrix, _: &Stop) -> Result<Statistics> {
        self.0.run(latent::Start(v))
    }

    fn sweep(&mut self, factors: &Factors, step: VStep, _: &Stop) -> Result<Statistics> {
        self.0.run(latent::Sweep { factors: factors.clone(), step })
    }

    fn latent(&self) -> Matrix {
        self.0.latent().map_or_else(|_| Matrix::default(), |v| v.as_ref().clone())
    }

    fn leading(&self, scale: &[f64]) -> Vec<u32> {
        // An error is returned by the next request, which fails too.
        let leading = self.0.run(latent::Leading(scale.to_vec())).unwrap_or_default();
        rows::in_order(leading).flatten().collect()
    }
}

/// The clusters of some instances, in increasing order.
///
/// # Errors
/// When a partition fails, or when some of the instances are in no partition.
pub(crate) fn labels_of<'a>(rows: &impl Backend<'a>, instances: &[u32]) -> Result<Vec<usize>> {
    let found = rows.run(crate::partition::clusters::LabelsOf(instances.to_vec()))?;
    let labels: Vec<usize> = rows::in_order(found).flatten().map(|label| label as usize).collect();
    let complete = labels.len() == instances.len();
    if complete { Ok(labels) } else { Err(unsuitable("partitions lack some of the instances")) }
}
