//! Writes a table that was read into memory to spool files.

use super::options::Disk;
use super::spool::Spool;
use super::writer::Writer;
use crate::real::Real;
use crate::{Cells, Csr, Position, Result, Stored};

/// Writes the values of a table to spool files.
pub(crate) fn store_cells(
    disk: &Disk,
    place: &Position,
    rows: usize,
    columns: usize,
    cells: Cells,
) -> Result<Stored> {
    match cells {
        Cells::DenseF32(values) => dense(disk, rows, columns, values),
        Cells::DenseF64(values) => dense(disk, rows, columns, values),
        Cells::SparseF32(csr) => sparse(disk, place, columns, &csr),
        Cells::SparseF64(csr) => sparse(disk, place, columns, &csr),
        Cells::Stored(stored) => Ok(stored),
    }
}

fn dense<T: Real>(disk: &Disk, rows: usize, columns: usize, values: Vec<T>) -> Result<Stored> {
    let mut spool = Spool::new(disk)?;
    spool.write(&values)?;
    drop(values);
    spool.dense::<T>(rows, columns, false)
}

fn sparse<T: Real>(disk: &Disk, place: &Position, columns: usize, csr: &Csr<T>) -> Result<Stored> {
    let mut writer = Writer::new(place, Spool::new(disk)?, Spool::new(disk)?, csr.offsets.len() - 1)?;
    writer.append(csr)?;
    writer.finish::<T>(columns)
}
