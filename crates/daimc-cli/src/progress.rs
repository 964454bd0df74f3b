//! Progress on standard error, and the request to stop.

mod convergence;
mod line;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};

use convergence::Convergence;
use daimc::text::{bytes, quoted};
use daimc::{Daimc, Iteration, Options, Stop};
use daimc_io::Disk;
pub use line::{Done, Line, Pace, clock};

use crate::digits;
use crate::terminal::print_line;

/// Verbosity on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Quiet,
    Normal,
    Verbose,
}

impl Level {
    pub fn new(quiet: bool, verbose: bool) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Quiet,
            (_, true) => Self::Verbose,
            _ => Self::Normal,
        }
    }

    /// Prints a line unless `--quiet` is set.
    pub fn info(self, text: impl std::fmt::Display) {
        if self > Self::Quiet {
            print_line(text);
        }
    }

    /// Prints a line if `--verbose` is set.
    pub fn detail(self, text: impl std::fmt::Display) {
        if self == Self::Verbose {
            print_line(text);
        }
    }
}

/// Whether the user has asked to stop.
static STOP: LazyLock<Stop> = LazyLock::new(Stop::new);

/// Makes Ctrl-C request a stop; the second Ctrl-C ends the program.
pub fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without a handler, Ctrl-C ends the program.
        let _ = ctrlc::set_handler(|| {
            if STOP.is_set() {
                std::process::exit(1);
            }
            STOP.set();
            print_line("\ndaimc: stopping; press Ctrl-C again to stop at once");
        });
    });
}

/// The switch that Ctrl-C sets.
pub fn request() -> &'static Stop {
    &STOP
}

/// The progress of a fit, which Ctrl-C interrupts.
pub struct Progress {
    line: Arc<Line>,
    level: Level,
    options: Options,
    /// The convergence of each run, and the pace since the first iteration.
    runs: Mutex<(Option<Pace>, HashMap<usize, Convergence>)>,
}

impl Progress {
    /// The progress of a fit with these options.
    pub fn new(options: &Options, level: Level) -> Self {
        listen();
        let line = Arc::new(Line::new(level, "starting"));
        Self { line, level, options: options.clone(), runs: Mutex::default() }
    }

    /// Returns the fit with progress for its stages outside the iterations, and with the switch of Ctrl-C.
    pub fn watch(&self, fit: &Daimc) -> Daimc {
        let (line, level) = (Arc::clone(&self.line), self.level);
        let pace = Mutex::new(Pace::begin());
        fit.clone().stop(&STOP).stages(move |stage, share| {
            if share > 0.0 {
                line.show(stage.to_string(), lock(&pace).at(share));
                return;
            }
            *lock(&pace) = Pace::begin();
            line.show(stage.to_string(), Done::default());
            if !line.is_shown() {
                level.detail(stage);
            }
        })
    }

    pub fn each(&self, iteration: &Iteration) -> ControlFlow<()> {
        let Iteration { run, number, objective, change, .. } = iteration;
        let Options { runs, max_iterations, tolerance, .. } = self.options;
        let run_of = if runs > 1 { format!("run {run} of {runs}, ") } else { String::new() };
        let position = format!("{run_of}iteration {number}");
        if self.line.is_shown() {
            let (begun, curves) = &mut *lock(&self.runs);
            let pace = *begun.get_or_insert_with(Pace::begin);
            let curve = curves.entry(*run).or_insert_with(|| Convergence::new(tolerance, max_iterations));
            change.iter().for_each(|change| curve.add(*change));
            // Runs are concurrent; the others are assumed to be as long as those that have begun.
            let expected: Vec<f64> = curves.values().filter_map(Convergence::expected).collect();
            let done: usize = curves.values().map(Convergence::done).sum();
            let all = runs as f64 * expected.iter().sum::<f64>() / expected.len() as f64;
            let done =
                if expected.is_empty() { Done::default() } else { pace.at((done as f64 / all).min(1.0)) };
            self.line.show(format!("{position}, J = {}", short(objective.total)), done);
        } else {
            let change = change.map_or_else(String::new, |change| format!(", change {change:.1e}"));
            self.level.detail(format!("{position}: J = {}{change}", short(objective.total)));
        }
        ControlFlow::Continue(())
    }

    pub fn finish(&self) {
        self.line.finish();
    }
}

/// A number with six significant digits.
fn short(number: f64) -> String {
    let mut text = Vec::new();
    digits::significant(&mut text, number);
    String::from_utf8_lossy(&text).into_owned()
}

/// Reading of data that may not fit into memory, with temporary files in a folder: its progress, and interruption by Ctrl-C.
pub struct Spooling {
    folder: PathBuf,
    hashed: bool,
    pub level: Level,
    line: Arc<Line>,
    views: Mutex<Vec<Arc<Spooled>>>,
}

/// Bytes of a view read and reordered so far.
struct Spooled {
    name: String,
    read: AtomicU64,
    ordered: AtomicU64,
}

/// Without a progress line, a line is printed after this many bytes.
const LINE: u64 = 1_000_000_000;

impl Spooling {
    pub fn new(folder: &Path, level: Level) -> Self {
        let line = Arc::new(Line::new(level, "reading"));
        Self { folder: folder.to_owned(), hashed: true, level, line, views: Mutex::default() }
    }

    /// Skips the SHA-256 of the files.
    pub fn unhashed(self) -> Self {
        Self { hashed: false, ..self }
    }

    /// The temporary files of a view.
    pub fn disk(&self, view: &str) -> Disk {
        let (level, line) = (self.level, Arc::clone(&self.line));
        let name = quoted(view).to_string();
        let view = Arc::new(Spooled { name, read: AtomicU64::new(0), ordered: AtomicU64::new(0) });
        lock(&self.views).push(Arc::clone(&view));
        let disk = Disk::new(&self.folder).stop(&STOP);
        let disk = if self.hashed { disk } else { disk.unhashed() };
        disk.progress(move |progress| {
            listen();
            let (sum, more, what) = match progress {
                daimc_io::Progress::Ordered(more) => (&view.ordered, more, "reordering"),
                daimc_io::Progress::Read(more) => (&view.read, more, "reading"),
                _ => return,
            };
            let before = sum.fetch_add(more, Ordering::Relaxed);
            let text = || format!("{what} view {}: {}", view.name, bytes((before + more) as f64));
            if line.is_shown() {
                line.show(text(), Done::default());
            } else if before / LINE < (before + more) / LINE {
                level.detail(text());
            }
        })
    }

    /// Removes the progress line and prints how many bytes were read.
    pub fn finish(&self) {
        self.line.finish();
        for view in lock(&self.views).drain(..) {
            let [read, ordered] = [&view.read, &view.ordered].map(|sum| sum.load(Ordering::Relaxed));
            if read > 0 {
                let order = if ordered > 0 { " and reordered by row" } else { "" };
                self.level.detail(format!("  view {}: {} read{order}", view.name, bytes(read as f64)));
            }
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the user has asked to stop.
pub fn interrupted() -> bool {
    STOP.is_set()
}
