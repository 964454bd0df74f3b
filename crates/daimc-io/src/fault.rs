//! Errors at a place of a file, and checks of the memory that it needs.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::{Error, Position, Result, memory};

/// Smaller allocations are not checked: the check takes longer than reading a small file.
const SMALL: u64 = 1 << 24;

impl Position {
    /// An array in a container.
    pub(crate) fn array(path: &Path, variable: &str) -> Self {
        Self { variable: Some(variable.to_owned()), ..Self::file(path) }
    }

    /// A line of a file, from 1.
    pub(crate) fn line(path: &Path, line: usize) -> Self {
        Self { line: Some(line), ..Self::file(path) }
    }

    /// An error about invalid contents; `reason` says what is wrong and what to do.
    pub(crate) fn fault(&self, reason: impl Into<String>) -> Error {
        Error::Data { place: self.clone(), reason: reason.into() }
    }

    /// An error of reading, caused by the data or by the system.
    pub(crate) fn unreadable(&self, error: io::Error) -> Error {
        match error.kind() {
            ErrorKind::UnexpectedEof => self.fault("ends before its data do; copy it again or save it anew"),
            ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                self.fault(format!("is damaged ({error}); copy it again or save it anew"))
            }
            ErrorKind::OutOfMemory => self.no_memory(None),
            _ => Error::Io { path: self.path.clone(), source: error },
        }
    }

    /// Fails for devices without an end, such as `/dev/zero`; a terminal has one.
    pub(crate) fn refuse_device(&self, about: &Metadata) -> Result<()> {
        #[cfg(unix)]
        {
            use std::io::{IsTerminal, stdin};
            use std::os::unix::fs::FileTypeExt;
            let kind = about.file_type();
            let typed =
                kind.is_char_device() && stdin().is_terminal() && self.path == Path::new("/dev/stdin");
            if (kind.is_char_device() || kind.is_block_device()) && !typed {
                return Err(self.fault("is a device; name a file or a pipe"));
            }
        }
        #[cfg(not(unix))]
        let _ = about;
        Ok(())
    }

    /// An empty vector with the capacity for `count` values, or an error if there is not enough memory.
    pub(crate) fn allocate<T>(&self, count: usize) -> Result<Vec<T>> {
        let mut values = Vec::new();
        self.reserve(&mut values, count)?;
        Ok(values)
    }

    /// Reserves exactly `more` values, or fails if there is not enough memory.
    pub(crate) fn reserve<T>(&self, values: &mut Vec<T>, more: usize) -> Result<()> {
        let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
        self.check_memory(bytes)?;
        values.try_reserve_exact(more).map_err(|_| self.no_memory(Some(bytes)))
    }

    /// Reserves `more` values and at least a quarter of the length: a size in a header may be wrong, and doubling may take twice
    /// the memory.
    pub(crate) fn reserve_by_quarters<T>(&self, values: &mut Vec<T>, more: usize) -> Result<()> {
        if values.capacity() - values.len() >= more {
            return Ok(());
        }
        self.reserve(values, more.max(values.len() / 4))
    }

    /// Fails unless that many bytes of memory are available.
    pub(crate) fn check_memory(&self, bytes: u64) -> Result<()> {
        if bytes >= SMALL && memory::available().is_some_and(|available| bytes > available) {
            return Err(self.no_memory(Some(bytes)));
        }
        Ok(())
    }

    fn no_memory(&self, needed: Option<u64>) -> Error {
        Error::Memory { place: self.clone(), needed, available: memory::available() }
    }
}

/// Checks memory that is allocated in small pieces, now and then.
#[derive(Default)]
pub(crate) struct MemoryMeter {
    taken: u64,
}

impl MemoryMeter {
    /// Counts bytes that are about to be allocated.
    pub(crate) fn take(&mut self, place: &Position, bytes: usize) -> Result<()> {
        self.taken = self.taken.saturating_add(bytes as u64);
        if self.taken < SMALL {
            return Ok(());
        }
        place.check_memory(std::mem::take(&mut self.taken))
    }
}

/// Bytes of a string in addition to its letters: its struct, and the overhead of the allocator.
pub(crate) const STRING_OVERHEAD: usize = size_of::<String>() + 32;
