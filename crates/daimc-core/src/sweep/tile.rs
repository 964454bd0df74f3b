//! A tile: as many instances as are processed together, so that the results of one step are still in cache for the
//! next. The tile size follows from the cache and affects the time, but not the bits of the result.

use std::array::from_fn;
use std::ops::Range;

use super::hole_scratch::HoleScratch;
use super::{StepPlan, Sweep};
use crate::kernel::LANES;
use crate::kernel::gram::Gram;
use crate::scaled_view::{CrossSums, Members, Right, Scratch};
use crate::source::Block;
use crate::steps::latent::{Parts, Passes, Solver, Step};

/// Some instances of a block, one per lane. Those of one presence pattern are adjacent and fill whole registers; lanes
/// without an instance are zero.
pub(super) struct Tile {
    pub(super) latent: usize,
    pub(super) runs: Vec<Run>,
    /// The number of each instance in the block.
    places: Vec<usize>,
    /// The number of lanes.
    pub(super) stride: usize,
    /// `v_jk` is at `k · stride + j`.
    pub(super) v: Vec<f64>,
    pub(super) right_plus: Vec<f64>,
    pub(super) right_minus: Vec<f64>,
    /// The instances that are present in each view.
    pub(super) members: Vec<Members>,
    scratch: Scratch,
    pub(super) own_gram: Vec<f64>,
    pub(super) new: Vec<f64>,
    /// Scratch memory for rows with missing cells.
    pub(super) holes: HoleScratch,
    /// `Σ v vᵀ` over the instances of one pattern, until the next pattern begins.
    gram: Gram,
    gram_pattern: usize,
    /// The row of unused lanes.
    zeros: Vec<f64>,
}

/// Instances with the same presence pattern.
pub(super) struct Run {
    pub pattern: usize,
    /// Their range starts here in `places`.
    first: usize,
    count: usize,
    /// The first lane.
    lane: usize,
}

impl Run {
    /// The number of lanes, including unused ones.
    pub fn lanes(&self) -> Range<usize> {
        self.lane..self.lane + self.count.next_multiple_of(LANES)
    }

    /// Groups of one register of instances: the first in `places`, and the first lane.
    fn groups(&self) -> impl Iterator<Item = (Range<usize>, usize)> {
        let end = self.first + self.count;
        let starts = (self.first..end).step_by(LANES);
        starts.map(move |from| (from..(from + LANES).min(end), self.lane + from - self.first))
    }
}

impl Tile {
    pub fn new(latent: usize, views: usize) -> Self {
        Self {
            latent,
            runs: Vec::new(),
            places: Vec::new(),
            stride: 0,
            v: Vec::new(),
            right_plus: Vec::new(),
            right_minus: Vec::new(),
            members: vec![Members::default(); views],
            scratch: Scratch::default(),
            own_gram: Vec::new(),
            new: Vec::new(),
            holes: HoleScratch::default(),
            gram: Gram::new(latent),
            gram_pattern: 0,
            zeros: vec![0.0; latent],
        }
    }

    /// Assigns lanes to the first instances of a range of the block, in whole groups, and finds their rows. Returns the
    /// number of instances.
    #[inline(always)]
    pub fn fill(
        &mut self,
        sweep: &Sweep<'_>,
        start: usize,
        range: Range<usize>,
        blocks: &[Block<'_>],
    ) -> usize {
        self.runs.clear();
        self.places.clear();
        self.members.iter_mut().for_each(Members::clear);
        let (mut lane, mut in_group) = (0, 0);
        for (number, i) in range.enumerate() {
            let place = sweep.patterns.nth(start, i) - start;
            let pattern = sweep.patterns.of(start + place);
            let same = self.runs.last().is_some_and(|run| run.pattern == pattern);
            in_group = if same && in_group < sweep.group { in_group + 1 } else { 1 };
            if in_group == 1 && number >= sweep.tile {
                break;
            }
            match self.runs.last_mut() {
                Some(run) if same => run.count += 1,
                last => {
                    lane = last.map_or(0, |run| run.lanes().end);
                    self.runs.push(Run { pattern, first: number, count: 1, lane });
                }
            }
            for &view in sweep.patterns.views(pattern) {
                if let Some(row) = blocks[view].index.row(place) {
                    let instance = start + place;
                    self.members[view].push(instance, row, sweep.scaled_views[view].factor(instance), lane);
                }
            }
            self.places.push(place);
            lane += 1;
        }
        self.stride = self.runs.last().map_or(0, |run| run.lanes().end);
        self.places.len()
    }

    /// Loads the rows of V of the instances (stored one after another for the whole block), with the columns multiplied
    /// by `scale`.
    #[inline(always)]
    pub fn load(&mut self, v: &[f64], scale: &[f64]) {
        let (latent, stride) = (self.latent, self.stride);
        self.v.resize(latent * stride, 0.0);
        for (group, lane) in self.runs.iter().flat_map(Run::groups) {
            let places = &self.places[group];
            let rows: [&[f64]; LANES] = from_fn(|i| match places.get(i) {
                Some(place) => &v[place * latent..(place + 1) * latent],
                None => &self.zeros[..latent],
            });
            for k in 0..latent {
                let lanes: [f64; LANES] = from_fn(|i| rows[i][k] * scale[k]);
                self.v[k * stride + lane..][..LANES].copy_from_slice(&lanes);
            }
        }
    }

    /// `r_j = Σ_v w_vj U_vᵀx_vj`, or its two parts.
    #[inline(always)]
    pub fn project(&mut self, sweep: &Sweep<'_>, plan: &StepPlan<'_>, blocks: &[Block<'_>]) {
        let size = self.latent * self.stride;
        self.right_plus.clear();
        self.right_plus.resize(size, 0.0);
        self.right_minus.clear();
        if plan.solver == Solver::Multiplicative {
            self.right_minus.resize(size, 0.0);
        }
        let stride = self.stride;
        self.holes.clear();
        for (view, scaled_view) in sweep.scaled_views.iter().enumerate() {
            let (block, members, operand) = (&blocks[view], &self.members[view], &plan.operands[view]);
            let lacks_cells = !plan.hole_bases[view].is_empty();
            let (plus, minus) = if lacks_cells {
                (self.holes.clear_right(size), &mut [][..])
            } else {
                (&mut self.right_plus[..], &mut self.right_minus[..])
            };
            scaled_view.project(
                block,
                members,
                operand,
                &mut self.scratch,
                &mut Right { plus, minus, stride },
            );
            if lacks_cells {
                self.correct(scaled_view, plan, view, block);
            }
        }
    }

    /// Moves V closer to its optimum.
    #[inline(always)]
    pub fn update(&mut self, plan: &StepPlan<'_>, passes: Passes) {
        for run in &self.runs {
            let step = Step {
                solver: plan.solver,
                passes,
                latent: self.latent,
                gram: plan.grams.of(run.pattern, &mut self.own_gram),
                right: Parts { plus: &self.right_plus, minus: &self.right_minus },
                stride: self.stride,
                lanes: run.lanes(),
            };
            step.run(&mut self.new, &mut self.v);
        }
    }

    /// Sets the rows of V to zero.
    pub fn clear(&mut self) {
        self.v.fill(0.0);
    }

    /// Stores the rows of V.
    #[inline(always)]
    pub fn store(&self, v: &mut [f64]) {
        for Run { first, count, lane, .. } in &self.runs {
            for (place, lane) in self.places[*first..first + count].iter().zip(*lane..) {
                let lanes = self.v[lane..].iter().step_by(self.stride);
                let row = &mut v[place * self.latent..(place + 1) * self.latent];
                row.iter_mut().zip(lanes).for_each(|(value, lane)| *value = *lane);
            }
        }
    }

    /// Adds the rows of V to the column sums, lane by lane.
    #[inline(always)]
    pub fn add_columns(&self, column_sums: &mut [f64]) {
        let sums = column_sums.as_chunks_mut::<LANES>().0;
        for (sum, lanes) in sums.iter_mut().zip(self.v.chunks_exact(self.stride)) {
            for lanes in lanes.as_chunks::<LANES>().0 {
                (0..LANES).for_each(|i| sum[i] += lanes[i]);
            }
        }
    }

    /// Adds the contributions of the instances to S and C.
    #[inline(always)]
    pub fn gather(
        &mut self,
        sweep: &Sweep<'_>,
        blocks: &[Block<'_>],
        sums: &mut [CrossSums],
        grams: &mut [f64],
    ) {
        for run in 0..self.runs.len() {
            let Run { pattern, .. } = self.runs[run];
            if pattern != self.gram_pattern {
                self.finish(sweep, grams);
                self.gram_pattern = pattern;
            }
            self.gram.add(&self.v, self.stride, self.runs[run].lanes());
        }
        for (view, scaled_view) in sweep.scaled_views.iter().enumerate() {
            let (members, scratch) = (&self.members[view], &mut self.scratch);
            scaled_view.gather(&blocks[view], members, &self.v, self.stride, &mut sums[view], scratch);
        }
    }

    /// Adds the Gram matrix of the last pattern to its views.
    pub fn finish(&mut self, sweep: &Sweep<'_>, grams: &mut [f64]) {
        let views = sweep.patterns.views(self.gram_pattern);
        let mut totals = grams.chunks_exact_mut(self.latent * self.latent).enumerate();
        self.gram.flush(totals.by_ref().filter(|(view, _)| views.contains(view)).map(|(_, gram)| gram));
    }
}
