//! The counters of a table, and how other threads read them while the table is in use.
//!
//! Each set of counters has one writer: the table or the handle that owns it, whose counting methods take `&mut self`.
//! So no update can be lost, and an addition is a relaxed load and a relaxed store instead of a locked instruction: on
//! x86-64 the same single `add` as for a plain integer. Any number of threads read. Counters order no other memory, so
//! nothing stronger than Relaxed is needed. By coherence a reader never sees an older value of a counter after a newer
//! one.
//!
//! The counters are an allocation of their own. The owner has `&mut` to its table, so no other thread may access the
//! table, not even an atomic field of it.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use nuthatch_base::sync::counter::Counter;

use crate::insert::Inserted;

/// Counts since the table was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Keys looked up.
    pub lookups: u64,
    /// Keys that were found; never more than `lookups`.
    pub hits: u64,
    /// Inserts that took an empty slot.
    pub filled: u64,
    /// Inserts that replaced the value of a key that the table had.
    pub updated: u64,
    /// Inserts that evicted another key.
    pub evicted: u64,
    /// Keys that were removed one by one.
    pub removed: u64,
    /// Keys that were removed in bulk, by value or by `clear`.
    pub forgotten: u64,
}

impl Stats {
    /// Hits / lookups; 0 before the first lookup.
    pub fn hit_rate(&self) -> f64 {
        if self.lookups == 0 {
            return 0.0;
        }
        self.hits as f64 / self.lookups as f64
    }

    /// Entries that are in the table now.
    pub fn occupied(&self) -> u64 {
        // Counters are read one after the other, so a removal may be seen without the insert that
        // it followed.
        self.filled
            .saturating_sub(self.removed.saturating_add(self.forgotten))
    }
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.lookups += other.lookups;
        self.hits += other.hits;
        self.filled += other.filled;
        self.updated += other.updated;
        self.evicted += other.evicted;
        self.removed += other.removed;
        self.forgotten += other.forgotten;
    }
}

/// Reads the counters of a table of one thread from any thread, while its owner uses the table.
///
/// The counters are read one after the other while the owner goes on counting: they may be some operations apart from
/// each other, and each is the newest value that has reached the reader's processor. No counter goes back between two
/// reads by one thread. A reader may outlive its table.
///
/// ```
/// use nuthatch_flow::Config;
///
/// let mut cache = Config::new(1 << 10).build()?;
/// let reader = cache.stats_reader();
/// let owner = std::thread::spawn(move || cache.lookup(1));
/// assert!(reader.stats().lookups <= 1);
/// # owner.join().unwrap();
/// assert_eq!(reader.stats().lookups, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StatsReader {
    counters: Arc<Counters>,
}

impl StatsReader {
    pub(crate) fn new(counters: &Arc<Counters>) -> Self {
        Self {
            counters: Arc::clone(counters),
        }
    }

    /// Counts since the table was created.
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }
}

impl fmt::Debug for StatsReader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("StatsReader").field(&self.stats()).finish()
    }
}

/// The counters of one writer, alone on their cache line, because other threads write their own counters as often.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Counters {
    lookups: Counter,
    hits: Counter,
    filled: Counter,
    updated: Counter,
    evicted: Counter,
    removed: Counter,
    forgotten: Counter,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Counters>() == 64, "one cache line");

impl Counters {
    #[inline(always)]
    pub fn add_lookups(&self, lookups: u64, hits: u64) {
        self.lookups.add(lookups);
        self.hits.add(hits);
    }

    #[inline(always)]
    pub fn add_insert(&self, inserted: Inserted) {
        match inserted {
            Inserted::Filled => self.filled.add(1),
            Inserted::Updated { .. } => self.updated.add(1),
            Inserted::Evicted { .. } => self.evicted.add(1),
        }
    }

    #[inline(always)]
    pub fn add_removed(&self, keys: u64) {
        self.removed.add(keys);
    }

    pub fn add_forgotten(&self, keys: u64) {
        self.forgotten.add(keys);
    }

    pub fn read(&self) -> Stats {
        let lookups = self.lookups.get();
        Stats {
            lookups,
            // The owner may have counted a batch since: the bound keeps the misses from going below 0. Of two counters
            // that never go back the smaller one never goes back either.
            hits: self.hits.get().min(lookups),
            filled: self.filled.get(),
            updated: self.updated.get(),
            evicted: self.evicted.get(),
            removed: self.removed.get(),
            forgotten: self.forgotten.get(),
        }
    }
}
