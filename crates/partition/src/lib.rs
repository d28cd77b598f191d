//! Partitions: CPHash's table (PPoPP 2012), of which each part has one owner at a time.
//!
//! A [`Partition`] is a hash table of its own with a strict LRU list (or random eviction), its own blocks
//! of memory, and no thread in it: all its operations want it exclusively. Its owner is told
//! by the engine around it: one that sends messages to threads which own partitions for as long as
//! they like, or [`lockhash`], which takes a lock for each operation (section 4.2). With random
//! eviction others may read it beside its owner, each with one bucket locked: through its [`descriptor`]. The
//! partition comes from the upper half of a key's hash, the bucket in it from the lower
//! ([`split`](nuthatch_hash::split)).
//!
//! ```text
//!  buckets      elements: chained, and in the order of use
//!  +---+        +--------------+-----+-------+        +--------------+-----+-------+
//!  | o-+------->| header, 64 B | key | value |------->| header, 64 B | key | value |
//!  |   |        +--------------+-----+-------+        +--------------+-----+-------+
//!  | o-+--...      ^                                     ^
//!  +---+         newest  <----- - - - - - - - - ---->  oldest: the next to go
//! ```
//!
//! **References.** The table's reference and those of readers are counted apart: LINKED is the table's, a
//! number tells the readers. An element goes to nobody else before it is out of the table and the
//! last reader has given it back ([`Partition::decref`]); until then it stays counted, and
//! eviction passes it over. A new element is NOT READY and not in the table: its bytes belong to the thread that
//! asked for it, outside of the owner's thread and caches, until [`Partition::publish`] (Ready)
//! puts it into the place of the key's old one. So a key that is being replaced is never missed.
//!
//! **Beyond the paper.** Keys of any size: the hash finds, the full key decides, compared by the owner
//! ([`Partition::execute`]) or by the client that reads the element ([`Partition::lookup`]). The bucket
//! array grows with the table ([`index`]). Capacity is counted in blocks that move between partitions
//! ([`reclaim`]), and resident memory is what is counted ([`memory`]).
//!
//! Invariants (on top of those of [`space`]):
//! 1. An element that is LINKED is in the chain of its hash's bucket, and nothing else is.
//! 2. Elements in a chain are READY; one that is NOT READY has one reader, who alone writes to it.
//! 3. A key has at most one element in the table.
//! 4. `items` and `item_bytes` are the sums over the elements in the table.
//! 5. With LRU, the order of use has exactly the elements in the table.
//! 6. The bytes of a partition's blocks do not pass its capacity, but while a lowered capacity is being
//!    reached; those of all partitions do not pass the pool's limit.
//! 7. An element with readers, once READY, changes only in words 1, 2 and 4 of its header, and its lines
//!    are not free.
//!
//! Invariant 7 is why clients may copy values without the owner: what they read does not change, and how
//! they came by the reference (a lock, a message) orders their reads behind the writes. The bytes
//! are atomic words besides, so not even a broken protocol could make a data race of it.

mod audit;
mod bucket;
mod counts;
mod delta;
pub mod descriptor;
mod draft;
pub mod element;
mod grow;
mod index;
pub mod lockhash;
pub mod memory;
mod operate;
mod order;
pub mod reclaim;
mod reserved;
mod share;
mod space;
mod table;
pub mod visit;
mod walk;

pub use counts::{Counts, Searches};
pub use descriptor::Descriptor;
pub use draft::Draft;
pub use element::Element;
pub use lockhash::LockHash;
pub use lockhash::config::LockHashConfig;
pub use memory::BlockMemory;
pub use operate::Outcome;
pub use reserved::ReservedElement;
pub use table::{Eviction, Partition, PartitionConfig};

use nuthatch_hash::sizing::{self, IndexRule, IndexShape};

/// Buckets that each of so many partitions begins with, its share of an index for so much memory, and
/// what decided.
pub fn first_buckets(memory: usize, items: Option<usize>, partitions: usize) -> (u32, IndexRule) {
    let items = items.map(|items| items.div_ceil(partitions) as u64);
    let share = (memory / partitions) as u64;
    let least = u64::from(index::FIRST);
    let size = sizing::index(share, items, IndexShape::PARTITIONS, least);
    (size.buckets.min(1 << 31) as u32, size.rule)
}
