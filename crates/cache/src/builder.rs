//! How a [`Cache`] is made.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::Cache;
use crate::cuckoo::Cuckoo;
use crate::cuckoo::config::{CuckooConfig, Departure};
use crate::reply::Item;
use crate::{Engine, KeyHasher};

/// Work of the maintenance thread at a time, in items, and how long it rests in between.
const MAINTENANCE_BUDGET: usize = 20_000;
const MAINTENANCE_REST: Duration = Duration::from_millis(100);

/// Configures a [`Cache`]. Made by [`Cache::builder`].
#[derive(Clone, Default)]
pub struct Builder {
    config: CuckooConfig,
    maintenance_thread: bool,
}

impl Builder {
    /// The hard limit in bytes for items, index and everything else that grows with the data. At
    /// least 4 MiB; 64 MiB by default.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.config.memory_limit = bytes;
        self
    }

    /// Bytes up to which [`Cache::set_memory_limit`] may raise the limit later: address space is reserved for
    /// so much, and memory is taken of it by need. Without it the limit cannot be raised above where it began.
    pub fn memory_limit_max(mut self, bytes: usize) -> Self {
        self.config.memory_limit_max = bytes;
        self
    }

    /// The largest item in bytes: key, value and 16 to 32 bytes of header. 1 MiB by default, 1 KiB
    /// to 1 GiB, at most half of the memory limit.
    pub fn item_size_max(mut self, bytes: usize) -> Self {
        self.config.item_size_max = bytes;
        self
    }

    /// False: a full cache refuses with [`Error::OutOfMemory`](crate::Error) instead of evicting.
    pub fn evict(mut self, evict: bool) -> Self {
        self.config.evicts = evict;
        self
    }

    /// How many items the index has room for at the start. It grows by itself; a good guess saves
    /// the work.
    pub fn initial_items(mut self, items: usize) -> Self {
        self.config.initial_items = Some(items);
        self
    }

    /// Called with every item that is evicted or whose time is over: why, key, metadata, value. Values over
    /// half a MiB come as an empty slice.
    ///
    /// Runs on the thread that needed the room, after its operation, and may use the cache as it likes: store the
    /// item elsewhere, or here under another key. What that removes is told later; see
    /// [`Listener`](crate::Listener) for the bounds.
    pub fn eviction_listener(
        mut self,
        listener: impl Fn(Departure, &[u8], &Item, &[u8]) + Send + Sync + 'static,
    ) -> Self {
        self.config.listener = Some(Arc::new(listener));
        self
    }

    /// A seed for the hash function, for tests that must repeat. Without it each cache draws its
    /// own, so that nobody outside can choose keys that collide.
    pub fn hash_seed(mut self, seed: u64) -> Self {
        self.config.hasher = KeyHasher::seeded(seed);
        self
    }

    /// Runs [`Cache::maintain`] on a thread of its own until the last clone of the cache is dropped.
    pub fn maintenance_thread(mut self, run: bool) -> Self {
        self.maintenance_thread = run;
        self
    }

    /// The cache. Errors: an impossible configuration (the message says which), or address space
    /// or a thread that is not to be had.
    pub fn build(self) -> io::Result<Cache> {
        let engine = Arc::new(Cuckoo::new(self.config)?);
        let cache = Cache::new(engine);
        if self.maintenance_thread {
            start_maintenance(&cache)?;
        }
        Ok(cache)
    }
}

fn start_maintenance(cache: &Cache) -> io::Result<()> {
    let shared = cache.downgrade();
    let name = format!("{}-maintenance", cache.engine().name());
    std::thread::Builder::new().name(name).spawn(move || {
        while let Some(shared) = shared.upgrade() {
            if !shared.maintain(MAINTENANCE_BUDGET) {
                std::thread::sleep(MAINTENANCE_REST);
            }
        }
    })?;
    Ok(())
}
