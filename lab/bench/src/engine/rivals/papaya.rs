//! The papaya crate: a lock-free hash map. It evicts nothing and has no limit.
//!
//! It reads under a guard, and values that were removed while a guard is held cannot be freed. A program holds a guard
//! for as long as it has requests at hand, so it is taken once a batch here. It is also measured with one guard for a
//! thousand operations whatever the batch, because releasing a guard is a full barrier, which slows a single get.

use std::iter;
use std::sync::Arc;

use crate::engine::operations::{Operation, Operations};
use crate::engine::rivals::{Hasher, KeyForm, ValueForm};
use crate::engine::subject::{Subject, Tally, Worker};

/// A map of papaya's.
pub struct Papaya<K, V> {
    map: Arc<Map<K, V>>,
    /// Operations under one guard; [`HELD`]: all that the worker is given at a time.
    guarded: usize,
}

type Map<K, V> = papaya::HashMap<K, V, Hasher>;

/// See [`Papaya::guarded`].
const HELD: usize = usize::MAX;

impl<K: KeyForm, V: ValueForm> Papaya<K, V> {
    /// Room for `items`; `batch` operations under one guard.
    pub fn new(items: usize, batch: usize) -> Self {
        let map = Map::with_capacity_and_hasher(items, Hasher::default());
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

impl<K: KeyForm, V: ValueForm> Subject for Papaya<K, V> {
    type Worker<'a> = PapayaWorker<'a, K, V>;

    fn worker(&self) -> PapayaWorker<'_, K, V> {
        PapayaWorker(self)
    }
}

/// A thread's access to a [`Papaya`].
pub struct PapayaWorker<'a, K, V>(&'a Papaya<K, V>);

impl<K: KeyForm, V: ValueForm> PapayaWorker<'_, K, V> {
    /// Operations under one guard.
    #[inline(always)]
    fn guarded<'l>(&self, operations: impl Iterator<Item = Operation<'l>>, tally: &mut Tally) {
        let map = self.0.map.pin();
        for one in operations {
            tally.operations += 1;
            match one.set {
                Some(value) => {
                    map.insert(K::of(one.key), V::of(value));
                }
                None => {
                    tally.gets += 1;
                    if let Some(value) = map.get(K::sought(one.key)) {
                        tally.hit(value.bytes(), one.key, one.value_size);
                    }
                }
            }
        }
    }
}

impl<K: KeyForm, V: ValueForm> Worker for PapayaWorker<'_, K, V> {
    fn requests(&mut self, list: &Operations, from: usize, to: usize) -> Tally {
        let mut tally = Tally::default();
        if self.0.guarded == 1 {
            // A loop of its own, so that nothing but the operations themselves is measured.
            for one in list.range(from, to) {
                self.guarded(iter::once(one), &mut tally);
            }
            return tally;
        }
        let mut operations = list.range(from, to);
        while operations.len() > 0 {
            let batch = operations.by_ref().take(self.0.guarded);
            self.guarded(batch, &mut tally);
        }
        tally
    }
}
