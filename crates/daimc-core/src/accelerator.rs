//! Accelerators, such as GPUs, that keep the data of a fit in device memory.
//!
//! A fit passes its rows to an [`Accelerator`] once, as a [`Load`]. The accelerator returns a [`Resident`], which
//! creates [`Shard`]s over these rows (V stays on the device during the iterations) and searches for neighbours among
//! them.

mod device;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::blocks::Blocks;
pub use crate::device::Device;
pub use crate::eigen::{Links, Multiplier};
use crate::patterns::Patterns;
use crate::scaled_view::ScaledView;
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

/// A device that runs the iterations of a fit in place of the CPU.
///
/// A fit calls [`hold`](Self::hold) at most once, after the rows are scaled and before the first iteration, on the
/// thread that drives the fit. The same accelerator can serve several fits at the same time. With [`Use::Always`], an
/// error of `hold` is the error of the fit. With [`Use::WhereItPays`], [`Error::Accelerator`] means that the fit runs
/// on the CPU instead; any other error ends it.
pub trait Accelerator: Debug + Send + Sync {
    /// The name for messages and results, such as that of the GPU.
    fn name(&self) -> String;

    /// Copies the rows to the device.
    ///
    /// # Errors
    /// [`Error::Accelerator`] when the rows do not fit or their layout is not supported, and the errors of reading them.
    fn hold<'a>(&self, load: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>>;
}

/// The rows of a fit on an accelerator.
///
/// The fit calls [`shard`](Self::shard) whenever it iterates from a new V (in each run, and after the iterations),
/// [`nearest`](Self::nearest) for each view in which comparing all pairs on the device saves time, and
/// [`multiplier`](Self::multiplier) for the eigenvectors of the neighbour graph. Several threads can call these methods at
/// the same time. Where one of the last two returns `None`, the CPU does the work; an error ends the fit unless the method
/// says otherwise.
pub trait Resident<'a>: Send + Sync {
    /// Creates a shard of all instances without V. Several shards can exist at the same time.
    ///
    /// # Errors
    /// [`Error::Accelerator`] when there is not enough device memory for V. With [`Use::WhereItPays`] the CPU then
    /// takes over.
    fn shard(self: Arc<Self>) -> Result<Box<dyn Shard + 'a>>;

    /// The nearest neighbours of every instance of a view by the distances of scaled rows; `None` if the accelerator
    /// cannot search this view. The fit measures the recall on a sample and searches on the CPU if it is too low.
    ///
    /// # Errors
    /// When the search is stopped or the device fails.
    fn nearest(&self, view: usize, count: usize, stop: &Stop) -> Result<Option<NearestOthers>>;

    /// Creates a multiplier of blocks of `width` vectors with a matrix; `None` leaves the products to the CPU.
    ///
    /// # Errors
    /// When the device fails.
    fn multiplier(&self, links: &Links<'_>, width: usize) -> Result<Option<Box<dyn Multiplier>>> {
        let _ = (links, width);
        Ok(None)
    }
}

/// The nearest neighbours of every instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearestOthers {
    /// `count` instances for each instance, nearest first and by number in case of ties; [`MISSING`] where there are fewer.
    pub others: Vec<u32>,
    /// The squared distances.
    pub squares: Vec<f32>,
}

/// The rows of a fit and the scaling of each view, as an accelerator receives them.
pub struct Load<'a> {
    pub(crate) scan: Scan<'a>,
    pub(crate) scaled_views: Arc<[ScaledView]>,
    pub(crate) patterns: Arc<Patterns>,
    pub(crate) latent: usize,
    /// The instances of the load, which are numbered from 0.
    range: Range<usize>,
}

impl<'a> Load<'a> {
    /// All rows of a source with the scaling of each view, such as that of a `ViewModel`,
    /// for a V with `latent` columns.
    ///
    /// # Errors
    /// When there is not one scaling per view, one cannot be applied, or rows cannot be read.
    pub fn new(source: &'a dyn Source, scalings: &[Scaling], latent: usize) -> Result<Self> {
        Self::part(source, Blocks::all(source.instances()), scalings, latent)
    }

    /// As [`Load::new`], for a source of a partition of the instances.
    pub fn part(source: &'a dyn Source, blocks: Blocks, scalings: &[Scaling], latent: usize) -> Result<Self> {
        let (expected, found) = (source.views(), scalings.len());
        if expected != found {
            return Err(Error::LengthMismatch {
                what: "scalings, one for each view".into(),
                expected,
                found,
            });
        }
        let scan = Scan::part(source, blocks, &Stop::default());
        let scaled_view = |(view, scaling): (usize, &Scaling)| ScaledView::new(&scan, view, scaling.clone());
        let scaled_views = scalings.iter().enumerate().map(scaled_view).collect::<Result<_>>()?;
        let patterns = Arc::new(Patterns::new(source, scan.blocks().size()));
        Ok(Self::of(scan, scaled_views, patterns, latent))
    }

    pub(crate) fn of(
        scan: Scan<'a>,
        scaled_views: Arc<[ScaledView]>,
        patterns: Arc<Patterns>,
        latent: usize,
    ) -> Self {
        let range = 0..scan.instances();
        Self { scan, scaled_views, patterns, latent, range }
    }

    /// A range of the instances, numbered from 0 in the result.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn some(&self, instances: Range<usize>) -> Self {
        assert!(instances.start <= instances.end && instances.end <= self.instances());
        let scan = self.scan.recounted();
        let (scaled_views, patterns) = (self.scaled_views.clone(), self.patterns.clone());
        let range = self.range.start + instances.start..self.range.start + instances.end;
        Self { range, ..Self::of(scan, scaled_views, patterns, self.latent) }
    }

    /// The number of instances.
    pub fn instances(&self) -> usize {
        self.range.len()
    }

    /// The names, sizes and types of the views of all instances.
    pub fn schema(&self) -> &Schema {
        self.scan.schema()
    }

    /// Whether a view contains an instance.
    pub fn shows(&self, view: usize, instance: usize) -> bool {
        self.schema().view(view).shows(self.range.start + instance)
    }

    /// Whether the rows are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.scan.source().memory().is_some()
    }

    /// The number of columns of V.
    pub fn latent(&self) -> usize {
        self.latent
    }

    /// The switch that ends the work.
    pub fn stop(&self) -> &Stop {
        self.scan.stop()
    }

    /// The scaling of a view.
    pub fn view(&self, view: usize) -> Scaled {
        Scaled { views: self.scaled_views.clone(), view, first: self.range.start }
    }

    /// The views of each presence pattern.
    pub fn patterns(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        (0..self.patterns.len()).map(|pattern| self.patterns.views(pattern))
    }

    /// The presence pattern of an instance.
    pub fn pattern(&self, instance: usize) -> usize {
        self.patterns.of(self.range.start + instance)
    }

    /// The rows of a range of instances in a view: borrowed if they are in memory, otherwise read into the buffer.
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

    /// The rows of a view in device memory, if they are there, with the row of each instance. They equal the rows that
    /// [`read`](Self::read) returns and stay in place for the lifetime of the load.
    pub fn device_rows(&self, view: usize) -> Option<(DeviceRows, Index<'_>)> {
        let (rows, index) = self.scan.source().device_rows(view)?;
        let index = match index {
            Index::From(first) => Index::From(first + self.range.start),
            Index::Rows(all) => Index::Rows(all.get(self.range.clone())?),
        };
        Some((rows, index))
    }
}

/// The scaling of a view: `x' = f (x − m) ∘ c`, with a row factor f, a shift m and feature factors c. Products with
/// scaled rows follow from products with the stored rows,
///
/// ```text
/// x'ᵀ U     = f ( xᵀŨ − o )                     Ũ, o = fold(U)
/// Σ x' vᵀ   = unfold( Σ x (f v)ᵀ, Σ f v )
/// ```
///
/// except where that would lose precision: such rows must be [stored scaled](Self::store), and f is 1.
pub struct Scaled {
    views: Arc<[ScaledView]>,
    view: usize,
    /// The instance with number 0.
    first: usize,
}

impl Scaled {
    fn scaled_view(&self) -> &ScaledView {
        &self.views[self.view]
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.scaled_view().features()
    }

    /// The layout of the rows.
    pub fn layout(&self) -> Layout {
        self.scaled_view().layout()
    }

    /// The factor f of an instance.
    pub fn factor(&self, instance: usize) -> f64 {
        self.scaled_view().factor(self.first + instance)
    }

    /// The factor f, if it is the same for all instances.
    pub fn common_factor(&self) -> Option<f64> {
        self.scaled_view().common_factor()
    }

    /// Whether rows must be stored scaled.
    pub fn is_stored_scaled(&self) -> bool {
        self.scaled_view().is_by_row()
    }

    /// Writes the scaled row of an instance, for views whose rows must be stored scaled.
    pub fn store(&self, block: &Block<'_>, (instance, at): (usize, usize), row: &mut Vec<f64>) {
        self.scaled_view().scaled_row(block, (self.first + instance, at), row);
    }

    /// The terms of [`store`](Self::store) for an accelerator that scales the rows on the device: the value x of a
    /// feature is stored as `(x − m) c f − μ`, and as `−μ` if c is 0, in double precision and in this order. Returns m,
    /// c and μ of each feature; [`store_factor`](Self::store_factor) is f.
    pub fn store_terms(&self) -> Vec<[f64; 3]> {
        self.scaled_view().scaled_terms()
    }

    /// The factor f of an instance whose row is stored scaled.
    pub fn store_factor(&self, instance: usize) -> f64 {
        self.scaled_view().full_factor(self.first + instance)
    }

    /// `Ũ` and `o`.
    pub fn fold(&self, basis: &Matrix) -> (Matrix, Vec<f64>) {
        self.scaled_view().fold(basis)
    }

    /// `Σ x' vᵀ` from `Σ x (f v)ᵀ` and `Σ f v`.
    pub fn unfold(&self, sums: &mut Matrix, weights: &[f64]) {
        self.scaled_view().unfold(sums, weights);
    }

    /// `Σ_j w_j ‖x'_j‖²` over all instances, without missing cells.
    pub fn squares(&self) -> f64 {
        self.scaled_view().sum_squares
    }

    /// Whether any row has missing cells.
    pub fn lacks_cells(&self) -> bool {
        self.scaled_view().lacks_cells
    }

    /// The missing cells of a row: each feature with the scaled value that fills the cell.
    pub fn missing_cells(&self, block: &Block<'_>, (instance, row): (usize, usize)) -> Vec<(u32, f64)> {
        let (scaled_view, at) = (self.scaled_view(), (self.first + instance, row));
        scaled_view
            .holes(block, row)
            .map(|f| (crate::index::index(f), scaled_view.value(block, at, f)))
            .collect()
    }
}

impl NearestOthers {
    /// Empty lists for this number of instances.
    pub fn none(instances: usize, count: usize) -> Self {
        Self { others: vec![MISSING; instances * count], squares: vec![f32::INFINITY; instances * count] }
    }
}

/// An error of an accelerator; the reason is one sentence.
pub fn refused(name: &str, reason: impl Into<String>) -> Error {
    Error::Accelerator { name: name.into(), reason: reason.into() }
}
