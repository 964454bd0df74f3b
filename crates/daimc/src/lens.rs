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

mod products;

use crate::kernel::Scalar;
use crate::parallel::{block_size, ordered};
use crate::scale::Scaling;
use crate::source::{Block, Buffer, Csr, Rows, Source};
use crate::{Error, Result};
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
}

/// Digits that folding the shift into the products may lose, as a factor.
fn tolerable_shift<T: Scalar>() -> f64 {
    1e-4 / T::EPSILON
}

/// Magnitudes beyond which products of unscaled rows could leave the range of the type.
fn safe_range<T: Scalar>() -> std::ops::RangeInclusive<f64> {
    if T::EPSILON > 1e-10 { 1e-12..=1e12 } else { 1e-100..=1e100 }
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
    buffer: Buffer,
}

impl Lens {
    /// Looks at a view of `source` through `scaling`; `equal_weight` sets the weight of the view so that its
    /// mean squared row length is 1.
    pub fn fit(source: &dyn Source, view: usize, scaling: Scaling, equal_weight: bool) -> Result<Self> {
        let mut lens = Self::new(source, view, scaling)?;
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

    /// Looks at a view of `source` through a scaling that is complete, such as that of a model.
    pub fn new(source: &dyn Source, view: usize, scaling: Scaling) -> Result<Self> {
        let features = source.features(view);
        let instances = source.instances();
        let unit = scaling.unit_rows();
        let size = block_size(instances);
        let mut factors = Vec::with_capacity(if unit { instances } else { 0 });
        let (mut sum_squares, mut largest, mut smallest) = (0.0, 0.0_f64, f64::INFINITY);
        let mut too_large = None;
        let mut lens = Self { scaling, features, factors: Vec::new(), by_row: false, sum_squares: 0.0 };
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
                    let (stored, scaled) = lens.squared_lengths(&block, row, square_of_zero);
                    let factor = if unit { reciprocal_root(scaled) } else { 1.0 } * lens.scaling.weight;
                    let square = scaled * factor * factor;
                    if !square.is_finite() || !scaled.is_finite() {
                        norms.too_large.get_or_insert(range.start + i);
                    }
                    norms.factors.push(factor);
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
                largest = largest.max(norms.largest);
                smallest = smallest.min(norms.smallest);
                too_large = too_large.or(norms.too_large);
            },
        )?;
        if let Some(row) = too_large {
            return Err(Error::TooLarge { view: source.name(view).into(), row, id: source.id(row) });
        }
        lens.factors = factors;
        lens.sum_squares = sum_squares;
        let mut buffer = Buffer::default();
        let block = source.block(view, 0..instances.min(1), &mut buffer)?;
        let hard = match block.rows {
            Rows::DenseF32(_) | Rows::SparseF32(_) => lens.is_hard::<f32>(smallest, largest),
            Rows::DenseF64(_) | Rows::SparseF64(_) => lens.is_hard::<f64>(smallest, largest),
        };
        if hard && matches!(block.rows, Rows::SparseF32(_) | Rows::SparseF64(_)) {
            return Err(Error::Scaling {
                view: source.name(view).into(),
                scale: lens.scaling.scale.to_string(),
                reason:
                    "the shift of a feature is so much larger than its spread that the view would have to be \
                         made dense; give it as a dense view, or use unit or tf-idf"
                        .into(),
            });
        }
        lens.by_row = hard;
        Ok(lens)
    }

    /// Whether folding the scaling into the products would lose too many digits.
    fn is_hard<T: Scalar>(&self, smallest: f64, largest: f64) -> bool {
        let shift = &self.scaling.shift;
        let factor = |f: usize| self.scaling.factor.get(f).copied().unwrap_or(1.0);
        let far = |f: usize| (shift[f] * factor(f)).abs() > tolerable_shift::<T>();
        let range = safe_range::<T>();
        let out = |&value: &f64| value != 0.0 && !range.contains(&value);
        (0..shift.len()).any(far)
            || self.scaling.factor.iter().any(|c| out(&c.abs()))
            || largest > 0.0 && (out(&largest.sqrt()) || out(&smallest.sqrt()))
    }

    /// `f` of an instance, to be multiplied with what the products give.
    #[inline]
    pub fn factor(&self, instance: usize) -> f64 {
        if self.by_row { 1.0 } else { self.full_factor(instance) }
    }

    fn full_factor(&self, instance: usize) -> f64 {
        if self.factors.is_empty() { self.scaling.weight } else { self.factors[instance] }
    }

    /// `‖(x − m) ∘ c‖²` of a row of zeros.
    fn square_of_zero(&self) -> f64 {
        let shift = self.scaling.shift.iter().enumerate();
        shift.map(|(f, m)| (m * self.scaling.factor[f]).powi(2)).sum()
    }

    /// `‖x‖²` and `‖(x − m) ∘ c‖²` of a row.
    fn squared_lengths(&self, block: &Block<'_>, row: usize, square_of_zero: f64) -> (f64, f64) {
        match block.rows {
            Rows::DenseF32(x) => self.dense_lengths(&x[row * self.features..][..self.features]),
            Rows::DenseF64(x) => self.dense_lengths(&x[row * self.features..][..self.features]),
            Rows::SparseF32(csr) => self.sparse_lengths(csr, row, square_of_zero),
            Rows::SparseF64(csr) => self.sparse_lengths(csr, row, square_of_zero),
        }
    }

    fn dense_lengths<T: Scalar>(&self, row: &[T]) -> (f64, f64) {
        let Scaling { shift, factor, .. } = &self.scaling;
        let stored = sum_of(row, |_, x| x * x);
        let scaled = match (shift.is_empty(), factor.is_empty()) {
            (_, true) => stored,
            (true, false) => sum_of(row, |f, x| (x * factor[f]).powi(2)),
            (false, false) => sum_of(row, |f, x| ((x - shift[f]) * factor[f]).powi(2)),
        };
        (stored, scaled)
    }

    fn sparse_lengths<T: Scalar>(&self, csr: Csr<'_, T>, row: usize, square_of_zero: f64) -> (f64, f64) {
        let Scaling { shift, factor, .. } = &self.scaling;
        let (columns, values) = csr.row(row);
        let stored = sum_of(values, |_, x| x * x);
        if factor.is_empty() {
            return (stored, stored);
        }
        let scaled = columns.iter().zip(values).map(|(&f, value)| {
            let (f, x) = (f as usize, value.to_f64());
            let m = shift.get(f).copied().unwrap_or(0.0);
            ((x - m) * factor[f]).powi(2) - (m * factor[f]).powi(2)
        });
        (stored, (square_of_zero + scaled.sum::<f64>()).max(0.0))
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
            *value *= c;
        }
    }

    /// The row factor of an instance, whether or not it is applied row by row.
    pub fn weight_of(&self, instance: usize) -> f64 {
        self.full_factor(instance)
    }

    /// `‖x'‖²` of an instance, from its stored values.
    pub fn square(&self, block: &Block<'_>, (instance, row): (usize, usize), square_of_zero: f64) -> f64 {
        let factor = self.full_factor(instance);
        self.squared_lengths(block, row, square_of_zero).1 * factor * factor
    }

    /// What [`Lens::square`] needs of the shift; compute it once.
    pub fn zero_square(&self) -> f64 {
        self.square_of_zero()
    }

    pub fn features(&self) -> usize {
        self.features
    }
}

/// `1/√value`, and 1 for a row of zeros, which stays a row of zeros.
fn reciprocal_root(value: f64) -> f64 {
    let root = 1.0 / value.sqrt();
    if root.is_finite() { root } else { 1.0 }
}

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
