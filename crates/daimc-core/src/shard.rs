//! A partition of the instances with its rows of V.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::blocks::Blocks;
use crate::index::index;
use crate::statistics::{Factors, Statistics};
use crate::steps::latent::Solver;
use crate::{Error, Matrix, Result, Stop};

/// A set of instances with its rows of the data and of V.
///
/// A `Descent` sends [`Factors`] to a shard and receives [`Statistics`]; the rows of V stay in the
/// shard during the iterations. The driver of a fit calls [`start`](Self::start) or [`hold`](Self::hold) first and then
/// [`sweep`](Self::sweep) once per iteration, one call at a time, on the thread that runs the descent. A shard may use
/// other threads for its work. An error of any call ends the fit, with one exception: after the first iteration,
/// [`Error::Interrupted`] ends the iterations only, and the fit keeps the result of those before.
pub trait Shard: Send {
    /// The number of instances.
    fn instances(&self) -> usize;

    /// Sets V and returns its statistics.
    ///
    /// # Errors
    /// When V does not have a row for each instance, or rows cannot be read.
    fn start(&mut self, v: Matrix, stop: &Stop) -> Result<Statistics>;

    /// Sets V whose statistics are already known to the caller.
    ///
    /// # Errors
    /// As [`Shard::start`].
    fn hold(&mut self, v: Matrix, stop: &Stop) -> Result<()> {
        self.start(v, stop).map(drop)
    }

    /// Runs one pass over the rows: reads V as `V · scale`, updates it as `step` says with the bases fixed, and returns
    /// the statistics.
    ///
    /// # Errors
    /// When V is not set, when the factors do not match the views, or when rows cannot be read. After
    /// [`Error::Interrupted`] all rows of V have been multiplied by the scale, including those that the sweep did not
    /// reach.
    fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Statistics>;

    /// The current rows of V, without a scale that is still to be applied.
    fn latent(&self) -> Matrix;

    /// Consumes the shard and returns its rows of V.
    fn into_latent(self: Box<Self>) -> Matrix {
        self.latent()
    }

    /// The column with the largest entry of `V · scale` for each instance; the first one in case of ties.
    fn leading(&self, scale: &[f64]) -> Vec<u32> {
        leading(&self.latent(), scale)
    }
}

/// The column with the largest scaled entry of each row of V.
pub fn leading(v: &Matrix, scale: &[f64]) -> Vec<u32> {
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

/// The update of V in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VStep {
    /// Moves each row closer to its optimum for the bases.
    Update {
        /// The update rule.
        solver: Solver,
        /// The maximum number of passes over a row.
        passes: usize,
    },
    /// Solves each row to optimality for the bases, starting from zero, so that the result is deterministic where the
    /// optimum is not unique.
    Solve {
        /// If set, this number of passes of coordinate descent from the current rows comes first. The column sums of
        /// the statistics, by which V is normalised, are those of their result.
        after: Option<usize>,
    },
}

/// Several shards as one. They are the [`aligned`] parts of the instances, in order.
pub struct Shards<S>(Vec<S>);

impl<S: Shard> Shards<S> {
    /// Combines the shards.
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

/// At most `parts` ranges of instances that can be separate shards without changing any bit of the result. They consist of
/// whole leaves of at least 16 384 instances; fewer instances are not split.
#[must_use]
pub fn aligned(instances: usize, parts: usize) -> Vec<Range<usize>> {
    Blocks::split(instances, parts)
}

/// The ranges of instances (leaves) over which sums are computed in the order of the instances. The sums of the leaves
/// are added along a binary tree. A shard that computes its [`Statistics`] itself makes one share per leaf.
#[must_use]
pub fn leaves(instances: usize) -> Vec<Range<usize>> {
    Blocks::all(instances).leaf_ranges().collect()
}
