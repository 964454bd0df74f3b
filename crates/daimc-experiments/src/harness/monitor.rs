//! Progress of the runs, and the request to stop them.

/// Receives the progress of an experiment, and can stop it.
///
/// An experiment is one or more series of runs. For each series it calls [`begin`](Self::begin), then
/// [`progress`](Self::progress) after every run, from any thread but never concurrently, then
/// [`end`](Self::end). [`note`](Self::note) comes between the series.
pub trait Monitor: Sync {
    /// A series of this many runs begins; zero if all of them were finished by an earlier call.
    fn begin(&self, runs: usize);

    /// `done` of `runs` runs are finished. `seconds` is the time until the last, once every method has finished a run.
    fn progress(&self, done: usize, runs: usize, seconds: Option<f64>);

    /// The series has ended or failed.
    fn end(&self);

    /// Receives one line of text, e.g. which data set or method was skipped and why.
    fn note(&self, text: &str);

    /// Whether to stop: asked before every run and after every iteration. Finished runs are kept.
    fn interrupted(&self) -> bool;
}
