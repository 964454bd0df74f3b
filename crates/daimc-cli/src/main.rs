//! The `daimc` program: arguments, then a plan that is checked, then the work.

// These end the program where standard output or standard error is closed: see `terminal`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod align;
mod annotate;
mod blocks;
mod clinical;
mod compare;
mod data;
mod demo;
mod digits;
mod embedding;
mod evaluate;
mod experiment;
mod failure;
mod fit;
mod folder;
mod hints;
mod ids;
mod impute;
mod inspect;
mod memory;
mod predict;
mod progress;
mod report;
mod reproduce;
mod results;
mod select;
mod shell;
mod simulate;
mod summary;
mod terminal;
mod truth;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::{Failure, Result};

/// Clusters instances that are seen through several views, each of which misses some of them
#[derive(Parser)]
#[command(
    name = "daimc",
    version,
    arg_required_else_help = true,
    max_term_width = 120,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad data.\n\
                  Start with `daimc demo`; then `daimc fit --view rna=rna.tsv --view prot=prot.csv -k 10 -o out`."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Cluster the embedded Digit data with half of every view missing; nothing to prepare
    Demo(demo::Arguments),
    /// Cluster the instances of your files; writes labels, features, the model and a report
    Fit(Box<fit::Arguments>),
    /// Recommend a number of clusters: stability and prediction of hidden rows, with a plot
    Select(select::Arguments),
    /// Show what is missing where, and the memory and time that a fit will take
    Inspect(inspect::Arguments),
    /// Place new instances, from whichever views they have, with the model of a fit
    Predict(predict::Arguments),
    /// Fill in rows and values that are missing, with the model of a fit; tells how far off they are
    Impute(impute::Arguments),
    /// Compare clusters with true classes: AC, NMI, ARI, purity, F
    Evaluate(evaluate::Arguments),
    /// Remove instances from views at random: writes mask.tsv and incomplete copies
    Simulate(simulate::Arguments),
    /// Run every method on the same data and masks, against true classes: a table, plots, and every run
    Compare(compare::Arguments),
    /// Repeat the tables and figures of the DAIMC paper, or judge a default on many data sets; every method on the same masks
    Reproduce(reproduce::Arguments),
    /// Make the report of a fit again, for instance with a truth that was not known then
    Report(report::Arguments),
    /// Print the completions for a shell
    Completions(shell::Completions),
    /// Print the manual, of the program or of a command, in the format of man
    Man(shell::Man),
}

fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| hints::with_tip(error).exit());
    let outcome = match arguments.command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Fit(arguments) => fit::run(*arguments),
        Command::Select(arguments) => select::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Impute(arguments) => impute::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
    };
    outcome.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

/// From now on, all work is done by so many threads; where no number is given, by one for each processor.
fn use_threads(threads: Option<usize>) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let most = MOST_THREADS.max(4 * processors);
    match threads {
        Some(0) => return Err(Failure::Usage("--threads must be at least 1".into())),
        Some(threads) if threads > most => {
            let reason = format!("at most {most} can be used here, where {processors} run at once");
            return Err(Failure::Usage(format!("--threads {threads}: {reason}")));
        }
        _ => {}
    }
    let failed = |reason: &dyn std::fmt::Display| {
        let told = "threads cannot be started";
        let out = "allow more processes or memory, or ask for fewer with --threads";
        Failure::Failed(format!("{told} ({reason}): {out}"))
    };
    // A thread that starts where no room is left ends the program instead of saying so.
    let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|wanted| wanted.parse().ok());
    let count = threads.or(wanted.filter(|&wanted| wanted > 0)).unwrap_or(processors) as u64;
    if daimc_io::memory::addresses().is_some_and(|left| count.saturating_mul(STACK) > left) {
        return Err(failed(&format!("there is no room for the stacks of {count}")));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build_global();
    pool.map_err(|error| failed(&error))
}

/// The stack of a thread, and what else it takes to start one, in bytes.
const STACK: u64 = (2 << 20) + (1 << 17);

/// So many threads can be asked for on any machine.
const MOST_THREADS: usize = 256;
