//! The table of one thread.

use crate::buckets::{Buckets, lowest};
use crate::config::{Config, ConfigError};
use crate::entry::{Entry, Slot};
use crate::insert::{self, Inserted, ValueTooWide};
use crate::layout::{Layout, Shape};
use crate::lookup::{Access, Found, Many, One, Plain, Seen, check_room, find_alone};
use crate::matching::{Baseline, Checked, Matcher, Vector, dispatch};
use crate::policy::Policy;
use crate::stats::Stats;

/// A flow cache whose layout and entry are types: `Table<Blp2x4, Tag16>` is the paper's.
///
/// A lookup changes the table if its eviction learns from hits, so all operations take `&mut`.
/// Hashes are 64 bits that all count: [`FiveTuple::hash`](crate::FiveTuple::hash), or
/// [`widen`](crate::widen) of 32.
pub struct Table<L: Shape, T: Slot> {
    buckets: Buckets<L, T>,
    policy: Policy,
    vector: Checked,
    stats: Stats,
}

impl<L: Shape, T: Slot> Table<L, T> {
    /// An empty table. The configuration's layout and entry must be those of the types.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        config.check::<L, T>()?;
        let buckets = Buckets::reserve(config.buckets())?;
        let policy = Policy::new::<L>(config.eviction, config.seed, buckets.slots().len());
        Ok(Self {
            buckets,
            policy,
            vector: Checked::new(config.vector),
            stats: Stats::default(),
        })
    }

    /// Slots, without the spare ones behind the last bucket: what was asked for, rounded up.
    pub fn entries(&self) -> u64 {
        self.buckets.entries()
    }

    /// Which layout this is.
    pub fn layout(&self) -> Layout {
        L::LAYOUT
    }

    /// Which entry this is.
    pub fn entry(&self) -> Entry {
        T::ENTRY
    }

    /// Who leaves a full table.
    pub fn eviction(&self) -> crate::Eviction {
        self.policy.eviction()
    }

    /// The comparison that lookups run.
    pub fn vector(&self) -> Vector {
        self.vector.get()
    }

    /// Counts since the table was made.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The value of a key.
    ///
    /// A table keeps tags, not keys: it may answer with the value of another key of the same tag.
    /// What must not happen by chance is verified by the caller, or by a
    /// [`FlowTable`](crate::FlowTable).
    #[inline]
    pub fn lookup(&mut self, hash: u64) -> Option<u64> {
        let (buckets, vector) = (&self.buckets, self.vector);
        let value = if self.policy.eviction().learns_from_hits() {
            let access = Learning(&mut self.policy);
            dispatch(
                vector,
                One {
                    buckets,
                    access,
                    hash,
                },
            )
        } else {
            let access = Plain;
            dispatch(
                vector,
                One {
                    buckets,
                    access,
                    hash,
                },
            )
        };
        self.stats.lookups += 1;
        self.stats.hits += u64::from(value.is_some());
        value
    }

    /// Looks any number of keys up, with their cache misses overlapped, and returns how many were
    /// found.
    ///
    /// Afterwards `values[i]` is the value of `hashes[i]`, or 0, and bit `i % 64` of `hits[i / 64]`
    /// says whether it was found; further bits of the last word are 0. Keys take effect in order.
    ///
    /// # Panics
    /// If `values` is shorter than `hashes`, or `hits` than one bit for each.
    pub fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize {
        check_room(hashes.len(), values, hits);
        let (buckets, vector) = (&self.buckets, self.vector);
        let found = if self.policy.eviction().learns_from_hits() {
            let access = Learning(&mut self.policy);
            let many = Many {
                buckets,
                access,
                hashes,
                values,
                hits,
            };
            dispatch(vector, many)
        } else {
            let access = Plain;
            let many = Many {
                buckets,
                access,
                hashes,
                values,
                hits,
            };
            dispatch(vector, many)
        };
        self.stats.lookups += hashes.len() as u64;
        self.stats.hits += found as u64;
        found
    }

    /// The value of a key; unlike a lookup it is not counted and teaches nothing.
    pub fn peek(&self, hash: u64) -> Option<u64> {
        let (at, tag) = self.buckets.candidates(hash);
        let matches = self.buckets.matches::<Baseline>(at, tag);
        (matches != 0).then(|| self.buckets.load(at, lowest(matches)).value)
    }

    /// Asks for the lines that a lookup or insert of this key will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.buckets.prefetch(hash);
    }

    /// Inserts or updates a key. Fails only for a value wider than [`Entry::value_max`].
    #[inline]
    pub fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide> {
        self.insert_dropping(hash, value, |_| ())
    }

    /// Inserts or updates a key, and says whose entries with the same tag were dropped for it.
    #[inline]
    pub(crate) fn insert_dropping(
        &mut self,
        hash: u64,
        value: u64,
        mut dropped: impl FnMut(u64),
    ) -> Result<Inserted, ValueTooWide> {
        insert::check::<T>(value)?;
        let stats = &mut self.stats;
        let left = |value| {
            stats.removed += 1;
            dropped(value);
        };
        let inserted = insert::insert(&self.buckets, &mut self.policy, hash, value, left);
        self.stats.count(inserted);
        Ok(inserted)
    }

    /// Removes a key and returns its value; others of the same tag that could be taken for it
    /// leave with it.
    #[inline]
    pub fn remove(&mut self, hash: u64) -> Option<u64> {
        let mut first = None;
        self.remove_each(hash, |value| {
            first.get_or_insert(value);
        });
        first
    }

    /// Removes a key and all that cannot be told from it, and hands their values over.
    #[inline]
    pub(crate) fn remove_each(&mut self, hash: u64, mut removed: impl FnMut(u64)) {
        let stats = &mut self.stats;
        insert::remove(&self.buckets, hash, |value| {
            stats.removed += 1;
            removed(value);
        });
    }

    /// Removes all keys with this value, as when a rule dies, and says how many. Reads the whole
    /// table.
    pub fn forget_value(&mut self, value: u64) -> u64 {
        self.forget(|other| other == value)
    }

    /// Removes all keys whose value `forget` chooses, and says how many. Reads the whole table.
    pub fn forget(&mut self, forget: impl FnMut(u64) -> bool) -> u64 {
        let forgotten = insert::forget(self.buckets.slots(), forget);
        self.stats.forgotten += forgotten;
        forgotten
    }

    /// Removes all keys, and says how many there were.
    pub fn clear(&mut self) -> u64 {
        self.forget(|_| true)
    }

    /// Slots that are taken, counted one by one; [`Stats::occupied`] says the same.
    pub fn count(&self) -> u64 {
        let taken = |slot: &&T| slot.load().tag != 0;
        self.buckets.slots().iter().filter(taken).count() as u64
    }
}

/// A table of one thread whose eviction learns from hits.
struct Learning<'a>(&'a mut Policy);

impl<L: Shape, T: Slot> Access<L, T> for Learning<'_> {
    const LEARNS: bool = true;

    #[inline(always)]
    fn find<M: Matcher>(&self, buckets: &Buckets<L, T>, hash: u64) -> Found {
        find_alone::<L, T, M>(buckets, hash)
    }

    #[inline(always)]
    fn learn(&mut self, buckets: &Buckets<L, T>, seen: &Seen<'_>) {
        self.0.learn(buckets, seen);
    }
}
