//! Errors of the library as Python exceptions, with the Python names of options.

use daimc::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};

use crate::names;

/// Converts an error of the library into a Python exception.
pub fn raise(error: Error) -> PyErr {
    match error {
        Error::Io { path, source } => match source.raw_os_error() {
            Some(code) => PyOSError::new_err((code, source.to_string(), path)),
            None => PyOSError::new_err(format!("{path}: {source}")),
        },
        Error::Option { option, value, reason } => {
            let option = names::in_python(option);
            PyValueError::new_err(Error::Option { option, value, reason }.to_string())
        }
        Error::Unsuitable { what, value, reason } => {
            let what = names::in_python(what);
            PyValueError::new_err(Error::Unsuitable { what, value, reason }.to_string())
        }
        Error::Accelerator { .. } => PyRuntimeError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}
