//! A table: instances in rows.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use daimc::source::RowStore;

use crate::Place;

/// One matrix as it was read, instances in rows. NaN stands for a missing value.
#[derive(Clone, Debug)]
pub struct Table {
    /// Where it comes from.
    pub path: PathBuf,
    /// The array of the container, where one was picked.
    pub variable: Option<String>,
    /// The IDs of the instances; where there are none, rows are numbered from 0.
    pub ids: Option<Vec<String>>,
    /// The names of the features.
    pub features: Option<Vec<String>>,
    /// How many instances.
    pub rows: usize,
    /// How many features.
    pub columns: usize,
    /// The values.
    pub cells: Cells,
    /// For text, the line on which each record of the file starts (a record is an instance, or a feature where
    /// the table was transposed).
    pub lines: Option<Vec<u32>>,
    /// Whether the file had instances in columns.
    pub transposed: bool,
    /// The names of the columns that were left out because [`Reading::drop`](crate::Reading::drop) has them.
    pub dropped: Vec<String>,
    /// What people should know of how it was read, one sentence each, whose subject is the file.
    pub remarks: Vec<String>,
}

/// The values of a table.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Row by row.
    DenseF32(Vec<f32>),
    /// Row by row.
    DenseF64(Vec<f64>),
    /// Compressed rows.
    SparseF32(Csr<f32>),
    /// Compressed rows.
    SparseF64(Csr<f64>),
    /// On disk.
    Stored(Stored),
}

/// Compressed rows: the entries of row i stand at `offsets[i]..offsets[i + 1]`, columns in increasing order.
#[derive(Clone, Debug)]
pub struct Csr<T> {
    /// One more than there are rows.
    pub offsets: Vec<usize>,
    /// The column of each entry.
    pub columns: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<T>,
}

/// The rows of a table that are on disk.
#[derive(Clone)]
pub struct Stored {
    pub(crate) rows: Arc<dyn RowStore>,
    /// How many values of each row are missing.
    pub(crate) missing: Arc<Vec<u32>>,
}

impl fmt::Debug for Stored {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Stored({:?}, {:?})", self.rows.shape(), self.rows.layout())
    }
}

impl Stored {
    /// How the rows are stored.
    #[must_use]
    pub fn layout(&self) -> daimc::Layout {
        self.rows.layout()
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &dyn RowStore {
        &*self.rows
    }

    /// How many values are stored.
    #[must_use]
    pub fn entries(&self) -> usize {
        let (rows, columns) = self.rows.shape();
        self.rows.stored().unwrap_or(rows * columns)
    }
}

impl Table {
    /// The ID of a row, or its number.
    pub(crate) fn id(&self, row: usize) -> String {
        self.ids.as_ref().map_or_else(|| row.to_string(), |ids| ids[row].clone())
    }

    /// Where it comes from.
    pub(crate) fn place(&self) -> Place {
        Place { path: self.path.clone(), variable: self.variable.clone(), line: None, column: None }
    }

    /// Where the ID of an instance stands.
    pub(crate) fn place_of_id(&self, row: usize) -> Place {
        let Some(lines) = &self.lines else { return self.place() };
        if self.transposed {
            return Place { column: Some(row + 1 + usize::from(self.features.is_some())), ..self.place() };
        }
        Place { line: lines.get(row).map(|line| *line as usize), ..self.place() }
    }
}
