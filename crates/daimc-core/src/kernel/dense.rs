//! Dense rows. Both products are tiled so that the sums of a tile stay in registers.
//!
//! Rows are cut into chunks of 64 bytes. If the number of features is not a multiple of the chunk, the last chunk of a
//! row overlaps the previous one, and the vectors are zero (or their sums ignored) in the overlap: loops have no
//! remainder, and rows are not copied.

use std::array::from_fn;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::scalar::Scalar;

/// Features per chunk.
pub const fn chunk<T>() -> usize {
    64 / size_of::<T>()
}

/// The length of a vector in chunks.
pub fn padded<T>(features: usize) -> usize {
    features.next_multiple_of(chunk::<T>())
}

/// The position of feature `f` of `features` in a vector in chunks.
pub fn position<T>(features: usize, f: usize) -> usize {
    let whole = features / chunk::<T>() * chunk::<T>();
    if f < whole { f } else { padded::<T>(features) - (features - f) }
}

/// Features per pass of [`project_by_feature`]: their vectors stay in the first-level cache while all rows are read.
const BLOCK: usize = 128;

/// `out[j][k] = x_j · u_k` for each row `x_j` and each of the K vectors `u_k` of `basis`, in chunks. Rows have
/// `features` values, at least one chunk.
pub fn project<T: Scalar>(rows: &[&[T]], basis: &[T], latent: usize, out: &mut [T]) {
    let Some(first) = rows.first() else { return };
    let features = first.len();
    assert!(features >= chunk::<T>() && rows.iter().all(|row| row.len() == features));
    assert_eq!(basis.len(), latent * padded::<T>(features));
    assert_eq!(out.len(), rows.len() * latent);
    Arch::new().dispatch(Project { rows, basis, latent, features, out });
}

/// `sums[k] += Σ_j weights[k][j] x_j`: `sums` holds K vectors in chunks, `weights` K rows of one number per row `x_j`.
/// Rows have `features` values, at least one chunk.
pub fn gather<T: Scalar>(rows: &[&[T]], weights: &[T], latent: usize, sums: &mut [T]) {
    let Some(first) = rows.first() else { return };
    let features = first.len();
    assert!(features >= chunk::<T>() && rows.iter().all(|row| row.len() == features));
    assert_eq!(weights.len(), rows.len() * latent);
    assert_eq!(sums.len(), latent * padded::<T>(features));
    Arch::new().dispatch(Gather { rows, weights, latent, features, sums });
}

/// Calls `$tile::<…, R, C>` with `C` equal to the runtime value `$width`.
macro_rules! with_width {
    ($width:expr, $rows:literal, [$($cols:literal),*], $tile:ident $args:tt) => {
        match $width {
            $($cols => $tile::<S, T, $rows, $cols> $args,)*
            _ => unreachable!("a tile is at most as wide as it was cut"),
        }
    };
}

/// Cuts `0..total` into pieces of nearly equal width, none wider than `widest`: `(start, width)`.
#[inline(always)]
fn cuts(total: usize, widest: usize) -> impl Iterator<Item = (usize, usize)> {
    let pieces = total.div_ceil(widest);
    (0..pieces).map(move |i| {
        let start = i * total / pieces;
        (start, (i + 1) * total / pieces - start)
    })
}

/// A group shorter than the tile repeats its last row; the results of the repeats are discarded.
#[inline(always)]
fn fill<'a, T, const R: usize>(group: &[&'a [T]]) -> [&'a [T]; R] {
    from_fn(|i| group[i.min(group.len() - 1)])
}

/// The parts of a row and of a vector that are multiplied: whole chunks, and the overlapping chunk if there is one.
#[inline(always)]
fn meetings<T>(features: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let whole = features / chunk::<T>() * chunk::<T>();
    let last = (features - chunk::<T>()..features, whole..whole + chunk::<T>());
    [(0..whole, 0..whole)].into_iter().chain((whole < features).then_some(last))
}

struct Project<'a, T> {
    rows: &'a [&'a [T]],
    basis: &'a [T],
    latent: usize,
    features: usize,
    out: &'a mut [T],
}

impl<T: Scalar> WithSimd for Project<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, basis, latent, features, out } = self;
        let length = padded::<T>(features);
        let (height, widest) = if S::REGISTER_COUNT >= 32 { (4, 5) } else { (2, 4) };
        for (group, out) in rows.chunks(height).zip(out.chunks_mut(height * latent)) {
            for (start, width) in cuts(latent, widest) {
                let basis = &basis[start * length..(start + width) * length];
                let out = &mut out[start..];
                if S::REGISTER_COUNT >= 32 {
                    with_width!(
                        width,
                        4,
                        [1, 2, 3, 4, 5],
                        project_tile(simd, group, basis, features, latent, out)
                    );
                } else {
                    with_width!(
                        width,
                        2,
                        [1, 2, 3, 4],
                        project_tile(simd, group, basis, features, latent, out)
                    );
                }
            }
        }
    }
}

#[inline(always)]
fn project_tile<S: Simd, T: Scalar, const R: usize, const C: usize>(
    simd: S,
    group: &[&[T]],
    basis: &[T],
    features: usize,
    latent: usize,
    out: &mut [T],
) {
    let rows: [&[T]; R] = fill(group);
    let length = basis.len() / C;
    let mut sums = [[T::splat(simd, T::default()); C]; R];
    for (of_row, of_vector) in meetings::<T>(features) {
        let x: [&[_]; R] = from_fn(|i| T::split::<S>(&rows[i][of_row.clone()]).0);
        let u: [&[_]; C] = from_fn(|c| T::split::<S>(&basis[c * length..][of_vector.clone()]).0);
        let count = x[0].len();
        let x: [&[_]; R] = from_fn(|i| &x[i][..count]);
        let u: [&[_]; C] = from_fn(|c| &u[c][..count]);
        for f in 0..count {
            let x: [_; R] = from_fn(|i| x[i][f]);
            for c in 0..C {
                let u = u[c][f];
                for i in 0..R {
                    sums[i][c] = T::mul_add(simd, x[i], u, sums[i][c]);
                }
            }
        }
    }
    for (sums, out) in sums.iter().zip(out.chunks_mut(latent)).take(group.len()) {
        for (sum, out) in sums.iter().zip(out) {
            *out = T::sum(simd, *sum);
        }
    }
}

/// Whether [`project_by_feature`] is faster for rows of `features` values: it multiplies padding, but needs no sums
/// over lanes at the end of each dot product.
pub(crate) fn prefers_by_feature<T>(features: usize, latent: usize) -> bool {
    const SUM: usize = 12;
    let chunk = chunk::<T>();
    features * latent.div_ceil(chunk) < latent * (features / chunk + SUM)
}

/// `out[j] = Σ_f x_jf basis[f]`: `basis` is d × W, `out` rows × W, W a whole number of chunks.
pub(crate) fn project_by_feature<T: Scalar>(rows: &[&[T]], basis: &[T], width: usize, out: &mut [T]) {
    let Some(first) = rows.first() else { return };
    let features = first.len();
    assert!(rows.iter().all(|row| row.len() == features));
    assert_eq!(basis.len(), features * width);
    assert_eq!(out.len(), rows.len() * width);
    touch(rows);
    Arch::new().dispatch(ByFeature { rows, basis, width, out });
}

struct ByFeature<'a, T> {
    rows: &'a [&'a [T]],
    basis: &'a [T],
    width: usize,
    out: &'a mut [T],
}

impl<T: Scalar> WithSimd for ByFeature<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, basis, width, out } = self;
        let features = rows[0].len();
        let basis = T::split::<S>(basis).0;
        let out = T::split_mut::<S>(out).0;
        let registers = width / T::lanes::<S>();
        out.fill(T::splat(simd, T::default()));
        let widest = if S::REGISTER_COUNT >= 32 { 3 } else { 2 };
        for from in (0..features).step_by(BLOCK) {
            let block = from..(from + BLOCK).min(features);
            let basis = &basis[block.start * registers..block.end * registers];
            for (start, width) in cuts(registers, widest) {
                let place = (registers, start);
                match (width, S::REGISTER_COUNT >= 32) {
                    (1, true) => by_feature::<S, T, 8, 1>(simd, rows, &block, basis, place, out),
                    (2, true) => by_feature::<S, T, 8, 2>(simd, rows, &block, basis, place, out),
                    (_, true) => by_feature::<S, T, 8, 3>(simd, rows, &block, basis, place, out),
                    (1, false) => by_feature::<S, T, 6, 1>(simd, rows, &block, basis, place, out),
                    (_, false) => by_feature::<S, T, 6, 2>(simd, rows, &block, basis, place, out),
                }
            }
        }
    }
}

/// Reads one value of each cache line to prefetch the rows: they are too short for the hardware prefetcher.
#[inline(always)]
fn touch<T: Scalar>(rows: &[&[T]]) {
    for row in rows {
        let mut sum = T::default();
        for value in row.iter().step_by(chunk::<T>()) {
            sum += *value;
        }
        std::hint::black_box(sum);
    }
}

/// Adds the products of a block of features: of each feature the `W` registers from `start` of its `registers`.
#[inline(always)]
fn by_feature<S: Simd, T: Scalar, const R: usize, const W: usize>(
    simd: S,
    rows: &[&[T]],
    block: &Range<usize>,
    basis: &[T::Register<S>],
    (registers, start): (usize, usize),
    out: &mut [T::Register<S>],
) {
    for (group, out) in rows.chunks(R).zip(out.chunks_mut(R * registers)) {
        let rows: [&[T]; R] = fill(group);
        let features = block.len();
        let rows: [&[T]; R] = from_fn(|i| &rows[i][block.clone()][..features]);
        let mut sums = [[T::splat(simd, T::default()); W]; R];
        for i in 0..group.len().min(R) {
            for w in 0..W {
                sums[i][w] = out[i * registers + start + w];
            }
        }
        // One feature at a time: with more, the sums would not fit into registers.
        for (f, u) in basis.chunks_exact(registers).enumerate() {
            let u = &u[start..start + W];
            for i in 0..R {
                let x = T::splat(simd, rows[i][f]);
                for w in 0..W {
                    sums[i][w] = T::mul_add(simd, x, u[w], sums[i][w]);
                }
            }
        }
        for (sums, out) in sums.iter().zip(out.chunks_mut(registers)) {
            out[start..start + W].copy_from_slice(sums);
        }
    }
}

struct Gather<'a, T> {
    rows: &'a [&'a [T]],
    weights: &'a [T],
    latent: usize,
    features: usize,
    sums: &'a mut [T],
}

impl<T: Scalar> WithSimd for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, weights, latent, features, sums } = self;
        let (lanes, length) = (T::lanes::<S>(), padded::<T>(features));
        let (high, widest) = if S::REGISTER_COUNT >= 32 { (4, 6) } else { (2, 5) };
        for (of_rows, of_sums) in meetings::<T>(features) {
            let mut from = 0;
            while from < of_rows.len() {
                // Registers of features that are summed together; the remainder is processed one by one.
                let height = if from + high * lanes <= of_rows.len() { high } else { 1 };
                let at = (of_rows.start + from, of_sums.start + from);
                for (start, width) in cuts(latent, widest) {
                    let sums = &mut sums[start * length..(start + width) * length];
                    let weights = &weights[start * rows.len()..(start + width) * rows.len()];
                    match (S::REGISTER_COUNT >= 32, height) {
                        (true, 4) => {
                            with_width!(
                                width,
                                4,
                                [1, 2, 3, 4, 5, 6],
                                gather_tile(simd, rows, weights, sums, at)
                            );
                        }
                        (false, 2) => {
                            with_width!(
                                width,
                                2,
                                [1, 2, 3, 4, 5],
                                gather_tile(simd, rows, weights, sums, at)
                            );
                        }
                        _ => {
                            with_width!(
                                width,
                                1,
                                [1, 2, 3, 4, 5, 6],
                                gather_tile(simd, rows, weights, sums, at)
                            );
                        }
                    }
                }
                from += height * lanes;
            }
        }
    }
}

/// Adds the contribution of all rows in `H` registers of features to `C` vectors, whose sums stay in registers. `at`:
/// the first feature in a row and in a vector.
#[inline(always)]
fn gather_tile<S: Simd, T: Scalar, const H: usize, const C: usize>(
    simd: S,
    rows: &[&[T]],
    weights: &[T],
    sums: &mut [T],
    at: (usize, usize),
) {
    let (count, length, values) = (rows.len(), sums.len() / C, H * T::lanes::<S>());
    let weights: [&[T]; C] = from_fn(|c| &weights[c * count..(c + 1) * count]);
    let mut totals = [[T::splat(simd, T::default()); H]; C];
    for (totals, sums) in totals.iter_mut().zip(sums.chunks_exact(length)) {
        totals.copy_from_slice(T::split::<S>(&sums[at.1..at.1 + values]).0);
    }
    for (j, row) in rows.iter().enumerate() {
        let x = &T::split::<S>(&row[at.0..at.0 + values]).0[..H];
        for c in 0..C {
            let weight = T::splat(simd, weights[c][j]);
            for h in 0..H {
                totals[c][h] = T::mul_add(simd, x[h], weight, totals[c][h]);
            }
        }
    }
    for (totals, sums) in totals.iter().zip(sums.chunks_exact_mut(length)) {
        T::split_mut::<S>(&mut sums[at.1..at.1 + values]).0.copy_from_slice(totals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts a vector to chunks.
    fn lay<T: Scalar>(vector: &[f64]) -> Vec<T> {
        let mut out = vec![T::default(); padded::<T>(vector.len())];
        for (f, &value) in vector.iter().enumerate() {
            out[position::<T>(vector.len(), f)] = T::from_f64(value);
        }
        out
    }

    fn check<T: Scalar>(count: usize, features: usize, latent: usize, tolerance: f64) {
        let value = |i: usize, j: usize| ((i * 31 + j * 17) % 23) as f64 / 7.0 - 1.5;
        let rows: Vec<Vec<T>> =
            (0..count).map(|i| (0..features).map(|f| T::from_f64(value(i, f))).collect()).collect();
        let slices: Vec<&[T]> = rows.iter().map(Vec::as_slice).collect();
        let vector = |k: usize| (0..features).map(|f| value(k + 5, f + 3)).collect::<Vec<f64>>();
        let basis: Vec<T> = (0..latent).flat_map(|k| lay(&vector(k))).collect();
        let mut out = vec![T::default(); count * latent];
        project(&slices, &basis, latent, &mut out);
        for i in 0..count {
            for k in 0..latent {
                let expected: f64 = (0..features).map(|f| value(i, f) * vector(k)[f]).sum();
                let found = out[i * latent + k].to_f64();
                assert!(
                    (found - expected).abs() <= tolerance * (1.0 + expected.abs()),
                    "{found} ≠ {expected}"
                );
            }
        }
        let width = latent.next_multiple_of(chunk::<T>());
        let mut basis = vec![T::default(); features * width];
        for (f, basis) in basis.chunks_exact_mut(width).enumerate() {
            (0..latent).for_each(|k| basis[k] = T::from_f64(vector(k)[f]));
        }
        let mut again = vec![T::default(); count * width];
        project_by_feature(&slices, &basis, width, &mut again);
        for (out, again) in out.chunks(latent).zip(again.chunks(width)) {
            for (out, again) in out.iter().zip(again) {
                let (found, expected) = (again.to_f64(), out.to_f64());
                assert!(
                    (found - expected).abs() <= tolerance * (1.0 + expected.abs()),
                    "{found} ≠ {expected}"
                );
            }
        }
        let weights: Vec<T> = (0..count * latent).map(|i| T::from_f64(value(i, 1))).collect();
        let mut sums = vec![T::default(); latent * padded::<T>(features)];
        gather(&slices, &weights, latent, &mut sums);
        for k in 0..latent {
            for f in 0..features {
                let expected: f64 = (0..count).map(|i| value(i, f) * value(k * count + i, 1)).sum();
                let found = sums[k * padded::<T>(features) + position::<T>(features, f)].to_f64();
                assert!(
                    (found - expected).abs() <= tolerance * (1.0 + expected.abs()),
                    "{found} ≠ {expected}"
                );
            }
        }
    }

    #[test]
    fn products_are_right_for_every_remainder() {
        for features in 16..50 {
            for latent in 1..13 {
                check::<f64>(7, features, latent, 1e-12);
                check::<f32>(6, features, latent, 1e-4);
            }
        }
        check::<f64>(9, 1111, 11, 1e-12);
        check::<f32>(9, 1111, 11, 1e-3);
    }
}
