//! Online updates of a model.

use daimc::{Online, Update};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::input::{Data, ViewInput};
use crate::model::{Model, labels, shares};
use crate::watch::watched;

/// The drift of a view: its name, the total, and by cluster.
type Drift<'py> = (String, f64, Bound<'py, PyArray1<f64>>);

/// The new model with the instances of the batch; the contributions of the views to their clusters; the drift of each view;
/// unexplained instances; emerging groups of them; and the clusters that died.
type Updated<'py> = (
    Model,
    Bound<'py, PyArray2<f64>>,
    Vec<Drift<'py>>,
    Bound<'py, PyArray1<i64>>,
    Vec<Bound<'py, PyArray1<i64>>>,
    Bound<'py, PyArray1<i64>>,
);

/// Updates a model with a batch of new instances.
#[pyfunction]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // They are the arguments of a Python function.
pub fn update<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    parts: Vec<ViewInput<'_>>,
    joined: bool,
    named: bool,
    memory_factor: f64,
    add_views: Vec<String>,
    threads: usize,
) -> PyResult<Updated<'py>> {
    let data = Data::borrow(&parts, joined)?;
    let fit = &model.get().0;
    let (update, contributions) = watched::<_, ()>(py, threads, None, |_, stop| {
        let (views, _) = data.views()?;
        let online = Online::new().memory_factor(memory_factor).stop(stop);
        let online = add_views.iter().fold(online, Online::add_view);
        // Without IDs, row numbers repeat in every batch and must not be recorded as learnt.
        let update = if named {
            online.update(fit, &views)?
        } else {
            let mut update = online.update_model(&fit.model, &views)?;
            update.fit.learnt.clone_from(&fit.learnt);
            update
        };
        let contributions = update.fit.model.contributions_of(&views, &update.fit.labels)?;
        Ok((update, contributions))
    })?;
    let Update { fit, drift, unexplained, emerging, died, .. } = update;
    let drift = drift.into_iter().map(|own| (own.view, own.total, own.clusters.into_pyarray(py)));
    let groups = emerging.iter().map(|group| labels(py, group)).collect();
    let drift = drift.collect();
    Ok((Model(fit), shares(py, &contributions)?, drift, labels(py, &unexplained), groups, labels(py, &died)))
}
