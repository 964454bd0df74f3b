//! A view as the algorithm sees it: its rows scaled, without ever writing a scaled row.
//!
//! With `x' = f (x − m) ∘ c` (row factor f, shift m, column factor c) the products of a sweep are
//!
//! ```text
//! x'ᵀ U     = f ( xᵀ(c ∘ U) − mᵀ(c ∘ U) )
//! Σ x' vᵀ   = c ∘ ( Σ x (f v)ᵀ − m (Σ f v)ᵀ )
//! ```
//!
//! so the scaling costs O(dK) per sweep and a sparse view stays sparse. Where the subtraction would lose digits (a
//! feature whose mean is thousands of times its spread, in `f32`) the rows of a tile are scaled one by one into
//! a buffer instead.

mod lanes;
mod products;

use crate::kernel::Scalar;
use crate::parallel::{block_size, ordered};
use crate::scale::Scaling;
use crate::source::{Block, Buffer, Csr, Rows, Source};
use crate::{Error, Result};
pub(crate) use lanes::{Members, Right};
pub(crate) use products::{Operand, Scratch, Sums, Total};

/// The scaled rows of one view.
#[derive(Debug)]
pub(crate) struct Lens {
    pub scaling: Scaling,
    features: usize,
    /// `f` of each instance; empty: `scaling.weight` for all.
    factors: Vec<f64>,
    /// Rows are scaled one by one, before the products.
    by_row: bool,
    /// `Σ_j ‖x'_j‖²` over the present instances.
    pub sum_squares: f64,
    /// Bytes of all rows.
    bytes: usize,
}

/// Digits that folding the shift into the products may lose, as a factor.
fn tolerable_shift<T: Scalar>() -> f64 {
    1e-4 / T::EPSILON
}

/// Magnitudes beyond which products of unscaled rows could leave the range of the type.
fn safe_range<T: Scalar>() -> std::ops::RangeInclusive<f64> {
    if T::EPSILON > 1e-10 { 1e-12..=1e12 } else { 1e-100..=1e100 }
}

/// The length of a scaled row beyond which products of it with a basis could leave the range of the type.
fn longest<T: Scalar>() -> f64 {
    if T::EPSILON > 1e-10 { 1e15 } else { 1e100 }
}

/// What the rows of a block contribute to a [`Lens`].
#[derive(Default)]
struct Norms {
    factors: Vec<f64>,
    sum_squares: f64,
    /// Largest and smallest nonzero length of a row as it is stored, as far as they matter.
    largest: f64,
    smallest: f64,
    too_large: Option<usize>,
    bytes: usize,
    buffer: Buffer,
}

impl Lens {
    /// Looks at a view of `source` through `scaling`; `equal_weight` sets the weight of the view so that its
    /// mean squared row length is 1.
    pub fn fit(source: &dyn Source, view: usize, scaling: Scaling, equal_weight: bool) -> Result<Self> {
        // A weight that is still to come may bring rows of any length into range.
        let mut lens = Self::look(source, view, scaling, equal_weight)?;
        let lengths = lens.factors.iter().filter(|factor| **factor > 0.0).map(|factor| 1.0 / factor);
        let (count, sum) = lengths.fold((0.0, 0.0), |(count, sum), length| (count + 1.0, sum + length));
        if count > 0.0 && (sum / count).is_finite() {
            lens.scaling.length = sum / count;
        }
        if equal_weight {
            let present = (0..source.instances()).filter(|&i| source.is_present(view, i)).count();
            let weight = (present as f64 / lens.sum_squares).sqrt();
            // A view of zeros keeps its weight.
            if weight.is_finite() && lens.sum_squares > 0.0 {
                lens.scaling.weight *= weight;
                lens.factors.iter_mut().for_each(|factor| *factor *= weight);
                lens.sum_squares *= weight * weight;
            }
        }
        Ok(lens)
    }

    /// Lets the view count as much as its importance says: the factor of its share of the loss.
    pub fn weigh(&mut self, importance: f64) {
        let factor = importance.sqrt();
        self.scaling.importance *= importance;
        self.scaling.weight *= factor;
        self.factors.iter_mut().for_each(|own| *own *= factor);
        self.sum_squares *= importance;
    }

    /// Looks at a view of `source` through a scaling that is complete, such as that of a model.
    pub fn new(source: &dyn Source, view: usize, scaling: Scaling) -> Result<Self> {
        Self::look(source, view, scaling, false)
    }

    fn look(source: &dyn Source, view: usize, scaling: Scaling, any_length: bool) -> Result<Self> {
        let features = source.features(view);
        let instances = source.instances();
        let unit = scaling.unit_rows();
        let size = block_size(instances);
        let mut factors = Vec::with_capacity(if unit { instances } else { 0 });
        let (mut sum_squares, mut largest, mut smallest) = (0.0, 0.0_f64, f64::INFINITY);
        let (mut too_large, mut bytes) = (None, 0);
        let mut buffer = Buffer::default();
        let kind = source.block(view, 0..instances.min(1), &mut buffer)?.rows;
        let limit = match kind {
            _ if any_length => f64::MAX.sqrt(),
            Rows::DenseF32(_) | Rows::SparseF32(_) => longest::<f32>(),
            Rows::DenseF64(_) | Rows::SparseF64(_) => longest::<f64>(),
        };
        // Products of sparse rows are taken as they are stored.
        let stored_limit = match kind {
            Rows::DenseF32(_) | Rows::DenseF64(_) => f64::INFINITY,
            Rows::SparseF32(_) => longest::<f32>(),
            Rows::SparseF64(_) => longest::<f64>(),
        };
        let mut lens =
            Self { scaling, features, factors: Vec::new(), by_row: false, sum_squares: 0.0, bytes: 0 };
        let square_of_zero = lens.square_of_zero();
        ordered(
            (0..instances).step_by(size),
            Norms::default,
            |start, norms| {
                let range = start..(start + size).min(instances);
                let mut buffer = std::mem::take(&mut norms.buffer);
                *norms = Norms { smallest: f64::INFINITY, ..Norms::default() };
                let block = source.block(view, range.clone(), &mut buffer)?;
                for i in 0..range.len() {
                    let Some(row) = block.index.row(i) else {
                        norms.factors.push(0.0);
                        continue;
                    };
                    let (stored, scaled) = lens.lengths(&block, row, square_of_zero);
                    let factor = if unit { reciprocal(scaled) } else { 1.0 } * lens.scaling.weight;
                    let square = (scaled * factor).powi(2);
                    if scaled * factor > limit || stored > stored_limit || square.is_nan() {
                        norms.too_large.get_or_insert(range.start + i);
                    }
                    norms.factors.push(factor);
                    norms.bytes += block.rows.bytes(row, features);
                    norms.sum_squares += square;
                    norms.largest = norms.largest.max(stored);
                    if stored > 0.0 {
                        norms.smallest = norms.smallest.min(stored);
                    }
                }
                norms.buffer = buffer;
                Ok::<_, Error>(())
            },
            |norms| {
                if unit {
                    factors.extend_from_slice(&norms.factors);
                }
                sum_squares += norms.sum_squares;
                bytes += norms.bytes;
                largest = largest.max(norms.largest);
                smallest = smallest.min(norms.smallest);
                too_large = too_large.or(norms.too_large);
            },
        )?;
        if !sum_squares.is_finite() {
            too_large = too_large.or(Some(0));
        }
        if let Some(row) = too_large {
            return Err(Error::TooLarge { view: source.name(view).into(), row, id: source.id(row) });
        }
        lens.factors = factors;
        lens.sum_squares = sum_squares;
        lens.bytes = bytes;
        let (far, dense) = match kind {
            Rows::DenseF32(_) => (lens.is_far::<f32>(), true),
            Rows::DenseF64(_) => (lens.is_far::<f64>(), true),
            Rows::SparseF32(_) => (lens.is_far::<f32>(), false),
            Rows::SparseF64(_) => (lens.is_far::<f64>(), false),
        };
        if far && !dense {
            return Err(Error::Scaling {
                view: source.name(view).into(),
                scale: lens.scaling.scale.to_string(),
                reason:
                    "the shift of a feature is so much larger than its spread that the view would have to be \
                         made dense; give it as a dense view, or use unit or tf-idf"
                        .into(),
            });
        }
        let extreme = match kind {
            Rows::DenseF32(_) | Rows::SparseF32(_) => lens.is_extreme::<f32>(smallest, largest),
            Rows::DenseF64(_) | Rows::SparseF64(_) => lens.is_extreme::<f64>(smallest, largest),
        };
        lens.by_row = dense && (far || extreme);
        Ok(lens)
    }

    /// Bytes that the view stores per row, on average.
    pub fn bytes_per_row(&self, instances: usize) -> usize {
        self.bytes / instances.max(1)
    }

    /// Whether folding the shift into the products would lose too many digits.
    fn is_far<T: Scalar>(&self) -> bool {
        let Scaling { shift, factor, .. } = &self.scaling;
        shift.iter().zip(factor).any(|(m, c)| (m * c).abs() > tolerable_shift::<T>())
    }

    /// Whether products of rows as they are stored could leave the range of the type; given are the lengths of the
    /// shortest and of the longest.
    fn is_extreme<T: Scalar>(&self, smallest: f64, largest: f64) -> bool {
        let range = safe_range::<T>();
        let out = |value: f64| value != 0.0 && !range.contains(&value);
        self.scaling.factor.iter().any(|c| out(c.abs())) || largest > 0.0 && (out(largest) || out(smallest))
    }

    /// `f` of an instance, to be multiplied with what the products give.
    #[inline]
    pub fn factor(&self, instance: usize) -> f64 {
        if self.by_row { 1.0 } else { self.full_factor(instance) }
    }

    /// `f` of an instance, whether or not it is applied row by row.
    pub fn full_factor(&self, instance: usize) -> f64 {
        if self.factors.is_empty() { self.scaling.weight } else { self.factors[instance] }
    }

    /// `‖(x − m) ∘ c‖²` of a row of zeros, which [`Lens::square`] needs; compute it once.
    pub fn square_of_zero(&self) -> f64 {
        let shift = self.scaling.shift.iter().enumerate();
        shift.map(|(f, m)| scaled(0.0, *m, self.scaling.factor[f]).powi(2)).sum()
    }

    /// `‖x‖` and `‖(x − m) ∘ c‖` of a row.
    fn lengths(&self, block: &Block<'_>, row: usize, square_of_zero: f64) -> (f64, f64) {
        match block.rows {
            Rows::DenseF32(x) => self.dense_lengths(&x[row * self.features..][..self.features]),
            Rows::DenseF64(x) => self.dense_lengths(&x[row * self.features..][..self.features]),
            Rows::SparseF32(csr) => self.sparse_lengths(csr, row, square_of_zero),
            Rows::SparseF64(csr) => self.sparse_lengths(csr, row, square_of_zero),
        }
    }

    fn dense_lengths<T: Scalar>(&self, row: &[T]) -> (f64, f64) {
        let Scaling { shift, factor, .. } = &self.scaling;
        let stored = length_of(row, |_, x| x);
        let scaled = match (shift.is_empty(), factor.is_empty()) {
            (_, true) => stored,
            (true, false) => length_of(row, |f, x| x * factor[f]),
            (false, false) => length_of(row, |f, x| scaled(x, shift[f], factor[f])),
        };
        (stored, scaled)
    }

    fn sparse_lengths<T: Scalar>(&self, csr: Csr<'_, T>, row: usize, square_of_zero: f64) -> (f64, f64) {
        let Scaling { shift, factor, .. } = &self.scaling;
        let (columns, values) = csr.row(row);
        let stored = length_of(values, |_, x| x);
        if factor.is_empty() {
            return (stored, stored);
        }
        if shift.is_empty() {
            return (stored, length_of(values, |i, x| x * factor[columns[i] as usize]));
        }
        let changes = columns.iter().zip(values).map(|(&f, value)| {
            let (m, c) = (shift[f as usize], factor[f as usize]);
            scaled(value.to_f64(), m, c).powi(2) - scaled(0.0, m, c).powi(2)
        });
        (stored, (square_of_zero + changes.sum::<f64>()).max(0.0).sqrt())
    }

    /// Adds `weight · x'_i` to `target`, without the shift: see [`Lens::finish_row`].
    pub fn add_row(
        &self,
        block: &Block<'_>,
        (instance, row): (usize, usize),
        weight: f64,
        target: &mut [f64],
    ) {
        let d = self.features;
        let weight = weight * self.full_factor(instance);
        match block.rows {
            Rows::DenseF32(x) => add_dense(&x[row * d..(row + 1) * d], weight, target),
            Rows::DenseF64(x) => add_dense(&x[row * d..(row + 1) * d], weight, target),
            Rows::SparseF32(csr) => add_sparse(csr, row, weight, target),
            Rows::SparseF64(csr) => add_sparse(csr, row, weight, target),
        }
    }

    /// Turns `Σ f x` and `Σ f` into `Σ x'`.
    pub fn finish_row(&self, total_factor: f64, target: &mut [f64]) {
        let Scaling { shift, factor, .. } = &self.scaling;
        for (value, m) in target.iter_mut().zip(shift) {
            *value -= total_factor * m;
        }
        for (value, c) in target.iter_mut().zip(factor) {
            *value = if *c == 0.0 { 0.0 } else { *value * c };
        }
    }

    /// `‖x'‖²` of an instance, from its stored values.
    pub fn square(&self, block: &Block<'_>, (instance, row): (usize, usize), square_of_zero: f64) -> f64 {
        let factor = self.full_factor(instance);
        (self.lengths(block, row, square_of_zero).1 * factor).powi(2)
    }

    pub fn features(&self) -> usize {
        self.features
    }
}

/// `1/length`, and 1 for a row of zeros, which stays a row of zeros.
fn reciprocal(length: f64) -> f64 {
    let reciprocal = 1.0 / length;
    if reciprocal.is_finite() { reciprocal } else { 1.0 }
}

/// `(x − m) c`; a feature that is left out is zero whatever its values.
#[inline(always)]
pub(crate) fn scaled(x: f64, m: f64, c: f64) -> f64 {
    if c == 0.0 { 0.0 } else { (x - m) * c }
}

/// `√Σ term²` over the values of a row, also where the squares leave the range of numbers.
#[inline(always)]
fn length_of<T: Scalar>(row: &[T], term: impl Fn(usize, f64) -> f64) -> f64 {
    let square = sum_of(row, |i, x| term(i, x).powi(2));
    if square.is_finite() && square > 1e-280 {
        return square.sqrt();
    }
    let terms = || row.iter().enumerate().map(|(i, value)| term(i, value.to_f64()));
    let largest = terms().map(f64::abs).fold(0.0, f64::max);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * terms().map(|term| (term / largest).powi(2)).sum::<f64>().sqrt()
}

#[inline(always)]
fn sum_of<T: Scalar>(row: &[T], term: impl Fn(usize, f64) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    let (chunks, rest) = row.as_chunks::<8>();
    for (i, chunk) in chunks.iter().enumerate() {
        for (lane, value) in chunk.iter().enumerate() {
            sums[lane] += term(8 * i + lane, value.to_f64());
        }
    }
    let start = 8 * chunks.len();
    let rest = rest.iter().enumerate().map(|(i, value)| term(start + i, value.to_f64()));
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}

fn add_dense<T: Scalar>(row: &[T], weight: f64, target: &mut [f64]) {
    for (target, value) in target.iter_mut().zip(row) {
        *target += weight * value.to_f64();
    }
}

fn add_sparse<T: Scalar>(csr: Csr<'_, T>, row: usize, weight: f64, target: &mut [f64]) {
    let (columns, values) = csr.row(row);
    for (&column, value) in columns.iter().zip(values) {
        target[column as usize] += weight * value.to_f64();
    }
}
