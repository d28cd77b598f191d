//! Clients in shared memory. While the worker is awake it looks at their rings by itself, and no call of the system tells it
//! of them. Before it sleeps it asks them to ring.

use std::hint::spin_loop;
use std::io;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use mio::Events;
use nuthatch_state::stream::Stream;

use super::Worker;

/// How long a worker looks at its rings before it sleeps, if one of them was in use: a client that has its answer may ask
/// again at once, and to wake a thread takes longer than to serve it.
const AWAKE: Duration = Duration::from_micros(30);

/// Looks between two steps in which it gives its core away and sees what sockets have.
const LOOKS: u32 = 16;

/// The rings of a worker.
#[derive(Default)]
pub(super) struct Rings {
    /// The connections that are rings.
    ids: Vec<usize>,
    /// One of them had something since the worker last slept.
    in_use: bool,
}

impl Rings {
    /// Notes a new connection, if it is a ring.
    pub fn enter(&mut self, id: usize, stream: &mut Stream) {
        if stream.ring().is_some() {
            self.ids.push(id);
        }
    }

    /// Forgets a connection that has closed.
    pub fn leave(&mut self, id: usize, stream: &mut Stream) {
        if stream.ring().is_some() {
            self.ids.retain(|&ring| ring != id);
        }
    }
}

impl Worker {
    /// Waits until there is something to do.
    #[inline]
    pub(super) fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        match self.rings.ids.is_empty() {
            true => self.poll.poll(events, self.patience()),
            false => self.wait_with_rings(events),
        }
    }

    fn wait_with_rings(&mut self, events: &mut Events) -> io::Result<()> {
        let now = Some(Duration::ZERO);
        if self.look_at_rings() || self.patience() == now {
            return self.poll.poll(events, now);
        }
        if std::mem::take(&mut self.rings.in_use) && self.stays_awake(events)? {
            return Ok(());
        }
        for &id in &self.rings.ids {
            if let Some(ring) = self.connections[id].stream.ring() {
                ring.announce();
            }
        }
        // Behind the announcement: what came before it rings no bell.
        let patience = match self.look_at_rings() {
            true => now,
            false => self.patience(),
        };
        self.poll.poll(events, patience)
    }

    /// Looks at the rings for a while. True if there is something to do.
    fn stays_awake(&mut self, events: &mut Events) -> io::Result<bool> {
        let begun = Instant::now();
        while begun.elapsed() < AWAKE {
            for _ in 0..LOOKS {
                if self.look_at_rings() {
                    self.poll.poll(events, Some(Duration::ZERO))?;
                    return Ok(true);
                }
                spin_loop();
            }
            self.poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(true);
            }
            yield_now();
        }
        Ok(false)
    }

    /// Queues the connections whose rings have news, as an event would. True if there are some. What was told before and
    /// could not be used yet is no news.
    fn look_at_rings(&mut self) -> bool {
        let mut found = false;
        for &id in &self.rings.ids {
            let connection = &mut self.connections[id];
            let Some(ring) = connection.stream.ring() else {
                continue;
            };
            let state = &mut connection.state;
            let has_input = ring.has_input() && !state.is_readable();
            let has_room = ring.has_wanted_room() && !state.is_writable();
            if has_input {
                state.saw_input();
            }
            if has_room {
                state.saw_room();
            }
            if has_input || has_room {
                found = true;
                if state.enqueue() {
                    self.ready.push(id);
                }
            }
        }
        self.rings.in_use |= found;
        found
    }
}
