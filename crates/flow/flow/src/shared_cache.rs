//! A shared flow cache whose layout and entry are chosen at run time: one virtual call for each
//! operation, not for each key of a batch.

use std::fmt;
use std::sync::Arc;

use crate::config::{Config, ConfigError};
use crate::entry::{Entry, Slot, Tag16, Tag32};
use crate::insert::{Inserted, ValueTooWide};
use crate::layout::{Blp2x4, Blp2x8, CuckooLite, EightWay, FourWay, Layout, Shape, Window};
use crate::shared::{SharedHandle, SharedTable};
use crate::stats::Stats;

/// A flow cache that threads share, of any layout and of every eviction and entry that can be
/// shared: see [`Config::build_shared`]. Clones are the same cache.
#[derive(Clone)]
pub struct SharedFlowCache {
    table: Arc<dyn AnyShared>,
}

/// One thread's handle of a [`SharedFlowCache`]. The operations are those of [`SharedHandle`].
pub struct FlowHandle {
    handle: Box<dyn AnyHandle>,
}

impl fmt::Debug for SharedFlowCache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("SharedFlowCache");
        shown
            .field("config", self.config())
            .field("stats", &self.stats());
        shown.finish_non_exhaustive()
    }
}

impl fmt::Debug for FlowHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FlowHandle").finish_non_exhaustive()
    }
}

/// The operations of a [`SharedTable`], whatever its types.
trait AnyShared: Send + Sync {
    fn config(&self) -> &Config;
    fn handle(self: Arc<Self>) -> Box<dyn AnyHandle>;
    fn stats(&self) -> Stats;
    fn count(&self) -> u64;
}

impl<L: Shape, T: Slot> AnyShared for SharedTable<L, T> {
    fn config(&self) -> &Config {
        self.config()
    }

    fn handle(self: Arc<Self>) -> Box<dyn AnyHandle> {
        Box::new(SharedTable::handle(&self))
    }

    fn stats(&self) -> Stats {
        self.stats()
    }

    fn count(&self) -> u64 {
        self.count()
    }
}

/// The operations of a [`SharedHandle`], whatever its types.
trait AnyHandle: Send {
    fn lookup(&mut self, hash: u64) -> Option<u64>;
    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize;
    fn prefetch(&self, hash: u64);
    fn prefetch_many(&self, hashes: &[u64]);
    fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide>;
    fn remove(&mut self, hash: u64) -> Option<u64>;
    fn forget(&mut self, forget: &mut dyn FnMut(u64) -> bool) -> u64;
    fn moves(&self) -> u64;
}

impl<L: Shape, T: Slot> AnyHandle for SharedHandle<L, T> {
    fn lookup(&mut self, hash: u64) -> Option<u64> {
        self.lookup(hash)
    }

    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize {
        self.lookup_many(hashes, values, hits)
    }

    fn prefetch(&self, hash: u64) {
        self.prefetch(hash);
    }

    fn prefetch_many(&self, hashes: &[u64]) {
        self.prefetch_many(hashes);
    }

    fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide> {
        self.insert(hash, value)
    }

    fn remove(&mut self, hash: u64) -> Option<u64> {
        self.remove(hash)
    }

    fn forget(&mut self, forget: &mut dyn FnMut(u64) -> bool) -> u64 {
        self.forget(forget)
    }

    fn moves(&self) -> u64 {
        self.moves()
    }
}

impl Config {
    /// An empty cache that threads share. Not every eviction and entry can be:
    /// [`Config::validate_shared`].
    pub fn build_shared(&self) -> Result<SharedFlowCache, ConfigError> {
        self.validate_shared()?;
        let table = match self.layout {
            Layout::FourWay => build::<FourWay>(self),
            Layout::EightWay => build::<EightWay>(self),
            Layout::CuckooLite => build::<CuckooLite>(self),
            Layout::Window => build::<Window>(self),
            Layout::Blp2x4 => build::<Blp2x4>(self),
            Layout::Blp2x8 => build::<Blp2x8>(self),
        }?;
        Ok(SharedFlowCache { table })
    }
}

fn build<L: Shape>(config: &Config) -> Result<Arc<dyn AnyShared>, ConfigError> {
    Ok(match config.entry {
        Entry::Tag16 => SharedTable::<L, Tag16>::new(config)?,
        Entry::Tag32 => SharedTable::<L, Tag32>::new(config)?,
        Entry::Hash64 => return Err(ConfigError::EntryNotShared(config.entry)),
    })
}

impl SharedFlowCache {
    /// The cache's configuration.
    pub fn config(&self) -> &Config {
        self.table.config()
    }

    /// The number of slots: the configured entries, rounded up. The spare buckets do not count.
    pub fn entries(&self) -> u64 {
        self.config().rounded_entries()
    }

    /// A handle for one thread.
    pub fn handle(&self) -> FlowHandle {
        FlowHandle {
            handle: Arc::clone(&self.table).handle(),
        }
    }

    /// Counts of all handles: [`SharedTable::stats`].
    pub fn stats(&self) -> Stats {
        self.table.stats()
    }

    /// The number of slots in use, counted one by one.
    pub fn count(&self) -> u64 {
        self.table.count()
    }
}

impl FlowHandle {
    /// The value of a key: [`SharedHandle::lookup`].
    #[inline]
    pub fn lookup(&mut self, hash: u64) -> Option<u64> {
        self.handle.lookup(hash)
    }

    /// Looks any number of keys up and returns how many were found: [`SharedHandle::lookup_many`].
    ///
    /// # Panics
    /// If `values` is shorter than `hashes`, or `hits` than one bit for each.
    #[inline]
    pub fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize {
        self.handle.lookup_many(hashes, values, hits)
    }

    /// Prefetches a key's cache lines: [`SharedHandle::prefetch`].
    pub fn prefetch(&self, hash: u64) {
        self.handle.prefetch(hash);
    }

    /// The same for many keys: [`SharedHandle::prefetch_many`].
    pub fn prefetch_many(&self, hashes: &[u64]) {
        self.handle.prefetch_many(hashes);
    }

    /// Inserts or updates a key: [`SharedHandle::insert`].
    pub fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide> {
        self.handle.insert(hash, value)
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, hash: u64) -> Option<u64> {
        self.handle.remove(hash)
    }

    /// Removes all keys with this value: [`SharedHandle::forget_value`].
    pub fn forget_value(&mut self, value: u64) -> u64 {
        self.handle.forget(&mut |other| other == value)
    }

    /// Removes all keys for whose value `forget` returns true: [`SharedHandle::forget`].
    pub fn forget(&mut self, mut forget: impl FnMut(u64) -> bool) -> u64 {
        self.handle.forget(&mut forget)
    }

    /// Removes all keys; returns how many.
    pub fn clear(&mut self) -> u64 {
        self.handle.forget(&mut |_| true)
    }

    /// This handle's hits that moved their key up: [`SharedHandle::moves`].
    pub fn moves(&self) -> u64 {
        self.handle.moves()
    }
}
