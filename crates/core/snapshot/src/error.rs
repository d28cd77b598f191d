//! The errors of a file of items.

use std::path::PathBuf;
use std::{fmt, io};

/// Why a file was not written, or not loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error of the system.
    Io(PathBuf, io::Error),
    /// It is not of this format.
    NotASnapshot(PathBuf),
    /// It is of a later version.
    Version(PathBuf, u32),
    /// It has changed since it was written, or ends too early: near this byte.
    Damaged(PathBuf, u64),
    /// The caller's `progress` returned a break.
    Stopped(PathBuf),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(out, "{}: {error}", path.display()),
            Self::NotASnapshot(path) => write!(out, "{}: no file of items", path.display()),
            Self::Version(path, version) => {
                write!(
                    out,
                    "{}: of version {version}, which is later than this program's",
                    path.display()
                )
            }
            Self::Damaged(path, at) => {
                write!(out, "{}: damaged near byte {at}", path.display())
            }
            Self::Stopped(path) => write!(out, "{}: stopped", path.display()),
        }
    }
}

/// A stopped load becomes an interrupted call.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Stopped(_) => io::ErrorKind::Interrupted,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            _ => None,
        }
    }
}
