//! A flow cache chosen at run time: the choice is asked for once a call, not once a key.

use crate::config::{Config, ConfigError};
use crate::entry::{Entry, Hash64, Slot, Tag16, Tag32};
use crate::eviction::Eviction;
use crate::insert::{Inserted, ValueTooWide};
use crate::layout::{Blp2x4, Blp2x8, CuckooLite, EightWay, FourWay, Layout, Shape, Window};
use crate::stats::Stats;
use crate::table::Table;

/// A flow cache of one thread, of any layout, eviction and entry: see [`Config`].
///
/// What its operations do, [`Table`]'s say.
pub struct FlowCache {
    config: Config,
    table: Box<dyn AnyTable>,
}

/// What all exclusive tables can do.
trait AnyTable: Send + Sync {
    fn lookup(&mut self, hash: u64) -> Option<u64>;
    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) -> usize;
    fn peek(&self, hash: u64) -> Option<u64>;
    fn prefetch(&self, hash: u64);
    fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide>;
    fn remove(&mut self, hash: u64) -> Option<u64>;
    fn forget(&mut self, forget: &mut dyn FnMut(u64) -> bool) -> u64;
    fn stats(&self) -> Stats;
    fn count(&self) -> u64;
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

    fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide> {
        self.insert(hash, value)
    }

    fn remove(&mut self, hash: u64) -> Option<u64> {
        self.remove(hash)
    }

    fn forget(&mut self, forget: &mut dyn FnMut(u64) -> bool) -> u64 {
        self.forget(forget)
    }

    fn stats(&self) -> Stats {
        self.stats()
    }

    fn count(&self) -> u64 {
        self.count()
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
    /// What it was made from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Slots, without the spare ones behind the last bucket: what was asked for, rounded up.
    pub fn entries(&self) -> u64 {
        self.config.rounded_entries()
    }

    /// Which slots may hold a key.
    pub fn layout(&self) -> Layout {
        self.config.layout
    }

    /// Who leaves when they are all taken.
    pub fn eviction(&self) -> Eviction {
        self.config.eviction
    }

    /// What a slot holds.
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

    /// The value of a key, uncounted and without effect: [`Table::peek`].
    pub fn peek(&self, hash: u64) -> Option<u64> {
        self.table.peek(hash)
    }

    /// Asks for the lines that a lookup or insert of this key will read.
    pub fn prefetch(&self, hash: u64) {
        self.table.prefetch(hash);
    }

    /// Inserts or updates a key: [`Table::insert`].
    #[inline]
    pub fn insert(&mut self, hash: u64, value: u64) -> Result<Inserted, ValueTooWide> {
        self.table.insert(hash, value)
    }

    /// Removes a key and returns its value.
    #[inline]
    pub fn remove(&mut self, hash: u64) -> Option<u64> {
        self.table.remove(hash)
    }

    /// Removes all keys with this value, as when a rule dies, and says how many.
    pub fn forget_value(&mut self, value: u64) -> u64 {
        self.table.forget(&mut |other| other == value)
    }

    /// Removes all keys whose value `forget` chooses, and says how many.
    pub fn forget(&mut self, mut forget: impl FnMut(u64) -> bool) -> u64 {
        self.table.forget(&mut forget)
    }

    /// Removes all keys, and says how many there were.
    pub fn clear(&mut self) -> u64 {
        self.table.forget(&mut |_| true)
    }

    /// Counts since the cache was made.
    pub fn stats(&self) -> Stats {
        self.table.stats()
    }

    /// Slots that are taken, counted one by one.
    pub fn count(&self) -> u64 {
        self.table.count()
    }
}
