//! The rows of a view on a GPU, and the two products of a sweep with them.

mod dense;
mod sparse;

use std::ops::Range;

use daimc::accelerator::{Load, Scaled};
use daimc::source::{Block, Buffer};
use daimc::{Layout, Matrix, Result};

use crate::Precision;
use crate::gpu::{Argument, Gpu, Memory, maybe};
use crate::latent::Latent;
use crate::stored::StoredView;
pub use dense::Packed;
use dense::{Dense, Values};
use sparse::Sparse;

/// The rows of a view on a GPU.
pub struct ViewRows {
    scaled: Scaled,
    pub features: usize,
    pub count: usize,
    /// The instance of each row; `None` if the view is complete.
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

/// How products with the stored rows become products with scaled rows.
#[derive(Clone, Copy, PartialEq)]
enum Fold {
    /// By folding the scaling of the view, and by this common factor of rows.
    By(f64),
    /// By folding the scaling of the view; kernels apply the factor of each row.
    ByRow,
    /// The stored rows are scaled.
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

    /// Whether rows are scaled before they are stored.
    fn scales(self, scaled: &Scaled) -> bool {
        scaled.is_stored_scaled() || self == Self::Done
    }
}

/// Packed forms of V, one for each precision that views have.
#[derive(Default)]
pub struct PackedForms {
    pub f32: Option<Packed<f32>>,
    pub f64: Option<Packed<f64>>,
}

impl ViewRows {
    /// Copies the rows of a view to the GPU, unless they can be used in place.
    pub fn new(gpu: &Gpu, load: &Load<'_>, view: usize, precision: Precision) -> Result<Self> {
        let scaled = load.view(view);
        let complete = load.schema().view(view).is_complete();
        let present: Option<Vec<i32>> = (!complete)
            .then(|| (0..load.instances()).filter(|&i| load.shows(view, i)).map(|i| i as i32).collect());
        let count = present.as_ref().map_or_else(|| load.instances(), Vec::len);
        let instances = present.as_deref().map(|own| gpu.copy(own)).transpose()?;
        let fold = Fold::of(&scaled);
        let scale = fold.scales(&scaled);
        let source = RowSource { gpu, load, view, scaled: &scaled, count, scale };
        let entries = match scaled.layout() {
            Layout::DenseF32 => Entries::F32(Dense::new(&source, precision)?),
            Layout::DenseF64 => Entries::F64(Dense::new(&source, precision)?),
            Layout::SparseF32 => Entries::SparseF32(Sparse::new(&source)?),
            Layout::SparseF64 => Entries::SparseF64(Sparse::new(&source)?),
        };
        Ok(Self { features: scaled.features(), scaled, count, instances, entries, fold })
    }

    /// Whether the rows of a view are in the memory of this GPU and can be used in place.
    pub fn in_place(gpu: &Gpu, load: &Load<'_>, view: usize) -> bool {
        let scaled = load.view(view);
        let bytes = scaled.layout().bytes();
        let usable = |stored: StoredView| stored.in_place(stored.len(), scaled.features(), bytes).is_some();
        !Fold::of(&scaled).scales(&scaled) && StoredView::new(gpu, load, view).is_some_and(usable)
    }

    /// Whether products are computed in single precision.
    pub fn is_single(&self) -> bool {
        matches!(self.entries, Entries::F32(_) | Entries::SparseF32(_))
    }

    /// Dense rows in single precision, and their stride.
    pub fn single(&self) -> Option<(&Values<f32>, usize)> {
        if let Entries::F32(own) = &self.entries { Some((&own.values, own.stride)) } else { None }
    }

    /// Number of parts into which products with dense rows in single precision split a factor.
    pub fn parts(&self) -> Option<usize> {
        if let Entries::F32(own) = &self.entries { Some(own.parts()) } else { None }
    }

    /// `Ũ` and `o` with `x'ᵀU = xᵀŨ − o` for stored rows x, without the factors of single rows.
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

    /// Writes `x'ᵀU` of each row to `right`, or adds it.
    pub fn project(&self, gpu: &Gpu, basis: &Matrix, right: &Memory<f64>, add: bool) -> Result<()> {
        let latent = basis.columns();
        let (basis, offset) = self.folded(basis);
        let mut values = basis.into_values();
        values.extend(offset);
        let basis = Basis { values: gpu.copy(&values)?, features: self.features, latent };
        let instances = maybe(self.instances.as_ref());
        match &self.entries {
            Entries::F32(own) => own.project(gpu, &basis, instances, right, add),
            Entries::F64(own) => own.project(gpu, &basis, instances, right, add),
            Entries::SparseF32(own) => own.project(gpu, &basis, instances, right, add),
            Entries::SparseF64(own) => own.project(gpu, &basis, instances, right, add),
        }
    }

    /// Writes `Σ x vᵀ` over the stored rows, features × columns of V, to `sums` from `at` on.
    pub fn gather(
        &self,
        gpu: &Gpu,
        v: &Latent<'_>,
        packs: &mut PackedForms,
        sums: &Memory<f64>,
        at: usize,
    ) -> Result<()> {
        let instances = maybe(self.instances.as_ref());
        let to = sums.from(at);
        match &self.entries {
            Entries::F32(own) => own.gather(gpu, v, &mut packs.f32, instances, to),
            Entries::F64(own) => own.gather(gpu, v, &mut packs.f64, instances, to),
            Entries::SparseF32(own) => own.gather(gpu, v, instances, to),
            Entries::SparseF64(own) => own.gather(gpu, v, instances, to),
        }
    }

    /// Writes scaled rows minus their mean, dense and with `width` numbers each, and the squares of their lengths. Returns false for
    /// sparse rows, which are not supported.
    pub fn centre(
        &self,
        gpu: &Gpu,
        instances: usize,
        width: usize,
        out: &Memory<f32>,
        squares: &Memory<f32>,
    ) -> Result<bool> {
        if matches!(self.entries, Entries::SparseF32(_) | Entries::SparseF64(_)) {
            return Ok(false);
        }
        let ones = gpu.copy(&vec![1.0; instances])?;
        let sums = gpu.zeros::<f64>(self.features)?;
        let weights = Latent { v: &ones, instances, columns: 1 };
        self.gather(gpu, &weights, &mut PackedForms::default(), &sums, 0)?;
        let mean: Vec<f64> = gpu.read(&sums)?.iter().map(|sum| sum / self.count.max(1) as f64).collect();
        let factor = match self.fold {
            Fold::By(factor) => {
                let (folded, _) = self.scaled.fold(&Matrix::from_fn(self.features, 1, |_, _| 1.0));
                folded.values().iter().map(|own| own * factor).collect()
            }
            Fold::ByRow | Fold::Done => vec![1.0; self.features],
        };
        let (mean, factor) = (gpu.copy(&mean)?, gpu.copy(&factor)?);
        match &self.entries {
            Entries::F32(own) => own.centre(gpu, "centred_f32", &mean, &factor, width, out, squares)?,
            Entries::F64(own) => own.centre(gpu, "centred_f64", &mean, &factor, width, out, squares)?,
            Entries::SparseF32(_) | Entries::SparseF64(_) => {}
        }
        Ok(true)
    }

    /// The factors of single rows, if there are any.
    pub fn factors(&self) -> Option<&Memory<f64>> {
        match &self.entries {
            Entries::F32(_) | Entries::F64(_) => None,
            Entries::SparseF32(own) => own.factors.as_ref(),
            Entries::SparseF64(own) => own.factors.as_ref(),
        }
    }

    /// Turns the sums of `gather` into `Σ x' vᵀ`; `columns` has the sums of V over the rows, weighted by the factors of single rows.
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

/// A folded basis on the GPU, features × columns of V, followed by the offset.
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

/// The source of the rows of a view.
struct RowSource<'a> {
    gpu: &'a Gpu,
    load: &'a Load<'a>,
    view: usize,
    scaled: &'a Scaled,
    /// Number of rows.
    count: usize,
    /// Whether rows are scaled before they are stored.
    scale: bool,
}

impl RowSource<'_> {
    /// Calls `each` with ranges of instances whose rows have about `bytes` bytes, and with the block of these rows.
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

/// Number of threads that copy rows to pinned buffers.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(32)
}
