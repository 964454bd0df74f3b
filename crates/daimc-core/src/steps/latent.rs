//! The V step. Rows are independent given the bases, and rows present in the same views share their Gram matrix, so
//! that several of them are updated at once, one per vector lane. A row is solved until it has converged itself,
//! independent of its neighbours, so that the grouping does not affect the bits.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd, bytemuck};
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

/// Whether rows are solved exactly on their [support](Support), which pays with many columns.
fn exact(latent: usize) -> bool {
    latent > 20
}

/// The passes after which the support of a row is first taken for that of the optimum; then after twice as many, and so on.
const FIRST_SUPPORT: usize = 8;

/// A pivot of the Gram matrix of a support below this share of its diagonal entry has too few digits left.
const SMALLEST_PIVOT: f64 = 1e-8;

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
        let mut support = Support::default();
        while at < end {
            match end - at {
                1 => step.group::<S, 1>(simd, at, scratch, &mut support, v),
                2 => step.group::<S, 2>(simd, at, scratch, &mut support, v),
                3 => step.group::<S, 3>(simd, at, scratch, &mut support, v),
                _ => step.group::<S, WIDE>(simd, at, scratch, &mut support, v),
            }
            at += WIDE;
        }
    }
}

impl Step<'_> {
    /// Updates the `W` registers of rows that start at register `at`.
    #[inline(always)]
    fn group<S: Simd, const W: usize>(
        &self,
        simd: S,
        at: usize,
        scratch: &mut [S::f64s],
        support: &mut Support,
        v: &mut [S::f64s],
    ) {
        match self.solver {
            Solver::Coordinate => self.coordinate::<S, W>(simd, at, support, v),
            Solver::Multiplicative => self.multiplicative::<S, W>(simd, at, v, scratch),
        }
    }

    #[inline(always)]
    fn coordinate<S: Simd, const W: usize>(
        &self,
        simd: S,
        at: usize,
        support: &mut Support,
        v: &mut [S::f64s],
    ) {
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
        let mut next = if watch && exact(latent) { FIRST_SUPPORT } else { usize::MAX };
        for pass in 1..=self.passes.most {
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
                if pass == next {
                    next *= 2;
                    let lanes = bytemuck::cast_slice_mut::<_, f64>(&mut active);
                    let v = bytemuck::cast_slice_mut(v);
                    for (lane, active) in lanes.iter_mut().enumerate().filter(|(_, active)| **active > 0.0) {
                        if support.solve(self, at * S::F64_LANES + lane, lane, v) {
                            *active = 0.0;
                        }
                    }
                    any = active.into_iter().fold(zero, |any, active| simd.max_f64s(any, active));
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

/// The support of a row of V: the columns in which it is not zero. Once it is that of the optimum, the row follows from linear
/// equations, and many passes are spared.
#[derive(Default)]
struct Support {
    columns: Vec<usize>,
    /// The upper triangle of the Cholesky factor of G on these columns.
    factor: Vec<f64>,
    solution: Vec<f64>,
    /// r − Gv on all columns.
    gradient: Vec<f64>,
}

impl Support {
    /// Replaces a row by the solution of its equations on its support, if that is the optimum: not negative there, and no other
    /// column would become positive. `lane` counts from the start of `v`, `right` from the start of all lanes.
    #[inline(always)]
    fn solve(&mut self, step: &Step<'_>, right: usize, lane: usize, v: &mut [f64]) -> bool {
        let (latent, gram) = (step.latent, step.gram.plus);
        let Self { columns, factor, solution, gradient } = self;
        let diagonal = |k: usize| gram[k * latent + k];
        columns.clear();
        columns.extend(
            (0..latent).filter(|k| v[k * step.stride + lane] > 0.0 && diagonal(*k) >= SMALLEST_DIAGONAL),
        );
        let size = columns.len();
        factor.clear();
        for &k in &*columns {
            factor.extend(columns.iter().map(|l| gram[k * latent + l]));
        }
        solution.clear();
        solution.extend(columns.iter().map(|k| step.right.plus[k * step.stride + right]));
        for j in 0..size {
            let (above, below) = factor.split_at_mut((j + 1) * size);
            let own = &mut above[j * size..];
            if own[j] <= SMALLEST_PIVOT * diagonal(columns[j]) {
                return false;
            }
            let reciprocal = own[j].sqrt().recip();
            own[j..].iter_mut().for_each(|entry| *entry *= reciprocal);
            for (k, other) in (j + 1..).zip(below.chunks_exact_mut(size)) {
                let by = own[k];
                other[k..].iter_mut().zip(&own[k..]).for_each(|(other, own)| *other -= by * own);
            }
            let known = solution[j] / own[j];
            solution[j] = known;
            solution[j + 1..].iter_mut().zip(&own[j + 1..]).for_each(|(rest, own)| *rest -= known * own);
        }
        for j in (0..size).rev() {
            let own = &factor[j * size..(j + 1) * size];
            let known: f64 = own[j + 1..].iter().zip(&solution[j + 1..]).map(|(own, x)| own * x).sum();
            solution[j] = (solution[j] - known) / own[j];
            if solution[j] <= 0.0 {
                return false;
            }
        }
        gradient.clear();
        gradient.extend((0..latent).map(|k| step.right.plus[k * step.stride + right]));
        for (k, x) in columns.iter().zip(&*solution) {
            let row = &gram[k * latent..(k + 1) * latent];
            gradient.iter_mut().zip(row).for_each(|(gradient, g)| *gradient -= x * g);
        }
        let largest = solution.iter().copied().fold(0.0, f64::max);
        let stays = |(k, gradient): (usize, &f64)| {
            let change = gradient / diagonal(k);
            diagonal(k) < SMALLEST_DIAGONAL || change <= step.passes.tolerance * largest
        };
        if !gradient.iter().enumerate().all(stays) {
            return false;
        }
        for k in 0..latent {
            if diagonal(k) >= SMALLEST_DIAGONAL {
                v[k * step.stride + lane] = 0.0;
            }
        }
        columns.iter().zip(&*solution).for_each(|(k, x)| v[k * step.stride + lane] = *x);
        true
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Bases and rows with planted clusters.
    fn problem(latent: usize, features: usize, rows: usize, noise: f64) -> (Vec<f64>, Vec<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let basis: Vec<f64> = (0..latent * features).map(|_| normal()).collect();
        let x: Vec<Vec<f64>> = (0..rows)
            .map(|i| (0..features).map(|f| basis[i % latent * features + f] + noise * normal()).collect())
            .collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let column = |k: usize| &basis[k * features..(k + 1) * features];
        let gram = (0..latent * latent).map(|at| dot(column(at / latent), column(at % latent))).collect();
        let right = (0..latent).flat_map(|k| x.iter().map(move |x| (k, x))).map(|(k, x)| dot(column(k), x));
        (gram, right.collect())
    }

    #[test]
    fn rows_solved_on_their_support_satisfy_the_conditions_of_the_optimum() {
        for (latent, features) in [(21, 60), (60, 80), (100, 200)] {
            let rows = 4 * LANES;
            let (gram, right) = problem(latent, features, rows, 1.5);
            let mut v = vec![0.0; latent * rows];
            let step = Step {
                solver: Solver::Coordinate,
                passes: Passes { most: MAX_PASSES, tolerance: TOLERANCE },
                latent,
                gram: Parts { plus: &gram, minus: &[] },
                right: Parts { plus: &right, minus: &[] },
                stride: rows,
                lanes: 0..rows,
            };
            step.run(&mut Vec::new(), &mut v);
            for i in 0..rows {
                let row: Vec<f64> = (0..latent).map(|k| v[k * rows + i]).collect();
                let largest = row.iter().copied().fold(0.0, f64::max);
                // One more step of coordinate descent without over-relaxation.
                for k in 0..latent {
                    let own = &gram[k * latent..(k + 1) * latent];
                    let gradient: f64 =
                        right[k * rows + i] - own.iter().zip(&row).map(|(g, v)| g * v).sum::<f64>();
                    let change = (row[k] + gradient / own[k]).max(0.0) - row[k];
                    assert!(row[k] >= 0.0 && change.abs() <= 1e-6 * largest, "{latent}, {i}, {k}: {change}");
                }
            }
        }
    }
}
