//! Rows and their V on a card: the sweep.

use std::ops::Deref;
use std::sync::Arc;

use daimc::accelerator::v_step::{MAX_PASSES, SMALLEST_DIAGONAL, TOLERANCE, relaxation};
use daimc::accelerator::{Load, refused};
use daimc::{Error, Factors, Matrix, Result, Solver, Stop, Totals, VStep};

use crate::card::{Argument, Card, Memory, Stage, maybe};
use crate::descent::{gram_of, grams};
use crate::fused::{Cross, Fused};
use crate::holes::Holes;
use crate::latent::Latent;
use crate::rows::{Packs, Rows};
use crate::{Precision, kernels, sums, update};

/// The rows of some instances in all views on a card.
pub struct Held {
    card: InUse,
    pub views: Vec<Rows>,
    /// The presence pattern of each instance, if there are several, and the views of each pattern.
    patterns: Option<Memory<i32>>,
    pattern_views: Vec<Vec<usize>>,
    holes: Option<Holes>,
    fused: Option<Fused>,
    instances: usize,
    latent: usize,
}

/// A card that may be working with what is dropped next: rows may have come by another stream, which would free them at once.
struct InUse(Arc<Card>);

impl Drop for InUse {
    fn drop(&mut self) {
        // An error of the card has been or will be told by whoever works there.
        let _ = self.0.wait();
    }
}

impl Deref for InUse {
    type Target = Card;

    fn deref(&self) -> &Card {
        &self.0
    }
}

impl Held {
    /// Takes the rows: `loader` is the card, with a stream of its own or the same.
    pub fn new(card: &Arc<Card>, loader: &Card, load: &Load<'_>, precision: Precision) -> Result<Self> {
        let views: Vec<Rows> = (0..load.schema().len())
            .map(|view| Rows::new(loader, load, view, precision))
            .collect::<Result<_>>()?;
        let holes = Holes::new(loader, load)?;
        // The same for every part of the instances, whether or not it lacks cells.
        let lacking = (0..views.len()).any(|view| load.view(view).lacks_cells());
        let fused = if lacking { None } else { Fused::new(loader, load, &views, precision)? };
        let held = Self { views, holes, fused, ..Self::without_rows(card, loader, load)? };
        loader.wait()?;
        Ok(held)
    }

    /// What is known of the instances while their rows are not on the card.
    pub fn without_rows(card: &Arc<Card>, loader: &Card, load: &Load<'_>) -> Result<Self> {
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
            card: InUse(card.clone()),
            views,
            patterns,
            pattern_views,
            holes,
            fused,
            instances,
            latent,
        })
    }

    /// Whether the V step stays in the range of single precision.
    fn fits_single(&self, view_grams: &[Vec<f64>]) -> bool {
        let fits = |value: f64| value < SMALLEST_DIAGONAL || (1e-30..1e30).contains(&value);
        self.pattern_views.iter().all(|views| {
            let gram = gram_of(views, view_grams, self.latent);
            (0..self.latent).all(|k| fits(gram(k, k)))
        })
    }

    /// `G = Σ_v U_vᵀU_v` of each pattern, as the V step takes it, with its steps.
    fn grams(&self, of_views: &[Vec<f64>], relaxation: f64) -> Vec<f64> {
        let (lanes, entries) = kernels::latent_shape(self.latent);
        let (size, k) = (lanes * entries, self.latent);
        let mut out = vec![0.0; self.pattern_views.len() * (size * size + size)];
        for (views, out) in self.pattern_views.iter().zip(out.chunks_exact_mut(size * size + size)) {
            let (matrix, steps) = out.split_at_mut(size * size);
            let gram = gram_of(views, of_views, k);
            for row in 0..k {
                for column in 0..k {
                    // Number e of thread l is entry e lanes + l; those of a thread stand by fours.
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

/// V of some instances on a card.
pub struct CardShard {
    held: Arc<Held>,
    v: Memory<f64>,
    /// `r` of each instance.
    right: Memory<f64>,
    /// Where statistics are summed up, on the card and here, once there are some.
    sums: Option<(Memory<f64>, Stage<f64>)>,
    begun: bool,
}

impl CardShard {
    /// V of these instances, which is not there yet.
    pub fn new(held: Arc<Held>) -> Result<Self> {
        let size = held.instances * held.latent;
        let (v, right) = (held.card.zeros(size)?, held.card.zeros(size)?);
        Ok(Self { held, v, right, sums: None, begun: false })
    }

    /// The same instances, with rows or without, from now on.
    pub fn over(&mut self, held: Arc<Held>) {
        self.held = held;
    }

    fn card(&self) -> &Card {
        &self.held.card
    }

    /// Takes these rows of V, one for each instance.
    pub fn hold(&mut self, v: &[f64]) -> Result<()> {
        self.held.card.write(v, &mut self.v)?;
        self.begun = true;
        Ok(())
    }

    /// The same, and returns their statistics.
    pub fn start(&mut self, v: &[f64], stop: &Stop) -> Result<Totals> {
        self.hold(v)?;
        stop.check()?;
        self.statistics(Known::default())
    }

    /// Brings the rows of V back.
    pub fn latent(&self, v: &mut [f64]) {
        // A card that has failed has no V: whoever takes numbers that are none says so.
        if self.card().read_into(&self.v, v).is_err() {
            v.fill(f64::NAN);
        }
    }

    /// Runs the V step in double precision: from V times a scale, or from zero, into `to`.
    fn step(
        &self,
        from: Option<&Memory<f64>>,
        scale: &[f64],
        view_grams: &[Vec<f64>],
        plan: Plan,
        to: &Memory<f64>,
    ) -> Result<()> {
        let (held, card) = (&*self.held, self.card());
        let (lanes, entries) = kernels::latent_shape(held.latent);
        let (scale, grams) = (card.copy(scale)?, card.copy(&held.grams(view_grams, plan.relaxation))?);
        let rows = 128 / lanes;
        let shared = rows * (held.latent + 1) * 16;
        let kernel = card.kernel(&format!("latent_{lanes}_{entries}"), "latent_step", shared)?;
        let arguments = [
            maybe(from),
            scale.at(),
            self.right.at(),
            grams.at(),
            maybe(held.patterns.as_ref()),
            Argument::long(held.instances),
            Argument::int(held.latent),
            Argument::int(plan.passes),
            Argument::Double(plan.tolerance),
            to.at(),
        ];
        card.launch(&kernel, (held.instances.div_ceil(rows), 1, 1), (128, 1), &arguments)
    }

    /// Leaves V as it is, at its scale.
    pub fn rescale(&self, factors: &Factors) -> Result<()> {
        self.step(Some(&self.v), &factors.scale, &grams(&factors.bases), Plan::EXACT, &self.v)
    }

    /// Some passes of the V step from V times a scale into `to`, in single precision if that will do. Returns what is known of V
    /// after it.
    fn update(
        &self,
        (scale, passes): (&[f64], usize),
        view_grams: &[Vec<f64>],
        single: bool,
        to: &Memory<f64>,
    ) -> Result<Packs> {
        let held = &*self.held;
        if !single {
            self.step(Some(&self.v), scale, view_grams, Plan { passes, ..Plan::EXACT }, to)?;
            return Ok(Packs::default());
        }
        let patterns = (held.patterns.as_ref(), &held.pattern_views[..]);
        let parts = held.views.iter().find_map(Rows::parts);
        let v = (&self.current(), to);
        let f32 = update::update(self.card(), v, &self.right, patterns, view_grams, (scale, passes), parts)?;
        Ok(Packs { f32, ..Packs::default() })
    }

    /// V as it is.
    fn current(&self) -> Latent<'_> {
        Latent { v: &self.v, instances: self.held.instances, columns: self.held.latent }
    }

    /// The statistics of V, given what is known of them.
    fn statistics(&mut self, Known { columns, bases, cross, mut packs }: Known<'_>) -> Result<Totals> {
        let (held, k) = (self.held.clone(), self.held.latent);
        let (card, fused) = (&*held.card, held.fused.as_ref().zip(cross));
        // One piece of memory for all sums, so that they come back at once: those of all instances, then C, S and the sums of
        // V for each view, then C of all views if one kernel has made it. Complete views share S and the sums of V.
        let rows = |view: &Rows| if fused.is_some() { 0 } else { view.features * k };
        let (mut end, mut starts) = (k + k * k + k, Vec::new());
        for view in &held.views {
            starts.push(end);
            end += rows(view) + k * k + k;
        }
        let length = end + fused.map_or(0, |(fused, _)| fused.size());
        let (out, stage) = match self.sums.take() {
            Some((out, stage)) if out.len() >= length => self.sums.insert((out, stage)),
            _ => self.sums.insert((card.room(length)?, card.stage(length)?)),
        };
        let v = Latent { v: &self.v, instances: held.instances, columns: k };
        let complete = held.views.iter().any(|view| view.instances.is_none());
        if complete {
            sums::gram(card, &v, None, out.from(k))?;
        }
        if !complete || columns.is_some() {
            let told = Latent { v: columns.unwrap_or(&self.v), ..v };
            sums::columns(card, &told, None, None, out.at())?;
        }
        if let Some((fused, cross)) = fused {
            fused.add(card, cross, out.from(end))?;
        }
        for (view, &at) in held.views.iter().zip(&starts) {
            if fused.is_none() {
                view.gather(card, &v, &mut packs, out, at)?;
            }
            let after = at + rows(view);
            if view.instances.is_some() {
                sums::gram(card, &v, view.instances.as_ref(), out.from(after))?;
            }
            if view.factors().is_some() {
                sums::columns(card, &v, view.instances.as_ref(), view.factors(), out.from(after + k * k))?;
            }
        }
        let all = card.receive(out, length, stage)?;
        let (mut gram, mut cross) = (Vec::new(), Vec::new());
        for (number, (view, &at)) in held.views.iter().zip(&starts).enumerate() {
            let after = at + rows(view);
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
        let told = if complete && columns.is_none() { k + k * k } else { 0 };
        let column_sums = all[told..told + k].to_vec();
        let holes = held.holes.as_ref().map(|holes| holes.push(card, bases, &v, &mut cross)).transpose()?;
        let mut totals = Totals::new(gram, cross, column_sums);
        if let Some(holes) = holes {
            totals.holes = holes;
        }
        Ok(totals)
    }

    fn check(&self, factors: &Factors) -> Result<()> {
        let held = &self.held;
        let same = |what: &str, expected: usize, found: usize| {
            if expected == found {
                return Ok(());
            }
            Err(Error::LengthMismatch { what: what.into(), expected, found })
        };
        same("rows of V, which `start` gives", held.instances, if self.begun { held.instances } else { 0 })?;
        same("scale of V", held.latent, factors.scale.len())?;
        same("bases", held.views.len(), factors.bases.len())?;
        for (view, basis) in held.views.iter().zip(&factors.bases) {
            same("rows of a basis", view.features, basis.rows())?;
            same("columns of a basis", held.latent, basis.columns())?;
        }
        Ok(())
    }
}

/// What is known of statistics before they are gathered.
#[derive(Default)]
struct Known<'a> {
    /// The V whose column sums are told, if it is another.
    columns: Option<&'a Memory<f64>>,
    /// The bases that tell what stands for missing cells.
    bases: Option<&'a Memory<f64>>,
    cross: Option<&'a Cross>,
    packs: Packs,
}

/// A V step in double precision.
#[derive(Clone, Copy)]
struct Plan {
    passes: usize,
    tolerance: f64,
    relaxation: f64,
}

impl Plan {
    const EXACT: Self = Self { passes: 0, tolerance: 0.0, relaxation: 1.0 };

    /// Solves V to optimality, as the CPU does.
    fn optimal(latent: usize) -> Self {
        Self { passes: MAX_PASSES, tolerance: TOLERANCE, relaxation: relaxation(latent) }
    }
}

impl CardShard {
    /// One pass over the rows, as [`daimc::Shard::sweep`] makes it.
    pub fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Totals> {
        self.check(factors)?;
        let held = self.held.clone();
        let (card, bases) = (&*held.card, &factors.bases);
        if stop.is_set() {
            self.rescale(factors)?;
            return Err(Error::Interrupted);
        }
        let grams = grams(bases);
        let single = held.views.iter().all(Rows::is_single) && held.fits_single(&grams);
        let fused = held.fused.as_ref().filter(|_| single);
        if let (Some(fused), VStep::Update { solver: Solver::Coordinate, passes }) = (fused, step) {
            let patterns = (held.patterns.as_ref(), &held.pattern_views[..]);
            let update = (&factors.scale[..], passes);
            let cross = fused.sweep(card, &held.views, patterns, bases, &grams, update, &self.current())?;
            return self.statistics(Known { cross: Some(&cross), ..Known::default() });
        }
        let mut add = false;
        if held.views.first().is_some_and(|view| view.instances.is_some()) {
            card.clear(&mut self.right)?;
            add = true;
        }
        for (view, basis) in held.views.iter().zip(bases) {
            view.project(card, basis, &self.right, add)?;
            add = true;
        }
        let holes = held.holes.as_ref();
        let hole_bases = holes.map(|holes| holes.bases(card, bases)).transpose()?;
        let pull = |shares: (f64, f64)| match (holes, &hole_bases) {
            (Some(holes), Some(own)) => {
                holes.pull(card, own, (&self.current(), &factors.scale), shares, &self.right)
            }
            _ => Ok(()),
        };
        match step {
            VStep::Update { solver: Solver::Coordinate, passes } => {
                pull((1.0, 1.0))?;
                let packs = self.update((&factors.scale, passes), &grams, single, &self.v)?;
                self.statistics(Known { bases: hole_bases.as_ref(), packs, ..Known::default() })
            }
            VStep::Update { .. } => {
                Err(refused(&card.name, "the multiplicative solver runs on the processor only"))
            }
            VStep::Settle { after } => {
                let before = match after {
                    None => {
                        pull((0.0, 1.0))?;
                        None
                    }
                    Some(passes) => {
                        let own = card.room(self.v.len())?;
                        pull((1.0, 1.0))?;
                        self.update((&factors.scale, passes), &grams, single, &own)?;
                        pull((-1.0, 0.0))?;
                        Some(own)
                    }
                };
                let plan = Plan::optimal(held.latent);
                self.step(None, &factors.scale, &grams, plan, &self.v)?;
                if let (Some(holes), Some(own)) = (holes, &hole_bases) {
                    let grams = grams.concat();
                    let exactly = (plan.passes, plan.tolerance, plan.relaxation);
                    let patterns = held.patterns.as_ref();
                    holes.settle(card, own, &grams, patterns, exactly, &self.right, &self.current())?;
                }
                let (columns, bases) = (before.as_ref(), hole_bases.as_ref());
                self.statistics(Known { columns, bases, ..Known::default() })
            }
        }
    }
}
