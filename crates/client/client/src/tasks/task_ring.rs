//! A ring in memory, for the two tasks of a connection. The one that reads is also told of room, and tells the other.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::task::coop::consume_budget;

use crate::memory::SharedEnd;

/// Rings that are taken out of a bell at once: most often there is one.
const RINGS: usize = 64;

/// A ring pair in memory.
#[derive(Debug)]
pub(crate) struct TaskRing {
    ring: SharedEnd,
    /// Its bell, as tokio waits for it.
    bell: UnixStream,
    /// There is room again, or the server has gone.
    room: Notify,
}

impl TaskRing {
    /// It has to be called in a runtime with I/O.
    pub fn new(ring: SharedEnd) -> io::Result<Self> {
        let bell = ring.as_fd().try_clone_to_owned()?;
        Ok(Self {
            bell: UnixStream::from_std(bell.into())?,
            ring,
            room: Notify::new(),
        })
    }

    pub fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        self.ring.read(room)
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.ring.write(bytes)
    }

    /// Waits until there is something to be read. One task does this again and again.
    pub async fn readable(&self) -> io::Result<()> {
        let ring = &self.ring;
        loop {
            // With a server that answers at once it would never let others have their turn.
            consume_budget().await;
            if ring.take_wanted_room() {
                self.room.notify_one();
            }
            if ring.has_input() {
                return Ok(());
            }
            if !ring.may_sleep() {
                continue;
            }
            self.bell.readable().await?;
            match self.bell.try_read(&mut [0; RINGS]) {
                Ok(1..) => ring.rise(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => ring.rise(),
                // It is over, as the next read finds behind the last bytes, and the next write.
                Ok(0) | Err(_) => {
                    self.room.notify_one();
                    return Ok(());
                }
            }
        }
    }

    /// Waits until a write that found no room would find some. Another task has to wait in [`TaskRing::readable`].
    pub async fn writable(&self) {
        self.room.notified().await;
    }
}

impl AsFd for TaskRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
