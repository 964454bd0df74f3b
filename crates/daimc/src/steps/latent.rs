//! The V step. Rows are independent given the bases, and rows seen in the same views share their Gram matrix,
//! so that several of them are updated at once, one per vector lane.

use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Serialize};

use crate::kernel::aligned::Aligned;

/// How the rows of V are updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Solver {
    /// Cyclic coordinate descent, `v_k ← max(0, v_k + (r_k − Σ_l G_kl v_l) / G_kk)`, with
    /// `G = Σ_v w_v U_vᵀU_v` and `r = Σ_v w_v U_vᵀx_v`.
    #[default]
    Coordinate,
    /// Eq. 19 as published, positive and negative parts taken per view:
    /// `v_k ← v_k √( (r⁺_k + Σ_l G⁻_kl v_l) / (r⁻_k + Σ_l G⁺_kl v_l) )`.
    Multiplicative,
}

/// The two parts of G and of r that a step works with. Coordinate descent needs only their difference, which
/// it finds in `plus`; `minus` is then empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub plus: &'a [f64],
    pub minus: &'a [f64],
}

/// When to stop going over a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passes {
    pub most: usize,
    /// Stop when no entry of a group of rows changed by more than this share of the group's largest.
    pub tolerance: f64,
}

/// A basis vector whose squared length is below this takes no part: it could not be divided by.
const SMALLEST: f64 = 1e-280;

/// Registers per group of rows: enough independent sums to hide the latency of an addition.
const WIDE: usize = 4;

/// Updates rows of V (n × K) that are seen in the same views: `gram` is K × K, `right` n × K.
pub(crate) fn update(
    solver: Solver,
    gram: Parts<'_>,
    right: Parts<'_>,
    latent: usize,
    passes: Passes,
    scratch: &mut Option<Aligned<f64>>,
    v: &mut [f64],
) {
    Arch::new().dispatch(Update { solver, gram, right, latent, passes, scratch, v });
}

struct Update<'a> {
    solver: Solver,
    gram: Parts<'a>,
    right: Parts<'a>,
    latent: usize,
    passes: Passes,
    scratch: &'a mut Option<Aligned<f64>>,
    v: &'a mut [f64],
}

impl WithSimd for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { solver, gram, right, latent, passes, scratch, v } = self;
        let rows = v.len() / latent;
        let needed = 4 * latent * WIDE * S::F64_LANES;
        if scratch.as_ref().is_none_or(|lanes| lanes.len() != needed) {
            *scratch = Some(Aligned::zeros(needed));
        }
        let Some(lanes) = scratch else { return };
        let mut start = 0;
        while start < rows {
            let wide = rows - start > S::F64_LANES;
            let group = if wide { WIDE * S::F64_LANES } else { S::F64_LANES };
            let end = (start + group).min(rows);
            let range = start * latent..end * latent;
            let minus = if right.minus.is_empty() { &[] } else { &right.minus[range.clone()] };
            let right = Parts { plus: &right.plus[range.clone()], minus };
            let rows = Group { solver, gram, right, latent, passes };
            if wide {
                rows.run::<S, WIDE>(simd, lanes, &mut v[range]);
            } else {
                rows.run::<S, 1>(simd, lanes, &mut v[range]);
            }
            start = end;
        }
    }
}

struct Group<'a> {
    solver: Solver,
    gram: Parts<'a>,
    right: Parts<'a>,
    latent: usize,
    passes: Passes,
}

impl Group<'_> {
    #[inline(always)]
    fn run<S: Simd, const W: usize>(&self, simd: S, scratch: &mut [f64], v: &mut [f64]) {
        let size = self.latent * W * S::F64_LANES;
        let (lanes_v, rest) = scratch.split_at_mut(size);
        let (lanes_plus, rest) = rest.split_at_mut(size);
        let (lanes_minus, lanes_new) = rest.split_at_mut(size);
        let width = W * S::F64_LANES;
        to_lanes(v, self.latent, width, lanes_v);
        to_lanes(self.right.plus, self.latent, width, lanes_plus);
        let now = S::as_mut_simd_f64s(lanes_v).0;
        let plus = S::as_simd_f64s(lanes_plus).0;
        match self.solver {
            Solver::Coordinate => self.coordinate::<S, W>(simd, plus, now),
            Solver::Multiplicative => {
                to_lanes(self.right.minus, self.latent, width, lanes_minus);
                let minus = S::as_simd_f64s(lanes_minus).0;
                let new = S::as_mut_simd_f64s(lanes_new).0;
                self.multiplicative::<S, W>(simd, plus, minus, now, new);
            }
        }
        for (i, row) in v.chunks_exact_mut(self.latent).enumerate() {
            for (k, value) in row.iter_mut().enumerate() {
                *value = lanes_v[k * width + i];
            }
        }
    }

    #[inline(always)]
    fn coordinate<S: Simd, const W: usize>(&self, simd: S, right: &[S::f64s], v: &mut [S::f64s]) {
        let latent = self.latent;
        let zero = simd.splat_f64s(0.0);
        let watch = self.passes.tolerance > 0.0;
        for _ in 0..self.passes.most {
            let (mut change, mut largest) = (zero, zero);
            for k in 0..latent {
                let row = &self.gram.plus[k * latent..(k + 1) * latent];
                if row[k] < SMALLEST {
                    continue;
                }
                let mut gradient: [_; W] = std::array::from_fn(|w| right[k * W + w]);
                for (g, v) in row.iter().zip(v.chunks_exact(W)) {
                    let g = simd.splat_f64s(-g);
                    for w in 0..W {
                        gradient[w] = simd.mul_add_e_f64s(g, v[w], gradient[w]);
                    }
                }
                let reciprocal = simd.splat_f64s(1.0 / row[k]);
                for w in 0..W {
                    let old = v[k * W + w];
                    let new = simd.max_f64s(simd.mul_add_e_f64s(gradient[w], reciprocal, old), zero);
                    if watch {
                        change = simd.max_f64s(change, simd.abs_f64s(simd.sub_f64s(new, old)));
                        largest = simd.max_f64s(largest, new);
                    }
                    v[k * W + w] = new;
                }
            }
            if watch && simd.reduce_max_f64s(change) <= self.passes.tolerance * simd.reduce_max_f64s(largest)
            {
                break;
            }
        }
    }

    #[inline(always)]
    fn multiplicative<S: Simd, const W: usize>(
        &self,
        simd: S,
        plus: &[S::f64s],
        minus: &[S::f64s],
        v: &mut [S::f64s],
        new: &mut [S::f64s],
    ) {
        let latent = self.latent;
        let zero = simd.splat_f64s(0.0);
        let watch = self.passes.tolerance > 0.0;
        for _ in 0..self.passes.most {
            let (mut change, mut largest) = (zero, zero);
            for k in 0..latent {
                let row = k * latent..(k + 1) * latent;
                let (g_plus, g_minus) = (&self.gram.plus[row.clone()], &self.gram.minus[row]);
                let mut above: [_; W] = std::array::from_fn(|w| plus[k * W + w]);
                let mut below: [_; W] = std::array::from_fn(|w| minus[k * W + w]);
                for ((p, m), v) in g_plus.iter().zip(g_minus).zip(v.chunks_exact(W)) {
                    let (p, m) = (simd.splat_f64s(*p), simd.splat_f64s(*m));
                    for w in 0..W {
                        above[w] = simd.mul_add_e_f64s(m, v[w], above[w]);
                        below[w] = simd.mul_add_e_f64s(p, v[w], below[w]);
                    }
                }
                for w in 0..W {
                    let old = v[k * W + w];
                    let ratio = simd.sqrt_f64s(simd.div_f64s(above[w], below[w]));
                    let updated = simd.mul_f64s(old, ratio);
                    // Nothing below the line: the basis has no such column in these views, or v is zero.
                    let defined = simd.less_than_f64s(zero, below[w]);
                    let updated = simd.select_f64s(defined, updated, zero);
                    if watch {
                        change = simd.max_f64s(change, simd.abs_f64s(simd.sub_f64s(updated, old)));
                        largest = simd.max_f64s(largest, updated);
                    }
                    new[k * W + w] = updated;
                }
            }
            v.copy_from_slice(&new[..v.len()]);
            if watch && simd.reduce_max_f64s(change) <= self.passes.tolerance * simd.reduce_max_f64s(largest)
            {
                break;
            }
        }
    }
}

/// Rows of K numbers to K rows of lanes; lanes without a row are zero. Lanes are written eight at a time: a register that
/// is loaded from single stores has to wait for all of them.
#[inline(always)]
fn to_lanes(rows: &[f64], latent: usize, width: usize, lanes: &mut [f64]) {
    const EIGHT: usize = 8;
    if rows.len() < lanes.len() {
        lanes.fill(0.0);
    }
    let whole = rows.len() / latent / EIGHT * EIGHT;
    for start in (0..whole).step_by(EIGHT) {
        let rows = &rows[start * latent..(start + EIGHT) * latent];
        for k in 0..latent {
            let column: [f64; EIGHT] = std::array::from_fn(|i| rows[i * latent + k]);
            lanes[k * width + start..][..EIGHT].copy_from_slice(&column);
        }
    }
    for (i, row) in rows.chunks_exact(latent).enumerate().skip(whole) {
        for (k, value) in row.iter().enumerate() {
            lanes[k * width + i] = *value;
        }
    }
}
