//! What an engine shows of its inside: to those who operate it, and to those who check it.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use crate::index_stats::IndexHistogram;
use crate::stats::MessageStats;

/// For those who operate an engine.
pub trait Inspect {
    /// What an item with a key and a value of so many bytes takes, as [`Handle::visit`](crate::Handle::visit) tells
    /// it; an item whose flags need more than 14 bits, or whose cas a client chose, may take a little more.
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint;

    /// Items in each bucket of the index, or in about `sample` of its buckets if it has more: taken
    /// from the running engine, which goes on. `None` from an engine that has no buckets to show.
    fn index_histogram(&self, sample: u64) -> Option<IndexHistogram> {
        let _ = sample;
        None
    }

    /// Has this hear of items that are thrown out alive, from now on; only once. An engine that tells nobody does nothing.
    fn tell_evictions(&self, to: Arc<dyn Evictions>) {
        let _ = to;
    }

    /// What its messages were, if it has threads of its own that carry requests out.
    fn message_stats(&self) -> Option<MessageStats> {
        None
    }

    /// What no other engine has to tell, a name and a value a line: the topic of `stats` by its name. It waits for nobody.
    fn own_lines(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Hears of items that are evicted alive. It is called by the thread that needs room, which may hold locks of the
/// engine: it must neither wait nor call the engine.
pub trait Evictions: Send + Sync {
    /// True if anybody listens.
    fn are_wanted(&self) -> bool;

    /// An item was thrown out.
    fn evicted(&self, item: &Evicted<'_>);
}

/// An item that was thrown out alive.
#[derive(Clone, Copy, Debug)]
pub struct Evicted<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Bytes of its value.
    pub value_len: usize,
    /// True if a get had hit it.
    pub fetched: bool,
    /// When it would have expired: the time until then.
    pub left: Option<Duration>,
    /// Since it was stored; where the engine keeps that, since it was used last.
    pub age: Duration,
    /// Its size class, as in [`ClassStats`](crate::stats::ClassStats).
    pub class: usize,
}

/// For those who check an engine.
pub trait Audit {
    /// Recomputes every numbered invariant of the engine from its bytes; an error names the one
    /// that does not hold. Nothing else may run on the engine meanwhile.
    fn audit(&self) -> Result<(), AuditError>;
}

/// An invariant that does not hold: which one, and where. It is for the engine's developers, so it is words alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditError(String);

impl From<String> for AuditError {
    fn from(words: String) -> Self {
        Self(words)
    }
}

impl From<&str> for AuditError {
    fn from(words: &str) -> Self {
        Self(words.to_owned())
    }
}

impl Display for AuditError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Error for AuditError {}

/// What an item takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Its size class, as in [`ClassStats`](crate::stats::ClassStats).
    pub class: usize,
    /// Bytes it occupies.
    pub size: usize,
}
