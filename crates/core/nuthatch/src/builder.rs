//! [`Builder`]: the settings of a [`Cache`], and how one is made from them.

use std::fmt;
use std::panic::catch_unwind;
use std::time::Duration;

use nuthatch_cuckoo::Cuckoo;
use nuthatch_cuckoo::config::{CuckooConfig, ITEM_SIZE_LIMIT, MEMORY_MIN};
use nuthatch_engine::KeyHasher;

use crate::cache::Cache;
use crate::error::BuildError;
use crate::lifetime::{Defaults, Idle};
use crate::listener::{self, Removed};

/// The lowest item limit that can be set, and the default one, in bytes.
const ITEM_SIZE_LEAST: usize = 1 << 10;
const ITEM_SIZE_DEFAULT: usize = 1 << 20;

/// Work of the maintenance thread at a time, in items, and how long it sleeps in between.
const MAINTENANCE_BUDGET: usize = 20_000;
const MAINTENANCE_REST: Duration = Duration::from_millis(100);

/// Configures a [`Cache`]. Made by [`Cache::builder`].
///
/// ```
/// use std::time::Duration;
/// use nuthatch::Cache;
///
/// # fn main() -> Result<(), nuthatch::BuildError> {
/// let cache = Cache::builder()
///     .memory_limit(256 << 20)
///     .time_to_live(Duration::from_secs(3600))
///     .maintenance_thread(true)
///     .build()?;
/// # assert_eq!(cache.entry_count(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder makes no cache before `build`"]
pub struct Builder {
    config: CuckooConfig,
    item_size_max: Option<usize>,
    defaults: Defaults,
    maintenance_thread: bool,
}

impl Builder {
    /// The hard limit in bytes for items, index and everything else that grows with the data. At least 1 MiB; 64 MiB
    /// by default. Address space is reserved for the whole limit, memory is taken as it is needed.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.config.memory_limit = bytes;
        self
    }

    /// Bytes up to which [`Cache::set_memory_limit`] may raise the limit later: address space is reserved for them.
    /// Without it, and if it is lower than the memory limit, the limit cannot be raised above its first value. A limit
    /// below 64 MiB can be raised to at most 256 times its first value.
    pub fn memory_limit_max(mut self, bytes: usize) -> Self {
        self.config.memory_limit_max = bytes;
        self
    }

    /// The largest item in bytes: key, value and 16 to 32 bytes of header. 1 KiB to 1 GiB, at most half of the memory
    /// limit; by default 1 MiB, or half of the memory limit if that is less.
    pub fn item_size_max(mut self, bytes: usize) -> Self {
        self.item_size_max = Some(bytes);
        self
    }

    /// False: a full cache refuses stores with [`Error::OutOfMemory`](crate::Error::OutOfMemory) instead of evicting.
    pub fn evict(mut self, evict: bool) -> Self {
        self.config.evicts = evict;
        self
    }

    /// How many items the index has room for at the start, within what the memory limit allows. The index grows by
    /// itself; a good guess saves that work.
    pub fn initial_capacity(mut self, items: usize) -> Self {
        self.config.initial_items = Some(items);
        self
    }

    /// How long an item lives after it was stored, unless its store sets another [`Lifetime`](crate::Lifetime). Without
    /// a time to live, it lives until it is evicted.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.defaults.time_to_live = Some(time);
        self
    }

    /// How long an item lives after it was last used: read, stored or changed. At most a sixteenth longer, so that a
    /// use seldom has to take a lock.
    ///
    /// [`Cache::contains_key`] and iteration do not count as a use. An item expires at the end of its time to live or
    /// to idle, whichever comes first. Items that have both may take 16 bytes more.
    pub fn time_to_idle(mut self, time: Duration) -> Self {
        self.defaults.idle = Some(Idle::new(time));
        self
    }

    /// Called with each value that leaves the cache, once, with the [cause](crate::RemovalCause): evicted to make room,
    /// expired, removed, or replaced.
    ///
    /// * *Replaced*: every store over a live item ([`Cache::insert`], [`Cache::replace`], [`Cache::compare_and_swap`]),
    ///   also with an equal value, and [`Cache::append`], [`Cache::prepend`], [`Cache::incr`] and [`Cache::decr`]. The
    ///   listener gets the value from before. [`Cache::touch`] and an append of no bytes do not call it: the value
    ///   stays. For a store over an item that has expired the cause is *expired*.
    /// * *Explicit*: [`Cache::remove`] and [`Cache::invalidate`]. After [`Cache::invalidate_all`], the listener is
    ///   called for each item when its memory is taken back.
    /// * The listener is not called for the items that are in the cache when it is dropped.
    ///
    /// It runs on the thread whose operation removed the value, after the operation took effect and before its call
    /// returns. If an operation removes more than a MiB, it also runs in between. So if two threads replace a key's
    /// value one after the other, the listener may get the later of the two old values first. It may call the cache
    /// freely. It is called for values that its own calls remove later, by this operation and by later ones. Up to a
    /// MiB of these waits; values beyond that are dropped, and counted in [`Stats::untold`](crate::Stats::untold). If
    /// it panics, the caller of the operation sees the panic once the operation has taken effect, and the
    /// [maintenance thread](Builder::maintenance_thread) goes on. The cache stays intact.
    ///
    /// Each value is copied when it leaves. A cache has one listener: the last one that was set, by this method or by
    /// [`Builder::eviction_listener`]. A listener that owns a clone of its cache keeps the cache alive for ever.
    pub fn removal_listener(
        mut self,
        listener: impl Fn(&Removed<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.config.listener = Some(listener::adapt(listener, true));
        self
    }

    /// As [`Builder::removal_listener`], but called only for values that the cache removes by itself: evicted or
    /// expired ones. Values that the program removes or replaces are neither reported nor copied.
    pub fn eviction_listener(
        mut self,
        listener: impl Fn(&Removed<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.config.listener = Some(listener::adapt(listener, false));
        self
    }

    /// A seed for the hash function, for tests that must repeat. Without it each cache draws a random one, so that an
    /// attacker cannot choose keys that collide.
    pub fn hash_seed(mut self, seed: u64) -> Self {
        self.config.hasher = KeyHasher::seeded(seed);
        self
    }

    /// Runs [`Cache::maintain`] on a thread of its own until the last clone of the cache is dropped.
    pub fn maintenance_thread(mut self, run: bool) -> Self {
        self.maintenance_thread = run;
        self
    }

    /// Makes the cache. Errors: a limit is out of its bounds (the error gives the bounds), or the system refuses the
    /// address space or the thread.
    pub fn build(mut self) -> Result<Cache, BuildError> {
        let (asked, least) = (self.config.memory_limit, MEMORY_MIN);
        if asked < least {
            return Err(BuildError::MemoryLimit { asked, least });
        }
        let (least, most) = (ITEM_SIZE_LEAST, ITEM_SIZE_LIMIT.min(asked / 2));
        let asked = self.item_size_max.unwrap_or(ITEM_SIZE_DEFAULT.min(most));
        if !(least..=most).contains(&asked) {
            return Err(BuildError::ItemSizeMax { asked, least, most });
        }
        self.config.item_size_max = asked;
        let engine = Cuckoo::new(self.config).map_err(BuildError::AddressSpace)?;
        let cache = Cache::with_engine(engine, self.defaults);
        if self.maintenance_thread {
            start_maintenance(&cache).map_err(BuildError::Thread)?;
        }
        Ok(cache)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Builder")
            .field("memory_limit", &self.config.memory_limit)
            .field("memory_limit_max", &self.config.memory_limit_max)
            .field("item_size_max", &self.item_size_max)
            .field("evict", &self.config.evicts)
            .field("initial_capacity", &self.config.initial_items)
            .field("time_to_live", &self.defaults.time_to_live)
            .field("time_to_idle", &self.defaults.idle.map(|idle| idle.time()))
            .field("listener", &self.config.listener.is_some())
            .field("maintenance_thread", &self.maintenance_thread)
            .finish_non_exhaustive()
    }
}

fn start_maintenance(cache: &Cache) -> std::io::Result<()> {
    let shared = cache.downgrade();
    let thread = std::thread::Builder::new().name("nuthatch-maintenance".into());
    thread.spawn(move || {
        while let Some(cache) = shared.upgrade() {
            // A listener that panics has been called with one value. The other values follow in later passes, and the
            // thread goes on.
            let more = catch_unwind(|| cache.maintain(MAINTENANCE_BUDGET)).unwrap_or(true);
            drop(cache);
            if !more {
                std::thread::sleep(MAINTENANCE_REST);
            }
        }
    })?;
    Ok(())
}
