//! The lanes of the instances of a tile. The results and operands of products are transposed here: once on the way in
//! and once on the way out; between the products and the statistics a tile keeps its rows of V and r in lanes.

use std::array::from_fn;

use crate::kernel::{LANES, Scalar};

/// The instances of a tile that are present in a view.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Instance and row of the view's matrix.
    pub rows: Vec<(usize, usize)>,
    /// The row factor of each.
    pub factors: Vec<f64>,
    /// Their lanes.
    stretches: Vec<Stretch>,
}

/// Members in consecutive lanes.
#[derive(Clone, Debug)]
struct Stretch {
    first: usize,
    lane: usize,
    count: usize,
}

impl Members {
    /// Removes all members.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.factors.clear();
        self.stretches.clear();
    }

    /// Instance and row of each, and its lane.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = ((usize, usize), usize)> {
        let lanes = self.stretches.iter().flat_map(|own| own.lane..own.lane + own.count);
        self.rows.iter().copied().zip(lanes)
    }

    /// Appends an instance; lanes must increase.
    #[inline(always)]
    pub fn push(&mut self, instance: usize, row: usize, factor: f64, lane: usize) {
        match self.stretches.last_mut() {
            Some(last) if last.lane + last.count == lane => last.count += 1,
            _ => self.stretches.push(Stretch { first: self.rows.len(), lane, count: 1 }),
        }
        self.rows.push((instance, row));
        self.factors.push(factor);
    }
}

/// `r` of a tile, or its positive and negative parts, in lanes like V.
pub(crate) struct Right<'a> {
    pub plus: &'a mut [f64],
    /// Empty if r is not split.
    pub minus: &'a mut [f64],
    pub stride: usize,
}

impl Right<'_> {
    /// Adds `f (p − offset)` for the products of members; each has `width` products.
    #[inline(always)]
    pub(super) fn add<T: Scalar>(&mut self, products: &[T], width: usize, members: &Members, offset: &[f64]) {
        for Stretch { first, lane, count } in &members.stretches {
            let products = &products[first * width..(first + count) * width];
            let factors = &members.factors[*first..first + count];
            let (eights, rest) = factors.as_chunks::<LANES>();
            for (i, factors) in eights.iter().enumerate() {
                let products = &products[i * LANES * width..(i + 1) * LANES * width];
                self.add_some(products, width, lane + i * LANES, factors, offset);
            }
            let done = eights.len() * LANES;
            for (i, factor) in rest.iter().enumerate() {
                let products = &products[(done + i) * width..(done + i + 1) * width];
                self.add_some(products, width, lane + done + i, &[*factor], offset);
            }
        }
    }

    /// Adds the products of `N` members, starting at `lane`.
    #[inline(always)]
    fn add_some<T: Scalar, const N: usize>(
        &mut self,
        products: &[T],
        width: usize,
        lane: usize,
        factors: &[f64; N],
        offset: &[f64],
    ) {
        for (k, offset) in offset.iter().enumerate() {
            let at = k * self.stride + lane;
            let product: [f64; N] = from_fn(|i| factors[i] * (products[i * width + k].to_f64() - offset));
            let plus = &mut self.plus[at..at + N];
            if self.minus.is_empty() {
                (0..N).for_each(|i| plus[i] += product[i]);
            } else {
                let minus = &mut self.minus[at..at + N];
                (0..N).for_each(|i| plus[i] += product[i].max(0.0));
                (0..N).for_each(|i| minus[i] += (-product[i]).max(0.0));
            }
        }
    }
}

/// The weights of the members of a tile: the row factor times a row of V.
pub(super) struct Weights<'a> {
    pub members: &'a Members,
    pub v: &'a [f64],
    pub stride: usize,
    pub latent: usize,
}

impl Weights<'_> {
    /// The weights of one k for each stretch: its first member, factors, and values of V.
    #[inline(always)]
    fn stretches(&self, k: usize) -> impl Iterator<Item = (usize, &[f64], &[f64])> {
        let v = &self.v[k * self.stride..(k + 1) * self.stride];
        self.members.stretches.iter().map(move |&Stretch { first, lane, count }| {
            (first, &self.members.factors[first..first + count], &v[lane..lane + count])
        })
    }

    /// K rows of one weight per member.
    #[inline(always)]
    pub fn by_vector<T: Scalar>(&self, out: &mut Vec<T>) {
        let count = self.members.rows.len();
        out.resize(self.latent * count, T::default());
        for (k, out) in out.chunks_exact_mut(count.max(1)).enumerate() {
            for (first, factors, v) in self.stretches(k) {
                for ((out, factor), v) in out[first..].iter_mut().zip(factors).zip(v) {
                    *out = T::from_f64(factor * v);
                }
            }
        }
    }

    /// One row of `width` weights per member, padded with zeros.
    #[inline(always)]
    pub fn by_row<T: Scalar>(&self, width: usize, out: &mut Vec<T>) {
        out.clear();
        out.resize(self.members.rows.len() * width, T::default());
        for k in 0..self.latent {
            for (first, factors, v) in self.stretches(k) {
                let column = out[first * width + k..].iter_mut().step_by(width);
                for ((out, factor), v) in column.zip(factors).zip(v) {
                    *out = T::from_f64(factor * v);
                }
            }
        }
    }

    /// Adds the weights of the members to `sums`, each to its lane.
    #[inline(always)]
    pub fn add_up(&self, sums: &mut [[f64; LANES]]) {
        for (k, sums) in sums.iter_mut().enumerate() {
            let v = &self.v[k * self.stride..(k + 1) * self.stride];
            for &Stretch { first, lane, count } in &self.members.stretches {
                let factors = &self.members.factors[first..first + count];
                let v = &v[lane..lane + count];
                // Up to the first whole register, whole registers, the remainder.
                let head = (lane.next_multiple_of(LANES) - lane).min(count);
                for i in 0..head {
                    sums[(lane + i) % LANES] += factors[i] * v[i];
                }
                let (factors, rest_factors) = factors[head..].as_chunks::<LANES>();
                let (v, rest) = v[head..].as_chunks::<LANES>();
                for (factors, v) in factors.iter().zip(v) {
                    (0..LANES).for_each(|i| sums[i] += factors[i] * v[i]);
                }
                for (i, (factor, v)) in rest_factors.iter().zip(rest).enumerate() {
                    sums[i] += factor * v;
                }
            }
        }
    }
}
