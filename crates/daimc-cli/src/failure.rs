//! What can go wrong, and the exit code that says so.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// It could not be finished: exit code 1.
    Failed(String),
    /// It was asked for something that makes no sense: exit code 2.
    Usage(String),
    /// The data cannot be used: exit code 3.
    Data(String),
    /// Whoever reads the output has read enough: no failure at all.
    Closed,
}

/// The result of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Standard output, or a file that is written, failed.
    pub fn output(what: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(format!("{what} cannot be written: {error}")),
        }
    }

    /// Tells the failure to people on standard error, and to programs by the exit code.
    pub fn report(&self) -> ExitCode {
        let code = match self {
            Self::Closed => return ExitCode::SUCCESS,
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Data(_) => 3,
        };
        eprintln!("daimc: {self}");
        ExitCode::from(code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) | Self::Usage(text) | Self::Data(text) => f.write_str(text),
            Self::Closed => Ok(()),
        }
    }
}

impl From<daimc::Error> for Failure {
    fn from(error: daimc::Error) -> Self {
        use daimc::Error as E;
        match &error {
            // Whether there can be so many clusters is a matter of the data; the other options are not.
            E::Option { option: "clusters" | "latent" | "ids" | "features", .. } => {
                Self::Data(error.to_string())
            }
            E::Option { .. } | E::Simulation { .. } => Self::Usage(error.to_string()),
            _ => Self::Data(error.to_string()),
        }
    }
}

impl From<daimc_io::Error> for Failure {
    fn from(error: daimc_io::Error) -> Self {
        match error {
            daimc_io::Error::Views(error) => error.into(),
            daimc_io::Error::Memory { .. } => Self::Failed(error.to_string()),
            daimc_io::Error::Location { .. } => Self::Usage(error.to_string()),
            _ => Self::Data(error.to_string()),
        }
    }
}

/// Errors of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::output("standard output", &error)
    }
}
