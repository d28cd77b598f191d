//! Files.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use crate::sys::posix::owners::check_sticky;

pub use crate::sys::posix::open::{create_new, open_unfollowed, sync_folder};
pub use crate::sys::posix::owners::{Identity, check_own, is_pipe};

/// Errors: the system would refuse to put another file in the place of this one, in this folder. (What flags and mounts
/// would refuse shows when it is tried.)
pub fn check_change(_path: &Path, there: &Metadata, folder: &Path) -> io::Result<()> {
    check_sticky(there, &fs::metadata(folder)?)
}
