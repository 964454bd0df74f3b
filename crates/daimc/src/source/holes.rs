//! Cells that are missing inside rows.

use serde::{Deserialize, Serialize};

use crate::kernel::{Scalar, is_finite};

/// Which cells of the rows of a matrix are missing: a sparse pattern in compressed rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holes<'a> {
    /// Those of row i stand at `offsets[i]..offsets[i + 1]`; empty: no row lacks any.
    offsets: &'a [usize],
    features: &'a [u32],
}

impl<'a> Holes<'a> {
    /// Whether no row lacks any cell.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    /// The features that a row lacks, in increasing order.
    #[must_use]
    #[inline]
    pub fn row(&self, row: usize) -> &'a [u32] {
        if self.features.is_empty() {
            return &[];
        }
        &self.features[self.offsets[row]..self.offsets[row + 1]]
    }
}

/// The same, with room of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HoleRows {
    /// Empty: nothing is known to be missing, of however many rows.
    offsets: Vec<usize>,
    features: Vec<u32>,
}

impl HoleRows {
    pub fn holes(&self) -> Holes<'_> {
        Holes { offsets: &self.offsets, features: &self.features }
    }

    pub fn clear(&mut self) {
        self.offsets.clear();
        self.features.clear();
    }

    /// Appends a row that lacks these features.
    pub fn push(&mut self, features: &[u32]) {
        self.features.extend_from_slice(features);
        self.end_row();
    }

    fn end_row(&mut self) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.offsets.push(self.features.len());
    }

    /// Appends the rows of another pattern, and clears it.
    pub fn append(&mut self, other: &mut Self) {
        if !other.offsets.is_empty() {
            if self.offsets.is_empty() {
                self.offsets.push(0);
            }
            let before = self.features.len();
            self.offsets.extend(other.offsets.iter().skip(1).map(|offset| before + offset));
            self.features.append(&mut other.features);
        }
        other.clear();
    }

    /// Puts `fill` into the cells of a row that are NaN, and appends their pattern.
    pub fn fill<T: Scalar>(&mut self, row: &mut [T], fill: &[f64]) {
        if !is_finite(row) {
            for ((value, fill), feature) in row.iter_mut().zip(fill).zip(0..) {
                if value.to_f64().is_nan() {
                    *value = T::from_f64(*fill);
                    self.features.push(feature);
                }
            }
        }
        self.end_row();
    }
}
