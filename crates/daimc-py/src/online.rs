//! Updates of a model with a batch of new instances.

use daimc::{Online, Update};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::input::{Data, ViewInput};
use crate::model::{Model, labels, shares};
use crate::watch::watched;

/// How far a view has moved: its name, all clusters together, and each of them.
type Drift<'py> = (String, f64, Bound<'py, PyArray1<f64>>);

/// The new model, with the instances of the batch; what each view says for their clusters; how far each view has moved; instances
/// that no cluster explains; groups of them that are near each other; and clusters that have died.
type Updated<'py> = (
    Model,
    Bound<'py, PyArray2<f64>>,
    Vec<Drift<'py>>,
    Bound<'py, PyArray1<i64>>,
    Vec<Bound<'py, PyArray1<i64>>>,
    Bound<'py, PyArray1<i64>>,
);

/// Lets a model take in new instances.
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
        // IDs that are row numbers to users are the same in every batch.
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
