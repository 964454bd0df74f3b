//! The `daimc` program: parses the arguments, checks them, runs the command.

// These macros panic if standard output or standard error is closed: see `terminal`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod align;
mod annotate;
mod blocks;
mod clinical;
mod compare;
mod cost;
mod data;
mod demo;
mod device;
mod digits;
mod embedding;
mod evaluate;
mod experiments;
mod failure;
mod fit;
mod folder;
mod help;
mod hints;
mod ids;
mod impute;
mod inspect;
mod memory;
mod online;
mod options;
mod paths;
mod predict;
mod progress;
mod report;
mod reproduce;
mod results;
mod select;
mod shell;
mod simulate;
mod summary;
mod tables;
mod terminal;
mod truth;
mod tsv;
mod update;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::{Failure, Result};

/// Clusters instances described by several views, each of which may lack some of the instances
#[derive(Parser)]
#[command(
    name = "daimc",
    version,
    arg_required_else_help = true,
    max_term_width = 120,
    after_help = "Exit codes: 0 success, 1 failed or interrupted, 2 wrong usage, 3 bad data.\n\
                  Start with `daimc demo`; then `daimc fit --view rna=rna.tsv --view prot=prot.csv -k 10 -o out`."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Cluster the built-in Digit data with half of every view missing; needs no input files
    Demo(demo::Arguments),
    /// Cluster the instances in your files; write labels, features, the model and a report
    Fit(Box<fit::Arguments>),
    /// Recommend a number of clusters by stability and by prediction of hidden rows, with a plot
    Select(select::Arguments),
    /// Show which data are missing, and estimate the memory and time of a fit
    Inspect(inspect::Arguments),
    /// Assign new instances to the clusters of a fitted model, from whichever views they have
    Predict(predict::Arguments),
    /// Update a model with new instances, assign them to clusters, and report how far the model moved
    Update(update::Arguments),
    /// Impute missing rows and values with a fitted model, and estimate the error
    Impute(impute::Arguments),
    /// Compare clusters with true classes: AC, NMI, ARI, purity, F
    Evaluate(evaluate::Arguments),
    /// Remove instances from views at random; write mask.tsv and incomplete copies
    Simulate(simulate::Arguments),
    /// Run several methods on the same data and masks and compare them with true classes; write a table, plots and every run
    Compare(compare::Arguments),
    /// Reproduce the tables and figures of the DAIMC paper, or evaluate the default on many data sets; every method on the same
    /// masks
    Reproduce(reproduce::Arguments),
    /// Regenerate the report of a fit, for instance with true classes that were not known before
    Report(report::Arguments),
    /// Print the completions for a shell
    Completions(shell::Completions),
    /// Print the manual page of the program or of a command, in man format
    Man(shell::Man),
}

fn main() -> ExitCode {
    survive_file_limits();
    let mut command = help::for_arguments(Arguments::command(), std::env::args_os());
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let arguments = matches.and_then(|matches| {
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    });
    let arguments = arguments.unwrap_or_else(|error| hints::with_tip(error).exit());
    let outcome = match arguments.command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Fit(arguments) => fit::run(*arguments),
        Command::Select(arguments) => select::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Update(arguments) => update::run(&arguments),
        Command::Impute(arguments) => impute::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments, Arguments::command()),
        Command::Man(arguments) => shell::man(&arguments, Arguments::command()),
    };
    outcome.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

/// Makes a write beyond the limit of `ulimit -f` an ordinary error. Without a handler the signal kills the program, with no message
/// and with temporary files left behind.
fn survive_file_limits() {
    #[cfg(unix)]
    {
        use signal_hook::{consts::SIGXFSZ, flag};
        // The flag is not used: the write itself fails. Without a handler the default applies.
        let _ = flag::register(SIGXFSZ, std::sync::Arc::default());
    }
}

/// Sets the number of threads, by default one per CPU.
fn use_threads(threads: Option<usize>) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let most = MOST_THREADS.max(4 * cpus);
    match threads {
        Some(0) => return Err(Failure::Usage("--threads must be at least 1".into())),
        Some(threads) if threads > most => {
            let reason = format!("at most {most} are allowed here, with {cpus} CPUs");
            return Err(Failure::Usage(format!("--threads {threads}: {reason}")));
        }
        _ => {}
    }
    let failed = |reason: &dyn std::fmt::Display| {
        let text = "threads cannot be started";
        let out = "allow more processes or memory, or ask for fewer with --threads";
        Failure::Failed(format!("{text} ({reason}): {out}"))
    };
    // A thread without memory for its stack would abort the program without a message.
    let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|wanted| wanted.parse().ok());
    let count = threads.or(wanted.filter(|&wanted| wanted > 0)).unwrap_or(cpus) as u64;
    if daimc_io::memory::addresses().is_some_and(|left| count.saturating_mul(STACK) > left) {
        return Err(failed(&format!("no memory for the stacks of {count}")));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build_global();
    pool.map_err(|error| failed(&error))
}

/// The stack of a thread and the overhead of starting it, in bytes.
const STACK: u64 = (2 << 20) + (1 << 17);

/// Number of threads that is allowed on any machine.
const MOST_THREADS: usize = 256;
