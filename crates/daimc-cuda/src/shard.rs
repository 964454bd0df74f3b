//! Rows and their V on a card: the sweep.

use std::sync::{Arc, PoisonError};

use daimc::accelerator::{Load, NearestOthers, Resident, refused};
use daimc::{Error, Factors, Matrix, Result, Shard, Solver, Statistics, Stop, Totals, VStep};

use crate::card::{Argument, Card, Memory, maybe};
use crate::fused::{Cross, Fused};
use crate::holes::Holes;
use crate::rows::{Latent, Packs, Rows};
use crate::{Precision, kernels, nearest, sums};

/// The rows of all views on a card.
pub struct Held<'a> {
    card: Arc<Card>,
    _load: Load<'a>,
    views: Vec<Rows>,
    /// The presence pattern of each instance, if there are several, and the views of each pattern.
    patterns: Option<Memory<i32>>,
    pattern_views: Vec<Vec<usize>>,
    holes: Option<Holes>,
    fused: Option<Fused>,
    instances: usize,
    latent: usize,
}

/// A basis vector whose squared length is below this takes no part, as on the processor.
pub const SMALLEST: f64 = 1e-280;

/// How exactly V is solved for given bases, and the relaxation where it has more than so many columns, as on the processor.
const MOST_PASSES: usize = 1000;
const TOLERANCE: f64 = 1e-9;
const MANY: usize = 20;
const OVER: f64 = 1.7;

/// Bytes of the Gram matrices of all presence patterns, at most.
const MOST_GRAMS: usize = 1 << 30;

impl<'a> Held<'a> {
    /// Takes the rows.
    pub fn new(card: Arc<Card>, load: Load<'a>, precision: Precision) -> Result<Self> {
        let (instances, latent) = (load.source().instances(), load.latent());
        let refuse = |reason: String| Err(refused(&card.name, reason));
        if latent > kernels::MOST_COLUMNS {
            return refuse(format!(
                "a V of {latent} columns is too wide for a card, which takes {}; use the processor",
                kernels::MOST_COLUMNS
            ));
        }
        if i32::try_from(instances).is_err() {
            return refuse(format!("{instances} instances are more than a card counts; use the processor"));
        }
        let views = load.source().views();
        let on_disk = load.source().memory().is_none();
        let sparse = |view: &usize| on_disk && !load.source().schema().view(*view).layout().is_dense();
        if let Some(view) = (0..views).find(sparse) {
            return refuse(format!(
                "view '{}' is sparse and not in memory, where it would have to be; use the processor",
                load.source().name(view)
            ));
        }
        let bytes = needed(&card, &load);
        let free = card.free()?;
        if bytes > free {
            return refuse(format!(
                "{:.1} GB are needed for these rows and {:.1} GB are free; use the processor",
                bytes as f64 / 1e9,
                free as f64 / 1e9
            ));
        }
        let pattern_views: Vec<Vec<usize>> = load.patterns().map(<[usize]>::to_vec).collect();
        let (lanes, entries) = kernels::latent_shape(latent);
        let size = lanes * entries;
        if pattern_views.len().saturating_mul(8 * size * (size + 1)) > MOST_GRAMS {
            return refuse(format!(
                "{} different sets of views with {latent} columns of V are too many for a card; use the processor",
                pattern_views.len()
            ));
        }
        let patterns = if pattern_views.len() > 1 {
            let all: Vec<i32> = (0..instances).map(|i| load.pattern(i) as i32).collect();
            Some(card.copy(&all)?)
        } else {
            None
        };
        let views: Vec<Rows> =
            (0..views).map(|view| Rows::new(&card, &load, view, precision)).collect::<Result<_>>()?;
        let holes = Holes::new(&card, &load)?;
        let fused = if holes.is_none() { Fused::new(&card, &load, &views, precision)? } else { None };
        Ok(Self { card, _load: load, views, patterns, pattern_views, holes, fused, instances, latent })
    }

    /// Whether the V step stays in the range of single precision.
    fn fits_single(&self, view_grams: &[Vec<f64>]) -> bool {
        let diagonal = |views: &Vec<usize>, k: usize| -> f64 {
            views.iter().map(|&view| view_grams[view][k * self.latent + k]).sum()
        };
        let fits = |value: f64| value < SMALLEST || (1e-30..1e30).contains(&value);
        self.pattern_views.iter().all(|views| (0..self.latent).all(|k| fits(diagonal(views, k))))
    }

    /// `G = Σ_v U_vᵀU_v` of each pattern, as the V step takes it, with its steps.
    fn grams(&self, bases: &[Matrix], relaxation: f64) -> Vec<f64> {
        let (lanes, entries) = kernels::latent_shape(self.latent);
        let (size, k) = (lanes * entries, self.latent);
        let of_views: Vec<Vec<f64>> = bases.iter().map(gram).collect();
        let mut out = vec![0.0; self.pattern_views.len() * (size * size + size)];
        for (views, out) in self.pattern_views.iter().zip(out.chunks_exact_mut(size * size + size)) {
            let (matrix, steps) = out.split_at_mut(size * size);
            for row in 0..k {
                for column in 0..k {
                    // Number e of thread l is entry e lanes + l; those of a thread stand by fours.
                    let (entry, thread) = (column / lanes, column % lanes);
                    let at = row * size + (entry / 4 * lanes + thread) * 4 + entry % 4;
                    matrix[at] = views.iter().map(|&view| of_views[view][row * k + column]).sum();
                    if row == column && matrix[at] >= SMALLEST {
                        steps[row] = relaxation / matrix[at];
                    }
                }
            }
        }
        out
    }
}

/// Bytes on the card, about: rows that are not there and missing cells, V and what it is made of, and sums.
fn needed(card: &Card, load: &Load<'_>) -> usize {
    let (schema, latent) = (load.source().schema(), load.latent());
    let of_view = |(number, view): (usize, daimc::ViewOf<'_>)| {
        let rows = if Rows::stay(card, load, number) {
            0
        } else if view.layout().is_dense() {
            view.present() * view.features().next_multiple_of(4) * view.layout().bytes()
        } else {
            3 * view.present() * view.bytes_per_row()
        };
        rows + 24 * view.missing_cells().unwrap_or(0) + 24 * view.features() * latent
    };
    let views: usize = schema.views().enumerate().map(of_view).sum();
    views + views / 64 + schema.instances() * latent * 48 + (256 << 20)
}

fn gram(basis: &Matrix) -> Vec<f64> {
    let k = basis.columns();
    let mut out = vec![0.0; k * k];
    for row in basis.iter_rows() {
        for (out, own) in out.chunks_exact_mut(k.max(1)).zip(row) {
            out.iter_mut().zip(row).for_each(|(out, other)| *out += own * other);
        }
    }
    out
}

impl<'a> Resident<'a> for Held<'a> {
    fn shard(self: Arc<Self>) -> Result<Box<dyn Shard + 'a>> {
        let size = self.instances * self.latent;
        let (v, right) = (self.card.zeros(size)?, self.card.zeros(size)?);
        Ok(Box::new(CardShard { held: self, v, right, begun: false }))
    }

    fn nearest(&self, view: usize, count: usize, stop: &Stop) -> Result<Option<NearestOthers>> {
        let _turn = self.card.turn.lock().unwrap_or_else(PoisonError::into_inner);
        nearest::nearest(&self.card, &self.views[view], self.instances, count, stop)
    }
}

/// V of the rows on a card.
struct CardShard<'a> {
    held: Arc<Held<'a>>,
    v: Memory<f64>,
    /// `r` of each instance.
    right: Memory<f64>,
    begun: bool,
}

impl CardShard<'_> {
    fn card(&self) -> &Card {
        &self.held.card
    }

    fn take(&mut self, v: &Matrix) -> Result<()> {
        let (rows, columns) = (self.held.instances, self.held.latent);
        if (v.rows(), v.columns()) != (rows, columns) {
            let reason = format!("V must be {rows} × {columns}, instances × latent");
            let value = format!("{} × {}", v.rows(), v.columns());
            return Err(Error::Unsuitable { what: "V", value, reason });
        }
        self.held.card.write(v.values(), &mut self.v)?;
        self.begun = true;
        Ok(())
    }

    /// Runs the V step: from V times a scale, or from zero, into `to`.
    fn step(
        &self,
        from: Option<&Memory<f64>>,
        scale: &[f64],
        bases: &[Matrix],
        plan: Plan,
        to: &Memory<f64>,
    ) -> Result<()> {
        let (held, card) = (&*self.held, self.card());
        let (lanes, entries) = kernels::latent_shape(held.latent);
        let scale = card.copy(scale)?;
        let grams = held.grams(bases, plan.relaxation);
        let bytes = if plan.single { 4 } else { 8 };
        let rows = 128 / lanes;
        let shared = rows * (held.latent + 1) * (8 + bytes);
        let number = if plan.single { "float" } else { "double" };
        let kernel = card.kernel(&format!("latent_{number}_{lanes}_{entries}"), "latent_step", shared)?;
        let exact = card.copy(&grams)?;
        let single;
        let (grams, tolerance) = if plan.single {
            single = card.copy(&grams.iter().map(|&value| value as f32).collect::<Vec<_>>())?;
            (single.at(), Argument::Float(plan.tolerance as f32))
        } else {
            (exact.at(), Argument::Double(plan.tolerance))
        };
        let arguments = [
            maybe(from),
            scale.at(),
            self.right.at(),
            exact.at(),
            grams,
            maybe(held.patterns.as_ref()),
            Argument::long(held.instances),
            Argument::int(held.latent),
            Argument::int(plan.passes),
            tolerance,
            to.at(),
        ];
        card.launch(&kernel, (held.instances.div_ceil(rows), 1, 1), (128, 1), &arguments)
    }

    /// V as it is.
    fn current(&self) -> Latent<'_> {
        Latent { v: &self.v, instances: self.held.instances, columns: self.held.latent }
    }

    /// The statistics of V, given what is known of them.
    fn statistics(&self, Known { columns, bases, cross }: Known<'_>) -> Result<Statistics> {
        let (held, card, k) = (&*self.held, self.card(), self.held.latent);
        let v = self.current();
        // One piece of memory for all sums, so that they come back at once: those of all instances, then C, S and the sums of
        // V for each view. Complete views share the latter two.
        let size = |view: &Rows| view.features * k + k * k + k;
        let starts: Vec<usize> = held
            .views
            .iter()
            .scan(k + k * k + k, |at, view| Some(std::mem::replace(at, *at + size(view))))
            .collect();
        let end = starts.last().map_or(k, |start| start + held.views.last().map_or(0, size));
        let out = card.zeros::<f64>(end)?;
        let told = Latent { v: columns.unwrap_or(&self.v), ..v };
        sums::columns(card, &told, None, None, out.at())?;
        if held.views.iter().any(|view| view.instances.is_none()) {
            sums::gram(card, &v, None, out.from(k))?;
            sums::columns(card, &v, None, None, out.from(k + k * k))?;
        }
        let mut packs = Packs::default();
        for (view, &at) in held.views.iter().zip(&starts) {
            if cross.is_none() {
                view.gather(card, &v, &mut packs, &out, at)?;
            }
            let after = at + view.features * k;
            if view.instances.is_some() {
                sums::gram(card, &v, view.instances.as_ref(), out.from(after))?;
            }
            if view.instances.is_some() || view.factors().is_some() {
                sums::columns(card, &v, view.instances.as_ref(), view.factors(), out.from(after + k * k))?;
            }
        }
        let all = card.read(&out)?;
        let known = match (&held.fused, cross) {
            (Some(fused), Some(cross)) => Some(fused.cross(card, cross, &held.views, k)?),
            _ => None,
        };
        let mut known = known.map(Vec::into_iter);
        let (mut gram, mut cross) = (Vec::new(), Vec::new());
        for (view, &at) in held.views.iter().zip(&starts) {
            let after = at + view.features * k;
            let shared = if view.instances.is_none() { k } else { after };
            let own_sums =
                if view.instances.is_none() && view.factors().is_none() { k + k * k } else { after + k * k };
            let mut sums = match known.as_mut().and_then(Iterator::next) {
                Some(sums) => sums,
                None => Matrix::new(view.features, k, all[at..after].to_vec())?,
            };
            view.finish(&mut sums, &all[own_sums..own_sums + k]);
            cross.push(sums);
            gram.push(Matrix::new(k, k, all[shared..shared + k * k].to_vec())?);
        }
        let holes = held.holes.as_ref().map(|holes| holes.push(card, bases, &v, &mut cross)).transpose()?;
        let mut totals = Totals::new(gram, cross, all[..k].to_vec());
        if let Some(holes) = holes {
            totals.holes = holes;
        }
        Ok(Statistics::of_all(totals))
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
#[derive(Clone, Copy, Default)]
struct Known<'a> {
    /// The V whose column sums are told, if it is another.
    columns: Option<&'a Memory<f64>>,
    /// The bases that tell what stands for missing cells.
    bases: Option<&'a Memory<f64>>,
    cross: Option<&'a Cross>,
}

/// A V step.
#[derive(Clone, Copy)]
struct Plan {
    passes: usize,
    tolerance: f64,
    relaxation: f64,
    /// In single precision.
    single: bool,
}

impl Shard for CardShard<'_> {
    fn instances(&self) -> usize {
        self.held.instances
    }

    fn start(&mut self, v: Matrix, stop: &Stop) -> Result<Statistics> {
        let held = self.held.clone();
        let _turn = held.card.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.take(&v)?;
        drop(v);
        stop.check()?;
        self.statistics(Known::default())
    }

    fn hold(&mut self, v: Matrix, _: &Stop) -> Result<()> {
        self.take(&v)
    }

    fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Statistics> {
        self.check(factors)?;
        let held = self.held.clone();
        let _turn = held.card.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (card, bases) = (&*held.card, &factors.bases);
        let exact = Plan { passes: 0, tolerance: 0.0, relaxation: 1.0, single: false };
        if stop.is_set() {
            // V is left as it is, at its scale.
            self.step(Some(&self.v), &factors.scale, bases, exact, &self.v)?;
            return Err(Error::Interrupted);
        }
        let grams: Vec<Vec<f64>> = bases.iter().map(gram).collect();
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
        let update = |passes: usize| Plan { passes, single, ..exact };
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
                self.step(Some(&self.v), &factors.scale, bases, update(passes), &self.v)?;
                self.statistics(Known { bases: hole_bases.as_ref(), ..Known::default() })
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
                        self.step(Some(&self.v), &factors.scale, bases, update(passes), &own)?;
                        pull((-1.0, 0.0))?;
                        Some(own)
                    }
                };
                let relaxation = if held.latent > MANY { OVER } else { 1.0 };
                let plan = Plan { passes: MOST_PASSES, tolerance: TOLERANCE, relaxation, ..exact };
                self.step(None, &factors.scale, bases, plan, &self.v)?;
                if let (Some(holes), Some(own)) = (holes, &hole_bases) {
                    let grams = grams.concat();
                    let exactly = (MOST_PASSES, TOLERANCE, relaxation);
                    let patterns = held.patterns.as_ref();
                    holes.settle(card, own, &grams, patterns, exactly, &self.right, &self.current())?;
                }
                self.statistics(Known { columns: before.as_ref(), bases: hole_bases.as_ref(), cross: None })
            }
        }
    }

    fn latent(&self) -> Matrix {
        let (rows, columns) = (self.held.instances, self.held.latent);
        // A card that has failed has no V: whoever takes numbers that are none says so.
        let values = self.held.card.read(&self.v).unwrap_or_else(|_| vec![f64::NAN; rows * columns]);
        Matrix::new(rows, columns, values).unwrap_or_default()
    }
}
