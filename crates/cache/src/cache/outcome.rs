//! How operations on a [`Cache`](super::Cache) end, when not with a value.

use std::fmt;

/// Why an operation could not be carried out. The cache is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The key is empty or longer than 250 bytes.
    KeyLength,
    /// Key, value and header together are over the item limit
    /// ([`Builder::item_size_max`](crate::Builder::item_size_max)).
    TooLarge,
    /// The cache is full and may not evict ([`Builder::evict`](crate::Builder::evict)), or all that could be evicted is
    /// being read in place.
    OutOfMemory,
    /// The item is not a decimal number under 2^64.
    NotNumeric,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Error::KeyLength => "a key has 1 to 250 bytes",
            Error::TooLarge => "the item is larger than the cache allows",
            Error::OutOfMemory => "the cache is full",
            Error::NotNumeric => "the value is not a decimal number",
        })
    }
}

impl std::error::Error for Error {}

/// How a compare-and-swap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasOutcome {
    /// Stored.
    Stored,
    /// The item was changed since its cas was read.
    Changed,
    /// The item is gone.
    Gone,
}

/// The error of [`Cache::try_get_or_insert_with`](super::Cache::try_get_or_insert_with).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError<E> {
    /// The cache refused the key or the value.
    Cache(Error),
    /// The caller's own computation failed.
    Load(E),
}
