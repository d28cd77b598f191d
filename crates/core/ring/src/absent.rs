//! Where processes share no memory: there are no ends.

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::Want;

/// One end of a ring pair.
pub struct End(Infallible);

/// What the other process needs.
pub struct Offer {
    /// The memory of both rings.
    pub memory: OwnedFd,
    /// Its side of the bell.
    pub bell: OwnedFd,
}

impl End {
    /// An error: this system has no such memory.
    pub fn new() -> io::Result<(Self, Offer)> {
        Err(ErrorKind::Unsupported.into())
    }

    /// The same.
    pub fn of(_: Offer) -> io::Result<Self> {
        Err(ErrorKind::Unsupported.into())
    }

    /// The socket that is readable when the other side rings.
    pub fn bell(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    /// True if a read would find something.
    pub fn has_input(&self) -> bool {
        match self.0 {}
    }

    /// True if a write would find room.
    pub fn has_room(&self) -> bool {
        match self.0 {}
    }

    /// From now on the other side rings.
    pub fn announce(&mut self, _: Want) {
        match self.0 {}
    }

    /// Tells the other side that nothing more comes.
    pub fn finish(&self) -> io::Result<()> {
        match self.0 {}
    }
}

impl Read for End {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

impl Write for End {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
