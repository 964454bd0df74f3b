//! Dense rows. Both products are tiled so that a tile of sums lives in registers.

use std::array::from_fn;

use pulp::{Arch, Simd, WithSimd};

use super::scalar::Scalar;

/// Features per pass of [`gather`]: a tile's share of the sums then stays in the first-level cache.
const PANEL: usize = 512;

/// `out[j][k] = x_j · u_k` for each row `x_j` and each of the K rows `u_k` of `basis` (K × d).
pub(crate) fn project<T: Scalar>(rows: &[&[T]], basis: &[T], latent: usize, out: &mut [T]) {
    if rows.is_empty() || latent == 0 {
        return;
    }
    let features = rows[0].len();
    assert!(rows.iter().all(|row| row.len() == features));
    assert_eq!(basis.len(), latent * features);
    assert_eq!(out.len(), rows.len() * latent);
    Arch::new().dispatch(Project { rows, basis, latent, features, out });
}

/// `sums[k] += Σ_j weights[j][k] x_j`: `sums` is K × d, `weights` one row of K numbers per row `x_j`.
pub(crate) fn gather<T: Scalar>(rows: &[&[T]], weights: &[T], latent: usize, sums: &mut [T]) {
    if rows.is_empty() || latent == 0 {
        return;
    }
    let features = rows[0].len();
    assert!(rows.iter().all(|row| row.len() == features));
    assert_eq!(weights.len(), rows.len() * latent);
    assert_eq!(sums.len(), latent * features);
    Arch::new().dispatch(Gather { rows, weights, latent, features, sums });
}

struct Project<'a, T> {
    rows: &'a [&'a [T]],
    basis: &'a [T],
    latent: usize,
    features: usize,
    out: &'a mut [T],
}

/// Calls `$tile::<…, R, C>` for the `C` that is `$width` at run time.
macro_rules! with_width {
    ($width:expr, $rows:literal, [$($cols:literal),*], $tile:ident $args:tt) => {
        match $width {
            $($cols => $tile::<S, T, $rows, $cols> $args,)*
            _ => unreachable!("a tile is at most as wide as it was cut"),
        }
    };
}

impl<T: Scalar> WithSimd for Project<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, basis, latent, features, out } = self;
        let (height, widest) = if S::REGISTER_COUNT >= 32 { (4, 5) } else { (2, 4) };
        for (group, out) in rows.chunks(height).zip(out.chunks_mut(height * latent)) {
            for (start, width) in cuts(latent, widest) {
                let basis = &basis[start * features..];
                if S::REGISTER_COUNT >= 32 {
                    with_width!(
                        width,
                        4,
                        [1, 2, 3, 4, 5],
                        project_tile(simd, group, basis, features, latent, &mut out[start..])
                    );
                } else {
                    with_width!(
                        width,
                        2,
                        [1, 2, 3, 4],
                        project_tile(simd, group, basis, features, latent, &mut out[start..])
                    );
                }
            }
        }
    }
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

/// A group shorter than the tile repeats its last row; what comes of the repeats is not written.
#[inline(always)]
fn fill<'a, T, const R: usize>(group: &[&'a [T]]) -> [&'a [T]; R] {
    from_fn(|i| group[i.min(group.len() - 1)])
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
    let rows = rows.map(T::split::<S>);
    let columns: [_; C] = from_fn(|c| T::split::<S>(&basis[c * features..(c + 1) * features]));
    let whole = rows[0].0.len();
    let x: [&[_]; R] = from_fn(|i| &rows[i].0[..whole]);
    let u: [&[_]; C] = from_fn(|c| &columns[c].0[..whole]);
    let mut sums = [[T::splat(simd, T::default()); C]; R];
    for f in 0..whole {
        let x: [_; R] = from_fn(|i| x[i][f]);
        for c in 0..C {
            let u = u[c][f];
            for i in 0..R {
                sums[i][c] = T::mul_add(simd, x[i], u, sums[i][c]);
            }
        }
    }
    if !rows[0].1.is_empty() {
        let x: [_; R] = from_fn(|i| T::load_part(simd, rows[i].1));
        for c in 0..C {
            let u = T::load_part(simd, columns[c].1);
            for i in 0..R {
                sums[i][c] = T::mul_add(simd, x[i], u, sums[i][c]);
            }
        }
    }
    for (sums, out) in sums.iter().zip(out.chunks_mut(latent)).take(group.len()) {
        for (sum, out) in sums.iter().zip(out) {
            *out = T::sum(simd, *sum);
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
        let (height, widest) = if S::REGISTER_COUNT >= 32 { (4, 5) } else { (2, 4) };
        for from in (0..features).step_by(PANEL) {
            let panel = from..(from + PANEL).min(features);
            for (start, width) in cuts(latent, widest) {
                let sums = &mut sums[start * features..];
                for (group, weights) in rows.chunks(height).zip(weights.chunks(height * latent)) {
                    let weights = &weights[start..];
                    if S::REGISTER_COUNT >= 32 {
                        with_width!(
                            width,
                            4,
                            [1, 2, 3, 4, 5],
                            gather_tile(simd, group, weights, latent, sums, features, &panel)
                        );
                    } else {
                        with_width!(
                            width,
                            2,
                            [1, 2, 3, 4],
                            gather_tile(simd, group, weights, latent, sums, features, &panel)
                        );
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn gather_tile<S: Simd, T: Scalar, const R: usize, const C: usize>(
    simd: S,
    group: &[&[T]],
    weights: &[T],
    latent: usize,
    sums: &mut [T],
    features: usize,
    panel: &std::ops::Range<usize>,
) {
    let rows: [&[T]; R] = fill(group);
    let rows = rows.map(|row| T::split::<S>(&row[panel.clone()]));
    let weight: [[_; C]; R] = from_fn(|i| {
        from_fn(|c| {
            let value = if i < group.len() { weights[i * latent + c] } else { T::default() };
            T::splat(simd, value)
        })
    });
    let mut columns = sums.chunks_mut(features);
    let columns: [_; C] =
        from_fn(|_| T::split_mut::<S>(&mut columns.next().unwrap_or_default()[panel.clone()]));
    let whole = rows[0].0.len();
    let x: [&[_]; R] = from_fn(|i| &rows[i].0[..whole]);
    let mut rests: [&mut [T]; C] = from_fn(|_| <&mut [T]>::default());
    let mut sums: [&mut [_]; C] = from_fn(|_| <&mut [T::Register<S>]>::default());
    for (c, (head, rest)) in columns.into_iter().enumerate() {
        sums[c] = &mut head[..whole];
        rests[c] = rest;
    }
    for f in 0..whole {
        let x: [_; R] = from_fn(|i| x[i][f]);
        for c in 0..C {
            let mut sum = sums[c][f];
            for i in 0..R {
                sum = T::mul_add(simd, x[i], weight[i][c], sum);
            }
            sums[c][f] = sum;
        }
    }
    if !rows[0].1.is_empty() {
        let x: [_; R] = from_fn(|i| T::load_part(simd, rows[i].1));
        for (c, rest) in rests.iter_mut().enumerate() {
            let mut sum = T::load_part(simd, rest);
            for i in 0..R {
                sum = T::mul_add(simd, x[i], weight[i][c], sum);
            }
            T::store_part(simd, rest, sum);
        }
    }
}
