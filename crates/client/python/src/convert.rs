//! Python's objects as keys, values and lifetimes.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDelta, PyInt, PyMemoryView, PyString};

use crate::errors::made;

/// The protocol takes more seconds than these for a date.
const RELATIVE_MAX: f64 = (30 * 24 * 60 * 60) as f64;

/// A key: `bytes`, or `str` as UTF-8.
#[inline]
pub(crate) fn key<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return encoded(text);
    }
    let words = format!("a key is bytes or str, not {}", name_of(object)?);
    Err(PyTypeError::new_err(words))
}

/// A value: `bytes`, `str` as UTF-8, `int` as decimal digits, or another object that holds bytes.
#[inline]
pub(crate) fn value<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return encoded(text);
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        let bytes = object.py().get_type::<PyBytes>().call1((object,))?;
        return Ok(Cow::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec()));
    }
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        return Ok(Cow::Owned(
            object.str()?.to_cow()?.into_owned().into_bytes(),
        ));
    }
    let words = format!(
        "a value is bytes, bytearray, memoryview, str or int, not {}; a serde makes bytes of other objects",
        name_of(object)?
    );
    Err(PyTypeError::new_err(words))
}

fn encoded<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, [u8]>> {
    Ok(match text.to_cow()? {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    })
}

fn name_of(object: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(object.get_type().name()?.to_cow()?.into_owned())
}

/// Seconds, as `int`, `float` or `timedelta`. None: not said.
pub(crate) fn seconds(object: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    if object.is_none() {
        return Ok(None);
    }
    let number = match object.extract::<f64>() {
        Ok(number) => number,
        // A number, but too large a one.
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => return Err(error),
        Err(_) => match object.call_method0("total_seconds") {
            Ok(seconds) => seconds.extract()?,
            Err(_) => {
                let words = format!(
                    "a time is in seconds, or a timedelta, not {}",
                    name_of(object)?
                );
                return Err(PyTypeError::new_err(words));
            }
        },
    };
    match number.is_nan() {
        true => Err(PyValueError::new_err("a time of nan seconds")),
        false => Ok(Some(number)),
    }
}

/// A time that has to be one.
pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("a time of {seconds} seconds: {error}")))
}

/// By how much a number is changed.
pub(crate) fn delta(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    object.extract().map_err(|error: PyErr| {
        let py = object.py();
        match error.is_instance_of::<PyOverflowError>(py) {
            true => made(
                py,
                "IllegalInputError",
                format!("a number is changed by 0 to {}, not by {object}", u64::MAX),
            ),
            false => error,
        }
    })
}

/// An item's lifetime as memcached's clients have it: none or 0 is without an end, below 0 it has expired already, and more
/// seconds than 30 days have are a date. A `timedelta` never is one.
#[expect(
    clippy::disallowed_methods,
    reason = "the protocol has dates for long lifetimes"
)]
pub(crate) fn expire(object: &Bound<'_, PyAny>) -> PyResult<Option<Duration>> {
    Ok(match seconds(object)? {
        None => None,
        Some(0.0) => None,
        Some(number) if number < 0.0 => Some(Duration::ZERO),
        Some(number) if number > RELATIVE_MAX && !object.is_instance_of::<PyDelta>() => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            Some(date(number).saturating_sub(now.unwrap_or_default()))
        }
        Some(number) => Some(duration(number)?),
    })
}

/// The time from 1970 to a date; the latest one for all that are too far.
fn date(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX)
}
