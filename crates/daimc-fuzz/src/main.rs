//! Mutation fuzzing of the file readers of daimc. The readers are called as a library, without a process per case.
//!
//! Files of the corpus are mutated (bits, numbers, pieces; also inside compressed data) and read. No case may panic, abort, take
//! more than 5 s of CPU time, or need more memory than 64 MB plus twenty times its size. Files that do are kept.

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
    /// Duration in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// Maximum number of cases
    #[arg(long, default_value_t = u64::MAX)]
    cases: u64,

    /// Number of processes [default: the number of cores]
    #[arg(long, default_value_t = thread_count())]
    jobs: u64,

    /// Seed of the random numbers: the same seed gives the same cases
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Folder for the files on which a reader failed
    #[arg(long, default_value = "fuzz-findings")]
    findings: PathBuf,

    /// Run only this reader
    #[arg(long)]
    only: Option<String>,

    /// Folder for the mutants that were read, with their values
    #[arg(long)]
    dump: Option<PathBuf>,

    /// Read this file with the reader of --only and various options, and print memory and time
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
    // In memory if available, because each case writes a file.
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
    let settings = worker::Settings {
        number,
        seed: arguments.seed,
        cases: arguments.cases,
        until: Instant::now() + Duration::from_secs(arguments.seconds),
        scratch: own,
        findings: arguments.findings,
        only: arguments.only,
        dump: arguments.dump,
    };
    on_one_thread(|| worker::work(&settings)).map(|()| 0)
}

/// Runs `work` on one thread, so that memory and time are those of one case.
fn on_one_thread(work: impl FnOnce() -> Result<(), String> + Send) -> Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.map_err(|error| error.to_string())?.install(work)
}
