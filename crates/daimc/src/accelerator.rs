//! Machines beside the processor that can hold rows, such as graphics cards.
//!
//! A fit hands its rows to an [`Accelerator`] once, as a [`Load`]. What comes back is [`Resident`]: it makes
//! [`Shard`]s over these rows, in which V stays during the iterations, and finds neighbours among them.

mod device;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::blocks::Blocks;
pub use crate::device::Device;
pub use crate::eigen::{Links, Multiplier};
use crate::lens::Lens;
use crate::patterns::Patterns;
use crate::scan::Scan;
use crate::shard::Shard;
use crate::source::{Block, Buffer, DeviceRows, Index, MISSING, Source};
use crate::{Error, Layout, Matrix, Result, Scaling, Schema, Stop};
pub use device::{Deferred, DeviceUsed, Use};

/// Constants of the V step, which an accelerator shares with the CPU so that both solve the same problem equally well.
pub mod v_step {
    pub use crate::steps::latent::{
        MAX_PASSES, SMALLEST_DIAGONAL, SMALLEST_REMAINDER, TOLERANCE, relaxation,
    };
}

/// A machine beside the processor.
pub trait Accelerator: Debug + Send + Sync {
    /// What it is, for people.
    fn name(&self) -> String;

    /// Takes the rows.
    ///
    /// # Errors
    /// [`Error::Accelerator`] when it cannot hold them or cannot work on such rows, and whatever reading them gives.
    fn hold<'a>(&self, load: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>>;
}

/// Rows that an accelerator has taken.
pub trait Resident<'a>: Send + Sync {
    /// A shard of all instances, which has no V yet. There may be several at a time.
    ///
    /// # Errors
    /// When there is no room for V.
    fn shard(self: Arc<Self>) -> Result<Box<dyn Shard + 'a>>;

    /// The nearest others of every instance of a view by the distances of scaled rows; `None` if it cannot find them. How many are
    /// the true ones is looked at in a sample, and where these are too few the processor searches.
    ///
    /// # Errors
    /// When it is stopped, or the machine fails.
    fn nearest(&self, view: usize, count: usize, stop: &Stop) -> Result<Option<NearestOthers>>;

    /// Somebody who multiplies blocks of so many vectors by a matrix; `None` if the processor is to.
    ///
    /// # Errors
    /// When the machine fails.
    fn multiplier(&self, links: &Links<'_>, width: usize) -> Result<Option<Box<dyn Multiplier>>> {
        let _ = (links, width);
        Ok(None)
    }
}

/// The nearest others of every instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearestOthers {
    /// `count` instances for each instance, nearest first and by number where they are equally near;
    /// [`MISSING`] where there are fewer.
    pub others: Vec<u32>,
    /// The squares of their distances.
    pub squares: Vec<f32>,
}

/// What an accelerator is given: rows, and how each view is scaled.
pub struct Load<'a> {
    pub(crate) scan: Scan<'a>,
    pub(crate) lenses: Arc<[Lens]>,
    pub(crate) patterns: Arc<Patterns>,
    pub(crate) latent: usize,
    /// The instances that are counted from 0.
    range: Range<usize>,
}

impl<'a> Load<'a> {
    /// All rows of a source, each view seen through its scaling, such as that of a
    /// [`ViewModel`](crate::ViewModel::scaling), for a V with so many columns.
    ///
    /// # Errors
    /// When there is not a scaling for each view, one cannot be applied, or rows cannot be read.
    pub fn new(source: &'a dyn Source, scalings: &[Scaling], latent: usize) -> Result<Self> {
        Self::part(source, Blocks::all(source.instances()), scalings, latent)
    }

    /// The same where the source holds some of more instances.
    pub(crate) fn part(
        source: &'a dyn Source,
        blocks: Blocks,
        scalings: &[Scaling],
        latent: usize,
    ) -> Result<Self> {
        let (expected, found) = (source.views(), scalings.len());
        if expected != found {
            return Err(Error::LengthMismatch {
                what: "scalings, one for each view".into(),
                expected,
                found,
            });
        }
        let scan = Scan::part(source, blocks, &Stop::default());
        let lens = |(view, scaling): (usize, &Scaling)| Lens::new(&scan, view, scaling.clone());
        let lenses = scalings.iter().enumerate().map(lens).collect::<Result<_>>()?;
        let patterns = Arc::new(Patterns::new(source, scan.blocks().size()));
        Ok(Self::of(scan, lenses, patterns, latent))
    }

    pub(crate) fn of(scan: Scan<'a>, lenses: Arc<[Lens]>, patterns: Arc<Patterns>, latent: usize) -> Self {
        let range = 0..scan.instances();
        Self { scan, lenses, patterns, latent, range }
    }

    /// Some of the instances, which are counted from 0 there.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn some(&self, instances: Range<usize>) -> Self {
        assert!(instances.start <= instances.end && instances.end <= self.instances());
        let scan = self.scan.recounted();
        let (lenses, patterns) = (self.lenses.clone(), self.patterns.clone());
        let range = self.range.start + instances.start..self.range.start + instances.end;
        Self { range, ..Self::of(scan, lenses, patterns, self.latent) }
    }

    /// How many instances there are.
    pub fn instances(&self) -> usize {
        self.range.len()
    }

    /// The names, sizes and types of the views of all instances.
    pub fn schema(&self) -> &Schema {
        self.scan.schema()
    }

    /// Whether a view shows an instance.
    pub fn shows(&self, view: usize, instance: usize) -> bool {
        self.schema().view(view).shows(self.range.start + instance)
    }

    /// Whether rows are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.scan.source().memory().is_some()
    }

    /// Columns of V.
    pub fn latent(&self) -> usize {
        self.latent
    }

    /// What ends the work.
    pub fn stop(&self) -> &Stop {
        self.scan.stop()
    }

    /// How a view is scaled.
    pub fn view(&self, view: usize) -> Scaled {
        Scaled { lenses: self.lenses.clone(), view, first: self.range.start }
    }

    /// The views in which the instances of each presence pattern are seen.
    pub fn patterns(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        (0..self.patterns.len()).map(|pattern| self.patterns.views(pattern))
    }

    /// The pattern of an instance.
    pub fn pattern(&self, instance: usize) -> usize {
        self.patterns.of(self.range.start + instance)
    }

    /// The rows of a range of instances in a view, where they lie if they are in memory.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read<'b>(
        &'b self,
        view: usize,
        instances: Range<usize>,
        buffer: &'b mut Buffer,
    ) -> Result<Block<'b>> {
        let first = self.range.start;
        self.scan.read(view, first + instances.start..first + instances.end, buffer)
    }

    /// The rows of a view where they lie, if that is in the memory of a machine beside the processor, and which of them is which
    /// instance. They are those that [`read`](Self::read) gives, and stay where they are for as long as this lives.
    pub fn device_rows(&self, view: usize) -> Option<(DeviceRows, Index<'_>)> {
        let (rows, index) = self.scan.source().device_rows(view)?;
        let index = match index {
            Index::From(first) => Index::From(first + self.range.start),
            Index::Rows(all) => Index::Rows(all.get(self.range.clone())?),
        };
        Some((rows, index))
    }
}

/// How a view is scaled: `x' = f (x − m) ∘ c`, with a factor f of the row, a shift m and factors c of the features. Products with
/// scaled rows are made of those with rows as they are stored,
///
/// ```text
/// x'ᵀ U     = f ( xᵀŨ − o )                     Ũ, o = fold(U)
/// Σ x' vᵀ   = unfold( Σ x (f v)ᵀ, Σ f v )
/// ```
///
/// except where that would lose digits: such rows are to be [stored scaled](Self::store), and f is 1.
pub struct Scaled {
    lenses: Arc<[Lens]>,
    view: usize,
    /// The instance that is counted as 0.
    first: usize,
}

impl Scaled {
    fn lens(&self) -> &Lens {
        &self.lenses[self.view]
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.lens().features()
    }

    /// How rows are stored.
    pub fn layout(&self) -> Layout {
        self.lens().layout()
    }

    /// f of an instance.
    pub fn factor(&self, instance: usize) -> f64 {
        self.lens().factor(self.first + instance)
    }

    /// f, if it is the same for all instances.
    pub fn common_factor(&self) -> Option<f64> {
        self.lens().common_factor()
    }

    /// Whether rows are to be stored scaled.
    pub fn is_stored_scaled(&self) -> bool {
        self.lens().is_by_row()
    }

    /// The row of an instance as it is to be stored, where rows are to be stored scaled.
    pub fn store(&self, block: &Block<'_>, (instance, at): (usize, usize), row: &mut Vec<f64>) {
        self.lens().scaled_row(block, (self.first + instance, at), row);
    }

    /// The same for whoever has the rows: a value x of a feature is stored as `(x − m) c f − μ`, and as `−μ` if c is 0, in double
    /// precision and in this order. Returns m, c and μ of each feature; [`store_factor`](Self::store_factor) is f.
    pub fn store_terms(&self) -> Vec<[f64; 3]> {
        self.lens().scaled_terms()
    }

    /// f of an instance whose row is stored scaled.
    pub fn store_factor(&self, instance: usize) -> f64 {
        self.lens().full_factor(self.first + instance)
    }

    /// `Ũ` and `o`.
    pub fn fold(&self, basis: &Matrix) -> (Matrix, Vec<f64>) {
        self.lens().fold(basis)
    }

    /// `Σ x' vᵀ` from `Σ x (f v)ᵀ` and `Σ f v`.
    pub fn unfold(&self, sums: &mut Matrix, weights: &[f64]) {
        self.lens().unfold(sums, weights);
    }

    /// `Σ_j w_j ‖x'_j‖²` of all instances, of the cells that are there.
    pub fn squares(&self) -> f64 {
        self.lens().sum_squares
    }

    /// Whether any row lacks a cell.
    pub fn lacks_cells(&self) -> bool {
        self.lens().lacks_cells
    }

    /// The features that a row lacks, each with the scaled value that stands there.
    pub fn missing_cells(&self, block: &Block<'_>, (instance, row): (usize, usize)) -> Vec<(u32, f64)> {
        let (lens, at) = (self.lens(), (self.first + instance, row));
        lens.holes(block, row).map(|f| (crate::index::index(f), lens.value(block, at, f))).collect()
    }
}

impl NearestOthers {
    /// As many places as there are, all of them empty.
    pub fn none(instances: usize, count: usize) -> Self {
        Self { others: vec![MISSING; instances * count], squares: vec![f32::INFINITY; instances * count] }
    }
}

/// An error of an accelerator, in one sentence.
pub fn refused(name: &str, reason: impl Into<String>) -> Error {
    Error::Accelerator { name: name.into(), reason: reason.into() }
}
