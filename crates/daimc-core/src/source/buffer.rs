//! The buffer that a source reads rows into.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Block, Csr, HoleRows, Index, MISSING, ReadError, Rows};
use crate::index::index;
use crate::kernel::Scalar;
use crate::schema::ViewOf;
use crate::{Layout, ViewSchema};

/// The row of an instance in a view, for [`Buffer::push`]. Slices, arrays and vectors of values convert to it, pairs of
/// columns and values, and options of these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Row<'a> {
    /// The instance is missing in the view.
    Missing,
    /// All values, in single precision; NaN marks a missing cell.
    DenseF32(&'a [f32]),
    /// All values, in double precision; NaN marks a missing cell.
    DenseF64(&'a [f64]),
    /// The columns, in increasing order, and their values in single precision.
    SparseF32(&'a [u32], &'a [f32]),
    /// The columns, in increasing order, and their values in double precision.
    SparseF64(&'a [u32], &'a [f64]),
}

impl Row<'_> {
    fn layout(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::DenseF32(_) => "DenseF32",
            Self::DenseF64(_) => "DenseF64",
            Self::SparseF32(..) => "SparseF32",
            Self::SparseF64(..) => "SparseF64",
        }
    }
}

impl<R: Into<Self>> From<Option<R>> for Row<'_> {
    fn from(row: Option<R>) -> Self {
        row.map_or(Self::Missing, R::into)
    }
}

macro_rules! rows {
    ($($type:ty => $dense:ident, $sparse:ident);*) => {$(
        impl<'a> From<&'a [$type]> for Row<'a> {
            fn from(values: &'a [$type]) -> Self {
                Self::$dense(values)
            }
        }

        impl<'a> From<&'a Vec<$type>> for Row<'a> {
            fn from(values: &'a Vec<$type>) -> Self {
                Self::$dense(values)
            }
        }

        impl<'a, const N: usize> From<&'a [$type; N]> for Row<'a> {
            fn from(values: &'a [$type; N]) -> Self {
                Self::$dense(values)
            }
        }

        impl<'a> From<(&'a [u32], &'a [$type])> for Row<'a> {
            fn from((columns, values): (&'a [u32], &'a [$type])) -> Self {
                Self::$sparse(columns, values)
            }
        }

        impl<'a> From<(&'a Vec<u32>, &'a Vec<$type>)> for Row<'a> {
            fn from((columns, values): (&'a Vec<u32>, &'a Vec<$type>)) -> Self {
                Self::$sparse(columns, values)
            }
        }

        impl<'a, const N: usize> From<(&'a [u32; N], &'a [$type; N])> for Row<'a> {
            fn from((columns, values): (&'a [u32; N], &'a [$type; N])) -> Self {
                Self::$sparse(columns, values)
            }
        }
    )*};
}
rows!(f32 => DenseF32, SparseF32; f64 => DenseF64, SparseF64);

/// Rows that a [`Source`](super::Source) has read. A source [clears](Self::clear) it and [pushes](Self::push) one row
/// per instance. A source that has whole blocks of rows in the layout of the view overwrites the arrays instead, which
/// are reused between reads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Buffer {
    /// Values in single precision: all values of dense rows, one row after another, or the stored values of sparse rows.
    pub f32: Vec<f32>,
    /// Values in double precision.
    pub f64: Vec<f64>,
    /// Sparse rows: row r is at `offsets[r]..offsets[r + 1]` of the columns and values.
    pub offsets: Vec<usize>,
    /// Sparse rows: the column of each value, increasing within a row.
    pub columns: Vec<u32>,
    /// The row of each requested instance in the arrays above, or [`MISSING`]; empty if all instances are present, in order.
    pub index: Vec<u32>,
    /// Scratch memory for raw bytes, for the use of the source.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// The missing cells of the rows that have been filled.
    pub(crate) holes: HoleRows,
}

/// Fails if another number of rows was read than was requested.
fn requested(count: usize, read: usize) -> Result<(), String> {
    if read == count {
        return Ok(());
    }
    let hint = if read > count { "; is the buffer cleared before rows are pushed?" } else { "" };
    Err(format!("{count} rows were requested, but {read} were read{hint}"))
}

impl Buffer {
    /// The rows of a range of the instances that were read.
    pub fn block(&self, layout: Layout, instances: Range<usize>) -> Block<'_> {
        let (offsets, columns) = (&self.offsets[..], &self.columns[..]);
        let rows = match layout {
            Layout::DenseF32 => Rows::DenseF32(&self.f32),
            Layout::DenseF64 => Rows::DenseF64(&self.f64),
            Layout::SparseF32 => Rows::SparseF32(Csr { offsets, columns, values: &self.f32 }),
            Layout::SparseF64 => Rows::SparseF64(Csr { offsets, columns, values: &self.f64 }),
        };
        let all = self.index.is_empty();
        Block {
            rows,
            index: if all { Index::From(instances.start) } else { Index::Rows(&self.index[instances]) },
            holes: self.holes.holes(),
        }
    }

    /// Removes all rows and keeps the capacity.
    pub fn clear(&mut self) {
        let Self { f32, f64, offsets, columns, index, bytes, holes } = self;
        f32.clear();
        f64.clear();
        offsets.clear();
        columns.clear();
        index.clear();
        bytes.clear();
        holes.clear();
    }

    /// Appends the row of the next instance, in the layout of the view, to a buffer that was [cleared](Self::clear)
    /// before the first one.
    ///
    /// ```
    /// use daimc_core::source::{Buffer, Row};
    /// use daimc_core::{Layout, ViewSchema};
    ///
    /// let view = ViewSchema::new("age and height", 2, Layout::DenseF64);
    /// let mut buffer = Buffer::default();
    /// buffer.push(&view, &[47.0, 1.8])?;
    /// buffer.push(&view, Row::Missing)?;
    /// assert!(buffer.push(&view, &[47.0]).is_err());
    ///
    /// let words = ViewSchema::new("words", 5000, Layout::SparseF32);
    /// buffer.clear();
    /// buffer.push(&words, (&[17, 4031], &[2.0_f32, 1.0]))?;
    /// # Ok::<(), daimc_core::source::ReadError>(())
    /// ```
    ///
    /// # Errors
    /// When the row has another layout or another number of values than the view, or sparse columns that are not in
    /// increasing order and below the number of features.
    pub fn push<'r>(&mut self, view: &ViewSchema, row: impl Into<Row<'r>>) -> Result<(), ReadError> {
        let row = row.into();
        let fault = match (row, view.layout()) {
            (Row::Missing, _) => None,
            (Row::DenseF32(x), Layout::DenseF32) => wrong_length(x.len(), view.features()),
            (Row::DenseF64(x), Layout::DenseF64) => wrong_length(x.len(), view.features()),
            (Row::SparseF32(columns, x), Layout::SparseF32) => {
                wrong_columns(columns, x.len(), view.features())
            }
            (Row::SparseF64(columns, x), Layout::SparseF64) => {
                wrong_columns(columns, x.len(), view.features())
            }
            (row, layout) => Some(format!("is {}, and the layout of the view is {layout:?}", row.layout())),
        };
        if let Some(fault) = fault {
            return Err(format!("row {} of those that were read {fault}", self.index.len()).into());
        }
        self.append_row(row);
        Ok(())
    }

    fn append_row(&mut self, row: Row<'_>) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        match row {
            Row::Missing => return self.index.push(MISSING),
            Row::DenseF32(x) => self.f32.extend_from_slice(x),
            Row::DenseF64(x) => self.f64.extend_from_slice(x),
            Row::SparseF32(columns, x) => {
                self.columns.extend_from_slice(columns);
                self.f32.extend_from_slice(x);
            }
            Row::SparseF64(columns, x) => {
                self.columns.extend_from_slice(columns);
                self.f64.extend_from_slice(x);
            }
        }
        self.offsets.push(self.columns.len());
        self.index.push(index(self.offsets.len() - 2));
    }

    /// Copies the rows of the first `instances` instances of a block.
    pub fn copy(&mut self, block: &Block<'_>, instances: usize, features: usize) {
        self.clear();
        (0..instances).for_each(|i| self.push_from(block, i, features));
    }

    /// Appends the row of the i-th instance of a block.
    pub(crate) fn push_from(&mut self, block: &Block<'_>, i: usize, features: usize) {
        let Some(row) = block.index.row(i) else { return self.append_row(Row::Missing) };
        self.append_row(match &block.rows {
            Rows::DenseF32(x) => Row::DenseF32(&x[row * features..(row + 1) * features]),
            Rows::DenseF64(x) => Row::DenseF64(&x[row * features..(row + 1) * features]),
            Rows::SparseF32(csr) => csr.row(row).into(),
            Rows::SparseF64(csr) => csr.row(row).into(),
        });
        self.holes.push(block.holes.row(row));
    }

    /// Appends the pushed rows of another buffer, and clears it.
    pub fn append(&mut self, other: &mut Self) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        let (rows, stored) = (self.offsets.len() - 1, self.columns.len());
        let moved = |&row: &u32| if row == MISSING { MISSING } else { index(rows + row as usize) };
        self.index.extend(other.index.iter().map(moved));
        self.offsets.extend(other.offsets.iter().skip(1).map(|offset| stored + offset));
        self.columns.append(&mut other.columns);
        self.f32.append(&mut other.f32);
        self.f64.append(&mut other.f64);
        self.holes.append(&mut other.holes);
        other.clear();
    }

    /// Frees the arrays that rows of this layout do not need once reading is complete.
    pub fn trim(&mut self, layout: Layout) {
        if layout.is_dense() {
            self.offsets = Vec::new();
        }
        if self.holes.holes().is_empty() {
            self.holes = HoleRows::default();
        }
        if !self.index.contains(&MISSING) {
            self.index = Vec::new();
        }
    }

    /// The number of rows in the arrays.
    fn rows(&self, layout: Layout, features: usize) -> usize {
        match layout {
            Layout::DenseF32 => self.f32.len() / features.max(1),
            Layout::DenseF64 => self.f64.len() / features.max(1),
            Layout::SparseF32 | Layout::SparseF64 => self.offsets.len().saturating_sub(1),
        }
    }

    /// Checks that the arrays hold the rows that a [`RowStore`](super::RowStore) was asked for.
    pub(crate) fn holds(&self, layout: Layout, features: usize, count: usize) -> Result<(), String> {
        // Rows without features have no values to count.
        if layout.is_dense() && features == 0 {
            Ok(())
        } else {
            requested(count, self.rows(layout, features))
        }
    }

    /// Checks that the rows are those of the given instances of a view: one for each, whole, and missing where the schema says so.
    pub fn check(
        &self,
        view: ViewOf<'_>,
        mut instances: impl ExactSizeIterator<Item = usize>,
    ) -> Result<(), String> {
        let (count, features) = (instances.len(), view.features());
        let rows = self.rows(view.layout(), features);
        requested(count, if self.index.is_empty() { rows } else { self.index.len() })?;
        let block = self.block(view.layout(), 0..count);
        for i in 0..count {
            let instance = instances.next().unwrap_or_default();
            let row = block.index.row(i);
            if row.is_some() != view.shows(instance) {
                let (now, schema) = if row.is_some() { ("a", "missing") } else { ("no", "present") };
                return Err(format!(
                    "{now} row was read for instance {instance}, which is {schema} according to the schema"
                ));
            }
            let Some(row) = row else { continue };
            let whole = row < rows
                && match block.rows {
                    Rows::DenseF32(_) | Rows::DenseF64(_) => true,
                    Rows::SparseF32(csr) => is_whole(csr, row, features),
                    Rows::SparseF64(csr) => is_whole(csr, row, features),
                };
            if !whole {
                return Err(format!(
                    "row {row} of the {rows} that were read is not a row of {features} features"
                ));
            }
        }
        Ok(())
    }
}

fn wrong_length(found: usize, features: usize) -> Option<String> {
    (found != features).then(|| format!("has {found} values instead of {features}"))
}

fn wrong_columns(columns: &[u32], values: usize, features: usize) -> Option<String> {
    if columns.len() != values {
        return Some(format!("has {} columns but {values} values", columns.len()));
    }
    let ordered = columns.windows(2).all(|pair| pair[0] < pair[1]);
    let fits = columns.last().is_none_or(|&last| (last as usize) < features);
    (!ordered || !fits).then(|| format!("has columns that are not in increasing order below {features}"))
}

fn is_whole<T: Scalar>(csr: Csr<'_, T>, row: usize, features: usize) -> bool {
    let range = csr.offsets[row]..csr.offsets[row + 1];
    // The maximum of all columns, without a branch for each.
    let in_range = |columns: &[u32]| columns.iter().max().is_none_or(|&column| (column as usize) < features);
    csr.values.get(range.clone()).is_some() && csr.columns.get(range).is_some_and(in_range)
}
