//! Errors in the settings of a server.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

/// An error in the settings of a server. The error of a file does not repeat the file's content, which may be a
/// password.
#[derive(Debug)]
#[non_exhaustive]
pub enum SettingsError {
    /// Settings contradict each other.
    Contradiction(&'static str),
    /// A file of certificates, keys or passwords cannot be read, or is invalid.
    File(PathBuf, Box<dyn Error + Send + Sync>),
    /// The TLS library refuses.
    Tls(Box<dyn Error + Send + Sync>),
}

impl SettingsError {
    /// The error of a file.
    pub fn file(path: &Path, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::File(path.to_owned(), error.into())
    }

    /// The error of the TLS library.
    pub fn tls(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Tls(error.into())
    }
}

impl Display for SettingsError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction(words) => out.write_str(words),
            Self::File(path, error) => write!(out, "{}: {error}", path.display()),
            Self::Tls(error) => write!(out, "TLS: {error}"),
        }
    }
}

impl Error for SettingsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Contradiction(_) => None,
            Self::File(_, error) | Self::Tls(error) => Some(&**error),
        }
    }
}

/// An invalid input: a start of the server reports all errors as errors of I/O.
impl From<SettingsError> for io::Error {
    fn from(error: SettingsError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}
