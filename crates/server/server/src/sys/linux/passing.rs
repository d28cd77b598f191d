//! Descriptors that go from process to process.

use std::io;
use std::os::fd::OwnedFd;

use nix::sys::socket::MsgFlags;

/// A peer that has closed is an error, and no signal.
pub const SENDING: MsgFlags = MsgFlags::MSG_NOSIGNAL;

/// No program that is started inherits what comes.
pub const RECEIVING: MsgFlags = MsgFlags::MSG_CMSG_CLOEXEC;

/// What is left to do for a descriptor that has come: nothing.
pub fn settle(_descriptor: &OwnedFd) -> io::Result<()> {
    Ok(())
}
