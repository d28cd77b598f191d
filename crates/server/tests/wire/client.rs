//! A client that says exactly what it is told, and checks every byte that comes back.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection, and what was received but not yet looked at.
pub struct Client {
    socket: Socket,
    received: Vec<u8>,
    /// The connection was broken, not closed.
    broken: bool,
}

impl From<UnixStream> for Client {
    fn from(socket: UnixStream) -> Self {
        Self {
            socket: Socket::Unix(socket),
            received: Vec::new(),
            broken: false,
        }
    }
}

impl Client {
    pub fn tcp(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        Self {
            socket: Socket::Tcp(socket),
            received: Vec::new(),
            broken: false,
        }
    }

    pub fn unix(path: &Path) -> Self {
        Self {
            socket: Socket::Unix(UnixStream::connect(path).unwrap()),
            received: Vec::new(),
            broken: false,
        }
    }

    /// The socket itself, whatever it is, to write from another thread.
    pub fn writer(&self) -> Box<dyn Write + Send> {
        match &self.socket {
            Socket::Tcp(socket) => Box::new(socket.try_clone().unwrap()),
            Socket::Unix(socket) => Box::new(socket.try_clone().unwrap()),
        }
    }

    /// The socket itself, to write from another thread.
    pub fn raw(&self) -> TcpStream {
        match &self.socket {
            Socket::Tcp(socket) => socket.try_clone().unwrap(),
            Socket::Unix(_) => panic!("a unix client"),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.write_all(bytes.as_ref()).unwrap(),
            Socket::Unix(socket) => socket.write_all(bytes.as_ref()).unwrap(),
        }
    }

    /// Says that nothing more will be sent; replies still come.
    pub fn finish(&mut self) {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.shutdown(Shutdown::Write).unwrap(),
            Socket::Unix(socket) => socket.shutdown(Shutdown::Write).unwrap(),
        }
    }

    /// Receives something more; false at the end of the stream.
    fn receive(&mut self) -> bool {
        let mut buffer = [0; 1 << 16];
        let count = match &mut self.socket {
            Socket::Tcp(socket) => socket.read(&mut buffer),
            Socket::Unix(socket) => socket.read(&mut buffer),
        };
        // A server that closes with input unread resets the connection: an end like others.
        self.broken |= count.is_err();
        let count = count.unwrap_or(0);
        self.received.extend_from_slice(&buffer[..count]);
        count > 0
    }

    /// Receives and forgets; false at the end of the stream.
    pub fn drain_some(&mut self) -> bool {
        self.received.clear();
        self.receive()
    }

    /// A line without its end.
    pub fn line(&mut self) -> String {
        self.next_line().expect("a line, but the server closed")
    }

    /// A line without its end, or `None` if the server closed instead.
    pub fn next_line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if !self.receive() {
                assert_eq!(String::from_utf8_lossy(&self.received), "", "half a line");
                return None;
            }
        }
    }

    /// Lines up to the one that is `last`, which is left out.
    pub fn lines_until(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            if line == last {
                return lines;
            }
            lines.push(line);
        }
    }

    /// The next bytes, which stay where they are.
    pub fn peek(&mut self, length: usize) -> &[u8] {
        while self.received.len() < length && self.receive() {}
        &self.received[..length]
    }

    /// The next bytes are these.
    #[track_caller]
    pub fn expect(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        // As far as it comes: a wrong reply may be shorter than the right one.
        while self.received.len() < expected.len()
            && expected.starts_with(&self.received)
            && self.receive()
        {}
        let got = &self.received[..self.received.len().min(expected.len())];
        assert_eq!(
            String::from_utf8_lossy(got),
            String::from_utf8_lossy(expected)
        );
        assert_eq!(got, expected);
        self.received.drain(..expected.len());
    }

    /// Sends and expects; the closing `mn` shows that nothing else came.
    #[track_caller]
    pub fn ask(&mut self, request: impl AsRef<[u8]>, reply: impl AsRef<[u8]>) {
        self.send(request);
        self.send(b"mn\r\n");
        self.expect(reply);
        self.expect(b"MN\r\n");
    }

    /// The server closes, and says nothing more.
    #[track_caller]
    pub fn expect_end(&mut self) {
        while self.receive() {}
        assert_eq!(String::from_utf8_lossy(&self.received), "");
    }

    /// The server closes, says nothing more, and does not reset the connection: a client that sends
    /// much before it reads would lose what it was told.
    #[track_caller]
    pub fn expect_orderly_end(&mut self) {
        self.expect_end();
        assert!(!self.broken, "the connection was reset");
    }

    /// True if there is something to read now, be it the end.
    pub fn has_input(&self) -> bool {
        let mut byte = [0];
        let socket = self.raw();
        socket.set_nonblocking(true).unwrap();
        let waits = socket
            .peek(&mut byte)
            .is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        socket.set_nonblocking(false).unwrap();
        !self.received.is_empty() || !waits
    }

    /// `stats` with this word behind it, by name.
    pub fn stats(&mut self, topic: &str) -> HashMap<String, String> {
        self.send(format!("stats {topic}\r\n"));
        self.lines_until("END")
            .iter()
            .map(|line| {
                let mut words = line.splitn(3, ' ');
                assert_eq!(words.next(), Some("STAT"), "{line}");
                let name = words.next().unwrap().to_owned();
                (name, words.next().unwrap_or_default().to_owned())
            })
            .collect()
    }

    /// A number of `stats`.
    pub fn stat(&mut self, name: &str) -> u64 {
        self.stats("")[name].parse().unwrap()
    }
}
