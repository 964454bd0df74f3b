//! A dense matrix with strides: stored in column order, or part of a larger one.

use std::borrow::Cow;

use crate::index::index;
use crate::kernel::Scalar;
use crate::source::MISSING;
use crate::{Error, Result};

#[derive(Clone, Debug)]
pub(super) struct Strided<'a, T: Scalar> {
    pub values: Cow<'a, [T]>,
    /// The distances between rows and between columns.
    pub strides: [usize; 2],
    pub features: usize,
}

/// Rows that are gathered together in a check of all rows.
const ROWS: usize = 256;

/// Columns that are gathered together: their parts of a few rows stay in the cache until all of these rows are read.
const COLUMNS: usize = 16;

impl<T: Scalar> Strided<'_, T> {
    /// Fails if a matrix of this shape needs more than `length` values.
    pub fn check(view: &str, shape: [usize; 2], strides: [usize; 2], length: usize) -> Result<()> {
        if shape[0] == 0 {
            return Ok(());
        }
        let reach = |i: usize| (shape[i] - 1).saturating_mul(strides[i]);
        let expected = reach(0).saturating_add(reach(1)).saturating_add(1);
        if expected <= length {
            return Ok(());
        }
        Err(Error::Shape {
            view: view.into(),
            what: "values that the strides reach",
            expected,
            found: length,
        })
    }

    pub fn borrowed(&self) -> Strided<'_, T> {
        Strided { values: Cow::Borrowed(&self.values), strides: self.strides, features: self.features }
    }

    /// The values of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = T> {
        let start = row * self.strides[0];
        (0..self.features).map(move |column| self.values[start + column * self.strides[1]])
    }

    /// Calls `each` with rows (pairs of instance and row) and their values.
    pub fn for_each(
        &self,
        mut rows: impl Iterator<Item = (usize, usize)>,
        mut each: impl FnMut((usize, usize), &[T]),
    ) {
        let mut values = Vec::new();
        loop {
            let part: Vec<(usize, usize)> = rows.by_ref().take(ROWS).collect();
            if part.is_empty() {
                return;
            }
            let mut places: Vec<u32> = part.iter().map(|&(_, row)| index(row)).collect();
            self.gather(&mut places, &mut values);
            for (&at, values) in part.iter().zip(values.chunks_exact(self.features)) {
                each(at, values);
            }
        }
    }

    /// Copies `rows` one after another into `values`, and writes their new positions into `rows`; some may be [`MISSING`].
    pub fn gather(&self, rows: &mut [u32], values: &mut Vec<T>) {
        let here: Vec<usize> = rows.iter().filter(|&&row| row != MISSING).map(|&row| row as usize).collect();
        for (place, row) in rows.iter_mut().filter(|row| **row != MISSING).enumerate() {
            *row = index(place);
        }
        values.clear();
        if self.strides[1] == 1 {
            for row in here {
                values.extend_from_slice(&self.values[row * self.strides[0]..][..self.features]);
            }
            return;
        }
        values.resize(here.len() * self.features, T::default());
        for first in (0..self.features).step_by(COLUMNS) {
            let last = (first + COLUMNS).min(self.features);
            for (target, row) in values.chunks_exact_mut(self.features).zip(&here) {
                for (column, target) in (first..last).zip(&mut target[first..last]) {
                    *target = self.values[row * self.strides[0] + column * self.strides[1]];
                }
            }
        }
    }
}
