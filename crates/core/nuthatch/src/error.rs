//! The errors: of operations, of computations that may fail themselves, and of building a cache.

use std::fmt::{self, Display, Formatter};
use std::{error, io};

use nuthatch_engine::reply::Reply;

/// Why an operation on a [`Cache`](crate::Cache) could not be carried out. The cache is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The key is empty or longer than [`KEY_LEN_MAX`](crate::KEY_LEN_MAX) bytes. Only stores return this error: a
    /// lookup of such a key finds nothing.
    KeyLength,
    /// Key, value and header together are over the item limit
    /// ([`Builder::item_size_max`](crate::Builder::item_size_max)).
    TooLarge,
    /// There is no memory for the item: the cache is full and may not evict ([`Builder::evict`](crate::Builder::evict)),
    /// or what it holds cannot be evicted now: items that readers read in place, and stores under way. A value that is
    /// being written holds its memory. So of four threads that store items of a quarter or half of the memory limit at
    /// the same time, some are refused while the others write.
    ///
    /// Such a store succeeds when the others are done: try it again, or go on without the item, as after an eviction.
    /// If it happens often, store large items by fewer threads at a time, raise the memory limit, or lower
    /// [`Builder::item_size_max`](crate::Builder::item_size_max).
    OutOfMemory,
    /// The value is not a decimal number under 2^64.
    NotNumeric,
    /// The computation of a key's value called the cache to compute the value of the same key.
    Recursion,
}

impl Error {
    /// The error that an engine's reply stands for, if it is one.
    pub(crate) fn of(reply: &Reply) -> Option<Self> {
        match reply {
            Reply::TooLarge => Some(Error::TooLarge),
            Reply::OutOfMemory => Some(Error::OutOfMemory),
            Reply::NotNumeric => Some(Error::NotNumeric),
            _ => None,
        }
    }
}

impl Display for Error {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Error::KeyLength => "a key has 1 to 250 bytes",
            Error::TooLarge => "the item is larger than the cache allows",
            Error::OutOfMemory => {
                "no memory: the cache may not evict, or what it holds is being read or stored"
            }
            Error::NotNumeric => "the value is not a decimal number under 2^64",
            Error::Recursion => "the computation of a key's value waits for itself",
        })
    }
}

impl error::Error for Error {}

/// The error of a method whose computation may fail itself, such as
/// [`Cache::try_get_or_insert_with`](crate::Cache::try_get_or_insert_with).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadError<E> {
    /// The cache refused the key, or the computation waits for itself.
    Cache(Error),
    /// The computation failed.
    Load(E),
}

impl<E: From<Error>> LoadError<E> {
    /// The error within, converted to the computation's error type. It is for types that any error converts to but that
    /// do not implement `Error` themselves, such as `Box<dyn Error>` and `anyhow::Error`.
    ///
    /// ```
    /// use nuthatch::{Cache, Lifetime, LoadError};
    /// use std::error::Error;
    ///
    /// fn port(cache: &Cache) -> Result<u16, Box<dyn Error>> {
    ///     let load = || -> Result<String, Box<dyn Error>> { Ok(std::env::var("NO_SUCH_PORT")?) };
    ///     let port = cache.try_get_or_insert_with("port", Lifetime::Default, load);
    ///     Ok(String::from_utf8(port.map_err(LoadError::into_error)?)?.parse()?)
    /// }
    /// # fn main() -> Result<(), nuthatch::BuildError> {
    /// assert!(port(&Cache::new(1 << 20)?).unwrap_err().is::<std::env::VarError>());
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_error(self) -> E {
        match self {
            LoadError::Cache(error) => error.into(),
            LoadError::Load(error) => error,
        }
    }
}

impl<E> From<Error> for LoadError<E> {
    fn from(error: Error) -> Self {
        LoadError::Cache(error)
    }
}

impl<E: Display> Display for LoadError<E> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Cache(error) => error.fmt(out),
            LoadError::Load(error) => error.fmt(out),
        }
    }
}

/// Shown as the error that it holds.
impl<E: error::Error> error::Error for LoadError<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            LoadError::Cache(error) => error.source(),
            LoadError::Load(error) => error.source(),
        }
    }
}

/// Why a [`Builder`](crate::Builder) made no cache. Sizes are in bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The memory limit is below the lowest one.
    #[non_exhaustive]
    MemoryLimit {
        /// What was asked for.
        asked: usize,
        /// The lowest limit.
        least: usize,
    },
    /// The item limit is not within its bounds.
    #[non_exhaustive]
    ItemSizeMax {
        /// What was asked for.
        asked: usize,
        /// The lowest item limit.
        least: usize,
        /// The highest item limit: half of the memory limit, at most 1 GiB.
        most: usize,
    },
    /// The system refuses so much address space: the memory limit, or how far it may be raised, is too high.
    AddressSpace(io::Error),
    /// The maintenance thread cannot be started.
    Thread(io::Error),
}

impl Display for BuildError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::MemoryLimit { asked, least } => {
                write!(out, "a memory limit of {asked} bytes: at least {least}")
            }
            BuildError::ItemSizeMax { asked, least, most } => {
                write!(out, "an item limit of {asked} bytes: {least} to {most}")
            }
            BuildError::AddressSpace(_) => {
                out.write_str("the system gives no address space for the memory limit")
            }
            BuildError::Thread(_) => out.write_str("the system starts no maintenance thread"),
        }
    }
}

impl error::Error for BuildError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            BuildError::AddressSpace(error) | BuildError::Thread(error) => Some(error),
            BuildError::MemoryLimit { .. } | BuildError::ItemSizeMax { .. } => None,
        }
    }
}
