//! One connection: bytes to send, bytes received, and the requests that wait for answers.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;

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
    room: Box<[u8]>,
}

impl Connection {
    /// Connects.
    pub fn connect(target: SocketAddr) -> std::io::Result<Self> {
        let stream = std::net::TcpStream::connect(target)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            socket: TcpStream::from_std(stream),
            out: Vec::new(),
            sent: 0,
            received: Vec::new(),
            parsed: 0,
            pending: VecDeque::new(),
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

    /// The request that was written waits for its answer.
    pub fn wait_for(&mut self, pending: Pending) {
        self.pending.push_back(pending);
    }

    /// The request whose answer comes next.
    pub fn first(&self) -> Option<Pending> {
        self.pending.front().copied()
    }

    /// Bytes that are not parsed yet.
    pub fn unparsed(&self) -> &[u8] {
        &self.received[self.parsed..]
    }

    /// So many bytes were the answer to the first request.
    pub fn answered(&mut self, length: usize) {
        self.parsed += length;
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
