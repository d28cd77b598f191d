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

use pyo3::prelude::*;

/// Calls in Rust; not for use by itself.
#[pymodule(gil_used = false)]
fn _nuthatch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("version", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<client::Client>()?;
    module.add_class::<cache::Cache>()?;
    module.add_class::<tasks::Tasks>()?;
    #[cfg(target_os = "linux")]
    module.add_class::<direct::Direct>()?;
    Ok(())
}
