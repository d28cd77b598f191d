//! What a table counts.

use std::ops::AddAssign;

use crate::insert::Inserted;

/// Counts since the table was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Keys looked up.
    pub lookups: u64,
    /// Keys that were found.
    pub hits: u64,
    /// Inserts that took an empty slot.
    pub filled: u64,
    /// Inserts that replaced the value of a key that was there.
    pub updated: u64,
    /// Inserts that drove another key out.
    pub evicted: u64,
    /// Keys that were removed one by one.
    pub removed: u64,
    /// Keys that were forgotten in bulk.
    pub forgotten: u64,
}

impl Stats {
    pub(crate) fn count(&mut self, inserted: Inserted) {
        match inserted {
            Inserted::Filled => self.filled += 1,
            Inserted::Updated { .. } => self.updated += 1,
            Inserted::Evicted { .. } => self.evicted += 1,
        }
    }

    /// Hits by lookups, 0 before the first.
    pub fn hit_rate(&self) -> f64 {
        if self.lookups == 0 {
            return 0.0;
        }
        self.hits as f64 / self.lookups as f64
    }

    /// Entries that are in the table now.
    pub fn occupied(&self) -> u64 {
        // Threads' counts are added up one after the other, so a removal may be seen before the
        // insert that it followed.
        self.filled.saturating_sub(self.removed + self.forgotten)
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
