//! Rows of a view as query vectors for products with its other rows.

use super::products::Typed;
use super::{Operand, ScaledView, scaled};
use crate::kernel::{Scalar, sparse};
use crate::source::{Block, Csr, Rows};
use crate::{Layout, Matrix};

/// Maximum number of query vectors, and the maximum bytes of those of a wide sparse view.
pub const MOST: usize = 64;
const BYTES: usize = 16 << 20;

/// Some rows, in the layout for products with all others. Rows of a sparse view are written into a reused layout, and
/// only where they store something: most features of a wide view are in none of them.
pub struct Queries<'a> {
    scaled_view: &'a ScaledView,
    count: usize,
    operand: Option<Operand>,
    /// Features that are not zero in the layout.
    touched: Vec<u32>,
    /// `μᵀ(x' − μ)` of each.
    along: Vec<f64>,
}

impl<'a> Queries<'a> {
    /// Queries in the scaled rows of a view.
    pub fn new(scaled_view: &'a ScaledView) -> Self {
        // The bytes of a feature for eight vectors.
        let eight = match scaled_view.layout {
            Layout::SparseF32 if scaled_view.stays_sparse() => 32 * scaled_view.features,
            Layout::SparseF64 if scaled_view.stays_sparse() => 64 * scaled_view.features,
            _ => 0,
        };
        let count = BYTES.checked_div(eight).map_or(MOST, |eights| (8 * eights).clamp(8, MOST));
        Self { scaled_view, count, operand: None, touched: Vec::new(), along: Vec::new() }
    }

    /// The number of rows per batch.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Sets the query rows, at most [`Queries::count`]: returns the operand for products with `x' − μ` of each, and
    /// `μᵀ(x' − μ)`. Products beyond their number are zero.
    pub fn take(&mut self, block: &Block<'_>, rows: &[(usize, usize)]) -> (&Operand, &[f64]) {
        let scaled_view = self.scaled_view;
        self.along.clear();
        let operand = match block.rows {
            Rows::SparseF32(csr) if scaled_view.stays_sparse() => {
                self.along.resize(rows.len(), 0.0);
                fill((scaled_view, self.count), csr, rows, &mut self.operand, &mut self.touched)
            }
            Rows::SparseF64(csr) if scaled_view.stays_sparse() => {
                self.along.resize(rows.len(), 0.0);
                fill((scaled_view, self.count), csr, rows, &mut self.operand, &mut self.touched)
            }
            _ => {
                let values: Vec<Vec<f64>> = rows.iter().map(|&at| scaled_view.values(block, at)).collect();
                let centre = |f: usize| scaled_view.centre.get(f).copied().unwrap_or(0.0);
                let vectors =
                    Matrix::from_fn(scaled_view.features, rows.len(), |f, q| values[q][f] - centre(f));
                self.along = scaled_view.along_centre(&vectors);
                self.operand.insert(scaled_view.operand(&vectors))
            }
        };
        (operand, &self.along)
    }
}

/// Writes the rows of a sparse view into the layout, which is zero except for the features in `touched`.
fn fill<'o, T: Scalar>(
    (scaled_view, count): (&ScaledView, usize),
    csr: Csr<'_, T>,
    rows: &[(usize, usize)],
    operand: &'o mut Option<Operand>,
    touched: &mut Vec<u32>,
) -> &'o Operand
where
    Typed: AsLayout<T>,
{
    let operand =
        operand.get_or_insert_with(|| scaled_view.operand(&Matrix::zeros(scaled_view.features, count)));
    let width = sparse::padded::<T>(count);
    let layout = operand.values.layout();
    for feature in touched.drain(..) {
        layout[feature as usize * width..(feature as usize + 1) * width].fill(T::default());
    }
    let factor = &scaled_view.scaling.factor;
    for (q, &(instance, row)) in rows.iter().enumerate() {
        let (columns, values) = csr.row(row);
        let whole = scaled_view.full_factor(instance);
        for (&feature, value) in columns.iter().zip(values) {
            let c = factor.get(feature as usize).copied().unwrap_or(1.0);
            let own = scaled(whole * value.to_f64(), 0.0, c);
            layout[feature as usize * width + q] = T::from_f64(c * own);
        }
        touched.extend_from_slice(columns);
    }
    operand
}

/// The layout of an operand, in the element type of the data.
trait AsLayout<T> {
    fn layout(&mut self) -> &mut [T];
}

impl AsLayout<f32> for Typed {
    fn layout(&mut self) -> &mut [f32] {
        match self {
            Self::F32(values) => values,
            Self::F64(_) => &mut [],
        }
    }
}

impl AsLayout<f64> for Typed {
    fn layout(&mut self) -> &mut [f64] {
        match self {
            Self::F64(values) => values,
            Self::F32(_) => &mut [],
        }
    }
}

impl ScaledView {
    /// Whether a scaled row of a sparse view is zero where it stores nothing.
    fn stays_sparse(&self) -> bool {
        self.scaling.shift.is_empty() && self.centre.is_empty()
    }

    /// The scaled values of an instance.
    pub fn values(&self, block: &Block<'_>, at: (usize, usize)) -> Vec<f64> {
        let mut values = vec![0.0; self.features];
        self.add_row(block, at, 1.0, &mut values);
        self.finish_row(self.full_factor(at.0), &mut values);
        values
    }
}
