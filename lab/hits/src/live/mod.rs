//! Caches that hold real items: engines in this process, and servers.

mod engine;
mod server;

use std::sync::atomic::{AtomicBool, Ordering};

pub use engine::{EngineCache, EngineChoice, MoreHits};
pub use server::ServerCache;

use crate::simulate::Hits;
use crate::trace::Trace;

/// Requests between two checks whether the run is interrupted.
const LOOK: usize = 1 << 10;

/// A cache with gets and sets.
pub trait Cache {
    /// True if the key has an item. Errors: the cache does not answer.
    fn get(&mut self, key: &[u8]) -> Result<bool, String>;

    /// Stores a value of this size, if the cache takes one so large. Errors: the cache does not answer.
    fn set(&mut self, key: &[u8], size: u32) -> Result<(), String>;

    /// The same for several keys, in their order.
    fn get_all<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<Vec<bool>, String> {
        keys.iter().map(|key| self.get(key.as_ref())).collect()
    }

    /// The memory that it takes, in bytes; fields that are not known are `None`.
    fn memory(&mut self) -> MemoryUse;
}

/// Bytes that a cache takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Resident memory of a server's process.
    pub resident: Option<u64>,
    /// The most that it ever was.
    pub resident_peak: Option<u64>,
    /// What an engine reports to use of its limit.
    pub used: Option<u64>,
}

/// Plays a trace as a program does that reads through its cache: get, and set on a miss; what a trace writes is set. One request at a time, each
/// after the answer to the one before, so that a server carries out what a simulation does.
pub fn read_through(
    trace: &Trace,
    cache: &mut impl Cache,
    stop: &AtomicBool,
) -> Result<Hits, String> {
    let mut hits = Hits::default();
    for requests in trace.requests.chunks(LOOK) {
        refuse_if(stop)?;
        for request in requests {
            let key = trace.keys.bytes(request.key);
            if request.writes {
                cache.set(key, request.size)?;
                continue;
            }
            let hit = cache.get(key)?;
            if !hit {
                cache.set(key, request.size)?;
            }
            hits.count(request.size, hit);
        }
    }
    Ok(hits)
}

/// An error if the run is interrupted.
pub fn refuse_if(stop: &AtomicBool) -> Result<(), String> {
    // Relaxed: the flag publishes no other memory.
    match stop.load(Ordering::Relaxed) {
        true => Err("interrupted".to_owned()),
        false => Ok(()),
    }
}

/// Bytes of values: all zeros, since only their number counts.
#[derive(Default)]
struct Values(Vec<u8>);

impl Values {
    fn of(&mut self, size: u32) -> &[u8] {
        let size = size as usize;
        if self.0.len() < size {
            self.0.resize(size, 0);
        }
        &self.0[..size]
    }
}
