//! Files, and what keeps them from being replaced.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use crate::sys::posix::owners::check_sticky;

pub use crate::sys::posix::open::{create_new, open_unfollowed, sync_folder};
pub use crate::sys::posix::owners::{Identity, check_own, is_pipe};

/// Errors: the system would refuse to put another file in the place of this one, in this folder.
pub fn check_change(path: &Path, there: &Metadata, folder: &Path) -> io::Result<()> {
    let refused = |words: &str| Err(io::Error::other(words.to_owned()));
    let has = attributes(path);
    if has.contains(StatxAttributes::MOUNT_ROOT) {
        return refused("a mount point, which no file can replace: mount its folder, not the file");
    }
    if has.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND) {
        return refused("it cannot be replaced (chattr -i -a)");
    }
    check_sticky(there, &fs::metadata(folder)?)
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
