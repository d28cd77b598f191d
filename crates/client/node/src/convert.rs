//! JavaScript's values from and to Rust.

use std::time::Duration;

use napi::bindgen_prelude::{
    BigInt, Buffer, BufferSlice, FromNapiValue, ToNapiValue, TypeName, ValidateNapiValue,
};
use napi::{Env, Status, ValueType, sys};
use nuthatch_client::{CarriedOut, Error, Item, KEY_MAX, Keep};

use crate::outbox::{Answer, Batch};

/// Larger values are handed over, smaller ones are copied, which is quicker than to have JavaScript free them.
const COPIED_MAX: usize = 16 << 10;

/// Kinds of answers, by the same names in `client.js`.
const DONE: u32 = 0;
const FAILED: u32 = 1;
const COMPUTE: u32 = 2;
const NOT_COMPUTED: u32 = 3;
const IN_ROOM: u32 = 4;

/// A key: its first bytes, in place, so that a read takes no memory for it.
pub struct Key {
    bytes: [u8; Self::ROOM],
    length: usize,
}

/// A value: a string's bytes, or a copy of a buffer's.
pub struct Bytes(pub(crate) Vec<u8>);

/// A value on its way to JavaScript, where none is undefined.
pub struct Value {
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) is_text: bool,
}

impl Key {
    /// More than a key may have, by enough that a character of a string that does not fit leaves too many before it.
    const ROOM: usize = KEY_MAX + 8;

    /// Its bytes, if there are not too many.
    pub fn bytes(&self) -> Result<&[u8], Error> {
        let (length, limit) = (self.length, KEY_MAX);
        match length > limit {
            true => Err(Error::Key { length, limit }),
            false => Ok(&self.bytes[..length]),
        }
    }
}

impl FromNapiValue for Key {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        let mut bytes = [0; Self::ROOM];
        let mut length = 0;
        // SAFETY: environment and value are the caller's, and the room is as long as it says.
        let status = unsafe {
            let room = bytes.as_mut_ptr().cast();
            sys::napi_get_value_string_utf8(env, value, room, Self::ROOM, &mut length)
        };
        if status == sys::Status::napi_ok {
            if length > KEY_MAX {
                // SAFETY: as above; without room it tells the whole length alone.
                let _ = unsafe {
                    let none = std::ptr::null_mut();
                    sys::napi_get_value_string_utf8(env, value, none, 0, &mut length)
                };
            }
            return Ok(Self { bytes, length });
        }
        // SAFETY: environment and value are the caller's.
        let given = unsafe { BufferSlice::from_napi_value(env, value)? };
        let kept = given.len().min(KEY_MAX);
        bytes[..kept].copy_from_slice(&given[..kept]);
        let length = given.len();
        Ok(Self { bytes, length })
    }
}

impl TypeName for Key {
    fn type_name() -> &'static str {
        "string or Uint8Array"
    }

    fn value_type() -> ValueType {
        ValueType::Unknown
    }
}

impl ValidateNapiValue for Key {}

impl FromNapiValue for Bytes {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        let mut kind = 0;
        // SAFETY: environment and value are the caller's.
        unsafe {
            sys::napi_typeof(env, value, &mut kind);
            // Never by trial: who tries in vain to make a string of a buffer, makes JSON of it first, for the words of the error.
            match ValueType::from(kind) {
                ValueType::String => Ok(Self(String::from_napi_value(env, value)?.into_bytes())),
                _ => Ok(Self(BufferSlice::from_napi_value(env, value)?.to_vec())),
            }
        }
    }
}

impl TypeName for Bytes {
    fn type_name() -> &'static str {
        "string or Uint8Array"
    }

    fn value_type() -> ValueType {
        ValueType::Unknown
    }
}

impl ValidateNapiValue for Bytes {}

impl ToNapiValue for Value {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        // SAFETY: the environment is the caller's.
        unsafe {
            let Some(bytes) = value.bytes else {
                return <()>::to_napi_value(env, ());
            };
            if value.is_text {
                return text(env, &bytes);
            }
            if bytes.len() > COPIED_MAX {
                return Buffer::to_napi_value(env, bytes.into());
            }
            let copied = BufferSlice::copy_from(&Env::from_raw(env), bytes)?;
            <&BufferSlice<'_>>::to_napi_value(env, &copied)
        }
    }
}

/// A string of these bytes. What of them is no UTF-8 becomes U+FFFD, as Node.js has it.
///
/// # Safety
///
/// The environment is that of the present call.
unsafe fn text(env: sys::napi_env, bytes: &[u8]) -> napi::Result<sys::napi_value> {
    let mut made = std::ptr::null_mut();
    // SAFETY: the caller's environment, and so many bytes.
    let status = unsafe {
        let length = bytes.len().cast_signed();
        sys::napi_create_string_utf8(env, bytes.as_ptr().cast(), length, &mut made)
    };
    match status {
        sys::Status::napi_ok => Ok(made),
        status => Err(napi::Error::new(
            Status::from(status),
            format!("a value of {} bytes is too long for a string", bytes.len()),
        )),
    }
}

/// What `index.js` is told of an answer, beside its number: what kind it is, and what came of it.
impl ToNapiValue for Batch {
    unsafe fn to_napi_value(env: sys::napi_env, batch: Self) -> napi::Result<sys::napi_value> {
        let Self {
            answers,
            is_text,
            room,
        } = batch;
        let mut room = room.borrow_mut();
        let mut used = 0;
        let environment = Env::from_raw(env);
        let mut told = environment.create_array(0)?;
        for (number, answer) in answers {
            let value = |bytes| Value { bytes, is_text };
            told.insert(number)?;
            if !is_text
                && let Answer::Value(Some(bytes)) = &answer
                && let Some(place) = room.get_mut(used..used + bytes.len())
            {
                place.copy_from_slice(bytes);
                used += bytes.len();
                told.insert(IN_ROOM)?;
                told.insert(bytes.len() as u32)?;
                continue;
            }
            told.insert(match answer {
                Answer::Failed(_) | Answer::FailedInPart(_) => FAILED,
                Answer::Compute => COMPUTE,
                Answer::NotComputed => NOT_COMPUTED,
                _ => DONE,
            })?;
            match answer {
                Answer::Done | Answer::Compute | Answer::NotComputed => told.insert(())?,
                Answer::Flag(flag) => told.insert(flag)?,
                Answer::Flags(flags) => told.insert(flags)?,
                Answer::Item(None) | Answer::Count(None) => told.insert(())?,
                Answer::Value(bytes) => told.insert(value(bytes))?,
                Answer::Values(values) => {
                    let values: Vec<_> = values.into_iter().map(value).collect();
                    told.insert(values)?;
                }
                Answer::Item(Some(item)) => {
                    let Item {
                        value: bytes,
                        flags,
                        cas,
                        left,
                    } = item;
                    let left = left.map(|left| left.as_secs_f64());
                    told.insert((value(Some(bytes)), BigInt::from(cas), flags, left))?;
                }
                Answer::Count(Some(count)) => told.insert(BigInt::from(count))?,
                Answer::Told(servers) => told.insert(servers)?,
                Answer::Failed(error) => {
                    let carried_out = error.carried_out() == CarriedOut::Maybe;
                    told.insert((code(&error), error.to_string(), carried_out))?;
                }
                Answer::FailedInPart(error) => {
                    told.insert((code(&error), error.to_string(), true))?;
                }
            }
        }
        // SAFETY: the environment is the caller's.
        unsafe { napi::bindgen_prelude::Array::to_napi_value(env, told) }
    }
}

/// The code of an error, by which `errors.js` finds its class.
pub(crate) fn code(error: &Error) -> &'static str {
    match error {
        Error::Key { .. } => "ERR_NUTHATCH_KEY",
        Error::Value { .. } => "ERR_NUTHATCH_VALUE",
        Error::Address(_) => "ERR_NUTHATCH_ADDRESS",
        Error::Down { .. } => "ERR_NUTHATCH_DOWN",
        Error::Lost { .. } => "ERR_NUTHATCH_LOST",
        Error::Timeout { .. } => "ERR_NUTHATCH_TIMEOUT",
        Error::Full => "ERR_NUTHATCH_FULL",
        Error::Refused(_) => "ERR_NUTHATCH_REFUSED",
        Error::NotANumber => "ERR_NUTHATCH_NOT_A_NUMBER",
        _ => "ERR_NUTHATCH_UNEXPECTED",
    }
}

/// An error that is thrown at once.
#[cold]
pub(crate) fn thrown(error: &Error) -> napi::Error<&'static str> {
    napi::Error::new(code(error), error.to_string())
}

/// Seconds, which `index.js` has found to be neither negative nor NaN. So many that no clock has them are the most there are.
pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// A lifetime. Infinity is none.
pub(crate) fn lifetime(seconds: f64) -> Option<Duration> {
    seconds.is_finite().then(|| duration(seconds))
}

/// The same, for an item that is stored.
pub(crate) fn keep(seconds: f64) -> Keep {
    Keep::from(lifetime(seconds))
}
