//! A dense matrix in a file, by row or by column.

use std::ops::Range;

use daimc_core::Layout;
use daimc_core::source::{Buffer, ReadError, RowStore};

use super::watched::Watched;
use crate::Precision;
use crate::number::{Encoding, Target};

/// Consecutive numbers in row-major or column-major order.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    pub file: Watched,
    /// The position of the first number.
    pub offset: u64,
    pub rows: usize,
    pub columns: usize,
    pub by_column: bool,
    pub encoding: Encoding,
    pub precision: Precision,
}

/// The most bytes of columns that are transposed at a time.
const STRIP: usize = 1 << 22;

impl Dense {
    /// Appends `count` numbers from the one at `first` on to `out`.
    fn numbers<T: Target>(
        &self,
        first: usize,
        count: usize,
        bytes: &mut Vec<u8>,
        out: &mut Vec<T>,
    ) -> Result<(), ReadError> {
        let size = self.encoding.kind.size();
        bytes.resize(count * size, 0);
        self.file.read_at(bytes, self.offset + (first * size) as u64)?;
        self.encoding.append(bytes, out);
        Ok(())
    }

    fn read_as<T: Target>(
        &self,
        rows: Range<usize>,
        bytes: &mut Vec<u8>,
        out: &mut Vec<T>,
    ) -> Result<(), ReadError> {
        out.clear();
        if !self.by_column {
            return self.numbers(rows.start * self.columns, rows.len() * self.columns, bytes, out);
        }
        out.resize(rows.len() * self.columns, T::default());
        let strip = (STRIP / (rows.len() * size_of::<T>()).max(1)).clamp(1, 64);
        let mut values = Vec::new();
        for first in (0..self.columns).step_by(strip) {
            let end = (first + strip).min(self.columns);
            values.clear();
            for column in first..end {
                self.numbers(column * self.rows + rows.start, rows.len(), bytes, &mut values)?;
            }
            for (i, row) in out.chunks_exact_mut(self.columns).enumerate() {
                for (j, cell) in row[first..end].iter_mut().enumerate() {
                    *cell = values[j * rows.len() + i];
                }
            }
        }
        Ok(())
    }

    fn pick_as<T: Target>(
        &self,
        rows: &[u32],
        bytes: &mut Vec<u8>,
        out: &mut Vec<T>,
    ) -> Result<(), ReadError> {
        out.clear();
        if !self.by_column {
            let mut rest = rows;
            while let Some(&first) = rest.first() {
                // Consecutive rows are read at once.
                let run = rest.iter().zip(first..).take_while(|(row, expected)| *row == expected).count();
                self.numbers(first as usize * self.columns, run * self.columns, bytes, out)?;
                rest = &rest[run..];
            }
            return Ok(());
        }
        out.resize(rows.len() * self.columns, T::default());
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return Ok(()) };
        let mut values = Vec::new();
        for column in 0..self.columns {
            values.clear();
            let start = column * self.rows + first as usize;
            self.numbers(start, (last - first) as usize + 1, bytes, &mut values)?;
            for (i, row) in rows.iter().enumerate() {
                out[i * self.columns + column] = values[(row - first) as usize];
            }
        }
        Ok(())
    }
}

impl RowStore for Dense {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    fn layout(&self) -> Layout {
        match self.precision {
            Precision::F32 => Layout::DenseF32,
            Precision::F64 => Layout::DenseF64,
        }
    }

    fn read(&self, rows: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        let Buffer { f32, f64, bytes, .. } = buffer;
        match self.precision {
            Precision::F32 => self.read_as(rows, bytes, f32),
            Precision::F64 => self.read_as(rows, bytes, f64),
        }
    }

    fn pick(&self, rows: &[u32], buffer: &mut Buffer) -> Result<(), ReadError> {
        let Buffer { f32, f64, bytes, .. } = buffer;
        match self.precision {
            Precision::F32 => self.pick_as(rows, bytes, f32),
            Precision::F64 => self.pick_as(rows, bytes, f64),
        }
    }
}
