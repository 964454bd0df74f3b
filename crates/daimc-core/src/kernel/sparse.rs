//! Sparse rows. The K numbers of a feature are contiguous, padded to whole registers, so that a stored value costs a
//! few vector instructions and no row is expanded.

use pulp::{Arch, Simd, WithSimd};

use super::scalar::Scalar;

/// A sparse matrix in compressed rows.
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a, T> {
    /// Row i is at `offsets[i]..offsets[i + 1]`.
    pub offsets: &'a [usize],
    /// The column of each value, increasing within a row.
    pub columns: &'a [u32],
    /// The values.
    pub values: &'a [T],
}

impl<'a, T: Scalar> Csr<'a, T> {
    /// The columns and values of a row.
    #[inline]
    #[must_use]
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [T]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Whether all `features` values of a row are stored and satisfy `test`.
    pub(crate) fn row_is(&self, row: usize, features: usize, test: impl Fn(&[T]) -> bool) -> bool {
        let (_, values) = self.row(row);
        values.len() == features && test(values)
    }
}

/// K rounded up to a multiple of the widest registers (64 bytes).
pub fn padded<T>(latent: usize) -> usize {
    latent.next_multiple_of(64 / size_of::<T>())
}

/// `out[j] = Σ_f x_jf basis[f]` for the given rows of `matrix`: `basis` is d × W, `out` rows × W, W padded.
///
/// # Panics
/// When `out` has the wrong size.
pub fn project<T: Scalar>(matrix: Csr<'_, T>, rows: &[usize], basis: &[T], width: usize, out: &mut [T]) {
    assert_eq!(out.len(), rows.len() * width);
    Arch::new().dispatch(Project { matrix, rows, basis, width, out });
}

/// `sums[f] += Σ_j x_jf weights[j]` for the given rows of `matrix`: `sums` is d × W, `weights` rows × W.
///
/// # Panics
/// When `weights` has the wrong size.
pub fn gather<T: Scalar>(matrix: Csr<'_, T>, rows: &[usize], weights: &[T], width: usize, sums: &mut [T]) {
    assert_eq!(weights.len(), rows.len() * width);
    Arch::new().dispatch(Gather { matrix, rows, weights, width, sums });
}

/// Registers that are summed together.
const WIDEST: usize = 4;

struct Project<'a, T> {
    matrix: Csr<'a, T>,
    rows: &'a [usize],
    basis: &'a [T],
    width: usize,
    out: &'a mut [T],
}

impl<T: Scalar> WithSimd for Project<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, rows, basis, width, out } = self;
        let registers = width / T::lanes::<S>();
        let basis = T::split::<S>(basis).0;
        let out = T::split_mut::<S>(out).0;
        for (&row, out) in rows.iter().zip(out.chunks_mut(registers)) {
            let row = matrix.row(row);
            for (start, out) in (0..).step_by(WIDEST).zip(out.chunks_mut(WIDEST)) {
                match out.len() {
                    1 => project_part::<S, T, 1>(simd, row, basis, registers, start, out),
                    2 => project_part::<S, T, 2>(simd, row, basis, registers, start, out),
                    3 => project_part::<S, T, 3>(simd, row, basis, registers, start, out),
                    _ => project_part::<S, T, WIDEST>(simd, row, basis, registers, start, out),
                }
            }
        }
    }
}

#[inline(always)]
fn project_part<S: Simd, T: Scalar, const W: usize>(
    simd: S,
    (columns, values): (&[u32], &[T]),
    basis: &[T::Register<S>],
    registers: usize,
    start: usize,
    out: &mut [T::Register<S>],
) {
    /// Independent sums, so that an addition does not wait for the previous one.
    const SETS: usize = 4;
    let mut sums = [[T::splat(simd, T::default()); W]; SETS];
    let (column_groups, column_rest) = columns.as_chunks::<SETS>();
    let (value_groups, value_rest) = values.as_chunks::<SETS>();
    for (columns, values) in column_groups.iter().zip(value_groups) {
        for i in 0..SETS {
            let at = columns[i] as usize * registers + start;
            let u = &basis[at..at + W];
            let x = T::splat(simd, values[i]);
            for w in 0..W {
                sums[i][w] = T::mul_add(simd, x, u[w], sums[i][w]);
            }
        }
    }
    for (&column, &value) in column_rest.iter().zip(value_rest) {
        let at = column as usize * registers + start;
        let u = &basis[at..at + W];
        let x = T::splat(simd, value);
        for w in 0..W {
            sums[0][w] = T::mul_add(simd, x, u[w], sums[0][w]);
        }
    }
    let one = T::splat(simd, T::from_f64(1.0));
    for w in 0..W {
        let lower = T::mul_add(simd, one, sums[0][w], sums[1][w]);
        let upper = T::mul_add(simd, one, sums[2][w], sums[3][w]);
        out[w] = T::mul_add(simd, one, lower, upper);
    }
}

struct Gather<'a, T> {
    matrix: Csr<'a, T>,
    rows: &'a [usize],
    weights: &'a [T],
    width: usize,
    sums: &'a mut [T],
}

impl<T: Scalar> WithSimd for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, rows, weights, width, sums } = self;
        let registers = width / T::lanes::<S>();
        let weights = T::split::<S>(weights).0;
        let sums = T::split_mut::<S>(sums).0;
        for (&row, weights) in rows.iter().zip(weights.chunks(registers)) {
            let row = matrix.row(row);
            for (start, weights) in (0..).step_by(WIDEST).zip(weights.chunks(WIDEST)) {
                match weights.len() {
                    1 => gather_part::<S, T, 1>(simd, row, weights, registers, start, sums),
                    2 => gather_part::<S, T, 2>(simd, row, weights, registers, start, sums),
                    3 => gather_part::<S, T, 3>(simd, row, weights, registers, start, sums),
                    _ => gather_part::<S, T, WIDEST>(simd, row, weights, registers, start, sums),
                }
            }
        }
    }
}

#[inline(always)]
fn gather_part<S: Simd, T: Scalar, const W: usize>(
    simd: S,
    (columns, values): (&[u32], &[T]),
    weights: &[T::Register<S>],
    registers: usize,
    start: usize,
    sums: &mut [T::Register<S>],
) {
    let weight: [_; W] = std::array::from_fn(|w| weights[w]);
    for (&column, &value) in columns.iter().zip(values) {
        let at = column as usize * registers + start;
        let sum = &mut sums[at..at + W];
        let x = T::splat(simd, value);
        for w in 0..W {
            sum[w] = T::mul_add(simd, x, weight[w], sum[w]);
        }
    }
}
