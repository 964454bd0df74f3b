//! Errors, made where a reader knows the place they belong to.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::{Error, Place, Result};

impl Place {
    /// An array in a container.
    pub(crate) fn array(path: &Path, variable: &str) -> Self {
        Self { variable: Some(variable.to_owned()), ..Self::file(path) }
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
            _ => Error::Io { path: self.path.clone(), source: error },
        }
    }

    /// An empty vector with room for `count` values, or an error where the system has not that much memory.
    pub(crate) fn room<T>(&self, count: usize) -> Result<Vec<T>> {
        let mut room = Vec::new();
        room.try_reserve_exact(count).map_err(|_| {
            let size = (count as f64 * size_of::<T>() as f64) / f64::from(1 << 30);
            self.fault(format!("needs {size:.1} GiB of memory, which the system does not have"))
        })?;
        Ok(room)
    }
}
