//! Caches of other crates, each with its own policy: moka (W-TinyLFU that climbs) and quick_cache (S3-FIFO's relative).
//!
//! An item is its charge, and the crate weighs it by that. The crate's own memory beside its items counts as nothing,
//! as in a simulation. Work that moka defers is done after each store, so that it never holds more than its capacity at
//! a request.

use std::hash::RandomState;

use super::{Policy, Room};

/// The libraries there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Moka,
    QuickCache,
}

impl Library {
    /// By the name of its crate.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "moka" => Some(Self::Moka),
            "quick_cache" => Some(Self::QuickCache),
            _ => None,
        }
    }

    /// An empty cache.
    pub fn build(self, room: &Room<'_>) -> Box<dyn Policy> {
        match self {
            Self::Moka => Box::new(Moka::new(room)),
            Self::QuickCache => Box::new(QuickCache::new(room)),
        }
    }
}

struct Moka {
    cache: moka::sync::Cache<u32, u32>,
    capacity: u64,
}

impl Moka {
    fn new(room: &Room<'_>) -> Self {
        let builder = moka::sync::Cache::builder()
            .max_capacity(room.capacity)
            .weigher(|_, &charge| charge);
        Self {
            cache: builder.build(),
            capacity: room.capacity,
        }
    }
}

impl Policy for Moka {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.cache.get(&key).is_some() {
            return true;
        }
        if u64::from(charge) <= self.capacity {
            self.cache.insert(key, charge);
            self.cache.run_pending_tasks();
        }
        false
    }

    fn used(&self) -> u64 {
        self.cache.weighted_size()
    }

    fn holds(&self, key: u32) -> bool {
        self.cache.contains_key(&key)
    }
}

/// What an item weighs.
#[derive(Clone)]
struct Charge;

impl quick_cache::Weighter<u32, u32> for Charge {
    fn weight(&self, _: &u32, charge: &u32) -> u64 {
        (*charge).into()
    }
}

/// Its cache for one thread: its cache for several threads is this one in shards.
struct QuickCache(quick_cache::unsync::Cache<u32, u32, Charge, RandomState>);

impl QuickCache {
    fn new(room: &Room<'_>) -> Self {
        let items = usize::try_from(room.items).unwrap_or(usize::MAX);
        let lifecycle = quick_cache::unsync::DefaultLifecycle::default();
        let hasher = RandomState::new();
        Self(quick_cache::unsync::Cache::with(
            items,
            room.capacity,
            Charge,
            hasher,
            lifecycle,
        ))
    }
}

impl Policy for QuickCache {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.0.get(&key).is_some() {
            return true;
        }
        self.0.insert(key, charge);
        false
    }

    fn used(&self) -> u64 {
        self.0.weight()
    }

    fn holds(&self, key: u32) -> bool {
        self.0.peek(&key).is_some()
    }
}
