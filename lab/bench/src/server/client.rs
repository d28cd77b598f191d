//! The connections of one thread, driven by readiness events.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};

use crate::server::connection::{Advance, Connection};
use crate::server::scan::Scanner;
use crate::server::script::Script;
use crate::server::stream::Stream;

/// How often a wait checks whether it must end early.
pub const LOOK: Duration = Duration::from_millis(50);

/// Decides what the connections of a thread send next, and counts the replies.
pub trait Course {
    /// The block for a connection that is ready for one; nothing if it is to rest.
    fn next(&mut self) -> Option<usize>;

    /// Some requests have been answered.
    fn advance(&mut self, advance: &Advance);
}

/// Each block once, uncounted.
impl Course for Range<usize> {
    fn next(&mut self) -> Option<usize> {
        Iterator::next(self)
    }

    fn advance(&mut self, _advance: &Advance) {}
}

/// Connections of one thread.
pub struct Client {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
}

impl Client {
    /// Opens connections.
    pub fn connect(
        target: SocketAddr,
        conns: usize,
        tls: bool,
        scanner: &Scanner,
    ) -> Result<Self, String> {
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let mut connections = Vec::with_capacity(conns);
        for index in 0..conns {
            let stream =
                Stream::connect(target, tls).map_err(|error| format!("{target}: {error}"))?;
            let mut connection = Connection::new(stream, scanner);
            poll.registry()
                .register(
                    connection.socket(),
                    Token(index),
                    Interest::READABLE | Interest::WRITABLE,
                )
                .map_err(|error| error.to_string())?;
            connections.push(connection);
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            connections,
        })
    }

    /// Sends blocks until every connection rests, all its requests answered.
    pub fn drive<C: Course>(
        &mut self,
        script: &Script,
        scanner: &Scanner,
        course: &mut C,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let mut busy = 0;
        for connection in &mut self.connections {
            if let Some(block) = course.next() {
                connection.begin(script, block)?;
                busy += 1;
            }
        }
        while busy > 0 {
            if let Err(error) = self.poll.poll(&mut self.events, Some(LOOK))
                && error.kind() != ErrorKind::Interrupted
            {
                return Err(error.to_string());
            }
            // Relaxed: the flag publishes no other memory.
            if stop.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            for event in &self.events {
                let connection = &mut self.connections[event.token().0];
                if event.is_writable() {
                    connection.send(script)?;
                }
                if !event.is_readable() {
                    continue;
                }
                let advance = connection.receive(script, scanner)?;
                course.advance(&advance);
                if advance.block_done {
                    match course.next() {
                        Some(block) => connection.begin(script, block)?,
                        None => busy -= 1,
                    }
                }
            }
        }
        Ok(())
    }
}
