//! Selection of the number of clusters.

use daimc::Daimc;
use daimc::select::Select;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::value_error;
use crate::input::{Data, ViewInput};
use crate::options::{self, Setting};
use crate::watch::watched;

/// Recommends one of several numbers of clusters; `each` is called with the number of finished fits and the total. Returns the
/// selection as JSON and the names of views that share no instance with another.
#[pyfunction]
#[pyo3(signature = (parts, joined, clusters, seed, options, resamples, hidden, threads, each))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // They are the arguments of a Python function.
pub fn select(
    py: Python<'_>,
    parts: Vec<ViewInput<'_>>,
    joined: bool,
    clusters: Vec<usize>,
    seed: u64,
    options: &Bound<'_, PyDict>,
    resamples: &Bound<'_, PyAny>,
    hidden: &Bound<'_, PyAny>,
    threads: usize,
    each: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    // `Select` sets the number of clusters of each fit, and also the columns of V if the two are equal. `usize::MAX` keeps an
    // explicit `n_components` different from the number of clusters.
    let fit = options::apply(Daimc::new(usize::MAX).seed(seed), options)?;
    let resamples = Setting { name: "n_resamples", value: resamples }.get("a whole number")?;
    let hidden = Setting { name: "hidden", value: hidden }.get("a number")?;
    let data = Data::borrow(&parts, joined)?;
    let (selection, alone) = watched(py, threads, each.as_ref(), |progress, stop| {
        let (views, alone) = data.views()?;
        let select = Select::new(fit.stop(stop), clusters).resamples(resamples).hidden(hidden);
        Ok((select.run_with(&views, |step| progress.report((step.done, step.of)))?, alone))
    })?;
    let selection = serde_json::to_string(&selection).map_err(value_error)?;
    Ok((selection, alone))
}
