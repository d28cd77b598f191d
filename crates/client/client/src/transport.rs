//! A socket that never waits, with TLS or without, and how a thread waits for it.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::memory::SharedEnd;
pub(crate) use crate::socket::Socket;
#[cfg(feature = "tls")]
use crate::tls::Session;

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: Socket,
    #[cfg(feature = "tls")]
    session: Option<Session>,
}

/// What a socket is ready for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    pub to_read: bool,
    pub to_write: bool,
}

impl Transport {
    pub fn new(
        socket: Socket,
        #[cfg(feature = "tls")] session: Option<Session>,
    ) -> io::Result<Self> {
        socket.set_up()?;
        Ok(Self {
            socket,
            #[cfg(feature = "tls")]
            session,
        })
    }

    #[cfg(feature = "tokio")]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// No more is sent and received.
    pub fn shut_down(&self) {
        // It may be over already.
        let _ = self.socket.shut_down();
    }

    /// Whether who waits to read also hears of room that a send missed. Nobody else can wait for it then.
    pub fn tells_of_room(&self) -> bool {
        matches!(self.socket, Socket::Ring(_))
    }

    /// Sends what the socket takes of these bytes, and returns how many it took. 0: none at present.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            return session.send(&self.socket, bytes);
        }
        at_present(|| (&self.socket).write(bytes)).map(|sent| sent.unwrap_or(0))
    }

    /// Sends what is left of bytes that were taken. True: nothing is.
    pub fn flush(&self) -> io::Result<bool> {
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            return session.flush(&self.socket);
        }
        Ok(true)
    }

    /// Reads what is there. None: nothing is at present. Some(0): the server has closed the connection.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            return session.receive(&self.socket, room);
        }
        at_present(|| (&self.socket).read(room))
    }

    /// Whether there may be more after so many bytes of this room: then another read tells.
    pub fn may_have_more(&self, length: usize, room: usize) -> bool {
        // TLS reads a record at a time.
        #[cfg(feature = "tls")]
        if self.session.is_some() {
            return true;
        }
        length == room
    }

    /// Whether the server has closed the connection, asked while it owes nothing: then anything to be read is the end. It does not
    /// wait.
    pub fn is_over(&self) -> bool {
        let is_plain = !matches!(self.socket, Socket::Ring(_));
        // TLS has messages of its own, and a ring's bell may have rung for nothing: there only what the system says counts.
        #[cfg(feature = "tls")]
        let is_plain = is_plain && self.session.is_none();
        let end = match is_plain {
            true => PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR,
            false => PollFlags::POLLHUP | PollFlags::POLLERR,
        };
        wait_for(self.socket.as_fd(), PollFlags::POLLIN, Instant::now())
            .is_ok_and(|found| found.intersects(end))
    }

    /// Waits until the socket is ready for something of this, or until the deadline.
    pub fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        if let Socket::Ring(ring) = &self.socket {
            return wait_for_ring(ring, deadline);
        }
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::POLLIN, wanted.to_read);
        flags.set(PollFlags::POLLOUT, wanted.to_write);
        let found = wait_for(self.socket.as_fd(), flags, deadline)?;
        // What has happened to the connection is told by the next read or write.
        let is_over =
            found.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL);
        Ok(Ready {
            to_read: wanted.to_read && (is_over || found.contains(PollFlags::POLLIN)),
            to_write: wanted.to_write && (is_over || found.contains(PollFlags::POLLOUT)),
        })
    }
}

/// Waits for what a descriptor is ready for. Nothing: the deadline is there, or the wait was interrupted.
fn wait_for(
    descriptor: BorrowedFd<'_>,
    wanted: PollFlags,
    deadline: Instant,
) -> io::Result<PollFlags> {
    let mut descriptors = [PollFd::new(descriptor, wanted)];
    let left = deadline.saturating_duration_since(Instant::now());
    // Rounded up: else the last part of a millisecond would be spent in a busy loop.
    let timeout = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    match poll(&mut descriptors, timeout) {
        Ok(_) => Ok(descriptors[0].revents().unwrap_or(PollFlags::empty())),
        Err(Errno::EINTR) => Ok(PollFlags::empty()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until there is something to read in a ring, or room that a send missed. It looks once and sleeps: to look for a while
/// costs more than it brings where the server runs on the same core, or other processes want that (docs/notebook.md).
fn wait_for_ring(ring: &SharedEnd, deadline: Instant) -> io::Result<Ready> {
    let rings =
        ring.may_sleep() && !wait_for(ring.as_fd(), PollFlags::POLLIN, deadline)?.is_empty();
    Ok(Ready {
        // A bell may also tell of the end, which a read finds, as it takes the ring out of the bell.
        to_read: rings || ring.has_input(),
        to_write: ring.has_wanted_room(),
    })
}

/// Tries until it is not interrupted. None: the socket has to be waited for.
pub(crate) fn at_present(
    mut attempt: impl FnMut() -> io::Result<usize>,
) -> io::Result<Option<usize>> {
    loop {
        match attempt() {
            Ok(length) => return Ok(Some(length)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
