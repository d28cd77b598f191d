//! The oracle: every operation under one lock, on two ordinary maps.
//!
//! [`transition`] defines what an operation does to its key. This file keeps the items, and does all work that concerns
//! more than one key: memory, flush, visits, counters.
//!
//! ```text
//!  places: key -> place        items: place -> (key, item), oldest place first
//! ```
//!
//! A key keeps its place as long as it has an item, so a place is a cursor for visits and the order
//! of places is the order of eviction: first in, first out.
//!
//! Invariants, recomputed by `audit`:
//! 1. Each key's place holds that key, and each place's key has that place.
//! 2. `item_bytes` is the sum of the items' sizes, and within the limit.
//! 3. No item is over the item limit, and places are below `next_place`.

mod handle;
pub mod transition;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_engine::request::{COMMON_KEY_LEN_MAX, LONG_KEY_LEN_MAX};
use nuthatch_engine::stats::{ClassStats, EngineStats};
use nuthatch_engine::{
    AnyEngine, Audit, AuditError, Engine, Evicted, Evictions, Expiry, Footprint, Inspect,
    KeyHasher, LimitError, Op, Reply, Time,
};

pub use handle::{NaiveHandle, NaiveReservation, NaiveValue};
use transition::{Circumstances, HEADER, Outcome, StoredItem, apply};

/// How a [`Naive`] is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes that all items together may take: header, key and value.
    pub memory_limit: usize,
    /// Bytes to which that may be raised.
    pub memory_limit_max: usize,
    /// Bytes that one item may take.
    pub item_size_max: usize,
    /// False: answer [`Reply::OutOfMemory`] instead of evicting.
    pub evicts: bool,
    /// The function that hashes keys. The oracle itself does not use it.
    pub hasher: KeyHasher,
}

impl Default for Options {
    /// Nothing is ever evicted; items of up to 1 MiB.
    fn default() -> Self {
        Self {
            memory_limit: usize::MAX,
            memory_limit_max: usize::MAX,
            item_size_max: 1 << 20,
            evicts: true,
            hasher: KeyHasher::seeded(0),
        }
    }
}

/// The oracle.
#[derive(Debug)]
pub struct Naive {
    memory_limit_max: usize,
    item_size_max: usize,
    evicts: bool,
    hasher: KeyHasher,
    table: Mutex<Table>,
}

impl Naive {
    /// An empty one.
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            memory_limit_max: options.memory_limit_max,
            item_size_max: options.item_size_max,
            evicts: options.evicts,
            hasher: options.hasher,
            table: Mutex::new(Table {
                memory_limit: options.memory_limit,
                ..Table::default()
            }),
        })
    }

    /// The whole state. A thread that panicked under the lock left it consistent: nothing in here panics between two
    /// changes that belong together.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// Carries out one operation on the table: the linearization point of everything.
    fn transact(&self, now: Time, key: &[u8], op: &Op<'_>) -> Outcome {
        let mut table = self.table();
        table.flush_if_due(now);
        table.bury(now, key);
        table.last_cas += 1;

        let before = table.get(key).cloned();
        let mut after = before.clone();
        let around = Circumstances {
            now,
            next_cas: table.last_cas,
            value_max: self.item_size_max.saturating_sub(HEADER + key.len()),
        };
        let outcome = apply(&mut after, op, around);
        let Some(item) = after else {
            table.remove(key);
            return outcome;
        };

        if !table.make_room(now, key, size(key, &item), self.evicts) {
            table.counters.out_of_memory += 1;
            return Outcome::Done(Reply::OutOfMemory);
        }
        // A number that is changed stays the same item.
        let created = before.is_none_or(|before| before.cas != item.cas)
            && !matches!(outcome, Outcome::Done(Reply::Number(..)));
        table.counters.total_items += u64::from(created);
        table.put(key, item);
        outcome
    }
}

impl Engine for Naive {
    type Handle = NaiveHandle;

    fn any(self: Arc<Self>) -> Arc<AnyEngine> {
        AnyEngine::new(self)
    }

    fn handle(self: &Arc<Self>) -> NaiveHandle {
        NaiveHandle::new(Arc::clone(self))
    }

    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn name(&self) -> &'static str {
        "naive"
    }

    fn stats(&self) -> EngineStats {
        let table = self.table();
        let class = ClassStats {
            class: 1,
            chunk_size: self.item_size_max,
            chunks_per_page: 1,
            pages: table.items.len(),
            items: table.items.len() as u64,
            used_chunks: table.items.len(),
            requested_bytes: table.item_bytes as u64,
            evictions: table.counters.evictions,
            evicted_unfetched: table.counters.evicted_unfetched,
            expired: table.counters.expired,
            expired_unfetched: table.counters.expired_unfetched,
            out_of_memory: table.counters.out_of_memory,
            ..ClassStats::default()
        };
        EngineStats {
            items: table.items.len() as u64,
            item_bytes: table.item_bytes as u64,
            memory_limit: table.memory_limit as u64,
            memory_used: table.item_bytes as u64,
            classes: vec![class],
            ..table.counters.clone()
        }
    }

    fn reset_stats(&self) {
        self.table().counters = EngineStats::default();
    }

    fn number_from(&self, least: u64) {
        let mut table = self.table();
        table.last_cas = table.last_cas.max(least.saturating_sub(1));
    }

    fn next_number(&self) -> u64 {
        self.table().last_cas + 1
    }

    fn flush(&self, now: Time, at: Time) {
        let mut table = self.table();
        // A flush that is due but has met no request yet takes effect before it is replaced.
        table.flush_if_due(now);
        table.flush_at = Some(at);
        if at <= now {
            table.flush_at = None;
            table.remove_if(|_| true);
        }
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        LimitError::check(bytes, self.item_size_max, self.memory_limit_max)?;
        self.table().memory_limit = bytes;
        Ok(())
    }

    fn item_size_max(&self) -> usize {
        self.item_size_max
    }

    fn key_len_max(&self) -> usize {
        (self.item_size_max.saturating_sub(HEADER)).clamp(COMMON_KEY_LEN_MAX, LONG_KEY_LEN_MAX)
    }

    fn evicts(&self) -> bool {
        self.evicts
    }
}

impl Inspect for Naive {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        footprint(key_len, value_len)
    }

    fn report_evictions(&self, to: Arc<dyn Evictions>) {
        self.table().listener.0.get_or_insert(to);
    }
}

impl Audit for Naive {
    fn audit(&self) -> Result<(), AuditError> {
        let table = self.table();
        let mut bytes = 0;
        for (&place, (key, item)) in &table.items {
            if table.places.get(key) != Some(&place) {
                return Err(format!("invariant 1: {key:?} is not at its place {place}").into());
            }
            if size(key, item) > self.item_size_max || place >= table.next_place {
                return Err(format!("invariant 3: {key:?} at place {place}").into());
            }
            bytes += size(key, item);
        }
        if table.places.len() != table.items.len() {
            return Err("invariant 1: a key without an item".into());
        }
        if table.item_bytes != bytes {
            return Err(format!("invariant 2: {bytes} bytes, counted {}", table.item_bytes).into());
        }
        Ok(())
    }
}

/// Bytes that an item takes.
fn size(key: &[u8], item: &StoredItem) -> usize {
    footprint(key.len(), item.value.len()).size
}

/// There are no size classes.
fn footprint(key_len: usize, value_len: usize) -> Footprint {
    Footprint {
        class: 1,
        size: HEADER + key_len + value_len,
    }
}

/// All items and counters.
#[derive(Debug, Default)]
struct Table {
    places: HashMap<Vec<u8>, u64>,
    items: BTreeMap<u64, (Vec<u8>, StoredItem)>,
    next_place: u64,
    /// Where the sweep goes on.
    swept_to: u64,
    last_cas: u64,
    item_bytes: usize,
    memory_limit: usize,
    flush_at: Option<Time>,
    counters: EngineStats,
    listener: Listener,
}

/// Who is told of evictions.
#[derive(Default)]
struct Listener(Option<Arc<dyn Evictions>>);

impl fmt::Debug for Listener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Listener")
    }
}

impl Listener {
    fn tell(&self, now: Time, key: &[u8], item: &StoredItem) {
        let Some(listener) = self.0.as_ref().filter(|listener| listener.are_wanted()) else {
            return;
        };
        listener.evicted(&Evicted {
            key,
            value_len: item.value.len(),
            fetched: item.fetched,
            left: match item.expiry {
                Expiry::Never => None,
                Expiry::At(moment) => Some(moment.since(now)),
            },
            age: now.since(item.accessed),
            class: 1,
        });
    }
}

impl Table {
    fn get(&self, key: &[u8]) -> Option<&StoredItem> {
        let place = self.places.get(key)?;
        self.items.get(place).map(|(_, item)| item)
    }

    fn put(&mut self, key: &[u8], item: StoredItem) {
        let place = match self.places.get(key) {
            Some(&place) => place,
            None => self.next_place,
        };
        if place == self.next_place {
            self.next_place += 1;
            self.places.insert(key.to_vec(), place);
        }
        self.item_bytes += size(key, &item);
        if let Some((_, old)) = self.items.insert(place, (key.to_vec(), item)) {
            self.item_bytes -= size(key, &old);
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<StoredItem> {
        let place = self.places.remove(key)?;
        let (_, item) = self.items.remove(&place)?;
        self.item_bytes -= size(key, &item);
        Some(item)
    }

    fn remove_if(&mut self, doomed: impl Fn(&StoredItem) -> bool) {
        let keys: Vec<_> = self
            .items
            .values()
            .filter(|(_, item)| doomed(item))
            .collect();
        let keys: Vec<Vec<u8>> = keys.into_iter().map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.remove(&key);
        }
    }

    /// Removes the items that a delayed flush has reached.
    fn flush_if_due(&mut self, now: Time) {
        if let Some(at) = self.flush_at
            && at <= now
        {
            self.flush_at = None;
            self.remove_if(|item| item.stored < at);
        }
    }

    /// Removes the key's item if it has expired.
    fn bury(&mut self, now: Time, key: &[u8]) {
        if self.get(key).is_some_and(|item| item.expiry.is_past(now))
            && let Some(item) = self.remove(key)
        {
            self.counters.expired += 1;
            self.counters.expired_unfetched += u64::from(!item.fetched);
        }
    }

    /// Removes all items that have expired, but not that of the key `except`.
    fn bury_all(&mut self, now: Time, except: &[u8]) {
        let dead = self
            .items
            .values()
            .filter(|(key, item)| key != except && item.expiry.is_past(now));
        let dead: Vec<Vec<u8>> = dead.map(|(key, _)| key.clone()).collect();
        for key in dead {
            self.bury(now, &key);
        }
    }

    /// Makes room for an item of `size_after` bytes under `key`, in place of the present one. False if that is
    /// impossible. The key's own item is not evicted. Where nothing may be evicted, expired items make room.
    fn make_room(&mut self, now: Time, key: &[u8], size_after: usize, evicts: bool) -> bool {
        let size_before = self.get(key).map_or(0, |item| size(key, item));
        let fits = |table: &Self| table.item_bytes - size_before + size_after <= table.memory_limit;
        if size_after <= size_before || fits(self) {
            return true;
        }
        if !evicts {
            self.bury_all(now, key);
            return fits(self);
        }
        if size_after > self.memory_limit {
            return false;
        }
        while !fits(self) {
            let oldest = self.items.values().find(|(other, _)| other != key);
            let Some((victim, _)) = oldest.cloned() else {
                return false;
            };
            self.evict(now, &victim);
        }
        true
    }

    fn evict(&mut self, now: Time, key: &[u8]) {
        self.bury(now, key);
        if let Some(item) = self.remove(key) {
            self.counters.evictions += 1;
            self.counters.evicted_unfetched += u64::from(!item.fetched);
            self.listener.tell(now, key, &item);
        }
    }

    /// Looks at up to `budget` items and removes the expired ones. True if it has not come to the
    /// last; then it starts over.
    fn sweep(&mut self, now: Time, budget: usize) -> bool {
        let ahead = self.items.range(self.swept_to..).take(budget);
        let mut looked_at = 0;
        let mut dead = Vec::new();
        for (&place, (key, item)) in ahead {
            looked_at += 1;
            self.swept_to = place + 1;
            if item.expiry.is_past(now) {
                dead.push(key.clone());
            }
        }
        self.counters.swept += looked_at as u64;
        for key in dead {
            self.bury(now, &key);
        }
        if looked_at < budget {
            self.swept_to = 0;
        }
        looked_at == budget
    }

    /// Evicts up to `budget` items while there are more than a lowered limit allows. True if there
    /// is more to do.
    fn shrink(&mut self, now: Time, budget: usize) -> bool {
        for _ in 0..budget {
            if self.item_bytes <= self.memory_limit {
                return false;
            }
            if let Some((_, (oldest, _))) = self.items.first_key_value() {
                let oldest = oldest.clone();
                self.evict(now, &oldest);
            }
        }
        self.item_bytes > self.memory_limit
    }
}
