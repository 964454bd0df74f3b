//! The two products of a sweep, through a lens: the layouts of their operands and of their sums.

use super::Lens;
use crate::Matrix;
use crate::kernel::{Scalar, dense, sparse};
use crate::scale::Scaling;
use crate::source::{Block, Csr, Rows};

impl Lens {
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
