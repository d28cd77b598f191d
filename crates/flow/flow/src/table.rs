//! The table of one thread, generic over layout and entry.

use std::sync::Arc;

use crate::buckets::{Buckets, lowest};
use crate::config::{Config, ConfigError};
use crate::entry::{Entry, Slot};
use crate::insert::{self, Inserted, ValueTooWide};
use crate::layout::{Layout, Shape};
use crate::lookup::{
    Access, Found, LookupMany, LookupOne, Lookups, ReadOnlyAccess, check_room, find_alone,
};
use crate::matching::{Baseline, Checked, Matcher, Vector, dispatch};
use crate::policy::Policy;
use crate::stats::{Counters, Stats, StatsReader};

/// A flow cache whose layout and entry are types: `Table<Blp2x4, Tag16>` is the paper's.
///
/// A lookup changes the table if its eviction uses hits, so all operations take `&mut`. All 64 bits of
/// a hash count: [`FiveTuple::hash`](crate::FiveTuple::hash), or
/// [`widen`](crate::widen) of 32.
pub struct Table<L: Shape, T: Slot> {
    buckets: Buckets<L, T>,
    policy: Policy,
    vector: Checked,
    counters: Arc<Counters>,
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
            counters: Arc::default(),
        })
    }

    /// The number of slots: the configured entries, rounded up. The spare buckets do not count.
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

    /// Which eviction this is.
    pub fn eviction(&self) -> crate::Eviction {
        self.policy.eviction()
    }

    /// The comparison that lookups run.
    pub fn vector(&self) -> Vector {
        self.vector.get()
    }

    /// Counts since the table was created.
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// Reads these counts from any thread while this one uses the table.
    pub fn stats_reader(&self) -> StatsReader {
        StatsReader::new(&self.counters)
    }

    /// The value of a key.
    ///
    /// A table stores tags, not keys: it may return the value of another key with the same tag, so the
    /// caller must verify the value, or use a [`FlowTable`](crate::FlowTable). With an eviction that
    /// uses hits the entry is moved up before the caller can verify it.
    #[inline]
    pub fn lookup(&mut self, hash: u64) -> Option<u64> {
        let (buckets, vector) = (&self.buckets, self.vector);
        let value = if self.policy.eviction().uses_hits() {
            let access = ExclusiveAccess(&mut self.policy);
            dispatch(
                vector,
                LookupOne {
                    buckets,
                    access,
                    hash,
                },
            )
        } else {
            let access = ReadOnlyAccess;
            dispatch(
                vector,
                LookupOne {
                    buckets,
                    access,
                    hash,
                },
            )
        };
        self.counters.add_lookups(1, u64::from(value.is_some()));
        value
    }

    /// Looks any number of keys up, with their cache misses overlapped, and returns how many were
    /// found.
    ///
    /// Afterwards `values[i]` is the value of `hashes[i]`, or 0, and bit `i % 64` of `hits[i / 64]`
    /// says whether it was found; further bits of the last word are 0. Hits take effect in order, 64
    /// keys at a time, before the caller can verify the values.
    ///
    /// # Panics
    /// If `values` is shorter than `hashes`, or `hits` than one bit for each.
    pub fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize {
        check_room(hashes.len(), values, hits);
        let (buckets, vector) = (&self.buckets, self.vector);
        let found = if self.policy.eviction().uses_hits() {
            let access = ExclusiveAccess(&mut self.policy);
            let many = LookupMany {
                buckets,
                access,
                hashes,
                values,
                hits,
            };
            dispatch(vector, many)
        } else {
            let access = ReadOnlyAccess;
            let many = LookupMany {
                buckets,
                access,
                hashes,
                values,
                hits,
            };
            dispatch(vector, many)
        };
        self.counters.add_lookups(hashes.len() as u64, found as u64);
        found
    }

    /// The value of a key; unlike a lookup this is not counted and changes nothing.
    pub fn peek(&self, hash: u64) -> Option<u64> {
        let (at, tag) = self.buckets.candidates(hash);
        let matches = self.buckets.matches::<Baseline>(at, tag);
        (matches != 0).then(|| self.buckets.load(at, lowest(matches)).value)
    }

    /// Prefetches the cache lines that a lookup or an insert of this key will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.buckets.prefetch(hash);
    }

    /// The same for many keys: as many as the processor can fetch at a time, some 10 to 40 lines. The processor may
    /// drop or wait for requests beyond that.
    #[inline]
    pub fn prefetch_many(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.buckets.prefetch(hash);
        }
    }

    /// Inserts or updates a key. Fails only for a value wider than [`Entry::value_max`].
    #[inline]
    pub fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide> {
        self.insert_dropping(hash, value, |_| ())
    }

    /// The same; calls `dropped` with the value of each other entry of the same tag, which is removed.
    #[inline]
    pub(crate) fn insert_dropping(
        &mut self,
        hash: u64,
        value: u64,
        mut dropped: impl FnMut(u64),
    ) -> Result<Inserted, ValueTooWide> {
        insert::check::<T>(value)?;
        let counters = &self.counters;
        let dropped = |value| {
            counters.add_removed(1);
            dropped(value);
        };
        let inserted = insert::insert(&self.buckets, &mut self.policy, hash, value, dropped);
        counters.add_insert(inserted);
        Ok(inserted)
    }

    /// Removes a key and returns its value. Other entries of its candidates with the same tag, which
    /// lookups could take for it, are removed too.
    #[inline]
    pub fn remove(&mut self, hash: u64) -> Option<u64> {
        let mut first = None;
        self.remove_each(hash, |value| {
            first.get_or_insert(value);
        });
        first
    }

    /// The same; calls `removed` with each value.
    #[inline]
    pub(crate) fn remove_each(&mut self, hash: u64, mut removed: impl FnMut(u64)) {
        let counters = &self.counters;
        insert::remove(&self.buckets, hash, |value| {
            counters.add_removed(1);
            removed(value);
        });
    }

    /// Removes all keys with this value, as when a rule is deleted; returns how many. Reads the whole
    /// table.
    pub fn forget_value(&mut self, value: u64) -> u64 {
        self.forget(|other| other == value)
    }

    /// Removes all keys for whose value `forget` returns true; returns how many. Reads the whole table.
    pub fn forget(&mut self, forget: impl FnMut(u64) -> bool) -> u64 {
        let forgotten = insert::forget(self.buckets.slots(), forget);
        self.counters.add_forgotten(forgotten);
        forgotten
    }

    /// Removes all keys; returns how many.
    pub fn clear(&mut self) -> u64 {
        self.forget(|_| true)
    }

    /// Hits that moved their key up since the table was created: what a bubble eviction writes for its hits.
    pub fn moves(&self) -> u64 {
        self.policy.moves()
    }

    /// The number of slots in use, counted one by one; the same as [`Stats::occupied`].
    pub fn count(&self) -> u64 {
        let taken = |slot: &&T| slot.load().tag != 0;
        self.buckets.slots().iter().filter(taken).count() as u64
    }
}

/// Access to a table of one thread whose eviction uses hits.
struct ExclusiveAccess<'a>(&'a mut Policy);

impl<L: Shape, T: Slot> Access<L, T> for ExclusiveAccess<'_> {
    const USES_HITS: bool = true;

    #[inline(always)]
    fn find<M: Matcher>(&self, buckets: &Buckets<L, T>, hash: u64) -> Found {
        find_alone::<L, T, M>(buckets, hash)
    }

    #[inline(always)]
    fn on_hits(&mut self, buckets: &Buckets<L, T>, lookups: &Lookups<'_>) {
        self.0.on_hits(buckets, lookups);
    }
}
