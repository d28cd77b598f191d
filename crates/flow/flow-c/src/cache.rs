//! The two parts of a table: the one of the thread that uses it, and the one that any thread may use.

use nuthatch_flow::{Config, FlowCache, FlowHandle, Inserted, SharedFlowCache, StatsReader};

use crate::arrays::{Results, WORD};
use crate::stats::Stats;
use crate::status::Status;
use crate::strided::Strided;

/// Hashes that are gathered at a time: whole words of hits, and so many that the first lookups, whose
/// lines are prefetched too late, are few.
const GATHERED: usize = 4 * WORD;

/// A cache of one thread, or one thread's handle of a shared one.
///
/// The kind is checked once a call, so a bulk lookup costs the same with either.
pub(crate) enum Cache {
    Exclusive(FlowCache),
    Shared(FlowHandle),
}

impl Cache {
    pub(crate) fn lookup(&mut self, hash: u64) -> Option<u64> {
        match self {
            Cache::Exclusive(cache) => cache.lookup(hash),
            Cache::Shared(handle) => handle.lookup(hash),
        }
    }

    pub(crate) fn lookup_many(&mut self, hashes: &[u64], results: Results<'_>) -> usize {
        let Results { values, hits } = results;
        match self {
            Cache::Exclusive(cache) => cache.lookup_many(hashes, values, hits),
            Cache::Shared(handle) => handle.lookup_many(hashes, values, hits),
        }
    }

    pub(crate) fn prefetch(&self, hash: u64) {
        match self {
            Cache::Exclusive(cache) => cache.prefetch(hash),
            Cache::Shared(handle) => handle.prefetch(hash),
        }
    }

    pub(crate) fn prefetch_many(&self, hashes: &[u64]) {
        match self {
            Cache::Exclusive(cache) => cache.prefetch_many(hashes),
            Cache::Shared(handle) => handle.prefetch_many(hashes),
        }
    }

    pub(crate) fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, Status> {
        let inserted = match self {
            Cache::Exclusive(cache) => cache.insert(hash, value),
            Cache::Shared(handle) => handle.insert(hash, value),
        };
        inserted.map_err(|_| Status::ValueTooWide)
    }

    pub(crate) fn remove(&mut self, hash: u64) -> Option<u64> {
        match self {
            Cache::Exclusive(cache) => cache.remove(hash),
            Cache::Shared(handle) => handle.remove(hash),
        }
    }

    pub(crate) fn forget_value(&mut self, value: u64) -> u64 {
        match self {
            Cache::Exclusive(cache) => cache.forget_value(value),
            Cache::Shared(handle) => handle.forget_value(value),
        }
    }

    pub(crate) fn clear(&mut self) -> u64 {
        match self {
            Cache::Exclusive(cache) => cache.clear(),
            Cache::Shared(handle) => handle.clear(),
        }
    }
}

/// The part of a table that one thread uses.
pub(crate) struct Owned {
    pub cache: Cache,
    /// Room for gathered hashes: on the stack it would be cleared at every call.
    gathered: [u64; GATHERED],
}

impl Owned {
    pub(crate) fn lookup_strided(&mut self, hashes: &Strided<'_>, results: Results<'_>) -> usize {
        let Results { values, hits } = results;
        let blocks = values
            .chunks_mut(GATHERED)
            .zip(hits.chunks_mut(GATHERED / WORD));
        let mut found = 0;
        for (block, (values, hits)) in blocks.enumerate() {
            let hashes = hashes.gather(block * GATHERED, &mut self.gathered);
            found += self.cache.lookup_many(hashes, Results { values, hits });
        }
        found
    }

    pub(crate) fn prefetch_strided(&mut self, hashes: &Strided<'_>) {
        for start in (0..).step_by(GATHERED) {
            let hashes = hashes.gather(start, &mut self.gathered);
            self.cache.prefetch_many(hashes);
            if hashes.len() < GATHERED {
                break;
            }
        }
    }
}

/// The part of a table that any thread may use at any time.
pub(crate) enum Common {
    Exclusive { config: Config, stats: StatsReader },
    Shared(SharedFlowCache),
}

impl Common {
    /// What all threads that use the table counted.
    pub(crate) fn stats(&self) -> Stats {
        match self {
            Common::Exclusive { config, stats } => Stats::new(stats.stats(), config),
            Common::Shared(cache) => Stats::new(cache.stats(), cache.config()),
        }
    }

    /// A handle for another thread.
    pub(crate) fn share(&self) -> Result<(Owned, Common), Status> {
        match self {
            Common::Exclusive { .. } => Err(Status::NotShared),
            Common::Shared(cache) => Ok(handle(cache.clone())),
        }
    }
}

/// A table of one thread.
pub(crate) fn exclusive(config: &Config) -> Result<(Owned, Common), Status> {
    let cache = config.build()?;
    let common = Common::Exclusive {
        config: config.clone(),
        stats: cache.stats_reader(),
    };
    Ok((owned(Cache::Exclusive(cache)), common))
}

/// A shared table, and its first handle.
pub(crate) fn shared(config: &Config) -> Result<(Owned, Common), Status> {
    Ok(handle(config.build_shared()?))
}

fn handle(cache: SharedFlowCache) -> (Owned, Common) {
    (owned(Cache::Shared(cache.handle())), Common::Shared(cache))
}

fn owned(cache: Cache) -> Owned {
    Owned {
        cache,
        gathered: [0; GATHERED],
    }
}
