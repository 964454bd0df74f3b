//! Converts sparse matrices to compressed rows.

mod blocks;

use std::ops::AddAssign;

pub(crate) use blocks::{Entries, blocks};

use crate::number::Target;
use crate::real::Real;
use crate::{Csr, Position, Result};

/// The most rows or columns per entry, above a million of them. Empty ones take memory without any data in the file, so that a
/// wrong shape could exhaust it.
const EMPTY_PER_ENTRY: usize = 1000;

/// Entries that are counted at a time.
const PIECE: usize = 1 << 16;

/// A checked shape of a sparse matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub rows: usize,
    pub columns: usize,
}

impl Shape {
    /// Checks the shape of a matrix with that many entries.
    pub(crate) fn new(place: &Position, rows: usize, columns: usize, entries: usize) -> Result<Self> {
        let largest = rows.max(columns);
        if rows == 0 || columns == 0 {
            return Err(place.fault(format!("is an empty matrix ({rows} × {columns})")));
        }
        if u32::try_from(largest).is_err()
            || (largest > 1_000_000 && largest / EMPTY_PER_ENTRY > entries.saturating_add(1))
        {
            return Err(place.fault(format!(
                "says that it is {rows} × {columns} but has {entries} entries; if that is meant, drop empty \
                 rows and columns"
            )));
        }
        Ok(Self { rows, columns })
    }

    /// From entries in any order: row, column and value. Duplicate entries are summed.
    pub(crate) fn rows_of_entries<T: Target + AddAssign>(
        self,
        place: &Position,
        entries: Vec<(u32, u32, T)>,
    ) -> Result<Csr<T>> {
        let keys = entries.iter().map(|(row, ..)| *row);
        let rows = group(place, keys, self.rows, |k| (entries[k].1, entries[k].2))?;
        drop(entries);
        self.rows_in_order(place, rows)
    }

    /// As [`Shape::rows_of_entries`], from separate lists of rows, columns and values.
    pub(crate) fn rows_of_triplets<T: Target + AddAssign>(
        self,
        place: &Position,
        (rows, columns): (&[u32], &[u32]),
        values: &[T],
    ) -> Result<Csr<T>> {
        if rows.len() != values.len() || columns.len() != values.len() {
            return Err(place.fault("has not as many indices as values; save it anew"));
        }
        let columns = group(place, columns.iter().copied(), self.columns, |k| (rows[k], values[k]))?;
        self.rows_of_columns(place, columns)
    }

    /// From compressed columns, whose entries may be unsorted.
    pub(crate) fn rows_of_columns<T: Target + AddAssign>(
        self,
        place: &Position,
        columns: Csr<T>,
    ) -> Result<Csr<T>> {
        check(place, Self { rows: self.columns, columns: self.rows }, &columns)?;
        let mut rows = flip(place, &columns, self.rows)?;
        drop(columns);
        rows.add_up();
        Ok(rows)
    }

    /// As [`Shape::rows_of_columns`], from columns whose entries are read twice in pieces, so that columns and rows are not in memory
    /// together. The caller has checked `offsets`.
    pub(crate) fn rows_of_lines<T: Real, E: Entries<T>>(
        self,
        place: &Position,
        offsets: &[usize],
        entries: impl Fn() -> Result<E>,
    ) -> Result<Csr<T>> {
        let mut next: Vec<usize> = place.allocate(self.rows + 1)?;
        next.resize(self.rows + 1, 0);
        let count = offsets.last().copied().unwrap_or(0);
        let (mut counted, mut piece) = (entries()?, Vec::new());
        for first in (0..count).step_by(PIECE) {
            piece.clear();
            counted.columns(PIECE.min(count - first), &mut piece)?;
            for &row in &piece {
                *next[1..].get_mut(row as usize).ok_or_else(|| out_of_range(place))? += 1;
            }
        }
        for row in 0..self.rows {
            next[row + 1] += next[row];
        }
        let mut rows = Csr {
            offsets: place.allocate(self.rows + 1)?,
            columns: place.allocate(count)?,
            values: place.allocate(count)?,
        };
        rows.offsets.extend_from_slice(&next);
        rows.columns.resize(count, 0);
        rows.values.resize(count, T::default());
        blocks(place, offsets, &mut entries()?, |lines, block| {
            for (line, bounds) in lines.zip(block.offsets.windows(2)) {
                for at in bounds[0]..bounds[1] {
                    // The second pass reads the same entries, unless the file changes meanwhile.
                    let next = next.get_mut(block.columns[at] as usize).filter(|next| **next < count);
                    let next = next.ok_or_else(|| out_of_range(place))?;
                    (rows.columns[*next], rows.values[*next]) = (line as u32, block.values[at]);
                    *next += 1;
                }
            }
            Ok(())
        })?;
        rows.add_up();
        Ok(rows)
    }

    /// From compressed rows, whose entries may be unsorted.
    pub(crate) fn rows_in_order<T: Target + AddAssign>(
        self,
        place: &Position,
        mut rows: Csr<T>,
    ) -> Result<Csr<T>> {
        check(place, self, &rows)?;
        rows.put_in_order();
        Ok(rows)
    }
}

impl<T> Csr<T> {
    /// Whether columns increase in every row.
    pub(crate) fn is_sorted(&self) -> bool {
        self.offsets.windows(2).all(|w| self.columns[w[0]..w[1]].is_sorted_by(|a, b| a < b))
    }
}

impl<T: Copy + AddAssign> Csr<T> {
    /// Sorts rows by column and sums duplicate entries.
    pub(crate) fn put_in_order(&mut self) {
        if !self.is_sorted() {
            self.sort();
            self.add_up();
        }
    }

    /// Sorts each row by column. Duplicates keep their order, so that sums depend on the file alone.
    fn sort(&mut self) {
        let mut row = Vec::new();
        for range in self.offsets.windows(2).map(|ends| ends[0]..ends[1]) {
            let (columns, values) = (&mut self.columns[range.clone()], &mut self.values[range]);
            row.clear();
            row.extend(columns.iter().copied().zip(values.iter().copied()));
            row.sort_by_key(|(column, _)| *column);
            for (k, entry) in row.iter().enumerate() {
                (columns[k], values[k]) = *entry;
            }
        }
    }

    /// Sums adjacent duplicate entries.
    fn add_up(&mut self) {
        let mut end = 0;
        let mut start = 0;
        for row in 1..self.offsets.len() {
            let first = end;
            let stop = self.offsets[row];
            for k in start..stop {
                if end > first && self.columns[end - 1] == self.columns[k] {
                    let value = self.values[k];
                    self.values[end - 1] += value;
                } else {
                    self.columns[end] = self.columns[k];
                    self.values[end] = self.values[k];
                    end += 1;
                }
            }
            start = stop;
            self.offsets[row] = end;
        }
        self.columns.truncate(end);
        self.values.truncate(end);
    }
}

fn check<T>(place: &Position, shape: Shape, rows: &Csr<T>) -> Result<()> {
    check_offsets(place, shape.rows, &rows.offsets, [rows.columns.len(), rows.values.len()])?;
    check_columns(place, shape.columns, &rows.columns)
}

/// Fails unless the offsets increase from 0 to the number of columns and values.
pub(crate) fn check_offsets(
    place: &Position,
    rows: usize,
    offsets: &[usize],
    [columns, values]: [usize; 2],
) -> Result<()> {
    if offsets.len() != rows + 1
        || offsets[0] != 0
        || !offsets.is_sorted()
        || offsets[rows] != values
        || columns != values
    {
        return Err(place.fault("has offsets that do not fit its shape or its entries; save it anew"));
    }
    Ok(())
}

/// Fails if a column is outside of a matrix of this width.
pub(crate) fn check_columns(place: &Position, width: usize, columns: &[u32]) -> Result<()> {
    match columns.iter().find(|&&column| column as usize >= width) {
        Some(_) => Err(out_of_range(place)),
        None => Ok(()),
    }
}

pub(crate) fn out_of_range(place: &Position) -> crate::Error {
    place.fault("has an entry outside of its shape; save it anew")
}

/// Converts rows to columns by a stable counting sort, so that indices are sorted.
fn flip<T: Target>(place: &Position, rows: &Csr<T>, columns: usize) -> Result<Csr<T>> {
    let mut row = 0;
    group(place, rows.columns.iter().copied(), columns, |k| {
        while rows.offsets[row + 1] <= k {
            row += 1;
        }
        (row as u32, rows.values[k])
    })
}

/// Groups entries by `keys`, keeping their order. `entry` is called once for each, in order.
fn group<T: Target>(
    place: &Position,
    keys: impl ExactSizeIterator<Item = u32> + Clone,
    groups: usize,
    mut entry: impl FnMut(usize) -> (u32, T),
) -> Result<Csr<T>> {
    let mut offsets = place.allocate(groups + 1)?;
    offsets.resize(groups + 1, 0);
    for key in keys.clone() {
        // Counts start at index 1: the last offset is the end of the last group.
        *offsets.get_mut(key as usize + 1).ok_or_else(|| out_of_range(place))? += 1;
    }
    for i in 0..groups {
        offsets[i + 1] += offsets[i];
    }
    let count = keys.len();
    let (mut indices, mut values) = (place.allocate(count)?, place.allocate(count)?);
    indices.resize(count, 0);
    values.resize(count, T::default());
    let mut next: Vec<usize> = place.allocate(offsets.len())?;
    next.extend_from_slice(&offsets);
    for (k, key) in keys.enumerate() {
        let position = &mut next[key as usize];
        (indices[*position], values[*position]) = entry(k);
        *position += 1;
    }
    Ok(Csr { offsets, columns: indices, values })
}
