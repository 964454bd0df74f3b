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

use crate::kernel::{Scalar, dense, sparse};
use crate::matrix::dot;
use crate::parallel::{block_size, ordered};
use crate::scale::Scaling;
use crate::source::{Block, Buffer, Csr, Rows, Source};
use crate::{Error, Matrix, Result};

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
                reason: "the shift of a feature is so much larger than its spread that the view would have to be \
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

    /// Prepares K vectors, the columns of `vectors` (d × K), for [`Lens::project`].
    pub fn operand(&self, rows: &Rows<'_>, vectors: &Matrix) -> Operand {
        let Scaling { shift, factor, .. } = &self.scaling;
        let fold = !self.by_row;
        let factor = |f: usize| if fold { factor.get(f).copied().unwrap_or(1.0) } else { 1.0 };
        let latent = vectors.columns();
        let mut offset = vec![0.0; latent];
        if fold {
            for (f, m) in shift.iter().enumerate() {
                for (offset, u) in offset.iter_mut().zip(vectors.row(f)) {
                    *offset += m * factor(f) * u;
                }
            }
        }
        let values = match rows {
            Rows::DenseF32(_) => Typed::F32(columns(vectors, factor)),
            Rows::DenseF64(_) => Typed::F64(columns(vectors, factor)),
            Rows::SparseF32(_) => Typed::F32(padded_rows(vectors, factor)),
            Rows::SparseF64(_) => Typed::F64(padded_rows(vectors, factor)),
        };
        Operand { latent, values, offset }
    }

    /// Sums for [`Lens::gather`], all zero.
    pub fn sums(&self, rows: &Rows<'_>, latent: usize) -> Sums {
        let d = self.features;
        let (values, touched) = match rows {
            Rows::DenseF32(_) => (Typed::F32(vec![0.0; latent * d]), None),
            Rows::DenseF64(_) => (Typed::F64(vec![0.0; latent * d]), None),
            Rows::SparseF32(_) => {
                (Typed::F32(vec![0.0; d * sparse::padded::<f32>(latent)]), Some(Touched::new(d)))
            }
            Rows::SparseF64(_) => {
                (Typed::F64(vec![0.0; d * sparse::padded::<f64>(latent)]), Some(Touched::new(d)))
            }
        };
        Sums { latent, values, touched, weights: vec![0.0; latent] }
    }

    /// `out[i] = Uᵀ x_i / f_i` for the instances `(instance, row)` of a block: multiply by [`Lens::factor`].
    pub fn project(
        &self,
        block: &Block<'_>,
        rows: &[(usize, usize)],
        operand: &Operand,
        scratch: &mut Scratch,
        out: &mut Vec<f64>,
    ) {
        let latent = operand.latent;
        out.clear();
        match (&block.rows, &operand.values) {
            (Rows::DenseF32(x), Typed::F32(u)) => {
                self.project_dense(x, rows, u, latent, &mut scratch.f32, out);
            }
            (Rows::DenseF64(x), Typed::F64(u)) => {
                self.project_dense(x, rows, u, latent, &mut scratch.f64, out);
            }
            (Rows::SparseF32(x), Typed::F32(u)) => {
                project_sparse(*x, rows, u, latent, &mut scratch.f32, &mut scratch.rows, out);
            }
            (Rows::SparseF64(x), Typed::F64(u)) => {
                project_sparse(*x, rows, u, latent, &mut scratch.f64, &mut scratch.rows, out);
            }
            _ => unreachable!("a view has one type in all its blocks"),
        }
        if operand.offset.iter().any(|&offset| offset != 0.0) {
            for out in out.chunks_exact_mut(latent) {
                for (out, offset) in out.iter_mut().zip(&operand.offset) {
                    *out -= offset;
                }
            }
        }
    }

    /// Adds `Σ_i x_i v_iᵀ` to the sums, for the instances `(instance, row)` of a block; `weights[i]` is
    /// `v_i` times [`Lens::factor`].
    pub fn gather(
        &self,
        block: &Block<'_>,
        rows: &[(usize, usize)],
        weights: &[f64],
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) {
        let latent = sums.latent;
        for weight in weights.chunks_exact(latent) {
            for (sum, weight) in sums.weights.iter_mut().zip(weight) {
                *sum += weight;
            }
        }
        match (&block.rows, &mut sums.values) {
            (Rows::DenseF32(x), Typed::F32(sums)) => {
                self.gather_dense(x, rows, weights, latent, &mut scratch.f32, sums);
            }
            (Rows::DenseF64(x), Typed::F64(sums)) => {
                self.gather_dense(x, rows, weights, latent, &mut scratch.f64, sums);
            }
            (Rows::SparseF32(x), Typed::F32(values)) => {
                gather_sparse(*x, rows, weights, latent, scratch, sums.touched.as_mut(), values);
            }
            (Rows::SparseF64(x), Typed::F64(values)) => {
                gather_sparse(*x, rows, weights, latent, scratch, sums.touched.as_mut(), values);
            }
            _ => unreachable!("a view has one type in all its blocks"),
        }
    }

    fn project_dense<T: Scalar>(
        &self,
        x: &[T],
        rows: &[(usize, usize)],
        basis: &[T],
        latent: usize,
        scratch: &mut Tile<T>,
        out: &mut Vec<f64>,
    ) {
        let Tile { scaled, products, .. } = scratch;
        let slices = self.slices(x, rows, scaled);
        products.resize(rows.len() * latent, T::default());
        dense::project(&slices, basis, latent, products);
        out.extend(products.iter().map(|value| value.to_f64()));
    }

    fn gather_dense<T: Scalar>(
        &self,
        x: &[T],
        rows: &[(usize, usize)],
        weights: &[f64],
        latent: usize,
        scratch: &mut Tile<T>,
        sums: &mut [T],
    ) {
        let Tile { scaled, products, .. } = scratch;
        let slices = self.slices(x, rows, scaled);
        products.clear();
        products.extend(weights.iter().map(|&weight| T::from_f64(weight)));
        dense::gather(&slices, products, latent, sums);
    }

    /// The rows as slices: of the data, or of a scaled copy where the scaling cannot be folded in.
    fn slices<'b, T: Scalar>(
        &self,
        x: &'b [T],
        rows: &[(usize, usize)],
        scaled: &'b mut Vec<T>,
    ) -> Vec<&'b [T]> {
        let d = self.features;
        if !self.by_row {
            return rows.iter().map(|&(_, row)| &x[row * d..(row + 1) * d]).collect();
        }
        let Scaling { shift, factor, .. } = &self.scaling;
        scaled.clear();
        for &(instance, row) in rows {
            let whole = self.full_factor(instance);
            scaled.extend(x[row * d..(row + 1) * d].iter().enumerate().map(|(f, value)| {
                let m = shift.get(f).copied().unwrap_or(0.0);
                let c = factor.get(f).copied().unwrap_or(1.0);
                T::from_f64((value.to_f64() - m) * c * whole)
            }));
        }
        scaled.chunks(d).collect()
    }

    /// Adds `weight · x'_i` to `target`, without the shift: see [`Lens::finish_row`].
    pub fn add_row(&self, block: &Block<'_>, (instance, row): (usize, usize), weight: f64, target: &mut [f64]) {
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

/// The columns of a d × K matrix, one after the other, row f times `factor(f)`.
fn columns<T: Scalar>(vectors: &Matrix, factor: impl Fn(usize) -> f64) -> Vec<T> {
    let (d, latent) = (vectors.rows(), vectors.columns());
    let mut out = vec![T::default(); d * latent];
    for f in 0..d {
        let c = factor(f);
        for (k, value) in vectors.row(f).iter().enumerate() {
            out[k * d + f] = T::from_f64(c * value);
        }
    }
    out
}

/// The rows of a d × K matrix, each padded with zeros, row f times `factor(f)`.
fn padded_rows<T: Scalar>(vectors: &Matrix, factor: impl Fn(usize) -> f64) -> Vec<T> {
    let width = sparse::padded::<T>(vectors.columns());
    let mut out = vec![T::default(); vectors.rows() * width];
    for (f, out) in out.chunks_exact_mut(width).enumerate() {
        let c = factor(f);
        for (out, value) in out.iter_mut().zip(vectors.row(f)) {
            *out = T::from_f64(c * value);
        }
    }
    out
}

fn project_sparse<T: Scalar>(
    x: Csr<'_, T>,
    rows: &[(usize, usize)],
    basis: &[T],
    latent: usize,
    scratch: &mut Tile<T>,
    numbers: &mut Vec<usize>,
    out: &mut Vec<f64>,
) {
    let width = sparse::padded::<T>(latent);
    numbers.clear();
    numbers.extend(rows.iter().map(|&(_, row)| row));
    scratch.products.resize(rows.len() * width, T::default());
    sparse::project(x, numbers, basis, width, &mut scratch.products);
    for products in scratch.products.chunks_exact(width) {
        out.extend(products[..latent].iter().map(|value| value.to_f64()));
    }
}

fn gather_sparse<T: Scalar>(
    x: Csr<'_, T>,
    rows: &[(usize, usize)],
    weights: &[f64],
    latent: usize,
    scratch: &mut Scratch,
    touched: Option<&mut Touched>,
    sums: &mut [T],
) {
    let width = sparse::padded::<T>(latent);
    let Scratch { rows: numbers, .. } = scratch;
    numbers.clear();
    numbers.extend(rows.iter().map(|&(_, row)| row));
    let mut padded = vec![T::default(); rows.len() * width];
    for (padded, weights) in padded.chunks_exact_mut(width).zip(weights.chunks_exact(latent)) {
        for (padded, &weight) in padded.iter_mut().zip(weights) {
            *padded = T::from_f64(weight);
        }
    }
    if let Some(touched) = touched {
        numbers.iter().for_each(|&row| touched.mark(x.row(row).0));
    }
    sparse::gather(x, numbers, &padded, width, sums);
}

#[derive(Debug)]
enum Typed {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// K vectors, laid out for the rows of one view.
#[derive(Debug)]
pub(crate) struct Operand {
    latent: usize,
    values: Typed,
    /// `mᵀ(c ∘ U)`.
    offset: Vec<f64>,
}

/// Room for the products of one tile of rows.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    f32: Tile<f32>,
    f64: Tile<f64>,
    rows: Vec<usize>,
}

#[derive(Debug, Default)]
struct Tile<T> {
    scaled: Vec<T>,
    products: Vec<T>,
}

/// Features of a sparse view that some row of a block has: only they need to be added up and cleared.
#[derive(Debug)]
struct Touched {
    seen: Vec<bool>,
    features: Vec<u32>,
}

impl Touched {
    fn new(features: usize) -> Self {
        Self { seen: vec![false; features], features: Vec::new() }
    }

    fn mark(&mut self, columns: &[u32]) {
        for &column in columns {
            let seen = &mut self.seen[column as usize];
            if !*seen {
                *seen = true;
                self.features.push(column);
            }
        }
    }
}

/// `Σ x vᵀ` over the rows of a block, in the precision of the data.
#[derive(Debug)]
pub(crate) struct Sums {
    latent: usize,
    values: Typed,
    touched: Option<Touched>,
    /// `Σ f v`.
    weights: Vec<f64>,
}

/// `Σ x vᵀ` over all blocks, in double precision; K × d for a dense view, d × K for a sparse one.
#[derive(Debug)]
pub(crate) struct Total {
    values: Vec<f64>,
    weights: Vec<f64>,
    by_feature: bool,
}

impl Total {
    pub fn new(rows: &Rows<'_>, features: usize, latent: usize) -> Self {
        let by_feature = matches!(rows, Rows::SparseF32(_) | Rows::SparseF64(_));
        Self { values: vec![0.0; features * latent], weights: vec![0.0; latent], by_feature }
    }

    /// Adds the sums of a block and clears them.
    pub fn absorb(&mut self, sums: &mut Sums) {
        for (total, weight) in self.weights.iter_mut().zip(&mut sums.weights) {
            *total += std::mem::take(weight);
        }
        match &mut sums.values {
            Typed::F32(values) => add_up(&mut self.values, values, sums.latent, sums.touched.as_mut()),
            Typed::F64(values) => add_up(&mut self.values, values, sums.latent, sums.touched.as_mut()),
        }
    }

    /// `Σ x' vᵀ`, d × K.
    pub fn finish(self, lens: &Lens) -> Matrix {
        let (d, latent) = (lens.features, self.weights.len());
        let Scaling { shift, factor, .. } = &lens.scaling;
        let at = |f: usize, k: usize| if self.by_feature { f * latent + k } else { k * d + f };
        Matrix::from_fn(d, latent, |f, k| {
            let sum = self.values[at(f, k)];
            if lens.by_row {
                return sum;
            }
            let shift = shift.get(f).map_or(0.0, |m| m * self.weights[k]);
            (sum - shift) * factor.get(f).copied().unwrap_or(1.0)
        })
    }
}

fn add_up<T: Scalar>(total: &mut [f64], sums: &mut [T], latent: usize, touched: Option<&mut Touched>) {
    let Some(touched) = touched else {
        for (total, sum) in total.iter_mut().zip(sums) {
            *total += std::mem::take(sum).to_f64();
        }
        return;
    };
    let width = sparse::padded::<T>(latent);
    for feature in touched.features.drain(..) {
        let f = feature as usize;
        touched.seen[f] = false;
        let total = &mut total[f * latent..(f + 1) * latent];
        for (total, sum) in total.iter_mut().zip(&mut sums[f * width..(f + 1) * width]) {
            *total += std::mem::take(sum).to_f64();
        }
    }
}

/// The squared length of each column of a d × K matrix.
pub(crate) fn column_squares(matrix: &Matrix) -> Vec<f64> {
    let mut squares = vec![0.0; matrix.columns()];
    for row in matrix.iter_rows() {
        for (square, value) in squares.iter_mut().zip(row) {
            *square += value * value;
        }
    }
    squares
}

/// `‖x'‖²` of an instance, from its stored values.
impl Lens {
    pub fn square(&self, block: &Block<'_>, (instance, row): (usize, usize), square_of_zero: f64) -> f64 {
        let factor = self.full_factor(instance);
        self.squared_lengths(block, row, square_of_zero).1 * factor * factor
    }

    /// What [`Lens::square`] needs of the shift; compute it once.
    pub fn zero_square(&self) -> f64 {
        self.square_of_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_of_short_slices_is_exact() {
        assert!((dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]) - 32.0).abs() < 1e-15);
    }
}
