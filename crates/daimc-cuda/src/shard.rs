//! Sweeps over a partition of the instances on a GPU.

use std::ops::Deref;
use std::sync::Arc;

use daimc::accelerator::v_step::{MAX_PASSES, SMALLEST_DIAGONAL, TOLERANCE, relaxation};
use daimc::accelerator::{Load, refused};
use daimc::{Error, Factors, Matrix, Result, Solver, Stop, Totals, VStep};

use crate::descent::{gram_of, grams};
use crate::fused::{Cross, Fused};
use crate::gpu::{Argument, Gpu, Memory, PinnedBuffer, maybe};
use crate::holes::Holes;
use crate::latent::Latent;
use crate::rows::{PackedForms, ViewRows};
use crate::{Precision, kernels, sums, update};

/// The rows of a partition in all views on a GPU. Without its rows, only what the shard needs between sweeps.
pub struct ResidentRows {
    gpu: SyncOnDrop,
    pub views: Vec<ViewRows>,
    /// The presence pattern of each instance, if there are several.
    patterns: Option<Memory<i32>>,
    /// The views of each pattern.
    pattern_views: Vec<Vec<usize>>,
    holes: Option<Holes>,
    fused: Option<Fused>,
    instances: usize,
    latent: usize,
}

/// Waits for the GPU when dropped, before the fields that follow it: rows may belong to another stream, which would free them at once.
struct SyncOnDrop(Arc<Gpu>);

impl Drop for SyncOnDrop {
    fn drop(&mut self) {
        // Errors are reported by the calls that use the GPU.
        let _ = self.0.wait();
    }
}

impl Deref for SyncOnDrop {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.0
    }
}

impl ResidentRows {
    /// Copies the rows to the GPU. `loader` is the same GPU with the same stream or another.
    pub fn new(gpu: &Arc<Gpu>, loader: &Gpu, load: &Load<'_>, precision: Precision) -> Result<Self> {
        let views: Vec<ViewRows> = (0..load.schema().len())
            .map(|view| ViewRows::new(loader, load, view, precision))
            .collect::<Result<_>>()?;
        let holes = Holes::new(loader, load)?;
        // The choice depends on the view and not on the partition, so that every partition makes the same one.
        let with_holes = (0..views.len()).any(|view| load.view(view).lacks_cells());
        let fused = if with_holes { None } else { Fused::new(loader, load, &views, precision)? };
        let rows = Self { views, holes, fused, ..Self::without_rows(gpu, loader, load)? };
        loader.wait()?;
        Ok(rows)
    }

    /// A partition whose rows are not on the GPU.
    pub fn without_rows(gpu: &Arc<Gpu>, loader: &Gpu, load: &Load<'_>) -> Result<Self> {
        let (instances, latent) = (load.instances(), load.latent());
        let pattern_views: Vec<Vec<usize>> = load.patterns().map(<[usize]>::to_vec).collect();
        let patterns = if pattern_views.len() > 1 {
            let all: Vec<i32> = (0..instances).map(|i| load.pattern(i) as i32).collect();
            Some(loader.copy(&all)?)
        } else {
            None
        };
        loader.wait()?;
        let (views, holes, fused) = (Vec::new(), None, None);
        Ok(Self {
            gpu: SyncOnDrop(gpu.clone()),
            views,
            patterns,
            pattern_views,
            holes,
            fused,
            instances,
            latent,
        })
    }

    /// Whether the V step stays within the range of single precision.
    fn fits_single(&self, view_grams: &[Vec<f64>]) -> bool {
        let fits = |value: f64| value < SMALLEST_DIAGONAL || (1e-30..1e30).contains(&value);
        self.pattern_views.iter().all(|views| {
            let gram = gram_of(views, view_grams, self.latent);
            (0..self.latent).all(|k| fits(gram(k, k)))
        })
    }

    /// `G = Σ_v U_vᵀU_v` and the steps of each pattern, in the layout of `kernels/latent.cu`.
    fn grams(&self, of_views: &[Vec<f64>], relaxation: f64) -> Vec<f64> {
        let (lanes, entries) = kernels::latent_shape(self.latent);
        let (size, k) = (lanes * entries, self.latent);
        let mut out = vec![0.0; self.pattern_views.len() * (size * size + size)];
        for (views, out) in self.pattern_views.iter().zip(out.chunks_exact_mut(size * size + size)) {
            let (matrix, steps) = out.split_at_mut(size * size);
            let gram = gram_of(views, of_views, k);
            for row in 0..k {
                for column in 0..k {
                    // Number e of thread l is entry e lanes + l; the numbers of a thread are stored in groups of four.
                    let (entry, thread) = (column / lanes, column % lanes);
                    let at = row * size + (entry / 4 * lanes + thread) * 4 + entry % 4;
                    matrix[at] = gram(row, column);
                    if row == column && matrix[at] >= SMALLEST_DIAGONAL {
                        steps[row] = relaxation / matrix[at];
                    }
                }
            }
        }
        out
    }
}

/// V of a partition on a GPU.
pub struct GpuShard {
    rows: Arc<ResidentRows>,
    v: Memory<f64>,
    /// `r` of each instance.
    right: Memory<f64>,
    /// Buffers of the statistics, on the GPU and on the host, after the first pass.
    sums: Option<(Memory<f64>, PinnedBuffer<f64>)>,
    begun: bool,
}

impl GpuShard {
    /// A shard whose V is not set yet.
    pub fn new(rows: Arc<ResidentRows>) -> Result<Self> {
        let size = rows.instances * rows.latent;
        let (v, right) = (rows.gpu.zeros(size)?, rows.gpu.zeros(size)?);
        Ok(Self { rows, v, right, sums: None, begun: false })
    }

    /// Replaces the rows by those of the same instances, or adds or removes them.
    pub fn set_rows(&mut self, rows: Arc<ResidentRows>) {
        self.rows = rows;
    }

    fn gpu(&self) -> &Gpu {
        &self.rows.gpu
    }

    /// Sets V, one row per instance.
    pub fn hold(&mut self, v: &[f64]) -> Result<()> {
        self.rows.gpu.write(v, &mut self.v)?;
        self.begun = true;
        Ok(())
    }

    /// Sets V and returns its statistics.
    pub fn start(&mut self, v: &[f64], stop: &Stop) -> Result<Totals> {
        self.hold(v)?;
        stop.check()?;
        self.statistics(KnownSums::default())
    }

    /// Copies V to the host.
    pub fn latent(&self, v: &mut [f64]) {
        // NaN marks a V that could not be read; the fit reports it.
        if self.gpu().read_into(&self.v, v).is_err() {
            v.fill(f64::NAN);
        }
    }

    /// Runs the V step in double precision, from V times a scale or from zero, and writes the result to `to`.
    fn step(
        &self,
        from: Option<&Memory<f64>>,
        scale: &[f64],
        view_grams: &[Vec<f64>],
        options: StepOptions,
        to: &Memory<f64>,
    ) -> Result<()> {
        let (rows, gpu) = (&*self.rows, self.gpu());
        let (lanes, entries) = kernels::latent_shape(rows.latent);
        let (scale, grams) = (gpu.copy(scale)?, gpu.copy(&rows.grams(view_grams, options.relaxation))?);
        let per_block = 128 / lanes;
        let shared = per_block * (rows.latent + 1) * 16;
        let kernel = gpu.kernel(&format!("latent_{lanes}_{entries}"), "latent_step", shared)?;
        let arguments = [
            maybe(from),
            scale.at(),
            self.right.at(),
            grams.at(),
            maybe(rows.patterns.as_ref()),
            Argument::long(rows.instances),
            Argument::int(rows.latent),
            Argument::int(options.passes),
            Argument::Double(options.tolerance),
            to.at(),
        ];
        gpu.launch(&kernel, (rows.instances.div_ceil(per_block), 1, 1), (128, 1), &arguments)
    }

    /// Applies the scale of `factors` to V, without an update.
    pub fn rescale(&self, factors: &Factors) -> Result<()> {
        self.step(Some(&self.v), &factors.scale, &grams(&factors.bases), StepOptions::plain(0), &self.v)
    }

    /// Runs passes of the V step from V times a scale and writes the result to `to`. Returns the packed forms of V that this produced.
    fn update(
        &self,
        (scale, passes): (&[f64], usize),
        view_grams: &[Vec<f64>],
        single: bool,
        to: &Memory<f64>,
    ) -> Result<PackedForms> {
        let rows = &*self.rows;
        if !single {
            self.step(Some(&self.v), scale, view_grams, StepOptions::plain(passes), to)?;
            return Ok(PackedForms::default());
        }
        let patterns = (rows.patterns.as_ref(), &rows.pattern_views[..]);
        let parts = rows.views.iter().find_map(ViewRows::parts);
        let v = (&self.current(), to);
        let f32 = update::update(self.gpu(), v, &self.right, patterns, view_grams, (scale, passes), parts)?;
        Ok(PackedForms { f32, ..PackedForms::default() })
    }

    /// The current V.
    fn current(&self) -> Latent<'_> {
        Latent { v: &self.v, instances: self.rows.instances, columns: self.rows.latent }
    }

    /// Computes the statistics of V, except those in `known`.
    fn statistics(
        &mut self,
        KnownSums { columns, bases, cross, mut packs }: KnownSums<'_>,
    ) -> Result<Totals> {
        let (rows, k) = (self.rows.clone(), self.rows.latent);
        let (gpu, fused) = (&*rows.gpu, rows.fused.as_ref().zip(cross));
        // One buffer for all sums, so that one copy returns them: column sums, S and sums of V of all instances; then C, S and
        // the sums of V of each view; then C of all views if the fused kernel computed it. Complete views share S and the sums of V.
        let cross_size = |view: &ViewRows| if fused.is_some() { 0 } else { view.features * k };
        let (mut end, mut starts) = (k + k * k + k, Vec::new());
        for view in &rows.views {
            starts.push(end);
            end += cross_size(view) + k * k + k;
        }
        let length = end + fused.map_or(0, |(fused, _)| fused.size());
        let (out, pinned) = match self.sums.take() {
            Some((out, pinned)) if out.len() >= length => self.sums.insert((out, pinned)),
            _ => self.sums.insert((gpu.allocate(length)?, gpu.pinned(length)?)),
        };
        let v = Latent { v: &self.v, instances: rows.instances, columns: k };
        let complete = rows.views.iter().any(|view| view.instances.is_none());
        if complete {
            sums::gram(gpu, &v, None, out.from(k))?;
        }
        if !complete || columns.is_some() {
            let v = Latent { v: columns.unwrap_or(&self.v), ..v };
            sums::columns(gpu, &v, None, None, out.at())?;
        }
        if let Some((fused, cross)) = fused {
            fused.add(gpu, cross, out.from(end))?;
        }
        for (view, &at) in rows.views.iter().zip(&starts) {
            if fused.is_none() {
                view.gather(gpu, &v, &mut packs, out, at)?;
            }
            let after = at + cross_size(view);
            if view.instances.is_some() {
                sums::gram(gpu, &v, view.instances.as_ref(), out.from(after))?;
            }
            if view.factors().is_some() {
                sums::columns(gpu, &v, view.instances.as_ref(), view.factors(), out.from(after + k * k))?;
            }
        }
        let all = gpu.receive(out, length, pinned)?;
        let (mut gram, mut cross) = (Vec::new(), Vec::new());
        for (number, (view, &at)) in rows.views.iter().zip(&starts).enumerate() {
            let after = at + cross_size(view);
            let shared = if view.instances.is_none() { k } else { after };
            let own_sums = if view.factors().is_none() { shared + k * k } else { after + k * k };
            let mut sums = match fused {
                Some((fused, _)) => fused.of_view(&all[end..], number, view.features, k)?,
                None => Matrix::new(view.features, k, all[at..after].to_vec())?,
            };
            view.finish(&mut sums, &all[own_sums..own_sums + k]);
            cross.push(sums);
            gram.push(Matrix::new(k, k, all[shared..shared + k * k].to_vec())?);
        }
        let at = if complete && columns.is_none() { k + k * k } else { 0 };
        let column_sums = all[at..at + k].to_vec();
        let holes = rows.holes.as_ref().map(|holes| holes.push(gpu, bases, &v, &mut cross)).transpose()?;
        let mut totals = Totals::new(gram, cross, column_sums);
        if let Some(holes) = holes {
            totals.holes = holes;
        }
        Ok(totals)
    }

    fn check(&self, factors: &Factors) -> Result<()> {
        let rows = &self.rows;
        let same = |what: &str, expected: usize, found: usize| {
            if expected == found {
                return Ok(());
            }
            Err(Error::LengthMismatch { what: what.into(), expected, found })
        };
        same("rows of V, which `start` gives", rows.instances, if self.begun { rows.instances } else { 0 })?;
        same("scale of V", rows.latent, factors.scale.len())?;
        same("bases", rows.views.len(), factors.bases.len())?;
        for (view, basis) in rows.views.iter().zip(&factors.bases) {
            same("rows of a basis", view.features, basis.rows())?;
            same("columns of a basis", rows.latent, basis.columns())?;
        }
        Ok(())
    }
}

/// Inputs of the statistics that a sweep has computed already.
#[derive(Default)]
struct KnownSums<'a> {
    /// The V whose column sums are returned, if not the current one.
    columns: Option<&'a Memory<f64>>,
    /// The bases that predict missing cells.
    bases: Option<&'a Memory<f64>>,
    cross: Option<&'a Cross>,
    packs: PackedForms,
}

/// Options of the V step in double precision.
#[derive(Clone, Copy)]
struct StepOptions {
    passes: usize,
    tolerance: f64,
    relaxation: f64,
}

impl StepOptions {
    /// Plain coordinate descent with a fixed number of passes.
    fn plain(passes: usize) -> Self {
        Self { passes, tolerance: 0.0, relaxation: 1.0 }
    }

    /// Solves V to optimality, as the CPU does.
    fn optimal(latent: usize) -> Self {
        Self { passes: MAX_PASSES, tolerance: TOLERANCE, relaxation: relaxation(latent) }
    }
}

impl GpuShard {
    /// Implements [`daimc::Shard::sweep`] for this partition.
    pub fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Totals> {
        self.check(factors)?;
        let rows = self.rows.clone();
        let (gpu, bases) = (&*rows.gpu, &factors.bases);
        if stop.is_set() {
            self.rescale(factors)?;
            return Err(Error::Interrupted);
        }
        let grams = grams(bases);
        let single = rows.views.iter().all(ViewRows::is_single) && rows.fits_single(&grams);
        let fused = rows.fused.as_ref().filter(|_| single);
        if let (Some(fused), VStep::Update { solver: Solver::Coordinate, passes }) = (fused, step) {
            let patterns = (rows.patterns.as_ref(), &rows.pattern_views[..]);
            let update = (&factors.scale[..], passes);
            let cross = fused.sweep(gpu, &rows.views, patterns, bases, &grams, update, &self.current())?;
            return self.statistics(KnownSums { cross: Some(&cross), ..KnownSums::default() });
        }
        let mut add = false;
        if rows.views.first().is_some_and(|view| view.instances.is_some()) {
            gpu.clear(&mut self.right)?;
            add = true;
        }
        for (view, basis) in rows.views.iter().zip(bases) {
            view.project(gpu, basis, &self.right, add)?;
            add = true;
        }
        let holes = rows.holes.as_ref();
        let hole_bases = holes.map(|holes| holes.bases(gpu, bases)).transpose()?;
        let pull = |shares: (f64, f64)| match (holes, &hole_bases) {
            (Some(holes), Some(own)) => {
                holes.pull(gpu, own, (&self.current(), &factors.scale), shares, &self.right)
            }
            _ => Ok(()),
        };
        match step {
            VStep::Update { solver: Solver::Coordinate, passes } => {
                pull((1.0, 1.0))?;
                let packs = self.update((&factors.scale, passes), &grams, single, &self.v)?;
                self.statistics(KnownSums { bases: hole_bases.as_ref(), packs, ..KnownSums::default() })
            }
            VStep::Update { .. } => {
                Err(refused(&gpu.name, "the multiplicative solver is not supported; use device = cpu"))
            }
            VStep::Solve { after } => {
                let before = match after {
                    None => {
                        pull((0.0, 1.0))?;
                        None
                    }
                    Some(passes) => {
                        let own = gpu.allocate(self.v.len())?;
                        pull((1.0, 1.0))?;
                        self.update((&factors.scale, passes), &grams, single, &own)?;
                        pull((-1.0, 0.0))?;
                        Some(own)
                    }
                };
                let options = StepOptions::optimal(rows.latent);
                self.step(None, &factors.scale, &grams, options, &self.v)?;
                if let (Some(holes), Some(own)) = (holes, &hole_bases) {
                    let grams = grams.concat();
                    let options = (options.passes, options.tolerance, options.relaxation);
                    let patterns = rows.patterns.as_ref();
                    holes.solve(gpu, own, &grams, patterns, options, &self.right, &self.current())?;
                }
                let (columns, bases) = (before.as_ref(), hole_bases.as_ref());
                self.statistics(KnownSums { columns, bases, ..KnownSums::default() })
            }
        }
    }
}
