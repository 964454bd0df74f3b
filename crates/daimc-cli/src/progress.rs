//! Progress on standard error, and the request to stop.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::{LazyLock, Once};
use std::time::Duration;

use daimc::{Daimc, Iteration, Stop};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

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

/// Whether the user has asked to stop.
pub fn interrupted() -> bool {
    STOP.is_set()
}
