//! The table that threads share: any number of readers, and writers that exclude each other only
//! where their keys are neighbours.
//!
//! A hit takes no lock and, unless a key moves up, writes nothing: an entry is one word, so who sees
//! a key's tag sees its value. A miss must be made sure of, because a key that moves up is for a
//! moment in both places and the one that it changes places with in neither. So each
//! group of slots has a version ([`Stripes`]) which is also its lock, and a miss counts only if it
//! was seen between two looks at unmoved versions. In a flow cache a miss costs hundreds of cycles
//! anyway; a hit looks at no version at all.
//!
//! Who hits a key and wants to move it up does so if it gets the lock at once, and else leaves it:
//! moving up is a matter of chance already.
//!
//! Invariants (on top of those of [`stripes`](nuthatch_sync::stripes) and of the crate):
//! 1. A slot is written only by whoever holds the lock of its group; who places a key holds those of
//!    all its candidates.
//! 2. While a group's version is even, each of its keys is in exactly one slot.
//! 3. A word that a lookup returns was in its slot at some moment during the lookup, and there was
//!    its key's value: writers never leave a word of a key that is no longer so.
//! 4. A lookup misses a key only if at some moment during it the key was not in the table.
//! 5. One thread's lookups of a key never go back in time: stores are Release and loads Acquire, so
//!    whoever saw a later word no longer sees an earlier one in another slot.
//!
//! Linearization points. A hit: the load of the word. A miss: the successful version check. An
//! insert or a removal: the store of the key's word, under its locks.

use std::sync::Arc;

use nuthatch_sync::shim::{AtomicU64, Mutex, MutexGuard, Ordering};
use nuthatch_sync::stripes::{Pair, Stripes};

use crate::buckets::{Buckets, lowest};
use crate::config::{Config, ConfigError};
use crate::entry::{Content, Slot};
use crate::insert::{self, Inserted, ValueTooWide};
use crate::layout::{Candidates, Shape};
use crate::lookup::{Access, Found, Many, One, Seen, check_room};
use crate::matching::{Checked, Matcher, dispatch};
use crate::policy::{Policy, exchange, ones};
use crate::stats::Stats;

/// Attempts to see a miss between two looks at the versions, before the lock is taken for it.
const ATTEMPTS: usize = 16;

/// A flow cache that threads share, whose layout and entry are types. Each thread works through a
/// [`SharedHandle`] of its own.
pub struct SharedTable<L: Shape, T: Slot> {
    buckets: Buckets<L, T>,
    stripes: Stripes,
    config: Config,
    handles: Mutex<Handles>,
}

/// Who counts.
#[derive(Default)]
struct Handles {
    /// Made so far: each draws other random numbers.
    made: u64,
    counters: Vec<Arc<Counters>>,
    /// What handles counted that are no more.
    retired: Stats,
}

impl<L: Shape, T: Slot> SharedTable<L, T> {
    /// An empty table. The configuration's layout and entry must be those of the types, and its
    /// eviction and entry such as threads can share.
    pub fn new(config: &Config) -> Result<Arc<Self>, ConfigError> {
        config.check::<L, T>()?;
        config.validate_shared()?;
        Ok(Arc::new(Self {
            buckets: Buckets::reserve(config.buckets())?,
            stripes: Stripes::new(Stripes::MEMC3),
            config: config.clone(),
            handles: Mutex::default(),
        }))
    }

    /// What it was made from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Slots, without the spare ones behind the last bucket: what was asked for, rounded up.
    pub fn entries(&self) -> u64 {
        self.buckets.entries()
    }

    /// For one thread.
    pub fn handle(self: &Arc<Self>) -> SharedHandle<L, T> {
        let counters = Arc::new(Counters::default());
        let mut handles = self.handles();
        handles.made += 1;
        handles.counters.push(Arc::clone(&counters));
        let seed = self.config.seed.wrapping_add(handles.made);
        drop(handles);
        SharedHandle {
            policy: Policy::new::<L>(self.config.eviction, seed, 0),
            vector: Checked::new(self.config.vector),
            counters,
            table: Arc::clone(self),
        }
    }

    /// What all handles counted, those that are no more included.
    pub fn stats(&self) -> Stats {
        let handles = self.handles();
        let mut sum = handles.retired;
        for counters in &handles.counters {
            sum += counters.read();
        }
        sum
    }

    /// Slots that are taken, counted one by one.
    pub fn count(&self) -> u64 {
        let taken = |slot: &&T| slot.load().tag != Content::EMPTY.tag;
        self.buckets.slots().iter().filter(taken).count() as u64
    }

    fn handles(&self) -> MutexGuard<'_, Handles> {
        match self.handles.lock() {
            Ok(handles) => handles,
            // Counts are complete at every step.
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// The locks over a key's candidates.
    #[inline(always)]
    fn pair(&self, at: Candidates) -> Pair {
        let first = (at.first / L::GUARDED) as u64;
        let second = match L::LAYOUT.buckets() {
            // A lock too many; pairs are two different ones.
            1 => first ^ 1,
            _ if L::LAYOUT.is_consecutive() => first + 1,
            _ => (at.second / L::GUARDED) as u64,
        };
        self.stripes.pair(first, second)
    }

    /// The candidate with this tag, each slot read once.
    fn scan(&self, at: Candidates, tag: u64) -> Option<(usize, u64)> {
        (0..L::CANDIDATES).find_map(|number| {
            let content = self.buckets.load(at, number);
            (content.tag == tag).then_some((number, content.value))
        })
    }

    /// Looks until it is certain whether the tag is there (invariant 4).
    #[cold]
    fn look_closely(&self, at: Candidates, tag: u64) -> Option<(usize, u64)> {
        let pair = self.pair(at);
        for _ in 0..ATTEMPTS {
            let seen = self.stripes.snapshot(pair);
            if let Some(found) = self.scan(at, tag) {
                return Some(found);
            }
            if self.stripes.unchanged(&seen) {
                return None;
            }
        }
        // Too many writers for an optimist.
        let guard = self.stripes.lock(pair);
        let found = self.scan(at, tag);
        guard.release_unmodified();
        found
    }

    /// Moves a key up, if nobody else is writing here.
    fn move_up(&self, hash: u64) {
        let (at, tag) = self.buckets.candidates(hash);
        let Some(guard) = self.stripes.try_lock(self.pair(at)) else {
            return;
        };
        // It may have moved, or left, since it was hit.
        match self.scan(at, tag) {
            Some((number, _)) if !number.is_multiple_of(L::SLOTS) => {
                exchange(&self.buckets, at.slot::<L>(number))
            }
            _ => guard.release_unmodified(),
        }
    }
}

/// One thread's way into a [`SharedTable`].
pub struct SharedHandle<L: Shape, T: Slot> {
    table: Arc<SharedTable<L, T>>,
    policy: Policy,
    vector: Checked,
    counters: Arc<Counters>,
}

impl<L: Shape, T: Slot> SharedHandle<L, T> {
    /// The table.
    pub fn table(&self) -> &Arc<SharedTable<L, T>> {
        &self.table
    }

    /// The value of a key: see [`Table::lookup`](crate::Table::lookup).
    #[inline]
    pub fn lookup(&mut self, hash: u64) -> Option<u64> {
        let value = dispatch(
            self.vector,
            One {
                buckets: &self.table.buckets,
                access: Sharing {
                    table: &self.table,
                    policy: &mut self.policy,
                },
                hash,
            },
        );
        self.counters.looked_up(1, u64::from(value.is_some()));
        value
    }

    /// Looks any number of keys up, with their cache misses overlapped, and returns how many were
    /// found: see [`Table::lookup_many`](crate::Table::lookup_many).
    ///
    /// # Panics
    /// If `values` is shorter than `hashes`, or `hits` than one bit for each.
    pub fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize {
        check_room(hashes.len(), values, hits);
        let found = dispatch(
            self.vector,
            Many {
                buckets: &self.table.buckets,
                access: Sharing {
                    table: &self.table,
                    policy: &mut self.policy,
                },
                hashes,
                values,
                hits,
            },
        );
        self.counters.looked_up(hashes.len() as u64, found as u64);
        found
    }

    /// Asks for the lines that a lookup or insert of this key will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.table.buckets.prefetch(hash);
    }

    /// Inserts or updates a key. Fails only for a value wider than
    /// [`Entry::value_max`](crate::Entry::value_max).
    pub fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide> {
        insert::check::<T>(value)?;
        let table = &*self.table;
        let (at, _) = table.buckets.candidates(hash);
        let guard = table.stripes.lock(table.pair(at));
        let mut dropped = 0;
        let left = |_| dropped += 1;
        let inserted = insert::insert(&table.buckets, &mut self.policy, hash, value, left);
        drop(guard);
        self.counters.add(|stats| {
            stats.count(inserted);
            stats.removed += dropped;
        });
        Ok(inserted)
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, hash: u64) -> Option<u64> {
        let table = &*self.table;
        let (at, _) = table.buckets.candidates(hash);
        let guard = table.stripes.lock(table.pair(at));
        let (mut first, mut removed) = (None, 0);
        insert::remove(&table.buckets, hash, |value| {
            first.get_or_insert(value);
            removed += 1;
        });
        if removed == 0 {
            guard.release_unmodified();
            return None;
        }
        drop(guard);
        self.counters.add(|stats| stats.removed += removed);
        first
    }

    /// Removes all keys with this value, as when a rule dies, and says how many. Reads the whole
    /// table; other threads go on meanwhile, and what they insert behind its back may stay.
    pub fn forget_value(&mut self, value: u64) -> u64 {
        self.forget(|other| other == value)
    }

    /// Removes all keys whose value `forget` chooses, and says how many: see
    /// [`SharedHandle::forget_value`].
    pub fn forget(&mut self, mut forget: impl FnMut(u64) -> bool) -> u64 {
        let table = &*self.table;
        let mut forgotten = 0;
        // Two groups at a time: a pair of locks.
        for (index, slots) in table.buckets.slots().chunks(2 * L::GUARDED).enumerate() {
            let group = 2 * index as u64;
            let guard = table.stripes.lock(table.stripes.pair(group, group + 1));
            match insert::forget(slots, &mut forget) {
                0 => guard.release_unmodified(),
                some => forgotten += some,
            }
        }
        self.counters.add(|stats| stats.forgotten += forgotten);
        forgotten
    }

    /// Removes all keys, and says how many there were.
    pub fn clear(&mut self) -> u64 {
        self.forget(|_| true)
    }
}

impl<L: Shape, T: Slot> Drop for SharedHandle<L, T> {
    fn drop(&mut self) {
        let mut handles = self.table.handles();
        handles.retired += self.counters.read();
        let mine = &self.counters;
        handles.counters.retain(|other| !Arc::ptr_eq(other, mine));
    }
}

/// A table that other threads change.
struct Sharing<'a, L: Shape, T: Slot> {
    table: &'a SharedTable<L, T>,
    policy: &'a mut Policy,
}

impl<L: Shape, T: Slot> Access<L, T> for Sharing<'_, L, T> {
    const LEARNS: bool = true;

    #[inline(always)]
    fn find<M: Matcher>(&self, buckets: &Buckets<L, T>, hash: u64) -> Found {
        let (at, tag) = buckets.candidates(hash);
        let matches = buckets.matches::<M>(at, tag);
        if matches != 0 {
            let number = lowest(matches);
            let Content { tag: now, value } = buckets.load(at, number);
            // Or else it left since it was compared: this word is another key's.
            if now == tag {
                let slot = at.slot::<L>(number);
                return Found {
                    hit: true,
                    value,
                    slot,
                };
            }
        }
        let found = self.table.look_closely(at, tag);
        let (number, value) = found.unwrap_or_default();
        Found {
            hit: found.is_some(),
            value,
            slot: at.slot::<L>(number),
        }
    }

    #[inline(always)]
    fn learn(&mut self, _: &Buckets<L, T>, seen: &Seen<'_>) {
        for index in ones(self.policy.moves_up(seen)) {
            self.table.move_up(seen.hashes[index]);
        }
    }
}

/// What one handle counted: written by its thread, read by whoever asks.
#[derive(Default)]
struct Counters {
    lookups: AtomicU64,
    hits: AtomicU64,
    filled: AtomicU64,
    updated: AtomicU64,
    evicted: AtomicU64,
    removed: AtomicU64,
    forgotten: AtomicU64,
}

impl Counters {
    // Relaxed, here and below: counts order nothing. One thread writes, so no update is lost.

    #[inline(always)]
    fn looked_up(&self, lookups: u64, hits: u64) {
        for (counter, more) in [(&self.lookups, lookups), (&self.hits, hits)] {
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
    }

    fn add(&self, change: impl FnOnce(&mut Stats)) {
        let mut more = Stats::default();
        change(&mut more);
        for (counter, more) in [
            (&self.filled, more.filled),
            (&self.updated, more.updated),
            (&self.evicted, more.evicted),
            (&self.removed, more.removed),
            (&self.forgotten, more.forgotten),
        ] {
            if more != 0 {
                counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
            }
        }
    }

    fn read(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            lookups: read(&self.lookups),
            hits: read(&self.hits),
            filled: read(&self.filled),
            updated: read(&self.updated),
            evicted: read(&self.evicted),
            removed: read(&self.removed),
            forgotten: read(&self.forgotten),
        }
    }
}
