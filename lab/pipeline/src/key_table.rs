//! A hash table by key, with the project's hash function.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use nuthatch_base::hash::KeyHasher;

use crate::key::FlowKey;

/// Values by key.
#[derive(Clone, Debug)]
pub(crate) struct KeyTable<V> {
    table: HashTable<(FlowKey, V)>,
    hasher: KeyHasher,
}

impl<V> KeyTable<V> {
    pub(crate) fn new(hasher: &KeyHasher) -> Self {
        Self {
            table: HashTable::new(),
            hasher: hasher.clone(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    #[inline]
    pub(crate) fn get(&self, key: &FlowKey) -> Option<&V> {
        let hash = key.hash(&self.hasher);
        let found = self.table.find(hash, |(other, _)| other == key)?;
        Some(&found.1)
    }

    /// Adds a value, unless the key has one; returns the value that the key has afterwards.
    pub(crate) fn get_or_insert(&mut self, key: FlowKey, value: V) -> &mut V {
        let hash = key.hash(&self.hasher);
        let is_key = |(other, _): &(FlowKey, V)| *other == key;
        let rehash = |(key, _): &(FlowKey, V)| key.hash(&self.hasher);
        let entry = match self.table.entry(hash, is_key, rehash) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert((key, value)),
        };
        &mut entry.into_mut().1
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) {
        let hash = key.hash(&self.hasher);
        if let Ok(entry) = self.table.find_entry(hash, |(other, _)| other == key) {
            entry.remove();
        }
    }
}
