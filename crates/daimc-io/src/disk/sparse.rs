//! A sparse matrix whose columns and values are in files, and whose row offsets are in memory.

use std::ops::Range;

use daimc_core::Layout;
use daimc_core::source::{Buffer, ReadError, RowStore};

use super::watched::Watched;
use crate::Precision;
use crate::number::{Encoding, Target};

/// Consecutive numbers in a file.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    pub file: Watched,
    /// The position of the first number.
    pub offset: u64,
    pub encoding: Encoding,
}

impl Numbers {
    /// Appends the numbers of a range.
    pub fn append<T: Target>(
        &self,
        range: &Range<usize>,
        bytes: &mut Vec<u8>,
        out: &mut Vec<T>,
    ) -> Result<(), ReadError> {
        let size = self.encoding.kind.size();
        bytes.resize(range.len() * size, 0);
        self.file.read_at(bytes, self.offset + (range.start * size) as u64)?;
        self.encoding.append(bytes, out);
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Sparse {
    /// The number of columns.
    pub width: usize,
    /// Row i is at `offsets[i]..offsets[i + 1]`.
    pub offsets: Vec<usize>,
    /// The column of each entry, increasing within a row.
    pub columns: Numbers,
    pub values: Numbers,
    pub precision: Precision,
}

impl Sparse {
    /// Appends successive rows.
    fn rows(&self, rows: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        let Buffer { f32, f64, offsets, columns, bytes, .. } = buffer;
        let stored = self.offsets[rows.start]..self.offsets[rows.end];
        let before = offsets.last().copied().unwrap_or(0);
        offsets.extend(self.offsets[rows.start + 1..=rows.end].iter().map(|end| end - stored.start + before));
        self.columns.append(&stored, bytes, columns)?;
        match self.precision {
            Precision::F32 => self.values.append(&stored, bytes, f32),
            Precision::F64 => self.values.append(&stored, bytes, f64),
        }
    }
}

fn empty(buffer: &mut Buffer) {
    buffer.offsets.clear();
    buffer.offsets.push(0);
    buffer.columns.clear();
    buffer.f32.clear();
    buffer.f64.clear();
}

impl RowStore for Sparse {
    fn shape(&self) -> (usize, usize) {
        (self.offsets.len() - 1, self.width)
    }

    fn layout(&self) -> Layout {
        match self.precision {
            Precision::F32 => Layout::SparseF32,
            Precision::F64 => Layout::SparseF64,
        }
    }

    fn stored(&self) -> Option<usize> {
        self.offsets.last().copied()
    }

    fn read(&self, rows: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        empty(buffer);
        self.rows(rows, buffer)
    }

    fn pick(&self, rows: &[u32], buffer: &mut Buffer) -> Result<(), ReadError> {
        empty(buffer);
        let mut rest = rows;
        while let Some(&first) = rest.first() {
            let run = rest.iter().zip(first..).take_while(|(row, expected)| *row == expected).count();
            self.rows(first as usize..first as usize + run, buffer)?;
            rest = &rest[run..];
        }
        Ok(())
    }
}
