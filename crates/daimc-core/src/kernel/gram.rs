//! `Σ_j v_j v_jᵀ` of consecutive rows, one per lane.

use std::array::from_fn;

use pulp::{Arch, Simd, WithSimd};

use super::LANES;

/// The sum over some rows, not yet reduced over lanes: the lower triangle, row by row.
#[derive(Debug, Default)]
pub(crate) struct Gram {
    sums: Vec<f64>,
    latent: usize,
}

impl Gram {
    pub fn new(latent: usize) -> Self {
        Self { sums: vec![0.0; latent * (latent + 1) / 2 * LANES], latent }
    }

    /// Adds rows: `v_jk` is `v[k · stride + j]`, and the lanes are a whole multiple of [`LANES`].
    pub fn add(&mut self, v: &[f64], stride: usize, lanes: std::ops::Range<usize>) {
        Arch::new().dispatch(Add { sums: &mut self.sums, latent: self.latent, v, stride, lanes });
    }

    /// Adds the matrix to each of `totals` (K × K) and clears it.
    pub fn flush<'a>(&mut self, totals: impl Iterator<Item = &'a mut [f64]>) {
        let (groups, _) = self.sums.as_chunks_mut::<LANES>();
        for group in groups.iter_mut() {
            let [a, b, c, d, e, f, g, h] = *group;
            group[0] = ((a + b) + (c + d)) + ((e + f) + (g + h));
        }
        for total in totals {
            let mut sums = groups.iter();
            for k in 0..self.latent {
                for (l, sum) in sums.by_ref().take(k + 1).enumerate() {
                    total[k * self.latent + l] += sum[0];
                    if l < k {
                        total[l * self.latent + k] += sum[0];
                    }
                }
            }
        }
        self.sums.fill(0.0);
    }
}

struct Add<'a> {
    sums: &'a mut [f64],
    latent: usize,
    v: &'a [f64],
    stride: usize,
    lanes: std::ops::Range<usize>,
}

/// Products with one row of V that are summed together.
const WIDE: usize = 5;

impl WithSimd for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { sums, latent, v, stride, lanes } = self;
        let mut rest = sums;
        for k in 0..latent {
            let own = &v[k * stride..][lanes.clone()];
            let row;
            (row, rest) = rest.split_at_mut((k + 1) * LANES);
            for (l, sums) in (0..).step_by(WIDE).zip(row.chunks_mut(WIDE * LANES)) {
                let others = &v[l * stride..];
                match sums.len() / LANES {
                    1 => add_some::<S, 1>(simd, own, others, stride, lanes.start, sums),
                    2 => add_some::<S, 2>(simd, own, others, stride, lanes.start, sums),
                    3 => add_some::<S, 3>(simd, own, others, stride, lanes.start, sums),
                    4 => add_some::<S, 4>(simd, own, others, stride, lanes.start, sums),
                    _ => add_some::<S, WIDE>(simd, own, others, stride, lanes.start, sums),
                }
            }
        }
    }
}

#[inline(always)]
fn add_some<S: Simd, const W: usize>(
    simd: S,
    own: &[f64],
    others: &[f64],
    stride: usize,
    first: usize,
    sums: &mut [f64],
) {
    let per = LANES / S::F64_LANES;
    let own = S::as_simd_f64s(own).0;
    let others: [_; W] = from_fn(|w| &S::as_simd_f64s(&others[w * stride + first..]).0[..own.len()]);
    let sums = S::as_mut_simd_f64s(sums).0;
    for part in 0..per {
        let mut sum: [_; W] = from_fn(|w| sums[w * per + part]);
        for at in (part..own.len()).step_by(per) {
            for w in 0..W {
                sum[w] = simd.mul_add_e_f64s(own[at], others[w][at], sum[w]);
            }
        }
        for w in 0..W {
            sums[w * per + part] = sum[w];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_outer_products() {
        for (latent, rows) in [(1, 8), (3, 16), (10, 24), (13, 64)] {
            let stride = rows + 8;
            let value = |k: usize, j: usize| ((k * 7 + j * 3) % 11) as f64 - 4.0;
            let v: Vec<f64> = (0..latent * stride).map(|i| value(i / stride, i % stride)).collect();
            let mut gram = Gram::new(latent);
            let mut totals = [vec![0.0; latent * latent], vec![1.0; latent * latent]];
            // A second flush adds nothing of the first.
            for lanes in [8..rows + 8, 8..16] {
                gram.add(&v, stride, lanes.clone());
                let before = totals.clone();
                gram.flush(totals.iter_mut().map(Vec::as_mut_slice));
                for (k, l) in (0..latent * latent).map(|i| (i / latent, i % latent)) {
                    let expected: f64 = lanes.clone().map(|j| value(k, j) * value(l, j)).sum();
                    for (total, before) in totals.iter().zip(&before) {
                        assert_eq!(total[k * latent + l] - before[k * latent + l], expected);
                    }
                }
            }
        }
    }
}
