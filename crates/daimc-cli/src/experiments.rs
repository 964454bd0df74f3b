//! What `compare` and `reproduce` share: how they run, and their progress on standard error.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use daimc_experiments::{Error, Monitor};

use crate::failure::{Failure, Result};
use crate::progress::{self, Done, Level, Line, clock};

/// How an experiment runs. The help is that of `compare`; `reproduce` has some texts of its own.
#[derive(Args)]
pub struct ExperimentOptions {
    /// Folder for results.tsv (a row per run), table.md, plots and compare.html; runs recorded there are not repeated
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    /// Number of threads; the results do not depend on it [default: all]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,

    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,

    /// Print only errors on standard error
    #[arg(short, long)]
    quiet: bool,
}

impl ExperimentOptions {
    /// Sets the number of threads; returns how much to print on standard error.
    pub fn begin(&self) -> Result<Level> {
        crate::use_threads(self.threads)?;
        Ok(Level::new(self.quiet, false))
    }

    /// Fails if the runs were interrupted.
    pub fn end() -> Result<()> {
        if progress::interrupted() {
            return Err(Failure::Failed("interrupted; the same command goes on where it stopped".into()));
        }
        Ok(())
    }
}

/// Without a terminal there is at most one line of progress in this time.
const BETWEEN_LINES: Duration = Duration::from_secs(15);

/// The progress of an experiment on standard error, and Ctrl-C to stop it.
pub struct Console {
    level: Level,
    /// While a series runs: its progress line, and the time of the last line of text.
    series: Mutex<Option<(Line, Instant)>>,
}

impl Console {
    pub fn new(level: Level) -> Self {
        Self { level, series: Mutex::new(None) }
    }

    fn series(&self) -> MutexGuard<'_, Option<(Line, Instant)>> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Monitor for Console {
    fn begin(&self, runs: usize) {
        progress::listen();
        if runs > 0 {
            *self.series() = Some((Line::new(self.level, "starting"), Instant::now()));
        }
    }

    fn progress(&self, done: usize, runs: usize, seconds: Option<f64>) {
        let mut series = self.series();
        let Some((line, last)) = series.as_mut() else { return };
        let text = format!("{done} of {runs} runs");
        if line.is_shown() {
            line.show(text, Done { share: Some(done as f64 / runs as f64), left: seconds });
        } else if last.elapsed() >= BETWEEN_LINES {
            *last = Instant::now();
            let left = seconds.map_or_else(String::new, |left| format!(", about {} left", clock(left)));
            self.level.info(text + &left);
        }
    }

    fn end(&self) {
        *self.series() = None;
    }

    fn note(&self, text: &str) {
        self.level.info(text);
    }

    fn interrupted(&self) -> bool {
        progress::interrupted()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Usage(text) => Self::Usage(text),
            Error::Data(text) => Self::Data(text),
            Error::Fit(error) => error.into(),
            Error::Input(error) => error.into(),
            Error::Output(error) => error.into(),
            error => Self::Failed(error.to_string()),
        }
    }
}
