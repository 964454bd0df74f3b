//! Makes compressed rows of the sparse matrices that files hold.

mod blocks;

use std::ops::AddAssign;

pub(crate) use blocks::{Entries, blocks};

use crate::number::Target;
use crate::real::Real;
use crate::{Csr, Place, Result};

/// Rows and columns without entries take memory that nothing in the file stands for. This many per entry, and
/// a million in any case, are believed.
const EMPTY_PER_ENTRY: usize = 1000;

/// Entries that are counted together.
const PIECE: usize = 1 << 16;

/// The shape of a sparse matrix, once it was found to be possible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub rows: usize,
    pub columns: usize,
}

impl Shape {
    /// Checks the shape of a matrix with that many entries.
    pub(crate) fn new(place: &Place, rows: usize, columns: usize, entries: usize) -> Result<Self> {
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

    /// From entries in any order: row, column and value. Entries for the same place are added up.
    pub(crate) fn rows_of_entries<T: Target + AddAssign>(
        self,
        place: &Place,
        entries: Vec<(u32, u32, T)>,
    ) -> Result<Csr<T>> {
        let keys = entries.iter().map(|(row, ..)| *row);
        let rows = group(place, keys, self.rows, |k| (entries[k].1, entries[k].2))?;
        drop(entries);
        self.rows_in_order(place, rows)
    }

    /// As [`Shape::rows_of_entries`], from entries whose rows, columns and values stand apart.
    pub(crate) fn rows_of_triplets<T: Target + AddAssign>(
        self,
        place: &Place,
        (rows, columns): (&[u32], &[u32]),
        values: &[T],
    ) -> Result<Csr<T>> {
        if rows.len() != values.len() || columns.len() != values.len() {
            return Err(place.fault("has not as many indices as values; save it anew"));
        }
        let columns = group(place, columns.iter().copied(), self.columns, |k| (rows[k], values[k]))?;
        self.rows_of_columns(place, columns)
    }

    /// From compressed columns in any order within a column.
    pub(crate) fn rows_of_columns<T: Target + AddAssign>(
        self,
        place: &Place,
        columns: Csr<T>,
    ) -> Result<Csr<T>> {
        check(place, Self { rows: self.columns, columns: self.rows }, &columns)?;
        let mut rows = flip(place, &columns, self.rows)?;
        drop(columns);
        rows.add_up();
        Ok(rows)
    }

    /// As [`Shape::rows_of_columns`], from columns whose entries come twice, piece by piece, and are never all in memory beside
    /// the rows; `offsets` were found to fit.
    pub(crate) fn rows_of_lines<T: Real, E: Entries<T>>(
        self,
        place: &Place,
        offsets: &[usize],
        entries: impl Fn() -> Result<E>,
    ) -> Result<Csr<T>> {
        let mut next: Vec<usize> = place.room(self.rows + 1)?;
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
            offsets: place.room(self.rows + 1)?,
            columns: place.room(count)?,
            values: place.room(count)?,
        };
        rows.offsets.extend_from_slice(&next);
        rows.columns.resize(count, 0);
        rows.values.resize(count, T::default());
        blocks(place, offsets, &mut entries()?, |lines, block| {
            for (line, bounds) in lines.zip(block.offsets.windows(2)) {
                for at in bounds[0]..bounds[1] {
                    // The same entries come a second time, unless the file changes meanwhile.
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

    /// From compressed rows in any order within a row.
    pub(crate) fn rows_in_order<T: Target + AddAssign>(
        self,
        place: &Place,
        mut rows: Csr<T>,
    ) -> Result<Csr<T>> {
        check(place, self, &rows)?;
        rows.put_in_order();
        Ok(rows)
    }
}

impl<T> Csr<T> {
    /// Whether columns increase in every row, as they are to.
    pub(crate) fn is_sorted(&self) -> bool {
        self.offsets.windows(2).all(|w| self.columns[w[0]..w[1]].is_sorted_by(|a, b| a < b))
    }
}

impl<T: Copy + AddAssign> Csr<T> {
    /// Sorts rows by column and adds up what stands at one place.
    pub(crate) fn put_in_order(&mut self) {
        if !self.is_sorted() {
            self.sort();
            self.add_up();
        }
    }

    /// Sorts each row by column. What stands at one place keeps its order, so that sums depend on the file alone.
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

    /// Adds up neighbours that stand for the same place.
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

fn check<T>(place: &Place, shape: Shape, rows: &Csr<T>) -> Result<()> {
    check_offsets(place, shape.rows, &rows.offsets, [rows.columns.len(), rows.values.len()])?;
    check_columns(place, shape.columns, &rows.columns)
}

/// Refuses offsets that do not go from the first to the last of so many column numbers and values.
pub(crate) fn check_offsets(
    place: &Place,
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

/// Refuses columns that a matrix of this width does not have.
pub(crate) fn check_columns(place: &Place, width: usize, columns: &[u32]) -> Result<()> {
    match columns.iter().find(|&&column| column as usize >= width) {
        Some(_) => Err(out_of_range(place)),
        None => Ok(()),
    }
}

pub(crate) fn out_of_range(place: &Place) -> crate::Error {
    place.fault("has an entry outside of its shape; save it anew")
}

/// Rows of a matrix as its columns: a stable counting sort, so that indices come out in order.
fn flip<T: Target>(place: &Place, rows: &Csr<T>, columns: usize) -> Result<Csr<T>> {
    let mut row = 0;
    group(place, rows.columns.iter().copied(), columns, |k| {
        while rows.offsets[row + 1] <= k {
            row += 1;
        }
        (row as u32, rows.values[k])
    })
}

/// Groups entries by `keys`, in the order in which they come; `entry` is asked for one after the other.
fn group<T: Target>(
    place: &Place,
    keys: impl ExactSizeIterator<Item = u32> + Clone,
    groups: usize,
    mut entry: impl FnMut(usize) -> (u32, T),
) -> Result<Csr<T>> {
    let mut offsets = place.room(groups + 1)?;
    offsets.resize(groups + 1, 0);
    for key in keys.clone() {
        // The last offset is the end of the last group: counts start one further.
        *offsets.get_mut(key as usize + 1).ok_or_else(|| out_of_range(place))? += 1;
    }
    for i in 0..groups {
        offsets[i + 1] += offsets[i];
    }
    let count = keys.len();
    let (mut indices, mut values) = (place.room(count)?, place.room(count)?);
    indices.resize(count, 0);
    values.resize(count, T::default());
    let mut next: Vec<usize> = place.room(offsets.len())?;
    next.extend_from_slice(&offsets);
    for (k, key) in keys.enumerate() {
        let position = &mut next[key as usize];
        (indices[*position], values[*position]) = entry(k);
        *position += 1;
    }
    Ok(Csr { offsets, columns: indices, values })
}
