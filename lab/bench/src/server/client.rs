//! The connections of one thread, driven by readiness events.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use crate::server::connection::{Advance, Connection};
use crate::server::scan::Scanner;
use crate::server::script::Script;
use crate::server::stream::{PATIENCE, Stream};

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

/// Connections of one thread: groups of one to each server.
pub struct Client {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    /// Servers, among which keys are divided.
    servers: usize,
    /// Of each group, its connections that have not answered all of their block.
    waiting: Vec<usize>,
    /// How long all servers may be silent.
    patience: Duration,
}

impl Client {
    /// Opens so many connections to each server.
    pub fn connect(
        targets: &[SocketAddr],
        conns: usize,
        tls: bool,
        scanner: &Scanner,
    ) -> Result<Self, String> {
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let mut connections = Vec::with_capacity(conns * targets.len());
        for target in (0..conns).flat_map(|_| targets) {
            let stream =
                Stream::connect(*target, tls).map_err(|error| format!("{target}: {error}"))?;
            let mut connection = Connection::new(stream, scanner);
            poll.registry()
                .register(
                    connection.socket(),
                    Token(connections.len()),
                    Interest::READABLE | Interest::WRITABLE,
                )
                .map_err(|error| error.to_string())?;
            connections.push(connection);
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            connections,
            servers: targets.len(),
            waiting: vec![0; conns],
            patience: PATIENCE,
        })
    }

    /// Sends blocks until every group rests, all its requests answered. There is a script for each server.
    pub fn drive<C: Course>(
        &mut self,
        scripts: &[Script],
        scanner: &Scanner,
        course: &mut C,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let servers = self.servers;
        let mut busy = 0;
        for (group, waiting) in self.connections.chunks_mut(servers).zip(&mut self.waiting) {
            if let Some(block) = course.next() {
                *waiting = begin(group, scripts, block)?;
                busy += 1;
            }
        }
        let mut heard = Instant::now();
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
            if !self.events.is_empty() {
                heard = Instant::now();
            } else if heard.elapsed() > self.patience {
                return Err(self.silent());
            }
            for event in &self.events {
                let index = event.token().0;
                let connection = &mut self.connections[index];
                let script = &scripts[index % servers];
                if event.is_writable() {
                    connection.send(script)?;
                }
                if !event.is_readable() || !connection.waits() {
                    continue;
                }
                let advance = connection.receive(script, scanner)?;
                course.advance(&advance);
                if !advance.block_done {
                    continue;
                }
                let waiting = &mut self.waiting[index / servers];
                *waiting -= 1;
                if *waiting > 0 {
                    continue;
                }
                match course.next() {
                    Some(block) => {
                        let group = &mut self.connections[index / servers * servers..][..servers];
                        *waiting = begin(group, scripts, block)?;
                    }
                    None => busy -= 1,
                }
            }
        }
        Ok(())
    }

    /// What is said of the servers if none answers: the first of which a connection waits.
    fn silent(&mut self) -> String {
        let mut waiting = self.connections.iter_mut().filter(|one| one.waits());
        let server = waiting.find_map(|one| one.socket().peer_addr().ok());
        let server = server.map_or(String::new(), |server| format!("{server}: "));
        format!("{server}no answer for {} seconds", self.patience.as_secs())
    }
}

/// Begins a block on the connections of a group whose server has a part of it. Returns how many those are.
fn begin(group: &mut [Connection], scripts: &[Script], block: usize) -> Result<usize, String> {
    let mut waiting = 0;
    for (connection, script) in group.iter_mut().zip(scripts) {
        if !script.requests(block).is_empty() {
            connection.begin(script, block)?;
            waiting += 1;
        }
    }
    Ok(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Items;
    use crate::server::scan::Protocol;
    use std::net::TcpListener;

    /// Class of fault: a server that stopped stops its bench, and all that runs behind it.
    #[test]
    fn a_server_that_answers_nothing_ends_the_run_and_is_named() {
        let items = Items::alike(100, 10, 9);
        let script = Script::preload(Protocol::Memcached, &items, &[1]);
        let scanner = Scanner::new(Protocol::Memcached, &items);
        // The system connects, and nobody reads.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let mut client = Client::connect(&[target], 1, false, &scanner).unwrap();
        client.patience = Duration::ZERO;
        let mut blocks = 0..1;
        let ended = client.drive(&[script], &scanner, &mut blocks, &AtomicBool::new(false));
        let error = ended.unwrap_err();
        assert_eq!(error, format!("{target}: no answer for 0 seconds"));
    }
}
