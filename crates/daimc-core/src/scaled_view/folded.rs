//! The products of a sweep, for shards that multiply stored rows themselves.
//!
//! The scaling is folded into the bases before the products and removed from the sums after them.

use super::{ScaledView, scaled};
use crate::scaling::Scaling;
use crate::source::{Block, Rows};
use crate::{Layout, Matrix};

impl ScaledView {
    /// The layout of the rows.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The factor `f` for the products, if it is the same for all instances.
    pub fn common_factor(&self) -> Option<f64> {
        (self.by_row || self.factors.is_empty()).then(|| self.factor(0))
    }

    /// Whether rows are scaled one by one, before the products.
    pub fn is_by_row(&self) -> bool {
        self.by_row
    }

    /// The row of an instance for products with dense rows that are scaled one by one: `x' − μ`.
    pub fn scaled_row(&self, block: &Block<'_>, (instance, row): (usize, usize), out: &mut Vec<f64>) {
        let (d, whole) = (self.features, self.full_factor(instance));
        out.clear();
        match block.rows {
            Rows::DenseF32(x) => out.extend(x[row * d..(row + 1) * d].iter().map(|&x| f64::from(x))),
            Rows::DenseF64(x) => out.extend_from_slice(&x[row * d..(row + 1) * d]),
            Rows::SparseF32(_) | Rows::SparseF64(_) => {}
        }
        for (f, value) in out.iter_mut().enumerate() {
            let [m, c, centre] = self.terms(f);
            *value = scaled(*value, m, c) * whole - centre;
        }
    }

    /// m, c and μ of each feature, from which such rows are computed.
    pub fn scaled_terms(&self) -> Vec<[f64; 3]> {
        (0..self.features).map(|f| self.terms(f)).collect()
    }

    fn terms(&self, f: usize) -> [f64; 3] {
        let Scaling { shift, factor, .. } = &self.scaling;
        let of = |values: &[f64], default: f64| values.get(f).copied().unwrap_or(default);
        [of(shift, 0.0), of(factor, 1.0), of(&self.centre, 0.0)]
    }

    /// `Ũ` and `o` with `x'ᵀU = f (xᵀŨ − o)`.
    pub fn fold(&self, vectors: &Matrix) -> (Matrix, Vec<f64>) {
        let Scaling { shift, factor, .. } = &self.scaling;
        if self.by_row {
            let offset = self.along_centre(vectors).into_iter().map(|along| -along).collect();
            return (vectors.clone(), offset);
        }
        let factor = |f: usize| factor.get(f).copied().unwrap_or(1.0);
        let folded = Matrix::from_fn(vectors.rows(), vectors.columns(), |f, k| factor(f) * vectors[(f, k)]);
        let mut offset = vec![0.0; vectors.columns()];
        for (f, m) in shift.iter().enumerate() {
            offset.iter_mut().zip(folded.row(f)).for_each(|(offset, u)| *offset += m * u);
        }
        (folded, offset)
    }

    /// Converts `Σ x (f v)ᵀ`, d × K, and `Σ f v` to `Σ x' vᵀ`.
    pub fn unfold(&self, sums: &mut Matrix, weights: &[f64]) {
        let Scaling { shift, factor, .. } = &self.scaling;
        for f in 0..sums.rows() {
            let row = sums.row_mut(f).iter_mut().zip(weights);
            if self.by_row {
                let centre = self.centre.get(f).copied().unwrap_or(0.0);
                row.for_each(|(sum, weight)| *sum += centre * weight);
            } else {
                let m = shift.get(f).copied().unwrap_or(0.0);
                let c = factor.get(f).copied().unwrap_or(1.0);
                row.for_each(|(sum, weight)| *sum = (*sum - m * weight) * c);
            }
        }
    }
}
