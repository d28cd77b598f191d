//! The settings of a store. Every PE of a job gets the same ones, which [`agree`](crate::agree) checks.

use std::fmt;

use nuthatch_fabric::NoMemory;

use crate::block::SESSIONS_MAX;
use crate::classes::UNIT;
use crate::layout::Layout;

/// Whether clients read and write blocks themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operations {
    /// As measured costs suggest.
    #[default]
    Chosen,
    /// Themselves, wherever they can.
    Direct,
    /// Never: every operation is a message to the server.
    Active,
}

/// Whose clock decides what has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clocks {
    /// The moments that callers give: there is one clock, as in one process, or no clock that advances by itself.
    #[default]
    Callers,
    /// The first server's: callers' clocks may differ.
    FirstServers,
}

/// A safeguard of the protocol that is left out, so that tests can show that they need it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// None is left out.
    #[default]
    None,
    /// Readers believe equal versions, whatever the order in which the words were read.
    NoChecksum,
    /// Writers lock a block whose head is behind its tail.
    LockBeforeHead,
    /// A page changes its class while sessions may access its blocks.
    NoQuiescence,
}

/// The store's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The number of servers, which are the first PEs.
    pub servers: usize,
    /// Bytes of each server, for blocks, the index, and its own bookkeeping of them.
    pub memory: usize,
    /// Bytes to which that may be raised while it runs.
    pub memory_max: usize,
    /// Bytes of the largest item: header, key and value.
    pub item_size_max: usize,
    /// False: a full server refuses instead of evicting.
    pub evicts: bool,
    /// Sessions of each PE: the threads that use the store at the same time.
    pub sessions: usize,
    /// Entries of each session's pointer directory.
    pub directory: usize,
    /// Buckets of each server's table; by default as many as an eighth of the memory holds.
    pub buckets: Option<usize>,
    /// Direct or active.
    pub operations: Operations,
    /// Whose clock decides.
    pub clocks: Clocks,
    /// Seeds the keys' hash and the checksum: the same on all PEs, and secret.
    pub seed: u64,
    #[doc(hidden)]
    pub fault: Fault,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            servers: 1,
            memory: 64 << 20,
            memory_max: 64 << 20,
            item_size_max: 1 << 20,
            evicts: true,
            sessions: 1,
            directory: 1 << 16,
            buckets: None,
            operations: Operations::Chosen,
            clocks: Clocks::Callers,
            seed: 0,
            fault: Fault::None,
        }
    }
}

/// The least memory of a server.
pub const MEMORY_MIN: usize = 128 << 10;

/// Bytes of a page: the least (few in a model), and the usual most.
const PAGE_MIN: usize = if cfg!(loom) { 256 } else { 4 << 10 };
const PAGE_USUAL: usize = 1 << 20;

/// The least number of a server's pages that most sizes of items can share.
const PAGES_GOOD: usize = 32;

/// The most memory of a server: blocks of 64 bytes are numbered by 32 bits, of which one may be wasted.
pub const MEMORY_MAX: usize = 128 << 30;

/// The most entries of a session's directory: 8 GiB.
const DIRECTORY_MAX: usize = 1 << 28;

/// Why a store cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A setting is out of its range.
    Setting(String),
    /// The fabric does not have enough symmetric memory.
    Memory(NoMemory),
    /// A PE has other settings than the first one. All PEs get this error.
    Unequal {
        /// The first PE that has others.
        pe: usize,
        /// Which ones.
        differences: Vec<Difference>,
    },
}

/// A setting that is not the same on two PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub name: &'static str,
    /// What it is on the first PE.
    pub first: u64,
    /// What it is on the other one.
    pub other: u64,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(text) => f.write_str(text),
            Self::Memory(none) => none.fmt(f),
            Self::Unequal { pe, differences } => {
                let listed: Vec<_> = differences
                    .iter()
                    .map(|of| format!("{} {} instead of {}", of.name, of.other, of.first))
                    .collect();
                write!(
                    f,
                    "PE {pe} has other settings than PE 0, and all PEs must have the same: {}",
                    listed.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl From<NoMemory> for ConfigError {
    fn from(none: NoMemory) -> Self {
        Self::Memory(none)
    }
}

fn refuse<T>(text: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Setting(text.into()))
}

impl Config {
    /// Words of a page: a 64th of the memory, or what the largest item needs.
    pub(crate) fn page_words(&self) -> usize {
        let share = (self.memory / 64).next_power_of_two() / 2;
        let least = self.item_size_max.next_power_of_two();
        let bytes = share.clamp(PAGE_MIN, PAGE_USUAL).max(least);
        bytes / 8 / UNIT * UNIT
    }

    /// Pages that there is room for.
    pub(crate) fn pages(&self) -> usize {
        let table = self.bucket_count() * crate::bucket::WORDS * 8;
        (self.memory_max.saturating_sub(table) / (self.page_words() * 8)).max(1)
    }

    /// What makes the store work badly, if something does: too few pages. A page is as large as the largest item at
    /// least, and belongs to one of some forty size classes.
    pub fn advice(&self) -> Option<String> {
        let (pages, page) = (self.pages(), self.page_words() * 8);
        (pages < PAGES_GOOD).then(|| {
            format!(
                "a server has {pages} pages of {} KiB for all sizes of items: it evicts early and moves pages often; give \
                 it {} MiB, or smaller items at most",
                page >> 10,
                (PAGES_GOOD * page * 4 / 3).div_ceil(1 << 20)
            )
        })
    }

    /// Buckets of a server's table, a power of two.
    pub(crate) fn bucket_count(&self) -> usize {
        let bytes = crate::bucket::WORDS * 8;
        let wanted = self.buckets.unwrap_or(self.memory / 8 / bytes);
        wanted.max(2).next_power_of_two()
    }

    /// Words of symmetric memory that a store on `pes` PEs takes from each of them. A fabric is to be opened with them.
    pub fn symmetric_words(&self, pes: usize) -> Result<usize, ConfigError> {
        Ok(Layout::new(self, pes)?.words())
    }

    /// Checks the settings for `pes` PEs.
    pub(crate) fn check(&self, pes: usize) -> Result<(), ConfigError> {
        if self.servers == 0 || self.servers > pes {
            return refuse(format!(
                "{} servers of {pes} PEs: at least one, and each is a PE",
                self.servers
            ));
        }
        if self.memory < MEMORY_MIN || self.memory_max < self.memory {
            return refuse(format!(
                "a server has at least {} KiB, and its memory's limit is not below its memory",
                MEMORY_MIN >> 10
            ));
        }
        if self.memory_max > MEMORY_MAX {
            return refuse(format!("a server has at most {} GiB", MEMORY_MAX >> 30));
        }
        if self.item_size_max < 256 || self.item_size_max > self.memory / 4 {
            return refuse(format!(
                "an item of up to {} bytes: at least 256, and at most a quarter of a server's memory",
                self.item_size_max
            ));
        }
        if u32::try_from(self.item_size_max).is_err() {
            return refuse(
                "an item has fewer than 4 GiB: blocks and messages have 32 bits for its length",
            );
        }
        if self.directory > DIRECTORY_MAX {
            return refuse(format!(
                "a directory has at most {DIRECTORY_MAX} entries, of 32 bytes each"
            ));
        }
        if self.sessions == 0 || pes * self.sessions >= SESSIONS_MAX {
            return refuse(format!(
                "at least 1 and fewer than {SESSIONS_MAX} sessions in all"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_no_memory_holds_is_refused() {
        let with = |directory| {
            let config = Config {
                directory,
                ..Config::default()
            };
            config.symmetric_words(2)
        };
        assert!(with(DIRECTORY_MAX).is_ok());
        for directory in [DIRECTORY_MAX + 1, usize::MAX] {
            assert!(matches!(with(directory), Err(ConfigError::Setting(_))));
        }
    }

    #[test]
    fn few_pages_are_warned_of() {
        let config = Config::default();
        assert_eq!(config.advice(), None);
        let few = Config {
            item_size_max: 16 << 20,
            ..config
        };
        let advice = few.advice().unwrap();
        assert!(advice.contains("3 pages of 16384 KiB"), "{advice}");
        let config = Config {
            memory: 683 << 20,
            memory_max: 683 << 20,
            ..few
        };
        assert!(
            advice.contains("683 MiB") && config.advice().is_none(),
            "{advice}"
        );
    }
}
