//! The errors of experiments.

/// Why an experiment failed. Messages name the options of `daimc compare` and `daimc reproduce`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Unknown or inconsistent options.
    #[error("{0}")]
    Usage(String),

    /// An incomplete or invalid data set.
    #[error("{0}")]
    Data(String),

    /// An error of the system, e.g. when starting threads.
    #[error("{0}")]
    System(String),

    /// An error of the library.
    #[error(transparent)]
    Fit(#[from] daimc::Error),

    /// A file could not be read.
    #[error(transparent)]
    Input(#[from] daimc_io::Error),

    /// The results could not be written.
    #[error(transparent)]
    Output(#[from] daimc_files::Error),
}

/// A result whose error is this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
