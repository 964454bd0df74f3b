//! Rows in several processes: the shard of one of them, and the fit to all.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};

use daimc::{Contributions, Daimc, Error, Executor, Partition, Place, Task, Views};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArrayDyn};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::error::raise;
use crate::input::{Data, ViewInput, matrix};
use crate::model::{Model, array, labels, shares};
use crate::options;
use crate::watch::{PATIENCE, pool};

/// A message to the thread of a shard, and the channel for what it returns.
enum Message {
    Answer(Vec<u8>, Sender<daimc::Result<Vec<u8>>>),
    Place(Vec<u8>, Sender<daimc::Result<Found>>),
}

/// The results for the instances of a shard.
type Found = (Place, Contributions);

/// Some instances of many: their rows, which are borrowed from Python, and their part of V. A thread of its own has both and
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

struct State {
    /// `None` once the thread may end.
    thread: Option<Sender<Message>>,
    /// The number of the last task that was answered, its request and the answer, which is given again if it got lost.
    last: (u64, Vec<u8>, Vec<u8>),
}

/// The error of a thread that has ended: the library has panicked.
fn ended<T>(_: T) -> PyErr {
    PyRuntimeError::new_err("the thread of the shard has ended")
}

impl State {
    fn ask<T>(&self, message: impl FnOnce(Sender<daimc::Result<T>>) -> Message) -> PyResult<T> {
        let (sender, answer) = channel();
        let thread = self.thread.as_ref().ok_or_else(|| ended(()))?;
        thread.send(message(sender)).map_err(ended)?;
        answer.recv().map_err(ended)?.map_err(raise)
    }

    fn request(&self, request: &[u8]) -> PyResult<Vec<u8>> {
        self.ask(|answer| Message::Answer(request.to_vec(), answer))
    }

    /// Brings the state to what it is after a number of tasks, given the requests that it follows from. Returns whether it is, which
    /// without them holds only for a shard that has answered all tasks.
    fn catch_up(&mut self, tasks: u64, setup: Option<&[PyBackedBytes]>) -> PyResult<bool> {
        if self.last.0 == tasks {
            return Ok(true);
        }
        let Some(setup) = setup else { return Ok(false) };
        self.request(&daimc::reset())?;
        for request in setup {
            self.request(request)?;
        }
        self.last = (tasks, Vec::new(), Vec::new());
        Ok(true)
    }

    fn answer(
        &mut self,
        number: u64,
        request: &[u8],
        setup: Option<&[PyBackedBytes]>,
    ) -> PyResult<Option<Vec<u8>>> {
        if self.last.0 == number && self.last.1 == request {
            return Ok(Some(self.last.2.clone()));
        }
        if !self.catch_up(number - 1, setup)? {
            return Ok(None);
        }
        let answer = self.request(request)?;
        self.last = (number, request.to_vec(), answer.clone());
        Ok(Some(answer))
    }
}

type PlaceArrays<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
);

#[pymethods]
impl Shard {
    /// The rows of `parts`, which are those from `first` on of `total` instances.
    #[new]
    fn new(py: Python<'_>, parts: Py<PyAny>, first: usize, total: usize, threads: usize) -> PyResult<Self> {
        let (thread, messages) = channel();
        let (ready, begun) = channel();
        std::thread::spawn(move || {
            let done = Python::attach(|py| hold(py, &parts, first, total, threads, &ready, messages));
            // An error at the beginning is raised by the constructor; later ones are answers.
            done.map_err(|error| ready.send(Err(error)))
        });
        let instances = py.detach(move || begun.recv()).map_err(ended)??;
        let state = State { thread: Some(thread), last: (0, Vec::new(), Vec::new()) };
        Ok(Self { state: Mutex::new(state), first, total, instances })
    }

    /// Answers a task of a fit. A shard that has not answered the task before answers the requests of `setup` first; without
    /// them it returns `None`.
    #[pyo3(signature = (number, request, setup = None))]
    #[allow(clippy::needless_pass_by_value)] // Python hands over what it was given.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        number: u64,
        request: &[u8],
        setup: Option<Vec<PyBackedBytes>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if number == 0 {
            return Err(PyValueError::new_err("tasks are numbered from 1"));
        }
        let answer = py.detach(|| self.lock().answer(number, request, setup.as_deref()))?;
        Ok(answer.map(|answer| PyBytes::new(py, &answer)))
    }

    /// The rows of V, clusters, confidence and contributions of the instances, once a fit of this many tasks has ended with a model.
    #[pyo3(signature = (model, tasks, setup = None))]
    #[allow(clippy::needless_pass_by_value)]
    fn place<'py>(
        &self,
        py: Python<'py>,
        model: &[u8],
        tasks: u64,
        setup: Option<Vec<PyBackedBytes>>,
    ) -> PyResult<Option<PlaceArrays<'py>>> {
        let found = py.detach(|| {
            let mut state = self.lock();
            if !state.catch_up(tasks, setup.as_deref())? {
                return Ok(None);
            }
            state.ask(|answer| Message::Place(model.to_vec(), answer)).map(Some)
        })?;
        let Some((place, contributions)) = found else { return Ok(None) };
        let (labels, confidence) = (labels(py, &place.labels), place.confidence.into_pyarray(py));
        Ok(Some((array(py, place.latent)?, labels, confidence, shares(py, &contributions)?)))
    }
}

impl Shard {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shard {
    /// Ends the thread, which returns the arrays. While Python itself is ending they cannot be returned: the thread then waits
    /// until the process has ended.
    fn drop(&mut self) {
        if Python::try_attach(|_| ()).is_none() {
            std::mem::forget(self.lock().thread.take());
        }
    }
}

/// Borrows the rows and answers messages until the shard is dropped.
fn hold(
    py: Python<'_>,
    parts: &Py<PyAny>,
    first: usize,
    total: usize,
    threads: usize,
    ready: &Sender<PyResult<usize>>,
    messages: Receiver<Message>,
) -> PyResult<()> {
    let parts: Vec<ViewInput<'_>> = parts.bind(py).extract()?;
    let data = Data::borrow(&parts, false)?;
    let pool = pool(threads)?;
    let ready = ready.clone();
    py.detach(move || {
        pool.install(move || {
            let views = data.part()?;
            let instances = views.instances();
            let mut partition = Partition::new(&views, first..first + instances, total)?;
            drop(ready.send(Ok(instances)));
            // The receiver of an answer may have been dropped.
            for message in messages {
                match message {
                    Message::Answer(request, answer) => drop(answer.send(partition.answer(&request))),
                    Message::Place(model, answer) => drop(answer.send(found(&mut partition, &views, &model))),
                }
            }
            Ok(())
        })
    })
    .map_err(raise)
}

fn found(partition: &mut Partition<'_>, views: &Views<'_>, model: &[u8]) -> daimc::Result<Found> {
    let place = partition.place()?;
    let model = daimc::Fit::from_bytes(model)?.model;
    let contributions = model.contributions_of(views, &place.labels)?;
    Ok((place, contributions))
}

/// What happens while a fit runs.
enum Event {
    Iteration((usize, usize, f64, f64, f64)),
    Task { number: u64, request: Vec<u8>, setup: Vec<u64>, reply: Sender<Vec<u8>> },
}

/// Passes tasks to the thread that has called Python's `drive`.
struct Caller {
    instances: usize,
    events: Sender<Event>,
}

impl Executor for Caller {
    fn instances(&self) -> usize {
        self.instances
    }

    fn run(&mut self, task: &Task<'_>) -> daimc::Result<Vec<u8>> {
        let (reply, answer) = channel();
        let (request, setup) = (task.request.to_vec(), task.setup.to_vec());
        let sent = self.events.send(Event::Task { number: task.number, request, setup, reply });
        sent.ok().and_then(|()| answer.recv().ok()).ok_or(Error::Interrupted)
    }
}

/// Fits to the instances of all shards. `ask(number, request, setup)` carries a request to all of them and returns their merged
/// answers; it is called by the thread that calls this function, whose process may use this much memory for what is gathered.
#[pyfunction]
#[pyo3(signature = (instances, clusters, seed, options, start, threads, memory, ask, each))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // They are the arguments of a Python function.
pub fn drive(
    py: Python<'_>,
    instances: usize,
    clusters: usize,
    seed: u64,
    options: &Bound<'_, PyDict>,
    start: Option<PyReadonlyArrayDyn<'_, f64>>,
    threads: usize,
    memory: Option<u64>,
    ask: Bound<'_, PyAny>,
    each: Option<Bound<'_, PyAny>>,
) -> PyResult<Model> {
    let stop = daimc::Stop::new();
    let fit = options::apply(Daimc::new(clusters).seed(seed), options)?.stop(&stop);
    let fit = memory.into_iter().fold(fit, Daimc::memory);
    let fit = match start {
        Some(start) => fit.start(matrix(&start)?),
        None => fit,
    };
    let pool = pool(threads)?;
    let (events, mut heard) = channel();
    let mut failure: Option<PyErr> = None;
    let done = std::thread::scope(|scope| {
        let iterations = events.clone();
        let mut caller = Caller { instances, events };
        let each_iteration = move |own: &daimc::Iteration| {
            let (elapsed, change) = (own.elapsed.as_secs_f64(), own.change.unwrap_or(f64::INFINITY));
            let event = Event::Iteration((own.run, own.number, own.objective.total, change, elapsed));
            if iterations.send(event).is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let worker = scope.spawn(move || pool.install(|| fit.fit_on(&mut caller, each_iteration)));
        loop {
            let called = match (py.detach(|| listen(&mut heard)), failure.is_some()) {
                (Err(RecvTimeoutError::Disconnected), _) => break,
                (Err(RecvTimeoutError::Timeout), _) | (Ok(_), true) => Ok(()),
                (Ok(Event::Iteration(event)), false) => {
                    each.as_ref().map_or(Ok(()), |each| each.call1(event).map(drop))
                }
                (Ok(Event::Task { number, request, setup, reply }), false) => ask
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
    match failure {
        Some(failure) => Err(failure),
        None => done.map(Model).map_err(raise),
    }
}

/// Borrowed for writing, because a receiver may go to another thread but not be shared between two.
fn listen(heard: &mut Receiver<Event>) -> Result<Event, RecvTimeoutError> {
    heard.recv_timeout(PATIENCE)
}

/// Merges the answers of two shards to the same request, or answers that are merged already.
#[pyfunction]
pub fn merge<'py>(py: Python<'py>, one: &[u8], other: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let merged = py.detach(|| daimc::merge(one, other)).map_err(raise)?;
    Ok(PyBytes::new(py, &merged))
}

/// How many bytes of memory this process can still take; `None` where the system does not tell.
#[pyfunction]
pub fn available_memory() -> Option<u64> {
    daimc_core::machine::memory::available()
}

/// Where the leaves of this many instances begin, and where the last of them ends: shards are of whole leaves.
#[pyfunction]
pub fn leaves(instances: usize) -> PyResult<Vec<usize>> {
    if instances == 0 {
        return Err(PyValueError::new_err("there are no instances"));
    }
    let mut edges: Vec<usize> = daimc::leaves(instances).into_iter().map(|leaf| leaf.start).collect();
    edges.push(instances);
    Ok(edges)
}
