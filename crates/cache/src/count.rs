//! What a cuckoo engine counts.

use crate::counters::Counters;
use crate::slab::sizes::CLASSES_MAX;

/// The engine-wide counters.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum Count {
    /// Items linked.
    Linked,
    /// Items unlinked.
    Unlinked,
    /// Stores.
    Stored,
    /// Bytes asked for by linked items (goes down when they leave).
    Bytes,
    /// Live items thrown out.
    Evicted,
    /// Of these, never fetched.
    EvictedUnfetched,
    /// Expired or flushed items whose memory came back.
    Expired,
    /// Of these, never fetched.
    ExpiredUnfetched,
    /// Stores refused for want of memory.
    OutOfMemory,
    /// Chunks the sweep looked at.
    Swept,
    /// Reads begun again.
    Retries,
    /// Tags that lied.
    FalseTags,
    /// Items moved to their other bucket.
    Displaced,
}

const ENGINE_COUNTS: usize = Count::Displaced as usize + 1;

/// Counters of a size class.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum ClassCount {
    /// Bytes asked for in its chunks.
    Bytes,
    /// Live items thrown out.
    Evicted,
    /// Of these, never fetched.
    EvictedUnfetched,
    /// Stores refused.
    OutOfMemory,
}

const CLASS_COUNTS: usize = ClassCount::OutOfMemory as usize + 1;

/// How many counters a thread has.
pub const COUNTS: usize = ENGINE_COUNTS + CLASS_COUNTS * CLASSES_MAX;

/// A thread's counters.
pub type Counted = Counters<COUNTS>;

/// Where a class's counter stands.
pub const fn class_count(class: usize, count: ClassCount) -> usize {
    ENGINE_COUNTS + CLASS_COUNTS * class + count as usize
}

impl Counted {
    /// One more.
    #[inline(always)]
    pub fn one(&self, count: Count) {
        self.add(count as usize, 1);
    }

    /// One more in a class.
    #[inline(always)]
    pub fn one_in(&self, class: usize, count: ClassCount) {
        self.add(class_count(class, count), 1);
    }
}
