//! Files and their names: replaces a file as a whole, and checks that a name belongs to a file.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

mod unfinished;

pub use unfinished::{BY_MASK, OWNER_ONLY, Unfinished, remove_unfinished, try_begin};

/// Checks that a file may be put under this name: nothing has the name, or a regular file, which is then replaced.
///
/// Errors: something else has the name. A device or a pipe would be replaced by a file that no process reads. For a
/// link, the link would be replaced, not the file to which it leads.
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

/// Errors: the path is a named pipe. A reader of it waits for a writer, for ever if the path is a mistake, and files
/// are read again by threads that have other work. A pipe that a process was given (`/dev/fd/63`) has no name, and has
/// a writer.
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
