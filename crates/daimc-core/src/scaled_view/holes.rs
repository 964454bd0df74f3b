//! Rows with missing cells: their lengths, weights and products, without the values that fill the missing cells.
//!
//! If rows are scaled to length 1, the length of such a row is not that of its observed cells: these would grow as more
//! cells are lost. The length of the complete row is estimated,
//!
//! ```text
//! length² = Σ_{f ∉ h} x_f² · Σ_f e_f / Σ_{f ∉ h} e_f
//! ```
//!
//! where `e_f` is the mean square of feature f. Cells then count as those of complete rows do, and a row that has lost
//! nearly all cells counts in proportion to the observed part.

use super::{ScaledView, length_of, scaled};
use crate::Matrix;
use crate::kernel::{LANES, Scalar};
use crate::matrix::dot;
use crate::source::{Block, Rows};

/// The lengths of a row before it is scaled to length 1.
pub(super) struct Extent {
    /// The length of the observed cells, with scaled features.
    pub observed: f64,
    /// The length of the complete row, known or estimated.
    pub whole: f64,
    /// The observed fraction of the row, from 0 to 1.
    pub share: f64,
}

impl ScaledView {
    /// The missing features of a row, except those that the scaling drops: these are always zero.
    #[inline(always)]
    pub fn holes<'b>(&'b self, block: &Block<'b>, row: usize) -> impl Iterator<Item = usize> + Clone + 'b {
        block.holes.row(row).iter().map(|&f| f as usize).filter(|&f| !self.is_left_out(f))
    }

    #[inline(always)]
    fn is_left_out(&self, feature: usize) -> bool {
        self.scaling.factor.get(feature).is_some_and(|factor| *factor == 0.0)
    }

    /// The other features of the row.
    fn observed<'b>(&'b self, block: &Block<'b>, row: usize) -> impl Iterator<Item = usize> + 'b {
        let mut holes = self.holes(block, row).peekable();
        (0..self.features).filter(move |f| holes.next_if_eq(f).is_none())
    }

    /// The scaled value of a cell, or the fill value if it is missing.
    #[inline(always)]
    pub fn value(&self, block: &Block<'_>, (instance, row): (usize, usize), feature: usize) -> f64 {
        let at = row * self.features + feature;
        let value = match block.rows {
            Rows::DenseF32(x) => f64::from(x[at]),
            Rows::DenseF64(x) => x[at],
            Rows::SparseF32(_) | Rows::SparseF64(_) => 0.0,
        };
        self.by_feature(feature, value) * self.full_factor(instance)
    }

    #[inline(always)]
    fn by_feature(&self, feature: usize, value: f64) -> f64 {
        let shift = self.scaling.shift.get(feature).copied().unwrap_or(0.0);
        let factor = self.scaling.factor.get(feature).copied().unwrap_or(1.0);
        scaled(value, shift, factor)
    }

    /// The lengths of a row, given the length of the filled row.
    pub(super) fn extent(&self, block: &Block<'_>, row: usize, filled: f64) -> Extent {
        if block.holes.row(row).is_empty() {
            return Extent { observed: filled, whole: filled, share: 1.0 };
        }
        let observed = self.observed_length(block, row);
        let share = self.share(block, row);
        Extent { observed, whole: observed / share.sqrt(), share }
    }

    /// `‖(x − m) ∘ c‖` of the observed cells.
    fn observed_length(&self, block: &Block<'_>, row: usize) -> f64 {
        let own = row * self.features..(row + 1) * self.features;
        let values: Vec<f64> = match block.rows {
            Rows::DenseF32(x) => self.observed_values(block, row, &x[own]),
            Rows::DenseF64(x) => self.observed_values(block, row, &x[own]),
            Rows::SparseF32(_) | Rows::SparseF64(_) => Vec::new(),
        };
        length_of(&values, [], |_, x, []| x)
    }

    fn observed_values<T: Scalar>(&self, block: &Block<'_>, row: usize, values: &[T]) -> Vec<f64> {
        self.observed(block, row).map(|f| self.by_feature(f, values[f].to_f64())).collect()
    }

    /// The observed fraction of a row: by the mean squares of its features, or by their number if all mean squares are zero.
    fn share(&self, block: &Block<'_>, row: usize) -> f64 {
        let squares = &self.scaling.squares;
        let all: f64 = squares.iter().sum();
        let here: f64 = self.observed(block, row).filter_map(|f| squares.get(f)).sum();
        if here > 0.0 {
            return here / all;
        }
        let counted = |features: &mut dyn Iterator<Item = usize>| {
            features.filter(|&f| !self.is_left_out(f)).count().max(1) as f64
        };
        counted(&mut self.observed(block, row)) / counted(&mut (0..self.features))
    }

    /// `‖x'‖²` of the observed cells of an instance.
    pub fn observed_square(&self, block: &Block<'_>, (instance, row): (usize, usize)) -> f64 {
        if block.holes.row(row).is_empty() {
            return self.square(block, (instance, row));
        }
        (self.observed_length(block, row) * self.full_factor(instance)).powi(2)
    }

    /// `Σ (x'_f − u_fᵀv)²` over the missing cells of an instance, with their fill values.
    pub fn hole_error(&self, block: &Block<'_>, at: (usize, usize), basis: &Matrix, v: &[f64]) -> f64 {
        let error = |f: usize| (self.value(block, at, f) - dot(basis.row(f), v)).powi(2);
        self.holes(block, at.1).map(error).sum()
    }

    /// `Σ x'_f u_f` over the observed cells of an instance, in double precision; `u_f` is at `f · width`.
    pub fn project_observed(
        &self,
        block: &Block<'_>,
        at: (usize, usize),
        basis: &[f64],
        width: usize,
        out: &mut [f64],
    ) {
        out.fill(0.0);
        for f in self.observed(block, at.1) {
            let value = self.value(block, at, f);
            out.iter_mut().zip(&basis[f * width..(f + 1) * width]).for_each(|(out, u)| *out += value * u);
        }
    }

    /// Calls `each` with the observed features of a row.
    pub fn each_observed(&self, block: &Block<'_>, row: usize, each: impl FnMut(usize)) {
        self.observed(block, row).for_each(each);
    }

    /// The rows of a basis, each padded with zeros to [`padded`] numbers, if any cell of the view is missing; otherwise
    /// empty.
    pub fn hole_basis(&self, basis: &Matrix) -> Vec<f64> {
        if !self.lacks_cells {
            return Vec::new();
        }
        let width = padded(basis.columns());
        let mut rows = vec![0.0; basis.rows() * width];
        for (padded, row) in rows.chunks_exact_mut(width).zip(basis.iter_rows()) {
            padded[..row.len()].copy_from_slice(row);
        }
        rows
    }

    /// Sums over missing cells, all zero.
    pub(super) fn hole_sums(&self, latent: usize) -> HoleSums {
        let length = if self.lacks_cells { self.features * padded(latent) } else { 0 };
        HoleSums { cross: vec![0.0; length], square: 0.0 }
    }
}

/// The length of a row of V or of a basis, rounded up to whole registers.
pub fn padded(latent: usize) -> usize {
    latent.next_multiple_of(LANES)
}

/// The contribution of missing cells to the statistics of some instances.
#[derive(Debug)]
pub(crate) struct HoleSums {
    /// `Σ (u_fᵀv − x'_f) v`, where `x'_f` is the fill value: a padded row for each feature.
    pub cross: Vec<f64>,
    /// `Σ (u_fᵀv)²`.
    pub square: f64,
}

impl HoleSums {
    /// Adds the sums of a block, and clears them.
    pub fn absorb(&mut self, block: &mut Self) {
        self.square += std::mem::take(&mut block.square);
        for (total, own) in self.cross.iter_mut().zip(&mut block.cross) {
            *total += std::mem::take(own);
        }
    }

    pub fn add_to(&self, cross: &mut Matrix) {
        let width = padded(cross.columns());
        for (f, own) in self.cross.chunks_exact(width.max(1)).enumerate() {
            cross.row_mut(f).iter_mut().zip(own).for_each(|(cross, own)| *cross += own);
        }
    }
}
