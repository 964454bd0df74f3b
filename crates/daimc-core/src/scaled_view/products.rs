//! The two products of a sweep with scaled rows: the layouts of their operands and of their sums.

use super::holes::HoleSums;
use super::lanes::{Members, Right, Weights};
use super::{ScaledView, scaled};
use crate::kernel::aligned::Aligned;
use crate::kernel::{LANES, Scalar, dense, sparse};
use crate::scaling::Scaling;
use crate::source::{Block, Csr, Rows};
use crate::{Layout, Matrix};

impl ScaledView {
    /// Prepares K vectors, the columns of `vectors` (d × K), for `ScaledView::project`.
    pub fn operand(&self, vectors: &Matrix) -> Operand {
        let Scaling { shift, factor, .. } = &self.scaling;
        let fold = !self.by_row;
        let factor = |f: usize| if fold { factor.get(f).copied().unwrap_or(1.0) } else { 1.0 };
        let latent = vectors.columns();
        let mut offset = vec![0.0; latent];
        if self.by_row {
            // Rows are multiplied without the centre, whose contribution is known exactly.
            offset = self.along_centre(vectors);
            offset.iter_mut().for_each(|offset| *offset = -*offset);
        } else {
            for (f, m) in shift.iter().enumerate() {
                for (offset, u) in offset.iter_mut().zip(vectors.row(f)) {
                    *offset += m * factor(f) * u;
                }
            }
        }
        let by_feature = match self.layout {
            Layout::DenseF32 => dense::prefers_by_feature::<f32>(self.features, latent),
            Layout::DenseF64 => dense::prefers_by_feature::<f64>(self.features, latent),
            Layout::SparseF32 | Layout::SparseF64 => true,
        };
        let values = match (self.layout, by_feature) {
            (Layout::DenseF32 | Layout::SparseF32, true) => Typed::F32(padded_rows(vectors, factor)),
            (Layout::DenseF64 | Layout::SparseF64, true) => Typed::F64(padded_rows(vectors, factor)),
            (Layout::DenseF32 | Layout::SparseF32, false) => Typed::F32(columns(vectors, factor)),
            (Layout::DenseF64 | Layout::SparseF64, false) => Typed::F64(columns(vectors, factor)),
        };
        Operand { latent, by_feature, values, offset }
    }

    /// Sums for [`ScaledView::gather`], all zero.
    pub(crate) fn sums(&self, latent: usize) -> CrossSums {
        let d = self.features;
        let (values, touched) = match self.layout {
            Layout::DenseF32 => (Typed::F32(Aligned::zeros(latent * dense::padded::<f32>(d))), None),
            Layout::DenseF64 => (Typed::F64(Aligned::zeros(latent * dense::padded::<f64>(d))), None),
            Layout::SparseF32 => {
                (Typed::F32(Aligned::zeros(d * sparse::padded::<f32>(latent))), Some(Touched::new(d)))
            }
            Layout::SparseF64 => {
                (Typed::F64(Aligned::zeros(d * sparse::padded::<f64>(latent))), Some(Touched::new(d)))
            }
        };
        CrossSums {
            latent,
            values,
            touched,
            weights: vec![[0.0; LANES]; latent],
            holes: self.hole_sums(latent),
        }
    }

    /// Calls `each(i, Uᵀ x'_i)` for the instances `(instance, row)` of a block.
    pub fn project_each(
        &self,
        block: &Block<'_>,
        rows: &[(usize, usize)],
        operand: &Operand,
        scratch: &mut Scratch,
        each: impl FnMut(usize, &mut [f64]),
    ) {
        match self.products(block, rows, operand, scratch) {
            Products::F32(products, width) => self.each_product(products, width, rows, &operand.offset, each),
            Products::F64(products, width) => self.each_product(products, width, rows, &operand.offset, each),
        }
    }

    /// Calls `each(i, f (p − offset))` for the products of rows; each row has `width` products.
    #[inline(always)]
    fn each_product<T: Scalar>(
        &self,
        products: &[T],
        width: usize,
        rows: &[(usize, usize)],
        offset: &[f64],
        mut each: impl FnMut(usize, &mut [f64]),
    ) {
        let mut row = vec![0.0; offset.len()];
        for (i, &(instance, _)) in rows.iter().enumerate() {
            let factor = self.factor(instance);
            let products = &products[i * width..][..offset.len()];
            for ((out, product), offset) in row.iter_mut().zip(products).zip(offset) {
                *out = factor * (product.to_f64() - offset);
            }
            each(i, &mut row);
        }
    }

    /// Adds `Uᵀ x'` to `right`, for the members of a tile.
    #[inline(always)]
    pub(crate) fn project(
        &self,
        block: &Block<'_>,
        members: &Members,
        operand: &Operand,
        scratch: &mut Scratch,
        right: &mut Right<'_>,
    ) {
        match self.products(block, &members.rows, operand, scratch) {
            Products::F32(products, width) => right.add(products, width, members, &operand.offset),
            Products::F64(products, width) => right.add(products, width, members, &operand.offset),
        }
    }

    /// `xᵀ(c ∘ U)` for each stored row.
    fn products<'s>(
        &self,
        block: &Block<'_>,
        rows: &[(usize, usize)],
        operand: &Operand,
        scratch: &'s mut Scratch,
    ) -> Products<'s> {
        let Scratch { f32, f64, numbers } = scratch;
        match (&block.rows, &operand.values) {
            (Rows::DenseF32(x), Typed::F32(u)) => {
                let width = self.project_dense(x, rows, u, operand, f32);
                Products::F32(&f32.products, width)
            }
            (Rows::DenseF64(x), Typed::F64(u)) => {
                let width = self.project_dense(x, rows, u, operand, f64);
                Products::F64(&f64.products, width)
            }
            (Rows::SparseF32(x), Typed::F32(u)) => {
                let width = project_sparse(*x, rows, u, operand.latent, &mut f32.products, numbers);
                Products::F32(&f32.products, width)
            }
            (Rows::SparseF64(x), Typed::F64(u)) => {
                let width = project_sparse(*x, rows, u, operand.latent, &mut f64.products, numbers);
                Products::F64(&f64.products, width)
            }
            _ => unreachable!("a view has one type in all its blocks"),
        }
    }

    /// Adds `Σ_i x'_i v_iᵀ` to the sums, for the members of a tile; `v_ik` is at `k · stride` plus the lane of i.
    #[inline(always)]
    pub(crate) fn gather(
        &self,
        block: &Block<'_>,
        members: &Members,
        v: &[f64],
        stride: usize,
        sums: &mut CrossSums,
        scratch: &mut Scratch,
    ) {
        let given = Weights { members, v, stride, latent: sums.latent };
        if !self.scaling.shift.is_empty() || !self.centre.is_empty() {
            given.add_up(&mut sums.weights);
        }
        let Scratch { f32, f64, numbers } = scratch;
        match (&block.rows, &mut sums.values) {
            (Rows::DenseF32(x), Typed::F32(sums)) => self.gather_dense(x, &given, f32, sums),
            (Rows::DenseF64(x), Typed::F64(sums)) => self.gather_dense(x, &given, f64, sums),
            (Rows::SparseF32(x), Typed::F32(values)) => {
                gather_sparse(*x, &given, &mut f32.products, numbers, sums.touched.as_mut(), values);
            }
            (Rows::SparseF64(x), Typed::F64(values)) => {
                gather_sparse(*x, &given, &mut f64.products, numbers, sums.touched.as_mut(), values);
            }
            _ => unreachable!("a view has one type in all its blocks"),
        }
    }

    /// Products of dense rows; returns their number per row.
    fn project_dense<T: Scalar>(
        &self,
        x: &[T],
        rows: &[(usize, usize)],
        basis: &[T],
        operand: &Operand,
        tile: &mut Tile<T>,
    ) -> usize {
        let Tile { copies, products } = tile;
        if operand.by_feature {
            let width = sparse::padded::<T>(operand.latent);
            products.resize(rows.len() * width, T::default());
            dense::project_by_feature(&self.slices(x, rows, self.features, copies), basis, width, products);
            return width;
        }
        products.resize(rows.len() * operand.latent, T::default());
        dense::project(&self.slices(x, rows, dense::chunk::<T>(), copies), basis, operand.latent, products);
        operand.latent
    }

    #[inline(always)]
    fn gather_dense<T: Scalar>(&self, x: &[T], given: &Weights<'_>, tile: &mut Tile<T>, sums: &mut [T]) {
        given.by_vector(&mut tile.products);
        let slices = self.slices(x, &given.members.rows, dense::chunk::<T>(), &mut tile.copies);
        dense::gather(&slices, &tile.products, given.latent, sums);
    }

    /// The rows as slices: of the data, or of copies if rows are shorter than `least` (which are then right-aligned) or
    /// must be scaled one by one.
    fn slices<'b, T: Scalar>(
        &self,
        x: &'b [T],
        rows: &[(usize, usize)],
        least: usize,
        copies: &'b mut Vec<T>,
    ) -> Vec<&'b [T]> {
        let d = self.features;
        let length = d.max(least);
        if !self.by_row && length == d {
            return rows.iter().map(|&(_, row)| &x[row * d..(row + 1) * d]).collect();
        }
        let Scaling { shift, factor, .. } = &self.scaling;
        copies.clear();
        for &(instance, row) in rows {
            copies.resize(copies.len() + length - d, T::default());
            let row = &x[row * d..(row + 1) * d];
            if !self.by_row {
                copies.extend_from_slice(row);
                continue;
            }
            let whole = self.full_factor(instance);
            copies.extend(row.iter().enumerate().map(|(f, value)| {
                let m = shift.get(f).copied().unwrap_or(0.0);
                let c = factor.get(f).copied().unwrap_or(1.0);
                let centre = self.centre.get(f).copied().unwrap_or(0.0);
                T::from_f64(scaled(value.to_f64(), m, c) * whole - centre)
            }));
        }
        copies.chunks(length).collect()
    }
}

/// Products of rows, and their number per row.
#[derive(Clone, Copy)]
enum Products<'a> {
    F32(&'a [f32], usize),
    F64(&'a [f64], usize),
}

/// The columns of a d × K matrix, one after the other, in chunks, row f times `factor(f)`.
fn columns<T: Scalar>(vectors: &Matrix, factor: impl Fn(usize) -> f64) -> Aligned<T> {
    let d = vectors.rows();
    let length = dense::padded::<T>(d);
    let mut out = Aligned::zeros(vectors.columns() * length);
    for f in 0..d {
        let (c, at) = (factor(f), dense::position::<T>(d, f));
        for (k, value) in vectors.row(f).iter().enumerate() {
            out[k * length + at] = T::from_f64(c * value);
        }
    }
    out
}

/// The rows of a d × K matrix, each padded with zeros, row f times `factor(f)`.
fn padded_rows<T: Scalar>(vectors: &Matrix, factor: impl Fn(usize) -> f64) -> Aligned<T> {
    let width = sparse::padded::<T>(vectors.columns());
    let mut out = Aligned::zeros(vectors.rows() * width);
    for (f, out) in out.chunks_exact_mut(width).enumerate() {
        let c = factor(f);
        for (out, value) in out.iter_mut().zip(vectors.row(f)) {
            *out = T::from_f64(c * value);
        }
    }
    out
}

/// Products of sparse rows; returns their number per row.
fn project_sparse<T: Scalar>(
    x: Csr<'_, T>,
    rows: &[(usize, usize)],
    basis: &[T],
    latent: usize,
    products: &mut Vec<T>,
    numbers: &mut Vec<usize>,
) -> usize {
    let width = sparse::padded::<T>(latent);
    numbers.clear();
    numbers.extend(rows.iter().map(|&(_, row)| row));
    products.resize(rows.len() * width, T::default());
    sparse::project(x, numbers, basis, width, products);
    width
}

fn gather_sparse<T: Scalar>(
    x: Csr<'_, T>,
    given: &Weights<'_>,
    weights: &mut Vec<T>,
    numbers: &mut Vec<usize>,
    touched: Option<&mut Touched>,
    sums: &mut [T],
) {
    let width = sparse::padded::<T>(given.latent);
    numbers.clear();
    numbers.extend(given.members.rows.iter().map(|&(_, row)| row));
    given.by_row(width, weights);
    if let Some(touched) = touched {
        numbers.iter().for_each(|&row| touched.mark(x.row(row).0));
    }
    sparse::gather(x, numbers, weights, width, sums);
}

#[derive(Debug)]
pub(super) enum Typed {
    F32(Aligned<f32>),
    F64(Aligned<f64>),
}

/// K vectors, in the layout for the rows of one view.
#[derive(Debug)]
pub struct Operand {
    latent: usize,
    /// The K numbers of a feature are contiguous; otherwise the features of each vector are.
    by_feature: bool,
    pub(super) values: Typed,
    /// `mᵀ(c ∘ U)`; if rows are scaled one by one, `−μᵀU`.
    offset: Vec<f64>,
}

/// Scratch memory for the products of one tile of rows.
#[derive(Debug, Default)]
pub struct Scratch {
    f32: Tile<f32>,
    f64: Tile<f64>,
    numbers: Vec<usize>,
}

#[derive(Debug, Default)]
struct Tile<T> {
    copies: Vec<T>,
    products: Vec<T>,
}

/// The features of a sparse view that some row of a block stores: only they have to be added and cleared.
#[derive(Debug)]
pub(crate) struct Touched {
    seen: Vec<bool>,
    features: Vec<u32>,
    /// The number of entries examined.
    entries: usize,
}

impl Touched {
    pub fn new(features: usize) -> Self {
        Self { seen: vec![false; features], features: Vec::new(), entries: 0 }
    }

    /// Whether a block has too many entries: tracking them costs more than adding all features.
    fn all(&self) -> bool {
        self.entries > self.seen.len() / 2
    }

    pub fn mark(&mut self, columns: &[u32]) {
        if self.all() {
            return;
        }
        self.entries += columns.len();
        for &column in columns {
            let seen = &mut self.seen[column as usize];
            if !*seen {
                *seen = true;
                self.features.push(column);
            }
        }
    }

    /// Calls `each` for every feature that may have been touched, and clears them.
    pub fn drain(&mut self, mut each: impl FnMut(usize)) {
        if self.all() {
            (0..self.seen.len()).for_each(each);
            self.seen.fill(false);
            self.features.clear();
        } else {
            for feature in self.features.drain(..) {
                self.seen[feature as usize] = false;
                each(feature as usize);
            }
        }
        self.entries = 0;
    }
}

/// `Σ x vᵀ` over the rows of a block, in the precision of the data.
#[derive(Debug)]
pub(crate) struct CrossSums {
    latent: usize,
    values: Typed,
    touched: Option<Touched>,
    /// `Σ f v`, lane by lane.
    weights: Vec<[f64; LANES]>,
    /// The contribution of missing cells.
    pub holes: HoleSums,
}

/// `Σ x vᵀ` over all blocks, in double precision.
#[derive(Debug)]
pub(crate) struct Total {
    values: Vec<f64>,
    weights: Vec<f64>,
    order: Order,
    holes: HoleSums,
}

/// The layout of the values of a [`Total`].
#[derive(Clone, Copy, Debug)]
enum Order {
    /// K vectors in chunks of `f32`.
    ChunksF32,
    /// K vectors in chunks of `f64`.
    ChunksF64,
    /// K numbers for each feature.
    ByFeature,
}

impl Total {
    pub fn new(scaled_view: &ScaledView, latent: usize) -> Self {
        let features = scaled_view.features;
        let (order, length) = match scaled_view.layout {
            Layout::DenseF32 => (Order::ChunksF32, dense::padded::<f32>(features)),
            Layout::DenseF64 => (Order::ChunksF64, dense::padded::<f64>(features)),
            Layout::SparseF32 | Layout::SparseF64 => (Order::ByFeature, features),
        };
        let holes = scaled_view.hole_sums(latent);
        Self { values: vec![0.0; length * latent], weights: vec![0.0; latent], order, holes }
    }

    /// Adds the sums of a block and clears them.
    pub fn absorb(&mut self, sums: &mut CrossSums) {
        self.holes.absorb(&mut sums.holes);
        for (total, weight) in self.weights.iter_mut().zip(&mut sums.weights) {
            *total += std::mem::take(weight).iter().sum::<f64>();
        }
        match &mut sums.values {
            Typed::F32(values) => add_up(&mut self.values, values, sums.latent, sums.touched.as_mut()),
            Typed::F64(values) => add_up(&mut self.values, values, sums.latent, sums.touched.as_mut()),
        }
    }

    /// `Σ x' vᵀ`, d × K, and the contribution of missing cells to `Σ ‖x'‖²`.
    pub fn finish(self, scaled_view: &ScaledView) -> (Matrix, f64) {
        let (d, latent) = (scaled_view.features, self.weights.len());
        let at = |f: usize, k: usize| match self.order {
            Order::ChunksF32 => k * dense::padded::<f32>(d) + dense::position::<f32>(d, f),
            Order::ChunksF64 => k * dense::padded::<f64>(d) + dense::position::<f64>(d, f),
            Order::ByFeature => f * latent + k,
        };
        let mut cross = Matrix::from_fn(d, latent, |f, k| self.values[at(f, k)]);
        scaled_view.unfold(&mut cross, &self.weights);
        self.holes.add_to(&mut cross);
        (cross, self.holes.square)
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
    touched.drain(|f| {
        let total = &mut total[f * latent..(f + 1) * latent];
        for (total, sum) in total.iter_mut().zip(&mut sums[f * width..(f + 1) * width]) {
            *total += std::mem::take(sum).to_f64();
        }
    });
}
