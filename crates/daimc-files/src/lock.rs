//! A lock file.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use crate::disk::{Disk, Sink};

/// A locked file. The system unlocks it when the process ends.
pub(crate) struct Lock(Sink);

impl Lock {
    /// Takes a lock, creating its file if needed; `None` if another process has it.
    pub(crate) fn take(disk: &Disk, path: &Path) -> io::Result<Option<Self>> {
        loop {
            let file = disk.open(path, OpenOptions::new().write(true).create(true).truncate(false))?;
            if disk.try_lock(&file) == Some(false) {
                return Ok(None);
            }
            // The previous owner may have removed the file before it was locked here, and another process may have locked a new one.
            if file.is_named() {
                return Ok(Some(Self(file)));
            }
        }
    }

    /// Removes the file and releases the lock.
    pub(crate) fn remove(self, disk: &Disk) -> io::Result<()> {
        disk.remove_file(self.0.path())
    }
}
