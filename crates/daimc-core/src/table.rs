//! Tables: the rows of the views, or of V, in memory or distributed, and the reductions over them.
//!
//! A stage of a fit that needs sums over all rows of a table describes them as a [`RowReduction`] and calls [`Table::reduce`].
//! A [`Scan`] computes the sums over its own rows. A table whose rows are partitioned over processes sends the reduction to every
//! partition, where the same code runs over a scan of the partition's rows, and merges the partial results. There is no other
//! way to pass over the rows of a table, so a stage cannot work for one of them alone.

use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::forest::{Forest, Merge};
use crate::scan::Scan;
use crate::source::{Block, Buffer};
use crate::{Error, Layout, Result, Schema, Stop};

/// The result of a reduction over some of the rows.
pub trait Partial: Serialize + DeserializeOwned + Send + Sized {
    /// The result over the rows of both.
    ///
    /// # Errors
    /// When both cover the same rows, or they are not results of the same reduction.
    fn merge(self, other: Self) -> Result<Self>;
}

impl Partial for () {
    fn merge(self, (): Self) -> Result<Self> {
        Ok(())
    }
}

impl Partial for usize {
    fn merge(self, other: Self) -> Result<Self> {
        Ok(self + other)
    }
}

/// Rows, labels and the like of several partitions, in any order.
impl<T: Serialize + DeserializeOwned + Send> Partial for Vec<T> {
    fn merge(mut self, mut other: Self) -> Result<Self> {
        self.append(&mut other);
        Ok(self)
    }
}

impl<T: Merge + Serialize + DeserializeOwned + Send> Partial for Forest<T> {
    fn merge(mut self, other: Self) -> Result<Self> {
        let reason = "partial results cover the same instances twice, or other instances";
        if self.absorb(other) { Ok(self) } else { Err(unsuitable(reason)) }
    }
}

impl<A: Partial, B: Partial> Partial for (A, B) {
    fn merge(self, other: Self) -> Result<Self> {
        Ok((self.0.merge(other.0)?, self.1.merge(other.1)?))
    }
}

/// An error in messages between the driver of a fit and its partitions.
pub fn unsuitable(reason: impl Into<String>) -> Error {
    Error::Unsuitable {
        what: "message",
        value: "between driver and partitions".into(),
        reason: reason.into(),
    }
}

/// Sums over the rows of one table.
pub trait RowReduction: Sync {
    /// The name in messages.
    const NAME: &'static str;
    /// What is sent to partitions: all that [`answer`](Self::answer) needs to know.
    type Request: Serialize + DeserializeOwned + Send + Sync;
    /// Data of single rows, which stay with the rows from one reduction to the next.
    type State: Default + Send + 'static;
    /// Whether a later reduction needs the state of this one.
    const KEEPS_STATE: bool = false;
    /// The result over some of the rows.
    type Partial: Partial;

    /// The result over the rows of a scan.
    ///
    /// # Errors
    /// When rows cannot be read, and when the scan is stopped.
    fn local(&self, rows: &Scan<'_>, state: &mut Self::State) -> Result<Self::Partial>;

    /// The request that partitions answer.
    fn request(&self) -> Self::Request;

    /// The same as [`local`](Self::local) on a partition.
    ///
    /// # Errors
    /// As [`local`](Self::local).
    fn answer(request: &Self::Request, rows: &Scan<'_>, state: &mut Self::State) -> Result<Self::Partial>;
}

/// Rows of all instances: of the views as given, of the views prepared, or of V.
pub trait Table: Sync {
    /// Access to single rows. Passes over it would bring all rows of a partitioned table into this process: use
    /// [`reduce`](Self::reduce).
    fn rows(&self) -> &Scan<'_>;

    /// Computes a reduction over all rows. `state` is used if the rows are in this process; partitions have their own.
    ///
    /// # Errors
    /// When rows cannot be read, when the table is stopped, and when a partition fails.
    fn reduce<R: RowReduction>(&self, reduction: &R, state: &mut R::State) -> Result<R::Partial>;

    /// The schema of the rows.
    fn schema(&self) -> &Schema {
        self.rows().schema()
    }

    /// Cancels passes.
    fn stop(&self) -> &Stop {
        self.rows().stop()
    }

    /// The number of instances.
    fn instances(&self) -> usize {
        self.rows().instances()
    }

    /// The layout of the rows of a view.
    fn layout(&self, view: usize) -> Layout {
        self.rows().layout(view)
    }

    /// See [`Scan::read`].
    fn read<'b>(&'b self, view: usize, instances: Range<usize>, buffer: &'b mut Buffer) -> Result<Block<'b>> {
        self.rows().read(view, instances, buffer)
    }

    /// See [`Scan::pick`].
    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Result<Block<'b>> {
        self.rows().pick(view, instances, buffer)
    }
}

impl Table for Scan<'_> {
    fn rows(&self) -> &Scan<'_> {
        self
    }

    fn reduce<R: RowReduction>(&self, reduction: &R, state: &mut R::State) -> Result<R::Partial> {
        reduction.local(self, state)
    }
}
