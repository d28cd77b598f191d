//! The removed value that a listener is called with, and the adapter to the engine's listener.

use std::sync::Arc;

use nuthatch_engine::reply::Item;
use nuthatch_store::reclaim::removals;

pub use nuthatch_store::reclaim::removals::RemovalCause;

/// A value that has left the cache, as its [listener](crate::Builder::removal_listener) gets it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Removed<'a> {
    /// Why it left.
    pub cause: RemovalCause,
    /// Its key.
    pub key: &'a [u8],
    /// The value; `None` if it is too large to be copied when it leaves: over a MiB, which takes an [item
    /// limit](crate::Builder::item_size_max) above the default.
    pub value: Option<&'a [u8]>,
    /// Bytes of the value.
    pub value_len: usize,
}

/// Wraps a listener of the library as one of the engine.
pub(crate) fn adapt(
    listener: impl Fn(&Removed<'_>) + Send + Sync + 'static,
    hears_all: bool,
) -> removals::Listener {
    let callback = move |cause, key: &[u8], item: &Item, value: &[u8]| {
        listener(&Removed {
            cause,
            key,
            value: (value.len() == item.value_len).then_some(value),
            value_len: item.value_len,
        });
    };
    removals::Listener {
        callback: Arc::new(callback),
        hears_all,
    }
}
