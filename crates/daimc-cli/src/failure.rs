//! Errors of commands, and their exit codes.

use std::fmt;
use std::io;
use std::process::ExitCode;

use daimc::text::plain;
use daimc::{Error, ErrorKind};

use crate::terminal::print_line;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The command could not finish: exit code 1.
    Failed(String),
    /// Wrong usage: exit code 2.
    Usage(String),
    /// Bad data: exit code 3.
    Data(String),
    /// The reader of standard output closed the pipe: no error, exit code 0.
    Closed,
}

/// The result of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Wraps an error of a library.
    fn new(kind: ErrorKind, text: String) -> Self {
        match kind {
            ErrorKind::Usage => Self::Usage(text),
            ErrorKind::Data => Self::Data(text),
            // This includes an interruption by the user.
            _ => Self::Failed(text),
        }
    }

    /// An error while writing to standard output or to a file.
    pub fn output(what: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(format!("{what} cannot be written: {error}")),
        }
    }

    /// Prints the message to standard error and returns the exit code.
    pub fn report(&self) -> ExitCode {
        let code = match self {
            Self::Closed => return ExitCode::SUCCESS,
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Data(_) => 3,
        };
        print_line(format!("daimc: {self}"));
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = match &error {
            Error::Option { option: name, value, reason }
            | Error::Unsuitable { what: name, value, reason } => {
                option(name).map(|option| format!("{option} {}: {reason}", plain(value)))
            }
            _ => None,
        };
        Self::new(error.kind(), text.unwrap_or_else(|| error.to_string()))
    }
}

/// The command-line option that sets an option of the library.
fn option(name: &str) -> Option<&'static str> {
    Some(match name {
        "add_view" => "--add-view",
        "alpha" => "--alpha",
        "batch" => "--batch",
        "beta" => "--beta",
        "clusters" => "-k",
        "device" => "--device",
        "hidden" => "--hidden",
        "initialisation" => "--init",
        "latent" => "--latent",
        "max_iterations" => "--max-iter",
        "memory_factor" => "--memory-factor",
        "neighbours" => "--neighbours",
        "neighbours_budget" => "--neighbours-budget",
        "penalty" => "--penalty",
        "preset" => "--preset",
        "resamples" => "--resamples",
        "runs" => "--runs",
        "scale" => "--scale",
        "solver" => "--solver",
        "tolerance" => "--tol",
        "top_features" => "--top-features",
        "view_weights" => "--view-weights",
        _ => return None,
    })
}

impl From<daimc_io::Error> for Failure {
    fn from(error: daimc_io::Error) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

/// Errors of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::output("standard output", &error)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::option;

    #[test]
    fn errors_name_options_of_the_command_line() {
        let command = crate::Arguments::command();
        let long = |argument: &clap::Arg| argument.get_long().map(|name| format!("--{name}"));
        let known: Vec<String> = ["fit", "select", "update"]
            .iter()
            .flat_map(|name| command.find_subcommand(name).unwrap().get_arguments())
            .flat_map(|argument| {
                long(argument).into_iter().chain(argument.get_short().map(|name| format!("-{name}")))
            })
            .collect();
        let of_fit = serde_json::to_value(daimc::Daimc::new(2).options()).unwrap();
        let names: Vec<&str> = of_fit.as_object().unwrap().keys().map(String::as_str).collect();
        for name in names.into_iter().chain(["add_view", "batch", "hidden", "memory_factor", "resamples"]) {
            // Not options of the command line, or without invalid values.
            let none = [
                "equal_weight",
                "passes",
                "restarts",
                "latent_scale",
                "settle",
                "consolidate",
                "assess",
                "map",
                "seed",
            ];
            match option(name) {
                Some(flag) => assert!(known.iter().any(|own| own == flag), "{flag}"),
                None => assert!(none.contains(&name) || name == "view_scales", "{name}"),
            }
        }
    }
}
