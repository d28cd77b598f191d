//! Inspection: the internal state that an engine shows to its operators and to its tests.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use crate::index_stats::IndexHistogram;
use crate::stats::{MessageStats, UpstreamStats};

/// The interface for operators of an engine.
pub trait Inspect {
    /// The memory that an item with a key and a value of so many bytes takes, as
    /// [`Handle::visit`](crate::Handle::visit) reports it. An item whose flags need more than 14 bits, or whose cas a
    /// client chose, may take a little more.
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint;

    /// Items in each bucket of the index, or in about `sample` of its buckets if it has more: counted in the running
    /// engine, which goes on. `None` from an engine that has no buckets to show.
    fn index_histogram(&self, sample: u64) -> Option<IndexHistogram> {
        let _ = sample;
        None
    }

    /// Sets the receiver of items that are evicted alive, or removed because they have expired, from now on. Only the first
    /// call counts. An engine that does not report these ignores it.
    fn report_evictions(&self, to: Arc<dyn Evictions>) {
        let _ = to;
    }

    /// The statistics of its messages, if it has its own threads that carry out requests.
    fn message_stats(&self) -> Option<MessageStats> {
        None
    }

    /// The statistics of the servers behind it, if its items are copies of theirs.
    fn upstream_stats(&self) -> Option<UpstreamStats> {
        None
    }

    /// Lines that only this engine has, each a name and a value: the topic of `stats` by its name. The call waits for
    /// no thread.
    fn own_lines(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// The receiver of items that are evicted alive, or removed because they have expired. The thread that removes them calls it,
/// and may hold locks of the engine: it must neither wait nor call the engine.
pub trait Evictions: Send + Sync {
    /// True if a listener is active.
    fn are_wanted(&self) -> bool;

    /// An item was evicted.
    fn evicted(&self, item: &Evicted<'_>);

    /// True if it is to be told of items that have expired.
    fn are_expiries_wanted(&self) -> bool {
        false
    }

    /// The item of this key had expired, and was removed. An engine tells it when it finds the item dead, which may be long
    /// after its end.
    fn expired(&self, key: &[u8]) {
        let _ = key;
    }
}

/// An item that was evicted alive.
#[derive(Clone, Copy, Debug)]
pub struct Evicted<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Bytes of its value.
    pub value_len: usize,
    /// True if a get had hit it.
    pub fetched: bool,
    /// The time that was left until its expiry, if it had one.
    pub left: Option<Duration>,
    /// The time since it was stored, or since its last use where the engine keeps that.
    pub age: Duration,
    /// Its size class, as in [`ClassStats`](crate::stats::ClassStats).
    pub class: usize,
}

/// The interface for tests of an engine.
pub trait Audit {
    /// Recomputes every numbered invariant of the engine from its bytes; an error names the one
    /// that does not hold. Nothing else may run on the engine meanwhile.
    fn audit(&self) -> Result<(), AuditError>;
}

/// An invariant that does not hold: which one, and where. It is for the engine's developers, so it has only a text.
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

/// The memory that an item takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Its size class, as in [`ClassStats`](crate::stats::ClassStats).
    pub class: usize,
    /// Bytes it occupies.
    pub size: usize,
}
