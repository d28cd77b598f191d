//! Configuration errors: the reasons why an engine cannot have a configuration.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;

/// Why an engine cannot have a configuration. One type for all engines, each of which has some of the causes: a caller
/// that makes an engine by its name handles one type only. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The memory limit is too low.
    MemoryTooLow {
        /// The configured limit.
        asked: usize,
        /// The lowest limit.
        least: usize,
    },
    /// The memory limit, or the value to which it may be raised, is too high.
    MemoryTooHigh {
        /// The highest limit.
        most: usize,
    },
    /// The item limit is less than any engine takes, or more.
    ItemSize,
    /// The largest item would take more than half of the memory limit.
    ItemOverHalf,
    /// The largest item would take more than half of a partition.
    ItemOverHalfPartition {
        /// The memory of a partition.
        partition: usize,
    },
    /// The growth factor of size classes is not possible.
    GrowthFactor,
    /// The smallest chunk is too large.
    ChunkMin,
    /// Too many partitions for the memory limit, or none.
    PartitionBlocks {
        /// The highest number possible.
        most: u32,
    },
    /// Too many partitions or too few.
    PartitionCount {
        /// The configured number.
        asked: usize,
        /// The highest number possible.
        most: usize,
    },
    /// Requests under way at a time: none, or too many.
    Window {
        /// The configured number.
        asked: usize,
        /// The highest number possible.
        most: usize,
    },
    /// No server thread, or a minimum of server threads above the maximum.
    ServerThreads,
    /// More server threads than partitions.
    ServerThreadsOverPartitions {
        /// Server threads.
        threads: usize,
        /// Partitions.
        partitions: usize,
    },
}

impl Display for ConfigError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::MemoryTooLow { asked, least } => {
                let (least, asked) = (least >> 10, asked >> 10);
                write!(out, "memory limit: at least {least} KiB, not {asked} KiB")
            }
            Self::MemoryTooHigh { most } => {
                write!(out, "memory limit: at most {} GiB", most >> 30)
            }
            Self::ItemSize => out.write_str("item size limit: from 1 KiB to 1 GiB"),
            Self::ItemOverHalf => {
                out.write_str("item size limit: at most half of the memory limit")
            }
            Self::ItemOverHalfPartition { partition } => write!(
                out,
                "item size limit: at most half of a partition's memory, which is {} KiB; \
                 fewer partitions have more each",
                partition >> 10
            ),
            Self::GrowthFactor => out.write_str("growth factor: a number over 1"),
            Self::ChunkMin => out.write_str("smallest chunk: at most 256 KiB"),
            Self::PartitionBlocks { most } => write!(
                out,
                "partitions: from 1 to {most} (four blocks of 4 KiB each at least)"
            ),
            Self::PartitionCount { asked, most } => {
                write!(out, "partitions: from 2 to {most}, not {asked}")
            }
            Self::Window { asked, most } => {
                write!(out, "window: from 1 to {most} requests, not {asked}")
            }
            Self::ServerThreads => {
                out.write_str("server threads: at least 1, and no fewer at most than at least")
            }
            Self::ServerThreadsOverPartitions {
                threads,
                partitions,
            } => write!(
                out,
                "server threads: {threads} cannot share {partitions} partitions, of which each must hold the largest item \
                 several times"
            ),
        }
    }
}

impl Error for ConfigError {}

/// An invalid input: making an engine reports all failures as I/O errors.
impl From<ConfigError> for io::Error {
    fn from(error: ConfigError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_found_again_in_the_error_of_io() {
        let cause = ConfigError::MemoryTooLow {
            asked: 4 << 10,
            least: 1 << 20,
        };
        let error = io::Error::from(cause);
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(
            error.to_string(),
            "memory limit: at least 1024 KiB, not 4 KiB"
        );
        let found = error.into_inner().map(|inner| inner.downcast());
        assert_eq!(found.and_then(Result::ok), Some(Box::new(cause)));
    }
}
