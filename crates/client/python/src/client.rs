//! The client for threads.

use std::borrow::Cow;
use std::time::Duration;

use nuthatch_client::{Compute, ComputeError, Error, Item, Keep, Login, Options, Outcome};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::convert::{duration, expire, key, seconds, value};
use crate::errors::{internal, not_pickled, raise};
use crate::shared::Shared;

/// Calls of servers, for threads. `nuthatch.Client` is made of it.
#[pyclass(frozen, module = "nuthatch._nuthatch")]
pub(crate) struct Client {
    shared: Shared<nuthatch_client::Client>,
    prefix: Vec<u8>,
}

/// Names and values of a server's statistics.
pub(crate) type Stats = Vec<(String, String)>;

/// The options that are arguments in Python.
pub(crate) fn options(
    timeout: Option<f64>,
    connect_timeout: Option<f64>,
    login: Option<(String, String)>,
) -> PyResult<Options> {
    let mut options = Options::default();
    if let Some(timeout) = timeout {
        options.timeout = duration(timeout)?;
    }
    if let Some(timeout) = connect_timeout {
        options.connect_timeout = duration(timeout)?;
    }
    options.login = login.map(|(name, password)| Login { name, password });
    Ok(options)
}

/// Whether a change was made, as the protocol's clients say it: None is an item that there is not.
fn done(outcome: Outcome) -> Option<bool> {
    match outcome {
        Outcome::Done => Some(true),
        Outcome::NotFound => None,
        Outcome::NotStored | Outcome::Changed => Some(false),
    }
}

/// A key behind the client's prefix.
pub(crate) fn prefixed<'a>(prefix: &[u8], object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    let key = key(object)?;
    Ok(match prefix.is_empty() {
        true => key,
        false => Cow::Owned([prefix, &key].concat()),
    })
}

impl Client {
    #[inline]
    fn key<'a>(&self, object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
        prefixed(&self.prefix, object)
    }

    /// Makes a call without Python's lock.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl Send + FnOnce(&nuthatch_client::Client) -> Result<T, Error>,
    ) -> PyResult<T> {
        py.detach(|| call(&self.shared.get()?.client))
            .map_err(|error| raise(py, &error))
    }

    /// Makes a call that changes an item.
    fn change(
        &self,
        py: Python<'_>,
        call: impl Send + FnOnce(&nuthatch_client::Client) -> Result<Outcome, Error>,
    ) -> PyResult<Option<bool>> {
        self.call(py, call).map(done)
    }

    fn keys<'a>(&self, keys: &'a [Bound<'_, PyAny>]) -> PyResult<Vec<Cow<'a, [u8]>>> {
        keys.iter().map(|key| self.key(key)).collect()
    }
}

/// A value, its flags and its number.
fn item<'py>(py: Python<'py>, item: &Item) -> PyResult<Bound<'py, PyTuple>> {
    (PyBytes::new(py, &item.value), item.flags, item.cas).into_pyobject(py)
}

/// What a call of many keys failed in: the keys' places, and the first error.
fn failures<'py>(
    py: Python<'py>,
    failed: &[(usize, Error)],
) -> PyResult<(Bound<'py, PyList>, Option<Bound<'py, PyAny>>)> {
    let places = PyList::new(py, failed.iter().map(|(place, _)| place))?;
    // Of the errors one that says that the caller is wrong comes first.
    let is_callers = |error: &Error| matches!(error, Error::Key { .. } | Error::Value { .. });
    let first = failed
        .iter()
        .find(|(_, error)| is_callers(error))
        .or(failed.first());
    let error = first.map(|(_, error)| raise(py, error).into_value(py).into_bound(py).into_any());
    Ok((places, error))
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (address, timeout=None, connect_timeout=None, login=None, prefix=vec![]))]
    fn new(
        py: Python<'_>,
        address: String,
        timeout: Option<f64>,
        connect_timeout: Option<f64>,
        login: Option<(String, String)>,
        prefix: Vec<u8>,
    ) -> PyResult<Self> {
        let options = options(timeout, connect_timeout, login)?;
        let make = move || nuthatch_client::Client::connect_with(&address, options.clone());
        let shared = Shared::new(make).map_err(|error| raise(py, &error))?;
        Ok(Self { shared, prefix })
    }

    /// The value under a key, or what stands for none.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = self.key(key)?;
        let found = self.call(py, |client| client.get(&key))?;
        Ok(found.map_or(default, |value| Some(PyBytes::new(py, &value).into_any())))
    }

    /// The value under a key, and its flags.
    fn get_with_flags<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, u32)>> {
        let key = self.key(key)?;
        let found = self.call(py, |client| client.get_with_flags(&key))?;
        Ok(found.map(|(value, flags)| (PyBytes::new(py, &value), flags)))
    }

    /// The value under a key, its flags and its number.
    fn get_item<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let key = self.key(key)?;
        let found = self.call(py, |client| client.get_item(&key))?;
        found.map(|found| item(py, &found)).transpose()
    }

    /// The same, and a new lifetime for the item.
    fn get_and_touch<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        lifetime: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let (key, lifetime) = (self.key(key)?, expire(lifetime)?);
        let found = self.call(py, |client| client.get_item_and_touch(&key, lifetime))?;
        found.map(|found| item(py, &found)).transpose()
    }

    /// Many keys' items, in their order, the places of those that failed, and why the first of them did.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let keys = self.keys(&keys)?;
        let many = self.call(py, |client| Ok(client.get_many_items(&keys)))?;
        let items = PyList::empty(py);
        for found in &many.values {
            items.append(found.as_ref().map(|found| item(py, found)).transpose()?)?;
        }
        let (places, error) = failures(py, &many.failed)?;
        (items, places, error).into_pyobject(py)
    }

    /// Stores a value.
    fn set(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        lifetime: &Bound<'_, PyAny>,
        flags: u32,
    ) -> PyResult<()> {
        let (key, value) = (self.key(key)?, crate::convert::value(value)?);
        let keep = Keep::from(expire(lifetime)?).flags(flags);
        self.call(py, |client| client.set(&key, &value, keep))
    }

    /// Stores keys' values of `(key, value, flags)`. The places of those that failed, and why the first of them did.
    fn set_many<'py>(
        &self,
        py: Python<'py>,
        items: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>, u32)>,
        lifetime: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let keep = Keep::from(expire(lifetime)?);
        let mut stored = Vec::with_capacity(items.len());
        for (key, object, flags) in &items {
            stored.push((self.key(key)?, value(object)?, keep.flags(*flags)));
        }
        let many = self.call(py, |client| Ok(client.set_many(&stored)))?;
        failures(py, &many.failed)?.into_pyobject(py)
    }

    /// Stores a value in a way: "add", "replace", "append" or "prepend".
    fn store(
        &self,
        py: Python<'_>,
        way: &str,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        lifetime: &Bound<'_, PyAny>,
        flags: u32,
    ) -> PyResult<bool> {
        let (key, value) = (self.key(key)?, crate::convert::value(value)?);
        let keep = Keep::from(expire(lifetime)?).flags(flags);
        let stored = match way {
            "add" => self.change(py, |client| client.add(&key, &value, keep)),
            "replace" => self.change(py, |client| client.replace(&key, &value, keep)),
            "append" => self.change(py, |client| client.append(&key, &value)),
            "prepend" => self.change(py, |client| client.prepend(&key, &value)),
            _ => return Err(internal("no such way to store")),
        }?;
        Ok(stored == Some(true))
    }

    /// Stores a value if the item still has this number. None: there is no item.
    fn cas(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        cas: u64,
        lifetime: &Bound<'_, PyAny>,
        flags: u32,
    ) -> PyResult<Option<bool>> {
        let (key, value) = (self.key(key)?, crate::convert::value(value)?);
        let keep = Keep::from(expire(lifetime)?).flags(flags);
        self.change(py, |client| client.cas(&key, &value, keep, cas))
    }

    /// Adds to a number. None: there is no item.
    fn incr(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        delta: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u64>> {
        let (key, delta) = (self.key(key)?, crate::convert::delta(delta)?);
        self.call(py, |client| client.incr(&key, delta))
    }

    /// Subtracts from a number. None: there is no item.
    fn decr(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        delta: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u64>> {
        let (key, delta) = (self.key(key)?, crate::convert::delta(delta)?);
        self.call(py, |client| client.decr(&key, delta))
    }

    /// Gives an item a lifetime.
    fn touch(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        lifetime: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (key, lifetime) = (self.key(key)?, expire(lifetime)?);
        Ok(self.change(py, |client| client.touch(&key, lifetime))? == Some(true))
    }

    /// Removes an item.
    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = self.key(key)?;
        Ok(self.change(py, |client| client.delete(&key))? == Some(true))
    }

    /// Removes an item that has this number still.
    fn delete_cas(&self, py: Python<'_>, key: &Bound<'_, PyAny>, cas: u64) -> PyResult<bool> {
        let key = self.key(key)?;
        Ok(self.change(py, |client| client.delete_cas(&key, cas))? == Some(true))
    }

    /// Removes items: whether there was each, the places of those that failed, and why the first of them did.
    fn delete_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let keys = self.keys(&keys)?;
        let many = self.call(py, |client| Ok(client.delete_many(&keys)))?;
        let (places, error) = failures(py, &many.failed)?;
        (many.values, places, error).into_pyobject(py)
    }

    /// Removes all items, after so many seconds.
    fn flush_all(&self, py: Python<'_>, delay: f64) -> PyResult<()> {
        let delay = duration(delay)?;
        self.call(py, |client| client.flush_all(delay))
    }

    /// Each server's version.
    fn version(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.call(py, |client| each(client.version()))
    }

    /// Each server's statistics.
    fn stats(&self, py: Python<'_>, kind: &str) -> PyResult<Vec<(String, Stats)>> {
        self.call(py, |client| each(client.stats(kind)))
    }

    /// The value under a key, which one of all that ask computes by `function`, as bytes.
    #[pyo3(signature = (key, function, lifetime, lease=None, early=None))]
    fn get_or_compute<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        function: &Bound<'py, PyAny>,
        lifetime: &Bound<'py, PyAny>,
        lease: Option<&Bound<'py, PyAny>>,
        early: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let key = self.key(key)?;
        let how = compute(expire(lifetime)?, lease, early)?;
        let function = function.clone().unbind();
        let call = || {
            Python::attach(|py| {
                let made = function.call0(py)?;
                PyResult::Ok(value(made.bind(py))?.into_owned())
            })
        };
        let found = py.detach(|| {
            let made = self.shared.get().map_err(ComputeError::Key)?;
            // Ctrl-C: who waits for another process may have to for long.
            let go_on = || Python::attach(|py| py.check_signals());
            made.client.get_or_compute_while(&key, how, call, go_on)
        });
        match found {
            Ok(found) => Ok(PyBytes::new(py, &found)),
            Err(ComputeError::Key(error)) => Err(raise(py, &error)),
            Err(ComputeError::Computation(error)) => Err(error),
        }
    }

    /// Ends the connections. The next call makes new ones.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.shared.close());
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("client"))
    }
}

/// How a value is computed and kept.
pub(crate) fn compute(
    lifetime: Option<Duration>,
    lease: Option<&Bound<'_, PyAny>>,
    early: Option<&Bound<'_, PyAny>>,
) -> PyResult<Compute> {
    let mut how = Compute::new(lifetime);
    if let Some(lease) = lease.map(seconds).transpose()?.flatten() {
        how.lease = duration(lease)?;
    }
    if let Some(early) = early.map(seconds).transpose()?.flatten() {
        how.early = Some(duration(early)?);
    }
    Ok(how)
}

/// What each server said, or the first error.
pub(crate) fn each<T>(said: Vec<(String, Result<T, Error>)>) -> Result<Vec<(String, T)>, Error> {
    let one = |(server, said): (String, Result<T, Error>)| said.map(|said| (server, said));
    said.into_iter().map(one).collect()
}
