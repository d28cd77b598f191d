//! Files and their names: replaces a file as a whole, and checks that a name belongs to a file, and a file to this user.
//!
//! What opens files of a server is there on Unix alone, where the server is.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

#[cfg(all(unix, not(nuthatch_portable)))]
mod own;
mod replace;
mod unfinished;
#[cfg(all(test, unix, not(nuthatch_portable)))]
mod unix_tests;

#[cfg(all(unix, not(nuthatch_portable)))]
pub use own::{check_appended, open_appended, open_in_place, open_trusted};
pub use replace::{check_replaceable, try_replace};
pub use unfinished::{BY_MASK, OWNER_ONLY, Unfinished, remove_unfinished};

use crate::sys::files::is_pipe;

/// Errors: the path is a named pipe. A reader of it waits for a writer, for ever if the path is a mistake, and files
/// are read again by threads that have other work. A pipe that a process was given (`/dev/fd/63`) has no name, and has
/// a writer.
pub fn check_no_fifo(path: &Path) -> io::Result<()> {
    let real = fs::canonicalize(path).and_then(fs::symlink_metadata);
    match real.is_ok_and(|real| is_pipe(&real)) {
        true => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "a pipe, not a file",
        )),
        false => Ok(()),
    }
}
