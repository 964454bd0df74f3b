//! Brings a dense matrix into row-major order, from either order in its file.

use std::io::Read;
use std::ops::Range;

use rayon::prelude::*;

use crate::number::{Encoding, Target};
use crate::{Cells, Position, Precision, Reading, Result};

/// Lines that are transposed at a time: enough to write whole cache lines of the result.
const STRIP: usize = 16;

/// The order of a matrix in a file: lines of equal length, which are rows or columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixLayout {
    pub lines: usize,
    pub length: usize,
    /// Lines are instances, after the transposition that [`Reading`] asks for.
    pub lines_are_rows: bool,
}

impl MatrixLayout {
    /// A matrix of `rows` × `columns` in row-major or column-major order.
    pub(crate) fn new(rows: usize, columns: usize, by_column: bool, how: Reading) -> Self {
        let (lines, length) = if by_column { (columns, rows) } else { (rows, columns) };
        Self { lines, length, lines_are_rows: by_column == how.transpose }
    }

    /// The number of instances.
    pub(crate) fn rows(self) -> usize {
        if self.lines_are_rows { self.lines } else { self.length }
    }

    /// The number of features.
    pub(crate) fn columns(self) -> usize {
        if self.lines_are_rows { self.length } else { self.lines }
    }

    /// Returns the matrix in row-major order. `fill` appends the lines of a range to a vector with the capacity for them.
    ///
    /// The caller has checked that the file is long enough for the matrix.
    pub(crate) fn lay_out<T: Target>(
        self,
        place: &Position,
        fill: impl FnMut(Range<usize>, &mut Vec<T>) -> Result<()>,
    ) -> Result<Vec<T>> {
        self.lay_out_by(place, STRIP, fill)
    }

    /// As [`lay_out`](Self::lay_out), for files of which `together` lines are best read at a time.
    pub(crate) fn lay_out_by<T: Target>(
        self,
        place: &Position,
        together: usize,
        mut fill: impl FnMut(Range<usize>, &mut Vec<T>) -> Result<()>,
    ) -> Result<Vec<T>> {
        let count = self.lines.saturating_mul(self.length);
        let mut cells = place.allocate(count)?;
        if self.lines_are_rows {
            fill(0..self.lines, &mut cells)?;
            return Ok(cells);
        }
        let mut strip = place.allocate(together.min(self.lines) * self.length)?;
        cells.resize(count, T::default());
        for start in (0..self.lines).step_by(together) {
            let end = self.lines.min(start + together);
            strip.clear();
            fill(start..end, &mut strip)?;
            cells.par_chunks_exact_mut(self.lines).enumerate().for_each(|(i, row)| {
                for (j, cell) in row[start..end].iter_mut().enumerate() {
                    *cell = strip[j * self.length + i];
                }
            });
        }
        Ok(cells)
    }

    /// Reads a matrix of numbers.
    pub(crate) fn read(
        self,
        place: &Position,
        encoding: Encoding,
        precision: Precision,
        reader: &mut impl Read,
    ) -> Result<Cells> {
        Ok(match precision {
            Precision::F32 => Cells::DenseF32(self.read_as(place, encoding, reader)?),
            Precision::F64 => Cells::DenseF64(self.read_as(place, encoding, reader)?),
        })
    }

    fn read_as<T: Target>(
        self,
        place: &Position,
        encoding: Encoding,
        reader: &mut impl Read,
    ) -> Result<Vec<T>> {
        self.lay_out(place, |lines, out| {
            encoding.read(reader, lines.len() * self.length, out).map_err(|error| place.unreadable(error))
        })
    }
}
