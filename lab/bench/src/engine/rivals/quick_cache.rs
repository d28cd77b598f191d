//! The quick_cache crate: shards behind reader-writer locks, S3-FIFO.

use crate::engine::rivals::{Hasher, KeyForm, Table, ValueForm, room_for};

/// Every item weighs one.
type Unit = quick_cache::UnitWeighter;

/// A cache of quick_cache's.
pub struct QuickCache<K, V>(quick_cache::sync::Cache<K, V, Unit, Hasher>);

impl<K: KeyForm, V: ValueForm + Clone> QuickCache<K, V> {
    /// Room for `items`, of which none is evicted.
    pub fn new(items: usize) -> Self {
        Self::holding(room_for(items))
    }

    /// A cache that holds so many items at most.
    pub fn holding(room: usize) -> Self {
        Self(quick_cache::sync::Cache::with(
            room,
            room as u64,
            Unit::default(),
            Hasher::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        ))
    }
}

impl<K: KeyForm, V: ValueForm + Clone> Table for QuickCache<K, V> {
    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(K::of(key), V::of(value));
    }

    #[inline(always)]
    fn get(&self, key: &[u8], show: impl FnOnce(&[u8])) {
        if let Some(value) = self.0.get(K::sought(key)) {
            show(value.bytes());
        }
    }
}
