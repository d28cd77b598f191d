//! The cache in process.

use std::time::Duration;

use nuthatch::{Error, Lifetime, LoadError};
use pyo3::exceptions::{PyKeyError, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::convert::{duration, key, seconds, value};
use crate::errors::{made, not_pickled};

/// A cache in this process: keys and values are bytes, memory has a limit, and what is not used is evicted.
///
/// Its calls keep Python's lock, because they take less time than giving it back; so a fork finds the cache whole, and the
/// child has a copy of its own.
#[pyclass(frozen, module = "nuthatch")]
pub(crate) struct Cache(nuthatch::Cache);

fn raise(py: Python<'_>, error: Error) -> PyErr {
    let words = error.to_string();
    match error {
        Error::KeyLength | Error::TooLarge => made(py, "IllegalInputError", words),
        Error::NotNumeric => made(py, "ClientError", words),
        Error::OutOfMemory => PyMemoryError::new_err(words),
        _ => PyRuntimeError::new_err(words),
    }
}

/// An item's lifetime: the cache's own if it is not said. One that is over is none.
fn lifetime(ttl: Option<&Bound<'_, PyAny>>) -> PyResult<Lifetime> {
    Ok(match ttl.map(seconds).transpose()?.flatten() {
        None => Lifetime::Default,
        Some(number) if number.is_infinite() && number > 0.0 => Lifetime::Unlimited,
        Some(number) if number < 0.0 => Duration::ZERO.into(),
        Some(number) => duration(number)?.into(),
    })
}

#[pymethods]
impl Cache {
    /// A cache of so many bytes, with the times of its items in seconds.
    #[new]
    #[pyo3(signature = (memory_limit=64 << 20, *, ttl=None, idle=None, item_size_max=None, evict=true))]
    fn new(
        memory_limit: usize,
        ttl: Option<&Bound<'_, PyAny>>,
        idle: Option<&Bound<'_, PyAny>>,
        item_size_max: Option<usize>,
        evict: bool,
    ) -> PyResult<Self> {
        let mut builder = nuthatch::Cache::builder()
            .memory_limit(memory_limit)
            .evict(evict);
        if let Some(ttl) = ttl.map(seconds).transpose()?.flatten() {
            builder = builder.time_to_live(duration(ttl)?);
        }
        if let Some(idle) = idle.map(seconds).transpose()?.flatten() {
            builder = builder.time_to_idle(duration(idle)?);
        }
        if let Some(bytes) = item_size_max {
            builder = builder.item_size_max(bytes);
        }
        let built = builder.build();
        built
            .map(Self)
            .map_err(|error| PyValueError::new_err(error.to_string()))
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
        let found = self
            .0
            .get_with(&key, |value| PyBytes::new(py, value).into_any());
        Ok(found.or(default))
    }

    /// The values of those keys that have one.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let bytes = keys.iter().map(key).collect::<PyResult<Vec<_>>>()?;
        let values = self.0.get_many(&bytes);
        let found = PyDict::new(py);
        for (key, value) in keys.iter().zip(values) {
            if let Some(value) = value {
                found.set_item(key, PyBytes::new(py, &value))?;
            }
        }
        Ok(found)
    }

    /// Stores a value, for `ttl` seconds; as the cache has it if they are not said.
    #[pyo3(signature = (key, value, ttl=None))]
    fn set(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (key, value) = (crate::convert::key(key)?, crate::convert::value(value)?);
        let stored = self.0.insert_for(&key, &value, lifetime(ttl)?);
        stored.map_err(|error| raise(py, error))
    }

    /// Stores a value if there is none. True if it was stored.
    #[pyo3(signature = (key, value, ttl=None))]
    fn add(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (key, value) = (crate::convert::key(key)?, crate::convert::value(value)?);
        let stored = self.0.add(&key, &value, lifetime(ttl)?);
        stored.map_err(|error| raise(py, error))
    }

    /// Stores a value if there is one. True if it was stored.
    #[pyo3(signature = (key, value, ttl=None))]
    fn replace(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (key, value) = (crate::convert::key(key)?, crate::convert::value(value)?);
        let stored = self.0.replace(&key, &value, lifetime(ttl)?);
        stored.map_err(|error| raise(py, error))
    }

    /// Adds to a decimal number, and returns the sum. None: there is none.
    #[pyo3(signature = (key, by=1))]
    fn incr(&self, py: Python<'_>, key: &Bound<'_, PyAny>, by: u64) -> PyResult<Option<u64>> {
        let sum = self.0.incr(crate::convert::key(key)?, by);
        sum.map_err(|error| raise(py, error))
    }

    /// Subtracts from a decimal number, down to 0. None: there is none.
    #[pyo3(signature = (key, by=1))]
    fn decr(&self, py: Python<'_>, key: &Bound<'_, PyAny>, by: u64) -> PyResult<Option<u64>> {
        let left = self.0.decr(crate::convert::key(key)?, by);
        left.map_err(|error| raise(py, error))
    }

    /// Gives an item a new lifetime. False: there is none.
    #[pyo3(signature = (key, ttl=None))]
    fn touch(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let touched = self.0.touch(crate::convert::key(key)?, lifetime(ttl)?);
        touched.map_err(|error| raise(py, error))
    }

    /// Removes an item. True if there was one.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.0.invalidate(crate::convert::key(key)?))
    }

    /// Removes an item and returns its value, or what stands for none.
    #[pyo3(signature = (key, default=None))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let removed = self.0.remove(crate::convert::key(key)?);
        Ok(removed
            .map(|value| PyBytes::new(py, &value).into_any())
            .or(default))
    }

    /// The value under a key. If there is none, one of the threads that ask computes it, and the others wait for it.
    #[pyo3(signature = (key, function, ttl=None))]
    fn get_or_compute<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        function: &Bound<'py, PyAny>,
        ttl: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (key, lifetime) = (crate::convert::key(key)?, lifetime(ttl)?);
        let function = function.clone().unbind();
        let compute = || {
            Python::attach(|py| {
                let made = function.call0(py)?;
                PyResult::Ok(value(made.bind(py))?.into_owned())
            })
        };
        let found = py.detach(|| self.0.try_get_or_insert_with(&key, lifetime, compute));
        match found {
            Ok(found) => Ok(PyBytes::new(py, &found)),
            Err(LoadError::Cache(error)) => Err(raise(py, error)),
            Err(LoadError::Load(error)) => Err(error),
        }
    }

    /// Removes all items.
    fn clear(&self) {
        self.0.invalidate_all();
    }

    /// All keys, of a moment that is not one: what is stored or removed meanwhile may be there or not.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.iter().map(|(key, _)| PyBytes::new(py, &key)))
    }

    /// Counters since the cache was made, and sizes in bytes.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.0.stats();
        let told = PyDict::new(py);
        for (name, number) in [
            ("entry_count", stats.entry_count),
            ("weighted_size", stats.weighted_size),
            ("memory_limit", stats.memory_limit),
            ("memory_used", stats.memory_used),
            ("hits", stats.hits),
            ("misses", stats.misses),
            ("insertions", stats.insertions),
            ("evictions", stats.evictions),
            ("expirations", stats.expirations),
            ("out_of_memory", stats.out_of_memory),
        ] {
            told.set_item(name, number)?;
        }
        told.set_item("hit_ratio", stats.hit_ratio())?;
        Ok(told)
    }

    /// How many items there are. Expired ones count until their memory is taken back.
    fn __len__(&self) -> usize {
        self.0.entry_count() as usize
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.0.contains_key(crate::convert::key(key)?))
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = self.get(py, key, None)?;
        found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.set(py, key, value, None)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.delete(key)? {
            true => Ok(()),
            false => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("cache"))
    }
}
