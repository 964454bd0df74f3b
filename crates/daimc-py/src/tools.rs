//! Metrics, simulated missingness and data sets.

use daimc::source::{Buffer, Rows};
use daimc::{View, Views, datasets, metrics, simulate};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raise;
use crate::model::labels;

fn classes(given: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<usize>> {
    let class = |&class: &i64| usize::try_from(class).map_err(|_| PyValueError::new_err("a class below 0"));
    given.as_slice()?.iter().map(class).collect()
}

/// All metrics of a clustering, by name.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python passes arguments by value.
pub fn scores<'py>(
    py: Python<'py>,
    truth: PyReadonlyArray1<'_, i64>,
    labels: PyReadonlyArray1<'_, i64>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = metrics::scores(&classes(&truth)?, &classes(&labels)?).map_err(raise)?;
    let scores = PyDict::new(py);
    let named = [
        ("ac", found.ac),
        ("nmi", found.nmi),
        ("nmi_max", found.nmi_max),
        ("nmi_sqrt", found.nmi_sqrt),
        ("ari", found.ari),
        ("purity", found.purity),
        ("f", found.f),
    ];
    for (name, value) in named {
        scores.set_item(name, value)?;
    }
    Ok(scores)
}

/// The one-to-one matching of classes and clusters that the accuracy uses.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python passes arguments by value.
pub fn matching(
    truth: PyReadonlyArray1<'_, i64>,
    labels: PyReadonlyArray1<'_, i64>,
) -> PyResult<Vec<(usize, usize)>> {
    metrics::matching(&classes(&truth)?, &classes(&labels)?).map_err(raise)
}

/// Removes a share of the instances from each view at random. Returns the instances that remain: instances × views.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python passes arguments by value.
pub fn missing(
    py: Python<'_>,
    instances: usize,
    rates: Vec<f64>,
    seed: u64,
) -> PyResult<Bound<'_, PyArray2<bool>>> {
    let views = simulate::missing(instances, &rates, seed).map_err(raise)?;
    let rows = (0..instances).flat_map(|i| views.iter().map(move |view| view[i]));
    rows.collect::<Vec<_>>().into_pyarray(py).reshape([instances, views.len()])
}

type Labels<'py> = Bound<'py, PyArray1<i64>>;

/// The Digit data: views by name, and the digits.
#[pyfunction]
pub fn digit(py: Python<'_>) -> PyResult<(Bound<'_, PyDict>, Labels<'_>)> {
    let (views, truth) = datasets::digit();
    Ok((arrays(py, views)?, labels(py, &truth)))
}

/// Gaussian clusters: views by name, in single precision, and the clusters.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python passes arguments by value.
pub fn synthetic(
    py: Python<'_>,
    instances: usize,
    clusters: usize,
    features: Vec<usize>,
    noise: f64,
    seed: u64,
) -> PyResult<(Bound<'_, PyDict>, Labels<'_>)> {
    let data = daimc::synthetic::Synthetic::new(instances, clusters).noise(noise).seed(seed);
    let view = |(number, features): (usize, &usize)| data.dense::<f32>(&format!("view{number}"), *features);
    let views = features.iter().enumerate().map(view).collect::<daimc::Result<_>>().map_err(raise)?;
    Ok((arrays(py, views)?, labels(py, &data.truth())))
}

/// Dense views in single precision, as arrays by name.
fn arrays<'py>(py: Python<'py>, views: Vec<View<'static>>) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    let views = Views::new(views).map_err(raise)?;
    for (number, view) in views.iter().enumerate() {
        let mut buffer = Buffer::default();
        let block = views.block(number, 0..views.instances(), &mut buffer).map_err(raise)?;
        let Rows::DenseF32(values) = block.rows else {
            return Err(PyValueError::new_err(format!("view '{}' is not dense f32", view.name())));
        };
        let array = PyArray1::from_slice(py, values).reshape([view.rows(), view.features()])?;
        named.set_item(view.name(), array)?;
    }
    Ok(named)
}
