//! One connection: bytes to send, bytes received, and the requests that wait for answers.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;

use crate::tally::Kind;

/// Bytes read at a time.
const BUFFER: usize = 64 << 10;

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// What it does.
    pub step: Step,
    /// When its operation was due.
    pub due: Instant,
    /// The operation's last request: with its answer the place that it took is free.
    pub is_last: bool,
}

/// What a request does; items go by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Gets so many items from this one on. `then_set`: and stores it again.
    Get {
        /// The first one.
        from: u64,
        /// How many.
        count: u16,
        /// The get is the first half of an operation.
        then_set: bool,
    },
    /// Stores an item. `restores`: because it was missed.
    Set {
        /// The item.
        number: u64,
        /// It was missed.
        restores: bool,
    },
    /// Deletes an item.
    Delete(u64),
}

impl Step {
    /// The kind of operation that it belongs to.
    pub fn kind(self) -> Kind {
        match self {
            Self::Get {
                then_set: false, ..
            } => Kind::Get,
            Self::Get { then_set: true, .. } => Kind::Set,
            Self::Set {
                restores: false, ..
            } => Kind::Set,
            Self::Set { restores: true, .. } => Kind::Restore,
            Self::Delete(_) => Kind::Delete,
        }
    }
}

/// A connection.
pub struct Connection {
    socket: TcpStream,
    /// Bytes to send, of which the first are sent.
    out: Vec<u8>,
    sent: usize,
    /// Bytes received, of which the first are parsed.
    received: Vec<u8>,
    parsed: usize,
    pending: VecDeque<Pending>,
    /// Since when the answer to the first of them is the next to come.
    waits_since: Instant,
    room: Box<[u8]>,
}

impl Connection {
    /// Connects, within so long.
    pub fn connect(target: SocketAddr, patience: Duration) -> std::io::Result<Self> {
        let stream = std::net::TcpStream::connect_timeout(&target, patience)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            socket: TcpStream::from_std(stream),
            out: Vec::new(),
            sent: 0,
            received: Vec::new(),
            parsed: 0,
            pending: VecDeque::new(),
            waits_since: Instant::now(),
            room: vec![0; BUFFER].into(),
        })
    }

    /// The socket, to be registered.
    pub fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Where the next request is written.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// The request that was written now waits for its answer.
    pub fn wait_for(&mut self, pending: Pending, now: Instant) {
        if self.pending.is_empty() {
            self.waits_since = now;
        }
        self.pending.push_back(pending);
    }

    /// The request whose answer comes next.
    pub fn first(&self) -> Option<Pending> {
        self.pending.front().copied()
    }

    /// Since when the next answer is owed. None: none is. A whole answer begins the wait anew, a part of one does not.
    pub fn waits_since(&self) -> Option<Instant> {
        (!self.pending.is_empty()).then_some(self.waits_since)
    }

    /// All requests that wait for answers.
    pub fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.pending.iter()
    }

    /// Bytes that are not parsed yet.
    pub fn unparsed(&self) -> &[u8] {
        &self.received[self.parsed..]
    }

    /// So many bytes were the answer to the first request, which is whole now.
    pub fn answered(&mut self, length: usize, now: Instant) {
        self.parsed += length;
        self.waits_since = now;
        self.pending.pop_front();
    }

    /// Sends as much as the socket takes.
    pub fn send(&mut self) -> Result<(), String> {
        while self.sent < self.out.len() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(0) => return Err("the server closed a connection".to_owned()),
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("sending: {error}")),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads once. False: there is no more.
    pub fn receive(&mut self) -> Result<bool, String> {
        self.received.drain(..self.parsed);
        self.parsed = 0;
        loop {
            match self.socket.read(&mut self.room) {
                Ok(0) => return Err("the server closed a connection".to_owned()),
                Ok(length) => {
                    self.received.extend_from_slice(&self.room[..length]);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("reading: {error}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The kind of fault is a server that holds a load for ever with parts of answers, or with answers to others.
    #[test]
    fn a_wait_lasts_until_an_answer_is_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let mut connection = Connection::connect(target, Duration::from_secs(10)).unwrap();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let pending = Pending {
            step: Step::Delete(1),
            due: start,
            is_last: true,
        };
        assert_eq!(connection.waits_since(), None);
        connection.wait_for(pending, at(1));
        connection.wait_for(pending, at(2));
        assert_eq!(connection.waits_since(), Some(at(1)));
        let (mut served, _) = listener.accept().unwrap();
        served.write_all(b"DEL").unwrap();
        while !connection.receive().unwrap() {}
        assert_eq!(connection.waits_since(), Some(at(1)));
        // The second one's turn begins with the first one's answer.
        connection.answered(3, at(5));
        assert_eq!(connection.waits_since(), Some(at(5)));
        connection.answered(0, at(6));
        assert_eq!(connection.waits_since(), None);
    }
}
