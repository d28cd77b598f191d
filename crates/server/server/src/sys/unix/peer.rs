//! Who is at the other end of a unix socket.

use std::io;
use std::os::fd::AsFd;

use nix::unistd::getpeereid;

/// The user of the process that connected, or listens.
pub fn user(socket: &impl AsFd) -> io::Result<u32> {
    let (user, _group) = getpeereid(socket)?;
    Ok(user.as_raw())
}
