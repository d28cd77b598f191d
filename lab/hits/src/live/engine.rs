//! Engines in this process, under a real memory limit.

use std::fmt::{self, Display};
use std::mem::MaybeUninit;
use std::str::FromStr;
use std::sync::Arc;

use clap::ValueEnum;
use nuthatch_engine::stats::MORE_MEMORY;
use nuthatch_engine::{
    AnyEngine, AnyHandle, AnyValue, Clock, CommonSettings, Engine, Handle, Item, Key, Op, Replies,
    Reply, Request, Store,
};
use nuthatch_engines::{EngineName, EngineSettings, EvictionName, Tuning};

use super::{Cache, MemoryUse, Values};

/// Requests between two pieces of the engine's background work, and places that a piece looks at.
const MAINTENANCE: usize = 64;

/// One for each of [`MORE_MEMORY`].
pub type MoreHits = [u64; MORE_MEMORY.len()];

/// An engine by name, and its eviction.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineChoice {
    /// As it was typed.
    text: String,
    name: EngineName,
    tuning: Tuning,
}

impl FromStr for EngineChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, eviction) = match text.split_once(':') {
            Some((name, eviction)) => (name, Some(eviction)),
            None => (text, None),
        };
        let name = by_name::<EngineName>(name, "engine")?;
        let eviction = eviction.map(|eviction| by_name::<EvictionName>(eviction, "eviction"));
        let tuning = Tuning {
            eviction: eviction.transpose()?,
            ..Tuning::default()
        };
        tuning.check(&[name]).map_err(|error| error.to_string())?;
        let text = text.to_owned();
        Ok(Self { text, name, tuning })
    }
}

impl Display for EngineChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

fn by_name<N: ValueEnum>(name: &str, what: &str) -> Result<N, String> {
    N::from_str(name, false).map_err(|_| {
        let names = N::value_variants().iter().filter_map(N::to_possible_value);
        let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
        format!("`{name}` is no {what}; there are {}", names.join(", "))
    })
}

/// An engine under replay.
pub struct EngineCache {
    engine: Arc<AnyEngine>,
    handle: AnyHandle,
    clock: Clock,
    requests: usize,
    values: Values,
    answer: Answer,
}

impl EngineCache {
    /// An empty engine with this memory limit, in bytes. Errors: the limit is less than it takes.
    pub fn new(choice: &EngineChoice, memory_limit: u64) -> Result<Self, String> {
        let memory_limit = usize::try_from(memory_limit).unwrap_or(usize::MAX);
        let settings = EngineSettings {
            name: choice.name,
            common: CommonSettings {
                memory_limit,
                memory_limit_max: Some(memory_limit),
                ..CommonSettings::default()
            },
            tuning: choice.tuning.clone(),
        };
        let engine = EngineName::build(&settings).map_err(|error| error.to_string())?;
        Ok(Self {
            handle: engine.handle(),
            engine,
            clock: Clock::start(),
            requests: 0,
            values: Values::default(),
            answer: Answer::default(),
        })
    }

    /// Additional hits that it would have had with each step of [`MORE_MEMORY`], by its own estimate.
    pub fn more_hits(&self) -> Option<MoreHits> {
        self.engine.stats().log.map(|log| log.more_hits)
    }

    fn maintain(&mut self) {
        self.requests += 1;
        if self.requests.is_multiple_of(MAINTENANCE) {
            self.handle.maintain(self.clock.now(), MAINTENANCE);
        }
    }
}

impl Cache for EngineCache {
    fn get(&mut self, key: &[u8]) -> Result<bool, String> {
        self.maintain();
        let key = Key::new(key, self.engine.hasher());
        let request = Request { key, op: Op::Get };
        self.answer.hit = false;
        self.handle
            .execute(self.clock.now(), &[request], &mut self.answer);
        Ok(self.answer.hit)
    }

    fn set(&mut self, key: &[u8], size: u32) -> Result<(), String> {
        self.maintain();
        let key = Key::new(key, self.engine.hasher());
        let op = Op::Store(Store::set(self.values.of(size)));
        self.handle
            .execute(self.clock.now(), &[Request { key, op }], &mut self.answer);
        Ok(())
    }

    fn memory(&mut self) -> MemoryUse {
        MemoryUse {
            used: Some(self.engine.stats().memory_used),
            ..MemoryUse::default()
        }
    }
}

/// Receives whether a get hit; has room for the value, which is not read.
#[derive(Default)]
struct Answer {
    hit: bool,
    room: Vec<MaybeUninit<u8>>,
}

impl Replies<AnyValue> for Answer {
    fn begin(&mut self, _index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.hit = true;
        if self.room.len() < item.value_len {
            self.room.resize(item.value_len, MaybeUninit::new(0));
        }
        &mut self.room[..item.value_len]
    }

    fn commit(&mut self, _index: usize) {}

    fn retract(&mut self, _index: usize) {
        self.hit = false;
    }

    fn large(&mut self, _index: usize, _item: &Item, _value: AnyValue) {
        self.hit = true;
    }

    fn done(&mut self, _index: usize, _reply: Reply) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_as_typed() {
        for (text, right) in [
            ("cuckoo", true),
            ("lockhash:random", true),
            ("cphash:lru", true),
            ("nest", false),
            ("lockhash:never", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<EngineChoice>().is_ok(), right, "{text}");
        }
    }

    #[test]
    fn every_engine_finds_what_it_was_given() {
        for name in EngineName::value_variants() {
            let name = name.to_possible_value().unwrap().get_name().to_owned();
            let mut cache = EngineCache::new(&name.parse().unwrap(), 64 << 20).unwrap();
            for size in [0, 1, 100, 20_000] {
                let key = format!("key {size}").into_bytes();
                assert_eq!(cache.get(&key), Ok(false), "{name}");
                cache.set(&key, size).unwrap();
                assert_eq!(cache.get(&key), Ok(true), "{name}, {size}");
            }
            // Larger than an item may be: not stored, and no error.
            cache.set(b"large", 2 << 20).unwrap();
            assert_eq!(cache.get(b"large"), Ok(false), "{name}");
            assert!(cache.memory().used.unwrap() > 20_000);
        }
    }

    #[test]
    fn a_limit_that_is_too_small_is_an_error() {
        assert!(EngineCache::new(&"cuckoo".parse().unwrap(), 1000).is_err());
    }
}
