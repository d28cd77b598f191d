//! A flow cache of one thread whose layout and entry are chosen at run time: one virtual call for each
//! operation, not for each key of a batch.

use std::fmt;

use crate::config::{Config, ConfigError};
use crate::entry::{Entry, Hash64, Slot, Tag16, Tag32};
use crate::eviction::Eviction;
use crate::insert::{Inserted, ValueTooWide};
use crate::layout::{Blp2x4, Blp2x8, CuckooLite, EightWay, FourWay, Layout, Shape, Window};
use crate::stats::{Stats, StatsReader};
use crate::table::Table;

/// A flow cache of one thread, of any layout, eviction and entry: see [`Config`].
///
/// The operations are those of [`Table`].
pub struct FlowCache {
    config: Config,
    table: Box<dyn AnyTable>,
}

impl fmt::Debug for FlowCache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("FlowCache");
        shown
            .field("config", &self.config)
            .field("stats", &self.stats());
        shown.finish_non_exhaustive()
    }
}

/// The operations of a [`Table`], whatever its types.
trait AnyTable: Send + Sync {
    fn lookup(&mut self, hash: u64) -> Option<u64>;
    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize;
    fn peek(&self, hash: u64) -> Option<u64>;
    fn prefetch(&self, hash: u64);
    fn prefetch_many(&self, hashes: &[u64]);
    fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide>;
    fn insert_dropping(
        &mut self,
        hash: u64,
        value: u64,
        dropped: &mut dyn FnMut(u64),
    ) -> Result<Inserted, ValueTooWide>;
    fn remove(&mut self, hash: u64) -> Option<u64>;
    fn remove_each(&mut self, hash: u64, removed: &mut dyn FnMut(u64));
    fn forget(&mut self, forget: &mut dyn FnMut(u64) -> bool) -> u64;
    fn stats(&self) -> Stats;
    fn stats_reader(&self) -> StatsReader;
    fn count(&self) -> u64;
    fn moves(&self) -> u64;
}

impl<L: Shape, T: Slot> AnyTable for Table<L, T> {
    fn lookup(&mut self, hash: u64) -> Option<u64> {
        self.lookup(hash)
    }

    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize {
        self.lookup_many(hashes, values, hits)
    }

    fn peek(&self, hash: u64) -> Option<u64> {
        self.peek(hash)
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

    fn insert_dropping(
        &mut self,
        hash: u64,
        value: u64,
        dropped: &mut dyn FnMut(u64),
    ) -> Result<Inserted, ValueTooWide> {
        self.insert_dropping(hash, value, dropped)
    }

    fn remove(&mut self, hash: u64) -> Option<u64> {
        self.remove(hash)
    }

    fn remove_each(&mut self, hash: u64, removed: &mut dyn FnMut(u64)) {
        self.remove_each(hash, removed);
    }

    fn forget(&mut self, forget: &mut dyn FnMut(u64) -> bool) -> u64 {
        self.forget(forget)
    }

    fn stats(&self) -> Stats {
        self.stats()
    }

    fn stats_reader(&self) -> StatsReader {
        self.stats_reader()
    }

    fn count(&self) -> u64 {
        self.count()
    }

    fn moves(&self) -> u64 {
        self.moves()
    }
}

impl Config {
    /// An empty cache of one thread.
    pub fn build(&self) -> Result<FlowCache, ConfigError> {
        let table = match self.layout {
            Layout::FourWay => build::<FourWay>(self),
            Layout::EightWay => build::<EightWay>(self),
            Layout::CuckooLite => build::<CuckooLite>(self),
            Layout::Window => build::<Window>(self),
            Layout::Blp2x4 => build::<Blp2x4>(self),
            Layout::Blp2x8 => build::<Blp2x8>(self),
        }?;
        Ok(FlowCache {
            config: self.clone(),
            table,
        })
    }
}

fn build<L: Shape>(config: &Config) -> Result<Box<dyn AnyTable>, ConfigError> {
    Ok(match config.entry {
        Entry::Tag16 => Box::new(Table::<L, Tag16>::new(config)?),
        Entry::Tag32 => Box::new(Table::<L, Tag32>::new(config)?),
        Entry::Hash64 => Box::new(Table::<L, Hash64>::new(config)?),
    })
}

impl FlowCache {
    /// The cache's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The number of slots: the configured entries, rounded up. The spare buckets do not count.
    pub fn entries(&self) -> u64 {
        self.config.rounded_entries()
    }

    /// Which layout this is.
    pub fn layout(&self) -> Layout {
        self.config.layout
    }

    /// Which eviction this is.
    pub fn eviction(&self) -> Eviction {
        self.config.eviction
    }

    /// Which entry this is.
    pub fn entry(&self) -> Entry {
        self.config.entry
    }

    /// The value of a key: [`Table::lookup`].
    #[inline]
    pub fn lookup(&mut self, hash: u64) -> Option<u64> {
        self.table.lookup(hash)
    }

    /// Looks any number of keys up and returns how many were found: [`Table::lookup_many`].
    ///
    /// # Panics
    /// If `values` is shorter than `hashes`, or `hits` than one bit for each.
    #[inline]
    pub fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize {
        self.table.lookup_many(hashes, values, hits)
    }

    /// The value of a key, without counting or changing anything: [`Table::peek`].
    pub fn peek(&self, hash: u64) -> Option<u64> {
        self.table.peek(hash)
    }

    /// Prefetches a key's cache lines: [`Table::prefetch`].
    pub fn prefetch(&self, hash: u64) {
        self.table.prefetch(hash);
    }

    /// The same for many keys: [`Table::prefetch_many`].
    pub fn prefetch_many(&self, hashes: &[u64]) {
        self.table.prefetch_many(hashes);
    }

    /// Inserts or updates a key: [`Table::insert`].
    #[inline]
    pub fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide> {
        self.table.insert(hash, value)
    }

    /// Removes a key and returns its value: [`Table::remove`].
    #[inline]
    pub fn remove(&mut self, hash: u64) -> Option<u64> {
        self.table.remove(hash)
    }

    /// See [`Table::insert_dropping`].
    pub(crate) fn insert_dropping(
        &mut self,
        hash: u64,
        value: u64,
        mut dropped: impl FnMut(u64),
    ) -> Result<Inserted, ValueTooWide> {
        self.table.insert_dropping(hash, value, &mut dropped)
    }

    /// See [`Table::remove_each`].
    pub(crate) fn remove_each(&mut self, hash: u64, mut removed: impl FnMut(u64)) {
        self.table.remove_each(hash, &mut removed);
    }

    /// Removes all keys with this value, as when a rule is deleted; returns how many.
    pub fn forget_value(&mut self, value: u64) -> u64 {
        self.table.forget(&mut |other| other == value)
    }

    /// Removes all keys for whose value `forget` returns true; returns how many.
    pub fn forget(&mut self, mut forget: impl FnMut(u64) -> bool) -> u64 {
        self.table.forget(&mut forget)
    }

    /// Removes all keys; returns how many.
    pub fn clear(&mut self) -> u64 {
        self.table.forget(&mut |_| true)
    }

    /// Counts since the cache was created.
    pub fn stats(&self) -> Stats {
        self.table.stats()
    }

    /// Reads these counts from any thread while this one uses the cache.
    pub fn stats_reader(&self) -> StatsReader {
        self.table.stats_reader()
    }

    /// The number of slots in use, counted one by one.
    pub fn count(&self) -> u64 {
        self.table.count()
    }

    /// Hits that moved their key up: [`Table::moves`].
    pub fn moves(&self) -> u64 {
        self.table.moves()
    }
}
