//! A fit, as Python has it: the model and the instances that it was fitted to.

use daimc::{Accuracy, Contributions, Ids, Matrix};
use daimc_report::Report;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::raise;
use crate::input::{Data, ViewInput, matrix};
use crate::watch::pool;

/// A fitted model, with the instances that it was fitted to.
#[pyclass(frozen, module = "daimc._daimc")]
pub struct Model(pub daimc::Fit);

/// A matrix as a numpy array that owns it.
pub fn array(py: Python<'_>, matrix: Matrix) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let shape = [matrix.rows(), matrix.columns()];
    matrix.into_values().into_pyarray(py).reshape(shape)
}

/// Labels as scikit-learn has them, with a sign. There are no more of them than instances, which 32 bits count.
pub fn labels<'py>(py: Python<'py>, labels: &[usize]) -> Bound<'py, PyArray1<i64>> {
    labels.iter().map(|&label| i64::from(label as u32)).collect::<Vec<_>>().into_pyarray(py)
}

/// Contributions as an array of instances × views, with NaN where a view does not show an instance.
pub fn shares<'py>(py: Python<'py>, found: &Contributions) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let values = (0..found.instances()).flat_map(|i| found.shares(i).map(|share| share.unwrap_or(f64::NAN)));
    values.collect::<Vec<_>>().into_pyarray(py).reshape([found.instances(), found.views()])
}

type Place<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

type Filled<'py> = (Bound<'py, PyArray2<f64>>, Option<f64>, Option<f64>);

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // Python hands over what it was given.
impl Model {
    /// The model that `to_bytes` wrote.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        py.detach(|| daimc::Fit::from_bytes(bytes)).map(Self).map_err(raise)
    }

    /// The bytes of a safetensors file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.to_bytes()).map_err(raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The same model without the instances that it was fitted to.
    fn without_instances(&self) -> Self {
        Self(daimc::Fit::without_instances(self.0.model.clone()))
    }

    /// How pickle makes it again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<Self>().getattr("from_bytes")?;
        Ok((make, PyTuple::new(py, [self.to_bytes(py)?])?))
    }

    /// Reads a model from a file, with its instances if they are there.
    #[staticmethod]
    fn load(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        py.detach(|| daimc::Fit::load_or_model(path)).map(Self).map_err(raise)
    }

    /// Writes the model to a file, which appears whole or not at all.
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(path)).map_err(raise)
    }

    /// The options it was fitted with, as JSON.
    #[getter]
    fn options(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.model.options).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The names of the views.
    #[getter]
    fn views(&self) -> Vec<&str> {
        self.0.model.views.iter().map(|view| view.name.as_str()).collect()
    }

    /// The names of a view's features, if they had any.
    fn features(&self, view: &str) -> PyResult<Option<Vec<String>>> {
        Ok(self.0.model.view(view).map_err(raise)?.feature_names.clone())
    }

    /// The IDs of the instances; `None` where they are row numbers.
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

    /// How clear each instance's cluster is.
    #[getter]
    fn confidence<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.0.confidence)
    }

    /// V.
    #[getter]
    fn latent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.0.latent.clone())
    }

    /// Where each instance is on the map, if there is one.
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

    /// How much each feature of a view matters.
    fn relevance<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.0.model.view(view).map_err(raise)?.relevance().into_pyarray(py))
    }

    /// What each feature of a view says for each cluster: features × clusters.
    fn weights<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let own = self.0.model.view(view).map_err(raise)?;
        let clusters: Vec<Vec<f64>> =
            (0..self.0.model.options.clusters).map(|cluster| self.0.model.weights(own, cluster)).collect();
        array(py, Matrix::from_fn(own.basis.rows(), clusters.len(), |i, k| clusters[k][i]))
    }

    /// The share of the runs in which each feature of a view leads each cluster: features × clusters, if there were several.
    fn stability<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let stability = &self.0.model.view(view).map_err(raise)?.stability;
        stability.clone().map(|stability| array(py, stability)).transpose()
    }

    /// How a view was scaled, and why.
    fn scaling(&self, view: &str) -> PyResult<(String, String)> {
        let scaling = &self.0.model.view(view).map_err(raise)?.scaling;
        Ok((scaling.scale.to_string(), scaling.reason.clone()))
    }

    /// What was made of the neighbourhoods, and why.
    #[getter]
    fn neighbours(&self) -> (&'static str, &str) {
        (self.0.neighbours.used.name(), &self.0.neighbours.reason)
    }

    /// The machine that iterated, and why it was the processor, where a card was at hand.
    #[getter]
    fn device(&self) -> (&str, Option<&str>) {
        (&self.0.device.name, self.0.device.reason.as_deref())
    }

    /// How far clusters go together with which views instances have: the information beyond chance, its p-value, and what
    /// people should know.
    #[getter]
    fn missingness(&self) -> (f64, f64, Option<String>) {
        let found = &self.0.missingness;
        (found.information, found.p_value, found.warning())
    }

    /// How far neighbours agree on the clusters, how far they would by chance with its standard deviation, and what people
    /// should know.
    #[getter]
    fn significance(&self) -> Option<(f64, f64, f64, Option<String>)> {
        let found = self.0.significance?;
        Some((found.agreement, found.by_chance, found.deviation, found.warning()))
    }

    /// How far parts of the data lead to the same clusters.
    #[getter]
    fn reproducibility(&self) -> Option<f64> {
        self.0.model.reproducibility
    }

    /// How many of the instances that a view shows lack each of its features.
    fn missing_cells<'py>(&self, py: Python<'py>, view: &str) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let features = self.0.model.view(view).map_err(raise)?.basis.rows();
        let place = self.0.model.views.iter().position(|own| own.name == view).unwrap_or_default();
        let mut counts = self.0.missing_cells[place].by_feature.clone();
        counts.resize(features, 0);
        Ok(labels(py, &counts))
    }

    /// The seed, iterations, objective and agreement of each of several runs.
    #[getter]
    fn runs(&self) -> Vec<(u64, usize, f64, f64)> {
        let told = |run: &daimc::Run| (run.seed, run.iterations, run.objective, run.agreement);
        self.0.runs.iter().map(told).collect()
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

    /// Whether the objective had come to rest.
    #[getter]
    fn converged(&self) -> bool {
        self.0.outcome.is_at_rest()
    }

    /// The rows of V, clusters and confidence of new instances.
    fn place<'py>(
        &self,
        py: Python<'py>,
        parts: Vec<ViewInput<'_>>,
        joined: bool,
        threads: usize,
    ) -> PyResult<Place<'py>> {
        let data = Data::borrow(&parts, joined)?;
        let pool = pool(threads)?;
        let place = py.detach(|| pool.install(|| self.0.model.place(&data.views()?.0))).map_err(raise)?;
        let confidence = place.confidence.into_pyarray(py);
        Ok((array(py, place.latent)?, labels(py, &place.labels), confidence))
    }

    /// What each view says for the clusters of new instances: instances × views.
    fn contributions<'py>(
        &self,
        py: Python<'py>,
        parts: Vec<ViewInput<'_>>,
        joined: bool,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let data = Data::borrow(&parts, joined)?;
        let pool = pool(threads)?;
        let found = || {
            let (views, _) = data.views()?;
            self.0.model.contributions_of(&views, &self.0.model.predict(&views)?)
        };
        let found = py.detach(|| pool.install(found)).map_err(raise)?;
        shares(py, &found)
    }

    /// What a view would show of instances with these rows of V.
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

    /// A view of some instances with these rows of V, with what is missing filled in, and the errors of rows and of cells that
    /// were hidden, in standard deviations.
    fn impute<'py>(
        &self,
        py: Python<'py>,
        parts: Vec<ViewInput<'_>>,
        joined: bool,
        view: &str,
        latent: PyReadonlyArrayDyn<'_, f64>,
        threads: usize,
    ) -> PyResult<Filled<'py>> {
        let (data, latent) = (Data::borrow(&parts, joined)?, matrix(&latent)?);
        let pool = pool(threads)?;
        let filled = || self.0.model.imputed(&data.views()?.0, view, &latent);
        let filled = py.detach(|| pool.install(filled)).map_err(raise)?;
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
        let pool = pool(threads)?;
        let misfit = || {
            let (views, _) = data.views()?;
            let (model, latent) = (&self.0.model, self.0.model.transform(&views)?);
            let mut total = (0.0, 0.0);
            for view in views.iter() {
                let misfit = model.misfit_of(&views, view.name(), &latent)?;
                total.0 += misfit.error.iter().sum::<f64>();
                total.1 += misfit.square.iter().sum::<f64>();
            }
            Ok(total)
        };
        py.detach(|| pool.install(misfit)).map_err(raise)
    }
    /// `Σ w‖x − U v‖²` of the fit.
    #[getter]
    fn loss(&self) -> f64 {
        self.0.objective.loss
    }

    /// The page about this fit and the data that it was fitted to; beside it what tells whether they are: `Σ‖x − U v‖²` and
    /// `Σ‖x‖²`. `classes` has the true class of each instance, if it is known; `provenance` is a JSON object.
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
        let provenance =
            serde_json::from_str(provenance).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let data = Data::borrow(&parts, joined)?;
        let pool = pool(threads)?;
        let page = || {
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
        };
        let (page, explanation) = py.detach(|| pool.install(page)).map_err(raise)?;
        let residuals = || explanation.residuals.iter().flatten();
        let error = residuals().map(|residual| residual.error).sum();
        Ok((page, error, residuals().map(|residual| residual.square).sum()))
    }
}
