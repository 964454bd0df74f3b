//! Where values are kept, and how the work on them is reported and stopped.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use daimc::Stop;

use crate::{Error, Result};

/// Where spool files are made, who is told how far they are, who can end it, and whether files are hashed.
#[derive(Clone)]
pub struct Disk {
    pub(super) folder: PathBuf,
    stop: Stop,
    listener: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    pub(crate) hashed: bool,
}

/// How many more bytes of a table are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// They were read, and written to a spool file unless they are read where they lie.
    Read(u64),
    /// They were brought from the order of the file into that of rows, which is a second pass over what was written.
    Ordered(u64),
}

impl Disk {
    /// Spool files are made in a folder.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), stop: Stop::new(), listener: None, hashed: true }
    }

    /// Ends reading when the switch is set, with [`Error::Interrupted`].
    #[must_use]
    pub fn stop(self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self }
    }

    /// Who is told how far it is, from any thread.
    #[must_use]
    pub fn progress(self, listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Arc::new(listener)), ..self }
    }

    /// Nobody will ask for the SHA-256 of files, which is then empty. It takes longer to work out than plain numbers take to read.
    #[must_use]
    pub fn unhashed(self) -> Self {
        Self { hashed: false, ..self }
    }

    /// Tells how far it is, unless it is to end.
    pub(crate) fn tell(&self, progress: Progress) -> Result<()> {
        if self.stop.is_set() {
            return Err(Error::Interrupted);
        }
        if let Some(listener) = &self.listener {
            listener(progress);
        }
        Ok(())
    }

    /// The disk that the spool file is on is full, or cannot be written.
    pub(super) fn failed(&self, source: io::Error) -> Error {
        Error::Spool { folder: self.folder.clone(), source }
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Disk").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Where values are to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keep<'a> {
    Memory,
    /// In memory, up to so many bytes; on disk if there are more.
    Within(&'a Disk, u64),
    Disk(&'a Disk),
}

impl<'a> Keep<'a> {
    /// The disk, if they are to be there from the start.
    pub fn disk(self) -> Option<&'a Disk> {
        if let Self::Disk(disk) = self { Some(disk) } else { None }
    }
}
