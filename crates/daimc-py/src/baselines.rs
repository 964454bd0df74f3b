//! The baseline methods and their options, one line each.

use std::ops::ControlFlow;
use std::time::Instant;

use daimc::{Daimc, Preset};
use daimc_experiments::methods::{
    Concatenation, Img, Method, Mic, MultiNmf, Omvc, Opimc, Pvc, SingleView, WeightedSemiNmf,
};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::input::{Data, ViewInput};
use crate::model::{array, labels};
use crate::options::{self, Setting};
use crate::watch::watched;

/// The methods with the names of their options.
const METHODS: [(&str, &[&str]); 9] = [
    ("wsnmf", &["scale", "max_iter", "tol", "passes", "n_init"]),
    ("multinmf", &["scale", "lambda", "rounds", "iterations"]),
    ("pvc", &["views", "scale", "lambda", "rounds", "tol"]),
    ("img", &["views", "scale", "lambda", "beta", "gamma", "max_iter", "tol"]),
    ("mic", &["scale", "alpha", "beta", "rounds", "iterations"]),
    ("omvc", &["scale", "alpha", "beta", "block", "passes", "max_iter", "tol"]),
    ("opimc", &["scale", "alpha", "block", "starts", "passes", "max_iter", "tol"]),
    ("single", &["view", "scale"]),
    ("concatenation", &["scale"]),
];

/// Returns the names of the methods and of their options.
#[pyfunction]
pub fn baseline_options() -> Vec<(&'static str, Vec<&'static str>)> {
    METHODS.iter().map(|(name, options)| (*name, options.to_vec())).collect()
}

/// The options passed to a method, already checked against [`METHODS`].
struct MethodOptions<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> MethodOptions<'_, 'py> {
    fn set<T: for<'a> FromPyObject<'a, 'py>>(&self, name: &str, what: &str, field: &mut T) -> PyResult<()> {
        if let Some(value) = self.0.get_item(name)? {
            *field = Setting { name, value: &value }.get(what)?;
        }
        Ok(())
    }

    fn number(&self, name: &str, field: &mut f64) -> PyResult<()> {
        self.set(name, "a number", field)
    }

    fn count(&self, name: &str, field: &mut usize) -> PyResult<()> {
        self.set(name, "a whole number", field)
    }

    fn scale(&self, field: &mut daimc::Scale) -> PyResult<()> {
        if let Some(value) = self.0.get_item("scale")? {
            *field = Setting { name: "scale", value: &value }.scale()?;
        }
        Ok(())
    }

    fn views(&self, field: &mut (usize, usize)) -> PyResult<()> {
        self.set("views", "the numbers of two views", field)
    }
}

fn method(name: &str, given: &Bound<'_, PyDict>) -> PyResult<Box<dyn Method + Send>> {
    let Some((_, known)) = METHODS.iter().find(|(known, _)| *known == name) else {
        let names = METHODS.map(|(name, _)| name).join(", ");
        return Err(PyValueError::new_err(format!("there is no method '{name}'; there are {names}")));
    };
    for key in given.keys() {
        let key: String = key.extract()?;
        if !known.contains(&key.as_str()) {
            let known = known.join(", ");
            let reason = format!("method '{name}' has no option '{key}'; it has {known}");
            return Err(PyValueError::new_err(reason));
        }
    }
    let options = MethodOptions(given);
    Ok(match name {
        "wsnmf" => {
            let fit = options::apply(Daimc::new(1).preset(Preset::Paper), given)?;
            Box::new(WeightedSemiNmf { fit })
        }
        "multinmf" => {
            let mut method = MultiNmf::default();
            options.scale(&mut method.scale)?;
            options.number("lambda", &mut method.lambda)?;
            options.count("rounds", &mut method.rounds)?;
            options.count("iterations", &mut method.iterations)?;
            Box::new(method)
        }
        "pvc" => {
            let mut method = Pvc::default();
            options.views(&mut method.views)?;
            options.scale(&mut method.scale)?;
            options.number("lambda", &mut method.lambda)?;
            options.count("rounds", &mut method.max_rounds)?;
            options.number("tol", &mut method.tolerance)?;
            Box::new(method)
        }
        "img" => {
            let mut method = Img::default();
            options.views(&mut method.views)?;
            options.scale(&mut method.scale)?;
            options.number("lambda", &mut method.lambda)?;
            options.number("beta", &mut method.beta)?;
            options.number("gamma", &mut method.gamma)?;
            options.count("max_iter", &mut method.max_iterations)?;
            options.number("tol", &mut method.tolerance)?;
            Box::new(method)
        }
        "mic" => {
            let mut method = Mic::default();
            options.scale(&mut method.scale)?;
            options.number("alpha", &mut method.alpha)?;
            options.number("beta", &mut method.beta)?;
            options.count("rounds", &mut method.rounds)?;
            options.count("iterations", &mut method.iterations)?;
            Box::new(method)
        }
        "omvc" => {
            let mut method = Omvc::default();
            options.scale(&mut method.scale)?;
            options.number("alpha", &mut method.alpha)?;
            options.number("beta", &mut method.beta)?;
            options.count("block", &mut method.block)?;
            options.count("passes", &mut method.passes)?;
            options.count("max_iter", &mut method.max_iterations)?;
            options.number("tol", &mut method.tolerance)?;
            Box::new(method)
        }
        "opimc" => {
            let mut method = Opimc::default();
            options.scale(&mut method.scale)?;
            options.number("alpha", &mut method.alpha)?;
            options.count("block", &mut method.block)?;
            options.count("starts", &mut method.starts)?;
            options.count("passes", &mut method.passes)?;
            options.count("max_iter", &mut method.max_iterations)?;
            options.number("tol", &mut method.tolerance)?;
            Box::new(method)
        }
        "single" => {
            let mut method = SingleView::new(0);
            options.count("view", &mut method.view)?;
            options.scale(&mut method.scale)?;
            Box::new(method)
        }
        _ => {
            let mut method = Concatenation::default();
            options.scale(&mut method.scale)?;
            Box::new(method)
        }
    })
}

type Clustering<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// Runs one of the methods. Returns labels, embedding, and the objective after each iteration.
#[pyfunction]
#[pyo3(signature = (name, parts, joined, clusters, seed, options, threads, each))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // They are the arguments of a Python function.
pub fn baseline<'py>(
    py: Python<'py>,
    name: &str,
    parts: Vec<ViewInput<'py>>,
    joined: bool,
    clusters: usize,
    seed: u64,
    options: &Bound<'py, PyDict>,
    threads: usize,
    each: Option<Bound<'py, PyAny>>,
) -> PyResult<Clustering<'py>> {
    let method = method(name, options)?;
    let data = Data::borrow(&parts, joined)?;
    let found = watched(py, threads, each.as_ref(), |progress, _| {
        let (views, _) = data.views()?;
        let (begun, mut last) = (Instant::now(), f64::INFINITY);
        let mut report = |number: usize, objective: f64| -> ControlFlow<()> {
            let change = (last - objective).abs() / last.abs().max(f64::MIN_POSITIVE);
            last = objective;
            progress.report((1, number, objective, change, begun.elapsed().as_secs_f64()))
        };
        method.fit(&views, clusters, seed, &mut report)
    })?;
    Ok((labels(py, &found.labels), array(py, found.embedding)?, found.history.into_pyarray(py)))
}
