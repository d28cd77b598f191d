//! Gets out of a server's memory.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use nuthatch_direct::Gone;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::convert::key;
use crate::errors::{made, not_pickled};

thread_local! {
    /// The value of this thread's last get, whose memory the next one uses again.
    static VALUE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The most bytes that a thread keeps for its next get.
const KEPT_MAX: usize = 1 << 20;

/// Reads values out of the memory of a server on this machine, which was started with --shared PATH, without asking it.
///
/// A get that finds that the server has ended, or that this process is the child of the one that had connected, connects
/// anew, once. Errors: DownError, if no server is there.
#[pyclass(frozen, module = "nuthatch")]
pub(crate) struct Direct {
    path: PathBuf,
    current: ArcSwap<nuthatch_direct::Direct>,
}

impl Direct {
    fn connect(py: Python<'_>, path: &Path) -> PyResult<Arc<nuthatch_direct::Direct>> {
        let connected = py.detach(|| nuthatch_direct::Direct::connect(path));
        connected.map(Arc::new).map_err(|error| {
            let words = format!("{}: {error}", path.display());
            made(py, "DownError", words)
        })
    }

    /// Reads with the present connection, or with a new one.
    #[inline]
    fn read<T>(
        &self,
        py: Python<'_>,
        mut read: impl FnMut(&nuthatch_direct::Direct) -> Result<T, Gone>,
    ) -> PyResult<T> {
        if let Ok(found) = read(&self.current.load()) {
            return Ok(found);
        }
        self.read_anew(py, read)
    }

    #[cold]
    fn read_anew<T>(
        &self,
        py: Python<'_>,
        mut read: impl FnMut(&nuthatch_direct::Direct) -> Result<T, Gone>,
    ) -> PyResult<T> {
        self.current.store(Self::connect(py, &self.path)?);
        read(&self.current.load()).map_err(|gone| made(py, "DownError", gone.to_string()))
    }
}

/// The path that a client's address has. Errors: it is another address, or has options, which are of what asks servers.
fn socket(py: Python<'_>, place: PathBuf) -> PyResult<PathBuf> {
    let address = place.to_str().and_then(|text| text.split_once("://"));
    match address {
        Some(("shm", path)) if path.starts_with('/') && !path.contains(['?', ',']) => {
            Ok(path.into())
        }
        Some((scheme, _)) if !scheme.contains('/') => {
            let words = format!(
                "{}: Direct takes the PATH of a server's --shared, or shm:///PATH without options",
                place.display()
            );
            Err(made(py, "IllegalInputError", words))
        }
        _ => Ok(place),
    }
}

#[pymethods]
impl Direct {
    /// Connects to the server that listens at this path (--shared), or at shm:///PATH.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let path = socket(py, path)?;
        let current = ArcSwap::new(Self::connect(py, &path)?);
        Ok(Self { path, current })
    }

    /// The value under a key, or what stands for none.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = crate::convert::key(key)?;
        // Taken, not borrowed: an exception runs Python's code, which may come here again.
        let mut value = VALUE.take();
        let found = self.read(py, |direct| direct.get(&key, &mut value))?;
        let found = found.map(|_| PyBytes::new(py, &value).into_any());
        if value.capacity() <= KEPT_MAX {
            VALUE.set(value);
        }
        Ok(found.or(default))
    }

    /// The value under a key and its flags. None: there is none.
    fn get_with_flags<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, u32)>> {
        let key = crate::convert::key(key)?;
        let mut value = Vec::new();
        let found = self.read(py, |direct| direct.get(&key, &mut value))?;
        Ok(found.map(|meta| (PyBytes::new(py, &value), meta.flags)))
    }

    /// The values under keys, in their order. None: there is none.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let bytes = keys.iter().map(key).collect::<PyResult<Vec<_>>>()?;
        let slices: Vec<&[u8]> = bytes.iter().map(|key| &**key).collect();
        let values = self.read(py, |direct| {
            let mut values = vec![None; slices.len()];
            direct.get_many(&slices, |place, found| {
                values[place] = found.map(|(_, value)| PyBytes::new(py, value));
            })?;
            Ok(values)
        })?;
        PyList::new(py, values)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("direct reader"))
    }
}
