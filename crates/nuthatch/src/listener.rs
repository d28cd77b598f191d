//! What the eviction listener is told.

use std::sync::Arc;

use nuthatch_engine::reply::Item;
use nuthatch_store::eviction::removals;

pub use nuthatch_store::eviction::removals::RemovalCause;

/// An item that the cache removed by itself, as its
/// [listener](crate::Builder::eviction_listener) is told of it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Removed<'a> {
    /// Why it was removed.
    pub cause: RemovalCause,
    /// Its key.
    pub key: &'a [u8],
    /// Its value; `None` if that is too large to be copied on its way out: over half a MiB or, with a memory limit
    /// below 64 MiB, over a 128th of the limit (rounded down to a power of two).
    pub value: Option<&'a [u8]>,
    /// Bytes of its value.
    pub value_len: usize,
}

/// The engine's listener for one of the library's.
pub(crate) fn adapt(listener: impl Fn(&Removed<'_>) + Send + Sync + 'static) -> removals::Listener {
    Arc::new(move |cause, key: &[u8], item: &Item, value: &[u8]| {
        listener(&Removed {
            cause,
            key,
            value: (value.len() == item.value_len).then_some(value),
            value_len: item.value_len,
        });
    })
}
