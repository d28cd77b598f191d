//! Makes the engine that the settings ask for. Errors name the flag.

use std::io;
use std::sync::Arc;

use nuthatch_engine::{AnyEngine, ConfigError};
use nuthatch_engines::{EngineName, EngineSettings};
use nuthatch_program::Failure;

/// Errors: the engine cannot have these settings; the system does not give the address space, or refuses a thread.
pub fn make(settings: &EngineSettings) -> Result<Arc<AnyEngine>, Failure> {
    EngineName::build(settings).map_err(|error| {
        if error.kind() == io::ErrorKind::OutOfMemory {
            return Failure::run(format!(
                "-m, --memory-limit-max: the system does not give so much address space: {error}"
            ));
        }
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
        match cause.and_then(flag) {
            Some(flag) => Failure::usage(format!("{flag}: {error}")),
            None => error.into(),
        }
    })
}

/// The flag by which a setting is changed that an engine refuses.
fn flag(error: &ConfigError) -> Option<&'static str> {
    Some(match error {
        ConfigError::MemoryTooLow { .. } => "-m",
        ConfigError::MemoryTooHigh { .. } => "-m, --memory-limit-max",
        ConfigError::ItemSize
        | ConfigError::ItemOverHalf
        | ConfigError::ItemOverHalfPartition { .. } => "-I",
        ConfigError::GrowthFactor => "-f",
        ConfigError::ChunkMin => "-n",
        ConfigError::PartitionBlocks { .. } | ConfigError::PartitionCount { .. } => "--partitions",
        ConfigError::ServerThreads | ConfigError::ServerThreadsOverPartitions { .. } => {
            "--server-threads"
        }
        _ => return None,
    })
}
