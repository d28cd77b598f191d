//! The Rust half of the Python package: `nuthatch._nuthatch`. The other half, in `python/nuthatch`, has the interfaces that
//! people know; this one has calls.
//!
//! Python's lock is given back around each call that may wait for a server, and kept around those that only read memory.

#![forbid(unsafe_code)]

mod cache;
mod client;
mod convert;
#[cfg(target_os = "linux")]
mod direct;
mod errors;
mod shared;
mod tasks;

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Which interpreter of this process has the module: where its `sys` is.
static INTERPRETER: OnceLock<usize> = OnceLock::new();

/// Types and exceptions are kept for the process, so they can belong to one interpreter alone.
fn refuse_another_interpreter(py: Python<'_>) -> PyResult<()> {
    let this = py.import("sys")?.as_ptr() as usize;
    match *INTERPRETER.get_or_init(|| this) == this {
        true => Ok(()),
        false => Err(PyImportError::new_err(
            "nuthatch does not work in subinterpreters: another interpreter of this process has it",
        )),
    }
}

/// Calls in Rust; not for use by itself.
#[pymodule(gil_used = false)]
fn _nuthatch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    refuse_another_interpreter(module.py())?;
    module.add("version", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<client::Client>()?;
    module.add_class::<cache::Cache>()?;
    module.add_class::<tasks::Tasks>()?;
    #[cfg(target_os = "linux")]
    module.add_class::<direct::Direct>()?;
    Ok(())
}
