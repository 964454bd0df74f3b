//! Writes compressed rows or columns to spool files in pieces.

use super::options::Disk;
use super::sort::Sorter;
use super::spool::Spool;
use super::writer::Writer;
use crate::real::Real;
use crate::sparse::{Entries, Shape, blocks, check_columns};
use crate::{Position, Result, Stored};

/// Writes compressed rows, or columns, to spool files of rows.
pub(crate) fn store<T: Real>(
    disk: &Disk,
    place: &Position,
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
