//! The `daimc` program.

mod demo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Clusters instances that are seen through several incomplete views.
#[derive(Parser)]
#[command(name = "daimc", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Clusters the embedded Digit data with gaps; nothing to prepare
    Demo(demo::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has read enough.
        Err(demo::Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("daimc: {error}");
            ExitCode::FAILURE
        }
    }
}
