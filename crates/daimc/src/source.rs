//! Where rows come from. A sweep reads blocks of instances through [`Source`]; they need not be in memory.

mod checked;
mod stoppable;

use std::ops::Range;

use crate::kernel::Scalar;
use crate::{Error, Result};
pub(crate) use checked::{Checked, validate};
pub use stoppable::Stoppable;

/// The entry of an index that says: this instance is missing.
pub const MISSING: u32 = u32::MAX;

/// Something that hands out the rows of several views, block by block.
///
/// [`Views`](crate::Views) is the source in memory. A source on disk reads into the buffer that it is given and
/// returns a block that borrows from it; blocks are asked for from several threads at once.
pub trait Source: Sync {
    /// The number of instances.
    fn instances(&self) -> usize;

    /// The number of views.
    fn views(&self) -> usize;

    /// The name of a view.
    fn name(&self, view: usize) -> &str;

    /// The number of features of a view.
    fn features(&self, view: usize) -> usize;

    /// Whether a view shows an instance.
    fn is_present(&self, view: usize, instance: usize) -> bool;

    /// The ID of an instance, for messages.
    fn id(&self, instance: usize) -> String {
        instance.to_string()
    }

    /// The rows of a range of instances in a view. A view has the same layout and type in every block.
    ///
    /// # Errors
    /// When the rows cannot be read.
    fn block<'b>(&'b self, view: usize, instances: Range<usize>, buffer: &'b mut Buffer)
    -> Result<Block<'b>>;

    /// The rows of some instances (in increasing order) in a view. Unless a source knows better, it reads
    /// block after block and keeps the rows that are asked for.
    ///
    /// # Errors
    /// When the rows cannot be read.
    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Result<Block<'b>> {
        let mut part = Buffer::default();
        let mut kept = Buffer::default();
        let mut kind = None;
        let mut rest = instances;
        while let Some(&first) = rest.first() {
            let start = first as usize;
            let end = (start + PICK_BLOCK).min(self.instances());
            let (now, later) = rest.split_at(rest.partition_point(|&i| (i as usize) < end));
            let unreadable = |reason: String| {
                let source = reason.into();
                Error::Read { view: self.name(view).into(), first: start, last: end, source }
            };
            if now.is_empty() {
                return Err(unreadable(format!("there are only {} instances", self.instances())));
            }
            let block = self.block(view, start..end, &mut part)?;
            let features = self.features(view);
            checked::fits(&block, end - start, features).map_err(unreadable)?;
            for &i in now {
                kept.push(&block, i as usize - start, features);
            }
            kind = Some(block.rows.kind());
            rest = later;
        }
        *buffer = kept;
        Ok(buffer.block(kind.unwrap_or(Kind::DenseF64)))
    }
}

/// Instances that [`Source::pick`] reads at a time.
const PICK_BLOCK: usize = 1024;

/// Memory that a [`Source`] may read into; it is kept from block to block.
#[derive(Debug, Default)]
pub struct Buffer {
    /// Values of `f32` rows.
    pub f32: Vec<f32>,
    /// Values of `f64` rows.
    pub f64: Vec<f64>,
    /// Offsets of sparse rows.
    pub offsets: Vec<usize>,
    /// Columns of sparse rows.
    pub columns: Vec<u32>,
    /// For each instance its row, or [`MISSING`].
    pub index: Vec<u32>,
    /// Bytes as they were read.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    DenseF32,
    DenseF64,
    SparseF32,
    SparseF64,
}

impl Buffer {
    /// Appends the row of instance `i` of a block.
    fn push(&mut self, block: &Block<'_>, i: usize, features: usize) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        let Some(row) = block.index.row(i) else {
            self.index.push(MISSING);
            return;
        };
        match &block.rows {
            Rows::DenseF32(x) => self.f32.extend_from_slice(&x[row * features..(row + 1) * features]),
            Rows::DenseF64(x) => self.f64.extend_from_slice(&x[row * features..(row + 1) * features]),
            Rows::SparseF32(csr) => {
                let (columns, values) = csr.row(row);
                self.columns.extend_from_slice(columns);
                self.f32.extend_from_slice(values);
            }
            Rows::SparseF64(csr) => {
                let (columns, values) = csr.row(row);
                self.columns.extend_from_slice(columns);
                self.f64.extend_from_slice(values);
            }
        }
        self.offsets.push(self.columns.len());
        self.index.push(crate::views::index(self.offsets.len() - 2));
    }

    fn block(&self, kind: Kind) -> Block<'_> {
        let (offsets, columns) = (&self.offsets[..], &self.columns[..]);
        let rows = match kind {
            Kind::DenseF32 => Rows::DenseF32(&self.f32),
            Kind::DenseF64 => Rows::DenseF64(&self.f64),
            Kind::SparseF32 => Rows::SparseF32(Csr { offsets, columns, values: &self.f32 }),
            Kind::SparseF64 => Rows::SparseF64(Csr { offsets, columns, values: &self.f64 }),
        };
        Block { rows, index: Index::Rows(&self.index) }
    }
}

/// The rows of some instances in one view.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// A matrix that holds them.
    pub rows: Rows<'a>,
    /// Which of its rows is which instance.
    pub index: Index<'a>,
}

/// Which row of a matrix holds the i-th instance of a block.
#[derive(Clone, Copy, Debug)]
pub enum Index<'a> {
    /// Row `first + i`; nothing is missing.
    From(usize),
    /// The i-th of these rows, or none where it is [`MISSING`].
    Rows(&'a [u32]),
}

impl Index<'_> {
    /// The row of the i-th instance, if it is there.
    #[must_use]
    #[inline]
    pub fn row(&self, i: usize) -> Option<usize> {
        match self {
            Self::From(first) => Some(first + i),
            Self::Rows(rows) => (rows[i] != MISSING).then_some(rows[i] as usize),
        }
    }
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

    fn kind(&self) -> Kind {
        match self {
            Self::DenseF32(_) => Kind::DenseF32,
            Self::DenseF64(_) => Kind::DenseF64,
            Self::SparseF32(_) => Kind::SparseF32,
            Self::SparseF64(_) => Kind::SparseF64,
        }
    }
}

/// A sparse matrix in compressed rows.
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a, T> {
    /// Row i stands at `offsets[i]..offsets[i + 1]`.
    pub offsets: &'a [usize],
    /// The column of each value, increasing within a row.
    pub columns: &'a [u32],
    /// The values.
    pub values: &'a [T],
}

impl<'a, T: Scalar> Csr<'a, T> {
    /// The columns and values of a row.
    #[inline]
    #[must_use]
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [T]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Whether every one of the `features` values of a row is stored and `test` holds for them.
    pub(crate) fn row_is(&self, row: usize, features: usize, test: impl Fn(&[T]) -> bool) -> bool {
        let (_, values) = self.row(row);
        values.len() == features && test(values)
    }
}
