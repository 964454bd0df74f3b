//! Rows that lack cells.
//!
//! The loss counts the cells that are there. It is majorised by that of rows whose missing cells hold what the model
//! makes of them now, `u_fᵀv_j`: it is nowhere below, and the same where V and U are. So with `x'_f` what stands in the cell,
//!
//! ```text
//! r_j += Σ_{f ∈ h(j)} u_f (u_fᵀv_j − x'_f),      and with the new v_j      C_f += (u_fᵀv_j − x'_f) v_j
//! ```
//!
//! and all else is as if nothing was missing: rows share the Gram matrix of their pattern, and the loss does not rise.
//! Where V is made optimal for the bases, it is so for the cells that are there: such a row has a Gram matrix of its own,
//! `G_j = G − Σ_{f ∈ h(j)} u_f u_fᵀ`.

use super::tile::{Run, Tile};
use super::{Plan, Sweep};
use crate::lens::{CrossSums, Lens, padded};
use crate::source::Block;
use crate::steps::latent::{LANES, Parts, Passes, Solver, Step};

/// What rows that lack cells need, kept from tile to tile.
#[derive(Default)]
pub(super) struct HoleScratch {
    /// The rows of the tile that lack cells.
    pub rows: Vec<HoleRow>,
    /// `r` of one view, in lanes.
    right: Vec<f64>,
    /// A row of V and of r, padded.
    v: Vec<f64>,
    r: Vec<f64>,
    /// `r` of the tile, while another is worked with.
    kept: Vec<f64>,
    gram: Vec<f64>,
    /// A row of V and of r among empty lanes.
    own_v: Vec<f64>,
    own_right: Vec<f64>,
}

/// A row that lacks cells in a view.
#[derive(Clone, Copy)]
pub(super) struct HoleRow {
    lane: usize,
    view: usize,
    /// Instance and row of the view's matrix.
    at: (usize, usize),
}

impl HoleScratch {
    /// Room for `r` of one view.
    pub fn clear_right(&mut self, size: usize) -> &mut [f64] {
        self.right.clear();
        self.right.resize(size, 0.0);
        &mut self.right
    }
}

/// What a row of a Gram matrix may lose to a difference and still have digits: below this share it is added up anew.
const LOST: f64 = 1e-6;

impl Tile {
    /// Takes what stands in missing cells of a view out of its `r`, and adds `r` to that of all views.
    #[inline(always)]
    pub fn correct(&mut self, lens: &Lens, plan: &Plan<'_>, view: usize, block: &Block<'_>) {
        let (stride, width) = (self.stride, padded(self.latent));
        let basis = &plan.hole_bases[view];
        let HoleScratch { rows, right, v, r, .. } = &mut self.holes;
        for (at, lane) in self.members[view].iter() {
            if lens.holes(block, at.1).next().is_none() {
                continue;
            }
            rows.push(HoleRow { lane, view, at });
            r.clear();
            r.resize(width, 0.0);
            if plan.from_zero {
                lens.project_observed(block, at, basis, width, r);
                (0..self.latent).for_each(|k| right[k * stride + lane] = r[k]);
            } else {
                load(&self.v, stride, lane, self.latent, v);
                for f in lens.holes(block, at.1) {
                    let u = &basis[f * width..(f + 1) * width];
                    add(r, dot(u, v) - lens.value(block, at, f), u);
                }
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

    /// Updates rows as they are, before they are made optimal. `r` is that of the cells that are there, and is so again
    /// afterwards.
    #[inline(always)]
    pub fn update_before(
        &mut self,
        sweep: &Sweep<'_>,
        plan: &Plan<'_>,
        passes: Passes,
        blocks: &[Block<'_>],
    ) {
        if self.holes.rows.is_empty() {
            self.update(plan, passes);
            return;
        }
        let (stride, width) = (self.stride, padded(self.latent));
        let HoleScratch { rows, v, r, kept, .. } = &mut self.holes;
        kept.clone_from(&self.right_plus);
        for &HoleRow { lane, view, at } in &*rows {
            r.clear();
            r.resize(width, 0.0);
            load(&self.v, stride, lane, self.latent, v);
            for f in sweep.lenses[view].holes(&blocks[view], at.1) {
                let u = &plan.hole_bases[view][f * width..(f + 1) * width];
                add(r, dot(u, v), u);
            }
            (0..self.latent).for_each(|k| self.right_plus[k * stride + lane] += r[k]);
        }
        self.update(plan, passes);
        std::mem::swap(&mut self.right_plus, &mut self.holes.kept);
    }

    /// Makes the rows that lack cells optimal, from zero: each with its own Gram matrix.
    pub fn settle_rows_with_holes(&mut self, sweep: &Sweep<'_>, plan: &Plan<'_>, blocks: &[Block<'_>]) {
        self.holes.rows.sort_by_key(|row| row.lane);
        let mut rows = std::mem::take(&mut self.holes.rows);
        for own in rows.chunk_by(|a, b| a.lane == b.lane) {
            self.settle_row(sweep, plan, blocks, own);
        }
        rows.clear();
        self.holes.rows = rows;
    }

    /// Makes the row of a lane optimal, given the views in which it lacks cells.
    fn settle_row(&mut self, sweep: &Sweep<'_>, plan: &Plan<'_>, blocks: &[Block<'_>], lacks: &[HoleRow]) {
        let (latent, lane) = (self.latent, lacks[0].lane);
        let Some(run) = self.runs.iter().find(|run| run.lanes().contains(&lane)) else { return };
        let Run { pattern, .. } = *run;
        let HoleScratch { gram, own_v, own_right, .. } = &mut self.holes;
        let whole = plan.grams.of(pattern, &mut self.own_gram).plus;
        gram.clear();
        gram.extend_from_slice(whole);
        for &HoleRow { view, at, .. } in lacks {
            let basis = &plan.hole_bases[view];
            sweep.lenses[view]
                .holes(&blocks[view], at.1)
                .for_each(|f| add_square(gram, latent, basis, f, -1.0));
        }
        let lost = |k: usize| gram[k * latent + k] < LOST * whole[k * latent + k];
        if (0..latent).any(lost) {
            gram.fill(0.0);
            for &view in sweep.patterns.views(pattern) {
                match lacks.iter().find(|row| row.view == view) {
                    None => gram.iter_mut().zip(plan.grams.of_view(view)).for_each(|(sum, own)| *sum += own),
                    Some(HoleRow { at, .. }) => {
                        let basis = &plan.hole_bases[view];
                        sweep.lenses[view]
                            .each_observed(&blocks[view], at.1, |f| add_square(gram, latent, basis, f, 1.0));
                    }
                }
            }
        }
        // The row stands in the first lane; the others are empty.
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

    /// Adds what missing cells contribute to C, filled with what the model makes of them; without a model they
    /// stay as they are.
    #[inline(always)]
    pub fn gather_holes(
        &mut self,
        sweep: &Sweep<'_>,
        plan: Option<&Plan<'_>>,
        blocks: &[Block<'_>],
        sums: &mut [CrossSums],
    ) {
        let (stride, width) = (self.stride, padded(self.latent));
        let v = &mut self.holes.v;
        for (view, lens) in sweep.lenses.iter().enumerate().filter(|(_, lens)| lens.lacks_cells) {
            let (block, sums) = (&blocks[view], &mut sums[view].holes);
            for (at, lane) in self.members[view].iter() {
                let holes = lens.holes(block, at.1);
                if holes.clone().next().is_none() {
                    continue;
                }
                let Some(plan) = plan else {
                    sums.square += holes.map(|f| lens.value(block, at, f).powi(2)).sum::<f64>();
                    continue;
                };
                load(&self.v, stride, lane, self.latent, v);
                for f in holes {
                    let own = f * width..(f + 1) * width;
                    let made = dot(&plan.hole_bases[view][own.clone()], v);
                    sums.square += made * made;
                    add(&mut sums.cross[own], made - lens.value(block, at, f), v);
                }
            }
        }
    }
}

/// Takes a row of V out of its lane, padded with zeros.
#[inline(always)]
fn load(lanes: &[f64], stride: usize, lane: usize, latent: usize, row: &mut Vec<f64>) {
    row.clear();
    row.resize(padded(latent), 0.0);
    for (value, lane) in row[..latent].iter_mut().zip(lanes[lane..].iter().step_by(stride)) {
        *value = *lane;
    }
}

/// `aᵀb` of padded rows.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        (0..LANES).for_each(|i| sums[i] += a[i] * b[i]);
    }
    sums.iter().sum()
}

/// `to += factor · row`, padded rows.
#[inline(always)]
fn add(to: &mut [f64], factor: f64, row: &[f64]) {
    for (to, row) in to.as_chunks_mut::<LANES>().0.iter_mut().zip(row.as_chunks::<LANES>().0) {
        (0..LANES).for_each(|i| to[i] += factor * row[i]);
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
