//! A matrix: one array, or three arrays of compressed rows or columns.

use super::array::Array;
use super::entries::{Filtered, Lists};
use crate::dense::MatrixLayout;
use crate::disk::{Disk, Keep, Spool, store};
use crate::real::Real;
use crate::sparse::{Shape, check_offsets};
use crate::{Cells, Csr, Position, Precision, Reading, Result, Stored, Table};

/// A matrix whose rows are instances, unless it is read transposed.
pub(crate) enum Matrix {
    /// In row-major order, or column-major if `by_column`.
    Dense {
        array: Box<Array>,
        by_column: bool,
    },
    Sparse(Box<Sparse>),
}

/// Compressed rows or columns.
pub(crate) struct Sparse {
    pub values: Array,
    pub indices: Array,
    pub offsets: Vec<usize>,
    /// Rows and columns.
    pub shape: [usize; 2],
    pub by_row: bool,
    /// If only some columns of compressed rows are read, the new number of each; `u32::MAX` for the others.
    pub only: Option<Vec<u32>>,
}

/// A matrix with the names of its rows and columns.
pub(crate) struct Named {
    pub place: Position,
    pub matrix: Matrix,
    pub rows: Option<Vec<String>>,
    pub columns: Option<Vec<String>>,
}

impl Matrix {
    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        match self {
            Self::Dense { array, by_column: false } => [array.lines(), array.length()],
            Self::Dense { array, by_column: true } => [array.length(), array.lines()],
            Self::Sparse(sparse) => sparse.shape,
        }
    }

    /// The number of instances, and the bytes of their values in memory.
    pub fn size(&self, how: Reading) -> Result<(usize, u64)> {
        let [rows, columns] = self.shape();
        let instances = if how.transpose { columns } else { rows };
        let value = if self.precision(how)? == Precision::F32 { 4 } else { 8 };
        let bytes = match self {
            Self::Dense { .. } => (rows as u64).saturating_mul(columns as u64).saturating_mul(value),
            Self::Sparse(sparse) => {
                (sparse.values.lines() as u64).saturating_mul(value + 4).saturating_add(8 * instances as u64)
            }
        };
        Ok((instances, bytes))
    }

    fn precision(&self, how: Reading) -> Result<Precision> {
        let array = match self {
            Self::Dense { array, .. } => array,
            Self::Sparse(sparse) => &sparse.values,
        };
        Ok(how.precision.unwrap_or(array.encoding()?.kind.precision()))
    }

    fn cells<T: Real>(&self, place: &Position, how: Reading, keep: Keep<'_>) -> Result<Cells> {
        let [rows, columns] = self.shape();
        if rows == 0 || columns == 0 {
            return Err(place.fault(format!("is empty: its shape is {rows} × {columns}")));
        }
        match (self, keep.disk()) {
            (Self::Dense { array, by_column }, disk) => {
                let layout = MatrixLayout::new(rows, columns, *by_column, how);
                match disk {
                    Some(disk) => dense_on_disk::<T>(array, layout, disk).map(Cells::Stored),
                    None => dense::<T>(array, layout).map(T::dense),
                }
            }
            (Self::Sparse(sparse), None) => sparse.csr::<T>(place, how).map(T::sparse),
            (Self::Sparse(sparse), Some(disk)) => sparse.store::<T>(place, how, disk).map(Cells::Stored),
        }
    }
}

fn dense<T: Real>(array: &Array, layout: MatrixLayout) -> Result<Vec<T>> {
    if layout.lines_are_rows {
        let mut cells = array.zeroed(layout.lines.saturating_mul(layout.length))?;
        array.numbers(0..layout.lines, &mut cells)?;
        return Ok(cells);
    }
    layout.lay_out_by(&array.place, array.step(), |lines, out| {
        let before = out.len();
        out.resize(before + lines.len() * layout.length, T::default());
        array.numbers(lines, &mut out[before..])
    })
}

fn dense_on_disk<T: Real>(array: &Array, layout: MatrixLayout, disk: &Disk) -> Result<Stored> {
    let mut spool = Spool::new(disk)?;
    let step = array.step().min(layout.lines);
    let mut values: Vec<T> = array.zeroed(step.saturating_mul(layout.length))?;
    for first in (0..layout.lines).step_by(step) {
        let lines = first..(first + step).min(layout.lines);
        let out = &mut values[..lines.len() * layout.length];
        array.numbers(lines, out)?;
        spool.write(out)?;
    }
    drop(values);
    spool.dense::<T>(layout.rows(), layout.columns(), !layout.lines_are_rows)
}

impl Sparse {
    /// The shape after a transposition, and whether entries are then in the order of rows.
    fn shape(&self, place: &Position, how: Reading) -> Result<(Shape, bool)> {
        let [mut rows, mut columns] = self.shape;
        self.values.flat()?;
        self.indices.flat()?;
        let (lines, counts) =
            (if self.by_row { rows } else { columns }, [self.indices.lines(), self.values.lines()]);
        check_offsets(place, lines, &self.offsets, counts)?;
        if how.transpose {
            (rows, columns) = (columns, rows);
        }
        Ok((Shape::new(place, rows, columns, self.values.lines())?, self.by_row != how.transpose))
    }

    fn csr<T: Real>(&self, place: &Position, how: Reading) -> Result<Csr<T>> {
        let (shape, by_row) = self.shape(place, how)?;
        if let Some(only) = &self.only {
            let entries = Filtered::new(&self.indices, &self.values, only);
            let offsets = entries.offsets(&self.offsets)?;
            return if by_row {
                shape.rows_in_order(place, entries.all(offsets)?)
            } else {
                shape.rows_of_columns(place, entries.all(offsets)?)
            };
        }
        if by_row {
            let mut offsets = place.allocate(self.offsets.len())?;
            offsets.extend_from_slice(&self.offsets);
            let rows = Csr { offsets, columns: self.indices.list()?, values: self.values.list()? };
            return shape.rows_in_order(place, rows);
        }
        shape.rows_of_lines(place, &self.offsets, || Ok(Lists::new(&self.indices, &self.values)))
    }

    fn store<T: Real>(&self, place: &Position, how: Reading, disk: &Disk) -> Result<Stored> {
        let (shape, by_row) = self.shape(place, how)?;
        match &self.only {
            None => {
                let mut entries = Lists::<T>::new(&self.indices, &self.values);
                store::<T>(disk, place, shape, by_row, &self.offsets, &mut entries)
            }
            Some(only) => {
                let mut entries = Filtered::<T>::new(&self.indices, &self.values, only);
                let offsets = entries.offsets(&self.offsets)?;
                store::<T>(disk, place, shape, by_row, &offsets, &mut entries)
            }
        }
    }
}

impl Named {
    /// The matrix as a table.
    pub fn table(self, how: Reading, keep: Keep<'_>) -> Result<Table> {
        let [rows, columns] = self.matrix.shape();
        for (names, count, what) in [(&self.rows, rows, "rows"), (&self.columns, columns, "columns")] {
            if let Some(names) = names.as_ref().filter(|names| names.len() != count) {
                let reason = format!("has {count} {what} but {} names for them; save it anew", names.len());
                return Err(self.place.fault(reason));
            }
        }
        let cells = match self.matrix.precision(how)? {
            Precision::F32 => self.matrix.cells::<f32>(&self.place, how, keep)?,
            Precision::F64 => self.matrix.cells::<f64>(&self.place, how, keep)?,
        };
        let (ids, features) =
            if how.transpose { (self.columns, self.rows) } else { (self.rows, self.columns) };
        let (rows, columns) = if how.transpose { (columns, rows) } else { (rows, columns) };
        let table = Table::new(self.place, rows, columns, cells, how);
        Ok(Table { ids: ids.filter(|_| !how.no_ids), features, ..table })
    }
}
