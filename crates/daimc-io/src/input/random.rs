//! Random access to a file or to bytes in memory.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use bytes::Bytes;

use crate::positioned::read_at;

/// The bytes of a file and a position; copies have positions of their own.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    bytes: Backing,
    length: u64,
    position: u64,
}

#[derive(Clone, Debug)]
enum Backing {
    Disk(Arc<File>),
    Memory(Bytes),
}

impl Random {
    pub(super) fn on_disk(file: File, length: u64) -> Self {
        Self { bytes: Backing::Disk(Arc::new(file)), length, position: 0 }
    }

    pub(super) fn in_memory(bytes: Bytes) -> Self {
        Self { length: bytes.len() as u64, bytes: Backing::Memory(bytes), position: 0 }
    }

    /// The number of bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The same file, at another position.
    pub(crate) fn at(&self, position: u64) -> Self {
        Self { position, ..self.clone() }
    }

    /// The metadata of a file on a disk.
    pub(super) fn metadata(&self) -> io::Result<Option<Metadata>> {
        match &self.bytes {
            Backing::Disk(file) => file.metadata().map(Some),
            Backing::Memory(_) => Ok(None),
        }
    }
}

impl Read for Random {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &self.bytes {
            Backing::Disk(file) => read_at(file, buffer, self.position)?,
            Backing::Memory(bytes) => {
                let start = bytes.len().min(usize::try_from(self.position).unwrap_or(usize::MAX));
                (&bytes[start..]).read(buffer)?
            }
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Random {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
