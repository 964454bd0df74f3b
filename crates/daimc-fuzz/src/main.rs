//! Mutation fuzzing of everything that daimc reads, through the library: no process per case.
//!
//! Files of the corpus are changed (bits, numbers, pieces; inside of the compression too) and read. No case may
//! panic, abort, take more than 5 s, or more than 64 MB and twenty times its size of memory. What did is kept.

mod driver;
mod dump;
mod envelope;
mod target;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Reads mutated files of every format, and keeps those on which a reader fails
#[derive(Clone, Parser)]
struct Arguments {
    /// Seconds to go on
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// Cases to read at most
    #[arg(long, default_value_t = u64::MAX)]
    cases: u64,

    /// Processes, one for each core [default: all cores]
    #[arg(long, default_value_t = thread_count())]
    jobs: u64,

    /// Where the random numbers start: the same cases for the same number
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Folder for the files on which a reader failed
    #[arg(long, default_value = "fuzz-findings")]
    findings: PathBuf,

    /// One reader alone
    #[arg(long)]
    only: Option<String>,

    /// Folder for the mutants that are still read, and what was read from them
    #[arg(long)]
    dump: Option<PathBuf>,

    /// Read this one file with the reader of --only, in several ways, and say what it takes
    #[arg(long, requires = "only")]
    replay: Option<PathBuf>,

    #[arg(long, hide = true)]
    worker: Option<u64>,

    #[arg(long, hide = true)]
    scratch: Option<PathBuf>,
}

fn thread_count() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("daimc-fuzz: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: Arguments) -> Result<u64, String> {
    arguments.jobs = arguments.jobs.max(1);
    // In memory where that can be: a file is written for each case.
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let scratch = || tempfile::Builder::new().prefix("daimc-fuzz-").tempdir_in(&parent);
    let (Some(number), Some(own)) = (arguments.worker, arguments.scratch.clone()) else {
        let scratch = scratch().map_err(|error| format!("{}: {error}", parent.display()))?;
        return match (&arguments.replay, &arguments.only) {
            (Some(path), Some(name)) => {
                on_one_thread(|| worker::replay(path, name, scratch.path())).map(|()| 0)
            }
            _ => driver::run(&arguments, scratch.path()),
        };
    };
    let plan = worker::Plan {
        number,
        seed: arguments.seed,
        cases: arguments.cases,
        until: Instant::now() + Duration::from_secs(arguments.seconds),
        scratch: own,
        findings: arguments.findings,
        only: arguments.only,
        dump: arguments.dump,
    };
    on_one_thread(|| worker::work(&plan)).map(|()| 0)
}

/// Everything on one thread, so that memory and time are those of one case.
fn on_one_thread(work: impl FnOnce() -> Result<(), String> + Send) -> Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.map_err(|error| error.to_string())?.install(work)
}
