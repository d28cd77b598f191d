//! Who is at the other end of a unix socket.

use std::io;
use std::os::fd::AsFd;

/// The user of the process that connected, or listens.
#[cfg(target_os = "linux")]
pub fn user(socket: &impl AsFd) -> io::Result<u32> {
    use nix::sys::socket::{getsockopt, sockopt};

    Ok(getsockopt(socket, sockopt::PeerCredentials)?.uid())
}

/// The user of the process that connected, or listens.
#[cfg(not(target_os = "linux"))]
pub fn user(socket: &impl AsFd) -> io::Result<u32> {
    let (user, _group) = nix::unistd::getpeereid(socket)?;
    Ok(user.as_raw())
}
