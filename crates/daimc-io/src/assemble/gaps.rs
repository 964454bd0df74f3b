//! Missing values within a table.

use daimc_core::Layout;
use daimc_core::source::Buffer;
use daimc_core::text::quoted;
use rayon::prelude::*;

use super::account::ViewAccount;
use super::origin::Origin;
use crate::real::Real;
use crate::{Cells, Csr, Error, Result, Stored, Table};

/// Treatment of rows in which some values are missing, but not all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nan {
    /// They stay missing: fits and models use the observed values. In sparse tables this is an error, like [`Nan::Error`].
    #[default]
    Model,
    /// An error that names the first such value.
    Error,
    /// Each is replaced by the mean of its feature over the present instances of the view.
    Mean,
}

/// Marks rows without any value as missing, and counts, refuses or imputes the missing values of other rows. Rows that are not
/// `present` are skipped.
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

/// Whether a row has no value.
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
        let rows: Vec<usize> = (0..missing.len()).into_par_iter().filter(partly).collect();
        let Some(&first) = rows.first() else { return Ok(account) };
        if self.nan == Nan::Model {
            return Ok(lacking(account, &missing, &rows));
        }
        if self.nan == Nan::Error {
            let row = &values[first * width..(first + 1) * width];
            return Err(self.refuse(first, first_missing(row)));
        }
        let sums = ColumnTotals::of(width, values.len() / width, |row, sums| {
            let row = if present[row] { &values[row * width..(row + 1) * width] } else { &[] };
            row.iter().enumerate().for_each(|(column, value)| sums.add(column, value.wide()));
        });
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

    /// As for dense rows; entries that are not stored are zero, not missing.
    fn sparse<T: Real>(&self, csr: &mut Csr<T>, present: &mut [bool]) -> Result<ViewAccount> {
        let Csr { offsets, columns, values } = csr;
        let range = |row: usize| offsets[row]..offsets[row + 1];
        let missing: Vec<usize> =
            (0..self.table.rows).into_par_iter().map(|row| count_missing(&values[range(row)])).collect();
        let account = self.hide_empty(&missing, present);
        let partly = |row: &usize| present[*row] && missing[*row] > 0;
        let rows: Vec<usize> = (0..missing.len()).into_par_iter().filter(partly).collect();
        let Some(&first) = rows.first() else { return Ok(account) };
        if self.nan != Nan::Mean {
            let column = columns[range(first)][first_missing(&values[range(first)])] as usize;
            return Err(self.refuse(first, column));
        }
        let sums = ColumnTotals::of(self.table.columns, self.table.rows, |row, sums| {
            let stored = if present[row] { range(row) } else { 0..0 };
            stored.for_each(|at| sums.add(columns[at] as usize, values[at].wide()));
        });
        let shown = present.iter().filter(|present| **present).count();
        let mut imputed = 0;
        for at in rows.into_iter().flat_map(range).filter(|at| values[*at].is_missing()).collect::<Vec<_>>() {
            let column = columns[at] as usize;
            values[at] = T::nearest(self.mean(&sums, column, shown - sums.missing[column])?);
            imputed += 1;
        }
        Ok(ViewAccount { imputed, ..account })
    }

    /// Values on disk are not changed; missing ones were counted when they were written.
    fn stored(&self, stored: &Stored, present: &mut [bool]) -> Result<ViewAccount> {
        let missing: Vec<usize> = stored.missing.iter().map(|count| *count as usize).collect();
        let account = self.hide_empty(&missing, present);
        let rows: Vec<usize> = (0..missing.len()).filter(|&row| present[row] && missing[row] > 0).collect();
        let Some(&first) = rows.first() else { return Ok(account) };
        if self.nan == Nan::Model && stored.layout().is_dense() {
            return Ok(lacking(account, &missing, &rows));
        }
        if self.nan == Nan::Mean {
            let reason = "values are missing within rows, and the data do not fit into memory, where they could be filled in: \
                          fill them in, allow more memory (--memory), or leave them missing (--nan model)";
            return Err(self.table.place().fault(reason));
        }
        let mut buffer = Buffer::default();
        let read = stored.rows.read(first..first + 1, &mut buffer);
        read.map_err(|error| self.table.place().fault(error.to_string()))?;
        let at = match stored.layout() {
            Layout::DenseF32 | Layout::SparseF32 => first_missing(&buffer.f32),
            Layout::DenseF64 | Layout::SparseF64 => first_missing(&buffer.f64),
        };
        let column = if stored.layout().is_dense() { at } else { buffer.columns[at] as usize };
        Err(self.refuse(first, column))
    }

    fn hide_empty(&self, missing: &[usize], present: &mut [bool]) -> ViewAccount {
        let gone = |(present, missing): (&mut bool, &usize)| {
            let gone = *present && *missing == self.table.columns;
            *present &= !gone;
            usize::from(gone)
        };
        let empty = present.par_iter_mut().zip(missing).map(gone).sum();
        ViewAccount { empty, ..ViewAccount::default() }
    }

    fn mean(&self, sums: &ColumnTotals, column: usize, count: usize) -> Result<f64> {
        if count > 0 {
            return Ok(sums.totals[column] / count as f64);
        }
        let reason = format!(
            "feature {} has no value in any instance that the view shows, so it has no mean: leave it out",
            quoted(&self.feature(column))
        );
        Err(self.table.place().fault(reason))
    }

    fn refuse(&self, row: usize, column: usize) -> Error {
        // Entries that a sparse table does not store are zero: it cannot leave a value missing.
        let advice = if self.nan == Nan::Error {
            "fill it in, make the whole row NA, or leave it missing (--nan model)"
        } else {
            "in a sparse table fill it in, make the whole row NA, or impute (--nan mean)"
        };
        let reason = format!(
            "feature {} of instance {} is missing, but others of that row are not: {advice}",
            quoted(&self.feature(column)),
            quoted(&self.table.id(row))
        );
        self.origin.cell(row, column).fault(reason)
    }

    fn feature(&self, column: usize) -> String {
        self.table.features.as_ref().map_or_else(|| column.to_string(), |names| names[column].clone())
    }
}

/// The account of a view with missing values in some rows.
fn lacking(account: ViewAccount, missing: &[usize], rows: &[usize]) -> ViewAccount {
    let cells = rows.iter().map(|&row| missing[row]).sum();
    ViewAccount { missing: cells, partial: rows.len(), ..account }
}

/// For each feature the sum and the number of its observed values, and the number of its missing values.
struct ColumnTotals {
    totals: Vec<f64>,
    counts: Vec<usize>,
    missing: Vec<usize>,
}

/// Rows that one thread adds up at a time.
const BLOCK: usize = 1 << 14;

impl ColumnTotals {
    fn new(features: usize) -> Self {
        Self { totals: vec![0.0; features], counts: vec![0; features], missing: vec![0; features] }
    }

    /// The sums over all rows, which `add` adds one by one; they do not depend on the number of threads.
    fn of(features: usize, rows: usize, add: impl Fn(usize, &mut Self) + Sync) -> Self {
        let block = |block: usize| {
            let mut sums = Self::new(features);
            (block * BLOCK..((block + 1) * BLOCK).min(rows)).for_each(|row| add(row, &mut sums));
            sums
        };
        let blocks: Vec<Self> = (0..rows.div_ceil(BLOCK)).into_par_iter().map(block).collect();
        blocks.into_iter().fold(Self::new(features), |mut all, own| {
            all.totals.iter_mut().zip(own.totals).for_each(|(all, own)| *all += own);
            all.counts.iter_mut().zip(own.counts).for_each(|(all, own)| *all += own);
            all.missing.iter_mut().zip(own.missing).for_each(|(all, own)| *all += own);
            all
        })
    }

    fn add(&mut self, column: usize, value: f64) {
        if value.is_nan() {
            self.missing[column] += 1;
        } else {
            self.totals[column] += value;
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
