//! A table: instances in rows.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use daimc_core::source::RowStore;

use crate::{Position, Reading};

/// One matrix with instances in rows. NaN is a missing value.
#[derive(Clone, Debug)]
pub struct Table {
    /// The file.
    pub path: PathBuf,
    /// The array of the container, if one was picked.
    pub variable: Option<String>,
    /// The IDs of the instances; without them, rows are numbered from 0.
    pub ids: Option<Vec<String>>,
    /// The names of the features.
    pub features: Option<Vec<String>>,
    /// The number of instances.
    pub rows: usize,
    /// The number of features.
    pub columns: usize,
    /// The values.
    pub cells: Cells,
    /// For text, the line on which each record starts. A record is an instance or, in a transposed table, a feature.
    pub lines: Option<Vec<u32>>,
    /// The file has instances in columns.
    pub transposed: bool,
    /// The columns that [`Reading::drop`](crate::Reading::drop) left out.
    pub dropped: Vec<String>,
    /// Notes for the user on how the file was read: predicates whose subject is the file.
    pub remarks: Vec<String>,
}

/// The values of a table.
#[derive(Clone, Debug)]
pub enum Cells {
    /// In row-major order.
    DenseF32(Vec<f32>),
    /// In row-major order.
    DenseF64(Vec<f64>),
    /// Compressed rows.
    SparseF32(Csr<f32>),
    /// Compressed rows.
    SparseF64(Csr<f64>),
    /// On disk.
    Stored(Stored),
}

/// Compressed sparse rows: row i has the entries `offsets[i]..offsets[i + 1]`, with increasing columns.
#[derive(Clone, Debug)]
pub struct Csr<T> {
    /// The start of each row, and the number of entries.
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
    /// The number of missing values of each row.
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
    pub fn layout(&self) -> daimc_core::Layout {
        self.rows.layout()
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &dyn RowStore {
        &*self.rows
    }

    /// The number of stored values.
    #[must_use]
    pub fn entries(&self) -> usize {
        let (rows, columns) = self.rows.shape();
        self.rows.stored().unwrap_or(rows * columns)
    }
}

impl Table {
    /// A table without IDs and feature names.
    pub(crate) fn new(place: Position, rows: usize, columns: usize, cells: Cells, how: Reading) -> Self {
        Self {
            path: place.path,
            variable: place.variable,
            ids: None,
            features: None,
            rows,
            columns,
            cells,
            lines: None,
            transposed: how.transpose,
            dropped: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// The ID of a row, or its number.
    pub(crate) fn id(&self, row: usize) -> String {
        self.ids.as_ref().map_or_else(|| row.to_string(), |ids| ids[row].clone())
    }

    /// The file and variable.
    pub(crate) fn place(&self) -> Position {
        Position { path: self.path.clone(), variable: self.variable.clone(), line: None, column: None }
    }

    /// The place of the ID of an instance.
    pub(crate) fn place_of_id(&self, row: usize) -> Position {
        let Some(lines) = &self.lines else { return self.place() };
        if self.transposed {
            return Position { column: Some(row + 1 + usize::from(self.features.is_some())), ..self.place() };
        }
        Position { line: lines.get(row).map(|line| *line as usize), ..self.place() }
    }
}
