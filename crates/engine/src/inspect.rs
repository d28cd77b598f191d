//! What an engine shows of its inside: to those who operate it, and to those who check it.

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

    /// What its messages were, if it has threads of its own that carry requests out.
    fn message_stats(&self) -> Option<MessageStats> {
        None
    }
}

/// For those who check an engine.
pub trait Audit {
    /// Recomputes every numbered invariant of the engine from its bytes; an error names the one
    /// that does not hold. Nothing else may run on the engine meanwhile.
    fn audit(&self) -> Result<(), String>;
}

/// What an item takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Its size class, as in [`ClassStats`](crate::stats::ClassStats).
    pub class: usize,
    /// Bytes it occupies.
    pub size: usize,
}
