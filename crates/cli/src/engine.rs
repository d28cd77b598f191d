//! Which engine runs, and with what: the one place that names engines.

use std::sync::Arc;

use clap::ValueEnum;
use nuthatch_bench::engine::Room;
use nuthatch_check::naive::{Naive, Options};
use serde::Deserialize;

/// The engines there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// Optimistic cuckoo hashing with CLOCK eviction
    #[default]
    Cuckoo,
    /// The same with the constants of the MemC3 paper: 4 slots, 1-byte tags, one writer
    CuckooPaper,
}

/// What an engine is built from.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineSettings {
    /// Which one.
    pub name: EngineName,
    /// Bytes for items and index.
    pub memory_limit: usize,
    /// Bytes of the largest item.
    pub item_size_max: usize,
    /// False: a full engine refuses instead of evicting.
    pub evicts: bool,
    /// Bytes of the smallest chunk, if not the engine's own choice.
    pub chunk_min: Option<usize>,
    /// Ratio of neighbouring chunk sizes.
    pub growth_factor: f64,
    /// Items the index has room for at the start, if not the engine's own choice.
    pub initial_items: Option<usize>,
}

/// memcached's default, in bytes.
const MEMORY_LIMIT: usize = 64 << 20;

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            name: EngineName::default(),
            memory_limit: MEMORY_LIMIT,
            item_size_max: 1 << 20,
            evicts: true,
            chunk_min: None,
            growth_factor: 1.25,
            initial_items: None,
        }
    }
}

impl EngineSettings {
    /// For a bench: as a server has it, but with this room.
    pub fn for_bench(name: EngineName, room: Room) -> Self {
        Self {
            name,
            memory_limit: room.memory,
            initial_items: room.items,
            ..Self::default()
        }
    }

    /// Builds the engine.
    pub fn build(&self) -> Result<Arc<Naive>, String> {
        Ok(Naive::new(Options {
            memory_limit: self.memory_limit,
            item_size_max: self.item_size_max,
            evicts: self.evicts,
            ..Options::default()
        }))
    }
}
