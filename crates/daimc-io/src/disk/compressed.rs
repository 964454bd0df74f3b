//! Compressed rows or columns whose entries come piece by piece.

use std::sync::Arc;

use super::{Disk, Numbers, Sorter, Sparse, Spool};
use crate::number::{Encoding, NumberType};
use crate::real::Real;
use crate::sparse::{Entries, Shape, blocks, check_columns};
use crate::{Csr, Place, Precision, Result, Stored};

/// Writes compressed rows, or columns, to spool files of rows.
pub(crate) fn store<T: Real>(
    disk: &Disk,
    place: &Place,
    shape: Shape,
    by_row: bool,
    offsets: &[usize],
    entries: &mut impl Entries<T>,
) -> Result<Stored> {
    if by_row {
        let mut writer = Writer::new(place, Spool::new(disk)?, Spool::new(disk)?, shape.rows)?;
        blocks(place, offsets, entries, |_, block| {
            check_columns(place, shape.columns, &block.columns)?;
            block.put_in_order();
            writer.append(block)
        })?;
        return writer.finish::<T>(shape.columns);
    }
    let mut sorter = Sorter::new(disk, place, shape)?;
    blocks(place, offsets, entries, |lines, block| {
        for (line, bounds) in lines.zip(block.offsets.windows(2)) {
            for at in bounds[0]..bounds[1] {
                sorter.push(block.columns[at], line as u32, block.values[at])?;
            }
        }
        Ok(())
    })?;
    sorter.finish()
}

/// Spool files of the rows of a sparse matrix, written one after another.
pub(super) struct Writer {
    columns: Spool,
    values: Spool,
    offsets: Vec<usize>,
    missing: Vec<u32>,
}

impl Writer {
    /// For so many rows.
    pub fn new(place: &Place, columns: Spool, values: Spool, rows: usize) -> Result<Self> {
        let mut offsets = place.room(rows + 1)?;
        offsets.push(0);
        Ok(Self { columns, values, offsets, missing: place.room(rows)? })
    }

    /// Appends rows, whose columns increase.
    pub fn append<T: Real>(&mut self, rows: &Csr<T>) -> Result<()> {
        self.columns.write_columns(&rows.columns)?;
        self.values.write(&rows.values)?;
        let before = self.offsets.last().copied().unwrap_or(0);
        self.offsets.extend(rows.offsets[1..].iter().map(|end| before + end));
        self.missing.extend(missing(rows));
        Ok(())
    }

    /// The matrix.
    pub fn finish<T: Real>(self, width: usize) -> Result<Stored> {
        let kind = if T::PRECISION == Precision::F32 { NumberType::F32 } else { NumberType::F64 };
        let numbers = |file, kind| {
            let encoding = Encoding { kind, big_endian: false };
            Numbers { file, offset: 0, encoding }
        };
        let sparse = Sparse {
            width,
            offsets: self.offsets,
            columns: numbers(self.columns.finish()?, NumberType::U32),
            values: numbers(self.values.finish()?, kind),
            precision: T::PRECISION,
        };
        Ok(Stored { rows: Arc::new(sparse), missing: Arc::new(self.missing) })
    }
}

/// How many stored values of each row are missing.
pub(crate) fn missing<T: Real>(rows: &Csr<T>) -> impl Iterator<Item = u32> {
    rows.offsets.windows(2).map(|bounds| {
        rows.values[bounds[0]..bounds[1]].iter().map(|value| u32::from(value.is_missing())).sum()
    })
}
