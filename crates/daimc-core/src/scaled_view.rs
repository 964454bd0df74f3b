//! A view with its scaling applied, without storing scaled rows.
//!
//! With `x' = f (x − m) ∘ c` (row factor f, shift m, column factor c) the products of a sweep are
//!
//! ```text
//! x'ᵀ U     = f ( xᵀ(c ∘ U) − mᵀ(c ∘ U) )
//! Σ x' vᵀ   = c ∘ ( Σ x (f v)ᵀ − m (Σ f v)ᵀ )
//! ```
//!
//! so a column factor goes into the basis, a shift becomes an offset, and a row factor goes into V. The scaling costs
//! O(dK) per sweep, and a sparse view stays sparse, also with min-max or z-score. If the subtraction would lose digits (a
//! feature whose mean is thousands of times its spread, in `f32`), the rows of a tile are scaled one by one into a buffer
//! instead; a sparse view is then refused.
//!
//! Rows that are far from the origin and close together (values with an offset) would lose their differences in every
//! product. Such a view has a *centre* μ, a point among its scaled rows: dense rows are multiplied as `x' − μ`, the
//! contribution of μ is added in double precision, and distances are measured from it, see `ScaledView::targets`. A sparse
//! row minus μ is not sparse: its products are those of `x'`, but with vectors from which μ is subtracted, which leaves
//! an error proportional to the offset instead of to its square.

mod distances;
mod folded;
mod holes;
mod lanes;
mod norms;
mod products;
mod queries;

use std::array::from_fn;

use pulp::{Arch, Simd, WithSimd};

use crate::kernel::Scalar;
use crate::scaling::Scaling;
use crate::scan::Scan;
use crate::source::{Block, Buffer, Csr, Rows};
use crate::table::Table;
use crate::{Error, Layout, Result};
pub(crate) use distances::{FromCentre, Targets};
pub use holes::padded;
pub use lanes::Members;
pub(crate) use lanes::Right;
pub use norms::{Limits, Norms, Parts, RowNorms};
pub(crate) use products::{CrossSums, Total, Touched};
pub use products::{Operand, Scratch};
pub use queries::{MOST as MOST_QUERIES, Queries};

/// The scaled rows of one view.
#[derive(Debug)]
pub struct ScaledView {
    /// The scaling.
    pub scaling: Scaling,
    layout: Layout,
    features: usize,
    /// `f` of each instance; empty: `scaling.weight` for all.
    factors: Vec<f64>,
    /// Rows are scaled one by one, before the products.
    by_row: bool,
    /// μ, a point close to all scaled rows relative to their distance from the origin; empty: there is none.
    centre: Vec<f64>,
    /// `‖(x − m) ∘ c‖²` of a row of zeros.
    square_of_zero: f64,
    /// `Σ_j ‖x'_j‖²` over the present instances, without missing cells.
    pub sum_squares: f64,
    /// The bytes of all rows.
    bytes: usize,
    /// Whether any row has missing cells.
    pub lacks_cells: bool,
}

/// The loss of precision that folding the shift into the products may cause, as a factor.
fn tolerable_shift<T: Scalar>() -> f64 {
    1e-4 / T::EPSILON
}

/// Magnitudes beyond which products of unscaled rows could overflow or underflow.
fn safe_range<T: Scalar>() -> std::ops::RangeInclusive<f64> {
    if T::EPSILON > 1e-10 { 1e-12..=1e12 } else { 1e-100..=1e100 }
}

/// The length of a scaled row beyond which its products with a basis could overflow.
fn longest<T: Scalar>() -> f64 {
    if T::EPSILON > 1e-10 { 1e15 } else { 1e100 }
}

impl ScaledView {
    /// Measures a view of the source with the scaling `scaling`. `equal_weight` sets the weight of the view so that its
    /// mean squared row length is 1; rows with missing cells count by their observed fraction, as missing rows do not
    /// count at all.
    pub fn fit(table: &impl Table, view: usize, scaling: Scaling, equal_weight: bool) -> Result<Self> {
        // A weight that is not set yet may bring rows of any length into range.
        let (mut scaled_view, norms) = Self::look(table, view, scaling, equal_weight)?;
        let (count, sum) = norms.lengths;
        if count > 0.0 && (sum / count).is_finite() {
            scaled_view.scaling.length = sum / count;
        }
        if equal_weight {
            // A view of zeros keeps its weight.
            if let Some(weight) = norms.squares.weight_for(norms.shown) {
                scaled_view.scaling.weight *= weight;
                scaled_view.factors.iter_mut().for_each(|factor| *factor *= weight);
                scaled_view.centre.iter_mut().for_each(|value| *value *= weight);
                scaled_view.sum_squares = norms.squares.value(weight);
            }
        }
        Ok(scaled_view)
    }

    /// Multiplies the share of the view in the loss by its importance.
    pub fn weigh(&mut self, importance: f64) {
        let factor = importance.sqrt();
        self.scaling.importance *= importance;
        self.scaling.weight *= factor;
        self.factors.iter_mut().for_each(|own| *own *= factor);
        self.centre.iter_mut().for_each(|value| *value *= factor);
        self.sum_squares *= importance;
    }

    /// Measures a view of the source with a complete scaling, such as that of a model.
    pub fn new(table: &impl Table, view: usize, scaling: Scaling) -> Result<Self> {
        Self::look(table, view, scaling, false).map(|(scaled_view, _)| scaled_view)
    }

    /// A scaled view before any row is read.
    fn blank(scaling: Scaling, layout: Layout, features: usize) -> Self {
        Self {
            square_of_zero: square_of_zero(&scaling),
            scaling,
            layout,
            features,
            factors: Vec::new(),
            by_row: false,
            centre: Vec::new(),
            sum_squares: 0.0,
            bytes: 0,
            lacks_cells: false,
        }
    }

    fn look(table: &impl Table, view: usize, scaling: Scaling, any_length: bool) -> Result<(Self, Norms)> {
        let (features, layout) = (table.schema().view(view).features(), table.layout(view));
        let mut scaled_view = Self::blank(scaling, layout, features);
        let scaled = match layout {
            _ if any_length => f64::MAX.sqrt(),
            Layout::DenseF32 | Layout::SparseF32 => longest::<f32>(),
            Layout::DenseF64 | Layout::SparseF64 => longest::<f64>(),
        };
        // Sparse rows are multiplied as stored.
        let stored = match layout {
            Layout::DenseF32 | Layout::DenseF64 => f64::INFINITY,
            Layout::SparseF32 => longest::<f32>(),
            Layout::SparseF64 => longest::<f64>(),
        };
        scaled_view.centre = scaled_view.pilot(table, view)?;
        let (factors, norms) = scaled_view.norms(table, view, Limits { scaled, stored })?;
        if let Some(row) = norms.refused(any_length) {
            return Err(not_finite(table.rows(), view, row)?.unwrap_or_else(|| Error::TooLarge {
                view: table.schema().view_name(view).into(),
                row,
                id: table.schema().ids().get(row),
            }));
        }
        scaled_view.factors = factors;
        scaled_view.sum_squares = norms.squares.value(1.0);
        scaled_view.bytes = norms.bytes;
        scaled_view.lacks_cells = norms.lacks_cells;
        let (far, offset, extreme) = match layout {
            Layout::DenseF32 | Layout::SparseF32 => scaled_view.traps::<f32>(&norms),
            Layout::DenseF64 | Layout::SparseF64 => scaled_view.traps::<f64>(&norms),
        };
        let dense = layout.is_dense();
        if far && !dense {
            return Err(Error::Scaling {
                view: table.schema().view_name(view).into(),
                scale: scaled_view.scaling.scale.to_string(),
                reason:
                    "the shift of a feature is so much larger than its spread that the view would have to be \
                         made dense; give it as a dense view, or use unit or tf-idf"
                        .into(),
            });
        }
        if !offset {
            scaled_view.centre = Vec::new();
        }
        scaled_view.by_row = dense && (far || offset || extreme);
        Ok((scaled_view, norms))
    }

    /// Conditions that cost precision: a shift that is far larger than the spread, an offset of the scaled rows,
    /// magnitudes that overflow or underflow.
    fn traps<T: Scalar>(&self, norms: &Norms) -> (bool, bool, bool) {
        let offset = norms.from_centre.root() < norms.squares.root() / tolerable_shift::<T>().sqrt();
        let extreme = self.is_extreme::<T>(norms.smallest, norms.largest);
        (self.is_far::<T>(), offset, extreme)
    }

    /// μ, if all scaled rows are close to a point relative to their distance from the origin; otherwise empty.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// The average stored bytes of a row.
    pub fn bytes_per_row(&self, instances: usize) -> usize {
        self.bytes / instances.max(1)
    }

    /// Whether folding the shift into the products would lose too many digits.
    fn is_far<T: Scalar>(&self) -> bool {
        let Scaling { shift, factor, .. } = &self.scaling;
        shift.iter().zip(factor).any(|(m, c)| (m * c).abs() > tolerable_shift::<T>())
    }

    /// Whether products of stored rows could overflow or underflow, given the lengths of the shortest and the longest row.
    fn is_extreme<T: Scalar>(&self, smallest: f64, largest: f64) -> bool {
        let range = safe_range::<T>();
        let out = |value: f64| value != 0.0 && !range.contains(&value);
        self.scaling.factor.iter().any(|c| out(c.abs())) || largest > 0.0 && (out(largest) || out(smallest))
    }

    /// The factor `f` of an instance, to multiply the products with.
    #[inline]
    pub fn factor(&self, instance: usize) -> f64 {
        if self.by_row { 1.0 } else { self.full_factor(instance) }
    }

    /// The factor `f` of an instance, also if it is applied row by row.
    pub fn full_factor(&self, instance: usize) -> f64 {
        if self.factors.is_empty() { self.scaling.weight } else { self.factors[instance] }
    }

    /// `‖x‖` and `‖(x − m) ∘ c‖` of a row.
    #[inline(always)]
    fn lengths(&self, block: &Block<'_>, row: usize) -> (f64, f64) {
        match block.rows {
            Rows::DenseF32(x) => self.dense_lengths(&x[row * self.features..][..self.features]),
            Rows::DenseF64(x) => self.dense_lengths(&x[row * self.features..][..self.features]),
            Rows::SparseF32(csr) => self.sparse_lengths(csr, row),
            Rows::SparseF64(csr) => self.sparse_lengths(csr, row),
        }
    }

    #[inline(always)]
    fn dense_lengths<T: Scalar>(&self, row: &[T]) -> (f64, f64) {
        let Scaling { shift, factor, .. } = &self.scaling;
        match (shift.is_empty(), factor.is_empty()) {
            (_, true) => {
                let stored = length_of(row, [], |_, x, []| x);
                (stored, stored)
            }
            (true, false) => both_lengths(row, [factor], |_, x, [c]| x * c),
            (false, false) => both_lengths(row, [shift, factor], |_, x, [m, c]| scaled(x, m, c)),
        }
    }

    fn sparse_lengths<T: Scalar>(&self, csr: Csr<'_, T>, row: usize) -> (f64, f64) {
        let Scaling { shift, factor, .. } = &self.scaling;
        let (columns, values) = csr.row(row);
        let stored = length_of(values, [], |_, x, []| x);
        if factor.is_empty() {
            return (stored, stored);
        }
        if shift.is_empty() {
            return (stored, length_of(values, [], |i, x, []| x * factor[columns[i] as usize]));
        }
        let changes = columns.iter().zip(values).map(|(&f, value)| {
            let (m, c) = (shift[f as usize], factor[f as usize]);
            scaled(value.to_f64(), m, c).powi(2) - scaled(0.0, m, c).powi(2)
        });
        (stored, (self.square_of_zero + changes.sum::<f64>()).max(0.0).sqrt())
    }

    /// Adds `weight · x'_i` to `target`, without the shift: see [`ScaledView::finish_row`].
    pub fn add_row(
        &self,
        block: &Block<'_>,
        (instance, row): (usize, usize),
        weight: f64,
        target: &mut [f64],
    ) {
        self.add_stored(block, row, weight * self.full_factor(instance), target);
    }

    /// Adds `weight · x` of a stored row to `target`.
    fn add_stored(&self, block: &Block<'_>, row: usize, weight: f64, target: &mut [f64]) {
        let d = self.features;
        match block.rows {
            Rows::DenseF32(x) => add_dense(&x[row * d..(row + 1) * d], weight, target),
            Rows::DenseF64(x) => add_dense(&x[row * d..(row + 1) * d], weight, target),
            Rows::SparseF32(csr) => add_sparse(csr, row, weight, target),
            Rows::SparseF64(csr) => add_sparse(csr, row, weight, target),
        }
    }

    /// Converts `Σ f x` and `Σ f` to `Σ x'`.
    pub fn finish_row(&self, total_factor: f64, target: &mut [f64]) {
        for (f, value) in target.iter_mut().enumerate() {
            *value = self.finish(f, total_factor, *value);
        }
    }

    /// Converts `Σ f x` of one feature and `Σ f` to `Σ x'`.
    #[inline]
    pub fn finish(&self, feature: usize, total_factor: f64, value: f64) -> f64 {
        let Scaling { shift, factor, .. } = &self.scaling;
        let shifted = shift.get(feature).map_or(value, |m| value - total_factor * m);
        factor.get(feature).map_or(shifted, |&c| if c == 0.0 { 0.0 } else { shifted * c })
    }

    /// `‖x'‖²` of an instance, from its stored values, with the fill values of missing cells.
    pub fn square(&self, block: &Block<'_>, (instance, row): (usize, usize)) -> f64 {
        (Arch::new().dispatch(ScaledLength { scaled_view: self, block, row }) * self.full_factor(instance))
            .powi(2)
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.features
    }
}

/// `‖(x − m) ∘ c‖` of a row.
struct ScaledLength<'a> {
    scaled_view: &'a ScaledView,
    block: &'a Block<'a>,
    row: usize,
}

impl WithSimd for ScaledLength<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        self.scaled_view.lengths(self.block, self.row).1
    }
}

/// The error that names a non-finite value in the row of an instance, if there is one.
fn not_finite(scan: &Scan<'_>, view: usize, instance: usize) -> Result<Option<Error>> {
    fn find<T: Scalar>(values: &[T]) -> Option<(usize, f64)> {
        values.iter().map(|value| value.to_f64()).enumerate().find(|(_, value)| !value.is_finite())
    }
    let schema = scan.schema().view(view);
    let d = schema.features();
    let mut buffer = Buffer::default();
    let block = scan.read(view, instance..instance + 1, &mut buffer)?;
    let Some(row) = block.index.row(0) else { return Ok(None) };
    let found = match block.rows {
        Rows::DenseF32(x) => find(&x[row * d..(row + 1) * d]),
        Rows::DenseF64(x) => find(&x[row * d..(row + 1) * d]),
        Rows::SparseF32(csr) => find(csr.row(row).1).map(|(i, value)| (csr.row(row).0[i] as usize, value)),
        Rows::SparseF64(csr) => find(csr.row(row).1).map(|(i, value)| (csr.row(row).0[i] as usize, value)),
    };
    Ok(found.map(|(column, value)| Error::NotFinite {
        view: schema.name().into(),
        row: instance,
        id: scan.schema().ids().get(instance),
        column,
        feature: schema.feature_name(column),
        value,
    }))
}

/// `‖(x − m) ∘ c‖²` of a row of zeros.
fn square_of_zero(scaling: &Scaling) -> f64 {
    let shift = scaling.shift.iter().zip(&scaling.factor);
    shift.map(|(m, c)| scaled(0.0, *m, *c).powi(2)).sum()
}

/// `1/length`, and 1 for a row of zeros, which stays a row of zeros.
fn reciprocal(length: f64) -> f64 {
    let reciprocal = 1.0 / length;
    if reciprocal.is_finite() { reciprocal } else { 1.0 }
}

/// `(x − m) c`; a feature that the scaling drops is always zero.
#[inline(always)]
pub fn scaled(x: f64, m: f64, c: f64) -> f64 {
    if c == 0.0 { 0.0 } else { (x - m) * c }
}

/// `√Σ term²` over the values of a row, also if the squares overflow or underflow. A term is a function of the index of
/// the value, the value, and the values at the same index of each of `others`.
#[inline(always)]
fn length_of<T: Scalar, const M: usize>(
    row: &[T],
    others: [&[f64]; M],
    term: impl Fn(usize, f64, [f64; M]) -> f64,
) -> f64 {
    let [square] = sums_of(row, others, |i, x, others| [term(i, x, others).powi(2)]);
    length_from(square, row, others, term)
}

/// The length of a stored row, and that of its terms, from one pass over the row.
#[inline(always)]
fn both_lengths<T: Scalar, const M: usize>(
    row: &[T],
    others: [&[f64]; M],
    term: impl Fn(usize, f64, [f64; M]) -> f64,
) -> (f64, f64) {
    let [stored, scaled] = sums_of(row, others, |i, x, others| [x.powi(2), term(i, x, others).powi(2)]);
    (length_from(stored, row, [], |_, x, []| x), length_from(scaled, row, others, term))
}

/// `√Σ term²`, given the sum of the squares as computed without precautions.
#[inline(always)]
fn length_from<T: Scalar, const M: usize>(
    square: f64,
    row: &[T],
    others: [&[f64]; M],
    term: impl Fn(usize, f64, [f64; M]) -> f64,
) -> f64 {
    if square.is_nan() || square.is_finite() && square > 1e-280 {
        return square.sqrt();
    }
    let term = |i: usize, x: f64| term(i, x, from_fn(|m| others[m][i]));
    let terms = row.iter().enumerate().map(|(i, value)| term(i, value.to_f64()));
    let largest = terms.map(f64::abs).fold(0.0, f64::max);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    // A power of two: the digits do not depend on the magnitude of the row.
    let unit = power_near(largest);
    let [square] = sums_of(row, [], |i, x, []| [(term(i, x) / unit).powi(2)]);
    square.sqrt() * unit
}

/// A power of two within a factor of two of a positive number, except at the ends of the range.
pub(crate) fn power_near(value: f64) -> f64 {
    2.0_f64.powi(value.log2().clamp(-1000.0, 1000.0) as i32)
}

/// `Σ terms` over the values of a row, in eight partial sums; see [`length_of`].
#[inline(always)]
fn sums_of<T: Scalar, const M: usize, const N: usize>(
    row: &[T],
    others: [&[f64]; M],
    terms: impl Fn(usize, f64, [f64; M]) -> [f64; N],
) -> [f64; N] {
    let (chunks, rest) = row.as_chunks::<8>();
    let start = 8 * chunks.len();
    // The same length as the row, which lets the compiler omit bounds checks.
    let whole: [&[[f64; 8]]; M] = from_fn(|m| &others[m].as_chunks::<8>().0[..chunks.len()]);
    let mut sums = [[0.0; 8]; N];
    for (i, chunk) in chunks.iter().enumerate() {
        let others: [[f64; 8]; M] = from_fn(|m| whole[m][i]);
        for lane in 0..8 {
            let terms = terms(8 * i + lane, chunk[lane].to_f64(), from_fn(|m| others[m][lane]));
            (0..N).for_each(|n| sums[n][lane] += terms[n]);
        }
    }
    let mut ends = [0.0; N];
    for (i, value) in (start..).zip(rest) {
        let terms = terms(i, value.to_f64(), from_fn(|m| others[m][i]));
        (0..N).for_each(|n| ends[n] += terms[n]);
    }
    from_fn(|n| sums[n].iter().sum::<f64>() + ends[n])
}

fn add_dense<T: Scalar>(row: &[T], weight: f64, target: &mut [f64]) {
    Arch::new().dispatch(AddDense { row, weight, target });
}

/// `target += weight · x`.
struct AddDense<'a, T> {
    row: &'a [T],
    weight: f64,
    target: &'a mut [f64],
}

impl<T: Scalar> WithSimd for AddDense<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (target, value) in self.target.iter_mut().zip(self.row) {
            *target += self.weight * value.to_f64();
        }
    }
}

fn add_sparse<T: Scalar>(csr: Csr<'_, T>, row: usize, weight: f64, target: &mut [f64]) {
    let (columns, values) = csr.row(row);
    for (&column, value) in columns.iter().zip(values) {
        target[column as usize] += weight * value.to_f64();
    }
}
