//! Spool files of plain numbers.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::sync::Arc;

use daimc_core::source::{Buffer, RowStore};

use super::dense::Dense;
use super::options::{Disk, Progress};
use super::watched::Watched;
use crate::real::Real;
use crate::{Result, Stored, memory};

/// A spool file that is written sequentially.
#[derive(Debug)]
pub(crate) struct Spool {
    disk: Disk,
    out: BufWriter<File>,
    bytes: Vec<u8>,
    written: u64,
    /// The maximum length of a file.
    longest: u64,
    stage: fn(u64) -> Progress,
}

/// The least and the most bytes of rows that are transposed at a time: more bytes mean longer reads of each column.
const TURNED: [u64; 2] = [16 << 20, 1 << 30];

impl Spool {
    /// A new file for values that are read.
    pub fn new(disk: &Disk) -> Result<Self> {
        let file = tempfile::tempfile_in(&disk.folder).map_err(|source| disk.failed(source))?;
        let out = BufWriter::with_capacity(1 << 20, file);
        let stage = Progress::Read;
        Ok(Self { disk: disk.clone(), out, bytes: Vec::new(), written: 0, longest: longest(), stage })
    }

    /// A new file for values that are reordered.
    pub fn ordered(disk: &Disk) -> Result<Self> {
        Ok(Self { stage: Progress::Ordered, ..Self::new(disk)? })
    }

    /// A new file of this length, to be written in any order.
    pub fn of_length(disk: &Disk, length: u64) -> Result<File> {
        let file = Self::new(disk)?;
        // Beyond the limit of the process, writing would end the process instead of failing.
        if length > file.longest {
            return Err(disk.failed(io::ErrorKind::FileTooLarge.into()));
        }
        file.out.into_inner().map_err(|error| disk.failed(error.into_error()))
    }

    /// Appends numbers.
    pub fn write<T: Real>(&mut self, values: &[T]) -> Result<()> {
        self.each(values, T::append_le)
    }

    /// Appends column numbers.
    pub fn write_columns(&mut self, columns: &[u32]) -> Result<()> {
        self.each(columns, |column, bytes| bytes.extend_from_slice(&column.to_le_bytes()))
    }

    fn each<T: Copy>(&mut self, values: &[T], append: impl Fn(T, &mut Vec<u8>)) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        for values in values.chunks(1 << 16) {
            bytes.clear();
            values.iter().for_each(|value| append(*value, &mut bytes));
            self.write_bytes(&bytes)?;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Appends bytes.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let count = bytes.len() as u64;
        self.written += count;
        let written = if self.written > self.longest {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            self.out.write_all(bytes)
        };
        written.map_err(|source| self.disk.failed(source))?;
        self.disk.report((self.stage)(count))
    }

    /// The file, at its start.
    pub fn into_file(self) -> Result<File> {
        let Self { disk, out, .. } = self;
        let mut file = out.into_inner().map_err(|error| disk.failed(error.into_error()))?;
        file.flush().and_then(|()| file.seek(SeekFrom::Start(0))).map_err(|source| disk.failed(source))?;
        Ok(file)
    }

    /// The file, for reading.
    pub fn finish(self) -> Result<Watched> {
        let folder = self.disk.folder.clone();
        Ok(Watched::own(self.into_file()?, &folder))
    }

    /// The numbers as a matrix in row-major or column-major order. Columns are transposed into another file, since rows are read
    /// often.
    pub fn dense<T: Real>(self, rows: usize, columns: usize, by_column: bool) -> Result<Stored> {
        let disk = self.disk.clone();
        let file = self.finish()?;
        let (encoding, precision) = (T::ENCODING, T::PRECISION);
        let dense = Dense { file, offset: 0, rows, columns, by_column, encoding, precision };
        let mut missing = vec![0; rows];
        let mut buffer = Buffer::default();
        let mut turned = by_column.then(|| Self::ordered(&disk)).transpose()?;
        let at_once = memory::available().map_or(0, |bytes| bytes / 8).clamp(TURNED[0], TURNED[1]) as usize;
        let step = (at_once / (columns * size_of::<T>()).max(1)).clamp(1, rows.max(1));
        for first in (0..rows).step_by(step) {
            let range = first..(first + step).min(rows);
            dense.read(range.clone(), &mut buffer).map_err(|error| disk.failed(io::Error::other(error)))?;
            let values = T::of(&buffer);
            for (missing, row) in missing[range].iter_mut().zip(values.chunks_exact(columns.max(1))) {
                *missing = row.iter().map(|value| u32::from(value.is_missing())).sum();
            }
            match &mut turned {
                Some(turned) => turned.write(values)?,
                None => disk.report(Progress::Ordered(0))?,
            }
        }
        let stored = match turned {
            None => dense,
            Some(turned) => Dense { file: turned.finish()?, by_column: false, ..dense },
        };
        Ok(Stored { rows: Arc::new(stored), missing: Arc::new(missing) })
    }
}

/// The maximum length of a file of this process. Writing more ends the process with a signal.
#[cfg(unix)]
fn longest() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

#[cfg(not(unix))]
fn longest() -> u64 {
    u64::MAX
}
