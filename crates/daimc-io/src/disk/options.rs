//! Where values are kept, with progress and interruption.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use daimc_core::Stop;

use crate::{Error, Result};

/// The folder of spool files, with progress callback and stop flag, and whether files are hashed.
#[derive(Clone)]
pub struct Disk {
    pub(super) folder: PathBuf,
    stop: Stop,
    listener: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    pub(crate) hashed: bool,
}

/// Bytes of a table that were processed since the last call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Read, and written to a spool file unless they are read in place.
    Read(u64),
    /// Reordered from the order of the file to that of rows, in a second pass over the spool file.
    Ordered(u64),
}

impl Disk {
    /// Creates spool files in a folder.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), stop: Stop::new(), listener: None, hashed: true }
    }

    /// Stops reading when the flag is set, with [`Error::Interrupted`].
    #[must_use]
    pub fn stop(self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self }
    }

    /// Sets the progress callback, which any thread may call.
    #[must_use]
    pub fn progress(self, listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Arc::new(listener)), ..self }
    }

    /// Skips the SHA-256 of files, which is then empty. Hashing takes longer than reading plain numbers.
    #[must_use]
    pub fn unhashed(self) -> Self {
        Self { hashed: false, ..self }
    }

    /// Reports progress; an error if the stop flag is set.
    pub(crate) fn report(&self, progress: Progress) -> Result<()> {
        if self.stop.is_set() {
            return Err(Error::Interrupted);
        }
        if let Some(listener) = &self.listener {
            listener(progress);
        }
        Ok(())
    }

    /// The error of a spool file that cannot be written.
    pub(super) fn failed(&self, source: io::Error) -> Error {
        Error::Spool { folder: self.folder.clone(), source }
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Disk").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Where values are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keep<'a> {
    Memory,
    /// In memory up to a number of bytes, otherwise on disk.
    Within(&'a Disk, u64),
    Disk(&'a Disk),
}

impl<'a> Keep<'a> {
    /// The disk, if values are kept there from the start.
    pub fn disk(self) -> Option<&'a Disk> {
        if let Self::Disk(disk) = self { Some(disk) } else { None }
    }
}
