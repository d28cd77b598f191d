//! Whether a file can be put under a name, in place of what is there.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::process::geteuid;

use crate::file::unfinished::{OWNER_ONLY, Unfinished, check_name, folder_of, gone_is_fine};

/// Checks that a file may be put under this name: nothing has the name, or a regular file, which is then replaced. Makes
/// nothing, and opens nothing.
///
/// Errors: something else has the name. A device or a pipe would be replaced by a file that no process reads. For a
/// link, the link would be replaced, not the file to which it leads. Or the system would refuse: the file is a mount
/// point, or cannot be changed, or only its owner may replace it. Or the name that the file has until it is complete
/// belongs to another user's file.
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
    let has = attributes(path);
    if has.contains(StatxAttributes::MOUNT_ROOT) {
        return refused("a mount point, which no file can replace: mount its folder, not the file");
    }
    if has.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND) {
        return refused("it cannot be replaced (chattr -i -a)");
    }
    match fs::metadata(folder_of(path)) {
        Ok(folder) => check_sticky(&there, &folder),
        Err(error) => Err(error),
    }
}

/// Errors: in a folder with the sticky bit, as /tmp has, only the owner of a file or of the folder replaces a file.
fn check_sticky(there: &Metadata, folder: &Metadata) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let me = geteuid();
    let may = me.is_root() || [there.uid(), folder.uid()].contains(&me.as_raw());
    match may || folder.mode() & STICKY == 0 {
        true => Ok(()),
        false => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "it belongs to the user {}, who alone may replace it: the folder has the sticky bit",
                there.uid()
            ),
        )),
    }
}

/// What the kernel and the file system tell of a path, as far as they do: before Linux 5.8 a mount point looks like any
/// other file.
fn attributes(path: &Path) -> StatxAttributes {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    match statx(CWD, path, flags, StatxFlags::TYPE) {
        Ok(told) => told.stx_attributes & told.stx_attributes_mask,
        Err(_) => StatxAttributes::empty(),
    }
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
