//! Symbolic links.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, readlinkat, statfs};

use crate::sys::posix::owners::check_link;

/// The text of a link. `None` if there is none of that name. What belongs to whom is asked of the link itself, which the
/// name may lose meanwhile. Errors: it belongs neither to this user nor to root.
pub fn own_link(path: &Path) -> io::Result<Option<PathBuf>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let link = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(link) => File::from(link),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let there = link.metadata()?;
    if !there.is_symlink() {
        return Ok(None);
    }
    check_link(path, &there)?;
    let to = readlinkat(&link, c"", Vec::new())?;
    Ok(Some(OsString::from_vec(to.into_bytes()).into()))
}

/// True if the kernel has made the names in this folder: they stand for descriptors of a process (`/proc/1/fd/1`), say.
pub fn is_kernels(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC)
}
