//! How a [`Cache`] is made.

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

/// The lowest item limit, and the one of a cache that is told none, in bytes.
const ITEM_SIZE_LEAST: usize = 1 << 10;
const ITEM_SIZE_DEFAULT: usize = 1 << 20;

/// Work of the maintenance thread at a time, in items, and how long it rests in between.
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

    /// Bytes up to which [`Cache::set_memory_limit`] may raise the limit later: address space is reserved for
    /// them. Without it, and if it is lower than the limit, the limit cannot be raised above where it began. A limit
    /// below 64 MiB can be raised to 256 times of itself at most.
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

    /// How many items the index has room for at the start, as far as memory allows. It grows by itself; a good
    /// guess saves the work.
    pub fn initial_capacity(mut self, items: usize) -> Self {
        self.config.initial_items = Some(items);
        self
    }

    /// How long an item lives after it was stored, if its store says nothing else ([`Lifetime`](crate::Lifetime)).
    /// Without it, until it is evicted.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.defaults.time_to_live = Some(time);
        self
    }

    /// How long an item lives after it was last used: read, stored or changed. At most a sixteenth longer, so that a
    /// use seldom has to take a lock.
    ///
    /// [`Cache::contains_key`] and iteration are no use. An item ends at the end of its time to live or to idle,
    /// whichever comes first. Items that have both may take 16 bytes more.
    pub fn time_to_idle(mut self, time: Duration) -> Self {
        self.defaults.idle = Some(Idle::new(time));
        self
    }

    /// Called with each value that leaves the cache, once, with the [cause](crate::RemovalCause): evicted to make room,
    /// expired, removed, or replaced.
    ///
    /// * *Replaced* is told by every store over a live item ([`Cache::insert`], [`Cache::replace`],
    ///   [`Cache::compare_and_swap`]), also of an equal value, and by [`Cache::append`], [`Cache::prepend`],
    ///   [`Cache::incr`] and [`Cache::decr`], with the value that was there before. Not by [`Cache::touch`] and an append
    ///   of no bytes: the value stays. A store over an item that has expired tells *expired*.
    /// * *Explicit* is told by [`Cache::remove`] and [`Cache::invalidate`]; of [`Cache::invalidate_all`] when the memory of
    ///   each item is taken back.
    /// * Of what is there when the cache is dropped nothing is told.
    ///
    /// It runs on the thread whose operation made the value leave, after that operation and before its call returns, or
    /// in between if an operation removes more than a MiB. So of two values of a key that two threads replace, the later
    /// may be told first. It may use the cache as it likes. What leaves by that
    /// is told later, by this operation and later ones; up to a MiB waits for that, and what is beyond is counted
    /// ([`Stats::untold`](crate::Stats::untold)) and not told. If it panics, the caller of the operation sees the
    /// panic, and the [maintenance thread](Builder::maintenance_thread) goes on; the cache is whole.
    ///
    /// Each value is copied on its way out. A cache has one listener: the last one that its builder was given, of this
    /// kind or the [other](Builder::eviction_listener). One that owns a clone of its cache keeps the cache alive for
    /// ever.
    pub fn removal_listener(
        mut self,
        listener: impl Fn(&Removed<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.config.listener = Some(listener::adapt(listener, true));
        self
    }

    /// As [`Builder::removal_listener`], for the values alone that the cache removes by itself, evicted or expired. What
    /// the program removes or replaces is not told, nor copied.
    pub fn eviction_listener(
        mut self,
        listener: impl Fn(&Removed<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.config.listener = Some(listener::adapt(listener, false));
        self
    }

    /// A seed for the hash function, for tests that must repeat. Without it each cache draws its own, so that nobody
    /// outside can choose keys that collide.
    pub fn hash_seed(mut self, seed: u64) -> Self {
        self.config.hasher = KeyHasher::seeded(seed);
        self
    }

    /// Runs [`Cache::maintain`] on a thread of its own until the last clone of the cache is dropped.
    pub fn maintenance_thread(mut self, run: bool) -> Self {
        self.maintenance_thread = run;
        self
    }

    /// The cache. Errors: a limit that cannot be (the error says what can), or address space or a thread that the
    /// system does not give.
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
            // A listener that panics has been told of one value. The others, and the thread, go on.
            let more = catch_unwind(|| cache.maintain(MAINTENANCE_BUDGET)).unwrap_or(true);
            drop(cache);
            if !more {
                std::thread::sleep(MAINTENANCE_REST);
            }
        }
    })?;
    Ok(())
}
