//! [`TypedError`]: why an operation on a typed cache could not be carried out.

use std::any::type_name;
use std::convert::Infallible;
use std::error;
use std::fmt::{self, Display, Formatter};

use super::codec::CodecError;
use crate::error::{Error, LoadError};

/// Why an operation on a [`TypedCache`](super::TypedCache) could not be carried out. `E` is the error of a computation that
/// may fail itself; without one there is none ([`Infallible`]).
#[derive(Debug)]
#[non_exhaustive]
pub enum TypedError<E = Infallible> {
    /// The cache refused it, or the computation waits for itself.
    Cache(Error),
    /// The key or the value has no bytes of its kind. Nothing was changed.
    #[non_exhaustive]
    Encode {
        /// The type that is the kind, as the compiler names it.
        kind: &'static str,
        /// Why.
        reason: CodecError,
    },
    /// The key's bytes or its value's are none of their kind: something else stores in the same cache.
    #[non_exhaustive]
    Decode {
        /// The type that is the kind of the keys, as the compiler names it.
        key: &'static str,
        /// The type that is the kind of what was decoded.
        kind: &'static str,
        /// Why.
        reason: CodecError,
    },
    /// The computation failed.
    Load(E),
}

impl<E> TypedError<E> {
    /// Of a `K` that has no bytes.
    #[cold]
    pub(super) fn encode<K>(reason: CodecError) -> Self {
        let kind = type_name::<K>();
        TypedError::Encode { kind, reason }
    }

    /// Of bytes under a key of kind `K` that are no `D`.
    #[cold]
    pub(super) fn decode<K, D>(reason: CodecError) -> Self {
        TypedError::Decode {
            key: type_name::<K>(),
            kind: type_name::<D>(),
            reason,
        }
    }
}

impl TypedError {
    /// The same for an operation whose computation may fail.
    pub(super) fn widen<E>(self) -> TypedError<E> {
        match self {
            TypedError::Cache(error) => TypedError::Cache(error),
            TypedError::Encode { kind, reason } => TypedError::Encode { kind, reason },
            TypedError::Decode { key, kind, reason } => TypedError::Decode { key, kind, reason },
            TypedError::Load(never) => match never {},
        }
    }
}

impl<E> From<Error> for TypedError<E> {
    fn from(error: Error) -> Self {
        TypedError::Cache(error)
    }
}

/// What the byte cache says of a computation that fails with a typed error itself.
impl<E> From<LoadError<TypedError<E>>> for TypedError<E> {
    fn from(error: LoadError<TypedError<E>>) -> Self {
        match error {
            LoadError::Cache(error) => TypedError::Cache(error),
            LoadError::Load(error) => error,
        }
    }
}

impl<E: Display> Display for TypedError<E> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TypedError::Cache(error) => error.fmt(out),
            TypedError::Encode { kind, reason } => write!(out, "no bytes for a {kind}: {reason}"),
            TypedError::Decode { key, kind, reason } => {
                write!(
                    out,
                    "under a key of type {key} are bytes that are no {kind}: {reason}"
                )
            }
            TypedError::Load(error) => error.fmt(out),
        }
    }
}

/// A computation's error is shown as itself.
impl<E: error::Error> error::Error for TypedError<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            TypedError::Cache(error) => error.source(),
            TypedError::Encode { reason, .. } | TypedError::Decode { reason, .. } => {
                Some(&**reason)
            }
            TypedError::Load(error) => error.source(),
        }
    }
}
