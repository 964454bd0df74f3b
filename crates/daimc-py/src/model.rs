//! The Python class of a fitted model with its instances.

use daimc::{Accuracy, Contributions, Ids, Matrix};
use daimc_report::Report;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::{raise, value_error};
use crate::input::{Data, ViewInput, matrix};
use crate::watch::{Progress, on_threads, watched};

/// A fitted model with the results for its instances.
#[pyclass(frozen, module = "daimc._daimc")]
pub struct Model(pub daimc::Fit);

/// Moves a matrix into a numpy array.
pub fn array(py: Python<'_>, matrix: Matrix) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let shape = [matrix.rows(), matrix.columns()];
    matrix.into_values().into_pyarray(py).reshape(shape)
}

/// Converts labels to the signed integers of scikit-learn. Labels fit into 32 bits, as the number of instances does.
pub fn labels<'py>(py: Python<'py>, labels: &[usize]) -> Bound<'py, PyArray1<i64>> {
    labels.iter().map(|&label| i64::from(label as u32)).collect::<Vec<_>>().into_pyarray(py)
}

/// Contributions as an array of instances × views, with NaN where an instance is missing from a view.
pub fn shares<'py>(py: Python<'py>, found: &Contributions) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let values = (0..found.instances()).flat_map(|i| found.shares(i).map(|share| share.unwrap_or(f64::NAN)));
    values.collect::<Vec<_>>().into_pyarray(py).reshape([found.instances(), found.views()])
}

/// Rows of V, labels and confidence.
type Assigned<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// The completed view, and the errors of held-out rows and of held-out cells.
type Imputed<'py> = (Bound<'py, PyArray2<f64>>, Option<f64>, Option<f64>);

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // Python passes arguments by value.
impl Model {
    /// Reads a model from the bytes that `to_bytes` returns.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        py.detach(|| daimc::Fit::from_bytes(bytes)).map(Self).map_err(raise)
    }

    /// Returns the bytes of a safetensors file, with the map.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let with_map = self.with_map(py, 0)?;
        let fit = &with_map.as_ref().unwrap_or(self).0;
        let bytes = py.detach(|| fit.to_bytes()).map_err(raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The same model without the instances that it was fitted to.
    fn without_instances(&self) -> Self {
        Self(self.0.without_instances())
    }

    /// The same model as the first batch of a stream, whose clusters later batches may revise.
    fn of_stream(&self) -> Self {
        let mut fit = self.0.clone();
        fit.model.begin_stream();
        Self(fit)
    }

    /// Supports pickling.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<Self>().getattr("from_bytes")?;
        Ok((make, PyTuple::new(py, [self.to_bytes(py)?])?))
    }

    /// Reads a model from a file, with its instances if the file contains them.
    #[staticmethod]
    fn load(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        py.detach(|| daimc::Fit::load_or_model(path)).map(Self).map_err(raise)
    }

    /// Writes the model to a file atomically.
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(path)).map_err(raise)
    }

    /// The options of the fit as JSON.
    #[getter]
    fn options(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.model.options).map_err(value_error)
    }

    /// The names of the views.
    #[getter]
    fn views(&self) -> Vec<&str> {
        self.0.model.views.iter().map(|view| view.name.as_str()).collect()
    }

    /// The names of a view's features, if they have any.
    fn features(&self, view: &str) -> PyResult<Option<Vec<String>>> {
        Ok(self.0.model.view(view).map_err(raise)?.feature_names.clone())
    }

    /// The IDs of the instances; `None` if they are row numbers.
    #[getter]
    fn ids(&self) -> Option<&[String]> {
        match &self.0.ids {
            Ids::Numbers(_) => None,
            Ids::Names(names) => Some(names),
        }
    }

    /// The cluster of each instance.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        labels(py, &self.0.labels)
    }

    /// The confidence in each instance's cluster.
    #[getter]
    fn confidence<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.0.confidence)
    }

    /// V.
    #[getter]
    fn latent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.0.latent.clone())
    }

    /// The same model with its map, if that was left for later; `None` if it was not.
    fn with_map(&self, py: Python<'_>, threads: usize) -> PyResult<Option<Self>> {
        let with_map = watched(py, threads, None, |_: &Progress<'_, ()>, stop| self.0.with_map(stop))?;
        Ok(with_map.map(Self))
    }

    /// The coordinates of each instance on the map, if it has been made.
    #[getter]
    fn map<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.0.map.clone().map(|map| array(py, map)).transpose()
    }

    /// U of a view.
    fn basis<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.0.model.view(view).map_err(raise)?.basis.clone())
    }

    /// B of a view.
    fn alignment<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.0.model.view(view).map_err(raise)?.alignment.clone())
    }

    /// The relevance of each feature of a view.
    fn relevance<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.0.model.view(view).map_err(raise)?.relevance().into_pyarray(py))
    }

    /// The weight of each feature of a view for each cluster: features × clusters.
    fn weights<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let own = self.0.model.view(view).map_err(raise)?;
        let clusters: Vec<Vec<f64>> =
            (0..self.0.model.options.clusters).map(|cluster| self.0.model.weights(own, cluster)).collect();
        array(py, Matrix::from_fn(own.basis.rows(), clusters.len(), |i, k| clusters[k][i]))
    }

    /// The share of the runs in which each feature of a view leads each cluster: features × clusters; `None` after a single run.
    fn stability<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let stability = &self.0.model.view(view).map_err(raise)?.stability;
        stability.clone().map(|stability| array(py, stability)).transpose()
    }

    /// The scaling of a view and its reason.
    fn scaling(&self, view: &str) -> PyResult<(String, String)> {
        let scaling = &self.0.model.view(view).map_err(raise)?.scaling;
        Ok((scaling.scale.to_string(), scaling.reason.clone()))
    }

    /// The use of nearest neighbours and its reason.
    #[getter]
    fn neighbours(&self) -> (&'static str, &str) {
        (self.0.neighbours.used.name(), &self.0.neighbours.reason)
    }

    /// The device of the iterations and, if it was the CPU although a GPU was available, the reason.
    #[getter]
    fn device(&self) -> (&str, Option<&str>) {
        (&self.0.device.name, self.0.device.reason.as_deref())
    }

    /// The association of the clusters with the presence patterns: information beyond chance, p-value and warning.
    #[getter]
    fn missingness(&self) -> (f64, f64, Option<String>) {
        let found = &self.0.missingness;
        (found.information, found.p_value, found.warning())
    }

    /// The agreement of neighbours on the clusters, the agreement by chance, its standard deviation, and the warning.
    #[getter]
    fn significance(&self) -> Option<(f64, f64, f64, Option<String>)> {
        let found = self.0.significance?;
        Some((found.agreement, found.by_chance, found.deviation, found.warning()))
    }

    /// The reproducibility of the clusters from parts of the data.
    #[getter]
    fn reproducibility(&self) -> Option<f64> {
        self.0.model.reproducibility
    }

    /// For each feature of a view, the number of instances present in the view whose value is missing.
    fn missing_cells<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let features = self.0.model.view(view).map_err(raise)?.basis.rows();
        let index = self.0.model.views.iter().position(|own| own.name == view).unwrap_or_default();
        let mut counts = self.0.missing_cells[index].by_feature.clone();
        counts.resize(features, 0);
        Ok(labels(py, &counts))
    }

    /// The seed, iterations, objective and agreement of each of several runs; empty after a single run.
    #[getter]
    fn runs(&self) -> Vec<(u64, usize, f64, f64)> {
        let fields = |run: &daimc::Run| (run.seed, run.iterations, run.objective, run.agreement);
        self.0.runs.iter().map(fields).collect()
    }

    /// The objective of this U, V and B.
    #[getter]
    fn objective(&self) -> f64 {
        self.0.objective.total
    }

    /// The objective after each iteration.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.0.history.iter().map(|objective| objective.total).collect::<Vec<_>>().into_pyarray(py)
    }

    /// Whether the objective converged, or at least the clusters.
    #[getter]
    fn converged(&self) -> bool {
        self.0.outcome.is_at_rest()
    }

    /// Assigns new instances to clusters: rows of V, labels and confidence.
    fn place<'py>(
        &self,
        py: Python<'py>,
        parts: Vec<ViewInput<'_>>,
        joined: bool,
        threads: usize,
    ) -> PyResult<Assigned<'py>> {
        let data = Data::borrow(&parts, joined)?;
        let found = on_threads(py, threads, || self.0.model.place(&data.views()?.0))?;
        let confidence = found.confidence.into_pyarray(py);
        Ok((array(py, found.latent)?, labels(py, &found.labels), confidence))
    }

    /// The contribution of each view to the clusters of new instances: instances × views.
    fn contributions<'py>(
        &self,
        py: Python<'py>,
        parts: Vec<ViewInput<'_>>,
        joined: bool,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let data = Data::borrow(&parts, joined)?;
        let found = on_threads(py, threads, || {
            let (views, _) = data.views()?;
            self.0.model.contributions_of(&views, &self.0.model.predict(&views)?)
        })?;
        shares(py, &found)
    }

    /// The rows of a view that the model expects for these rows of V.
    fn reconstruct<'py>(
        &self,
        py: Python<'py>,
        view: &str,
        latent: PyReadonlyArrayDyn<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let latent = matrix(&latent)?;
        let rows = py.detach(|| self.0.model.reconstruct(view, &latent)).map_err(raise)?;
        array(py, rows)
    }

    /// Imputes the missing rows and cells of a view of instances with these rows of V. Also returns the errors of held-out rows
    /// and of held-out cells, in standard deviations.
    fn impute<'py>(
        &self,
        py: Python<'py>,
        parts: Vec<ViewInput<'_>>,
        joined: bool,
        view: &str,
        latent: PyReadonlyArrayDyn<'_, f64>,
        threads: usize,
    ) -> PyResult<Imputed<'py>> {
        let (data, latent) = (Data::borrow(&parts, joined)?, matrix(&latent)?);
        let filled = on_threads(py, threads, || self.0.model.impute(&data.views()?.0, view, &latent))?;
        let error = |accuracy: Option<Accuracy>| accuracy.map(|accuracy| accuracy.error);
        let (rows, cells) = (error(filled.rows_accuracy), error(filled.cells_accuracy));
        Ok((array(py, filled.values)?, rows, cells))
    }

    /// `Σ‖x − Uv‖²` and `Σ‖x‖²` over all views and instances, for the best v of these instances.
    fn misfit(
        &self,
        py: Python<'_>,
        parts: Vec<ViewInput<'_>>,
        joined: bool,
        threads: usize,
    ) -> PyResult<(f64, f64)> {
        let data = Data::borrow(&parts, joined)?;
        on_threads(py, threads, || {
            let (views, _) = data.views()?;
            let (model, latent) = (&self.0.model, self.0.model.transform(&views)?);
            let mut total = (0.0, 0.0);
            for view in views.iter() {
                let misfit = model.misfit_of(&views, view.name(), &latent)?;
                total.0 += misfit.error.iter().sum::<f64>();
                total.1 += misfit.square.iter().sum::<f64>();
            }
            Ok(total)
        })
    }

    /// `Σ w‖x − U v‖²` of the fit.
    #[getter]
    fn loss(&self) -> f64 {
        self.0.objective.loss
    }

    /// Renders the report about this fit and its data. Also returns `Σ‖x − U v‖²` and `Σ‖x‖²`, by which the caller recognises
    /// other data than those of the fit. `classes` has the true class of each instance, if known; `provenance` is a JSON object.
    #[allow(clippy::too_many_arguments)] // They are the arguments of a Python function.
    fn report(
        &self,
        py: Python<'_>,
        parts: Vec<ViewInput<'_>>,
        joined: bool,
        classes: Option<Vec<Option<String>>>,
        title: Option<String>,
        provenance: &str,
        threads: usize,
    ) -> PyResult<(String, f64, f64)> {
        let provenance = serde_json::from_str(provenance).map_err(value_error)?;
        let data = Data::borrow(&parts, joined)?;
        let (page, explanation) = on_threads(py, threads, || {
            let (views, _) = data.views()?;
            let explanation = self.0.explain(&views)?;
            let mut report = Report::new(&views, &self.0).explanation(&explanation).provenance(&provenance);
            if let Some(classes) = &classes {
                report = report.truth(classes);
            }
            if let Some(title) = title {
                report = report.title(title);
            }
            Ok((report.render()?, explanation))
        })?;
        let residuals = || explanation.residuals.iter().flatten();
        let error = residuals().map(|residual| residual.error).sum();
        Ok((page, error, residuals().map(|residual| residual.square).sum()))
    }
}
