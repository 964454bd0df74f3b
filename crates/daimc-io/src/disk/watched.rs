//! Files that must not change while they are read.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use daimc_core::source::ReadError;

use crate::positioned::read_at;

/// A file that is read repeatedly and must not change meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    file: Arc<File>,
    path: PathBuf,
    /// Length and modification time, of a file that other programs can change.
    before: Option<(u64, Option<SystemTime>)>,
}

impl Watched {
    /// A file of the user.
    pub fn new(file: File, path: &Path) -> io::Result<Self> {
        let about = file.metadata()?;
        let before = Some((about.len(), about.modified().ok()));
        Ok(Self { file: Arc::new(file), path: path.to_owned(), before })
    }

    /// A spool file.
    pub(super) fn own(file: File, folder: &Path) -> Self {
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
