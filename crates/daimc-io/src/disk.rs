//! Tables that stay on disk: rows are read when they are asked for.
//!
//! A `.npy` file is read where it lies. Everything else is written once, as plain numbers, to a spool file, which has no name
//! and is gone when the program ends, however it ends.

mod dense;
mod sparse;
mod spool;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use daimc::source::{ReadError, RowStore};

pub(crate) use dense::Dense;
pub(crate) use sparse::Sparse;
pub(crate) use spool::Spool;

/// The rows of a table that are on disk.
#[derive(Clone)]
pub struct Stored {
    pub(crate) rows: Arc<dyn RowStore>,
    /// How many values of each row are missing.
    pub(crate) missing: Arc<Vec<u32>>,
}

impl fmt::Debug for Stored {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Stored({:?}, {:?})", self.rows.shape(), self.rows.layout())
    }
}

impl Stored {
    /// How the rows are stored.
    #[must_use]
    pub fn layout(&self) -> daimc::Layout {
        self.rows.layout()
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &dyn RowStore {
        &*self.rows
    }

    /// How many values are stored.
    #[must_use]
    pub fn entries(&self) -> usize {
        let (rows, columns) = self.rows.shape();
        self.rows.stored().unwrap_or(rows * columns)
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
    fn read_at(&self, mut bytes: &mut [u8], mut position: u64) -> Result<(), ReadError> {
        let failed = |error: io::Error| format!("{}: {error}", self.path.display());
        while !bytes.is_empty() {
            match crate::input::read_at(&self.file, bytes, position) {
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
