//! The sweep: the only pass over the data in an iteration.
//!
//! For each block of instances with the bases U fixed, it computes `r = Uᵀx`, updates the rows of V, and adds the
//! contributions of the block to `S = Σ w v vᵀ`, `C = Σ w x vᵀ` and the column sums. U and B are solved from these, and
//! the loss is `Σ‖x‖² − 2⟨C, U⟩ + ⟨S, UᵀU⟩`. A distributed fit differs only in which [`Shard`] sweeps which rows; the
//! algorithm is the same.
//!
//! Blocks do not depend on the number of threads, and their statistics are added in a fixed order, so the result is the
//! same to the last bit.
//!
//! Rows are used in place: the kernels take slices of rows, so that masks and shuffled IDs need no copy. Within a
//! block, instances are processed in the order of their presence patterns, so that rows with the same Gram matrix are
//! updated together, one per vector lane.
//!
//! Besides the iterations a fit makes five passes: features (for the scaling), lengths of rows, the start (nearest
//! centres, V and its statistics at once; the clusters of the views are matched on a sample), and two after the
//! iterations: the statistics of the clusters found, and one that updates V, which gives the normalisation, and then
//! solves it to optimality. With logarithms, features are measured twice. Samples (for tails, to compare scalings, to
//! match clusters) cost a pass each only for sources without random access.

mod cpu;
mod grams;
mod hole_scratch;
mod holes;
mod tile;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pulp::{Arch, Simd, WithSimd};

use crate::accelerator::{Accelerator, Load, Resident, Use};
use crate::forest::Forest;
use crate::kernel::LANES;
use crate::linalg::transposed_product;
use crate::machine;
use crate::patterns::Patterns;
use crate::scaled_view::{CrossSums, Operand, ScaledView, Total};
use crate::scan::{Piece, Scan};
use crate::shard::{Shard, VStep};
use crate::source::Block;
use crate::statistics::{Factors, Statistics, Totals};
use crate::steps::latent::{MAX_PASSES, Passes, Solver, TOLERANCE};
use crate::{Error, Matrix, Result, Stop};
pub use cpu::Cpu;
use grams::Grams;
use tile::Tile;

/// The data and all their properties that do not change from sweep to sweep.
pub struct Sweep<'a> {
    /// The rows.
    pub scan: Scan<'a>,
    /// The scaled views.
    pub scaled_views: Arc<[ScaledView]>,
    patterns: Arc<Patterns>,
    latent: usize,
    /// The same rows on an accelerator.
    resident: Option<Arc<dyn Resident<'a> + 'a>>,
    /// Whether the CPU takes over if the accelerator has not enough memory for V.
    optional: bool,
    /// The approximate number of instances of a tile, and the number of a group.
    tile: usize,
    group: usize,
}

/// The stopping criterion when V is solved to optimality.
pub(crate) const OPTIMAL: Passes = Passes { most: MAX_PASSES, tolerance: TOLERANCE };

/// A prepared update of V.
struct StepPlan<'a> {
    solver: Solver,
    /// The update whose result is kept, and an optional one before it, of which only the column sums are used.
    passes: Passes,
    before: Option<Passes>,
    from_zero: bool,
    operands: Vec<Operand>,
    grams: Grams<'a>,
    /// The padded rows of the basis of each view with missing cells; empty for others.
    hole_bases: Vec<Vec<f64>>,
}

/// Bytes of rows that are processed together: they are read by the first product and should still be in the
/// second-level cache for the second, together with the basis and the sums.
fn tile_bytes() -> usize {
    (machine::second_level_cache() / 16 * 3).clamp(96 << 10, 768 << 10)
}

/// Maximum bytes of a group of rows; the same on every computer, because groups affect the bits.
const GROUP_BYTES: usize = 192 << 10;

/// Instances of one presence pattern that stay together for every tile size: rows of V are solved and summed in groups
/// of this size. Tiles consist of whole groups, so that they affect the time but not the bits.
const GROUP: usize = 4 * LANES;

/// Maximum instances of a tile.
const LARGEST_TILE: usize = 128;

impl<'a> Sweep<'a> {
    /// Prepares sweeps over all rows of a scan, for a V with `latent` columns.
    pub fn new(scan: Scan<'a>, scaled_views: Vec<ScaledView>, latent: usize) -> Self {
        let patterns = Patterns::new(scan.source(), scan.blocks().size());
        Self::over(Load::of(scan, scaled_views.into(), patterns.into(), latent))
    }

    /// Creates a sweep over the rows of a load.
    pub fn over(Load { scan, scaled_views, patterns, latent, .. }: Load<'a>) -> Self {
        let bytes: usize =
            scaled_views.iter().map(|scaled_view| scaled_view.bytes_per_row(scan.instances())).sum();
        let tile = (tile_bytes() / bytes.max(1)).clamp(LANES, LARGEST_TILE);
        // Groups of long rows are small, to fit into the cache.
        let dense = scan.schema().views().filter(|view| view.layout().is_dense());
        let longest: usize = dense.map(|view| view.features() * view.layout().bytes()).sum();
        let group = if longest * GROUP > GROUP_BYTES { LANES } else { GROUP };
        Self { scan, scaled_views, patterns, latent, resident: None, optional: false, tile, group }
    }

    /// Passes the rows to an accelerator.
    ///
    /// # Errors
    /// When the accelerator refuses them.
    pub fn hand_to(&mut self, accelerator: &dyn Accelerator, when: Use) -> Result<()> {
        let scan = self.scan.recounted();
        let (scaled_views, patterns, latent) =
            (self.scaled_views.clone(), self.patterns.clone(), self.latent);
        self.resident = Some(accelerator.hold(Load::of(scan, scaled_views, patterns, latent))?);
        self.optional = when == Use::WhereItPays;
        self.scan.count_pass();
        Ok(())
    }

    /// The rows on the accelerator, if there is one.
    pub fn resident(&self) -> Option<&(dyn Resident<'a> + 'a)> {
        self.resident.as_deref()
    }

    /// A shard of all rows, without V: on the accelerator if there is one, else on the CPU.
    ///
    /// # Errors
    /// When the accelerator has not enough memory for V.
    pub fn shard(self: &Arc<Self>) -> Result<Box<dyn Shard + 'a>> {
        match self.resident.as_ref().map(|resident| resident.clone().shard()) {
            Some(Err(Error::Accelerator { .. })) if self.optional => Ok(Box::new(Cpu::of(self.clone()))),
            Some(shard) => shard,
            None => Ok(Box::new(Cpu::of(self.clone()))),
        }
    }

    /// A shard with these rows of V, whose statistics are known.
    ///
    /// # Errors
    /// When the accelerator has not enough memory for V.
    pub fn shard_with(self: &Arc<Self>, v: Matrix, stop: &Stop) -> Result<Box<dyn Shard + 'a>> {
        let mut shard = self.shard()?;
        shard.hold(v, stop)?;
        Ok(shard)
    }

    /// The same rows for a V with another number of columns.
    pub fn with_latent(&self, latent: usize) -> Result<Self> {
        let scan = self.scan.recounted();
        let scaled_view = |(view, scaled_view): (usize, &ScaledView)| {
            ScaledView::new(&scan, view, scaled_view.scaling.clone())
        };
        let scaled_views = self.scaled_views.iter().enumerate().map(scaled_view).collect::<Result<_>>()?;
        Ok(Self::new(scan, scaled_views, latent))
    }

    /// The number of columns of V.
    pub fn latent(&self) -> usize {
        self.latent
    }

    /// One pass over all instances. V is read as `v · scale` (column by column), updated as `step` says, and written back.
    ///
    /// # Errors
    /// When rows cannot be read, and [`Error::Interrupted`]: the rows of V of blocks that were not reached are then
    /// only multiplied by the scale.
    pub fn run(&self, factors: &Factors, step: VStep, v: &mut Matrix, stop: &Stop) -> Result<Statistics> {
        let plan = self.plan(&factors.bases, step);
        self.go(Some(&plan), v, &factors.scale, true, stop, |_, _| Ok(()))
    }

    /// The statistics of the current V.
    pub fn gather(&self, v: &mut Matrix, stop: &Stop) -> Result<Statistics> {
        self.go(None, v, &vec![1.0; self.latent], true, stop, |_, _| Ok(()))
    }

    /// The statistics of a new V: `begin` receives the rows of each block in all views and writes those of V.
    pub fn begin(
        &self,
        v: &mut Matrix,
        begin: impl Fn(&Piece<'_>, &mut [f64]) -> Result<()> + Sync,
    ) -> Result<Statistics> {
        self.go(None, v, &vec![1.0; self.latent], true, self.scan.stop(), begin)
    }

    /// The optimal V for the bases, without statistics.
    pub fn place(&self, bases: &[Matrix]) -> Result<Matrix> {
        let mut v = Matrix::zeros(self.scan.instances(), self.latent);
        let plan = self.plan(bases, VStep::Solve { after: None });
        self.go(Some(&plan), &mut v, &vec![1.0; self.latent], false, self.scan.stop(), |_, _| Ok(()))?;
        if v.is_finite() { Ok(v) } else { Err(Error::OutOfRange) }
    }

    fn go(
        &self,
        plan: Option<&StepPlan<'_>>,
        v: &mut Matrix,
        scale: &[f64],
        gather: bool,
        stop: &Stop,
        begin: impl Fn(&Piece<'_>, &mut [f64]) -> Result<()> + Sync,
    ) -> Result<Statistics> {
        let (latent, blocks) = (self.latent, self.scan.blocks());
        let size = blocks.size();
        let changed: Vec<AtomicBool> =
            (0..self.scan.instances().div_ceil(size)).map(|_| AtomicBool::new(false)).collect();
        let mut leaf = Leaf::new(&self.scaled_views, latent, gather);
        let mut forest = Forest::new(blocks.leaves());
        let outcome = self.scan.pass(
            0..self.scaled_views.len(),
            v.values_mut().chunks_mut(size * latent),
            || Share::new(&self.scaled_views, latent, gather),
            |piece, v, share| {
                stop.check()?;
                begin(&piece, v)?;
                self.work(&piece, v, scale, plan, gather, share);
                changed[piece.instances.start / size].store(plan.is_some(), Ordering::Relaxed);
                Ok(())
            },
            |start, share| {
                if gather {
                    leaf.absorb(share);
                    if let Some(number) = blocks.ends_leaf(start) {
                        forest.plant(0, number, leaf.take(&self.scaled_views));
                    }
                }
            },
        );
        if matches!(outcome, Err(Error::Interrupted)) {
            let rest = v.values_mut().chunks_mut(size * latent).zip(&changed);
            for (rows, _) in rest.filter(|(_, changed)| plan.is_some() && !changed.load(Ordering::Relaxed)) {
                let rows = rows.chunks_exact_mut(latent.max(1));
                rows.for_each(|row| row.iter_mut().zip(scale).for_each(|(value, factor)| *value *= factor));
            }
        }
        outcome?;
        Ok(Statistics(forest))
    }

    /// `Σ_j w_j ‖x_j‖²` of each view.
    pub fn sums_of_squares(&self) -> Vec<f64> {
        self.scaled_views.iter().map(|scaled_view| scaled_view.sum_squares).collect()
    }

    fn plan(&self, bases: &[Matrix], step: VStep) -> StepPlan<'_> {
        let at_most = |most: usize| Passes { most, tolerance: 0.0 };
        let (solver, passes, before, from_zero) = match step {
            VStep::Update { solver, passes } => (solver, at_most(passes), None, false),
            VStep::Solve { after } => (Solver::Coordinate, OPTIMAL, after.map(at_most), true),
        };
        let operands = self
            .scaled_views
            .iter()
            .zip(bases)
            .map(|(scaled_view, basis)| scaled_view.operand(basis))
            .collect();
        let grams = bases.iter().map(|basis| transposed_product(basis, basis)).collect();
        let grams = Grams::new(&self.patterns, grams, solver);
        let hole_bases = self
            .scaled_views
            .iter()
            .zip(bases)
            .map(|(scaled_view, basis)| scaled_view.hole_basis(basis))
            .collect();
        StepPlan { solver, passes, before, from_zero, operands, grams, hole_bases }
    }

    /// Processes a block of instances, whose rows of V are `v`.
    fn work(
        &self,
        piece: &Piece<'_>,
        v: &mut [f64],
        scale: &[f64],
        plan: Option<&StepPlan<'_>>,
        gather: bool,
        share: &mut Share,
    ) {
        let (start, blocks) = (piece.instances.start, piece.blocks);
        let Share { sums, grams, column_sums, tile } = share;
        let gather = gather.then_some((&mut sums[..], &mut grams[..], &mut column_sums[..]));
        Arch::new().dispatch(Work { sweep: self, start, blocks, v, scale, plan, gather, tile });
    }
}

/// Sums, Gram matrices and column sums, to which a block adds.
type Gathered<'a> = (&'a mut [CrossSums], &'a mut [f64], &'a mut [f64]);

/// The work for one block, compiled as a whole for the vector instructions of the CPU.
struct Work<'a, 's> {
    sweep: &'a Sweep<'s>,
    start: usize,
    blocks: &'a [Block<'a>],
    v: &'a mut [f64],
    scale: &'a [f64],
    plan: Option<&'a StepPlan<'a>>,
    gather: Option<Gathered<'a>>,
    tile: &'a mut Tile,
}

impl WithSimd for Work<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sweep, start, blocks, v, scale, plan, mut gather, tile } = self;
        let count = v.len() / sweep.latent;
        let mut from = 0;
        while from < count {
            from += tile.fill(sweep, start, from..count, blocks);
            tile.load(v, scale);
            let mut summed = false;
            if let Some(plan) = plan {
                tile.project(sweep, plan, blocks);
                if let (Some(before), Some((_, _, column_sums))) = (plan.before, &mut gather) {
                    tile.update_before(plan, before);
                    tile.add_columns(column_sums);
                    summed = true;
                }
                if plan.from_zero {
                    tile.clear();
                }
                tile.update(plan, plan.passes);
                if plan.from_zero {
                    tile.solve_rows_with_holes(sweep, plan, blocks);
                }
                tile.store(v);
            }
            if let Some((sums, grams, column_sums)) = &mut gather {
                if !summed {
                    tile.add_columns(column_sums);
                }
                tile.gather(sweep, blocks, sums, grams);
                tile.gather_holes(sweep, plan, blocks, sums);
            }
        }
        if let Some((_, grams, _)) = gather {
            tile.finish(sweep, grams);
        }
    }
}

/// `total += part`, and clears the part.
fn move_into(total: &mut [f64], part: &mut [f64]) {
    for (total, part) in total.iter_mut().zip(part) {
        *total += std::mem::take(part);
    }
}

/// The contribution of one block, with scratch memory.
struct Share {
    sums: Vec<CrossSums>,
    /// K × K for each view, one after the other.
    grams: Vec<f64>,
    /// The sum of each column of V, lane by lane.
    column_sums: Vec<f64>,
    tile: Tile,
}

impl Share {
    fn new(scaled_views: &[ScaledView], latent: usize, gather: bool) -> Self {
        let gathered = if gather { scaled_views } else { &[] };
        Self {
            sums: gathered.iter().map(|scaled_view| scaled_view.sums(latent)).collect(),
            grams: vec![0.0; scaled_views.len() * latent * latent],
            column_sums: vec![0.0; latent * LANES],
            tile: Tile::new(latent, scaled_views.len()),
        }
    }
}

/// The contribution of the blocks of a leaf.
struct Leaf {
    totals: Vec<Total>,
    grams: Vec<Matrix>,
    column_sums: Vec<f64>,
}

impl Leaf {
    fn new(scaled_views: &[ScaledView], latent: usize, gather: bool) -> Self {
        let gathered = if gather { scaled_views } else { &[] };
        Self {
            totals: gathered.iter().map(|scaled_view| Total::new(scaled_view, latent)).collect(),
            grams: vec![Matrix::zeros(latent, latent); gathered.len()],
            column_sums: vec![0.0; latent],
        }
    }

    fn absorb(&mut self, share: &mut Share) {
        for (total, sums) in self.totals.iter_mut().zip(&mut share.sums) {
            total.absorb(sums);
        }
        let latent = self.column_sums.len();
        for (total, gram) in self.grams.iter_mut().zip(share.grams.chunks_exact_mut((latent * latent).max(1)))
        {
            move_into(total.values_mut(), gram);
        }
        let lanes = share.column_sums.as_chunks_mut::<LANES>().0;
        for (total, lanes) in self.column_sums.iter_mut().zip(lanes) {
            *total += std::mem::take(lanes).iter().sum::<f64>();
        }
    }

    /// Returns the sums and resets them.
    fn take(&mut self, scaled_views: &[ScaledView]) -> Totals {
        let latent = self.column_sums.len();
        let full = std::mem::replace(self, Self::new(scaled_views, latent, true));
        let finished =
            full.totals.into_iter().zip(scaled_views).map(|(total, scaled_view)| total.finish(scaled_view));
        let (cross, holes) = finished.unzip();
        Totals { gram: full.grams, cross, column_sums: full.column_sums, holes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Views;
    use crate::scaling::{Scale, Scaling};
    use crate::simulate;
    use crate::synthetic::Synthetic;

    #[test]
    fn the_size_of_a_tile_changes_no_bit() {
        let (n, latent) = (9000, 7);
        let data = Synthetic::new(n, latent).noise(1.0).seed(3);
        let present = simulate::missing(n, &[0.3, 0.4, 0.2], 5).unwrap();
        let views = Views::new(vec![
            data.dense::<f32>("single", 33).unwrap().mask(&present[0]).unwrap(),
            data.dense::<f64>("double", 20).unwrap().mask(&present[1]).unwrap(),
            data.sparse::<f64>("sparse", 60, 0.2).unwrap().mask(&present[2]).unwrap(),
        ])
        .unwrap();
        for scale in [Scale::Unit, Scale::MinMaxUnit] {
            for solver in [Solver::Coordinate, Solver::Multiplicative] {
                let run = |tile: usize| {
                    let scan = Scan::new(&views, &Stop::default());
                    let scaled_view =
                        |view| ScaledView::fit(&scan, view, Scaling::fit(&scan, view, scale)?, true);
                    let scaled_views = (0..3).map(scaled_view).collect::<Result<Vec<_>>>().unwrap();
                    let mut sweep = Sweep::new(scan, scaled_views, latent);
                    sweep.tile = tile;
                    let mut v = Matrix::from_fn(n, latent, |i, k| 0.1 + ((i * 7 + k * 3) % 11) as f64);
                    let bases: Vec<Matrix> = [33, 20, 60]
                        .map(|d| {
                            Matrix::from_fn(d, latent, |f, k| ((f * 5 + k * 11) % 13) as f64 / 6.0 - 0.8)
                        })
                        .into();
                    let (factors, stop) = (Factors { bases, scale: vec![0.7; latent] }, Stop::new());
                    let update = VStep::Update { solver, passes: 2 };
                    let first = sweep.run(&factors, update, &mut v, &stop).unwrap();
                    let solve = VStep::Solve { after: Some(2) };
                    let second = sweep.run(&factors, solve, &mut v, &stop).unwrap();
                    let bits: Vec<u64> = v.values().iter().map(|value| value.to_bits()).collect();
                    (bits, first, second)
                };
                let expected = run(128);
                for tile in [8, 40, 64, 512] {
                    assert!(run(tile) == expected, "{scale}, {solver}, {tile}");
                }
            }
        }
    }
}
