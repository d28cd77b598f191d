//! The settings that only some engines have: flags of the server and of the benches alike.

use std::error::Error;
use std::fmt;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use nuthatch_cphash::affinity::usable;
use nuthatch_cphash::config::WINDOW_MAX;
use nuthatch_cuckoo::config::{LogPolicyKind, POLICIES};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::EngineName;

/// Partitions of the paper's LockHash (section 6.1).
const PAPER_PARTITIONS: usize = 4096;

/// Bytes of a partition, at least, if there are as many as in the paper.
const PARTITION_LEAST: usize = 64 << 10;

/// Which item is evicted when memory is short. Each engine has some of these: [`EngineName::evictions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionName {
    name: &'static str,
    help: &'static str,
}

impl EvictionName {
    /// CLOCK.
    pub const CLOCK: Self = Self {
        name: "clock",
        help: "For cuckoo and chained: one recency bit, in size classes, as in MemC3",
    };
    /// Strict LRU.
    pub const LRU: Self = Self {
        name: "lru",
        help: "For cphash, lockhash and chained: strict LRU, the least recently used item",
    };
    /// At random.
    pub const RANDOM: Self = Self {
        name: "random",
        help: "For cphash and lockhash: the first item of a random bucket",
    };

    /// The name, as it is typed.
    pub fn name(self) -> String {
        self.name.to_owned()
    }

    /// The policy of a log with this name.
    pub fn log_policy(self) -> Option<&'static LogPolicyKind> {
        LogPolicyKind::named(self.name)
    }

    /// The policies of a log, and CLOCK in size classes.
    pub(crate) fn of_cuckoo() -> &'static [Self] {
        // CLOCK stands behind the policies of a log.
        &ALL[..=POLICIES.len()]
    }
}

/// All evictions: the policies of a log first.
static ALL: LazyLock<Vec<EvictionName>> = LazyLock::new(|| {
    let of_log = POLICIES.iter().map(|kind| EvictionName {
        name: kind.name,
        help: kind.help,
    });
    let others = [EvictionName::CLOCK, EvictionName::LRU, EvictionName::RANDOM];
    of_log.chain(others).collect()
});

impl ValueEnum for EvictionName {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.help))
    }
}

impl Serialize for EvictionName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for EvictionName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        static NAMES: LazyLock<Vec<&str>> =
            LazyLock::new(|| ALL.iter().map(|eviction| eviction.name).collect());
        let text = String::deserialize(from)?;
        let known = ALL.iter().find(|eviction| eviction.name == text);
        known
            .copied()
            .ok_or_else(|| D::Error::unknown_variant(&text, &NAMES))
    }
}

/// The name of a value, as it is typed.
pub(crate) fn typed(value: impl ValueEnum) -> String {
    let possible = value.to_possible_value();
    possible.map_or_else(String::new, |possible| possible.get_name().to_owned())
}

/// The names of the engines that have a property.
fn engines_with(has: impl Fn(EngineName) -> bool) -> String {
    let all = EngineName::value_variants().iter().copied();
    let names: Vec<String> = all.filter(|&engine| has(engine)).map(typed).collect();
    names.join(", ")
}

/// Server threads as typed: a fixed number, or a range. In a file, a number or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "NumberOrRange", into = "String")]
pub struct ThreadRange {
    /// The fewest threads.
    pub min: usize,
    /// The most threads.
    pub max: usize,
}

impl fmt::Display for ThreadRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(out, "{}", self.min)
        } else {
            write!(out, "{}-{}", self.min, self.max)
        }
    }
}

/// A text that is not a number of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeError(String);

impl fmt::Display for RangeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(out, "`{text}` is neither a number nor a range like 1-4")
    }
}

impl Error for RangeError {}

/// The forms of [`ThreadRange`] in a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number from 1, or a range like \"1-4\"")]
enum NumberOrRange {
    Number(u64),
    Range(String),
}

impl TryFrom<NumberOrRange> for ThreadRange {
    type Error = RangeError;

    fn try_from(typed: NumberOrRange) -> Result<Self, RangeError> {
        match typed {
            NumberOrRange::Number(number) => Self::parse(&number.to_string()),
            NumberOrRange::Range(range) => Self::parse(&range),
        }
    }
}

impl From<ThreadRange> for String {
    fn from(range: ThreadRange) -> Self {
        range.to_string()
    }
}

impl ThreadRange {
    /// `2`, or `1-4`.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let (min, max) = text.split_once('-').unwrap_or((text, text));
        match (min.parse(), max.parse()) {
            (Ok(min), Ok(max)) if 0 < min && min <= max => Ok(Self { min, max }),
            _ => Err(RangeError(text.to_owned())),
        }
    }
}

/// The locks of lockhash's partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockName {
    /// A spinlock, which the paper found to be the fastest
    Spin,
    /// Anderson's array of places in a queue
    Anderson,
}

/// The settings that only some engines have.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Tuning {
    /// Partitions of cphash and lockhash [default: 4096 for lockhash, 2 or more for cphash]
    #[arg(long, value_name = "NUM")]
    pub partitions: Option<usize>,

    /// Threads of cphash that carry out requests: a fixed number, or a range such as 1-4, within which the load decides
    /// [default: 1 to the number of cores]
    #[arg(long, value_name = "NUM", value_parser = ThreadRange::parse)]
    pub server_threads: Option<ThreadRange>,

    /// Pin the first server thread of cphash to this core, the others to the next ones that the process may use
    #[arg(long, value_name = "CORE")]
    pub pin: Option<usize>,

    /// Requests that a client of cphash has under way at most, from 1 to 8192 [default: 1024; bench engine
    /// --working-set: --batch]
    #[arg(long, value_name = "NUM")]
    pub window: Option<usize>,

    /// Whether a server thread of cphash loads what a line of messages needs before it serves them [default: true]
    #[arg(long, value_name = "true|false")]
    pub look_ahead: Option<bool>,

    /// The lock of a partition of lockhash [default: spin]
    #[arg(long, value_enum)]
    pub lock: Option<LockName>,

    /// Which item is evicted when memory is short [default: s3-fifo for cuckoo, lru for cphash, lockhash and chained]
    #[arg(long, value_enum)]
    pub eviction: Option<EvictionName>,
}

/// A setting that none of the engines has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TuningError {
    /// A flag of other engines.
    Flag {
        /// The flag.
        flag: &'static str,
        /// The engines that it is for.
        engines: String,
    },
    /// An eviction of other engines.
    Eviction(EvictionName),
}

impl fmt::Display for TuningError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag { flag, engines } => write!(out, "{flag}: only for {engines}"),
            Self::Eviction(eviction) => {
                let engines = engines_with(|engine| engine.has_eviction(*eviction));
                let name = eviction.name();
                write!(out, "--eviction {name}: only for {engines}")
            }
        }
    }
}

impl Error for TuningError {}

impl Tuning {
    /// An error if something is set that none of these engines has.
    pub fn check(&self, engines: &[EngineName]) -> Result<(), TuningError> {
        let has_partitions: fn(EngineName) -> bool = EngineName::has_partitions;
        let has_threads: fn(EngineName) -> bool = EngineName::has_server_threads;
        let has_lock: fn(EngineName) -> bool = |engine| engine == EngineName::Lockhash;
        for (flag, is_set, has) in [
            ("--partitions", self.partitions.is_some(), has_partitions),
            (
                "--server-threads",
                self.server_threads.is_some(),
                has_threads,
            ),
            ("--pin", self.pin.is_some(), has_threads),
            ("--window", self.window.is_some(), has_threads),
            ("--look-ahead", self.look_ahead.is_some(), has_threads),
            ("--lock", self.lock.is_some(), has_lock),
        ] {
            if is_set && !engines.iter().copied().any(has) {
                let engines = engines_with(has);
                return Err(TuningError::Flag { flag, engines });
            }
        }
        match self.eviction {
            Some(eviction) if !engines.iter().any(|engine| engine.has_eviction(eviction)) => {
                Err(TuningError::Eviction(eviction))
            }
            _ => Ok(()),
        }
    }

    /// These settings, and the others for each that is not set.
    pub fn over(self, other: Self) -> Self {
        Self {
            partitions: self.partitions.or(other.partitions),
            server_threads: self.server_threads.or(other.server_threads),
            pin: self.pin.or(other.pin),
            window: self.window.or(other.window),
            look_ahead: self.look_ahead.or(other.look_ahead),
            lock: self.lock.or(other.lock),
            eviction: self.eviction.or(other.eviction),
        }
    }

    /// The eviction that was set, if this engine has it.
    pub fn eviction_of(&self, engine: EngineName) -> Option<EvictionName> {
        self.eviction
            .filter(|&eviction| engine.has_eviction(eviction))
    }

    /// LockHash as in the paper: as many partitions as the paper has. The engine's default has fewer, which leaves room
    /// for the largest item in each.
    pub fn for_small_items(&self, engine: EngineName, memory: usize) -> Tuning {
        let most = (memory / PARTITION_LEAST).max(1);
        let papers = (engine == EngineName::Lockhash).then(|| PAPER_PARTITIONS.min(most));
        Tuning {
            partitions: self.partitions.or(papers),
            ..self.clone()
        }
    }

    /// As many requests under way as there are in a batch, or as there may be.
    pub fn for_batch(&self, engine: EngineName, batch: usize) -> Tuning {
        let window = engine.has_server_threads().then(|| batch.min(WINDOW_MAX));
        Tuning {
            window: self.window.or(window),
            ..self.clone()
        }
    }

    /// Divides `threads` between an engine's own and those that send it requests, each on a core of its own if there
    /// are so many. Returns the number of the latter, and the engine's settings.
    pub fn divided(&self, engine: EngineName, threads: usize) -> (usize, Tuning) {
        if !engine.has_server_threads() {
            return (threads, self.clone());
        }
        let half = (threads / 2).max(1);
        let range = ThreadRange {
            min: half,
            max: half,
        };
        let servers = self.server_threads.unwrap_or(range);
        let clients = threads.saturating_sub(servers.max).max(1);
        let tuning = Tuning {
            server_threads: Some(servers),
            pin: self.pin.or_else(|| core_behind(clients)),
            ..self.clone()
        };
        (clients, tuning)
    }
}

/// The core behind those of so many other threads, which take the cores that the process may use in turn. None where
/// threads cannot be pinned.
fn core_behind(threads: usize) -> Option<usize> {
    let cores = usable().ok()?;
    cores.get(threads % cores.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_threads() {
        assert_eq!(ThreadRange::parse("3"), Ok(ThreadRange { min: 3, max: 3 }));
        assert_eq!(
            ThreadRange::parse("1-4"),
            Ok(ThreadRange { min: 1, max: 4 })
        );
        for text in ["", "0", "0-2", "3-2", "1-", "-1", "1-2-3", "many"] {
            assert!(ThreadRange::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_no_named_engine_can_be_told_is_refused() {
        let tuning = Tuning {
            partitions: Some(2),
            ..Tuning::default()
        };
        let error = tuning.check(&[EngineName::Cuckoo]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--partitions: only for cphash, cphash-single, lockhash"
        );
        let both = [EngineName::Cuckoo, EngineName::Lockhash];
        assert_eq!(tuning.check(&both), Ok(()));
        let tuning = Tuning {
            pin: Some(0),
            ..Tuning::default()
        };
        assert!(tuning.check(&both).is_err());
        assert_eq!(tuning.check(&[EngineName::Cphash]), Ok(()));
        let tuning = Tuning {
            lock: Some(LockName::Anderson),
            ..Tuning::default()
        };
        assert_eq!(tuning.check(&both), Ok(()));
        let error = tuning.check(&[EngineName::Cphash]).unwrap_err();
        assert_eq!(error.to_string(), "--lock: only for lockhash");
        assert_eq!(Tuning::default().check(&[EngineName::Cuckoo]), Ok(()));
    }

    #[test]
    fn an_eviction_that_no_named_engine_has_is_refused() {
        let checked = |eviction, engine| {
            let tuning = Tuning {
                eviction: Some(eviction),
                ..Tuning::default()
            };
            tuning.check(&[engine])
        };
        for (eviction, engine) in [
            (ALL[0], EngineName::Cuckoo),
            (EvictionName::CLOCK, EngineName::CuckooPaper),
            (EvictionName::LRU, EngineName::Chained),
            (EvictionName::RANDOM, EngineName::Cphash),
        ] {
            assert_eq!(checked(eviction, engine), Ok(()), "{engine:?}");
        }
        let error = checked(EvictionName::RANDOM, EngineName::Cuckoo).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--eviction random: only for cphash, cphash-single, lockhash"
        );
        let error = checked(EvictionName::LRU, EngineName::Cuckoo).unwrap_err();
        assert!(error.to_string().contains("chained"), "{error}");
        let error = checked(ALL[0], EngineName::CuckooPaper).unwrap_err();
        assert_eq!(error.to_string(), "--eviction s3-fifo: only for cuckoo");
    }

    #[test]
    fn small_items_have_the_papers_partitions() {
        let tuning = Tuning::default();
        let partitions = |engine, memory| tuning.for_small_items(engine, memory).partitions;
        assert_eq!(partitions(EngineName::Lockhash, 1 << 30), Some(4096));
        assert_eq!(partitions(EngineName::Lockhash, 32 << 20), Some(512));
        assert_eq!(partitions(EngineName::Cphash, 1 << 30), None);
        let told = Tuning {
            partitions: Some(7),
            ..Tuning::default()
        };
        assert_eq!(told.for_small_items(EngineName::Lockhash, 1 << 30), told);
    }

    #[test]
    fn a_batch_is_under_way_as_a_whole_if_nothing_else_is_set() {
        let tuning = Tuning::default();
        let window = |engine, batch| tuning.for_batch(engine, batch).window;
        assert_eq!(window(EngineName::Cphash, 512), Some(512));
        assert_eq!(window(EngineName::Cphash, 1 << 20), Some(WINDOW_MAX));
        assert_eq!(window(EngineName::Lockhash, 512), None);
        let told = Tuning {
            window: Some(7),
            ..Tuning::default()
        };
        assert_eq!(told.for_batch(EngineName::Cphash, 512), told);
    }

    #[test]
    fn threads_are_divided_where_the_engine_has_its_own() {
        let tuning = Tuning::default();
        assert_eq!(tuning.divided(EngineName::Lockhash, 2), (2, tuning.clone()));
        for (threads, clients) in [(1, 1), (2, 1), (5, 3), (8, 4)] {
            let (asking, told) = tuning.divided(EngineName::Cphash, threads);
            assert_eq!(asking, clients, "{threads}");
            let cores = usable().unwrap();
            assert_eq!(told.pin, Some(cores[clients % cores.len()]), "{threads}");
        }
        let range = ThreadRange { min: 1, max: 3 };
        let tuning = Tuning {
            server_threads: Some(range),
            pin: Some(0),
            ..Tuning::default()
        };
        let (asking, told) = tuning.divided(EngineName::Cphash, 4);
        assert_eq!((asking, told), (1, tuning));
    }
}
