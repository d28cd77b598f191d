//! Symbolic links.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::sys::posix::owners::check_link;

/// The text of a link. `None` if there is none of that name. What belongs to whom is asked of the name, before and after
/// its text is read. Errors: it belongs neither to this user nor to root; another one has got the name meanwhile.
pub fn own_link(path: &Path) -> io::Result<Option<PathBuf>> {
    let there = match fs::symlink_metadata(path) {
        Ok(there) if there.is_symlink() => there,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    check_link(path, &there)?;
    let to = fs::read_link(path)?;
    let after = fs::symlink_metadata(path)?;
    check_link(path, &after)?;
    match (after.dev(), after.ino()) == (there.dev(), there.ino()) {
        true => Ok(Some(to)),
        false => Err(io::Error::new(
            ErrorKind::ResourceBusy,
            format!("{} was changed meanwhile", path.display()),
        )),
    }
}

/// True if the kernel has made the names in this folder as links: no such are known.
pub fn is_kernels(_folder: &Path) -> bool {
    false
}
