//! Compressed rows or columns whose entries come piece by piece.

use std::ops::Range;
use std::sync::Arc;

use super::{Disk, Numbers, Sorter, Sparse, Spool, Stored};
use crate::number::{Encoding, NumberType};
use crate::real::Real;
use crate::sparse::{Shape, check_columns};
use crate::{Csr, Place, Precision, Result};

/// Entries, and lines, that are in memory at a time; a line that has more is taken whole.
const BLOCK: usize = 1 << 18;

/// The entries of a matrix in the order of its file.
pub(crate) trait Entries<T> {
    /// Appends the next column numbers.
    fn columns(&mut self, count: usize, out: &mut Vec<u32>) -> Result<()>;

    /// Appends the next values.
    fn values(&mut self, count: usize, out: &mut Vec<T>) -> Result<()>;
}

/// Shows entries to `visit` in blocks of whole lines, with the numbers of these; `offsets` say where lines begin and were found
/// to fit.
pub(crate) fn blocks<T: Real>(
    place: &Place,
    offsets: &[usize],
    entries: &mut impl Entries<T>,
    mut visit: impl FnMut(Range<usize>, &mut Csr<T>) -> Result<()>,
) -> Result<()> {
    let lines = offsets.len() - 1;
    let mut block = Csr { offsets: Vec::new(), columns: Vec::new(), values: Vec::new() };
    let mut first = 0;
    while first < lines {
        let start = offsets[first];
        let candidates = &offsets[first + 1..=(first + BLOCK).min(lines)];
        let end = first + candidates.partition_point(|end| end - start <= BLOCK).max(1);
        let count = offsets[end] - start;
        block.offsets.clear();
        block.offsets.extend(offsets[first..=end].iter().map(|offset| offset - start));
        block.columns.clear();
        block.values.clear();
        place.reserve(&mut block.columns, count)?;
        place.reserve(&mut block.values, count)?;
        entries.columns(count, &mut block.columns)?;
        entries.values(count, &mut block.values)?;
        visit(first..end, &mut block)?;
        first = end;
    }
    Ok(())
}

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
