//! The list of engines: their names, what each is built from, and the one place that chooses among them.

mod tuning;

use std::io;
use std::sync::Arc;

use clap::ValueEnum;
use nuthatch_base::sync::ring::{Array, Single};
use nuthatch_chained::{Chained, ChainedConfig, Locks, PolicyKind};
use nuthatch_cphash::config::{CpHashConfig, ServerThreads};
use nuthatch_cphash::{CpHash, Rings};
use nuthatch_cuckoo::layout::{EightWay, EightWayClock, Paper, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{AnyEngine, Engine};
use nuthatch_partition::Eviction;
use nuthatch_partition::lockhash::LockHash;
use nuthatch_partition::lockhash::config::LockHashConfig;
use nuthatch_partition::memory::MEMORY_MAX;
use serde::{Deserialize, Serialize};

pub use tuning::{EvictionName, RangeError, ThreadRange, Tuning, TuningError, help};

/// The engines there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// Optimistic cuckoo hashing, items in a log, two queues and ghosts
    #[default]
    Cuckoo,
    /// cuckoo with the constants of the MemC3 paper: 4 slots, 1-byte tags, one writer
    CuckooPaper,
    /// Partitions owned by server threads, which receive requests as messages (CPHash)
    Cphash,
    /// cphash with a single buffer for each client and server: one message at a time
    CphashSingle,
    /// The partitions of cphash, each behind a lock (LockHash)
    Lockhash,
    /// The table of classic memcached: bucket locks, strict LRU
    Chained,
    /// chained with one lock
    ChainedGlobal,
    /// chained with CLOCK eviction
    ChainedClock,
    /// chained with one lock and CLOCK eviction
    ChainedGlobalClock,
}

/// Work on an engine, generic over its type.
pub trait Job {
    /// The result.
    type Output;

    /// Does the work. The code below this call is compiled for one type of engine.
    fn run<E: Engine>(self, build: Build<E>) -> Self::Output;
}

/// Builds an engine. Errors: for an impossible configuration, an `InvalidInput`.
pub type Build<E> = fn(&EngineSettings) -> io::Result<Arc<E>>;

impl EngineName {
    /// Does a job with the engine of this name, with the eviction that was set for it.
    pub fn choose<J: Job>(self, tuning: &Tuning, job: J) -> J::Output {
        match self {
            Self::Cuckoo if tuning.eviction_of(self) == Some(EvictionName::CLOCK) => {
                job.run(cuckoo::<EightWayClock>)
            }
            Self::Cuckoo => job.run(cuckoo::<EightWay>),
            Self::CuckooPaper => job.run(cuckoo::<Paper>),
            Self::Cphash => job.run(cphash::<Array>),
            Self::CphashSingle => job.run(cphash::<Single>),
            Self::Lockhash => job.run(lockhash),
            Self::Chained | Self::ChainedGlobal | Self::ChainedClock | Self::ChainedGlobalClock => {
                job.run(chained)
            }
        }
    }

    /// The name, as it is typed.
    pub fn name(self) -> String {
        tuning::typed(self)
    }

    /// Builds the engine that is named in `settings`. Errors: as [`Build`].
    pub fn build(settings: &EngineSettings) -> io::Result<Arc<AnyEngine>> {
        struct Erased<'a>(&'a EngineSettings);
        impl Job for Erased<'_> {
            type Output = io::Result<Arc<AnyEngine>>;

            fn run<E: Engine>(self, build: Build<E>) -> Self::Output {
                Ok(build(self.0)?.any())
            }
        }
        settings.name.choose(&settings.tuning, Erased(settings))
    }

    /// Its properties that no setting changes.
    fn kind(self) -> Kind {
        const CLOCK: EvictionName = EvictionName::CLOCK;
        const LRU: EvictionName = EvictionName::LRU;
        const RANDOM: EvictionName = EvictionName::RANDOM;
        match self {
            Self::Cuckoo => Kind::whole(EvictionName::of_cuckoo()),
            Self::CuckooPaper => Kind::whole(&[CLOCK]),
            Self::Cphash | Self::CphashSingle => Kind {
                server_threads: true,
                ..Kind::divided(&[LRU, RANDOM])
            },
            Self::Lockhash => Kind::divided(&[LRU, RANDOM]),
            Self::Chained | Self::ChainedGlobal => Kind::whole(&[LRU, CLOCK]),
            Self::ChainedClock | Self::ChainedGlobalClock => Kind::whole(&[CLOCK]),
        }
    }

    /// True if it divides its keys among partitions, each with an eviction of its own.
    pub fn has_partitions(self) -> bool {
        self.kind().partitions
    }

    /// True if it has threads of its own that carry out requests.
    pub fn has_server_threads(self) -> bool {
        self.kind().server_threads
    }

    /// Bytes of the largest item by default: memcached's, or what a small limit allows. With server threads
    /// there are at least two partitions, which share the memory.
    pub fn item_size_max(self, memory_limit: usize) -> usize {
        let parts = if self.has_server_threads() { 2 } else { 1 };
        let default = CuckooConfig::default().item_size_max;
        default.min(memory_limit / parts / 2)
    }

    /// The evictions that it has; the first is its default.
    pub fn evictions(self) -> &'static [EvictionName] {
        self.kind().evictions
    }

    /// True if it has this eviction.
    pub fn has_eviction(self, eviction: EvictionName) -> bool {
        self.evictions().contains(&eviction)
    }

    /// True if its items are counted by size classes.
    pub fn has_size_classes(self) -> bool {
        !self.has_partitions()
    }
}

/// The properties of an engine that no setting changes.
struct Kind {
    /// The first is its default.
    evictions: &'static [EvictionName],
    /// It divides its keys among partitions; else its items are counted by size classes.
    partitions: bool,
    /// It has threads of its own that carry out requests.
    server_threads: bool,
}

impl Kind {
    const fn whole(evictions: &'static [EvictionName]) -> Self {
        Self {
            evictions,
            partitions: false,
            server_threads: false,
        }
    }

    const fn divided(evictions: &'static [EvictionName]) -> Self {
        Self {
            partitions: true,
            ..Self::whole(evictions)
        }
    }
}

fn cuckoo<D: Variant>(settings: &EngineSettings) -> io::Result<Arc<Cuckoo<D>>> {
    let default = CuckooConfig::default();
    let config = CuckooConfig {
        memory_limit: settings.memory_limit,
        memory_limit_max: settings.limit_max(usize::MAX),
        item_size_max: settings.item_size_max,
        evicts: settings.evicts,
        eviction: settings.eviction().log_policy().unwrap_or(default.eviction),
        chunk_min: settings.chunk_min.unwrap_or(default.chunk_min),
        growth_factor: settings.growth_factor,
        initial_items: settings.initial_items,
        ..default
    };
    Cuckoo::new(config).map(Arc::new)
}

fn cphash<D: Rings>(settings: &EngineSettings) -> io::Result<Arc<CpHash<D>>> {
    CpHash::new(settings.cphash()).map(Arc::new)
}

fn lockhash(settings: &EngineSettings) -> io::Result<Arc<LockHash>> {
    LockHash::new(settings.lockhash()).map(Arc::new)
}

fn chained(settings: &EngineSettings) -> io::Result<Arc<Chained>> {
    let default = ChainedConfig::default();
    let locks = match settings.name {
        EngineName::ChainedGlobal | EngineName::ChainedGlobalClock => Locks::Global,
        _ => Locks::Buckets,
    };
    let config = ChainedConfig {
        memory_limit: settings.memory_limit,
        memory_limit_max: settings.limit_max(usize::MAX),
        item_size_max: settings.item_size_max,
        evicts: settings.evicts,
        chunk_min: settings.chunk_min.unwrap_or(default.chunk_min),
        growth_factor: settings.growth_factor,
        initial_items: settings.initial_items,
        locks,
        eviction: PolicyKind::named(&settings.eviction().name()).unwrap_or(default.eviction),
        ..default
    };
    Chained::new(config).map(Arc::new)
}

/// What an engine is built from.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineSettings {
    /// Which engine.
    pub name: EngineName,
    /// Bytes for items and index.
    pub memory_limit: usize,
    /// Bytes to which that may be raised while it runs; four times the limit if it is `None`.
    pub memory_limit_max: Option<usize>,
    /// Bytes of the largest item.
    pub item_size_max: usize,
    /// False: a full engine refuses stores instead of evicting.
    pub evicts: bool,
    /// Bytes of the smallest chunk, if not the engine's default.
    pub chunk_min: Option<usize>,
    /// Ratio of neighbouring chunk sizes.
    pub growth_factor: f64,
    /// Items the index has room for at the start, if not the engine's default.
    pub initial_items: Option<usize>,
    /// Settings that only some engines have.
    pub tuning: Tuning,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let default = CuckooConfig::default();
        Self {
            name: EngineName::default(),
            memory_limit: default.memory_limit,
            memory_limit_max: None,
            item_size_max: default.item_size_max,
            evicts: default.evicts,
            chunk_min: None,
            growth_factor: default.growth_factor,
            initial_items: None,
            tuning: Tuning::default(),
        }
    }
}

/// Up to how many times the memory limit it may be raised, if no maximum is set: a memcached raises its limit as far as
/// a client asks, and unused memory costs address space only.
const LIMIT_RAISED: usize = 4;

/// memcached's smallest chunk: the default.
const CHUNK_MIN: usize = 48;

/// The smallest of the sizes by which a log counts its items.
const LOG_MIN: usize = 32;

impl EngineSettings {
    /// Bytes to which the limit may be raised, in an engine that can use `most` of them.
    fn limit_max(&self, most: usize) -> usize {
        let raised = || self.memory_limit.saturating_mul(LIMIT_RAISED).min(most);
        self.memory_limit_max.unwrap_or_else(raised)
    }

    fn cphash(&self) -> CpHashConfig {
        let default = CpHashConfig::default();
        let tuning = &self.tuning;
        CpHashConfig {
            memory_limit: self.memory_limit,
            memory_limit_max: self.limit_max(MEMORY_MAX),
            item_size_max: self.item_size_max,
            evicts: self.evicts,
            eviction: self.partition_eviction(),
            initial_items: self.initial_items,
            partitions: tuning.partitions.unwrap_or(default.partitions),
            server_threads: match tuning.server_threads {
                Some(ThreadRange { min, max }) if min == max => ServerThreads::Fixed(min),
                Some(ThreadRange { min, max }) => ServerThreads::Adaptive { min, max },
                None => default.server_threads,
            },
            pin: tuning.pin,
            ..default
        }
    }

    fn lockhash(&self) -> LockHashConfig {
        let partitions = self.tuning.partitions;
        LockHashConfig {
            memory_limit: self.memory_limit,
            memory_limit_max: self.limit_max(MEMORY_MAX),
            item_size_max: self.item_size_max,
            evicts: self.evicts,
            eviction: self.partition_eviction(),
            initial_items: self.initial_items,
            partitions: partitions.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
            ..LockHashConfig::default()
        }
    }

    /// The eviction that was set, or else the engine's default.
    fn eviction(&self) -> EvictionName {
        let asked = self.tuning.eviction_of(self.name);
        asked.unwrap_or(self.name.evictions()[0])
    }

    fn partition_eviction(&self) -> Eviction {
        match self.eviction() {
            EvictionName::RANDOM => Eviction::Random,
            _ => Eviction::Lru,
        }
    }

    /// The lines that `stats settings` shows for this engine, beside those of all engines.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let most = if self.name.has_partitions() {
            MEMORY_MAX
        } else {
            usize::MAX
        };
        lines.push(("maxbytes_max", self.limit_max(most).to_string()));
        // Engines without size classes show these lines too: monitoring looks for the names.
        lines.push(("growth_factor", format!("{:.2}", self.growth_factor)));
        // For a log, the smallest of the sizes by which it counts its items.
        let least = match self.eviction().log_policy() {
            Some(_) => LOG_MIN,
            None => CHUNK_MIN,
        };
        let chunk_min = self.chunk_min.unwrap_or(least);
        lines.push(("chunk_size", chunk_min.to_string()));
        if let Some(count) = self.partition_count() {
            lines.push(("partitions", count.to_string()));
        }
        lines.push(("eviction", self.eviction().name()));
        if self.name.has_server_threads() {
            let (min, max) = self.cphash().threads();
            let range = ThreadRange { min, max };
            lines.push(("server_threads", range.to_string()));
            let pin = self.tuning.pin;
            lines.push(("pin", pin.map_or("no".to_owned(), |core| core.to_string())));
        }
        lines
    }

    /// `None` for an engine without partitions.
    fn partition_count(&self) -> Option<usize> {
        match self.name {
            EngineName::Cphash | EngineName::CphashSingle => Some(self.cphash().partition_count()),
            EngineName::Lockhash => Some(self.lockhash().partition_count() as usize),
            EngineName::Cuckoo
            | EngineName::CuckooPaper
            | EngineName::Chained
            | EngineName::ChainedGlobal
            | EngineName::ChainedClock
            | EngineName::ChainedGlobalClock => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use nuthatch_chained::POLICIES;

    use super::*;

    fn built(name: EngineName, eviction: Option<EvictionName>) -> Arc<AnyEngine> {
        let settings = EngineSettings {
            name,
            memory_limit: 8 << 20,
            tuning: Tuning {
                eviction,
                ..Tuning::default()
            },
            ..EngineSettings::default()
        };
        EngineName::build(&settings).unwrap()
    }

    /// Each engine is the one that its name says, with each eviction that it has.
    #[test]
    fn engines_are_known_by_the_names_that_they_are_typed_with() {
        for &name in EngineName::value_variants() {
            assert_eq!(built(name, None).name(), name.name());
            for &eviction in name.evictions() {
                built(name, Some(eviction));
            }
        }
        for (eviction, name) in [
            (EvictionName::CLOCK, "chained-clock"),
            (EvictionName::LRU, "chained"),
        ] {
            assert_eq!(built(EngineName::Chained, Some(eviction)).name(), name);
        }
    }

    #[test]
    fn every_policy_of_the_slab_store_can_be_typed() {
        for kind in POLICIES {
            let chained = EngineName::Chained.evictions();
            assert!(chained.iter().any(|typed| typed.name() == kind.name));
        }
    }

    #[test]
    fn an_engine_has_a_count_of_partitions_if_it_has_partitions() {
        for &name in EngineName::value_variants() {
            let settings = EngineSettings {
                name,
                ..EngineSettings::default()
            };
            let count = settings.partition_count();
            assert_eq!(count.is_some(), name.has_partitions(), "{name:?}");
        }
    }

    /// The part of a text between two others.
    fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
        let begun = text.split_once(from).map(|(_, rest)| rest);
        let part = begun.and_then(|rest| rest.split_once(to));
        part.unwrap_or_else(|| panic!("no {from:?} with {to:?} behind it"))
            .0
    }

    fn assert_names<T: ValueEnum>(place: &str, text: &str) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let words: Vec<_> = text.split(|c| !is_part(c)).collect();
        for value in T::value_variants() {
            let possible = value.to_possible_value().unwrap();
            let name = possible.get_name();
            assert!(words.contains(&name), "{place} lacks {name}");
        }
    }

    /// Class of bug: an engine or an eviction that the program has, and that an operator cannot find.
    #[test]
    fn operators_find_every_engine_and_every_eviction() {
        let engines = include_str!("../../../../docs/engines.md");
        let running = include_str!("../../../../docs/running.md");
        let dist = include_str!("../../../../dist/nuthatch.toml");
        assert_names::<EngineName>("engines.md", between(engines, "| `--engine` |", "\n\n"));
        assert_names::<EngineName>("running.md", between(running, "| `--engine` |", "\n"));
        assert_names::<EvictionName>("running.md", between(running, "| `--eviction` |", "\n"));
        assert_names::<EngineName>("nuthatch.toml", between(dist, "# The engine: ", "#engine"));
        assert_names::<EvictionName>("nuthatch.toml", between(dist, "# Which item ", "#eviction"));
    }
}
