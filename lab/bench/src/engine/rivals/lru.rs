//! The lru crate in shards, each behind a mutex: a hash table and a linked list, the cache that programs most often
//! write by hand.

use std::hash::BuildHasher;
use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;

use crate::engine::rivals::{Hasher, KeyForm, Table, ValueForm, room_for};

/// A power of two, and many more than threads, so that two seldom meet.
const SHARDS: usize = 64;

/// The bits of a hash that choose a shard lie between those that hashbrown takes, at both ends.
const SHARD_SHIFT: u32 = 40;

/// Shards of lru's caches.
pub struct ShardedLru<K, V> {
    shards: Box<[Shard<K, V>]>,
    hasher: Hasher,
}

/// On lines of its own, so that threads in two shards do not disturb each other.
#[repr(align(128))]
struct Shard<K, V>(Mutex<LruCache<K, V, Hasher>>);

impl<K: KeyForm, V: ValueForm> ShardedLru<K, V> {
    /// Room for `items`, of which none is evicted.
    pub fn new(items: usize) -> Self {
        Self::holding(room_for(items) + SHARDS * SHARDS)
    }

    /// A cache that holds about so many items at most.
    pub fn holding(room: usize) -> Self {
        let room = NonZeroUsize::MIN.saturating_add(room / SHARDS);
        let hasher = Hasher::default();
        let shard = || Shard(Mutex::new(LruCache::with_hasher(room, hasher.clone())));
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher,
        }
    }

    #[inline(always)]
    fn shard(&self, key: &K::Sought) -> &Mutex<LruCache<K, V, Hasher>> {
        let hash = self.hasher.hash_one(key);
        &self.shards[(hash >> SHARD_SHIFT) as usize % SHARDS].0
    }
}

impl<K: KeyForm, V: ValueForm> Table for ShardedLru<K, V> {
    fn set(&self, key: &[u8], value: &[u8]) {
        let mut shard = self.shard(K::sought(key)).lock();
        shard.put(K::of(key), V::of(value));
    }

    #[inline(always)]
    fn get(&self, key: &[u8], show: impl FnOnce(&[u8])) {
        let sought = K::sought(key);
        if let Some(value) = self.shard(sought).lock().get(sought) {
            show(value.bytes());
        }
    }
}
