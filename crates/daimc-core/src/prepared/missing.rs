//! The number and position of missing cells.

use crate::Result;
use crate::index::index;
use crate::kernel::{Scalar, is_finite};
use crate::scan::Scan;
use crate::source::Rows;

/// The missing cells in the present rows of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingCells {
    /// The number of present instances.
    pub present: usize,
    /// The number of present instances with missing cells.
    pub instances: usize,
    /// The number of present instances in which each feature is missing; empty if no cell is missing.
    pub by_feature: Vec<usize>,
}

impl MissingCells {
    /// The counts of a view with `present` instances and `observed` values of each feature.
    pub fn new(present: usize, instances: usize, observed: &[f64]) -> Self {
        let by_feature = match instances {
            0 => Vec::new(),
            _ => observed.iter().map(|observed| present - *observed as usize).collect(),
        };
        Self { present, instances, by_feature }
    }

    /// The number of missing cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.by_feature.iter().sum()
    }

    /// The fraction of the cells of present instances that are missing.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.cells() as f64 / (self.present * self.by_feature.len()).max(1) as f64
    }

    /// The number of features with missing cells.
    #[must_use]
    pub fn features(&self) -> usize {
        self.by_feature.iter().filter(|missing| **missing > 0).count()
    }

    /// The features with the most missing cells, at most `features`, each with the number of these. Complete features
    /// are not listed.
    #[must_use]
    pub fn most(&self, features: usize) -> Vec<(usize, usize)> {
        let mut lacking: Vec<(usize, usize)> = self.by_feature.iter().copied().enumerate().collect();
        lacking.retain(|(_, missing)| *missing > 0);
        lacking.sort_by_key(|&(_, missing)| std::cmp::Reverse(missing));
        lacking.truncate(features);
        lacking
    }

    /// The features without any value. The fit ignores them.
    #[must_use]
    pub fn without_value(&self) -> Vec<usize> {
        let missing = self.by_feature.iter().enumerate();
        missing.filter(|(_, missing)| **missing == self.present).map(|(feature, _)| feature).collect()
    }
}

/// The missing cells of a view.
#[derive(Default)]
pub(super) struct Looked {
    pub cells: usize,
    pub empty: Vec<u32>,
}

impl Looked {
    /// Takes the numbers from the schema, or reads all rows.
    pub fn at(scan: &Scan<'_>, view: usize) -> Result<Self> {
        let schema = scan.schema().view(view);
        if let Some(cells) = schema.missing_cells() {
            return Ok(Self { cells, empty: Vec::new() });
        }
        let d = schema.features();
        let mut all = Self::default();
        scan.pass_view(
            view,
            Self::default,
            |piece, own| {
                for (instance, row) in piece.shown() {
                    match piece.blocks[0].rows {
                        Rows::DenseF32(x) => own.row(instance, &x[row * d..(row + 1) * d]),
                        Rows::DenseF64(x) => own.row(instance, &x[row * d..(row + 1) * d]),
                        Rows::SparseF32(_) | Rows::SparseF64(_) => {}
                    }
                }
                Ok(())
            },
            |own| {
                all.cells += std::mem::take(&mut own.cells);
                all.empty.append(&mut own.empty);
            },
        )?;
        Ok(all)
    }

    fn row<T: Scalar>(&mut self, instance: usize, row: &[T]) {
        if is_finite(row) {
            return;
        }
        let missing = row.iter().filter(|value| value.to_f64().is_nan()).count();
        if missing == row.len() {
            self.empty.push(index(instance));
        } else {
            self.cells += missing;
        }
    }
}
