//! The sweep: the one place where data are touched.
//!
//! For each block of instances it reads the rows, updates their part of V with the bases fixed, and adds what
//! the block contributes to the statistics. Blocks are the same for any number of threads and their statistics
//! are added in order, so the result is the same to the last bit.

use pulp::{Arch, Simd, WithSimd};

use crate::kernel::aligned::Aligned;
use crate::kernel::dense;
use crate::lens::{Lens, Operand, Scratch, Sums, Total};
use crate::linalg::transposed_product;
use crate::parallel::{block_size, ordered};
use crate::patterns::{Grams, Patterns};
use crate::source::{Block, Buffer, Rows, Source};
use crate::steps::latent::{self, Parts, Passes, Solver};
use crate::{Matrix, Result};

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
const TILE_BYTES: usize = 256 << 10;

impl<'a> Sweep<'a> {
    pub fn new(source: &'a dyn Source, lenses: &'a [Lens], patterns: &'a Patterns, latent: usize) -> Self {
        let features: usize = lenses.iter().map(Lens::features).sum();
        // A whole number of the kernels' groups of rows.
        let tile = (TILE_BYTES / (8 * features.max(1))).clamp(20, 140) / 20 * 20;
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
            tile.load(sweep, start, from..(from + sweep.tile).min(count), blocks, v, scale);
            if let Some(plan) = plan {
                tile.project(sweep, plan, blocks);
                tile.update(sweep, plan);
            }
            tile.store(sweep.latent, start, v);
            if let Some((sums, grams, column_sums)) = &mut gather {
                tile.gather(sweep, blocks, sums, grams, column_sums);
            }
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
            tile: Tile { members: vec![Members::default(); count], ..Tile::default() },
        }
    }
}

/// Some instances of a block, those of one presence pattern side by side.
#[derive(Default)]
struct Tile {
    instances: Vec<usize>,
    /// Rows of V, one per instance.
    v: Vec<f64>,
    right_plus: Vec<f64>,
    right_minus: Vec<f64>,
    /// The instances that each view shows.
    members: Vec<Members>,
    gram: Vec<f64>,
    own_gram: Vec<f64>,
    lanes: Option<Aligned<f64>>,
    scratch: Scratch,
}

#[derive(Clone, Default)]
struct Members {
    /// Their places in the tile.
    places: Vec<usize>,
    /// Instance and row of the view's matrix.
    rows: Vec<(usize, usize)>,
}

impl Tile {
    #[inline(always)]
    fn load(
        &mut self,
        sweep: &Sweep<'_>,
        start: usize,
        range: std::ops::Range<usize>,
        blocks: &[Block<'_>],
        v: &[f64],
        scale: &[f64],
    ) {
        let latent = sweep.latent;
        self.instances.clear();
        self.instances.extend(range.map(|i| sweep.patterns.nth(start, i)));
        self.v.clear();
        for &instance in &self.instances {
            let row = &v[(instance - start) * latent..][..latent];
            self.v.extend(row.iter().zip(scale).map(|(v, scale)| v * scale));
        }
        for (members, block) in self.members.iter_mut().zip(blocks) {
            members.places.clear();
            members.rows.clear();
            for (place, &instance) in self.instances.iter().enumerate() {
                if let Some(row) = block.index.row(instance - start) {
                    members.places.push(place);
                    members.rows.push((instance, row));
                }
            }
        }
    }

    /// `r_j = Σ_v w_vj U_vᵀx_vj`, or its parts.
    #[inline(always)]
    fn project(&mut self, sweep: &Sweep<'_>, plan: &Plan<'_>, blocks: &[Block<'_>]) {
        let latent = sweep.latent;
        let size = self.instances.len() * latent;
        self.right_plus.clear();
        self.right_plus.resize(size, 0.0);
        self.right_minus.clear();
        if plan.solver == Solver::Multiplicative {
            self.right_minus.resize(size, 0.0);
        }
        for (view, lens) in sweep.lenses.iter().enumerate() {
            let Members { places, rows } = &self.members[view];
            let (plus, minus) = (&mut self.right_plus, &mut self.right_minus);
            let operand = &plan.operands[view];
            lens.project(&blocks[view], rows, operand, &mut self.scratch, |i, products| {
                let at = places[i] * latent..(places[i] + 1) * latent;
                let plus = plus[at.clone()].iter_mut().zip(&*products);
                match plan.solver {
                    Solver::Coordinate => plus.for_each(|(plus, product)| *plus += product),
                    Solver::Multiplicative => {
                        plus.for_each(|(plus, product)| *plus += product.max(0.0));
                        let minus = minus[at].iter_mut().zip(&*products);
                        minus.for_each(|(minus, product)| *minus += (-product).max(0.0));
                    }
                }
            });
        }
    }

    #[inline(always)]
    fn update(&mut self, sweep: &Sweep<'_>, plan: &Plan<'_>) {
        let latent = sweep.latent;
        for (pattern, run) in runs(&self.instances, sweep.patterns) {
            let at = run.start * latent..run.end * latent;
            let gram = plan.grams.of(pattern, &mut self.own_gram);
            let minus = if self.right_minus.is_empty() { &[] } else { &self.right_minus[at.clone()] };
            let right = Parts { plus: &self.right_plus[at.clone()], minus };
            let v = &mut self.v[at];
            latent::update(plan.solver, gram, right, latent, plan.passes, &mut self.lanes, v);
        }
    }

    #[inline(always)]
    fn store(&self, latent: usize, start: usize, v: &mut [f64]) {
        for (&instance, row) in self.instances.iter().zip(self.v.chunks_exact(latent)) {
            v[(instance - start) * latent..][..latent].copy_from_slice(row);
        }
    }

    #[inline(always)]
    fn gather(
        &mut self,
        sweep: &Sweep<'_>,
        blocks: &[Block<'_>],
        sums: &mut [Sums],
        grams: &mut [f64],
        column_sums: &mut [f64],
    ) {
        let latent = sweep.latent;
        for row in self.v.chunks_exact(latent) {
            for (sum, value) in column_sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
        for (pattern, run) in runs(&self.instances, sweep.patterns) {
            add_gram(&self.v[run.start * latent..run.end * latent], latent, &mut self.gram);
            for &view in sweep.patterns.views(pattern) {
                let total = &mut grams[view * latent * latent..][..latent * latent];
                for (total, value) in total.iter_mut().zip(&self.gram) {
                    *total += value;
                }
            }
        }
        for (view, lens) in sweep.lenses.iter().enumerate() {
            let Members { places, rows } = &self.members[view];
            lens.gather(&blocks[view], rows, places, &self.v, &mut sums[view], &mut self.scratch);
        }
    }
}

/// `gram = Σ_j v_j v_jᵀ` over some rows of V.
fn add_gram(v: &[f64], latent: usize, gram: &mut Vec<f64>) {
    gram.clear();
    if latent < dense::chunk::<f64>() {
        gram.resize(latent * latent, 0.0);
        for row in v.chunks_exact(latent) {
            for (gram, a) in gram.chunks_exact_mut(latent).zip(row) {
                gram.iter_mut().zip(row).for_each(|(gram, b)| *gram += a * b);
            }
        }
        return;
    }
    let rows: Vec<&[f64]> = v.chunks_exact(latent).collect();
    let length = dense::padded::<f64>(latent);
    gram.resize(latent * length, 0.0);
    dense::gather(&rows, v, latent, gram);
    // From chunks to K × K, in place: an entry never moves towards the end.
    for k in 0..latent {
        for l in 0..latent {
            gram[k * latent + l] = gram[k * length + dense::position::<f64>(latent, l)];
        }
    }
    gram.truncate(latent * latent);
}

/// Runs of instances with the same presence pattern: the pattern and the places.
fn runs<'b>(
    instances: &'b [usize],
    patterns: &'b Patterns,
) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> + 'b {
    let mut start = 0;
    std::iter::from_fn(move || {
        let pattern = patterns.of(*instances.get(start)?);
        let length = instances[start..].iter().take_while(|&&i| patterns.of(i) == pattern).count();
        let run = start..start + length;
        start = run.end;
        Some((pattern, run))
    })
}
