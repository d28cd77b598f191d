//! The engine behind a server: which flags a program has for it, and what the server must know of it.

use std::fmt;
use std::io;
use std::sync::Arc;

use clap::Args;
use nuthatch_engine::{AnyEngine, CommonSettings, ConfigError};
use nuthatch_program::Failure;
use serde::Serialize;

use crate::file::File;

/// The flags that a program has for its engine, beside those of every server. Their long names are keys of the file.
pub trait EngineFlags:
    Args + Serialize + Clone + fmt::Debug + Default + Send + Sync + 'static
{
    /// Takes their values out of a file. Errors: a value has no valid form; the file has a key of another program.
    fn take_from(file: &mut File) -> Result<Self, String>;

    /// These flags, and the file's value for each flag that is not set.
    fn over(self, file: Self) -> Self;

    /// The engine that they ask for. Errors: it has no such settings.
    fn engine(&self, common: CommonSettings) -> Result<ChosenEngine, String>;

    /// Addresses for CPServer's clients, as typed. `None`: the program does not serve these clients.
    fn cpserver(&self) -> Option<Vec<String>>;
}

/// An engine that is not built yet, and what the server must know of it.
pub struct ChosenEngine {
    /// Bytes for items and index.
    pub memory_limit: usize,
    /// Bytes of the largest item.
    pub item_size_max: usize,
    /// False: the settings of size classes (-n, -f) have no effect.
    pub has_size_classes: bool,
    /// A large batch pays for its wait: requests are messages, many of which travel together.
    pub gains_by_large_batches: bool,
    /// The lines that `stats settings` shows for it.
    pub lines: Vec<(&'static str, String)>,
    /// Builds it. Errors: an impossible configuration, as a [`ConfigError`]; too little address space.
    pub build: Box<dyn Fn() -> io::Result<Arc<AnyEngine>> + Send>,
    /// Its items are copies of others', which no file keeps.
    pub holds_copies: bool,
    /// The flag by which a setting is changed that this engine refuses, if it is one of its own flags.
    pub flag: fn(&ConfigError) -> Option<&'static str>,
}

impl fmt::Debug for ChosenEngine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("ChosenEngine");
        out.field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl ChosenEngine {
    /// Builds it. Errors name the flag: the engine cannot have these settings; the system does not give the address
    /// space, or refuses a thread.
    pub fn make(&self) -> Result<Arc<AnyEngine>, Failure> {
        (self.build)().map_err(|error| {
            if error.kind() == io::ErrorKind::OutOfMemory {
                return Failure::run(format!(
                    "-m, --memory-limit-max: the system does not give so much address space: {error}"
                ));
            }
            let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
            match cause.and_then(|cause| flag(cause).or_else(|| (self.flag)(cause))) {
                Some(flag) => Failure::usage(format!("{flag}: {error}")),
                None => error.into(),
            }
        })
    }
}

/// The flag of every server by which a setting is changed that an engine refuses.
fn flag(error: &ConfigError) -> Option<&'static str> {
    Some(match error {
        ConfigError::MemoryTooLow { .. } => "-m",
        ConfigError::MemoryTooHigh { .. } => "-m, --memory-limit-max",
        ConfigError::ItemSize
        | ConfigError::ItemOverHalf
        | ConfigError::ItemOverHalfPartition { .. } => "-I",
        ConfigError::GrowthFactor => "-f",
        ConfigError::ChunkMin => "-n",
        _ => return None,
    })
}
