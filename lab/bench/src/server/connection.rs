//! One connection of the load: sends a block, reads its replies, sends the next.

use std::io::ErrorKind;
use std::time::Instant;

use mio::net::TcpStream;

use crate::server::scan::{Counts, Progress, Scan, Scanner};
use crate::server::script::Script;
use crate::server::stream::Stream;

/// Bytes read at a time, at least.
const BUFFER: usize = 64 << 10;

/// A connection and where it stands in its script.
pub struct Connection {
    stream: Stream,
    block: usize,
    /// Bytes of the block sent.
    sent: usize,
    sent_at: Instant,
    /// Requests of the block.
    total: usize,
    /// Those answered.
    answered: usize,
    progress: Progress,
    buffer: Box<[u8]>,
    /// Bytes that were read and not yet parsed: the front of the buffer.
    filled: usize,
}

/// The progress that an event made.
pub struct Advance {
    /// Keys answered.
    pub counts: Counts,
    /// Requests that got an answer.
    pub requests: u64,
    /// When their block was begun.
    pub sent_at: Instant,
    /// When the last of them was seen.
    pub at: Instant,
    /// The block has all its answers.
    pub block_done: bool,
}

impl Connection {
    /// A connection that has sent nothing yet.
    pub fn new(stream: Stream, scanner: &Scanner) -> Self {
        Self {
            stream,
            block: 0,
            sent: 0,
            sent_at: Instant::now(),
            total: 0,
            answered: 0,
            progress: Progress::default(),
            buffer: vec![0; BUFFER.max(scanner.record() * 2)].into(),
            filled: 0,
        }
    }

    /// The socket, to be registered.
    pub fn socket(&mut self) -> &mut TcpStream {
        self.stream.socket()
    }

    /// Begins another block and sends as much of it as the socket takes.
    pub fn begin(&mut self, script: &Script, block: usize) -> Result<(), String> {
        self.block = block;
        self.sent = 0;
        self.total = script.requests(block).len();
        self.answered = 0;
        self.sent_at = Instant::now();
        self.send(script)
    }

    /// True if some of its requests have no answer yet.
    pub fn waits(&self) -> bool {
        self.answered < self.total
    }

    /// Sends as much of the block's rest as the socket takes. Nothing if it rests: its last block may be another script's.
    pub fn send(&mut self, script: &Script) -> Result<(), String> {
        if !self.waits() {
            return Ok(());
        }
        let text = script.text(self.block);
        while self.sent < text.len() {
            match self.stream.write(&text[self.sent..]) {
                Ok(0) => return Err("the server closed a connection".to_owned()),
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("sending: {error}")),
            }
        }
        self.stream
            .flush()
            .map_err(|error| format!("sending: {error}"))
    }

    /// Reads the bytes that have arrived and parses them, up to the end of the block.
    pub fn receive(&mut self, script: &Script, scanner: &Scanner) -> Result<Advance, String> {
        let mut advance = Advance {
            counts: Counts::default(),
            requests: 0,
            sent_at: self.sent_at,
            at: self.sent_at,
            block_done: false,
        };
        while self.waits() && self.read()? {
            let mut at = 0;
            while self.waits() {
                let request = script.requests(self.block)[self.answered];
                let bytes = &self.buffer[at..self.filled];
                match scanner.scan(script, request, &mut self.progress, bytes)? {
                    Scan::Complete(length, counts) => {
                        at += length;
                        advance.counts.add(&counts);
                        advance.requests += u64::from(length > 0);
                        self.answered += 1;
                    }
                    Scan::Partial(length) => {
                        at += length;
                        break;
                    }
                }
            }
            self.buffer.copy_within(at..self.filled, 0);
            self.filled -= at;
        }
        advance.at = Instant::now();
        advance.block_done = !self.waits();
        if advance.block_done && self.filled > 0 {
            return Err("the server answered more than it was asked".to_owned());
        }
        Ok(advance)
    }

    /// True if something was read, false if the socket has no more.
    fn read(&mut self) -> Result<bool, String> {
        loop {
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Err("the server closed a connection".to_owned()),
                Ok(length) => {
                    self.filled += length;
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
    use super::*;
    use crate::engine::Items;
    use crate::server::scan::Protocol;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn one_that_rests_sends_nothing_of_another_script() {
        let items = Items::alike(100, 10, 9);
        let preload = |numbers: &[u64]| Script::preload(Protocol::Memcached, &items, numbers);
        let (short, long) = (preload(&[1]), preload(&[1, 2, 3]));
        let scanner = Scanner::new(Protocol::Memcached, &items);

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Stream::connect(listener.local_addr().unwrap(), false).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut connection = Connection::new(stream, &scanner);
        connection.send(&long).unwrap();
        connection.begin(&short, 0).unwrap();
        let mut sent = vec![0; short.text(0).len()];
        server.read_exact(&mut sent).unwrap();
        server.write_all(b"STORED\r\n").unwrap();
        while !connection.receive(&short, &scanner).unwrap().block_done {}

        connection.send(&long).unwrap();
        drop(connection);
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).unwrap();
        assert_eq!(sent, short.text(0));
        assert_eq!(rest, b"");
    }
}
