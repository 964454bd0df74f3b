//! Reductions that make and change V.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Effect, Latent, Partition, Reduction};
use crate::initialise::Votes;
use daimc_core::index::index;
use daimc_core::shard::{self, VStep};
use daimc_core::statistics::{Factors, Statistics};
use daimc_core::table::unsuitable;
use daimc_core::{Matrix, Result};

/// Makes the first V of the clusters of the views.
#[derive(Serialize, Deserialize)]
pub(crate) struct Begin(pub Votes);

impl Reduction for Begin {
    const NAME: &'static str = "begin";
    type Partial = Statistics;

    fn effect(&self) -> Effect {
        Effect::Begins
    }

    fn views_read(&self, views: usize) -> usize {
        views
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<Statistics> {
        let sweep = partition.sweep()?.clone();
        let mut v = Matrix::zeros(sweep.scan.instances(), sweep.latent());
        let statistics = self.0.begin(&sweep, &mut v)?;
        partition.latent = Latent::Host(Arc::new(v));
        Ok(statistics)
    }
}

/// Takes a given first V, of all instances.
#[derive(Serialize, Deserialize)]
pub(crate) struct Start(pub Matrix);

impl Reduction for Start {
    const NAME: &'static str = "start";
    type Partial = Statistics;

    fn effect(&self) -> Effect {
        Effect::Begins
    }

    fn views_read(&self, views: usize) -> usize {
        views
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<Statistics> {
        let sweep = partition.sweep()?.clone();
        let (blocks, columns) = (*partition.blocks(), self.0.columns());
        let own = blocks.first() * columns..(blocks.first() + blocks.instances()) * columns;
        let own = self.0.values().get(own).ok_or_else(|| unsuitable("V has too few rows"))?;
        let mut v = Matrix::new(blocks.instances(), columns, own.to_vec())?;
        let statistics = sweep.gather(&mut v, sweep.scan.stop())?;
        partition.latent = Latent::Host(Arc::new(v));
        Ok(statistics)
    }
}

/// One pass over the rows; see [`Shard::sweep`](daimc_core::Shard::sweep).
#[derive(Serialize, Deserialize)]
pub(crate) struct Sweep {
    pub factors: Factors,
    pub step: VStep,
}

impl Reduction for Sweep {
    const NAME: &'static str = "sweep";
    type Partial = Statistics;

    fn effect(&self) -> Effect {
        match self.step {
            VStep::Update { .. } => Effect::Changes,
            // V is solved from zero.
            VStep::Solve { .. } => Effect::Begins,
        }
    }

    fn views_read(&self, views: usize) -> usize {
        views
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<Statistics> {
        let Self { factors, step } = self;
        let (sweep, mut step) = (partition.sweep()?.clone(), *step);
        let stop = sweep.scan.stop().clone();
        let mut shard = match std::mem::replace(&mut partition.latent, Latent::None) {
            Latent::Shard(shard) => shard,
            Latent::Host(v) => sweep.shard_with(owned(v), &stop)?,
            // A partition that replaces a lost one has no V, and the optimum does not depend on the previous one.
            Latent::None if matches!(step, VStep::Solve { .. }) => {
                step = VStep::Solve { after: None };
                sweep.shard_with(Matrix::zeros(sweep.scan.instances(), sweep.latent()), &stop)?
            }
            Latent::None => return Err(unsuitable("there is no V yet")),
        };
        let statistics = shard.sweep(factors, step, &stop);
        partition.latent = Latent::Shard(shard);
        statistics
    }
}

/// V, copied if a table still refers to it.
fn owned(v: Arc<Matrix>) -> Matrix {
    Arc::try_unwrap(v).unwrap_or_else(|shared| shared.as_ref().clone())
}

/// Multiplies the columns of V.
#[derive(Serialize, Deserialize)]
pub(crate) struct Rescale(pub Vec<f64>);

impl Reduction for Rescale {
    const NAME: &'static str = "rescale";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        let mut v = partition.latent()?;
        partition.latent = Latent::None;
        Arc::make_mut(&mut v)
            .each_row(|_, row| row.iter_mut().zip(&self.0).for_each(|(value, factor)| *value *= factor));
        partition.latent = Latent::Host(v);
        Ok(())
    }
}

/// The index of the largest entry of `V · scale` for each instance.
#[derive(Serialize, Deserialize)]
pub(crate) struct Leading(pub Vec<f64>);

impl Reduction for Leading {
    const NAME: &'static str = "leading";
    type Partial = Vec<(u32, Vec<u32>)>;

    fn local(&self, partition: &mut Partition<'_>) -> Result<Self::Partial> {
        let leading = match &partition.latent {
            Latent::Shard(shard) => shard.leading(&self.0),
            _ => shard::leading(&*partition.latent()?, &self.0),
        };
        Ok(vec![(index(partition.blocks().first()), leading)])
    }
}

/// Saves the present V and starts again from the clusters, which have these sizes over all partitions.
#[derive(Serialize, Deserialize)]
pub(crate) struct Restart {
    pub sizes: Vec<usize>,
}

impl Reduction for Restart {
    const NAME: &'static str = "restart";
    type Partial = Statistics;

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn views_read(&self, views: usize) -> usize {
        views
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<Statistics> {
        let (sweep, found) = (partition.sweep()?.clone(), partition.found()?);
        if found.labels.iter().any(|label| *label >= self.sizes.len()) {
            return Err(unsuitable("the labels belong to other clusters"));
        }
        let v = restart(&found.labels, &self.sizes);
        let stop = sweep.scan.stop().clone();
        let mut shard = sweep.shard()?;
        let statistics = shard.start(v, &stop)?;
        partition.latent = Latent::Shard(shard);
        Ok(statistics)
    }
}

/// The V of a start from clusters: their one-hot labels plus a floor, with columns that sum to one as after an iteration.
pub(crate) fn restart(labels: &[usize], sizes: &[usize]) -> Matrix {
    let mut v = Matrix::zeros(labels.len(), sizes.len());
    let floor = crate::initialise::FLOOR * sizes.iter().sum::<usize>() as f64;
    let of = |own: f64| {
        sizes.iter().map(|&size| (own + crate::initialise::FLOOR) / (size as f64 + floor)).collect::<Vec<_>>()
    };
    let (others, own) = (of(0.0), of(1.0));
    v.each_row(|i, row| {
        row.copy_from_slice(&others);
        row[labels[i]] = own[labels[i]];
    });
    v
}

/// Saves the present V before an attempt at a better one.
#[derive(Serialize, Deserialize)]
pub(crate) struct Save;

impl Reduction for Save {
    const NAME: &'static str = "save";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Saves
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        partition.saved = Some(partition.latent()?);
        Ok(())
    }
}

/// Ends an attempt and restores the saved V.
#[derive(Serialize, Deserialize)]
pub(crate) struct Restore;

impl Reduction for Restore {
    const NAME: &'static str = "restore";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Restores
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        if let Some(v) = partition.saved.take() {
            partition.latent = Latent::Host(v);
        }
        Ok(())
    }
}

/// Ends an attempt and keeps the new V.
#[derive(Serialize, Deserialize)]
pub(crate) struct Accept;

impl Reduction for Accept {
    const NAME: &'static str = "accept";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Accepts
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        partition.saved = None;
        Ok(())
    }
}
