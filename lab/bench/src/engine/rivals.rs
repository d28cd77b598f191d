//! Two tables from crates.io under the same measurement, with a fast hash function, and keys and values in two
//! forms: as arrays of a size that the compiler knows, which suits them best, and as boxed byte strings, which
//! is what a cache for keys of any size is made of.
//!
//! papaya reads under a guard, and what was removed while one is held cannot be freed. A program takes it for as
//! long as it has requests at hand, so it is taken once a batch here; and beside that once for a thousand
//! operations whatever the batch, because giving a guard back is a full barrier, which a get alone feels.

use std::borrow::Borrow;
use std::hash::Hash;
use std::iter;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::engine::operations::{Operation, Operations};
use crate::engine::subject::{Subject, Tally, Worker};
use crate::proof::{consume, vouches};

/// Bytes of a key or a value as a table stores them.
pub trait Bytes: Clone + Eq + Hash + Send + Sync + Borrow<Self::Sought> + 'static {
    /// What is looked up with, without a copy.
    type Sought: Hash + Eq + ?Sized;
    /// From a slice of the expected size.
    fn of(bytes: &[u8]) -> Self;
    /// To look up with, from a slice of the expected size.
    fn sought(bytes: &[u8]) -> &Self::Sought;
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

impl<const N: usize> Bytes for [u8; N] {
    type Sought = Self;

    #[inline(always)]
    fn of(bytes: &[u8]) -> Self {
        *Self::sought(bytes)
    }

    #[inline(always)]
    fn sought(bytes: &[u8]) -> &Self {
        bytes.first_chunk().expect("the size was looked at before")
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Bytes for Box<[u8]> {
    type Sought = [u8];

    fn of(bytes: &[u8]) -> Self {
        bytes.into()
    }

    #[inline(always)]
    fn sought(bytes: &[u8]) -> &[u8] {
        bytes
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Copies a value out, as a cache that may reuse its memory must, and judges the copy.
#[inline(always)]
pub(super) fn take(value: &[u8], key: &[u8], out: &mut [u8], tally: &mut Tally) {
    tally.hits += 1;
    if value.len() == out.len() {
        out.copy_from_slice(value);
        tally.consumed ^= consume(out);
        tally.wrong += u64::from(!vouches(out, key));
    } else {
        tally.wrong += 1;
    }
}

/// The quick_cache crate: sharded, S3-FIFO.
pub struct QuickCache<K, V>(quick_cache::sync::Cache<K, V, Unit, RandomState>);

/// Every item weighs one.
type Unit = quick_cache::UnitWeighter;

impl<K: Bytes, V: Bytes> QuickCache<K, V> {
    /// Room for `items`, and a quarter more: its shards do not fill evenly.
    pub fn new(items: usize) -> Self {
        let room = items + items / 4;
        Self(quick_cache::sync::Cache::with(
            room,
            room as u64,
            Unit::default(),
            RandomState::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        ))
    }
}

/// A thread's access to a [`QuickCache`].
pub struct QuickCacheWorker<'a, K, V> {
    cache: &'a QuickCache<K, V>,
    out: Vec<u8>,
}

impl<K: Bytes, V: Bytes> Subject for QuickCache<K, V> {
    type Worker<'a> = QuickCacheWorker<'a, K, V>;

    fn worker(&self) -> QuickCacheWorker<'_, K, V> {
        QuickCacheWorker {
            cache: self,
            out: Vec::new(),
        }
    }
}

impl<K: Bytes, V: Bytes> Worker for QuickCacheWorker<'_, K, V> {
    fn run(&mut self, list: &Operations, from: usize, to: usize) -> Tally {
        self.out.resize(list.value_size(), 0);
        let mut tally = Tally::default();
        for one in list.range(from, to) {
            tally.operations += 1;
            match one.set {
                Some(value) => self.cache.0.insert(K::of(one.key), V::of(value)),
                None => {
                    tally.gets += 1;
                    if let Some(value) = self.cache.0.get(K::sought(one.key)) {
                        take(value.bytes(), one.key, &mut self.out, &mut tally);
                    }
                }
            }
        }
        tally
    }
}

/// The papaya crate: a lock-free hash map. It evicts nothing and knows no limit.
pub struct Papaya<K, V> {
    map: Arc<Map<K, V>>,
    /// Operations under one guard; [`HELD`]: all that the worker is given at a time.
    guarded: usize,
}

type Map<K, V> = papaya::HashMap<K, V, RandomState>;

/// See [`Papaya::guarded`].
const HELD: usize = usize::MAX;

impl<K: Bytes, V: Bytes> Papaya<K, V> {
    /// Room for `items`; `batch` operations under one guard.
    pub fn new(items: usize, batch: usize) -> Self {
        let map = Map::with_capacity_and_hasher(items, RandomState::default());
        Self {
            map: Arc::new(map),
            guarded: batch,
        }
    }

    /// The same map, with a guard held over all operations between two looks at the clock.
    pub fn held(&self) -> Self {
        Self {
            map: Arc::clone(&self.map),
            guarded: HELD,
        }
    }
}

/// A thread's access to a [`Papaya`].
pub struct PapayaWorker<'a, K, V> {
    papaya: &'a Papaya<K, V>,
    out: Vec<u8>,
}

impl<K: Bytes, V: Bytes> Subject for Papaya<K, V> {
    type Worker<'a> = PapayaWorker<'a, K, V>;

    fn worker(&self) -> PapayaWorker<'_, K, V> {
        PapayaWorker {
            papaya: self,
            out: Vec::new(),
        }
    }
}

impl<K: Bytes, V: Bytes> PapayaWorker<'_, K, V> {
    /// Operations under one guard.
    #[inline(always)]
    fn guarded<'l>(&mut self, operations: impl Iterator<Item = Operation<'l>>, tally: &mut Tally) {
        let map = self.papaya.map.pin();
        for one in operations {
            tally.operations += 1;
            match one.set {
                Some(value) => {
                    map.insert(K::of(one.key), V::of(value));
                }
                None => {
                    tally.gets += 1;
                    if let Some(value) = map.get(K::sought(one.key)) {
                        take(value.bytes(), one.key, &mut self.out, tally);
                    }
                }
            }
        }
    }
}

impl<K: Bytes, V: Bytes> Worker for PapayaWorker<'_, K, V> {
    fn run(&mut self, list: &Operations, from: usize, to: usize) -> Tally {
        self.out.resize(list.value_size(), 0);
        let mut tally = Tally::default();
        if self.papaya.guarded == 1 {
            // A loop of its own: nothing is counted but what there is to do.
            for one in list.range(from, to) {
                self.guarded(iter::once(one), &mut tally);
            }
            return tally;
        }
        let mut operations = list.range(from, to);
        while operations.len() > 0 {
            self.guarded(operations.by_ref().take(self.papaya.guarded), &mut tally);
        }
        tally
    }
}
