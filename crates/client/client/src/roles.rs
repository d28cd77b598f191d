//! Who sends and who reads, where nobody does it but the threads that call.
//!
//! A call that finds nobody sending sends all that waits, its own bytes among them; nobody waits for more to come. A thread
//! whose reply has not come reads, if nobody does, and hands out what it reads, until its own reply is there. Then it wakes
//! another one that waits. So one thread alone sends and reads by itself, as in a plain loop, and of many threads one at a time
//! works for all.
//!
//! A thread that reads and is awake sends, before it sleeps, what others have left for it. Those that it has just woken add
//! their next requests meanwhile, and all of them go in one write.
//!
//! Invariants, each under the queue's lock:
//! 1. At most one thread is `is_sending`, and at most one `is_reading`.
//! 2. If there is output, somebody sends, or somebody reads and is awake or will be once the socket takes bytes, or somebody who
//!    waits was woken and has not looked yet, or who added it has not.
//! 3. If calls wait, somebody reads, or one of them was woken and has not looked yet.
//!
//! Who leaves restores 2 and 3: [`State::leave`].

use crate::call::Waiter;
use crate::queue::State;

/// Who sends and who reads.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    pub is_sending: bool,
    pub is_reading: bool,
    /// The one that reads waits for the socket.
    pub is_sleeping: bool,
    /// It is woken also when the socket takes bytes.
    pub watches_room: bool,
    /// The one that sent last has bytes left.
    pub has_rest: bool,
    /// The socket took no more of them.
    pub is_blocked: bool,
}

impl State {
    /// Whether a thread is to send now. `reads`: it is the one that reads.
    pub fn is_to_send(&self, reads: bool) -> bool {
        let roles = &self.roles;
        if roles.is_sending || !(self.has_output() || roles.has_rest) {
            return false;
        }
        if roles.is_blocked {
            // Who reads watches for room as well, but not if it fell asleep before.
            return roles.is_reading && !reads && roles.is_sleeping && !roles.watches_room;
        }
        reads || !roles.is_reading || roles.is_sleeping
    }

    /// Begins to read, or goes on to.
    pub fn begin_to_read(&mut self) {
        let roles = &mut self.roles;
        roles.is_reading = true;
        roles.is_sleeping = true;
        roles.watches_room = roles.is_blocked && !roles.is_sending;
    }

    /// A thread goes that waited, or read. Returns who is to take its place.
    pub fn leave(&mut self, reads: bool) -> Option<Waiter> {
        if reads {
            self.roles.is_reading = false;
            self.roles.is_sleeping = false;
        }
        if !self.roles.is_reading || self.is_to_send(false) {
            self.somebody()
        } else {
            None
        }
    }
}
