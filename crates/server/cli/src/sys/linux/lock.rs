//! A lock on a whole file, until it is closed.

use std::fs::File;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Waits for the lock of this open file (fcntl). It has nothing to do with flock(2), by which a script may hold the file
/// for the server's whole life. A file system without locks does without.
pub fn wait(file: &File) {
    let whole = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    while fcntl(file, FcntlArg::F_OFD_SETLKW(&whole)) == Err(Errno::EINTR) {}
}
