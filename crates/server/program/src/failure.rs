//! Why a command ended early, and the exit code that says so.

use std::fmt::{self, Display};
use std::io;
use std::process::ExitCode;

/// Why a command ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command line, or the file that it names, is invalid: exit code 2, as clap's own errors.
    Usage(String),
    /// The command line is valid, but the run failed (a file, the data in it, a server, the system): exit code 1.
    Run(String),
}

impl Failure {
    /// A failure of the command line.
    pub fn usage(words: impl Display) -> Self {
        Self::Usage(words.to_string())
    }

    /// A failure of the run.
    pub fn run(words: impl Display) -> Self {
        Self::Run(words.to_string())
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// The same as a number.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Run(_) => 1,
        }
    }
}

/// A plain text is a failure of the run.
impl From<String> for Failure {
    fn from(words: String) -> Self {
        Self::Run(words)
    }
}

/// Engines report an impossible configuration as an invalid input; it came from the command line.
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

impl std::error::Error for Failure {}
