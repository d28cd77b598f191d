//! A ring pair as a server that waits for the events of many sockets has it.

use std::sync::Arc;

use crate::{End, Want};

/// The server's end of a ring pair.
pub struct Served {
    /// The end.
    pub end: End,
    /// Output waits for room.
    pub wants_room: bool,
    /// Those that hold it are counted, and there is a limit.
    _permit: Arc<()>,
}

impl Served {
    /// That of a new client.
    pub fn new(end: End, permit: Arc<()>) -> Self {
        Self {
            end,
            wants_room: false,
            _permit: permit,
        }
    }

    /// True if a read would find something.
    #[inline]
    pub fn has_input(&self) -> bool {
        self.end.has_input()
    }

    /// True if output waits, and a write would find room.
    #[inline]
    pub fn has_wanted_room(&self) -> bool {
        self.wants_room && self.end.has_room()
    }

    /// From now on an event tells of bytes, and of room if output waits for it, as for a socket. Whoever is about to wait
    /// for events calls this, and looks behind it at what is there.
    pub fn announce(&mut self) {
        self.end.announce(match self.wants_room {
            true => Want::BytesOrRoom,
            false => Want::Bytes,
        });
    }
}
