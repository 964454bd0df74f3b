//! Missing values within a table.

use daimc::Layout;
use daimc::source::Buffer;
use daimc::text::quoted;
use rayon::prelude::*;

use super::origin::Origin;
use super::{Nan, ViewAccount, id};
use crate::real::Real;
use crate::{Cells, Csr, Error, Result, Stored, Table};

/// Takes rows without any value as missing, and refuses or imputes the missing values of other rows. Rows that
/// are not `present` are not looked at.
pub(super) fn close(
    table: &mut Table,
    present: &mut [bool],
    nan: Nan,
    origin: &Origin,
) -> Result<ViewAccount> {
    let mut cells = std::mem::replace(&mut table.cells, Cells::DenseF32(Vec::new()));
    let gaps = Gaps { table, nan, origin };
    let account = match &mut cells {
        Cells::DenseF32(values) => gaps.dense(values, present),
        Cells::DenseF64(values) => gaps.dense(values, present),
        Cells::SparseF32(csr) => gaps.sparse(csr, present),
        Cells::SparseF64(csr) => gaps.sparse(csr, present),
        Cells::Stored(stored) => gaps.stored(stored, present),
    }?;
    table.cells = cells;
    Ok(account)
}

/// Whether a row holds no value.
pub(super) fn is_empty(table: &Table, row: usize) -> bool {
    fn none<T: Real>(table: &Table, values: &[T]) -> bool {
        count_missing(values) == table.columns
    }
    let dense = row * table.columns..(row + 1) * table.columns;
    match &table.cells {
        Cells::DenseF32(values) => none(table, &values[dense]),
        Cells::DenseF64(values) => none(table, &values[dense]),
        Cells::SparseF32(csr) => none(table, &csr.values[csr.offsets[row]..csr.offsets[row + 1]]),
        Cells::SparseF64(csr) => none(table, &csr.values[csr.offsets[row]..csr.offsets[row + 1]]),
        Cells::Stored(stored) => stored.missing[row] as usize == table.columns,
    }
}

struct Gaps<'a> {
    table: &'a Table,
    nan: Nan,
    origin: &'a Origin,
}

impl Gaps<'_> {
    fn dense<T: Real>(&self, values: &mut [T], present: &mut [bool]) -> Result<ViewAccount> {
        let width = self.table.columns.max(1);
        let missing: Vec<usize> = values.par_chunks(width).map(count_missing).collect();
        let account = self.hide_empty(&missing, present);
        let partly = |row: &usize| present[*row] && missing[*row] > 0;
        let rows: Vec<usize> = (0..missing.len()).filter(partly).collect();
        let Some(&first) = rows.first() else { return Ok(account) };
        if self.nan == Nan::Error {
            let row = &values[first * width..(first + 1) * width];
            return Err(self.refuse(first, first_missing(row)));
        }
        let mut sums = Sums::new(width);
        for (row, _) in values.chunks(width).zip(&*present).filter(|(_, present)| **present) {
            row.iter().enumerate().for_each(|(column, value)| sums.add(column, value.wide()));
        }
        let mut imputed = 0;
        for row in rows {
            for (column, value) in values[row * width..(row + 1) * width].iter_mut().enumerate() {
                if value.is_missing() {
                    *value = T::nearest(self.mean(&sums, column, sums.counts[column])?);
                    imputed += 1;
                }
            }
        }
        Ok(ViewAccount { imputed, ..account })
    }

    /// As for dense rows; what is not stored is zero and not missing.
    fn sparse<T: Real>(&self, csr: &mut Csr<T>, present: &mut [bool]) -> Result<ViewAccount> {
        let Csr { offsets, columns, values } = csr;
        let range = |row: usize| offsets[row]..offsets[row + 1];
        let missing: Vec<usize> =
            (0..self.table.rows).map(|row| count_missing(&values[range(row)])).collect();
        let account = self.hide_empty(&missing, present);
        let partly = |row: &usize| present[*row] && missing[*row] > 0;
        let rows: Vec<usize> = (0..missing.len()).filter(partly).collect();
        let Some(&first) = rows.first() else { return Ok(account) };
        if self.nan == Nan::Error {
            let column = columns[range(first)][first_missing(&values[range(first)])] as usize;
            return Err(self.refuse(first, column));
        }
        let mut sums = Sums::new(self.table.columns);
        let mut gone = vec![0_usize; self.table.columns];
        let shown = || (0..self.table.rows).filter(|row| present[*row]);
        for at in shown().flat_map(range) {
            sums.add(columns[at] as usize, values[at].wide());
            gone[columns[at] as usize] += usize::from(values[at].is_missing());
        }
        let shown = shown().count();
        let mut imputed = 0;
        for at in rows.into_iter().flat_map(range).filter(|at| values[*at].is_missing()).collect::<Vec<_>>() {
            let column = columns[at] as usize;
            values[at] = T::nearest(self.mean(&sums, column, shown - gone[column])?);
            imputed += 1;
        }
        Ok(ViewAccount { imputed, ..account })
    }

    /// Values on disk are left as they are: what is missing was counted when they were written.
    fn stored(&self, stored: &Stored, present: &mut [bool]) -> Result<ViewAccount> {
        let missing: Vec<usize> = stored.missing.iter().map(|count| *count as usize).collect();
        let account = self.hide_empty(&missing, present);
        let Some(first) = (0..missing.len()).find(|&row| present[row] && missing[row] > 0) else {
            return Ok(account);
        };
        if self.nan == Nan::Mean {
            let reason = "values are missing within rows, and the data do not fit into memory, where they could be filled in: \
                          fill them in, or allow more memory (--memory)";
            return Err(Error::Data { place: self.table.place(), reason: reason.into() });
        }
        let mut buffer = Buffer::default();
        let read = stored.rows.read(first..first + 1, &mut buffer);
        read.map_err(|error| Error::Data { place: self.table.place(), reason: error.to_string() })?;
        let at = match stored.layout() {
            Layout::DenseF32 | Layout::SparseF32 => first_missing(&buffer.f32),
            Layout::DenseF64 | Layout::SparseF64 => first_missing(&buffer.f64),
        };
        let column = if stored.layout().is_dense() { at } else { buffer.columns[at] as usize };
        Err(self.refuse(first, column))
    }

    fn hide_empty(&self, missing: &[usize], present: &mut [bool]) -> ViewAccount {
        let mut empty = 0;
        for (present, missing) in present.iter_mut().zip(missing) {
            if *present && *missing == self.table.columns {
                *present = false;
                empty += 1;
            }
        }
        ViewAccount { empty, ..ViewAccount::default() }
    }

    fn mean(&self, sums: &Sums, column: usize, count: usize) -> Result<f64> {
        if count > 0 {
            return Ok(sums.sums[column] / count as f64);
        }
        let reason = format!(
            "feature {} has no value in any instance that the view shows, so it has no mean: leave it out",
            quoted(&self.feature(column))
        );
        Err(Error::Data { place: self.table.place(), reason })
    }

    fn refuse(&self, row: usize, column: usize) -> Error {
        let reason = format!(
            "feature {} of instance {} is missing, but others of that row are not: fill it in, make the whole row NA, or \
             impute (--nan mean)",
            quoted(&self.feature(column)),
            quoted(&id(self.table, row))
        );
        Error::Data { place: self.origin.cell(row, column), reason }
    }

    fn feature(&self, column: usize) -> String {
        self.table.features.as_ref().map_or_else(|| column.to_string(), |names| names[column].clone())
    }
}

/// For each feature the sum of its values and their number, missing ones left out.
struct Sums {
    sums: Vec<f64>,
    counts: Vec<usize>,
}

impl Sums {
    fn new(features: usize) -> Self {
        Self { sums: vec![0.0; features], counts: vec![0; features] }
    }

    fn add(&mut self, column: usize, value: f64) {
        if !value.is_nan() {
            self.sums[column] += value;
            self.counts[column] += 1;
        }
    }
}

fn count_missing<T: Real>(values: &[T]) -> usize {
    values.iter().filter(|value| value.is_missing()).count()
}

fn first_missing<T: Real>(values: &[T]) -> usize {
    values.iter().position(|value| value.is_missing()).unwrap_or(0)
}
