//! A sparse matrix in a spool file: the columns of all entries, then their values. Where rows begin is kept in memory.

use std::ops::Range;

use daimc::Layout;
use daimc::source::{Buffer, ReadError, RowStore};

use super::Watched;
use crate::Precision;
use crate::number::{Encoding, Kind, Target};

#[derive(Clone, Debug)]
pub(crate) struct Sparse {
    pub file: Watched,
    pub columns: usize,
    /// Row i is at `offsets[i]..offsets[i + 1]`.
    pub offsets: Vec<usize>,
    pub precision: Precision,
}

impl Sparse {
    fn entries(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    fn append<T: Target>(
        &self,
        kind: Kind,
        at: u64,
        count: usize,
        bytes: &mut Vec<u8>,
        out: &mut Vec<T>,
    ) -> Result<(), ReadError> {
        bytes.resize(count * kind.size(), 0);
        self.file.read_at(bytes, at)?;
        Encoding { kind, big_endian: false }.append(bytes, out);
        Ok(())
    }

    /// Appends successive rows.
    fn rows(&self, rows: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        let Buffer { f32, f64, offsets, columns, bytes, .. } = buffer;
        let stored = self.offsets[rows.start]..self.offsets[rows.end];
        let before = offsets.last().copied().unwrap_or(0);
        offsets.extend(self.offsets[rows.start + 1..=rows.end].iter().map(|end| end - stored.start + before));
        self.append(Kind::U32, 4 * stored.start as u64, stored.len(), bytes, columns)?;
        let values = 4 * self.entries() as u64;
        match self.precision {
            Precision::F32 => {
                self.append(Kind::F32, values + 4 * stored.start as u64, stored.len(), bytes, f32)
            }
            Precision::F64 => {
                self.append(Kind::F64, values + 8 * stored.start as u64, stored.len(), bytes, f64)
            }
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
        (self.offsets.len() - 1, self.columns)
    }

    fn layout(&self) -> Layout {
        match self.precision {
            Precision::F32 => Layout::SparseF32,
            Precision::F64 => Layout::SparseF64,
        }
    }

    fn stored(&self) -> Option<usize> {
        Some(self.entries())
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
