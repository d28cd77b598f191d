//! Files by their names: how one is replaced as a whole, and what else may have a file's name.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

mod unfinished;

pub use unfinished::{BY_MASK, OWNER_ONLY, Unfinished, remove_unfinished, try_begin};

/// Whether a file may appear under this name: there is none, or a regular file, which is replaced then.
///
/// Errors: there is something else. A device or a pipe would be gone, and a file in its place that nobody reads; of a link
/// the name would be replaced, not the file it leads to.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(there) => there.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    match kind {
        _ if kind.is_file() => Ok(()),
        _ if kind.is_symlink() => Err(io::Error::other("a link, not a file: name the file itself")),
        _ => Err(io::Error::other("not a file: it would be replaced by one")),
    }
}

/// Errors: it is a pipe with a name, which waits for somebody who writes: for ever, by mistake. Files are read again by threads
/// that have other things to do. A pipe that a process was given (`/dev/fd/63`) has no name, and a writer.
pub fn check_no_fifo(path: &Path) -> io::Result<()> {
    let real = fs::canonicalize(path).and_then(fs::symlink_metadata);
    match real.is_ok_and(|real| real.file_type().is_fifo()) {
        true => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "a pipe, not a file",
        )),
        false => Ok(()),
    }
}
