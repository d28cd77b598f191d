//! The two kinds of table behind one C type.

use nuthatch_flow::{Config, FlowCache, FlowHandle, Inserted, SharedFlowCache};

use crate::status::Status;
use crate::table::Stats;

/// A table of one thread, or one thread's part in a shared one.
///
/// Which one it is, is asked for once a call: a bulk lookup does not notice.
pub(crate) enum Cache {
    Own(FlowCache),
    Shared {
        handle: FlowHandle,
        cache: SharedFlowCache,
    },
}

impl Cache {
    pub(crate) fn of_one(config: &Config) -> Result<Self, Status> {
        Ok(Cache::Own(config.build()?))
    }

    pub(crate) fn of_many(config: &Config) -> Result<Self, Status> {
        Ok(Self::part_in(config.build_shared()?))
    }

    fn part_in(cache: SharedFlowCache) -> Self {
        let handle = cache.handle();
        Cache::Shared { handle, cache }
    }

    /// Another thread's part.
    pub(crate) fn share(&self) -> Result<Self, Status> {
        match self {
            Cache::Own(_) => Err(Status::NotShared),
            Cache::Shared { cache, .. } => Ok(Self::part_in(cache.clone())),
        }
    }

    pub(crate) fn lookup(&mut self, hash: u64) -> Option<u64> {
        match self {
            Cache::Own(cache) => cache.lookup(hash),
            Cache::Shared { handle, .. } => handle.lookup(hash),
        }
    }

    pub(crate) fn lookup_many(
        &mut self,
        hashes: &[u64],
        values: &mut [u64],
        hits: &mut [u64],
    ) -> usize {
        match self {
            Cache::Own(cache) => cache.lookup_many(hashes, values, hits),
            Cache::Shared { handle, .. } => handle.lookup_many(hashes, values, hits),
        }
    }

    pub(crate) fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, Status> {
        let inserted = match self {
            Cache::Own(cache) => cache.insert(hash, value),
            Cache::Shared { handle, .. } => handle.insert(hash, value),
        };
        inserted.map_err(|_| Status::ValueTooWide)
    }

    pub(crate) fn remove(&mut self, hash: u64) -> Option<u64> {
        match self {
            Cache::Own(cache) => cache.remove(hash),
            Cache::Shared { handle, .. } => handle.remove(hash),
        }
    }

    pub(crate) fn forget_value(&mut self, value: u64) -> u64 {
        match self {
            Cache::Own(cache) => cache.forget_value(value),
            Cache::Shared { handle, .. } => handle.forget_value(value),
        }
    }

    pub(crate) fn clear(&mut self) -> u64 {
        match self {
            Cache::Own(cache) => cache.clear(),
            Cache::Shared { handle, .. } => handle.clear(),
        }
    }

    /// What was counted, by all threads.
    pub(crate) fn stats(&self) -> Stats {
        match self {
            Cache::Own(cache) => Stats::of(cache.stats(), cache.config()),
            Cache::Shared { cache, .. } => Stats::of(cache.stats(), cache.config()),
        }
    }
}
