//! Tables that stay on disk: rows are read when they are asked for.
//!
//! A `.npy` file, and arrays that an `.npz` file holds uncompressed, are read where they lie. Everything else is written once,
//! as plain numbers, to spool files, which have no name and are gone when the program ends, however it ends.

mod compressed;
mod dense;
mod growing;
mod sort;
mod sparse;
mod spool;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use daimc::Stop;
use daimc::source::ReadError;

use crate::positioned::read_at;
use crate::{Error, Result};
pub(crate) use compressed::{missing, store};
pub(crate) use dense::Dense;
pub(crate) use growing::{Growing, Grown};
pub(crate) use sort::Sorter;
pub(crate) use sparse::{Numbers, Sparse};
pub(crate) use spool::Spool;

/// Where spool files are made, who is told how far they are, who can end it, and whether files are hashed.
#[derive(Clone)]
pub struct Disk {
    folder: PathBuf,
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
    fn failed(&self, source: io::Error) -> Error {
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

/// A file that is read again and again and must not change meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    file: Arc<File>,
    path: PathBuf,
    /// Length and time of the last change, of a file that others can change.
    before: Option<(u64, Option<SystemTime>)>,
}

impl Watched {
    /// A file that belongs to others.
    pub fn new(file: File, path: &Path) -> io::Result<Self> {
        let about = file.metadata()?;
        let before = Some((about.len(), about.modified().ok()));
        Ok(Self { file: Arc::new(file), path: path.to_owned(), before })
    }

    /// A spool file.
    fn own(file: File, folder: &Path) -> Self {
        Self { file: Arc::new(file), path: folder.join("(spool file)"), before: None }
    }

    /// Fills the bytes from a position on.
    pub fn read_at(&self, mut bytes: &mut [u8], mut position: u64) -> Result<(), ReadError> {
        let failed = |error: io::Error| format!("{}: {error}", self.path.display());
        while !bytes.is_empty() {
            match read_at(&self.file, bytes, position) {
                Ok(0) => {
                    let reason =
                        "the file has become shorter while it was read: do not change it, and run this again";
                    return Err(format!("{}: {reason}", self.path.display()).into());
                }
                Ok(count) => {
                    bytes = &mut bytes[count..];
                    position += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error).into()),
            }
        }
        if let Some(before) = &self.before {
            let now = self.file.metadata().map_err(failed)?;
            if *before != (now.len(), now.modified().ok()) {
                let reason = "the file was changed while it was read: do not change it, and run this again";
                return Err(format!("{}: {reason}", self.path.display()).into());
            }
        }
        Ok(())
    }
}
