//! Which engine runs, and with what: the one place that names engines.

use std::sync::Arc;

use clap::ValueEnum;
use nuthatch::cuckoo::layout::{Design, EightWay, Paper};
use nuthatch::{Cuckoo, CuckooConfig, Engine};
use nuthatch_bench::engine::Room;
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

/// What is done with an engine, whichever it is.
pub trait Job {
    /// What comes of it.
    type Output;

    /// Does it. Below this everything is made for one type of engine.
    fn run<E: Engine>(self, build: Build<E>) -> Self::Output;
}

/// Builds an engine.
pub type Build<E> = fn(&EngineSettings) -> Result<Arc<E>, String>;

impl EngineName {
    /// Does a job with the engine of this name.
    pub fn choose<J: Job>(self, job: J) -> J::Output {
        match self {
            Self::Cuckoo => job.run(cuckoo::<EightWay>),
            Self::CuckooPaper => job.run(cuckoo::<Paper>),
        }
    }
}

fn cuckoo<D: Design>(settings: &EngineSettings) -> Result<Arc<Cuckoo<D>>, String> {
    let default = CuckooConfig::default();
    let config = CuckooConfig {
        memory_limit: settings.memory_limit,
        item_size_max: settings.item_size_max,
        evicts: settings.evicts,
        chunk_min: settings.chunk_min.unwrap_or(default.chunk_min),
        growth_factor: settings.growth_factor,
        initial_items: settings.initial_items,
        ..default
    };
    Cuckoo::new(config)
        .map(Arc::new)
        .map_err(|error| error.to_string())
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

impl Default for EngineSettings {
    fn default() -> Self {
        let default = CuckooConfig::default();
        Self {
            name: EngineName::default(),
            memory_limit: default.memory_limit,
            item_size_max: default.item_size_max,
            evicts: default.evicts,
            chunk_min: None,
            growth_factor: default.growth_factor,
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
}
