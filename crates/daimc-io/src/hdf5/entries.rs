//! Reads the entries of compressed rows or columns in pieces.

use super::array::Array;
use crate::number::Target;
use crate::real::Real;
use crate::sparse::Entries;
use crate::{Csr, Result};

/// Reads the numbers of an array of one dimension in order, whole chunks at a time.
struct List<'a, T> {
    array: &'a Array,
    ahead: Vec<T>,
    /// The number of decoded elements that were returned, and of all that were decoded.
    taken: usize,
    decoded: usize,
}

impl<'a, T: Target> List<'a, T> {
    fn new(array: &'a Array) -> Self {
        Self { array, ahead: Vec::new(), taken: 0, decoded: 0 }
    }

    /// Appends the next numbers.
    fn take(&mut self, mut count: usize, out: &mut Vec<T>) -> Result<()> {
        while count > 0 {
            if self.taken == self.ahead.len() {
                let more = self.array.step().min(self.array.lines() - self.decoded);
                if more == 0 {
                    return Err(self.array.place.fault("has fewer entries than it says; save it anew"));
                }
                if self.ahead.len() != more {
                    self.ahead = self.array.zeroed(more)?;
                }
                self.array.numbers(self.decoded..self.decoded + more, &mut self.ahead)?;
                (self.taken, self.decoded) = (0, self.decoded + more);
            }
            let some = count.min(self.ahead.len() - self.taken);
            out.extend_from_slice(&self.ahead[self.taken..self.taken + some]);
            self.taken += some;
            count -= some;
        }
        Ok(())
    }
}

/// All entries.
pub(super) struct Lists<'a, T> {
    indices: List<'a, u32>,
    values: List<'a, T>,
}

impl<'a, T: Target> Lists<'a, T> {
    pub fn new(indices: &'a Array, values: &'a Array) -> Self {
        Self { indices: List::new(indices), values: List::new(values) }
    }
}

impl<T: Target> Entries<T> for Lists<'_, T> {
    fn columns(&mut self, count: usize, out: &mut Vec<u32>) -> Result<()> {
        self.indices.take(count, out)
    }

    fn values(&mut self, count: usize, out: &mut Vec<T>) -> Result<()> {
        self.values.take(count, out)
    }
}

/// Entries that are filtered at a time.
const PIECE: usize = 1 << 16;

/// The entries of some columns of compressed rows.
pub(super) struct Filtered<'a, T> {
    arrays: [&'a Array; 2],
    /// The new number of each column.
    only: &'a [u32],
    lists: Lists<'a, T>,
    left: usize,
    /// Columns and values that were found but not returned yet.
    columns: Vec<u32>,
    values: Vec<T>,
    buffers: (Vec<u32>, Vec<T>),
}

impl<'a, T: Real> Filtered<'a, T> {
    pub fn new(indices: &'a Array, values: &'a Array, only: &'a [u32]) -> Self {
        Self {
            arrays: [indices, values],
            only,
            lists: Lists::new(indices, values),
            left: values.lines(),
            columns: Vec::new(),
            values: Vec::new(),
            buffers: (Vec::new(), Vec::new()),
        }
    }

    /// The offsets of rows without the other columns, from checked offsets with them.
    pub fn offsets(&self, offsets: &[usize]) -> Result<Vec<usize>> {
        let [indices, values] = self.arrays;
        let mut found = indices.place.allocate(offsets.len())?;
        found.push(0);
        let mut list = List::new(indices);
        let (mut piece, mut kept) = (Vec::new(), 0);
        for bounds in offsets.windows(2) {
            let mut left = bounds[1] - bounds[0];
            while left > 0 {
                let some = left.min(PIECE);
                piece.clear();
                list.take(some, &mut piece)?;
                for &column in &piece {
                    kept += usize::from(self.number(values, column)?.is_some());
                }
                left -= some;
            }
            found.push(kept);
        }
        Ok(found)
    }

    /// All entries of rows with these offsets.
    pub fn all(mut self, offsets: Vec<usize>) -> Result<Csr<T>> {
        let count = offsets.last().copied().unwrap_or(0);
        let place = self.arrays[0].place.clone();
        let (mut columns, mut values) = (place.allocate(count)?, place.allocate(count)?);
        let mut left = count;
        while left > 0 {
            let some = left.min(PIECE);
            self.columns(some, &mut columns)?;
            self.values(some, &mut values)?;
            left -= some;
        }
        Ok(Csr { offsets, columns, values })
    }

    fn number(&self, array: &Array, column: u32) -> Result<Option<u32>> {
        let number =
            self.only.get(column as usize).ok_or_else(|| crate::sparse::out_of_range(&array.place))?;
        Ok((*number != u32::MAX).then_some(*number))
    }
}

impl<T: Real> Entries<T> for Filtered<'_, T> {
    fn columns(&mut self, count: usize, out: &mut Vec<u32>) -> Result<()> {
        while self.columns.len() < count && self.left > 0 {
            let some = self.left.min(PIECE);
            let (mut columns, mut values) = std::mem::take(&mut self.buffers);
            columns.clear();
            values.clear();
            self.lists.columns(some, &mut columns)?;
            self.lists.values(some, &mut values)?;
            for (&column, &value) in columns.iter().zip(&values) {
                if let Some(number) = self.number(self.arrays[0], column)? {
                    self.columns.push(number);
                    self.values.push(value);
                }
            }
            self.buffers = (columns, values);
            self.left -= some;
        }
        if self.columns.len() < count {
            return Err(self.arrays[0].place.fault("has fewer entries than it says; save it anew"));
        }
        out.extend(self.columns.drain(..count));
        Ok(())
    }

    fn values(&mut self, count: usize, out: &mut Vec<T>) -> Result<()> {
        let count = count.min(self.values.len());
        out.extend(self.values.drain(..count));
        Ok(())
    }
}
