//! Errors of writing files.

use std::io;
use std::path::PathBuf;

/// An error of writing a folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder has files, and replacing them was not allowed.
    #[error("{}: the folder is not empty", .folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },

    /// The path is not a folder.
    #[error("{}: there is a file where a folder is needed; choose another name", .folder.display())]
    NotAFolder {
        /// The path.
        folder: PathBuf,
    },

    /// Another process is writing to the folder.
    #[error(
        "{}: another process is writing to this folder; wait until it has ended, or choose another folder",
        .folder.display()
    )]
    Busy {
        /// The folder.
        folder: PathBuf,
    },

    /// A result is complete, but not all of its files could be moved into place.
    #[error(
        "{}: the new results are whole, but could not be put in their places ({source}); \
         once this is repaired, the next command that uses the folder does it",
        .folder.display()
    )]
    Unfinished {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },

    /// An error of the system.
    #[error("{} cannot be written: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// A result whose error is this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
