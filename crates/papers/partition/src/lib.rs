//! Partitions: CPHash's table (PPoPP 2012), of which each part has one owner at a time.
//!
//! A [`Partition`] is a hash table of its own with a strict LRU list (or random eviction) and its own blocks of memory.
//! It has no thread: all its operations need exclusive access. The engine around it decides who the owner is: either a
//! message engine, whose threads own partitions for as long as they like, or [`lockhash`], which takes a lock for each
//! operation (section 4.2). With random eviction other threads may read it beside its owner, each with one bucket
//! locked: through its [`descriptor`]. The upper half of a key's hash selects the partition, the lower half the bucket
//! in it ([`split`](nuthatch_base::hash::split)).
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
//! **References.** The table's reference and those of readers are counted apart: LINKED is the table's, a number counts
//! the readers. An element's lines are not reused before it is out of the table and the last reader has given it back
//! ([`Partition::decref`]). Until then it stays counted, and eviction passes over it. A new element is NOT READY and
//! not in the table: its bytes belong to the thread that asked for it, outside of the owner's thread and caches, until
//! [`Partition::publish`] (Ready) puts it into the place of the key's old one. So no reader misses a key that is being
//! replaced.
//!
//! **Beyond the paper.** Keys of any size: the hash finds an element, and the full key decides, compared by the owner
//! ([`Partition::execute`]) or by the client that reads the element ([`Partition::lookup`]). The bucket array grows
//! with the table ([`index`]). Capacity is counted in blocks that move between partitions ([`reclaim`]), and the count
//! equals resident memory ([`memory`]).
//!
//! Invariants (on top of those of [`space`]):
//! 1. An element that is LINKED is in the chain of its hash's bucket, and nothing else is.
//! 2. Elements in a chain are READY; one that is NOT READY has one reader, and only that reader writes to it.
//! 3. A key has at most one element in the table.
//! 4. `items` and `item_bytes` are the sums over the elements in the table.
//! 5. With LRU, the order of use has exactly the elements in the table.
//! 6. The bytes of a partition's blocks do not pass its capacity, except while a lowered capacity is being reached;
//!    those of all partitions do not pass the pool's limit.
//! 7. An element with readers, once READY, changes only in words 1, 2 and 4 of its header, and its lines
//!    are not free.
//!
//! Because of invariant 7 clients may copy values without the owner: the bytes that they read do not change, and the
//! lock or the message by which they got the reference orders their reads after the writes. Besides, the bytes are
//! atomic words, so not even a broken protocol could cause a data race.

mod audit;
mod bucket;
mod counts;
mod data;
mod delta;
pub mod descriptor;
mod draft;
pub mod element;
mod grow;
mod index;
pub mod layout;
pub mod lockhash;
pub mod memory;
mod operate;
mod order;
pub mod reclaim;
mod reserved;
mod share;
mod space;
mod spares;
mod table;
pub mod visit;
mod walk;

pub use counts::{Counts, Searches};
pub use data::ValueInPlace;
pub use descriptor::Descriptor;
pub use draft::Draft;
pub use element::Element;
pub use lockhash::LockHash;
pub use lockhash::config::LockHashConfig;
pub use lockhash::{AndersonLock, Lock};
pub use memory::BlockMemory;
pub use operate::Outcome;
pub use reserved::ReservedElement;
pub use table::{Eviction, Partition, PartitionConfig};

use nuthatch_base::hash::sizing::{self, IndexRule, IndexShape};

/// The buckets with which each of `partitions` partitions begins (its share of an index for `memory` bytes), and the
/// rule that decided.
pub fn first_buckets(memory: usize, items: Option<usize>, partitions: usize) -> (u32, IndexRule) {
    let items = items.map(|items| items.div_ceil(partitions) as u64);
    let share = (memory / partitions) as u64;
    let least = u64::from(index::FIRST);
    let size = sizing::index(share, items, IndexShape::PARTITIONS, least);
    (size.buckets.min(1 << 31) as u32, size.rule)
}
