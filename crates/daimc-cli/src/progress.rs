//! Progress on standard error, and the request to stop.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::Duration;

use daimc::text::quoted;
use daimc::{Daimc, Iteration, Stop};
use daimc_io::Disk;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::memory::size;
use crate::terminal::tell;

/// How much is told on standard error.
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

    /// Tells people something, unless they want quiet.
    pub fn tell(self, text: impl std::fmt::Display) {
        if self > Self::Quiet {
            tell(text);
        }
    }

    /// Tells people more than they need.
    pub fn detail(self, text: impl std::fmt::Display) {
        if self == Self::Verbose {
            tell(text);
        }
    }
}

/// Whether the user has asked to stop.
static STOP: LazyLock<Stop> = LazyLock::new(Stop::new);

/// From now on Ctrl-C is a request, not the end; the second one is the end.
pub fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where no handler can be set, Ctrl-C ends the program as it always does.
        let _ = ctrlc::set_handler(|| {
            if STOP.is_set() {
                std::process::exit(1);
            }
            STOP.set();
            tell("\ndaimc: stopping; once more to stop at once");
        });
    });
}

/// The switch that is set when the user asks to stop.
pub fn request() -> &'static Stop {
    &STOP
}

/// Shows the iterations of a fit, and ends it when the user asks.
pub struct Progress {
    bar: Option<ProgressBar>,
    level: Level,
    most: usize,
    runs: usize,
}

impl Progress {
    /// For so many runs of at most so many iterations.
    pub fn new(most: usize, runs: usize, level: Level) -> Self {
        listen();
        let bar = (level > Level::Quiet && std::io::stderr().is_terminal()).then(|| {
            let style = "{elapsed_precise} [{bar:30}] {msg}";
            let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(most.saturating_mul(runs) as u64).with_style(style.progress_chars("=> "))
        });
        if let Some(bar) = &bar {
            bar.set_message("starting");
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, level, most, runs }
    }

    /// The same fit, which tells what it does beside its iterations and ends wherever it is when the user asks.
    pub fn watch(&self, fit: &Daimc) -> Daimc {
        let (bar, level) = (self.bar.clone(), self.level);
        fit.clone().stop(&STOP).stages(move |stage| match &bar {
            Some(bar) => bar.set_message(stage.to_string()),
            None => level.detail(stage),
        })
    }

    pub fn each(&self, iteration: &Iteration) -> ControlFlow<()> {
        let Iteration { run, number, objective, change, .. } = iteration;
        let run_of = if self.runs > 1 { format!("run {run} of {}, ", self.runs) } else { String::new() };
        if let Some(bar) = &self.bar {
            let most = self.most;
            // Runs go on side by side.
            bar.inc(1);
            bar.set_message(format!(
                "{run_of}iteration {number} of at most {most}  J = {:.6}  at most {:#} left",
                objective.total,
                HumanDuration(bar.eta())
            ));
        } else {
            let change = change.map_or_else(String::new, |change| format!(", change {change:.1e}"));
            self.level.detail(format!("{run_of}iteration {number}: J = {:.6}{change}", objective.total));
        }
        ControlFlow::Continue(())
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows how far data are that are not kept in memory, and ends that when the user asks.
pub struct Spooling {
    level: Level,
    bar: Arc<OnceLock<Option<ProgressBar>>>,
    views: Mutex<Vec<Arc<Spooled>>>,
}

/// Bytes of a view that are done.
struct Spooled {
    name: String,
    read: AtomicU64,
    ordered: AtomicU64,
}

/// Where there is no bar, a line is told after so many bytes.
const LINE: u64 = 1_000_000_000;

impl Spooling {
    pub fn new(level: Level) -> Self {
        Self { level, bar: Arc::default(), views: Mutex::default() }
    }

    /// Spool files of a view, in a folder.
    pub fn disk(&self, folder: &Path, view: &str) -> Disk {
        let (level, bar) = (self.level, Arc::clone(&self.bar));
        let name = quoted(view).to_string();
        let view = Arc::new(Spooled { name, read: AtomicU64::new(0), ordered: AtomicU64::new(0) });
        lock(&self.views).push(Arc::clone(&view));
        Disk::new(folder).stop(&STOP).progress(move |progress| {
            let bar = bar.get_or_init(|| {
                listen();
                spinner(level)
            });
            let (sum, more, what) = match progress {
                daimc_io::Progress::Ordered(more) => (&view.ordered, more, "bringing into order"),
                daimc_io::Progress::Read(more) => (&view.read, more, "reading"),
                _ => return,
            };
            let before = sum.fetch_add(more, Ordering::Relaxed);
            let told = || format!("{what} view {}: {}", view.name, size((before + more) as f64));
            match bar {
                Some(bar) => bar.set_message(told()),
                None if before / LINE < (before + more) / LINE => level.detail(told()),
                None => {}
            }
        })
    }

    /// All are read.
    pub fn finish(&self) {
        if let Some(Some(bar)) = self.bar.get() {
            bar.finish_and_clear();
        }
        for view in lock(&self.views).drain(..) {
            let [read, ordered] = [&view.read, &view.ordered].map(|sum| sum.load(Ordering::Relaxed));
            if read > 0 {
                let order = if ordered > 0 { ", and brought into the order of rows" } else { "" };
                self.level.detail(format!("  view {}: {} read{order}", view.name, size(read as f64)));
            }
        }
    }
}

fn spinner(level: Level) -> Option<ProgressBar> {
    (level > Level::Quiet && std::io::stderr().is_terminal()).then(|| {
        let style = ProgressStyle::with_template("{elapsed_precise} {msg}");
        let bar =
            ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    })
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the user has asked to stop.
pub fn interrupted() -> bool {
    STOP.is_set()
}
