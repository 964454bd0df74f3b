//! The V step. Rows are independent given the bases, and rows present in the same views share their Gram matrix, so
//! that several of them are updated at once, one per vector lane. A row is solved until it has converged itself,
//! independent of its neighbours, so that the grouping does not affect the bits.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Serialize};

use crate::choice;
use crate::kernel::LANES;

/// The update rule of the rows of V.
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

choice!(Solver, "solver": Coordinate = "coordinate", Multiplicative = "multiplicative");

/// The two parts of G and of r in a step. Coordinate descent needs only their difference, which is in `plus`; `minus`
/// is then empty.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The positive part.
    pub plus: &'a [f64],
    /// The negative part, as positive numbers.
    pub minus: &'a [f64],
}

/// The stopping criterion of the passes over a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passes {
    /// The maximum number of passes.
    pub most: usize,
    /// A row has converged when none of its entries changed by more than this share of its largest. Each row is judged
    /// by itself, so that the result does not depend on the other rows.
    pub tolerance: f64,
}

/// Entry k of V stays as it is where `G_kk` is below this: coordinate descent divides by it.
pub const SMALLEST_DIAGONAL: f64 = 1e-280;

/// Maximum number of passes of a V step that is solved to optimality.
pub const MAX_PASSES: usize = 1000;

/// A V step is optimal for a row once no entry changes by more than this share of the row's largest.
pub const TOLERANCE: f64 = 1e-9;

/// The Gram matrix of a row with missing cells is the whole one minus the terms of these cells. It is summed anew, over the observed
/// cells, where a diagonal entry falls below this share of the whole: the difference has too few digits left.
pub const SMALLEST_REMAINDER: f64 = 1e-6;

/// The relaxation factor of a V step that is solved to optimality. With more than 20 columns coordinate descent steps beyond the
/// optimum of an entry (projected successive over-relaxation): it has the same limit and converges in a quarter of the passes, which
/// cost K² each.
pub fn relaxation(latent: usize) -> f64 {
    if latent > 20 { 1.7 } else { 1.0 }
}

/// Maximum number of registers per group of rows: enough independent sums to hide the latency of an addition.
const WIDE: usize = 4;

/// A V step of rows that are present in the same views.
pub struct Step<'a> {
    /// The update rule.
    pub solver: Solver,
    /// When the passes of a row end.
    pub passes: Passes,
    /// The number of columns K of V.
    pub latent: usize,
    /// G, K × K.
    pub gram: Parts<'a>,
    /// r, in lanes like V.
    pub right: Parts<'a>,
    /// The distance between the entries of a row in lanes.
    pub stride: usize,
    /// The lanes of the rows: multiples of [`LANES`].
    pub lanes: Range<usize>,
}

impl Step<'_> {
    /// Updates V; `scratch` is memory that is reused between calls.
    pub fn run(&self, scratch: &mut Vec<f64>, v: &mut [f64]) {
        if self.solver == Solver::Multiplicative {
            scratch.resize(self.latent * WIDE * LANES, 0.0);
        }
        Arch::new().dispatch(Update { step: self, scratch, v });
    }
}

struct Update<'a> {
    step: &'a Step<'a>,
    scratch: &'a mut [f64],
    v: &'a mut [f64],
}

impl WithSimd for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { step, scratch, v } = self;
        let v = S::as_mut_simd_f64s(v).0;
        let scratch = S::as_mut_simd_f64s(scratch).0;
        let end = step.lanes.end / S::F64_LANES;
        let mut at = step.lanes.start / S::F64_LANES;
        while at < end {
            match end - at {
                1 => step.group::<S, 1>(simd, at, scratch, v),
                2 => step.group::<S, 2>(simd, at, scratch, v),
                3 => step.group::<S, 3>(simd, at, scratch, v),
                _ => step.group::<S, WIDE>(simd, at, scratch, v),
            }
            at += WIDE;
        }
    }
}

impl Step<'_> {
    /// Updates the `W` registers of rows that start at register `at`.
    #[inline(always)]
    fn group<S: Simd, const W: usize>(&self, simd: S, at: usize, scratch: &mut [S::f64s], v: &mut [S::f64s]) {
        match self.solver {
            Solver::Coordinate => self.coordinate::<S, W>(simd, at, v),
            Solver::Multiplicative => self.multiplicative::<S, W>(simd, at, v, scratch),
        }
    }

    #[inline(always)]
    fn coordinate<S: Simd, const W: usize>(&self, simd: S, at: usize, v: &mut [S::f64s]) {
        let latent = self.latent;
        let stride = self.stride / S::F64_LANES;
        let right = &S::as_simd_f64s(self.right.plus).0[at..];
        let v = &mut v[at..];
        let zero = simd.splat_f64s(0.0);
        let watch = self.passes.tolerance > 0.0;
        let relaxation = if watch { relaxation(latent) } else { 1.0 };
        let one = simd.splat_f64s(1.0);
        // 1 for rows that still change, 0 for the others.
        let mut active = [one; W];
        for _ in 0..self.passes.most {
            let (mut change, mut largest) = ([zero; W], [zero; W]);
            for k in 0..latent {
                let row = &self.gram.plus[k * latent..(k + 1) * latent];
                if row[k] < SMALLEST_DIAGONAL {
                    continue;
                }
                let own = &right[k * stride..k * stride + W];
                let mut gradient: [_; W] = std::array::from_fn(|w| own[w]);
                for (l, g) in row.iter().enumerate() {
                    let (g, v) = (simd.splat_f64s(-g), &v[l * stride..l * stride + W]);
                    for w in 0..W {
                        gradient[w] = simd.mul_add_e_f64s(g, v[w], gradient[w]);
                    }
                }
                let reciprocal = simd.splat_f64s(relaxation / row[k]);
                let own = &mut v[k * stride..k * stride + W];
                for w in 0..W {
                    let step = if watch { simd.mul_f64s(reciprocal, active[w]) } else { reciprocal };
                    let new = simd.max_f64s(simd.mul_add_e_f64s(gradient[w], step, own[w]), zero);
                    if watch {
                        change[w] = simd.max_f64s(change[w], simd.abs_f64s(simd.sub_f64s(new, own[w])));
                        largest[w] = simd.max_f64s(largest[w], new);
                    }
                    own[w] = new;
                }
            }
            if watch {
                let tolerance = simd.splat_f64s(self.passes.tolerance);
                let mut any = zero;
                for w in 0..W {
                    let changes = simd.greater_than_f64s(change[w], simd.mul_f64s(tolerance, largest[w]));
                    active[w] = simd.select_f64s(changes, active[w], zero);
                    any = simd.max_f64s(any, active[w]);
                }
                if simd.reduce_max_f64s(any) == 0.0 {
                    break;
                }
            }
        }
    }

    #[inline(always)]
    fn multiplicative<S: Simd, const W: usize>(
        &self,
        simd: S,
        at: usize,
        v: &mut [S::f64s],
        new: &mut [S::f64s],
    ) {
        let latent = self.latent;
        let stride = self.stride / S::F64_LANES;
        let plus = &S::as_simd_f64s(self.right.plus).0[at..];
        let minus = &S::as_simd_f64s(self.right.minus).0[at..];
        let v = &mut v[at..];
        let zero = simd.splat_f64s(0.0);
        let watch = self.passes.tolerance > 0.0;
        for _ in 0..self.passes.most {
            let (mut change, mut largest) = (zero, zero);
            for k in 0..latent {
                let row = k * latent..(k + 1) * latent;
                let (g_plus, g_minus) = (&self.gram.plus[row.clone()], &self.gram.minus[row]);
                let own = k * stride..k * stride + W;
                let (plus, minus, own) = (&plus[own.clone()], &minus[own.clone()], &v[own]);
                let mut above: [_; W] = std::array::from_fn(|w| plus[w]);
                let mut below: [_; W] = std::array::from_fn(|w| minus[w]);
                for (l, (p, m)) in g_plus.iter().zip(g_minus).enumerate() {
                    let (p, m) = (simd.splat_f64s(*p), simd.splat_f64s(*m));
                    let v = &v[l * stride..l * stride + W];
                    for w in 0..W {
                        above[w] = simd.mul_add_e_f64s(m, v[w], above[w]);
                        below[w] = simd.mul_add_e_f64s(p, v[w], below[w]);
                    }
                }
                for w in 0..W {
                    let ratio = simd.sqrt_f64s(simd.div_f64s(above[w], below[w]));
                    let updated = simd.mul_f64s(own[w], ratio);
                    // A zero denominator: the basis has no such column in these views, or v is zero.
                    let defined = simd.less_than_f64s(zero, below[w]);
                    let updated = simd.select_f64s(defined, updated, zero);
                    if watch {
                        change = simd.max_f64s(change, simd.abs_f64s(simd.sub_f64s(updated, own[w])));
                        largest = simd.max_f64s(largest, updated);
                    }
                    new[k * W + w] = updated;
                }
            }
            for (v, new) in v.chunks_mut(stride).zip(new.chunks_exact(W)) {
                v[..W].copy_from_slice(new);
            }
            if watch && simd.reduce_max_f64s(change) <= self.passes.tolerance * simd.reduce_max_f64s(largest)
            {
                break;
            }
        }
    }
}
