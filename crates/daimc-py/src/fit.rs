//! A fit, from Python's arrays to a model.

use daimc::Daimc;
use numpy::{PyArray2, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::device;
use crate::input::{Data, ViewInput, matrix};
use crate::model::{Model, shares};
use crate::options;
use crate::watch::watched;

/// The model, the names of views that share no instance with another, and the contributions of the views (instances × views).
type Fitted<'py> = (Model, Vec<String>, Bound<'py, PyArray2<f64>>);

/// Fits a model; `each` is called after each iteration.
#[pyfunction]
#[pyo3(signature = (parts, joined, clusters, seed, options, start, device, precision, threads, each))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // They are the arguments of a Python function.
pub fn fit<'py>(
    py: Python<'py>,
    parts: Vec<ViewInput<'_>>,
    joined: bool,
    clusters: usize,
    seed: u64,
    options: &Bound<'_, PyDict>,
    start: Option<PyReadonlyArrayDyn<'_, f64>>,
    device: &str,
    precision: &str,
    threads: usize,
    each: Option<Bound<'_, PyAny>>,
) -> PyResult<Fitted<'py>> {
    let mut fit = options::apply(Daimc::new(clusters).seed(seed), options)?.map_later();
    if let Some(start) = start {
        fit = fit.start(matrix(&start)?);
    }
    let data = Data::borrow(&parts, joined)?;
    let (model, alone, contributions) = watched(py, threads, each.as_ref(), |progress, stop| {
        let fit = device::set_device(fit, device, precision, data.gpu_views())?;
        let (views, alone) = data.views()?;
        let model = fit.stop(stop).fit_with(&views, |iteration| {
            let elapsed = iteration.elapsed.as_secs_f64();
            let change = iteration.change.unwrap_or(f64::INFINITY);
            progress.report((iteration.run, iteration.number, iteration.objective.total, change, elapsed))
        })?;
        let contributions = model.contributions(&views)?;
        Ok((model, alone, contributions))
    })?;
    Ok((Model(model), alone, shares(py, &contributions)?))
}
