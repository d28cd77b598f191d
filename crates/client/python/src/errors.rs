//! What can go wrong, as exceptions of `nuthatch.exceptions`.

use nuthatch_client::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyModule;

/// The exception for a failed call.
#[cold]
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    // A signal that came during the call is what the call is ended for.
    if let Err(interrupted) = py.check_signals() {
        return interrupted;
    }
    made(py, class(error), error.to_string())
}

/// An exception by the name of its class.
#[cold]
pub(crate) fn made(py: Python<'_>, class: &str, words: String) -> PyErr {
    let found =
        PyModule::import(py, "nuthatch.exceptions").and_then(|module| module.getattr(class));
    match found.and_then(|class| class.call1((words,))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The name of an error's class.
pub(crate) fn class(error: &Error) -> &'static str {
    match error {
        Error::Key { .. } | Error::Value { .. } | Error::Address(_) => "IllegalInputError",
        Error::NotANumber => "ClientError",
        Error::Down { .. } => "DownError",
        Error::Lost { .. } => "ConnectionLostError",
        Error::Timeout { .. } => "TimeoutError",
        Error::Full => "FullError",
        Error::Refused(_) => "ServerError",
        _ => "UnknownError",
    }
}

/// A client that cannot be copied into bytes: it is a connection, and belongs to its process.
pub(crate) fn not_pickled(what: &str) -> PyErr {
    made_type(&format!(
        "a {what} cannot be pickled: it belongs to its process; make one in the other process"
    ))
}

fn made_type(words: &str) -> PyErr {
    pyo3::exceptions::PyTypeError::new_err(words.to_owned())
}

/// What no program meets.
pub(crate) fn internal(words: &str) -> PyErr {
    PyRuntimeError::new_err(words.to_owned())
}
