//! Why files could not be made to appear.

use std::io;
use std::path::PathBuf;

/// Why a folder could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are files in the folder, and nobody allowed to replace them.
    #[error("{}: the folder is not empty", .folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },

    /// There is something else in place of the folder.
    #[error("{}: there is a file where a folder is needed; choose another name", .folder.display())]
    NotAFolder {
        /// What should be a folder.
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

    /// A whole result is there, but not all of its files are in their places.
    #[error(
        "{}: the new results are whole, but could not be put in their places ({source}); \
         once this is repaired, the next command that uses the folder does it",
        .folder.display()
    )]
    Unfinished {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// The system refused.
    #[error("{} cannot be written: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A result whose error is this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
