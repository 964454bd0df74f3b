//! Distances between scaled rows and vectors, measured from the centre of the view so that a common offset of all rows
//! costs no precision:
//!
//! ```text
//! ‖x' − c‖² = ‖x' − μ‖² + ‖c − μ‖² − 2 (x' − μ)ᵀ(c − μ)
//! ```

use pulp::{Arch, Simd, WithSimd};

use super::{Operand, ScaledView, length_of, scaled};
use crate::Matrix;
use crate::kernel::Scalar;
use crate::linalg::column_squares;
use crate::matrix::dot;
use crate::source::{Block, Csr, Rows};

/// Vectors to compare rows with.
#[derive(Debug)]
pub(crate) struct Targets {
    /// For the products `x'ᵀ(c − μ)`.
    pub operand: Operand,
    /// `‖c − μ‖² + 2 μᵀ(c − μ)`.
    pub squares: Vec<f64>,
}

impl Targets {
    /// Converts the products of a row, given its squared distance from the centre, to its squared distances from the vectors.
    pub fn distances(&self, square: f64, products: &mut [f64]) {
        for (product, own) in products.iter_mut().zip(&self.squares) {
            *product = (square + own - 2.0 * *product).max(0.0);
        }
    }
}

impl ScaledView {
    /// Prepares vectors, the columns of a d × K matrix, for distances.
    pub(crate) fn targets(&self, vectors: &Matrix) -> Targets {
        if self.centre.is_empty() {
            return Targets { operand: self.operand(vectors), squares: column_squares(vectors) };
        }
        let vectors =
            Matrix::from_fn(vectors.rows(), vectors.columns(), |f, k| vectors[(f, k)] - self.centre[f]);
        let mut squares = column_squares(&vectors);
        let along = self.along_centre(&vectors);
        squares.iter_mut().zip(along).for_each(|(square, along)| *square += 2.0 * along);
        Targets { operand: self.operand(&vectors), squares }
    }

    /// `μᵀu` of the columns of a d × K matrix; zero without a centre.
    pub fn along_centre(&self, vectors: &Matrix) -> Vec<f64> {
        let mut along = vec![0.0; vectors.columns()];
        for (value, row) in self.centre.iter().zip(vectors.iter_rows()) {
            along.iter_mut().zip(row).for_each(|(along, u)| *along += value * u);
        }
        along
    }

    /// Measures distances of rows from the centre, or from the origin if there is none.
    pub(crate) fn measure(&self) -> FromCentre<'_> {
        let shift = self.scaling.shift.iter().zip(&self.scaling.factor);
        FromCentre {
            scaled_view: self,
            square: dot(&self.centre, &self.centre),
            zero: shift.zip(&self.centre).map(|((m, c), centre)| scaled(0.0, *m, *c) * centre).sum(),
        }
    }
}

/// Appends the squared distances of some instances, compiled as a whole for the vector instructions of the CPU.
struct Measured<'a> {
    by: &'a FromCentre<'a>,
    block: &'a Block<'a>,
    rows: &'a [(usize, usize)],
    squares: &'a mut Vec<f64>,
}

impl WithSimd for Measured<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { by, block, rows, squares } = self;
        squares.extend(rows.iter().map(|&at| by.square(block, at)));
    }
}

/// Distances of rows from the centre.
pub(crate) struct FromCentre<'a> {
    scaled_view: &'a ScaledView,
    /// `‖μ‖²`.
    square: f64,
    /// `(−m ∘ c)ᵀμ`: the product of a row of zeros with μ.
    zero: f64,
}

impl FromCentre<'_> {
    /// `‖x' − μ‖²` of some instances, `(instance, row)`, one after the other.
    pub fn squares(&self, block: &Block<'_>, rows: &[(usize, usize)], squares: &mut Vec<f64>) {
        squares.clear();
        Arch::new().dispatch(Measured { by: self, block, rows, squares });
    }

    #[inline(always)]
    fn square(&self, block: &Block<'_>, (instance, row): (usize, usize)) -> f64 {
        let factor = self.scaled_view.full_factor(instance);
        if self.scaled_view.centre.is_empty() {
            return (self.scaled_view.lengths(block, row).1 * factor).powi(2);
        }
        let length = || self.scaled_view.square(block, (instance, row)).sqrt();
        self.length(block, row, factor, length).powi(2)
    }

    /// `‖x' − μ‖` of a row with this factor and this `‖x'‖`.
    #[inline(always)]
    pub(super) fn length(
        &self,
        block: &Block<'_>,
        row: usize,
        factor: f64,
        length: impl FnOnce() -> f64,
    ) -> f64 {
        let d = self.scaled_view.features;
        match block.rows {
            Rows::DenseF32(x) => self.dense(&x[row * d..(row + 1) * d], factor),
            Rows::DenseF64(x) => self.dense(&x[row * d..(row + 1) * d], factor),
            Rows::SparseF32(csr) => self.sparse(csr, row, factor, length()),
            Rows::SparseF64(csr) => self.sparse(csr, row, factor, length()),
        }
    }

    #[inline(always)]
    fn dense<T: Scalar>(&self, row: &[T], whole: f64) -> f64 {
        let ScaledView { scaling, centre, .. } = self.scaled_view;
        let (shift, factor) = (&scaling.shift, &scaling.factor);
        match (shift.is_empty(), factor.is_empty()) {
            (_, true) => length_of(row, [centre], |_, x, [own]| x * whole - own),
            (true, false) => length_of(row, [factor, centre], |_, x, [c, own]| x * c * whole - own),
            (false, false) => {
                let terms = [shift, factor, centre].map(Vec::as_slice);
                length_of(row, terms, |_, x, [m, c, own]| scaled(x, m, c) * whole - own)
            }
        }
    }

    /// From the stored values only, in double precision.
    fn sparse<T: Scalar>(&self, csr: Csr<'_, T>, row: usize, whole: f64, length: f64) -> f64 {
        let ScaledView { scaling, centre, .. } = self.scaled_view;
        let (columns, values) = csr.row(row);
        let along = columns.iter().zip(values).map(|(&f, value)| {
            let f = f as usize;
            value.to_f64() * scaling.factor.get(f).copied().unwrap_or(1.0) * centre[f]
        });
        let along = whole * (along.sum::<f64>() + self.zero);
        (length * length - 2.0 * along + self.square).max(0.0).sqrt()
    }
}
