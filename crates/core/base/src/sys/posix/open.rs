//! How files and folders are opened of which somebody else may have made the name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes a file with these permissions. Errors: something has the name.
pub fn create_new(path: &Path, permissions: u32) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(permissions)
        .open(path)
}

/// Opens what has this name itself: errors if that is a link. Waits for no other end of a pipe, as a usual open would.
pub fn open_unfollowed(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
}

/// Opens what a path leads to. Waits for no other end of a pipe.
pub fn open_followed(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.custom_flags(libc::O_NONBLOCK).open(path)
}

/// Returns when the names in a folder are on the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
