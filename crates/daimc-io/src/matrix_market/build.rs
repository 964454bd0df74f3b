//! From the entries that are stored to all of them.

use std::path::Path;

use super::header::{Header, Symmetry};
use crate::real::Real;
use crate::{Place, Result};

/// An entry of a sparse matrix: row, column, value.
type Entry<T> = (u32, u32, T);

/// All entries of a sparse matrix, or of its transpose, from those that are stored.
pub(super) fn all<T: Real>(
    path: &Path,
    mut entries: Vec<Entry<T>>,
    header: &Header,
    transpose: bool,
) -> Result<Vec<Entry<T>>> {
    if transpose {
        entries.iter_mut().for_each(|(row, column, _)| std::mem::swap(row, column));
    }
    if header.symmetry == Symmetry::General {
        return Ok(entries);
    }
    let sign = if header.symmetry == Symmetry::Skew { -1.0 } else { 1.0 };
    let stored = entries.len();
    Place::file(path).reserve(&mut entries, stored)?;
    for k in 0..stored {
        let (row, column, value) = entries[k];
        if row != column {
            entries.push((column, row, T::nearest(sign * value.wide())));
        }
    }
    Ok(entries)
}

/// All values of an array, column by column, from those that are stored.
pub(super) fn full<T: Real>(path: &Path, stored: Vec<T>, header: &Header) -> Result<Vec<T>> {
    if header.symmetry == Symmetry::General {
        return Ok(stored);
    }
    let n = header.rows;
    let mut values = Place::file(path).room(n * n)?;
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
