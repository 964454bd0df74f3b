//! Errors of the library as Python exceptions, with the Python names of options.

use std::fmt::Display;

use daimc::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};

use crate::names;

/// Converts any error into a `ValueError`.
#[allow(clippy::needless_pass_by_value)] // As an argument of `map_err`.
pub fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Converts an error of the library into a Python exception.
pub fn raise(error: Error) -> PyErr {
    match error {
        Error::Io { path, source } => match source.raw_os_error() {
            Some(code) => PyOSError::new_err((code, source.to_string(), path)),
            None => PyOSError::new_err(format!("{path}: {source}")),
        },
        Error::Option { option, value, reason } => {
            let option = names::in_python(option);
            value_error(Error::Option { option, value, reason })
        }
        Error::Unsuitable { what, value, reason } => {
            let what = names::in_python(what);
            value_error(Error::Unsuitable { what, value, reason })
        }
        Error::Accelerator { .. } => PyRuntimeError::new_err(error.to_string()),
        other => value_error(other),
    }
}
