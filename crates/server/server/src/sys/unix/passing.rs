//! Descriptors that go from process to process.

use std::io;
use std::os::fd::OwnedFd;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::MsgFlags;

/// A peer that has closed is an error, and no signal: Rust's runtime ignores SIGPIPE.
pub const SENDING: MsgFlags = MsgFlags::empty();

/// As far as the kernel goes: see [`settle`].
pub const RECEIVING: MsgFlags = MsgFlags::empty();

/// What is left to do for a descriptor that has come: no program that is started inherits it.
pub fn settle(descriptor: &OwnedFd) -> io::Result<()> {
    fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_inherits_what_has_come() {
        let file = tempfile::tempfile().unwrap();
        let copy: OwnedFd = file.into();
        fcntl(&copy, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        settle(&copy).unwrap();
        let flags = fcntl(&copy, FcntlArg::F_GETFD).unwrap();
        assert_eq!(FdFlag::from_bits_retain(flags), FdFlag::FD_CLOEXEC);
    }
}
