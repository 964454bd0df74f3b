//! From entries to a matrix.

use super::header::{Header, Symmetry};
use crate::Csr;
use crate::real::Real;

/// Compressed rows of entries in any order; entries at one place are added.
pub(super) fn csr<T: Real>(entries: Vec<(u32, u32, T)>, header: &Header, transpose: bool) -> Csr<T> {
    let count = if transpose { header.columns } else { header.rows };
    let sign = if header.symmetry == Symmetry::Skew { -1.0 } else { 1.0 };
    let mirrored = |row, column| header.symmetry != Symmetry::General && row != column;
    let place = |row: u32, column: u32| if transpose { (column, row) } else { (row, column) };

    let mut offsets = vec![0_usize; count + 1];
    for &(row, column, _) in &entries {
        let (row, column) = place(row, column);
        offsets[row as usize + 1] += 1;
        if mirrored(row, column) {
            offsets[column as usize + 1] += 1;
        }
    }
    for i in 0..count {
        offsets[i + 1] += offsets[i];
    }
    let stored = offsets[count];
    let (mut columns, mut values) = (vec![0_u32; stored], vec![T::ZERO; stored]);
    let mut next = offsets.clone();
    let mut put = |row: u32, column: u32, value: T| {
        let at = next[row as usize];
        next[row as usize] += 1;
        (columns[at], values[at]) = (column, value);
    };
    for (row, column, value) in entries {
        let (row, column) = place(row, column);
        put(row, column, value);
        if mirrored(row, column) {
            put(column, row, T::narrow(sign * value.wide()));
        }
    }
    sort_rows(&mut offsets, &mut columns, &mut values);
    Csr { offsets, columns, values }
}

/// Sorts each row by column and adds up what stands at one place.
fn sort_rows<T: Real>(offsets: &mut [usize], columns: &mut Vec<u32>, values: &mut Vec<T>) {
    let (mut kept, mut start) = (0, 0);
    let mut row: Vec<(u32, T)> = Vec::new();
    for end in &mut offsets[1..] {
        row.clear();
        row.extend(columns[start..*end].iter().copied().zip(values[start..*end].iter().copied()));
        // Stable, so that sums do not depend on anything but the file.
        row.sort_by_key(|(column, _)| *column);
        let first = kept;
        for &(column, value) in &row {
            if kept > first && columns[kept - 1] == column {
                values[kept - 1] = T::narrow(values[kept - 1].wide() + value.wide());
            } else {
                (columns[kept], values[kept]) = (column, value);
                kept += 1;
            }
        }
        start = *end;
        *end = kept;
    }
    columns.truncate(kept);
    values.truncate(kept);
}

/// All values of an array, column by column, from those that are stored.
pub(super) fn full<T: Real>(stored: Vec<T>, header: &Header) -> Vec<T> {
    if header.symmetry == Symmetry::General {
        return stored;
    }
    let n = header.rows;
    let mut values = vec![T::ZERO; n * n];
    let mut next = stored.into_iter();
    let skew = header.symmetry == Symmetry::Skew;
    for column in 0..n {
        let first = column + usize::from(skew);
        for (row, value) in (first..n).zip(next.by_ref()) {
            values[column * n + row] = value;
            values[row * n + column] = if skew { T::narrow(-value.wide()) } else { value };
        }
    }
    values
}
