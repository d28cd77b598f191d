//! The list of engines: their names, what each is built from, and the one place that chooses among them.

mod tuning;

use std::io;
use std::sync::Arc;

use clap::ValueEnum;
use nuthatch_base::sync::ring::{Array, Single};
use nuthatch_base::sync::spinlock::SpinLock;
use nuthatch_chained::{Chained, ChainedConfig, Locks, PolicyKind};
use nuthatch_cphash::config::{CpHashConfig, ServerThreads};
use nuthatch_cphash::{CpHash, Rings};
use nuthatch_cuckoo::layout::{EightWay, EightWayClock, Paper, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::settings::{CLASS_MIN, LOG_MIN};
use nuthatch_engine::{AnyEngine, CommonSettings, Engine};
use nuthatch_partition::lockhash::LockHash;
use nuthatch_partition::lockhash::config::LockHashConfig;
use nuthatch_partition::memory::MEMORY_MAX;
use nuthatch_partition::{AndersonLock, Eviction, Lock, Partition};
use serde::{Deserialize, Serialize};

pub use tuning::{EvictionName, LockName, RangeError, ThreadRange, Tuning, TuningError};

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
            Self::Lockhash => match tuning.lock {
                Some(LockName::Anderson) => job.run(lockhash::<AndersonLock<Partition>>),
                Some(LockName::Spin) | None => job.run(lockhash::<SpinLock<Partition>>),
            },
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

    /// Into how many parts it divides its memory at least, of which each must have room for the largest item: with server
    /// threads there are two partitions or more.
    fn parts(self) -> usize {
        if self.has_server_threads() { 2 } else { 1 }
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
    let default = CuckooConfig::from(&settings.common);
    let config = CuckooConfig {
        eviction: settings.eviction().log_policy().unwrap_or(default.eviction),
        ..default
    };
    Cuckoo::new(config).map(Arc::new)
}

fn cphash<D: Rings>(settings: &EngineSettings) -> io::Result<Arc<CpHash<D>>> {
    CpHash::new(settings.cphash()).map(Arc::new)
}

fn lockhash<L: Lock<Partition>>(settings: &EngineSettings) -> io::Result<Arc<LockHash<L>>> {
    LockHash::with_locks(settings.lockhash()).map(Arc::new)
}

fn chained(settings: &EngineSettings) -> io::Result<Arc<Chained>> {
    let default = ChainedConfig::default();
    let locks = match settings.name {
        EngineName::ChainedGlobal | EngineName::ChainedGlobalClock => Locks::Global,
        _ => Locks::Buckets,
    };
    let common = &settings.common;
    let config = ChainedConfig {
        memory_limit: common.memory_limit,
        memory_limit_max: common.limit_max(usize::MAX),
        item_size_max: settings.item_size_max(),
        evicts: common.evicts,
        chunk_min: common.chunk_min.unwrap_or(default.chunk_min),
        growth_factor: common.growth_factor,
        initial_items: common.initial_items,
        locks,
        eviction: PolicyKind::named(&settings.eviction().name()).unwrap_or(default.eviction),
        ..default
    };
    Chained::new(config).map(Arc::new)
}

/// What an engine is built from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineSettings {
    /// Which engine.
    pub name: EngineName,
    /// The settings that every engine has.
    pub common: CommonSettings,
    /// Settings that only some engines have.
    pub tuning: Tuning,
}

impl EngineSettings {
    /// Bytes of the largest item.
    pub fn item_size_max(&self) -> usize {
        self.common.item_size_max(self.name.parts())
    }

    fn cphash(&self) -> CpHashConfig {
        let default = CpHashConfig::default();
        let (common, tuning) = (&self.common, &self.tuning);
        CpHashConfig {
            memory_limit: common.memory_limit,
            memory_limit_max: common.limit_max(MEMORY_MAX),
            item_size_max: self.item_size_max(),
            evicts: common.evicts,
            eviction: self.partition_eviction(),
            initial_items: common.initial_items,
            partitions: tuning.partitions.unwrap_or(default.partitions),
            server_threads: match tuning.server_threads {
                Some(ThreadRange { min, max }) if min == max => ServerThreads::Fixed(min),
                Some(ThreadRange { min, max }) => ServerThreads::Adaptive { min, max },
                None => default.server_threads,
            },
            pin: tuning.pin,
            window: tuning.window.unwrap_or(default.window),
            look_ahead: tuning.look_ahead.unwrap_or(default.look_ahead),
            ..default
        }
    }

    fn lockhash(&self) -> LockHashConfig {
        let (common, partitions) = (&self.common, self.tuning.partitions);
        LockHashConfig {
            memory_limit: common.memory_limit,
            memory_limit_max: common.limit_max(MEMORY_MAX),
            item_size_max: self.item_size_max(),
            evicts: common.evicts,
            eviction: self.partition_eviction(),
            initial_items: common.initial_items,
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
        let most = if self.name.has_partitions() {
            MEMORY_MAX
        } else {
            usize::MAX
        };
        let chunk_min = match self.eviction().log_policy() {
            Some(_) => LOG_MIN,
            None => CLASS_MIN,
        };
        let mut lines = self.common.lines(most, chunk_min);
        if let Some(count) = self.partition_count() {
            lines.push(("partitions", count.to_string()));
        }
        lines.push(("eviction", self.eviction().name()));
        if self.name == EngineName::Lockhash {
            let lock = self.tuning.lock.unwrap_or(LockName::Spin);
            lines.push(("lock", tuning::typed(lock)));
        }
        if self.name.has_server_threads() {
            let (min, max) = self.cphash().threads();
            let range = ThreadRange { min, max };
            lines.push(("server_threads", range.to_string()));
            let pin = self.tuning.pin;
            lines.push(("pin", pin.map_or("no".to_owned(), |core| core.to_string())));
            lines.push(("window", self.cphash().window.to_string()));
            lines.push(("look_ahead", self.cphash().look_ahead.to_string()));
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
            common: CommonSettings {
                memory_limit: 8 << 20,
                ..CommonSettings::default()
            },
            tuning: Tuning {
                eviction,
                ..Tuning::default()
            },
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
            let is_typed = chained.iter().any(|typed| typed.name() == kind.name);
            assert!(is_typed, "{kind:?}: no EvictionName, or not in `kind`");
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

    /// Class of bug: an engine or an eviction that the program has, and that nobody finds.
    #[test]
    fn the_manual_names_every_engine_and_every_eviction() {
        let engines = include_str!("../../../../docs/engines.md");
        let list = between(engines, "| `--engine` |", "\n\n");
        assert_names::<EngineName>("the list", list);
        let flag = between(engines, "| `--eviction NAME` |", "\n");
        assert_names::<EvictionName>("--eviction", flag);
    }
}
