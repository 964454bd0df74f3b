//! Rows that several processes hold: the shard that one of them holds, and the fit that asks all.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};

use daimc::{Daimc, Error};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::error::raise;
use crate::input::{Data, ViewInput};
use crate::model::{Model, array, labels};
use crate::options;
use crate::watch::{PATIENCE, pool};

/// A request, and the line for its answer.
type Asked = (Vec<u8>, Sender<daimc::Result<Vec<u8>>>);

/// Some instances of many: their rows, which are borrowed from Python, and their part of V. A thread of its own holds both and
/// answers, so that what borrows rows need not leave the function that borrowed them.
#[pyclass(frozen, module = "daimc._daimc")]
pub struct Shard {
    state: Mutex<State>,
    #[pyo3(get)]
    first: usize,
    #[pyo3(get)]
    total: usize,
    #[pyo3(get)]
    instances: usize,
}

/// What went wrong in the library, or on the way to it.
struct Told(PyErr);

impl From<Error> for Told {
    fn from(error: Error) -> Self {
        Self(raise(error))
    }
}

struct State {
    /// `None` once it is gone.
    line: Option<Sender<Asked>>,
    /// The last request that was answered, and its answer, for those to whom it got lost.
    last: (u64, Vec<u8>, Vec<u8>),
    /// The last request that the state follows from, as of the last answer.
    setup: u64,
}

/// A line that was left; a library that panicked.
fn gone<T>(_: T) -> PyErr {
    PyRuntimeError::new_err("the shard is gone")
}

impl State {
    fn tell(&self, request: &[u8]) -> PyResult<Vec<u8>> {
        let (reply, answer) = channel();
        let line = self.line.as_ref().ok_or_else(|| gone(()))?;
        line.send((request.to_vec(), reply)).map_err(gone)?;
        answer.recv().map_err(gone)?.map_err(raise)
    }

    /// Answers a request. A shard that is new, or was left behind, answers first what its state has to follow from.
    fn answer(&mut self, number: u64, request: &[u8], setup: &[(u64, PyBackedBytes)]) -> PyResult<Vec<u8>> {
        if self.last.0 == number && self.last.1 == request {
            return Ok(self.last.2.clone());
        }
        self.catch_up(setup)?;
        let answer = self.tell(request)?;
        self.last = (number, request.to_vec(), answer.clone());
        Ok(answer)
    }

    /// Answers what the state has to follow from, unless it does.
    fn catch_up(&mut self, setup: &[(u64, PyBackedBytes)]) -> PyResult<()> {
        // Numbers grow, and what is remembered of earlier stages may stand last.
        let expected = setup.iter().map(|(number, _)| *number).max().unwrap_or(0);
        if expected != self.setup && expected != self.last.0 {
            self.tell(&daimc::reset())?;
            for (_, request) in setup {
                self.tell(request)?;
            }
        }
        self.setup = expected;
        Ok(())
    }
}

type Place<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl Shard {
    /// The rows of `parts`, which are those from `first` on of `total` instances.
    #[new]
    fn new(py: Python<'_>, parts: Py<PyAny>, first: usize, total: usize, threads: usize) -> PyResult<Self> {
        let (line, asked) = channel();
        let (ready, begun) = channel();
        std::thread::spawn(move || {
            let held = Python::attach(|py| hold(py, &parts, first, total, threads, &ready, asked));
            // Whoever waits for the beginning is told why there is none; later there is nobody who would want to know.
            held.map_err(|error| ready.send(Err(error)))
        });
        let instances = py.detach(move || begun.recv()).map_err(gone)??;
        let state = State { line: Some(line), last: (0, Vec::new(), Vec::new()), setup: 0 };
        Ok(Self { state: Mutex::new(state), first, total, instances })
    }

    /// Answers a request of a fit. `setup` has the earlier requests that the state of a shard follows from, with their numbers:
    /// one that has not answered them does so first.
    #[allow(clippy::needless_pass_by_value)] // Python hands over what it was given.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        number: u64,
        request: &[u8],
        setup: Vec<(u64, PyBackedBytes)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let answer = py.detach(|| self.lock().answer(number, request, &setup))?;
        Ok(PyBytes::new(py, &answer))
    }

    /// The rows of V, clusters and confidence of the instances, for the last request of a fit.
    #[allow(clippy::needless_pass_by_value)]
    fn place<'py>(
        &self,
        py: Python<'py>,
        request: &[u8],
        setup: Vec<(u64, PyBackedBytes)>,
    ) -> PyResult<Place<'py>> {
        let place = py.detach(|| {
            let mut state = self.lock();
            state.catch_up(&setup)?;
            let found =
                daimc::gather_place(request, self.instances, |request| state.tell(request).map_err(Told));
            found.map_err(|Told(error)| error)
        })?;
        let confidence = place.confidence.into_pyarray(py);
        Ok((array(py, place.latent)?, labels(py, &place.labels), confidence))
    }
}

impl Shard {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shard {
    /// Lets the thread go, which gives the arrays back. When Python itself is ending there is nobody to give them to: the
    /// thread then waits until the process has gone.
    fn drop(&mut self) {
        if Python::try_attach(|_| ()).is_none() {
            std::mem::forget(self.lock().line.take());
        }
    }
}

/// Borrows the rows and answers until nobody asks any more.
fn hold(
    py: Python<'_>,
    parts: &Py<PyAny>,
    first: usize,
    total: usize,
    threads: usize,
    ready: &Sender<PyResult<usize>>,
    asked: Receiver<Asked>,
) -> PyResult<()> {
    let parts: Vec<ViewInput<'_>> = parts.bind(py).extract()?;
    let data = Data::borrow(&parts, false)?;
    let pool = pool(threads)?;
    let ready = ready.clone();
    py.detach(move || {
        pool.install(move || {
            let views = data.part()?;
            let instances = views.instances();
            let mut reply: Option<Sender<daimc::Result<Vec<u8>>>> = None;
            daimc::serve(&views, first..first + instances, total, |answer| {
                match (reply.take(), answer) {
                    // Who has asked may have gone.
                    (Some(reply), Some(answer)) => drop(reply.send(answer)),
                    _ => drop(ready.send(Ok(instances))),
                }
                let (request, line) = asked.recv().ok()?;
                reply = Some(line);
                Some(request)
            })
        })
    })
    .map_err(raise)
}

/// What a fit tells while it runs.
enum Event {
    News((usize, usize, f64, f64, f64)),
    Ask { number: u64, request: Vec<u8>, setup: Vec<u64>, reply: Sender<Vec<u8>> },
}

/// Fits to so many instances that others hold. `ask(number, request, setup)` carries a request to all of them and returns
/// their merged replies; it is called by the thread that calls this, whose process may take so much memory for neighbourhoods.
/// Returns the model, which has no instances, and the request by which shards tell what was found for theirs.
#[pyfunction]
#[pyo3(signature = (instances, clusters, seed, options, threads, memory, ask, each))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // They are the arguments of a Python function.
pub fn drive<'py>(
    py: Python<'py>,
    instances: usize,
    clusters: usize,
    seed: u64,
    options: &Bound<'_, PyDict>,
    threads: usize,
    memory: Option<u64>,
    ask: Bound<'_, PyAny>,
    each: Option<Bound<'_, PyAny>>,
) -> PyResult<(Model, Bound<'py, PyBytes>)> {
    let stop = daimc::Stop::new();
    let fit = options::apply(Daimc::new(clusters).seed(seed), options)?.stop(&stop);
    let fit = memory.into_iter().fold(fit, Daimc::memory);
    let pool = pool(threads)?;
    let (events, mut heard) = channel();
    let mut failure: Option<PyErr> = None;
    let done = std::thread::scope(|scope| {
        let news = events.clone();
        let carry = move |ask: &daimc::Ask<'_>| {
            let (reply, answer) = channel();
            let (request, setup) = (ask.request.to_vec(), ask.setup.to_vec());
            let sent = events.send(Event::Ask { number: ask.number, request, setup, reply });
            sent.ok().and_then(|()| answer.recv().ok()).ok_or(Error::Interrupted)
        };
        let each_iteration = move |own: &daimc::Iteration| {
            let (elapsed, change) = (own.elapsed.as_secs_f64(), own.change.unwrap_or(f64::INFINITY));
            let told = news.send(Event::News((own.run, own.number, own.objective.total, change, elapsed)));
            if told.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let worker =
            scope.spawn(move || pool.install(|| fit.fit_elsewhere(instances, carry, each_iteration)));
        loop {
            let called = match (py.detach(|| listen(&mut heard)), failure.is_some()) {
                (Err(RecvTimeoutError::Disconnected), _) => break,
                (Err(RecvTimeoutError::Timeout), _) | (Ok(_), true) => Ok(()),
                (Ok(Event::News(news)), false) => {
                    each.as_ref().map_or(Ok(()), |each| each.call1(news).map(drop))
                }
                (Ok(Event::Ask { number, request, setup, reply }), false) => ask
                    .call1((number, PyBytes::new(py, &request), setup))
                    .and_then(|answer| Ok(answer.extract::<PyBackedBytes>()?.to_vec()))
                    .map(|answer| drop(reply.send(answer))),
            };
            if let Err(error) = called.and_then(|()| py.check_signals()) {
                stop.set();
                failure.get_or_insert(error);
            }
        }
        py.detach(|| worker.join()).unwrap_or_else(|panic| resume_unwind(panic))
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    let (fit, last) = done.map_err(raise)?;
    Ok((Model(fit), PyBytes::new(py, &last)))
}

/// Borrowed for writing, because a receiver may go to another thread but not be shared between two.
fn listen(heard: &mut Receiver<Event>) -> Result<Event, RecvTimeoutError> {
    heard.recv_timeout(PATIENCE)
}

/// Merges the replies of two shards, or of several each, to the same request.
#[pyfunction]
pub fn merge<'py>(py: Python<'py>, one: &[u8], other: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let merged = py.detach(|| daimc::merge_replies(one, other)).map_err(raise)?;
    Ok(PyBytes::new(py, &merged))
}

/// How many bytes of memory this process can still take; `None` where the system does not tell.
#[pyfunction]
pub fn available_memory() -> Option<u64> {
    daimc::internal::memory::available()
}

/// Where the leaves of so many instances begin, and where the last of them ends: shards are of whole leaves.
#[pyfunction]
pub fn leaves(instances: usize) -> PyResult<Vec<usize>> {
    if instances == 0 {
        return Err(PyValueError::new_err("there are no instances"));
    }
    let mut edges: Vec<usize> = daimc::leaves(instances).into_iter().map(|leaf| leaf.start).collect();
    edges.push(instances);
    Ok(edges)
}
