//! The moka crate: a lock-free table, TinyLFU, and records of reads that are worked off in between.

use crate::engine::rivals::{Hasher, KeyForm, Table, ValueForm, room_for};

/// A cache of moka's.
pub struct Moka<K, V>(moka::sync::Cache<K, V, Hasher>);

impl<K: KeyForm, V: ValueForm + Clone> Moka<K, V> {
    /// Room for `items`, of which none is evicted.
    pub fn new(items: usize) -> Self {
        Self::of(items, room_for(items))
    }

    /// A cache that holds so many items at most.
    pub fn holding(room: usize) -> Self {
        Self::of(room, room)
    }

    fn of(expected: usize, room: usize) -> Self {
        let builder = moka::sync::Cache::builder()
            .initial_capacity(expected)
            .max_capacity(room as u64);
        Self(builder.build_with_hasher(Hasher::default()))
    }
}

impl<K: KeyForm, V: ValueForm + Clone> Table for Moka<K, V> {
    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(K::of(key), V::of(value));
    }

    #[inline(always)]
    fn get(&self, key: &[u8], show: impl FnOnce(&[u8])) {
        if let Some(value) = self.0.get(K::sought(key)) {
            show(value.bytes());
        }
    }

    fn finish_pending(&self) {
        self.0.run_pending_tasks();
    }
}
