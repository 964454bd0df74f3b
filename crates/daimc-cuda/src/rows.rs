//! The rows of a view on a card, and the two products of a sweep with them.

mod dense;
mod sparse;

use std::ops::Range;

use daimc::accelerator::{Load, Scaled};
use daimc::source::{Block, Buffer};
use daimc::{Layout, Matrix, Result};

use crate::Precision;
use crate::card::{Argument, Card, Memory, maybe};
use crate::given::Given;
use crate::latent::Latent;
pub use dense::Packed;
use dense::{Dense, Values};
use sparse::Sparse;

/// The rows of a view.
pub struct Rows {
    scaled: Scaled,
    pub features: usize,
    pub count: usize,
    /// The instance of each row; `None` if all are there.
    pub instances: Option<Memory<i32>>,
    entries: Entries,
    fold: Fold,
}

enum Entries {
    F32(Dense<f32>),
    F64(Dense<f64>),
    SparseF32(Sparse<f32>),
    SparseF64(Sparse<f64>),
}

/// How products with rows as they lie on the card become those with scaled rows.
#[derive(Clone, Copy, PartialEq)]
enum Fold {
    /// As the view says, and each row counts with this factor.
    By(f64),
    /// As the view says, and each row counts with a factor of its own, which the products apply.
    ByRow,
    /// They are those of scaled rows.
    Done,
}

impl Fold {
    fn of(scaled: &Scaled) -> Self {
        match (scaled.common_factor(), scaled.layout().is_dense()) {
            (Some(factor), _) => Self::By(factor),
            (None, false) => Self::ByRow,
            (None, true) => Self::Done,
        }
    }

    /// Whether rows are scaled on their way to the card.
    fn scales(self, scaled: &Scaled) -> bool {
        scaled.is_stored_scaled() || self == Self::Done
    }
}

/// V in the forms that the products of some views take.
#[derive(Default)]
pub struct Packs {
    pub f32: Option<Packed<f32>>,
    pub f64: Option<Packed<f64>>,
}

impl Rows {
    /// Takes the rows of a view.
    pub fn new(card: &Card, load: &Load<'_>, view: usize, precision: Precision) -> Result<Self> {
        let scaled = load.view(view);
        let complete = load.schema().view(view).is_complete();
        let present: Option<Vec<i32>> = (!complete)
            .then(|| (0..load.instances()).filter(|&i| load.shows(view, i)).map(|i| i as i32).collect());
        let count = present.as_ref().map_or_else(|| load.instances(), Vec::len);
        let instances = present.as_deref().map(|own| card.copy(own)).transpose()?;
        let fold = Fold::of(&scaled);
        let scale = fold.scales(&scaled);
        let source = Source { card, load, view, scaled: &scaled, count, scale };
        let entries = match scaled.layout() {
            Layout::DenseF32 => Entries::F32(Dense::new(&source, precision)?),
            Layout::DenseF64 => Entries::F64(Dense::new(&source, precision)?),
            Layout::SparseF32 => Entries::SparseF32(Sparse::new(&source)?),
            Layout::SparseF64 => Entries::SparseF64(Sparse::new(&source)?),
        };
        Ok(Self { features: scaled.features(), scaled, count, instances, entries, fold })
    }

    /// Whether the rows of a view lie on the card as they are needed, so that they stay where they are.
    pub fn stay(card: &Card, load: &Load<'_>, view: usize) -> bool {
        let scaled = load.view(view);
        let bytes = scaled.layout().bytes();
        let in_place = |given: Given| given.in_place(given.len(), scaled.features(), bytes).is_some();
        !Fold::of(&scaled).scales(&scaled) && Given::new(card, load, view).is_some_and(in_place)
    }

    /// Whether products are made in single precision.
    pub fn is_single(&self) -> bool {
        matches!(self.entries, Entries::F32(_) | Entries::SparseF32(_))
    }

    /// Dense rows of single precision, and the numbers from one to the next.
    pub fn single(&self) -> Option<(&Values<f32>, usize)> {
        if let Entries::F32(own) = &self.entries { Some((&own.values, own.stride)) } else { None }
    }

    /// Parts of a number that the products with dense rows of single precision multiply.
    pub fn parts(&self) -> Option<usize> {
        if let Entries::F32(own) = &self.entries { Some(own.parts()) } else { None }
    }

    /// `Ũ` and `o` with `x'ᵀU = xᵀŨ − o` for rows x as they lie here, but for the factors of single rows.
    pub fn folded(&self, basis: &Matrix) -> (Matrix, Vec<f64>) {
        let (mut basis, mut offset) = match self.fold {
            Fold::Done => (basis.clone(), vec![0.0; basis.columns()]),
            Fold::By(_) | Fold::ByRow => self.scaled.fold(basis),
        };
        if let Fold::By(factor) = self.fold {
            basis.values_mut().iter_mut().chain(&mut offset).for_each(|value| *value *= factor);
        }
        (basis, offset)
    }

    /// Adds `x'ᵀU` of each row to `right`, or overwrites it.
    pub fn project(&self, card: &Card, basis: &Matrix, right: &Memory<f64>, add: bool) -> Result<()> {
        let latent = basis.columns();
        let (basis, offset) = self.folded(basis);
        let mut values = basis.into_values();
        values.extend(offset);
        let basis = Basis { values: card.copy(&values)?, features: self.features, latent };
        let instances = maybe(self.instances.as_ref());
        match &self.entries {
            Entries::F32(own) => own.project(card, &basis, instances, right, add),
            Entries::F64(own) => own.project(card, &basis, instances, right, add),
            Entries::SparseF32(own) => own.project(card, &basis, instances, right, add),
            Entries::SparseF64(own) => own.project(card, &basis, instances, right, add),
        }
    }

    /// `Σ x vᵀ` of the rows as they lie here, features × columns of V, into `sums` from `at` on.
    pub fn gather(
        &self,
        card: &Card,
        v: &Latent<'_>,
        packs: &mut Packs,
        sums: &Memory<f64>,
        at: usize,
    ) -> Result<()> {
        let instances = maybe(self.instances.as_ref());
        let to = sums.from(at);
        match &self.entries {
            Entries::F32(own) => own.gather(card, v, &mut packs.f32, instances, to),
            Entries::F64(own) => own.gather(card, v, &mut packs.f64, instances, to),
            Entries::SparseF32(own) => own.gather(card, v, instances, to),
            Entries::SparseF64(own) => own.gather(card, v, instances, to),
        }
    }

    /// Writes the rows as they are compared: dense, scaled and counted from their mean, `width` numbers each, and the squares of
    /// their lengths. Returns whether it could: sparse rows cannot be counted from anywhere.
    pub fn centre(
        &self,
        card: &Card,
        instances: usize,
        width: usize,
        out: &Memory<f32>,
        squares: &Memory<f32>,
    ) -> Result<bool> {
        if matches!(self.entries, Entries::SparseF32(_) | Entries::SparseF64(_)) {
            return Ok(false);
        }
        let ones = card.copy(&vec![1.0; instances])?;
        let sums = card.zeros::<f64>(self.features)?;
        let everyone = Latent { v: &ones, instances, columns: 1 };
        self.gather(card, &everyone, &mut Packs::default(), &sums, 0)?;
        let mean: Vec<f64> = card.read(&sums)?.iter().map(|sum| sum / self.count.max(1) as f64).collect();
        let factor = match self.fold {
            Fold::By(factor) => {
                let (folded, _) = self.scaled.fold(&Matrix::from_fn(self.features, 1, |_, _| 1.0));
                folded.values().iter().map(|own| own * factor).collect()
            }
            Fold::ByRow | Fold::Done => vec![1.0; self.features],
        };
        let (mean, factor) = (card.copy(&mean)?, card.copy(&factor)?);
        match &self.entries {
            Entries::F32(own) => own.centre(card, "centred_f32", &mean, &factor, width, out, squares)?,
            Entries::F64(own) => own.centre(card, "centred_f64", &mean, &factor, width, out, squares)?,
            Entries::SparseF32(_) | Entries::SparseF64(_) => {}
        }
        Ok(true)
    }

    /// The factors of rows, where each has its own.
    pub fn factors(&self) -> Option<&Memory<f64>> {
        match &self.entries {
            Entries::F32(_) | Entries::F64(_) => None,
            Entries::SparseF32(own) => own.factors.as_ref(),
            Entries::SparseF64(own) => own.factors.as_ref(),
        }
    }

    /// Makes `Σ x' vᵀ` of the sums of `gather` and those of V over the rows, weighed by the factors of rows if they have any.
    pub fn finish(&self, sums: &mut Matrix, columns: &[f64]) {
        match self.fold {
            Fold::Done => {}
            Fold::ByRow => self.scaled.unfold(sums, columns),
            Fold::By(factor) => {
                sums.values_mut().iter_mut().for_each(|value| *value *= factor);
                let weights: Vec<f64> = columns.iter().map(|sum| factor * sum).collect();
                self.scaled.unfold(sums, &weights);
            }
        }
    }
}

/// A folded basis on the card, features × columns of V, and after it the offset.
struct Basis {
    values: Memory<f64>,
    features: usize,
    latent: usize,
}

impl Basis {
    fn offset(&self) -> Argument {
        self.values.from(self.features * self.latent)
    }
}

/// Where the rows of a view come from.
struct Source<'a> {
    card: &'a Card,
    load: &'a Load<'a>,
    view: usize,
    scaled: &'a Scaled,
    /// Rows.
    count: usize,
    /// Whether they are scaled on their way.
    scale: bool,
}

impl Source<'_> {
    /// Calls `each` with some instances at a time, of about so many bytes, and the block of their rows.
    fn each(&self, bytes: usize, mut each: impl FnMut(Range<usize>, &Block<'_>) -> Result<()>) -> Result<()> {
        let instances = self.load.instances();
        let per_row = self.load.schema().view(self.view).bytes_per_row().max(1);
        let step = (bytes / per_row).clamp(1, instances.max(1));
        let mut buffer = Buffer::default();
        for start in (0..instances).step_by(step) {
            self.load.stop().check()?;
            let range = start..(start + step).min(instances);
            let block = self.load.read(self.view, range.clone(), &mut buffer)?;
            each(range, &block)?;
        }
        Ok(())
    }
}

/// Threads that prepare rows for their way.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(32)
}
