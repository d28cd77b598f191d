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
//! 2. A thread is registered as waiting only while it sleeps, or was woken and has not looked yet. So who reads is not.
//! 3. If there is output, somebody sends, or somebody reads and is awake, or somebody is awake who will look. If the socket is
//!    full, who reads looks after a while: no more than that is promised.
//! 4. If calls wait, somebody reads, or one of them is awake and will look.
//!
//! Who leaves restores 3 and 4 ([`State::leave`]), and so does who has sent ([`State::have_sent`]): by waking one that is
//! registered; and if only the one that reads is left, which sleeps and cannot be woken, by going on to send.

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

    /// Begins to read, or goes on to. `hears_of_room`: whatever it sleeps for, it is woken when a full socket takes bytes.
    pub fn begin_to_read(&mut self, hears_of_room: bool) {
        let roles = &mut self.roles;
        roles.is_reading = true;
        roles.is_sleeping = true;
        roles.watches_room = hears_of_room || roles.is_blocked && !roles.is_sending;
    }

    /// A thread goes that waited, or read. Returns whether it has to send what is left, because who reads sleeps and nobody else
    /// can; and who is to be woken to take its place.
    pub fn leave(&mut self, reads: bool) -> (bool, Option<Waiter>) {
        if reads {
            self.roles.is_reading = false;
            self.roles.is_sleeping = false;
        }
        let is_to_send = self.is_to_send(false) && !self.is_dead();
        if self.roles.is_reading && !is_to_send {
            return (false, None);
        }
        let next = self.somebody();
        // Without a reader, who waits and is not registered is awake, and looks for itself.
        let sends = is_to_send && next.is_none() && self.roles.is_reading && !self.roles.is_blocked;
        self.roles.is_sending |= sends;
        (sends, next)
    }

    /// The thread that sent has sent all, or what the socket took. What was added since, and left to it, somebody has to send.
    pub fn have_sent(&mut self, is_blocked: bool) -> Handover {
        self.roles.is_sending = false;
        self.roles.has_rest = is_blocked;
        self.roles.is_blocked = is_blocked;
        if is_blocked || !self.is_to_send(false) {
            return Handover::Done;
        }
        match self.somebody() {
            Some(waiter) => Handover::To(waiter),
            None => {
                self.roles.is_sending = true;
                Handover::Nobody
            }
        }
    }
}

/// Who sends what is left.
#[derive(Debug)]
pub(crate) enum Handover {
    /// Nothing is left, or who reads sees to it, or the socket is full: then who waits looks again.
    Done,
    /// Somebody who sleeps and is to be woken.
    To(Waiter),
    /// The same as before.
    Nobody,
}
