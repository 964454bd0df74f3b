//! Long computations that report progress to Python and can be interrupted. They run without the GIL, on their own threads.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use daimc::{Result, Stop};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Interval of the checks for signals while no progress is reported.
pub const PATIENCE: Duration = Duration::from_millis(50);

/// The channel from a computation to a Python callback, which is called with `Args`.
pub struct Progress<'a, Args> {
    stop: &'a Stop,
    sender: Sender<Args>,
}

impl<Args> Progress<'_, Args> {
    /// Reports progress; returns `Break` if the computation has to stop.
    pub fn report(&self, args: Args) -> ControlFlow<()> {
        // Sending fails if the receiver is gone, that is, after the computation was abandoned.
        if self.stop.is_set() || self.sender.send(args).is_err() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Runs `work` on `threads` threads. Meanwhile the calling thread, the only one to which Python delivers signals, calls `each`
/// with the reported progress and checks for signals; an exception from either stops the work and is raised.
pub fn watched<T: Send, Args: Send + for<'py> PyCallArgs<'py>>(
    py: Python<'_>,
    threads: usize,
    each: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Progress<'_, Args>, &Stop) -> Result<T> + Send,
) -> PyResult<T> {
    let pool = pool(threads)?;
    let stop = Stop::new();
    let (sender, mut receiver) = channel();
    let mut failure = None;
    let done = std::thread::scope(|scope| {
        let stop = &stop;
        let worker = scope.spawn(move || {
            let progress = Progress { stop, sender };
            pool.install(|| work(&progress, stop))
        });
        loop {
            let next = py.detach(|| receive(&mut receiver));
            let called = match (next, each) {
                (Err(RecvTimeoutError::Disconnected), _) => break,
                (Ok(args), Some(each)) if failure.is_none() => each.call1(args).map(drop),
                _ => Ok(()),
            };
            if let Err(error) = called.and_then(|()| py.check_signals()) {
                stop.set();
                failure.get_or_insert(error);
            }
        }
        py.detach(|| worker.join()).unwrap_or_else(|panic| resume_unwind(panic))
    });
    match failure {
        Some(failure) => Err(failure),
        None => done.map_err(crate::error::raise),
    }
}

/// The next report. `&mut`, because a `Receiver` is `Send` but not `Sync`.
fn receive<Args: Send>(receiver: &mut Receiver<Args>) -> std::result::Result<Args, RecvTimeoutError> {
    receiver.recv_timeout(PATIENCE)
}

/// Runs `work` on `threads` threads, without the GIL and without checks for signals.
pub fn on_threads<T: Send>(
    py: Python<'_>,
    threads: usize,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    let pool = pool(threads)?;
    py.detach(|| pool.install(work)).map_err(crate::error::raise)
}

/// Creates the threads of one call. They are not kept for later calls: threads do not survive a fork.
pub fn pool(threads: usize) -> PyResult<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| PyValueError::new_err(format!("n_jobs = {threads}: {error}")))
}
