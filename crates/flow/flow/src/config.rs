//! The configuration of a table, and its errors.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::{fmt, io};

use crate::entry::{Entry, Slot};
use crate::eviction::Eviction;
use crate::layout::{Layout, Shape};
use crate::matching::Vector;

/// The largest number of slots, 2^32: bucket number and 32-bit tag have no bit of the hash in common.
pub const ENTRIES_MAX: u64 = 1 << 32;

/// The configuration of a table.
///
/// ```
/// use nuthatch_flow::{Config, Entry, Eviction, Layout};
///
/// let mut cache = Config::new(1 << 16)
///     .layout(Layout::Blp2x4)
///     .eviction(Eviction::PBLRU)
///     .entry(Entry::Tag32)
///     .build()?;
/// cache.insert(0x1234_5678_9abc_def0, 7)?;
/// assert_eq!(cache.lookup(0x1234_5678_9abc_def0), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// Slots; rounded up: see [`Config::rounded_entries`].
    pub entries: u64,
    /// Which slots may hold a key.
    pub layout: Layout,
    /// Which entry is replaced when they are all taken.
    pub eviction: Eviction,
    /// The format of an entry.
    pub entry: Entry,
    /// The seed of the eviction's random numbers.
    pub seed: u64,
    /// The comparison that lookups run.
    pub vector: Vector,
}

impl Config {
    /// The paper's table: 2-4 bounded linear probing over 16-bit tags and values, with random
    /// eviction and a random seed, by the fastest comparison of this machine.
    pub fn new(entries: u64) -> Self {
        Self {
            entries,
            layout: Layout::default(),
            eviction: Eviction::default(),
            entry: Entry::default(),
            // The standard library gets its keys from the operating system.
            seed: RandomState::new().hash_one(0x666c_6f77_u32),
            vector: Vector::detect(),
        }
    }

    /// Which slots may hold a key.
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// Which entry is replaced when a key's slots are all taken.
    pub fn eviction(self, eviction: Eviction) -> Self {
        Self { eviction, ..self }
    }

    /// The format of an entry.
    pub fn entry(self, entry: Entry) -> Self {
        Self { entry, ..self }
    }

    /// The seed of the eviction's random numbers, for reproducible runs.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The comparison that lookups run; by default [`Vector::detect`].
    pub fn vector(self, vector: Vector) -> Self {
        Self { vector, ..self }
    }

    /// The number of slots that a table will have: buckets are a power of two, at least 8.
    pub fn rounded_entries(&self) -> u64 {
        self.buckets() * self.layout.slots() as u64
    }

    /// Bytes of all slots, those of the spare buckets included.
    pub fn bytes(&self) -> u64 {
        let spare = self.layout.spare_buckets() * self.layout.slots();
        (self.rounded_entries() + spare as u64) * self.entry.bytes() as u64
    }

    /// An error if no table can have this configuration.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (layout, eviction) = (self.layout, self.eviction);
        if self.entries > ENTRIES_MAX {
            return Err(ConfigError::TooManyEntries(self.entries));
        }
        if !eviction.suits(layout) {
            return Err(ConfigError::Unsuited { layout, eviction });
        }
        if !self.vector.is_available() {
            return Err(ConfigError::NoSuchVector(self.vector));
        }
        Ok(())
    }

    /// An error if no table that threads share can have this configuration.
    pub fn validate_shared(&self) -> Result<(), ConfigError> {
        self.validate()?;
        if !self.eviction.suits_shared() {
            return Err(ConfigError::EvictionNotShared(self.eviction));
        }
        if self.entry == Entry::Hash64 {
            return Err(ConfigError::EntryNotShared(self.entry));
        }
        Ok(())
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.layout.buckets_for(self.entries.min(ENTRIES_MAX))
    }

    /// Also checks that layout and entry are those of the types.
    pub(crate) fn check<L: Shape, T: Slot>(&self) -> Result<(), ConfigError> {
        if self.layout != L::LAYOUT || self.entry != T::ENTRY {
            return Err(ConfigError::OtherTypes {
                layout: self.layout,
                entry: self.entry,
            });
        }
        self.validate()
    }
}

/// Why no table can have a configuration.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// More than [`ENTRIES_MAX`].
    TooManyEntries(u64),
    /// The eviction does not work on the layout.
    Unsuited {
        /// The layout.
        layout: Layout,
        /// The eviction.
        eviction: Eviction,
    },
    /// The eviction has state outside of the slots, which threads cannot share.
    EvictionNotShared(Eviction),
    /// The entry is more than one atomic word.
    EntryNotShared(Entry),
    /// This machine does not have the instructions.
    NoSuchVector(Vector),
    /// The table's types are not those of the configuration.
    OtherTypes {
        /// The configuration's layout.
        layout: Layout,
        /// The configuration's entry.
        entry: Entry,
    },
    /// The system has no memory for the table.
    Memory(io::Error),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyEntries(entries) => {
                write!(out, "{entries} entries are too many: {ENTRIES_MAX} at most")
            }
            Self::Unsuited { layout, eviction } => match eviction {
                Eviction::RandomSecond => write!(
                    out,
                    "eviction {eviction} needs a layout with two buckets a key: {layout} has {}",
                    layout.buckets()
                ),
                _ => write!(
                    out,
                    "eviction {eviction} needs buckets of several slots: {layout} has {} each",
                    layout.slots()
                ),
            },
            Self::EvictionNotShared(eviction) => write!(
                out,
                "threads cannot share a table with eviction {eviction}: \
                 it has state outside of the slots"
            ),
            Self::EntryNotShared(entry) => write!(
                out,
                "threads cannot share a table of entries {entry}: they are not one atomic word"
            ),
            Self::NoSuchVector(vector) => {
                write!(out, "this machine does not have {}", vector.name())
            }
            Self::OtherTypes { layout, entry } => write!(
                out,
                "the configuration has {layout} and {entry}, the table's types differ"
            ),
            Self::Memory(error) => write!(out, "no memory for the table: {error}"),
        }
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Memory(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ConfigError {
    fn from(error: io::Error) -> Self {
        Self::Memory(error)
    }
}
