//! A file that only one living process has.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use crate::disk::{Disk, Sink};

/// A locked file. The system unlocks it when the process ends, however it ends.
pub(crate) struct Lock(Sink);

impl Lock {
    /// Takes a lock, whose file is made if it is not there; `None` if another process has it.
    pub(crate) fn take(disk: &Disk, path: &Path) -> io::Result<Option<Self>> {
        loop {
            let file = disk.open(path, OpenOptions::new().write(true).create(true).truncate(false))?;
            if disk.try_lock(&file) == Some(false) {
                return Ok(None);
            }
            // Who had the lock may have removed the file before it could be locked here; then another may have the new one.
            if file.is_named() {
                return Ok(Some(Self(file)));
            }
        }
    }

    /// Removes the file, and with it the lock.
    pub(crate) fn remove(self, disk: &Disk) -> io::Result<()> {
        disk.remove_file(self.0.path())
    }
}
