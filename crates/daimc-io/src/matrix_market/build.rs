//! Expands the stored entries of symmetric matrices to all entries.

use std::path::Path;

use super::header::{Header, Symmetry};
use crate::disk::{Keep, Sorter};
use crate::real::Real;
use crate::sparse::Shape;
use crate::{Cells, Error, Position, Reading, Result};

/// An entry of a sparse matrix: row, column, value.
type Entry<T> = (u32, u32, T);

/// All entries of a sparse matrix or its transpose.
pub(super) struct Coordinates<'a, T> {
    place: Position,
    header: &'a Header,
    shape: Shape,
    how: Reading<'a>,
    keep: Keep<'a>,
    kept: Kept<T>,
}

enum Kept<T> {
    Memory(Vec<Entry<T>>),
    Disk(Box<Sorter<T>>),
}

impl<'a, T: Real> Coordinates<'a, T> {
    /// Entries of a matrix whose `shape` is that after a transposition.
    pub fn new(
        path: &Path,
        header: &'a Header,
        shape: Shape,
        how: Reading<'a>,
        keep: Keep<'a>,
    ) -> Result<Self> {
        let place = Position::file(path);
        let kept = match keep.disk() {
            Some(disk) => Kept::Disk(Box::new(Sorter::new(disk, &place, shape)?)),
            None => Kept::Memory(Vec::new()),
        };
        Ok(Self { place, header, shape, how, keep, kept })
    }

    /// Adds the stored entries of the next piece, and their counterparts in the other triangle.
    pub fn add(&mut self, stored: &[Entry<T>]) -> Result<()> {
        let Self { place, header, shape, how, keep, kept } = self;
        let times = if header.symmetry == Symmetry::General { 1 } else { 2 };
        if let (Kept::Memory(entries), Keep::Within(disk, most)) = (&mut *kept, *keep) {
            let grown = match place.reserve_by_quarters(entries, times * stored.len()) {
                Err(Error::Memory { .. }) => false,
                grown => grown.map(|()| true)?,
            };
            // Entries and rows are in memory together.
            let count = entries.len() + times * stored.len();
            if !grown || (2 * count * size_of::<Entry<T>>()) as u64 > most {
                let mut sorter = Sorter::new(disk, place, *shape)?;
                let entries = std::mem::take(entries);
                entries.into_iter().try_for_each(|(row, column, value)| sorter.push(row, column, value))?;
                *kept = Kept::Disk(Box::new(sorter));
            }
        }
        match kept {
            Kept::Memory(entries) => {
                place.reserve_by_quarters(entries, times * stored.len())?;
                every(header, *how, stored, |row, column, value| {
                    entries.push((row, column, value));
                    Ok(())
                })
            }
            Kept::Disk(sorter) => {
                every(header, *how, stored, |row, column, value| sorter.push(row, column, value))
            }
        }
    }

    /// Returns the matrix.
    pub fn finish(self) -> Result<Cells> {
        match self.kept {
            Kept::Memory(entries) => Ok(T::sparse(self.shape.rows_of_entries(&self.place, entries)?)),
            Kept::Disk(sorter) => sorter.finish().map(Cells::Stored),
        }
    }
}

fn every<T: Real>(
    header: &Header,
    how: Reading,
    stored: &[Entry<T>],
    mut add: impl FnMut(u32, u32, T) -> Result<()>,
) -> Result<()> {
    let sign = if header.symmetry == Symmetry::Skew { -1.0 } else { 1.0 };
    for &(row, column, value) in stored {
        let (row, column) = if how.transpose { (column, row) } else { (row, column) };
        add(row, column, value)?;
        if header.symmetry != Symmetry::General && row != column {
            add(column, row, T::nearest(sign * value.wide()))?;
        }
    }
    Ok(())
}

/// Fails early if a symmetric array does not fit into memory, in which its other triangle is computed.
pub(super) fn check_memory(path: &Path, header: &Header, value: usize) -> Result<()> {
    let needed = (header.rows as u64).saturating_mul(header.rows as u64).saturating_mul(value as u64);
    let needed = needed.saturating_add((header.stored as u64).saturating_mul(value as u64));
    match Position::file(path).check_memory(needed) {
        Err(Error::Memory { .. }) => {
            let reason = "the other triangle of a symmetric array is made in memory, where it does not fit: save the matrix \
                          in full, as .npy or .npz";
            Err(Error::OnlyInMemory { place: Position::file(path), reason })
        }
        asked => asked,
    }
}

/// All values of an array in column-major order.
pub(super) fn full<T: Real>(path: &Path, stored: Vec<T>, header: &Header) -> Result<Vec<T>> {
    if header.symmetry == Symmetry::General {
        return Ok(stored);
    }
    let n = header.rows;
    let mut values = Position::file(path).allocate(n * n)?;
    values.resize(n * n, T::default());
    let mut next = stored.into_iter();
    let skew = header.symmetry == Symmetry::Skew;
    for column in 0..n {
        let first = column + usize::from(skew);
        for (row, value) in (first..n).zip(next.by_ref()) {
            values[column * n + row] = value;
            values[row * n + column] = if skew { T::nearest(-value.wide()) } else { value };
        }
    }
    Ok(values)
}
