//! The options with which a program opens a store. All PEs pass the same.

use std::hash::{BuildHasher, RandomState};

use nuthatch_cluster::{Clocks, Config, ConfigError};

use crate::store::OWN;

/// The options of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of PEs that do nothing but serve, which are the first ones. 0: every PE serves, in a thread beside
    /// the program's.
    pub servers: usize,
    /// Bytes of each server. OpenSHMEM's memory is of one size on all PEs: each PE sets as much aside.
    pub memory: usize,
    /// Bytes of the largest item: its header, key and value. At most a quarter of the memory; with less than some forty times
    /// as much memory a server evicts early, see [`advice`](Self::advice).
    pub item_size_max: usize,
    /// False: a full server refuses instead of evicting.
    pub evicts: bool,
    /// Entries of each PE's directory of pointers.
    pub directory: usize,
}

impl Default for Options {
    fn default() -> Self {
        let config = Config::default();
        Self {
            servers: 0,
            memory: config.memory,
            item_size_max: config.item_size_max,
            evicts: config.evicts,
            directory: config.directory,
        }
    }
}

impl Options {
    /// Words of symmetric memory that a store on `pes` PEs takes from each of them.
    pub fn symmetric_words(&self, pes: usize) -> Result<usize, ConfigError> {
        Ok(self.config(pes)?.symmetric_words(pes)? + OWN)
    }

    /// Advice if a store on `pes` PEs would work badly: too little memory for such large items.
    pub fn advice(&self, pes: usize) -> Result<Option<String>, ConfigError> {
        Ok(self.config(pes)?.advice())
    }

    /// True if every PE serves.
    pub(crate) fn is_co_located(&self) -> bool {
        self.servers == 0
    }

    /// What PEs compare.
    pub(crate) fn settings(&self) -> [(&'static str, u64); 5] {
        let Self {
            servers,
            memory,
            item_size_max,
            evicts,
            directory,
        } = self;
        [
            ("servers", *servers as u64),
            ("memory", *memory as u64),
            ("item_size_max", *item_size_max as u64),
            ("evicts", u64::from(*evicts)),
            ("directory", *directory as u64),
        ]
    }

    pub(crate) fn config(&self, pes: usize) -> Result<Config, ConfigError> {
        let servers = match self.is_co_located() {
            true => pes,
            false => self.servers,
        };
        if !self.is_co_located() && servers >= pes {
            return Err(ConfigError::Setting(format!(
                "{servers} servers of {pes} PEs: at least one PE is to be a client"
            )));
        }
        Ok(Config {
            servers,
            memory: self.memory,
            memory_max: self.memory,
            item_size_max: self.item_size_max,
            evicts: self.evicts,
            sessions: 1,
            directory: self.directory,
            clocks: Clocks::FirstServers,
            seed: RandomState::new().hash_one(servers),
            ..Config::default()
        })
    }
}
