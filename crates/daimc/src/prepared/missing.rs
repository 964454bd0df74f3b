//! How many cells are missing, and where.

use crate::Result;
use crate::index::index;
use crate::kernel::{Scalar, is_finite};
use crate::scan::Scan;
use crate::source::Rows;

/// How many cells were missing inside the rows that a view shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingCells {
    /// Instances that the view shows.
    pub present: usize,
    /// Those of them that lack some cells.
    pub instances: usize,
    /// How many of them lack each feature; empty if no cell is missing.
    pub by_feature: Vec<usize>,
}

impl MissingCells {
    /// Of a view that shows so many instances, and has so many values of each feature.
    pub(crate) fn new(present: usize, instances: usize, observed: &[f64]) -> Self {
        let by_feature = match instances {
            0 => Vec::new(),
            _ => observed.iter().map(|observed| present - *observed as usize).collect(),
        };
        Self { present, instances, by_feature }
    }

    /// Cells in all.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.by_feature.iter().sum()
    }

    /// The share of the cells of present instances that are missing.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.cells() as f64 / (self.present * self.by_feature.len()).max(1) as f64
    }

    /// How many features some instance lacks.
    #[must_use]
    pub fn features(&self) -> usize {
        self.by_feature.iter().filter(|missing| **missing > 0).count()
    }

    /// The features that most instances lack, at most so many, with the number of these; those that nobody lacks are not
    /// among them.
    #[must_use]
    pub fn most(&self, features: usize) -> Vec<(usize, usize)> {
        let mut lacking: Vec<(usize, usize)> = self.by_feature.iter().copied().enumerate().collect();
        lacking.retain(|(_, missing)| *missing > 0);
        lacking.sort_by_key(|&(_, missing)| std::cmp::Reverse(missing));
        lacking.truncate(features);
        lacking
    }

    /// The features that no instance has. They take no part.
    #[must_use]
    pub fn without_value(&self) -> Vec<usize> {
        let missing = self.by_feature.iter().enumerate();
        missing.filter(|(_, missing)| **missing == self.present).map(|(feature, _)| feature).collect()
    }
}

/// What is missing in a view.
#[derive(Default)]
pub(super) struct Looked {
    pub cells: usize,
    pub empty: Vec<u32>,
}

impl Looked {
    /// Asks the schema, or looks at all rows.
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
