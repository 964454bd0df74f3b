//! Errors: each message says what is wrong, where, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use daimc_core::ErrorKind;
use daimc_core::text::{path as path_shown, plain, quoted};

/// A place in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The file.
    pub path: PathBuf,
    /// The array in a container.
    pub variable: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1; in text, the field.
    pub column: Option<usize>,
}

impl Position {
    /// The file as a whole.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", path_shown(&self.path.to_string_lossy()))?;
        if let Some(variable) = &self.variable {
            write!(f, "::{}", plain(variable))?;
        }
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        Ok(())
    }
}

/// Data that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path_shown(&path.to_string_lossy()))]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The contents of the file are invalid.
    #[error("{place}: {reason}")]
    Data {
        /// Where.
        place: Position,
        /// What is wrong and what to do.
        reason: String,
    },
    /// There is not enough memory.
    #[error("{place}: {}", too_large(*needed, *available))]
    Memory {
        /// The file that is read.
        place: Position,
        /// Bytes that are needed, if known.
        needed: Option<u64>,
        /// Bytes that are available, if known.
        available: Option<u64>,
    },
    /// There is not enough memory for a table that cannot be kept on disk.
    #[error("{place}: {reason}")]
    OnlyInMemory {
        /// The file that is read.
        place: Position,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// A table that does not fit into memory could not be written to a spool file.
    #[error(
        "the spool file in {}, for data that do not fit into memory: {source}; free space there, take another output folder, \
         or allow more memory (--memory)",
        folder.display()
    )]
    Spool {
        /// The folder of spool files.
        folder: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The stop flag of a [`Disk`](crate::Disk) was set.
    #[error("reading was interrupted; nothing is kept of it")]
    Interrupted,
    /// A [`Location`](crate::Location) or [`Column`](crate::Column) is invalid.
    #[error("{}: {reason}", quoted(text))]
    Location {
        /// The text.
        text: String,
        /// What is wrong and what to do.
        reason: &'static str,
    },
    /// The views do not fit together.
    #[error(transparent)]
    Views(#[from] daimc_core::Error),
}

/// The message that memory is short, and what to do.
fn too_large(needed: Option<u64>, available: Option<u64>) -> String {
    let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1e6);
    let needed =
        needed.map_or_else(|| "more memory".into(), |bytes| format!("{} of memory", megabytes(bytes)));
    let available = available
        .map_or_else(|| "not available".into(), |bytes| format!("only {} is available", megabytes(bytes)));
    format!(
        "{needed} is needed, but {available}: free or allow more (ulimit, the limit of the container, --memory), or read it \
         as --precision f32"
    )
}

impl Error {
    /// The error category. A file that cannot be read is a data error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } | Self::Data { .. } => ErrorKind::Data,
            Self::Memory { .. } | Self::OnlyInMemory { .. } | Self::Spool { .. } => ErrorKind::Failed,
            Self::Interrupted => ErrorKind::Interrupted,
            Self::Location { .. } => ErrorKind::Usage,
            Self::Views(error) => error.kind(),
        }
    }

    /// The same error, in a part of the file.
    pub(crate) fn in_part(mut self, part: &str) -> Self {
        if let Self::Data { place, .. } | Self::Memory { place, .. } | Self::OnlyInMemory { place, .. } =
            &mut self
        {
            place.variable.get_or_insert_with(|| part.into());
        }
        self
    }

    /// An error about a file as a whole.
    pub(crate) fn in_file(path: &Path, reason: impl Into<String>) -> Self {
        Self::Data { place: Position::file(path), reason: reason.into() }
    }
}

/// The result of reading.
pub type Result<T, E = Error> = std::result::Result<T, E>;
