//! Errors, made where a reader knows the place they belong to.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::{Error, Place, Result, memory};

/// Less than this is taken without asking: there is always as much, and asking takes longer than reading a small file.
const SMALL: u64 = 1 << 24;

impl Place {
    /// An array in a container.
    pub(crate) fn array(path: &Path, variable: &str) -> Self {
        Self { variable: Some(variable.to_owned()), ..Self::file(path) }
    }

    /// A line of a file, from 1.
    pub(crate) fn line(path: &Path, line: usize) -> Self {
        Self { line: Some(line), ..Self::file(path) }
    }

    /// The file or the array is not what it should be; `reason` says how and what to do.
    pub(crate) fn fault(&self, reason: impl Into<String>) -> Error {
        Error::Data { place: self.clone(), reason: reason.into() }
    }

    /// Reading failed: because of the data, or because of the system.
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

    /// Refuses what has no end, such as `/dev/zero`. A terminal has one.
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

    /// An empty vector with room for `count` values, or an error where there is not that much memory.
    pub(crate) fn room<T>(&self, count: usize) -> Result<Vec<T>> {
        let mut room = Vec::new();
        self.reserve(&mut room, count)?;
        Ok(room)
    }

    /// Makes room for `more` values, no more than that, or an error where there is not that much memory.
    pub(crate) fn reserve<T>(&self, values: &mut Vec<T>, more: usize) -> Result<()> {
        let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
        self.ask(bytes)?;
        values.try_reserve_exact(more).map_err(|_| self.no_memory(Some(bytes)))
    }

    /// Makes room for `more` values, and for a quarter of those that are there: what a header says may be wrong, and doubling
    /// may take twice the memory.
    pub(crate) fn reserve_by_quarters<T>(&self, values: &mut Vec<T>, more: usize) -> Result<()> {
        if values.capacity() - values.len() >= more {
            return Ok(());
        }
        self.reserve(values, more.max(values.len() / 4))
    }

    /// An error unless there are so many bytes of memory to take.
    pub(crate) fn ask(&self, bytes: u64) -> Result<()> {
        if bytes >= SMALL && memory::available().is_some_and(|available| bytes > available) {
            return Err(self.no_memory(Some(bytes)));
        }
        Ok(())
    }

    fn no_memory(&self, needed: Option<u64>) -> Error {
        Error::Memory { place: self.clone(), needed, available: memory::available() }
    }
}

/// What is taken piece by piece: now and then it is asked whether there is more.
#[derive(Default)]
pub(crate) struct Pieces {
    taken: u64,
}

impl Pieces {
    /// About to take so many bytes.
    pub(crate) fn take(&mut self, place: &Place, bytes: usize) -> Result<()> {
        self.taken = self.taken.saturating_add(bytes as u64);
        if self.taken < SMALL {
            return Ok(());
        }
        place.ask(std::mem::take(&mut self.taken))
    }
}

/// What a text takes beside its letters: its place in a vector, and what the allocator needs.
pub(crate) const TEXT: usize = size_of::<String>() + 32;
