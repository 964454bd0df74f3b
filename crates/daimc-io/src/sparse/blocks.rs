//! The entries of compressed rows or columns, in blocks of whole lines.

use std::ops::Range;

use crate::real::Real;
use crate::{Csr, Position, Result};

/// The most entries, and lines, of a block; a line with more entries is a block of its own.
const BLOCK: usize = 1 << 18;

/// The entries of a matrix in the order of its file.
pub(crate) trait Entries<T> {
    /// Appends the next column numbers.
    fn columns(&mut self, count: usize, out: &mut Vec<u32>) -> Result<()>;

    /// Appends the next values.
    fn values(&mut self, count: usize, out: &mut Vec<T>) -> Result<()>;
}

/// Calls `visit` with blocks of whole lines and their range. The caller has checked `offsets`, the start of each line.
pub(crate) fn blocks<T: Real>(
    place: &Position,
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
