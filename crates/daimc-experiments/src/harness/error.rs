//! Why an experiment failed.

/// Why an experiment could not be run. Messages name the options of `daimc compare` and `daimc reproduce`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Options that do not exist or do not go together.
    #[error("{0}")]
    Usage(String),

    /// A data set that is incomplete or of another kind.
    #[error("{0}")]
    Data(String),

    /// The system refused, e.g. to start threads.
    #[error("{0}")]
    System(String),

    /// The library refused the data or the options.
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
