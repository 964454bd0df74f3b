//! Missing cells inside rows.

use serde::{Deserialize, Serialize};

use crate::kernel::{Scalar, is_finite};

/// The missing cells of the rows of a matrix: a sparse pattern in compressed rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holes<'a> {
    /// The missing cells of row i are at `offsets[i]..offsets[i + 1]`; empty: no row has any.
    offsets: &'a [usize],
    features: &'a [u32],
}

impl<'a> Holes<'a> {
    /// Whether no cell is missing.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    /// The missing features of a row, in increasing order.
    #[must_use]
    #[inline]
    pub fn row(&self, row: usize) -> &'a [u32] {
        if self.features.is_empty() {
            return &[];
        }
        &self.features[self.offsets[row]..self.offsets[row + 1]]
    }
}

/// The owned form of [`Holes`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HoleRows {
    /// Empty: no cell is missing, for any number of rows.
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

    /// Appends a row in which these features are missing.
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

    /// Replaces NaN in a row by `fill`, and appends the pattern of the replaced cells.
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
