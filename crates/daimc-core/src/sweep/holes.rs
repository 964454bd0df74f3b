//! The V step and the statistics of rows with missing cells.
//!
//! The loss counts the observed cells only. Each sweep majorises it by the loss of rows whose missing cells hold the
//! current prediction of the model, `u_fᵀv_j`: this bound is nowhere below the loss, and equal at the current V and U.
//! Rows of one pattern therefore share their Gram matrix, a missing cell costs O(K), and one more number per view, `Σ
//! (u_fᵀv_j)²` over missing cells, turns the objective into that of the observed cells, exactly. With `x'_f` the fill
//! value of the cell,
//!
//! ```text
//! r_j += Σ_{f ∈ h(j)} u_f (u_fᵀv_j − x'_f),      and with the new v_j      C_f += (u_fᵀv_j − x'_f) v_j
//! ```
//!
//! and everything else is as for complete rows: rows share the Gram matrix of their pattern, and the loss does not
//! increase. When V is solved to optimality (at the end, and for new instances), such a row has its own Gram matrix,
//! `G_j = G − Σ_{f ∈ h(j)} u_f u_fᵀ`, and the result is optimal for the observed cells.

use pulp::{Arch, Simd, WithSimd};

use super::hole_scratch::{Hole, HoleRow, HoleScratch};
use super::tile::{Run, Tile};
use super::{StepPlan, Sweep};
use crate::index::index;
use crate::kernel::LANES;
use crate::scaled_view::{CrossSums, ScaledView, padded};
use crate::source::Block;
use crate::steps::latent::{Parts, Passes, SMALLEST_REMAINDER, Solver, Step};

impl HoleScratch {
    /// Clears the data of the previous tile.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.cells.clear();
    }

    /// Scratch memory for `r` of one view.
    pub fn clear_right(&mut self, size: usize) -> &mut [f64] {
        self.right.clear();
        self.right.resize(size, 0.0);
        &mut self.right
    }
}

impl Tile {
    /// Subtracts the fill values of missing cells of a view from its `r`, and adds `r` to that of all views.
    #[inline(always)]
    pub fn correct(&mut self, scaled_view: &ScaledView, plan: &StepPlan<'_>, view: usize, block: &Block<'_>) {
        let (stride, width) = (self.stride, padded(self.latent));
        let basis = &plan.hole_bases[view];
        let HoleScratch { rows, cells, right, v, r, .. } = &mut self.holes;
        for (at, lane) in self.members[view].iter() {
            let first = cells.len();
            cells.extend(
                scaled_view
                    .holes(block, at.1)
                    .map(|f| Hole { feature: index(f), stored: scaled_view.value(block, at, f) }),
            );
            if cells.len() == first {
                continue;
            }
            rows.push(HoleRow { lane, view, row: at.1, cells: first..cells.len() });
            r.clear();
            r.resize(width, 0.0);
            if plan.from_zero {
                scaled_view.project_observed(block, at, basis, width, r);
                (0..self.latent).for_each(|k| right[k * stride + lane] = r[k]);
            } else {
                load(&self.v, stride, lane, self.latent, v);
                let own = &cells[first..];
                Arch::new().dispatch(Pull { basis, cells: own, share: 1.0, v, r });
                (0..self.latent).for_each(|k| right[k * stride + lane] += r[k]);
            }
        }
        if plan.solver == Solver::Multiplicative {
            let all = self.right_plus.iter_mut().zip(&mut self.right_minus).zip(&*right);
            for ((plus, minus), own) in all {
                *plus += own.max(0.0);
                *minus += (-own).max(0.0);
            }
        } else {
            self.right_plus.iter_mut().zip(&*right).for_each(|(all, own)| *all += own);
        }
    }

    /// Updates rows before they are solved to optimality. `r` is restored to that of the observed cells afterwards.
    #[inline(always)]
    pub fn update_before(&mut self, plan: &StepPlan<'_>, passes: Passes) {
        if self.holes.rows.is_empty() {
            self.update(plan, passes);
            return;
        }
        let (stride, width) = (self.stride, padded(self.latent));
        let HoleScratch { rows, cells, v, r, kept, .. } = &mut self.holes;
        kept.clone_from(&self.right_plus);
        for HoleRow { lane, view, cells: own, .. } in &*rows {
            r.clear();
            r.resize(width, 0.0);
            load(&self.v, stride, *lane, self.latent, v);
            let (basis, cells) = (&plan.hole_bases[*view][..], &cells[own.clone()]);
            Arch::new().dispatch(Pull { basis, cells, share: 0.0, v, r });
            (0..self.latent).for_each(|k| self.right_plus[k * stride + lane] += r[k]);
        }
        self.update(plan, passes);
        std::mem::swap(&mut self.right_plus, &mut self.holes.kept);
    }

    /// Solves the rows with missing cells to optimality, from zero, each with its own Gram matrix.
    pub fn solve_rows_with_holes(&mut self, sweep: &Sweep<'_>, plan: &StepPlan<'_>, blocks: &[Block<'_>]) {
        self.holes.rows.sort_by_key(|row| row.lane);
        let rows = std::mem::take(&mut self.holes.rows);
        for own in rows.chunk_by(|a, b| a.lane == b.lane) {
            self.solve_row(sweep, plan, blocks, own);
        }
        self.holes.rows = rows;
    }

    /// Solves the row of a lane to optimality, given the views in which it has missing cells.
    fn solve_row(&mut self, sweep: &Sweep<'_>, plan: &StepPlan<'_>, blocks: &[Block<'_>], lacks: &[HoleRow]) {
        let (latent, lane) = (self.latent, lacks[0].lane);
        let Some(run) = self.runs.iter().find(|run| run.lanes().contains(&lane)) else { return };
        let Run { pattern, .. } = *run;
        let HoleScratch { cells, gram, own_v, own_right, .. } = &mut self.holes;
        let whole = plan.grams.of(pattern, &mut self.own_gram).plus;
        gram.clear();
        gram.extend_from_slice(whole);
        for HoleRow { view, cells: own, .. } in lacks {
            let basis = &plan.hole_bases[*view];
            for hole in &cells[own.clone()] {
                add_square(gram, latent, basis, hole.feature as usize, -1.0);
            }
        }
        let lost = |k: usize| gram[k * latent + k] < SMALLEST_REMAINDER * whole[k * latent + k];
        if (0..latent).any(lost) {
            gram.fill(0.0);
            for &view in sweep.patterns.views(pattern) {
                match lacks.iter().find(|row| row.view == view) {
                    None => gram.iter_mut().zip(plan.grams.of_view(view)).for_each(|(sum, own)| *sum += own),
                    Some(HoleRow { row, .. }) => {
                        let basis = &plan.hole_bases[view];
                        sweep.scaled_views[view]
                            .each_observed(&blocks[view], *row, |f| add_square(gram, latent, basis, f, 1.0));
                    }
                }
            }
        }
        // The row is in the first lane; the others are empty.
        own_v.clear();
        own_v.resize(latent * LANES, 0.0);
        own_right.clear();
        own_right.resize(latent * LANES, 0.0);
        for k in 0..latent {
            own_right[k * LANES] = self.right_plus[k * self.stride + lane];
        }
        let step = Step {
            solver: Solver::Coordinate,
            passes: plan.passes,
            latent,
            gram: Parts { plus: gram, minus: &[] },
            right: Parts { plus: own_right, minus: &[] },
            stride: LANES,
            lanes: 0..LANES,
        };
        step.run(&mut self.new, own_v);
        for k in 0..latent {
            self.v[k * self.stride + lane] = own_v[k * LANES];
        }
    }

    /// Adds the contribution of missing cells to C, filled with the prediction of the model; without a model they keep
    /// their fill values.
    #[inline(always)]
    pub fn gather_holes(
        &mut self,
        sweep: &Sweep<'_>,
        plan: Option<&StepPlan<'_>>,
        blocks: &[Block<'_>],
        sums: &mut [CrossSums],
    ) {
        let Some(plan) = plan else {
            for (view, scaled_view) in
                sweep.scaled_views.iter().enumerate().filter(|(_, scaled_view)| scaled_view.lacks_cells)
            {
                let (block, sums) = (&blocks[view], &mut sums[view].holes);
                for (at, _) in self.members[view].iter() {
                    let stored = scaled_view.holes(block, at.1).map(|f| scaled_view.value(block, at, f));
                    sums.square += stored.map(|stored| stored * stored).sum::<f64>();
                }
            }
            return;
        };
        let HoleScratch { rows, cells, v, .. } = &mut self.holes;
        for HoleRow { lane, view, cells: own, .. } in &*rows {
            load(&self.v, self.stride, *lane, self.latent, v);
            let sums = &mut sums[*view].holes;
            let (basis, cells) = (&plan.hole_bases[*view][..], &cells[own.clone()]);
            sums.square += Arch::new().dispatch(Push { basis, cells, v, cross: &mut sums.cross });
        }
    }
}

/// `r = Σ u_f (u_fᵀv − share · x'_f)` over missing cells; rows are padded.
struct Pull<'a> {
    basis: &'a [f64],
    cells: &'a [Hole],
    share: f64,
    v: &'a [f64],
    r: &'a mut [f64],
}

impl WithSimd for Pull<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.v.len() / S::F64_LANES {
            1 => self.some::<S, 1>(simd),
            2 => self.some::<S, 2>(simd),
            3 => self.some::<S, 3>(simd),
            4 => self.some::<S, 4>(simd),
            6 => self.some::<S, 6>(simd),
            _ => self.any(simd),
        }
    }
}

impl Pull<'_> {
    /// Rows of `N` registers, which stay in registers.
    #[inline(always)]
    fn some<S: Simd, const N: usize>(self, simd: S) {
        let v: [S::f64s; N] = registers::<S, N>(self.v);
        let mut sums = [simd.splat_f64s(0.0); N];
        for hole in self.cells {
            let u = registers::<S, N>(row(self.basis, hole, self.v.len()));
            let mut dot = simd.splat_f64s(0.0);
            for n in 0..N {
                dot = simd.mul_add_e_f64s(u[n], v[n], dot);
            }
            let error = simd.splat_f64s(simd.reduce_sum_f64s(dot) - self.share * hole.stored);
            for n in 0..N {
                sums[n] = simd.mul_add_e_f64s(error, u[n], sums[n]);
            }
        }
        S::as_mut_simd_f64s(self.r).0.copy_from_slice(&sums);
    }

    #[inline(always)]
    fn any<S: Simd>(self, simd: S) {
        let (v, r) = (S::as_simd_f64s(self.v).0, S::as_mut_simd_f64s(self.r).0);
        r.fill(simd.splat_f64s(0.0));
        for hole in self.cells {
            let u = S::as_simd_f64s(row(self.basis, hole, self.v.len())).0;
            let error = simd.splat_f64s(dot(simd, u, v) - self.share * hole.stored);
            r.iter_mut().zip(u).for_each(|(r, u)| *r = simd.mul_add_e_f64s(error, *u, *r));
        }
    }
}

/// `C_f += (u_fᵀv − x'_f) v` for missing cells; returns `Σ (u_fᵀv)²`.
struct Push<'a> {
    basis: &'a [f64],
    cells: &'a [Hole],
    v: &'a [f64],
    cross: &'a mut [f64],
}

impl WithSimd for Push<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        match self.v.len() / S::F64_LANES {
            1 => self.some::<S, 1>(simd),
            2 => self.some::<S, 2>(simd),
            3 => self.some::<S, 3>(simd),
            4 => self.some::<S, 4>(simd),
            6 => self.some::<S, 6>(simd),
            _ => self.any(simd),
        }
    }
}

impl Push<'_> {
    /// Rows of `N` registers, which stay in registers.
    #[inline(always)]
    fn some<S: Simd, const N: usize>(self, simd: S) -> f64 {
        let (v, width): ([S::f64s; N], usize) = (registers::<S, N>(self.v), self.v.len());
        let mut square = 0.0;
        for hole in self.cells {
            let u = registers::<S, N>(row(self.basis, hole, width));
            let mut dot = simd.splat_f64s(0.0);
            for n in 0..N {
                dot = simd.mul_add_e_f64s(u[n], v[n], dot);
            }
            let made = simd.reduce_sum_f64s(dot);
            square += made * made;
            let (error, at) = (simd.splat_f64s(made - hole.stored), hole.feature as usize * width);
            let cross = S::as_mut_simd_f64s(&mut self.cross[at..at + width]).0;
            for n in 0..N {
                cross[n] = simd.mul_add_e_f64s(error, v[n], cross[n]);
            }
        }
        square
    }

    #[inline(always)]
    fn any<S: Simd>(self, simd: S) -> f64 {
        let (v, width) = (S::as_simd_f64s(self.v).0, self.v.len());
        let mut square = 0.0;
        for hole in self.cells {
            let made = dot(simd, S::as_simd_f64s(row(self.basis, hole, width)).0, v);
            square += made * made;
            let (error, at) = (simd.splat_f64s(made - hole.stored), hole.feature as usize * width);
            let cross = S::as_mut_simd_f64s(&mut self.cross[at..at + width]).0;
            cross.iter_mut().zip(v).for_each(|(cross, v)| *cross = simd.mul_add_e_f64s(error, *v, *cross));
        }
        square
    }
}

/// The padded row of the basis of a missing cell.
#[inline(always)]
fn row<'b>(basis: &'b [f64], hole: &Hole, width: usize) -> &'b [f64] {
    let at = hole.feature as usize * width;
    &basis[at..at + width]
}

#[inline(always)]
fn registers<S: Simd, const N: usize>(row: &[f64]) -> [S::f64s; N] {
    let row = S::as_simd_f64s(row).0;
    std::array::from_fn(|n| row[n])
}

#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[S::f64s], b: &[S::f64s]) -> f64 {
    let zero = simd.splat_f64s(0.0);
    let sums = a.iter().zip(b).fold(zero, |sums, (a, b)| simd.mul_add_e_f64s(*a, *b, sums));
    simd.reduce_sum_f64s(sums)
}

/// Copies a row of V from its lane, padded with zeros.
#[inline(always)]
fn load(lanes: &[f64], stride: usize, lane: usize, latent: usize, row: &mut Vec<f64>) {
    row.clear();
    row.resize(padded(latent), 0.0);
    for (value, lane) in row[..latent].iter_mut().zip(lanes[lane..].iter().step_by(stride)) {
        *value = *lane;
    }
}

/// `G += factor · u_f u_fᵀ`.
fn add_square(gram: &mut [f64], latent: usize, basis: &[f64], feature: usize, factor: f64) {
    let u = &basis[feature * padded(latent)..][..latent];
    for (row, u_k) in gram.chunks_exact_mut(latent.max(1)).zip(u) {
        let weight = factor * u_k;
        row.iter_mut().zip(u).for_each(|(value, u_l)| *value += weight * u_l);
    }
}
