//! An exact-match table of five-tuples: a flow cache whose values are numbers of records.
//!
//! An entry of the cache is 32 bits of tag and 32 bits of record number. A record is one cache line
//! with the whole five-tuple, so a hit costs one more line than in the cache, and never returns the
//! value of another flow.
//!
//! ```text
//! bucket   [ tag | record ] [ tag | record ] ...            8 bytes an entry
//!                     |
//! record   [ packed five-tuple, 40 | value, 8 | state, 4 | next free, 4 | .. ]   one line
//! ```
//!
//! Invariants:
//! 1. Each entry of the cache refers to one record in use, and each record in use has one entry.
//! 2. There is one more record than slots, so an insert always finds a free one.
//! 3. A flow has one record at most: an insert removes all other candidates with its tag.

use std::fmt;
use std::sync::Arc;

use nuthatch_base::hash::KeyHasher;

use crate::cache::FlowCache;
use crate::config::{Config, ConfigError, ENTRIES_MAX};
use crate::entry::Entry;
use crate::five_tuple::{FiveTuple, PACKED};
use crate::insert::Inserted;
use crate::lookup::check_room;
use crate::memory::{Mapped, Zeroed};
use crate::prefetch;
use crate::stats::{Counters, Stats, StatsReader};

/// Flows that are hashed, looked up and verified together: a word of hit bits.
const GROUP: usize = 64;

/// A number that no record has.
const NONE: u32 = u32::MAX;

/// An exact-match table of flows, for one thread. An insert never fails: if all candidates are taken,
/// one is evicted.
///
/// ```
/// use nuthatch_flow::{Config, Eviction, FiveTuple, FlowTable, KeyHasher};
///
/// let config = Config::new(1 << 16).eviction(Eviction::PBLRU);
/// let mut table = FlowTable::new(&config, KeyHasher::random())?;
/// let flow = FiveTuple {
///     source: "10.0.0.1".parse()?,
///     destination: "2001:db8::1".parse()?,
///     source_port: 443,
///     destination_port: 50_000,
///     protocol: 6,
/// };
/// table.insert(&flow, 7);
/// assert_eq!(table.lookup(&flow), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FlowTable {
    cache: FlowCache,
    hasher: KeyHasher,
    records: Records,
    /// Counts of flows. The cache's own counters count entries, and several flows may share an entry's tag.
    counters: Arc<Counters>,
}

impl fmt::Debug for FlowTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("FlowTable");
        shown
            .field("config", self.config())
            .field("stats", &self.stats());
        shown.finish_non_exhaustive()
    }
}

/// What an insert into a [`FlowTable`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowInserted {
    /// An empty slot was taken.
    Filled,
    /// The flow was in the table, with this value.
    Updated {
        /// The value until now.
        old: u64,
    },
    /// Another flow was evicted.
    Evicted {
        /// The flow.
        flow: FiveTuple,
        /// Its value.
        value: u64,
    },
}

impl FlowTable {
    /// An empty table. The configuration's entry is not used: entries are record numbers.
    pub fn new(config: &Config, hasher: KeyHasher) -> Result<Self, ConfigError> {
        let config = config.clone().entry(Entry::Tag32);
        let spare = config.layout.spare_buckets() * config.layout.slots();
        let records = config.rounded_entries() + spare as u64 + 1;
        // Record numbers are values of 32 bits, and not NONE.
        if config.entries > ENTRIES_MAX || records > u64::from(NONE) {
            return Err(ConfigError::TooManyEntries(config.entries));
        }
        Ok(Self {
            cache: config.build()?,
            hasher,
            records: Records::reserve(records as usize)?,
            counters: Arc::default(),
        })
    }

    /// The configuration of its cache.
    pub fn config(&self) -> &Config {
        self.cache.config()
    }

    /// The number of slots: the configured entries, rounded up. The spare buckets do not count.
    pub fn entries(&self) -> u64 {
        self.cache.entries()
    }

    /// Counts since the table was created; only verified hits are hits.
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// Reads these counts from any thread while this one uses the table.
    pub fn stats_reader(&self) -> StatsReader {
        StatsReader::new(&self.counters)
    }

    /// The value of a flow.
    pub fn lookup(&mut self, flow: &FiveTuple) -> Option<u64> {
        let packed = flow.pack();
        self.lookup_packed(self.hasher.hash(&packed), &packed)
    }

    fn lookup_packed(&mut self, hash: u64, packed: &[u8; PACKED]) -> Option<u64> {
        let record = self.cache.lookup(hash);
        let value = record.and_then(|record| self.records.verify(record, packed));
        self.counters.add_lookups(1, u64::from(value.is_some()));
        value
    }

    /// Looks any number of flows up, with their cache misses overlapped, and returns how many were
    /// found. Afterwards `values[i]` is the value of `flows[i]`, or 0, and bit `i % 64` of
    /// `hits[i / 64]` says whether it was found.
    ///
    /// # Panics
    /// If `values` is shorter than `flows`, or `hits` than one bit for each.
    pub fn lookup_many(
        &mut self,
        flows: &[FiveTuple],
        values: &mut [u64],
        hits: &mut [u64],
    ) -> usize {
        check_room(flows.len(), values, hits);
        let groups = flows.chunks(GROUP).zip(values.chunks_mut(GROUP));
        let mut packed = [[0; PACKED]; GROUP];
        let mut found = 0;
        for ((flows, values), hits) in groups.zip(hits) {
            for (flow, packed) in flows.iter().zip(&mut packed) {
                *packed = flow.pack();
            }
            *hits = self.lookup_group(&packed[..flows.len()], values);
            found += hits.count_ones() as usize;
        }
        found
    }

    /// The same for flows that are packed already, by [`FiveTuple::pack`] or in the same way.
    ///
    /// # Panics
    /// If `values` is shorter than `flows`, or `hits` than one bit for each.
    pub fn lookup_many_packed(
        &mut self,
        flows: &[[u8; PACKED]],
        values: &mut [u64],
        hits: &mut [u64],
    ) -> usize {
        check_room(flows.len(), values, hits);
        let groups = flows.chunks(GROUP).zip(values.chunks_mut(GROUP));
        let mut found = 0;
        for ((flows, values), hits) in groups.zip(hits) {
            *hits = self.lookup_group(flows, values);
            found += hits.count_ones() as usize;
        }
        found
    }

    /// Up to [`GROUP`] flows: hashes all of them, then compares tags and prefetches the records of those
    /// that matched, then verifies.
    fn lookup_group(&mut self, packed: &[[u8; PACKED]], values: &mut [u64]) -> u64 {
        let mut hashes = [0; GROUP];
        for (packed, hash) in packed.iter().zip(&mut hashes) {
            *hash = self.hasher.hash(packed);
        }
        let mut matched = [0];
        let hashes = &hashes[..packed.len()];
        self.cache.lookup_many(hashes, values, &mut matched);
        let matched = matched[0];
        for (index, &record) in values[..packed.len()].iter().enumerate() {
            if matched >> index & 1 == 1 {
                self.records.prefetch(record);
            }
        }
        let mut verified = 0;
        for (index, value) in values[..packed.len()].iter_mut().enumerate() {
            if matched >> index & 1 == 0 {
                continue;
            }
            let own = self.records.verify(*value, &packed[index]);
            verified |= u64::from(own.is_some()) << index;
            *value = own.unwrap_or(0);
        }
        let lookups = packed.len() as u64;
        self.counters
            .add_lookups(lookups, u64::from(verified.count_ones()));
        verified
    }

    /// The value of a flow; unlike a lookup this is not counted and changes nothing.
    pub fn peek(&self, flow: &FiveTuple) -> Option<u64> {
        let packed = flow.pack();
        let record = self.cache.peek(self.hasher.hash(&packed))?;
        self.records.verify(record, &packed)
    }

    /// Inserts or updates a flow.
    pub fn insert(&mut self, flow: &FiveTuple, value: u64) -> FlowInserted {
        let packed = flow.pack();
        self.insert_packed(self.hasher.hash(&packed), packed, value)
    }

    fn insert_packed(&mut self, hash: u64, packed: [u8; PACKED], value: u64) -> FlowInserted {
        let inserted = self.insert_uncounted(hash, packed, value);
        self.counters.add_insert(match inserted {
            FlowInserted::Filled => Inserted::Filled,
            FlowInserted::Updated { old } => Inserted::Updated { old },
            FlowInserted::Evicted { value, .. } => Inserted::Evicted { value },
        });
        inserted
    }

    fn insert_uncounted(&mut self, hash: u64, packed: [u8; PACKED], value: u64) -> FlowInserted {
        let known = self.cache.peek(hash);
        if let Some(record) = known
            && let Some(old) = self.records.replace(record, &packed, value)
        {
            self.store(hash, record);
            return FlowInserted::Updated { old };
        }
        let record = self.records.allocate(packed, value);
        let displaced = match self.store(hash, u64::from(record)) {
            Inserted::Filled => return FlowInserted::Filled,
            // Updated: another flow had the same tag; this one has its entry now.
            Inserted::Evicted { value: record } | Inserted::Updated { old: record } => record,
        };
        let (packed, value) = self.records.free(displaced);
        FlowInserted::Evicted {
            flow: FiveTuple::unpack(&packed),
            value,
        }
    }

    fn store(&mut self, hash: u64, record: u64) -> Inserted {
        let (records, counters) = (&mut self.records, &self.counters);
        let dropped = |other| {
            records.free(other);
            counters.add_removed(1);
        };
        match self.cache.insert_dropping(hash, record, dropped) {
            Ok(inserted) => inserted,
            Err(error) => unreachable!("record numbers fit entries: {error}"),
        }
    }

    /// Removes a flow and returns its value. Flows with the same tag in its candidates, which are very
    /// rare, are removed too.
    pub fn remove(&mut self, flow: &FiveTuple) -> Option<u64> {
        let packed = flow.pack();
        let hash = self.hasher.hash(&packed);
        self.remove_packed(hash, &packed)
    }

    fn remove_packed(&mut self, hash: u64, packed: &[u8; PACKED]) -> Option<u64> {
        let mut removed = None;
        let (records, counters) = (&mut self.records, &self.counters);
        self.cache.remove_each(hash, |record| {
            let (other, value) = records.free(record);
            counters.add_removed(1);
            if other == *packed {
                removed = Some(value);
            }
        });
        removed
    }

    /// Removes all flows with this value, as when a rule is deleted; returns how many. Reads the whole
    /// table.
    pub fn forget_value(&mut self, value: u64) -> u64 {
        self.forget(|_, other| other == value)
    }

    /// Removes all flows for which `forget` returns true; returns how many. Reads the whole table.
    pub fn forget(&mut self, mut forget: impl FnMut(&FiveTuple, u64) -> bool) -> u64 {
        let records = &mut self.records;
        let forgotten = self.cache.forget(|number| {
            let remove = match records.get(number) {
                Some(record) => forget(&FiveTuple::unpack(&record.packed), record.value),
                None => false,
            };
            if remove {
                records.free(number);
            }
            remove
        });
        self.counters.add_forgotten(forgotten);
        forgotten
    }

    /// Removes all flows; returns how many.
    pub fn clear(&mut self) -> u64 {
        self.forget(|_, _| true)
    }

    /// All flows and their values, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (FiveTuple, u64)> {
        let used = self.records.all[..self.records.touched].iter();
        used.filter(|record| record.state == State::USED)
            .map(|record| (FiveTuple::unpack(&record.packed), record.value))
    }
}

/// Whether a record is in use; zeroed memory is a free record.
struct State;

impl State {
    const FREE: u32 = 0;
    const USED: u32 = 1;
}

/// One flow: one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Record {
    packed: [u8; PACKED],
    value: u64,
    state: u32,
    next_free: u32,
}

const _: () = assert!(size_of::<Record>() == 64);

impl Default for Record {
    fn default() -> Self {
        Self {
            packed: [0; PACKED],
            value: 0,
            state: State::FREE,
            next_free: 0,
        }
    }
}

// SAFETY: plain integers, all 0 by default; nothing to drop.
unsafe impl Zeroed for Record {}

/// All records, in use and free.
struct Records {
    all: Mapped<Record>,
    /// Records from this one on were never used.
    touched: usize,
    /// The first of the list of records that were used and freed, or [`NONE`].
    first_free: u32,
}

impl Records {
    fn reserve(len: usize) -> std::io::Result<Self> {
        Ok(Self {
            all: Mapped::reserve(len)?,
            touched: 0,
            first_free: NONE,
        })
    }

    #[inline(always)]
    fn prefetch(&self, number: u64) {
        prefetch::read(self.all.as_ptr().wrapping_add(number as usize));
    }

    #[inline(always)]
    fn get(&self, number: u64) -> Option<&Record> {
        self.all.get(number as usize)
    }

    /// The record's value, if it is this flow's.
    #[inline(always)]
    fn verify(&self, number: u64, packed: &[u8; PACKED]) -> Option<u64> {
        let record = self.get(number)?;
        (record.packed == *packed).then_some(record.value)
    }

    /// Replaces the record's value and returns the old one, if it is this flow's.
    fn replace(&mut self, number: u64, packed: &[u8; PACKED], value: u64) -> Option<u64> {
        let record = self.all.get_mut(number as usize)?;
        (record.packed == *packed).then(|| std::mem::replace(&mut record.value, value))
    }

    /// Allocates a record for a flow. There is a free one (invariant 2).
    fn allocate(&mut self, packed: [u8; PACKED], value: u64) -> u32 {
        let number = if self.first_free == NONE {
            self.touched += 1;
            self.touched as u32 - 1
        } else {
            let number = self.first_free;
            self.first_free = self.all[number as usize].next_free;
            number
        };
        self.all[number as usize] = Record {
            packed,
            value,
            state: State::USED,
            next_free: 0,
        };
        number
    }

    /// Frees a record in use and returns its contents.
    fn free(&mut self, number: u64) -> ([u8; PACKED], u64) {
        let record = &mut self.all[number as usize];
        debug_assert_eq!(record.state, State::USED);
        let contents = (record.packed, record.value);
        record.state = State::FREE;
        record.next_free = self.first_free;
        self.first_free = number as u32;
        contents
    }
}
