//! The buffer that a source reads rows into.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Block, Csr, HoleRows, Index, MISSING, Rows};
use crate::Layout;
use crate::index::index;
use crate::kernel::Scalar;
use crate::schema::ViewOf;

/// Rows that a [`Source`](super::Source) has read. The arrays are reused between reads: a source overwrites those that
/// the layout of the view needs.
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

    /// Clears the rows and keeps the capacity.
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

    /// Copies the rows of the first `instances` instances of a block.
    pub fn copy(&mut self, block: &Block<'_>, instances: usize, features: usize) {
        self.clear();
        (0..instances).for_each(|i| self.push(block, i, features));
    }

    /// Appends the row of the i-th instance of a block.
    pub fn push(&mut self, block: &Block<'_>, i: usize, features: usize) {
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
        self.holes.push(block.holes.row(row));
        self.offsets.push(self.columns.len());
        self.index.push(index(self.offsets.len() - 2));
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

    /// Checks that the rows are those of the given instances of a view: enough whole rows, for the present instances only.
    pub fn check(
        &self,
        view: ViewOf<'_>,
        mut instances: impl ExactSizeIterator<Item = usize>,
    ) -> Result<(), String> {
        let (count, features) = (instances.len(), view.features());
        let rows = match view.layout() {
            Layout::DenseF32 => self.f32.len() / features.max(1),
            Layout::DenseF64 => self.f64.len() / features.max(1),
            Layout::SparseF32 | Layout::SparseF64 => self.offsets.len().saturating_sub(1),
        };
        let given = if self.index.is_empty() { rows } else { self.index.len() };
        if given < count {
            return Err(format!("{count} rows were requested, but {given} were read"));
        }
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

fn is_whole<T: Scalar>(csr: Csr<'_, T>, row: usize, features: usize) -> bool {
    let range = csr.offsets[row]..csr.offsets[row + 1];
    // The maximum of all columns, without a branch for each.
    let in_range = |columns: &[u32]| columns.iter().max().is_none_or(|&column| (column as usize) < features);
    csr.values.get(range.clone()).is_some() && csr.columns.get(range).is_some_and(in_range)
}
