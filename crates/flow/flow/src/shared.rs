//! The table that threads share: readers without locks, and writers with locks on groups of slots.
//!
//! A hit takes no lock and, unless an entry moves up, writes nothing: an entry is one word, so a reader that sees a
//! key's tag sees its value. A miss must be validated: while two entries are swapped, one of them is in both slots for
//! a moment, and the other in neither. So each group of slots has a version ([`Stripes`]), which is also its lock, and
//! a miss is one only if the versions were even and the same before and after the slots were read. A miss costs its
//! caller hundreds of cycles anyway; a hit reads no version.
//!
//! A hit that is to move its entry up does so only if the lock is free: PBLRU moves at random anyway.
//!
//! Invariants (on top of those of [`stripes`](nuthatch_base::sync::stripes) and of the crate):
//! 1. A slot is written only by a thread that holds the lock of its group; a thread that inserts or removes a key holds
//!    the locks of all its candidates.
//! 2. While a group's version is even, each of its keys is in exactly one slot.
//! 3. A word that a lookup returns was in its slot at some moment during the lookup, and had the
//!    key's value at that moment: no slot keeps an old value of a key.
//! 4. A lookup misses a key only if at some moment during it the key was not in the table.
//! 5. Lookups of a key by one thread never go back in time: stores are Release and loads Acquire, so a
//!    thread that saw a later word no longer sees an earlier one in another slot.
//!
//! Linearization points. A hit: the load of the word. A miss: the successful version check. An
//! insert or a removal: the store of the key's word, under its locks.

use std::sync::Arc;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::stripes::{Pair, Stripes};

use crate::buckets::{Buckets, lowest};
use crate::config::{Config, ConfigError};
use crate::entry::{Content, Slot};
use crate::insert::{self, Inserted, ValueTooWide};
use crate::layout::{Candidates, Shape};
use crate::lookup::{Access, Found, LookupMany, LookupOne, Lookups, check_room};
use crate::matching::{Checked, Matcher, dispatch};
use crate::policy::{Policy, ones, swap_with_previous};
use crate::stats::{Counters, Stats};

/// Attempts to validate a miss by versions, before a lookup takes the lock.
const ATTEMPTS: usize = 16;

/// A flow cache that threads share, whose layout and entry are types. Each thread works through a
/// [`SharedHandle`] of its own.
pub struct SharedTable<L: Shape, T: Slot> {
    buckets: Buckets<L, T>,
    stripes: Stripes,
    config: Config,
    handles: Mutex<Handles>,
}

/// The handles of a table, for their counters.
#[derive(Default)]
struct Handles {
    /// How many were created: each has another seed.
    made: u64,
    counters: Vec<Arc<Counters>>,
    /// The counts of handles that were dropped.
    retired: Stats,
}

impl<L: Shape, T: Slot> SharedTable<L, T> {
    /// An empty table. The configuration's layout and entry must be those of the types, and its
    /// eviction and entry must be sharable: see [`Config::validate_shared`].
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

    /// The table's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The number of slots: the configured entries, rounded up. The spare buckets do not count.
    pub fn entries(&self) -> u64 {
        self.buckets.entries()
    }

    /// A handle for one thread.
    pub fn handle(self: &Arc<Self>) -> SharedHandle<L, T> {
        let counters = Arc::new(Counters::default());
        let mut handles = self.handles.lock();
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

    /// Counts of all handles, including those that were dropped. Any thread may call this at any time;
    /// each counter is read by itself.
    pub fn stats(&self) -> Stats {
        let handles = self.handles.lock();
        let mut sum = handles.retired;
        for counters in &handles.counters {
            sum += counters.read();
        }
        sum
    }

    /// The number of slots in use, counted one by one.
    pub fn count(&self) -> u64 {
        let taken = |slot: &&T| slot.load().tag != Content::EMPTY.tag;
        self.buckets.slots().iter().filter(taken).count() as u64
    }

    /// The locks over a key's candidates.
    #[inline(always)]
    fn pair(&self, at: Candidates) -> Pair {
        let first = (at.first / L::GUARDED) as u64;
        let second = match L::LAYOUT.buckets() {
            // A pair needs two different stripes; the second one is not used.
            1 => first ^ 1,
            _ if L::LAYOUT.is_consecutive() => first + 1,
            _ => (at.second / L::GUARDED) as u64,
        };
        self.stripes.pair(first, second)
    }

    /// The candidate with this tag; reads each slot once.
    fn scan(&self, at: Candidates, tag: u64) -> Option<(usize, u64)> {
        (0..L::CANDIDATES).find_map(|number| {
            let content = self.buckets.load(at, number);
            (content.tag == tag).then_some((number, content.value))
        })
    }

    /// Finds the tag, or validates that it is absent (invariant 4).
    #[cold]
    fn find_validated(&self, at: Candidates, tag: u64) -> Option<(usize, u64)> {
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
        // Writers interfered with all attempts.
        let guard = self.stripes.lock(pair);
        let found = self.scan(at, tag);
        guard.release_unmodified();
        found
    }

    /// Moves a key up, if no other thread is writing here; returns whether it did.
    fn move_up(&self, hash: u64) -> bool {
        let (at, tag) = self.buckets.candidates(hash);
        let Some(guard) = self.stripes.try_lock(self.pair(at)) else {
            return false;
        };
        // It may have been moved or removed since the hit.
        match self.scan(at, tag) {
            Some((number, _)) if !number.is_multiple_of(L::SLOTS) => {
                swap_with_previous(&self.buckets, at.slot::<L>(number));
                true
            }
            _ => {
                guard.release_unmodified();
                false
            }
        }
    }
}

/// One thread's handle of a [`SharedTable`].
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

    /// This handle's hits that moved their key up: see [`Table::moves`](crate::Table::moves).
    pub fn moves(&self) -> u64 {
        self.policy.moves()
    }

    /// The value of a key: see [`Table::lookup`](crate::Table::lookup).
    #[inline]
    pub fn lookup(&mut self, hash: u64) -> Option<u64> {
        let value = dispatch(
            self.vector,
            LookupOne {
                buckets: &self.table.buckets,
                access: SharedAccess {
                    table: &self.table,
                    policy: &mut self.policy,
                },
                hash,
            },
        );
        self.counters.add_lookups(1, u64::from(value.is_some()));
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
            LookupMany {
                buckets: &self.table.buckets,
                access: SharedAccess {
                    table: &self.table,
                    policy: &mut self.policy,
                },
                hashes,
                values,
                hits,
            },
        );
        self.counters.add_lookups(hashes.len() as u64, found as u64);
        found
    }

    /// Prefetches the cache lines that a lookup or an insert of this key will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.table.buckets.prefetch(hash);
    }

    /// The same for many keys: see [`Table::prefetch_many`](crate::Table::prefetch_many).
    #[inline]
    pub fn prefetch_many(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.table.buckets.prefetch(hash);
        }
    }

    /// Inserts or updates a key. Fails only for a value wider than
    /// [`Entry::value_max`](crate::Entry::value_max).
    pub fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide> {
        insert::check::<T>(value)?;
        let table = &*self.table;
        let (at, _) = table.buckets.candidates(hash);
        let guard = table.stripes.lock(table.pair(at));
        let mut dropped = 0;
        let count = |_| dropped += 1;
        let inserted = insert::insert(&table.buckets, &mut self.policy, hash, value, count);
        drop(guard);
        self.counters.add_insert(inserted);
        if dropped != 0 {
            self.counters.add_removed(dropped);
        }
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
        self.counters.add_removed(removed);
        first
    }

    /// Removes all keys with this value, as when a rule is deleted; returns how many. Reads the whole
    /// table; other threads go on meanwhile, and what they insert into parts already read stays.
    pub fn forget_value(&mut self, value: u64) -> u64 {
        self.forget(|other| other == value)
    }

    /// Removes all keys for whose value `forget` returns true; returns how many. See
    /// [`SharedHandle::forget_value`].
    pub fn forget(&mut self, mut forget: impl FnMut(u64) -> bool) -> u64 {
        let table = &*self.table;
        let mut forgotten = 0;
        // Two groups at a time: locks come in pairs.
        for (index, slots) in table.buckets.slots().chunks(2 * L::GUARDED).enumerate() {
            let group = 2 * index as u64;
            let guard = table.stripes.lock(table.stripes.pair(group, group + 1));
            match insert::forget(slots, &mut forget) {
                0 => guard.release_unmodified(),
                some => forgotten += some,
            }
        }
        self.counters.add_forgotten(forgotten);
        forgotten
    }

    /// Removes all keys; returns how many.
    pub fn clear(&mut self) -> u64 {
        self.forget(|_| true)
    }
}

impl<L: Shape, T: Slot> Drop for SharedHandle<L, T> {
    fn drop(&mut self) {
        let mut handles = self.table.handles.lock();
        handles.retired += self.counters.read();
        let mine = &self.counters;
        handles.counters.retain(|other| !Arc::ptr_eq(other, mine));
    }
}

/// Access to a table that other threads change.
struct SharedAccess<'a, L: Shape, T: Slot> {
    table: &'a SharedTable<L, T>,
    policy: &'a mut Policy,
}

impl<L: Shape, T: Slot> Access<L, T> for SharedAccess<'_, L, T> {
    const USES_HITS: bool = true;

    #[inline(always)]
    fn find<M: Matcher>(&self, buckets: &Buckets<L, T>, hash: u64) -> Found {
        let (at, tag) = buckets.candidates(hash);
        let matches = buckets.matches::<M>(at, tag);
        if matches != 0 {
            let number = lowest(matches);
            let Content { tag: now, value } = buckets.load(at, number);
            // If the tags differ, the entry was replaced since the comparison: this word is another key's.
            if now == tag {
                let slot = at.slot::<L>(number);
                return Found {
                    hit: true,
                    value,
                    slot,
                };
            }
        }
        let found = self.table.find_validated(at, tag);
        let (number, value) = found.unwrap_or_default();
        Found {
            hit: found.is_some(),
            value,
            slot: at.slot::<L>(number),
        }
    }

    #[inline(always)]
    fn on_hits(&mut self, _: &Buckets<L, T>, lookups: &Lookups<'_>) {
        for index in ones(self.policy.draw_moves(lookups)) {
            if self.table.move_up(lookups.hashes[index]) {
                self.policy.count_moves(1);
            }
        }
    }
}
