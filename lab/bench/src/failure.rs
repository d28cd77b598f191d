//! Why a bench ended early.

use std::fmt::{self, Display};
use std::io;

/// Why a bench ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Its options cannot be meant so.
    Usage(String),
    /// They were meant well, and it did not work.
    Run(String),
}

impl Failure {
    /// Something about the options.
    pub fn usage(words: impl Into<String>) -> Self {
        Self::Usage(words.into())
    }
}

/// What was said without more is about the run.
impl From<String> for Failure {
    fn from(words: String) -> Self {
        Self::Run(words)
    }
}

/// Engines call a configuration that cannot be an invalid input; it came from the options.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidInput => Self::Usage(error.to_string()),
            _ => Self::Run(error.to_string()),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(words) | Self::Run(words) => out.write_str(words),
        }
    }
}
