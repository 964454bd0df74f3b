//! Whoever holds rows and their part of V.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::blocks::Blocks;
use crate::statistics::{Factors, Statistics};
use crate::steps::latent::Solver;
use crate::views::index;
use crate::{Error, Matrix, Result, Stop};

/// Some instances: their rows, and their part of V, which never leaves it during the iterations. A [`Descent`](crate::Descent)
/// sends [`Factors`] and gets [`Statistics`] back.
pub trait Shard: Send {
    /// How many instances there are.
    fn instances(&self) -> usize;

    /// Takes these rows of V, and returns their statistics.
    ///
    /// # Errors
    /// When there is not a row for each instance, and when rows cannot be read.
    fn start(&mut self, v: Matrix, stop: &Stop) -> Result<Statistics>;

    /// Takes these rows of V, whose statistics are known.
    ///
    /// # Errors
    /// As [`Shard::start`].
    fn hold(&mut self, v: Matrix, stop: &Stop) -> Result<()> {
        self.start(v, stop).map(drop)
    }

    /// One pass over the rows: reads V as `V · scale`, updates it as `step` says with the bases fixed, and returns its
    /// statistics.
    ///
    /// # Errors
    /// When there is no V yet, when the factors are not those of the views, when rows cannot be read, and
    /// [`Error::Interrupted`]: the rows of V that were not reached by then have still been multiplied by the scale.
    fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Statistics>;

    /// The rows of V as they are, without a scale that is still to be applied.
    fn latent(&self) -> Matrix;

    /// The same, from a shard that is of no more use.
    fn into_latent(self: Box<Self>) -> Matrix {
        self.latent()
    }

    /// The column of `V · scale` that is largest for each instance, the first of several.
    fn leading(&self, scale: &[f64]) -> Vec<u32> {
        leading(&self.latent(), scale)
    }
}

pub(crate) fn leading(v: &Matrix, scale: &[f64]) -> Vec<u32> {
    let of_row = |row: &[f64]| {
        let mut best = (0, f64::NEG_INFINITY);
        for (k, value) in row.iter().zip(scale).map(|(v, scale)| v * scale).enumerate() {
            if value > best.1 {
                best = (index(k), value);
            }
        }
        best.0
    };
    (0..v.rows()).into_par_iter().with_min_len(1024).map(|i| of_row(v.row(i))).collect()
}

/// What a sweep does to V.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VStep {
    /// Takes each row nearer to its optimum for the bases.
    Update {
        /// How V is updated.
        solver: Solver,
        /// How often a row is gone over, at most.
        passes: usize,
    },
    /// Makes each row optimal for the bases, from zero: where the optimum is not unique, everybody gets the same one.
    Settle {
        /// So many passes of coordinate descent over the row as it was come first, and the column sums of the statistics, by
        /// which V is normalised, are those of their result.
        after: Option<usize>,
    },
}

/// Many shards as one: those of [`aligned`] parts of the instances, in their order.
pub struct Shards<S>(Vec<S>);

impl<S: Shard> Shards<S> {
    /// These together.
    #[must_use]
    pub fn new(shards: Vec<S>) -> Self {
        Self(shards)
    }

    fn all(&mut self, work: impl Fn(&mut S, usize) -> Result<Statistics> + Sync) -> Result<Statistics>
    where
        S: Send,
    {
        let shares = self.0.par_iter_mut().enumerate().map(|(number, shard)| work(shard, number));
        let shares: Vec<Statistics> = shares.collect::<Result<_>>()?;
        let merged = shares.into_iter().map(Ok).reduce(|all, share| all?.merge(share?));
        merged.unwrap_or_else(|| Err(Error::EmptyInput { what: "shards".into() }))
    }
}

impl<S: Shard> Shard for Shards<S> {
    fn instances(&self) -> usize {
        self.0.iter().map(Shard::instances).sum()
    }

    fn start(&mut self, v: Matrix, stop: &Stop) -> Result<Statistics> {
        let (expected, found) = (self.instances(), v.rows());
        if expected != found {
            return Err(Error::LengthMismatch { what: "rows of V".into(), expected, found });
        }
        let ends = self.0.iter().scan(0, |end, shard| {
            *end += shard.instances();
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        self.all(|shard, number| {
            let (rows, columns) = (shard.instances(), v.columns());
            let own = &v.values()[(ends[number] - rows) * columns..ends[number] * columns];
            shard.start(Matrix::new(rows, columns, own.to_vec())?, stop)
        })
    }

    fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Statistics> {
        self.all(|shard, _| shard.sweep(factors, step, stop))
    }

    fn leading(&self, scale: &[f64]) -> Vec<u32> {
        self.0.iter().flat_map(|shard| shard.leading(scale)).collect()
    }

    fn latent(&self) -> Matrix {
        let parts: Vec<Matrix> = self.0.iter().map(Shard::latent).collect();
        let columns = parts.first().map_or(0, Matrix::columns);
        let values: Vec<f64> = parts.iter().flat_map(Matrix::values).copied().collect();
        Matrix::new(self.instances(), columns, values).unwrap_or_default()
    }
}

/// Ranges of instances, at most `parts`, that can be held apart and still give the bits that one holder of all gets. Few
/// instances cannot be parted.
#[must_use]
pub fn aligned(instances: usize, parts: usize) -> Vec<Range<usize>> {
    Blocks::split(instances, parts)
}

/// The ranges of instances over which sums are added up in the order of the instances; along a binary tree over them the sums of
/// all are added. A shard that computes its [`Statistics`] itself makes one share of each of its leaves.
#[must_use]
pub fn leaves(instances: usize) -> Vec<Range<usize>> {
    Blocks::all(instances).leaf_ranges().collect()
}
