//! The options of a fit, one line each: the name in the library and the setter.

use daimc::{Daimc, Initialisation, Neighbours, Penalty, Preset, Scale, Solver, ViewWeights};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error::{raise, value_error};
use crate::names;

type Set = fn(Daimc, &Setting<'_, '_>) -> PyResult<Daimc>;

/// In the order in which they are set: the preset comes first, because it overwrites other options.
const OPTIONS: &[(&str, Set)] = &[
    ("preset", |fit, value| Ok(fit.preset(value.choice(Preset::ALL, Preset::name)?))),
    ("penalty", |fit, value| Ok(fit.penalty(value.choice(Penalty::ALL, Penalty::name)?))),
    ("view_weights", |fit, value| Ok(fit.view_weights(value.choice(ViewWeights::ALL, ViewWeights::name)?))),
    ("neighbours", |fit, value| Ok(fit.neighbours(value.choice(Neighbours::ALL, Neighbours::name)?))),
    ("neighbours_budget", |fit, value| Ok(fit.neighbours_budget(value.get("a number")?))),
    ("assess", |fit, value| Ok(fit.assess(value.get("True or False")?))),
    ("map", |fit, value| Ok(fit.map(value.get("True or False")?))),
    ("latent", |fit, value| Ok(fit.latent(value.get("a whole number")?))),
    ("alpha", |fit, value| Ok(fit.alpha(value.get("a number")?))),
    ("beta", |fit, value| Ok(fit.beta(value.get("a number")?))),
    ("scale", scale),
    ("top_features", |fit, value| Ok(fit.top_features(value.get("a whole number")?))),
    ("equal_weight", |fit, value| Ok(fit.equal_weight(value.get("True or False")?))),
    ("initialisation", |fit, value| {
        Ok(fit.initialisation(value.choice(Initialisation::ALL, Initialisation::name)?))
    }),
    ("solver", |fit, value| Ok(fit.solver(value.choice(Solver::ALL, Solver::name)?))),
    ("passes", |fit, value| Ok(fit.passes(value.get("a whole number")?))),
    ("max_iterations", |fit, value| Ok(fit.max_iterations(value.get("a whole number")?))),
    ("tolerance", |fit, value| Ok(fit.tolerance(value.get("a number")?))),
    ("restarts", |fit, value| Ok(fit.restarts(value.get("a whole number")?))),
    ("runs", |fit, value| Ok(fit.runs(value.get("a whole number")?))),
];

/// Pairs of an option's name in Python and its name in a model file.
#[pyfunction]
pub fn options() -> Vec<(&'static str, &'static str)> {
    OPTIONS.iter().map(|(library, _)| (names::in_python(library), *library)).collect()
}

/// All options of a fit as JSON, with defaults for those that `given` does not contain.
#[pyfunction]
pub fn resolve(clusters: usize, seed: u64, given: &Bound<'_, PyDict>) -> PyResult<String> {
    let fit = apply(Daimc::new(clusters).seed(seed), given)?;
    serde_json::to_string(fit.options()).map_err(value_error)
}

/// Sets the options in `given`, whose keys are names in Python.
pub fn apply(mut fit: Daimc, given: &Bound<'_, PyDict>) -> PyResult<Daimc> {
    for (library, set) in OPTIONS {
        let name = names::in_python(library);
        if let Some(value) = given.get_item(name)? {
            fit = set(fit, &Setting { name, value: &value })?;
        }
    }
    for name in given.keys() {
        let name: String = name.extract()?;
        if !OPTIONS.iter().any(|(library, _)| names::in_python(library) == name) {
            return Err(PyTypeError::new_err(format!("there is no option '{name}'")));
        }
    }
    Ok(fit)
}

/// The value of an option, with the option's name in Python for error messages.
pub struct Setting<'a, 'py> {
    pub name: &'a str,
    pub value: &'a Bound<'py, PyAny>,
}

impl<'py> Setting<'_, 'py> {
    /// Converts the value to a Rust type, which error messages describe as `what`.
    pub fn get<T: for<'a> FromPyObject<'a, 'py>>(&self, what: &str) -> PyResult<T> {
        let wrong = |error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(self.value.py()) {
                return PyValueError::new_err(format!("{}: out of range", self.words()));
            }
            self.wrong(what)
        };
        self.value.extract::<T>().map_err(|error| wrong(error.into()))
    }

    fn words(&self) -> String {
        let value = self.value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
        format!("{} = {value}", self.name)
    }

    fn wrong(&self, what: &str) -> PyErr {
        PyTypeError::new_err(format!("{}: must be {what}", self.words()))
    }

    /// Parses the value as one of several named ones.
    fn choice<T: Copy, const N: usize>(&self, known: [T; N], name: fn(T) -> &'static str) -> PyResult<T> {
        let names = known.map(|one| format!("'{}'", name(one))).join(" or ");
        let given = self.value.cast::<PyString>().map_err(|_| self.wrong(&names))?.to_string();
        let unknown = || PyValueError::new_err(format!("{} = '{given}': must be {names}", self.name));
        known.into_iter().find(|one| name(*one) == given).ok_or_else(unknown)
    }

    /// Parses the value as the name of a scale.
    pub fn scale(&self) -> PyResult<Scale> {
        self.get::<String>("the name of a scale")?.parse().map_err(raise)
    }
}

/// Sets one scale for all views, or the scales of a dictionary by view, whose key `None` means all other views.
fn scale(mut fit: Daimc, given: &Setting<'_, '_>) -> PyResult<Daimc> {
    let Ok(views) = given.value.cast::<PyDict>() else {
        let name: String = given.get("the name of a scale or a dictionary from views to names")?;
        return Ok(fit.scale(name.parse().map_err(raise)?));
    };
    for (view, value) in views {
        if view.is_none() {
            fit = fit.scale(Setting { name: given.name, value: &value }.scale()?);
            continue;
        }
        let view: String = Setting { name: "a key of scale", value: &view }.get("the name of a view")?;
        fit = fit.scale_view(view, Setting { name: given.name, value: &value }.scale()?);
    }
    Ok(fit)
}
