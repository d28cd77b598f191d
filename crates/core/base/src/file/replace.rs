//! Whether a file can be put under a name, in place of what is there.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::file::unfinished::{OWNER_ONLY, Unfinished, check_name, folder_of, gone_is_fine};
use crate::sys::files;

/// Checks that a file may be put under this name: nothing has the name, or a regular file, which is then replaced. Makes
/// nothing, and opens nothing.
///
/// Errors: something else has the name. A device or a pipe would be replaced by a file that no process reads. For a
/// link, the link would be replaced, not the file to which it leads. Or the system would refuse, as far as that can be
/// told: the file is a mount point, or cannot be changed, or only its owner may replace it. Or the name that the file has
/// until it is complete belongs to another user's file.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    check_name(path)?;
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let kind = there.file_type();
    let refused = |words: &str| Err(io::Error::other(words.to_owned()));
    if kind.is_symlink() {
        return refused("a link, not a file: name the file itself");
    }
    if !kind.is_file() {
        return refused("not a file: it would be replaced by one");
    }
    files::check_change(path, &there, folder_of(path))
}

/// The file of a trial, in the folder of what is to be replaced.
const TRIAL: &str = ".nuthatch-trial";

/// Checks that a file can be put under this name, and does in its folder what that needs: it makes a file, writes it to
/// the disk, gives it another name, and removes it.
///
/// The trial has a name of its own: another server may be writing to `path` now, and one that was killed amid that has
/// left an unfinished file, which a start tells of later.
pub fn try_replace(path: &Path) -> io::Result<()> {
    check_replaceable(path)?;
    let trial = folder_of(path).join(TRIAL);
    let tried = Unfinished::begin(&trial, OWNER_ONLY)
        .and_then(|file| file.finish(&trial))
        .and_then(|()| fs::remove_file(&trial).or_else(gone_is_fine));
    match tried {
        // Another process tries the same now.
        Err(error) if error.kind() == ErrorKind::ResourceBusy => Ok(()),
        tried => {
            tried.map_err(|error| io::Error::new(error.kind(), format!("a trial there: {error}")))
        }
    }
}
