//! Where rows come from. Whoever holds the rows of several views, in memory, in files or elsewhere, is a [`Source`].

mod buffer;
mod holes;

use std::ops::Range;

pub use crate::device::DeviceRows;
pub use crate::index::{Index, MISSING};
pub use crate::kernel::Csr;
use crate::kernel::Scalar;
use crate::{Layout, Schema};
pub use buffer::Buffer;
pub(crate) use holes::HoleRows;
pub use holes::Holes;

/// Why rows could not be read: whatever the source says. Who asked adds the view and the instances.
pub type ReadError = Box<dyn std::error::Error + Send + Sync>;

/// Something that hands out the rows of several views.
///
/// Rows are asked for from the first instance to the last, some thousands at a time, in every pass over the data. Reading
/// happens on a thread of its own, ahead of those that compute, so a source may take its time and may use rayon. What is
/// read is compared with the [`Schema`]; rows that do not fit are an error. A cell of a dense row that is missing is NaN.
///
/// [`Views`](crate::Views) is the source in memory.
pub trait Source: Sync {
    /// What there is. It must not change.
    fn schema(&self) -> &Schema;

    /// Reads the rows of a range of instances in a view into the buffer, which is as some earlier call has left it; see
    /// [`Buffer`] for what goes where.
    ///
    /// # Errors
    /// When the rows cannot be read.
    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError>;

    /// The way to single rows, if there is one that is faster than to read all of them. Samples are drawn by it.
    fn random_access(&self) -> Option<&dyn RandomAccess> {
        None
    }

    /// The rows where they lie, if they are in memory.
    #[doc(hidden)]
    fn memory(&self) -> Option<&dyn Memory> {
        None
    }

    /// The rows of a view where they lie, if that is in the memory of a machine beside the processor, and which of them is which
    /// instance, of all instances. They must be what [`read`](Source::read) gives: whoever changes rows on their way says nothing.
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

    /// Whether a view shows an instance.
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

/// A source from which single rows can be had.
pub trait RandomAccess: Sync {
    /// Reads the rows of some instances, in increasing order, into the buffer, as [`Source::read`] does.
    ///
    /// # Errors
    /// When the rows cannot be read.
    fn pick(&self, view: usize, instances: &[u32], buffer: &mut Buffer) -> Result<(), ReadError>;
}

/// The rows of one matrix that is not in memory, such as a file: what a [`View`](crate::View) can be made of, so that rows
/// on disk are joined by ID, masked and fitted like those in memory.
pub trait RowStore: Send + Sync {
    /// The number of rows and of columns.
    fn shape(&self) -> (usize, usize);

    /// How rows are stored.
    fn layout(&self) -> Layout;

    /// The values that a sparse matrix stores in all.
    fn stored(&self) -> Option<usize> {
        None
    }

    /// Reads a range of rows into the buffer, whose index is of no interest.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read(&self, rows: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError>;

    /// Reads some rows, in increasing order, into the buffer.
    ///
    /// # Errors
    /// When they cannot be read.
    fn pick(&self, rows: &[u32], buffer: &mut Buffer) -> Result<(), ReadError>;

    /// Where the rows lie, if they are dense and in the memory of a machine beside the processor. They must stay there, unchanged,
    /// for as long as this lives. An accelerator that is this machine takes them without reading them.
    fn device_rows(&self) -> Option<DeviceRows> {
        None
    }
}

/// Rows in memory: nothing is read, only looked at, by any thread.
#[doc(hidden)]
pub trait Memory: Sync {
    /// The rows of a range of instances; the buffer is room for those that have to be put together.
    fn block<'b>(&'b self, view: usize, instances: Range<usize>, buffer: &'b mut Buffer) -> Block<'b>;

    /// The rows of some instances, in increasing order.
    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Block<'b>;
}

/// The rows of some instances in one view.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// A matrix that holds them.
    pub rows: Rows<'a>,
    /// Which of its rows is which instance.
    pub index: Index<'a>,
    /// Which cells of the rows were missing and have been filled, if the rows are [prepared](crate::Prepared).
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
    pub(crate) fn bytes(&self, row: usize, features: usize) -> usize {
        let stored = |offsets: &[usize]| offsets[row + 1] - offsets[row];
        match self {
            Self::DenseF32(_) => 4 * features,
            Self::DenseF64(_) => 8 * features,
            Self::SparseF32(csr) => 8 * stored(csr.offsets),
            Self::SparseF64(csr) => 12 * stored(csr.offsets),
        }
    }

    /// Whether a dense row holds nothing but NaN.
    pub(crate) fn is_nan(&self, row: usize, features: usize) -> bool {
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
