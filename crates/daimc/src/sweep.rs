//! The sweep: the one place where data are touched.
//!
//! For each block of instances it reads the rows, updates their part of V with the bases fixed, and adds what
//! the block contributes to the statistics. Blocks are the same for any number of threads and their statistics
//! are added in order, so the result is the same to the last bit.

mod tile;

use pulp::{Arch, Simd, WithSimd};

use crate::lens::{Lens, Operand, Sums, Total};
use crate::linalg::transposed_product;
use crate::parallel::{block_size, ordered};
use crate::patterns::{Grams, Patterns};
use crate::source::{Block, Buffer, Rows, Source};
use crate::steps::latent::{LANES, Passes, Solver};
use crate::{Matrix, Result};
use tile::Tile;

/// What a sweep gathers. Statistics of disjoint sets of rows add up.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// `S_v = Σ_j w_vj v_j v_jᵀ`, K × K, for each view.
    pub gram: Vec<Matrix>,
    /// `C_v = Σ_j w_vj x_vj v_jᵀ`, d × K, for each view.
    pub cross: Vec<Matrix>,
    /// `Σ_j v_jk` for each k.
    pub column_sums: Vec<f64>,
}

/// Everything about the data that does not change from sweep to sweep.
pub(crate) struct Sweep<'a> {
    source: &'a dyn Source,
    lenses: &'a [Lens],
    patterns: &'a Patterns,
    latent: usize,
    block: usize,
    tile: usize,
}

/// How V is to be updated.
pub(crate) struct Update<'a> {
    pub bases: &'a [Matrix],
    pub solver: Solver,
    pub passes: Passes,
}

/// An update, prepared.
struct Plan<'a> {
    solver: Solver,
    passes: Passes,
    operands: Vec<Operand>,
    grams: Grams<'a>,
}

/// Bytes of rows that are worked on together: they are read by the first product and should still be in the
/// second-level cache for the second.
const TILE_BYTES: usize = 192 << 10;

/// Instances that are worked on together, at most.
const LARGEST_TILE: usize = 128;

impl<'a> Sweep<'a> {
    pub fn new(source: &'a dyn Source, lenses: &'a [Lens], patterns: &'a Patterns, latent: usize) -> Self {
        let bytes: usize = lenses.iter().map(|lens| lens.bytes_per_row(source.instances())).sum();
        let tile = (TILE_BYTES / bytes.max(1)).clamp(LANES, LARGEST_TILE) / LANES * LANES;
        Self { source, lenses, patterns, latent, block: block_size(source.instances()), tile }
    }

    /// Goes over all instances once. V is read as `v · scale` (column by column), updated if `update` says how,
    /// and written back; with `gather` its statistics are returned, without they are empty.
    pub fn run(
        &self,
        update: Option<&Update<'_>>,
        v: &mut Matrix,
        scale: &[f64],
        gather: bool,
    ) -> Result<Statistics> {
        let (views, latent) = (self.lenses.len(), self.latent);
        let mut buffers: Vec<Buffer> = (0..views).map(|_| Buffer::default()).collect();
        let first = 0..self.source.instances().min(1);
        let mut kinds = Vec::with_capacity(views);
        for (view, buffer) in buffers.iter_mut().enumerate() {
            kinds.push(self.source.block(view, first.clone(), buffer)?.rows);
        }
        let plan = update.map(|update| self.plan(update, &kinds));
        let kinds = &kinds;
        let of_all = || self.lenses.iter().zip(kinds);
        let mut totals: Vec<Total> = Vec::new();
        let mut grams = Vec::new();
        if gather {
            totals.extend(of_all().map(|(lens, rows)| Total::new(rows, lens.features(), latent)));
            grams.resize(views, Matrix::zeros(latent, latent));
        }
        let mut column_sums = vec![0.0; latent];
        ordered(
            v.values_mut().chunks_mut(self.block * latent).enumerate(),
            || Part::new(latent, gather, of_all()),
            |(block, v), part| self.work(block * self.block, v, scale, plan.as_ref(), gather, part),
            |part| {
                for (total, sums) in totals.iter_mut().zip(&mut part.sums) {
                    total.absorb(sums);
                }
                for (total, gram) in grams.iter_mut().zip(part.grams.chunks_exact_mut(latent * latent)) {
                    move_into(total.values_mut(), gram);
                }
                move_into(&mut column_sums, &mut part.column_sums);
            },
        )?;
        let cross = totals.into_iter().zip(self.lenses).map(|(total, lens)| total.finish(lens)).collect();
        Ok(Statistics { gram: grams, cross, column_sums })
    }

    /// `Σ_j w_j ‖x_j‖²` of a view.
    pub fn sum_squares(&self, view: usize) -> f64 {
        self.lenses[view].sum_squares
    }

    fn plan(&self, update: &Update<'_>, kinds: &[Rows<'_>]) -> Plan<'a> {
        let bases = || update.bases.iter();
        let operand = |((lens, rows), basis): ((&Lens, &Rows<'_>), &Matrix)| lens.operand(rows, basis);
        let view_grams = bases().map(|basis| transposed_product(basis, basis)).collect();
        Plan {
            solver: update.solver,
            passes: update.passes,
            operands: self.lenses.iter().zip(kinds).zip(bases()).map(operand).collect(),
            grams: Grams::new(self.patterns, view_grams, update.solver),
        }
    }

    /// The block of instances from `start` on, whose rows of V are `v`.
    fn work(
        &self,
        start: usize,
        v: &mut [f64],
        scale: &[f64],
        plan: Option<&Plan<'_>>,
        gather: bool,
        part: &mut Part,
    ) -> Result<()> {
        let count = v.len() / self.latent;
        let Part { sums, grams, column_sums, buffers, tile } = part;
        let mut blocks = Vec::with_capacity(buffers.len());
        for (view, buffer) in buffers.iter_mut().enumerate() {
            blocks.push(self.source.block(view, start..start + count, buffer)?);
        }
        let gather = gather.then_some((&mut sums[..], &mut grams[..], &mut column_sums[..]));
        Arch::new().dispatch(Work { sweep: self, start, blocks: &blocks, v, scale, plan, gather, tile });
        Ok(())
    }
}

/// Sums, Gram matrices and column sums to which a block adds.
type Gathered<'a> = (&'a mut [Sums], &'a mut [f64], &'a mut [f64]);

/// What is to be done for one block, compiled for the machine's vector instructions as a whole.
struct Work<'a> {
    sweep: &'a Sweep<'a>,
    start: usize,
    blocks: &'a [Block<'a>],
    v: &'a mut [f64],
    scale: &'a [f64],
    plan: Option<&'a Plan<'a>>,
    gather: Option<Gathered<'a>>,
    tile: &'a mut Tile,
}

impl WithSimd for Work<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sweep, start, blocks, v, scale, plan, mut gather, tile } = self;
        let count = v.len() / sweep.latent;
        for from in (0..count).step_by(sweep.tile) {
            tile.fill(sweep, start, from..(from + sweep.tile).min(count), blocks);
            tile.load(v, scale);
            if let Some(plan) = plan {
                tile.project(sweep, plan, blocks);
                tile.update(plan);
                tile.store(v);
            }
            if let Some((sums, grams, column_sums)) = &mut gather {
                tile.gather(sweep, blocks, sums, grams, column_sums);
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

/// What one block contributes, and the room to compute it in.
struct Part {
    sums: Vec<Sums>,
    /// K × K for each view, one after the other.
    grams: Vec<f64>,
    column_sums: Vec<f64>,
    buffers: Vec<Buffer>,
    tile: Tile,
}

impl Part {
    fn new<'b>(
        latent: usize,
        gather: bool,
        views: impl ExactSizeIterator<Item = (&'b Lens, &'b Rows<'b>)>,
    ) -> Self {
        let count = views.len();
        let sums =
            if gather { views.map(|(lens, rows)| lens.sums(rows, latent)).collect() } else { Vec::new() };
        Self {
            sums,
            grams: vec![0.0; count * latent * latent],
            column_sums: vec![0.0; latent],
            buffers: (0..count).map(|_| Buffer::default()).collect(),
            tile: Tile::new(latent, count),
        }
    }
}
