//! Writes a table to a file of plain numbers.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use daimc::source::{Buffer, RowStore};

use super::{Dense, Sparse, Stored, Watched};
use crate::number::{Encoding, Kind};
use crate::real::Real;
use crate::{Cells, Csr, Error, Precision, Result};

/// Where spool files are made, and that of the table at hand.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    out: BufWriter<File>,
    bytes: Vec<u8>,
}

/// Bytes of rows that are turned at a time.
const TURNED: usize = 64 << 20;

impl Spool {
    /// A new file, in a folder.
    pub fn new(folder: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).map_err(|source| failed(folder, source))?;
        let out = BufWriter::with_capacity(1 << 20, file);
        Ok(Self { folder: folder.to_owned(), out, bytes: Vec::new() })
    }

    /// Appends numbers.
    pub fn write<T: Real>(&mut self, values: &[T]) -> Result<()> {
        for values in values.chunks(1 << 16) {
            self.bytes.clear();
            values.iter().for_each(|value| value.append_le(&mut self.bytes));
            self.out.write_all(&self.bytes).map_err(|source| failed(&self.folder, source))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Watched> {
        let Self { folder, out, .. } = self;
        let mut file = out.into_inner().map_err(|error| failed(&folder, error.into_error()))?;
        file.flush()
            .and_then(|()| file.seek(SeekFrom::Start(0)).map(|_| ()))
            .map_err(|source| failed(&folder, source))?;
        Ok(Watched::own(file, &folder))
    }

    /// The numbers that were written, as a matrix: row by row, or column by column. Columns are turned into rows, in another
    /// file, since they are read often.
    pub fn dense<T: Real>(self, rows: usize, columns: usize, by_column: bool) -> Result<Stored> {
        let folder = self.folder.clone();
        let file = self.finish()?;
        let kind = if T::PRECISION == Precision::F32 { Kind::F32 } else { Kind::F64 };
        let encoding = Encoding { kind, big_endian: false };
        let dense = Dense { file, offset: 0, rows, columns, by_column, encoding, precision: T::PRECISION };
        let mut missing = vec![0; rows];
        let mut buffer = Buffer::default();
        let mut turned = by_column.then(|| Self::new(&folder)).transpose()?;
        let step = (TURNED / (columns * size_of::<T>()).max(1)).clamp(1, rows.max(1));
        for first in (0..rows).step_by(step) {
            let range = first..(first + step).min(rows);
            dense
                .read(range.clone(), &mut buffer)
                .map_err(|error| failed(&folder, io::Error::other(error)))?;
            let values = T::of(&buffer);
            for (missing, row) in missing[range].iter_mut().zip(values.chunks_exact(columns.max(1))) {
                *missing = row.iter().map(|value| u32::from(value.is_missing())).sum();
            }
            if let Some(turned) = &mut turned {
                turned.write(values)?;
            }
        }
        let stored = match turned {
            None => dense,
            Some(turned) => Dense { file: turned.finish()?, by_column: false, ..dense },
        };
        Ok(Stored { rows: Arc::new(stored), missing: Arc::new(missing) })
    }

    /// The values of a table, which are in memory.
    pub fn cells(folder: &Path, rows: usize, columns: usize, cells: Cells) -> Result<Stored> {
        match cells {
            Cells::DenseF32(values) => Self::values(folder, rows, columns, values),
            Cells::DenseF64(values) => Self::values(folder, rows, columns, values),
            Cells::SparseF32(csr) => Self::csr(folder, columns, csr),
            Cells::SparseF64(csr) => Self::csr(folder, columns, csr),
            Cells::Stored(stored) => Ok(stored),
        }
    }

    fn values<T: Real>(folder: &Path, rows: usize, columns: usize, values: Vec<T>) -> Result<Stored> {
        let mut spool = Self::new(folder)?;
        spool.write(&values)?;
        drop(values);
        spool.dense::<T>(rows, columns, false)
    }

    fn csr<T: Real>(folder: &Path, columns: usize, csr: Csr<T>) -> Result<Stored> {
        let mut spool = Self::new(folder)?;
        for chunk in csr.columns.chunks(1 << 16) {
            spool.bytes.clear();
            chunk.iter().for_each(|column| spool.bytes.extend_from_slice(&column.to_le_bytes()));
            spool.out.write_all(&spool.bytes).map_err(|source| failed(folder, source))?;
        }
        spool.write(&csr.values)?;
        let missing = csr.offsets.windows(2).map(|bounds| {
            let row = &csr.values[bounds[0]..bounds[1]];
            row.iter().map(|value| u32::from(value.is_missing())).sum()
        });
        let missing = Arc::new(missing.collect());
        let sparse = Sparse { file: spool.finish()?, columns, offsets: csr.offsets, precision: T::PRECISION };
        Ok(Stored { rows: Arc::new(sparse), missing })
    }
}

/// The disk that the spool file is on is full, or cannot be written.
fn failed(folder: &Path, source: io::Error) -> Error {
    Error::Spool { folder: folder.to_owned(), source }
}
