//! The progress line at the bottom of a terminal: elapsed time, share done, time left, current stage.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::Level;

/// Resolution of the bar.
const STEPS: f64 = 1000.0;

/// The stage comes last because it is truncated at the width of the terminal.
const COUNTED: &str = "{elapsed_precise} [{bar:16}] {percent:>3} %{prefix}  {wide_msg}";
const UNCOUNTED: &str = "{elapsed_precise}  {wide_msg}";

/// A progress line, drawn if standard error is a terminal, and removed on drop.
pub struct Line(Option<ProgressBar>);

/// Progress of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    /// The share done, if the amount of work is known.
    pub share: Option<f64>,
    /// Seconds until the end, if they can be estimated.
    pub left: Option<f64>,
}

impl Line {
    /// Draws a line for a stage.
    pub fn new(level: Level, what: &'static str) -> Self {
        Self((level > Level::Quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(STEPS as u64).with_style(style(UNCOUNTED)).with_message(what);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        }))
    }

    /// Whether the line is drawn.
    pub fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Shows a stage and its progress.
    pub fn show(&self, what: impl Into<String>, done: Done) {
        let Some(bar) = &self.0 else { return };
        bar.set_style(style(if done.share.is_some() { COUNTED } else { UNCOUNTED }));
        bar.set_prefix(done.left.map_or_else(String::new, |left| format!(", {} left", clock(left))));
        bar.set_message(what.into());
        bar.set_position((done.share.unwrap_or_default() * STEPS) as u64);
    }

    /// Removes the line, also for other owners.
    pub fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.finish();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// The pace of a stage, for the time left.
#[derive(Clone, Copy, Debug)]
pub struct Pace(Instant);

/// Minimum share and time for an estimate.
const LEAST_SHARE: f64 = 0.05;
const LEAST_SECONDS: f64 = 1.0;

impl Pace {
    /// The pace of a stage that begins now.
    pub fn begin() -> Self {
        Self(Instant::now())
    }

    /// The progress at a share of the work, extrapolated linearly.
    pub fn at(self, share: f64) -> Done {
        Done { share: Some(share), left: left(share, self.0.elapsed().as_secs_f64()) }
    }
}

fn left(share: f64, seconds: f64) -> Option<f64> {
    (share >= LEAST_SHARE && seconds >= LEAST_SECONDS).then(|| seconds * (1.0 - share) / share)
}

/// Seconds as a rounded duration.
pub fn clock(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes @ 0..10, seconds) => format!("{minutes} min {seconds} s"),
        (0, minutes, _) => format!("{minutes} min"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_pace_so_far_once_it_is_known() {
        assert_eq!(left(0.25, 10.0), Some(30.0));
        assert_eq!((left(0.01, 10.0), left(0.5, 0.1)), (None, None));
    }

    #[test]
    fn times_are_short_and_no_more_exact_than_they_are_known() {
        let texts = [0.2, 59.1, 61.0, 700.0, 7300.0].map(clock);
        assert_eq!(texts, ["1 s", "1 min 0 s", "1 min 1 s", "11 min", "2 h 1 min"]);
    }
}
