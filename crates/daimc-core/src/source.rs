//! Sources of rows. A [`Source`] reads the rows of several views from memory, files or any other storage.

mod buffer;
mod holes;

use std::ops::Range;

pub use crate::device::DeviceRows;
pub use crate::index::{Index, MISSING};
pub use crate::kernel::Csr;
use crate::kernel::Scalar;
use crate::{Layout, Schema};
pub use buffer::{Buffer, Row};
pub(crate) use holes::HoleRows;
pub use holes::Holes;

/// The reason why rows could not be read. The caller adds the view and the instances to the message.
pub type ReadError = Box<dyn std::error::Error + Send + Sync>;

/// A reader of the rows of several views.
///
/// A fit reads the rows in passes. Each pass calls [`read`](Self::read) for successive ranges of instances, from the
/// first to the last, about 8 MB at a time, and within a range for each view. For a source that is not in memory, the
/// calls of a pass come from a dedicated thread that reads ahead of the computing threads, so `read` may block and may
/// use rayon. Passes can overlap (several runs of a fit, for example), so `read` can be called from several threads at
/// the same time. A fit makes several passes besides its iterations, and one per iteration.
///
/// Every call must return the same rows for the same arguments. The library compares what was read with the [`Schema`]
/// and fails if it does not match. NaN in a dense row marks a missing cell. An error of `read` ends the work with
/// [`Error::Read`](crate::Error::Read), which names the view and the instances; the call is not repeated.
///
/// [`Views`](crate::Views) is the source in memory.
pub trait Source: Sync {
    /// The schema of the rows. It must not change.
    fn schema(&self) -> &Schema;

    /// Reads the rows of a range of instances in a view into the buffer, which holds the contents of an earlier call;
    /// see [`Buffer`] for the layout.
    ///
    /// # Errors
    /// When the rows cannot be read.
    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError>;

    /// Access to single rows, if it is faster than reading all of them. Samples are read through it. Without it, a
    /// sample costs a pass over the data.
    fn random_access(&self) -> Option<&dyn RandomAccess> {
        None
    }

    /// The rows in place, if they are in memory. They are then borrowed, and [`read`](Self::read) is not called.
    fn memory(&self) -> Option<&dyn Memory> {
        None
    }

    /// The rows of a view in device memory, if they are there, with the row of each instance. They must equal the rows
    /// that [`read`](Source::read) returns: a source that modifies the rows of another source returns `None`.
    fn device_rows(&self, view: usize) -> Option<(DeviceRows, Index<'_>)> {
        let _ = view;
        None
    }

    /// The number of instances.
    fn instances(&self) -> usize {
        self.schema().instances()
    }

    /// The number of views.
    fn views(&self) -> usize {
        self.schema().len()
    }

    /// The name of a view.
    fn name(&self, view: usize) -> &str {
        self.schema().view_name(view)
    }

    /// The number of features of a view.
    fn features(&self, view: usize) -> usize {
        self.schema().view(view).features()
    }

    /// Whether a view contains an instance.
    fn is_present(&self, view: usize, instance: usize) -> bool {
        self.schema().view(view).shows(instance)
    }

    /// The ID of an instance, for messages.
    fn id(&self, instance: usize) -> String {
        self.schema().ids().get(instance)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn schema(&self) -> &Schema {
        (**self).schema()
    }

    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        (**self).read(view, instances, buffer)
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        (**self).random_access()
    }

    fn memory(&self) -> Option<&dyn Memory> {
        (**self).memory()
    }

    fn device_rows(&self, view: usize) -> Option<(DeviceRows, Index<'_>)> {
        (**self).device_rows(view)
    }
}

/// Access to single rows of a source.
///
/// The library calls [`pick`](Self::pick) for samples, usually a few thousand instances at a time, from the thread that
/// needs them; calls can overlap with each other and with [`Source::read`].
pub trait RandomAccess: Sync {
    /// Reads the rows of the given instances, in increasing order, into the buffer, as [`Source::read`] does.
    ///
    /// # Errors
    /// When the rows cannot be read. The error ends the work, as for [`Source::read`].
    fn pick(&self, view: usize, instances: &[u32], buffer: &mut Buffer) -> Result<(), ReadError>;
}

/// The rows of one matrix that is not in memory, such as a file. A [`View`](crate::View) can be made of it, so that
/// rows on disk are joined by ID, masked and fitted like rows in memory.
///
/// Its methods are called as those of [`Source`] and [`RandomAccess`] are: `read` from the reading thread of a pass,
/// `pick` for samples and for rows that are not in the order of the store. Calls can overlap, and an error ends the
/// work.
pub trait RowStore: Send + Sync {
    /// The numbers of rows and columns.
    fn shape(&self) -> (usize, usize);

    /// The layout of the rows.
    fn layout(&self) -> Layout;

    /// The total number of stored values of a sparse matrix.
    fn stored(&self) -> Option<usize> {
        None
    }

    /// Replaces the contents of the buffer by a range of rows. The index of the buffer is ignored.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read(&self, rows: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError>;

    /// Replaces the contents of the buffer by the given rows, which are in increasing order.
    ///
    /// # Errors
    /// When they cannot be read.
    fn pick(&self, rows: &[u32], buffer: &mut Buffer) -> Result<(), ReadError>;

    /// The rows in device memory, if they are dense and there. They must stay there, unchanged, for the lifetime of the
    /// store. An accelerator on the same device uses them without reading them.
    fn device_rows(&self) -> Option<DeviceRows> {
        None
    }
}

/// Rows in memory, which are borrowed instead of read. [`Views`](crate::Views) implements it.
///
/// [`Source::memory`] returns it. A pass then calls [`block`](Self::block) on each of the computing threads, for a block
/// of a few thousand instances at a time and in any order; [`pick`](Self::pick) is called for samples. Calls can overlap.
/// Both methods return the rows that [`Source::read`] returns. They cannot fail, and their rows are not compared with the
/// schema: a row of the wrong length is a panic or a wrong result. Without missing instances, an implementation returns
/// all rows and the number of the first:
///
/// ```
/// use std::ops::Range;
///
/// use daimc_core::source::{Block, Buffer, Holes, Index, Memory, ReadError, Rows, Source};
/// use daimc_core::{Ids, Layout, Scale, Scaling, Schema, View, ViewSchema, Views};
///
/// struct Image {
///     pixels: Vec<f32>,
///     schema: Schema,
/// }
///
/// impl Source for Image {
///     fn schema(&self) -> &Schema {
///         &self.schema
///     }
///
///     fn read(&self, _: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
///         buffer.clear();
///         buffer.f32.extend_from_slice(&self.pixels[3 * instances.start..3 * instances.end]);
///         Ok(())
///     }
///
///     fn memory(&self) -> Option<&dyn Memory> {
///         Some(self)
///     }
/// }
///
/// impl Memory for Image {
///     fn block<'b>(&'b self, _: usize, instances: Range<usize>, _: &'b mut Buffer) -> Block<'b> {
///         let index = Index::From(instances.start);
///         Block { rows: Rows::DenseF32(&self.pixels), index, holes: Holes::default() }
///     }
///
///     fn pick<'b>(&'b self, _: usize, instances: &[u32], buffer: &'b mut Buffer) -> Block<'b> {
///         buffer.index.clear();
///         buffer.index.extend_from_slice(instances);
///         Block { rows: Rows::DenseF32(&self.pixels), index: Index::Rows(&buffer.index), holes: Holes::default() }
///     }
/// }
///
/// let pixels: Vec<f32> = (0..300).map(|i| (i % 2) as f32 + (i * 7919 % 13) as f32 / 40.0).collect();
/// let view = ViewSchema::new("colours", 3, Layout::DenseF32).holes(0);
/// let image = Image { pixels: pixels.clone(), schema: Schema::new(Ids::Numbers(100), vec![view])? };
/// let views = Views::new(vec![View::dense("colours", 3, pixels)?])?;
/// let scaling = |source: &dyn Source| Ok::<_, daimc_core::Error>(Scaling::of_view(source, 0, Scale::MinMax)?.0);
/// assert_eq!(scaling(&image)?, scaling(&views)?);
/// # Ok::<(), daimc_core::Error>(())
/// ```
pub trait Memory: Sync {
    /// Borrows the rows of a range of instances. Rows that are not stored in the layout of the view can be gathered in
    /// the buffer, which contains those of an earlier call.
    fn block<'b>(&'b self, view: usize, instances: Range<usize>, buffer: &'b mut Buffer) -> Block<'b>;

    /// Borrows the rows of the given instances, in increasing order. The buffer can hold their index.
    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Block<'b>;
}

/// The rows of some instances in one view.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// A matrix that contains them.
    pub rows: Rows<'a>,
    /// The row of each instance.
    pub index: Index<'a>,
    /// The cells that were missing and have been filled, if the rows are [prepared](crate::Prepared).
    pub holes: Holes<'a>,
}

/// A matrix of rows, dense (row by row) or sparse.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// Dense, single precision.
    DenseF32(&'a [f32]),
    /// Dense, double precision.
    DenseF64(&'a [f64]),
    /// Sparse, single precision.
    SparseF32(Csr<'a, f32>),
    /// Sparse, double precision.
    SparseF64(Csr<'a, f64>),
}

impl Rows<'_> {
    /// The bytes of a row.
    pub fn bytes(&self, row: usize, features: usize) -> usize {
        let stored = |offsets: &[usize]| offsets[row + 1] - offsets[row];
        match self {
            Self::DenseF32(_) => 4 * features,
            Self::DenseF64(_) => 8 * features,
            Self::SparseF32(csr) => 8 * stored(csr.offsets),
            Self::SparseF64(csr) => 12 * stored(csr.offsets),
        }
    }

    /// Whether a dense row holds nothing but NaN.
    pub fn is_nan(&self, row: usize, features: usize) -> bool {
        fn all<T: Scalar>(values: &[T]) -> bool {
            values.iter().all(|value| value.to_f64().is_nan())
        }
        let values = row * features..(row + 1) * features;
        match self {
            Self::DenseF32(x) => all(&x[values]),
            Self::DenseF64(x) => all(&x[values]),
            Self::SparseF32(_) | Self::SparseF64(_) => false,
        }
    }
}
