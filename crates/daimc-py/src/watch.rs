//! Long work that Python can look at and stop: it runs without Python's lock, on threads of its own.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use daimc::{Result, Stop};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// How often signals are looked for while nothing is reported.
pub const PATIENCE: Duration = Duration::from_millis(50);

/// The line from the work to Python, for news of one kind: the arguments of a function.
pub struct Watch<'a, News> {
    stop: &'a Stop,
    news: Sender<News>,
}

impl<News> Watch<'_, News> {
    /// Tells of a step of the work; breaks if it is to end.
    pub fn tell(&self, news: News) -> ControlFlow<()> {
        // Nobody listens once the work has been given up.
        if self.stop.is_set() || self.news.send(news).is_err() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Runs `work` on so many threads. The calling thread meanwhile hands news to `each` and takes signals, which Python
/// delivers there alone; an exception from either stops the work and is raised.
pub fn watched<T: Send, News: Send + for<'py> PyCallArgs<'py>>(
    py: Python<'_>,
    threads: usize,
    each: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch<'_, News>, &Stop) -> Result<T> + Send,
) -> PyResult<T> {
    let pool = pool(threads)?;
    let stop = Stop::new();
    let (news, mut heard) = channel();
    let mut failure = None;
    let done = std::thread::scope(|scope| {
        let stop = &stop;
        let worker = scope.spawn(move || {
            let watch = Watch { stop, news };
            pool.install(|| work(&watch, stop))
        });
        loop {
            let next = py.detach(|| listen(&mut heard));
            let called = match (next, each) {
                (Err(RecvTimeoutError::Disconnected), _) => break,
                (Ok(news), Some(each)) if failure.is_none() => each.call1(news).map(drop),
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

/// The next news. Borrowed for writing, because a receiver may go to another thread but not be shared between two.
fn listen<News: Send>(heard: &mut Receiver<News>) -> std::result::Result<News, RecvTimeoutError> {
    heard.recv_timeout(PATIENCE)
}

/// Threads for one call. None are kept, so that a process that was forked meanwhile can work too.
pub fn pool(threads: usize) -> PyResult<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| PyValueError::new_err(format!("n_jobs = {threads}: {error}")))
}
