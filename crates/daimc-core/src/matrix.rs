//! A dense `f64` matrix in row order: the form of all results.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::kernel::is_finite;
use crate::{Error, Result};

/// Rows per task.
const TOGETHER: usize = 1024;

/// A dense matrix of `f64`, stored row by row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

/// A matrix as it is deserialised.
#[derive(Deserialize)]
struct Unchecked {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl TryFrom<Unchecked> for Matrix {
    type Error = Error;

    fn try_from(Unchecked { rows, columns, values }: Unchecked) -> Result<Self> {
        Self::new(rows, columns, values)
    }
}

impl Matrix {
    /// A matrix from its values, row by row.
    ///
    /// # Errors
    /// When there are not `rows · columns` values.
    pub fn new(rows: usize, columns: usize, values: Vec<f64>) -> Result<Self> {
        let expected = rows.saturating_mul(columns);
        if values.len() != expected {
            let what = format!("a {rows} × {columns} matrix");
            return Err(Error::LengthMismatch { what, expected, found: values.len() });
        }
        Ok(Self { rows, columns, values })
    }

    /// A matrix of zeros.
    #[must_use]
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    /// A matrix with the entry `entry(i, j)` at (i, j).
    #[must_use]
    pub fn from_fn(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Self {
        let mut values = Vec::with_capacity(rows * columns);
        for i in 0..rows {
            for j in 0..columns {
                values.push(entry(i, j));
            }
        }
        Self { rows, columns, values }
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row `i`.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// Row `i`, mutable.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// All values, row by row.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All values, row by row, mutable.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// Consumes the matrix and returns the values, row by row.
    #[must_use]
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// The rows, in order.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        (0..self.rows).map(|i| self.row(i))
    }

    /// Multiplies column `k` by `factors[k]`.
    ///
    /// # Panics
    /// When there are not as many factors as columns.
    pub fn scale_columns(&mut self, factors: &[f64]) {
        assert_eq!(factors.len(), self.columns);
        if self.columns == 0 {
            return;
        }
        for row in self.values.chunks_exact_mut(self.columns) {
            for (value, factor) in row.iter_mut().zip(factors) {
                *value *= factor;
            }
        }
    }

    /// Calls `change` with each row and its number, in parallel.
    pub fn each_row(&mut self, change: impl Fn(usize, &mut [f64]) + Sync) {
        let columns = self.columns.max(1);
        self.values.par_chunks_mut(TOGETHER * columns).enumerate().for_each(|(part, rows)| {
            let numbers = part * TOGETHER..;
            numbers.zip(rows.chunks_exact_mut(columns)).for_each(|(i, row)| change(i, row));
        });
    }

    /// Whether every entry is a finite number.
    pub fn is_finite(&self) -> bool {
        self.values.par_chunks(TOGETHER * self.columns.max(1)).all(is_finite)
    }

    /// `Σ_ij a_ij b_ij`.
    ///
    /// # Panics
    /// When the shapes differ.
    #[must_use]
    pub fn dot(&self, other: &Self) -> f64 {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns));
        dot(&self.values, &other.values)
    }

    /// `Σ_ij a_ij²`.
    #[must_use]
    pub fn sum_squares(&self) -> f64 {
        dot(&self.values, &self.values)
    }
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        assert!(j < self.columns, "column {j} of a matrix with {} columns", self.columns);
        &self.values[i * self.columns + j]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        assert!(j < self.columns, "column {j} of a matrix with {} columns", self.columns);
        &mut self.values[i * self.columns + j]
    }
}

/// `Σ a_i b_i`, in eight partial sums so that the compiler can use vector registers. Inlined, so that it uses the
/// vector instructions of the caller.
#[inline(always)]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a8.iter().zip(b8) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}
