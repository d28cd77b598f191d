//! A test client that sends exactly the given bytes, and checks every byte that comes back.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Type};

/// The time limit for a reply, long enough for the slowest machine. After it a test fails and says what it waited for,
/// instead of hanging. Nothing is measured by it.
pub const PATIENCE: Duration = Duration::from_secs(120);

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection, and the bytes that were received but not yet checked.
pub struct Client {
    socket: Socket,
    received: Vec<u8>,
    /// The connection was broken, not closed.
    broken: bool,
}

/// A socket that waits no longer than [`PATIENCE`], also for a place in the listener's queue.
pub fn connect_unix(path: &Path) -> UnixStream {
    let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket.connect(&SockAddr::unix(path).unwrap()).unwrap();
    OwnedFd::from(socket).into()
}

impl From<UnixStream> for Client {
    /// Of a socket of [`connect_unix`].
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
        let socket = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Self {
            socket: Socket::Tcp(socket),
            received: Vec::new(),
            broken: false,
        }
    }

    pub fn unix(path: &Path) -> Self {
        connect_unix(path).into()
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

    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = match &mut self.socket {
            Socket::Tcp(socket) => socket.write_all(bytes.as_ref()),
            Socket::Unix(socket) => socket.write_all(bytes.as_ref()),
        };
        sent.expect("the server takes what is sent");
    }

    /// Says that nothing more will be sent; replies still come.
    pub fn finish(&mut self) {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.shutdown(Shutdown::Write).unwrap(),
            Socket::Unix(socket) => socket.shutdown(Shutdown::Write).unwrap(),
        }
    }

    /// Receives something more; false at the end of the stream.
    #[track_caller]
    fn receive(&mut self) -> bool {
        let mut buffer = [0; 1 << 16];
        let count = match &mut self.socket {
            Socket::Tcp(socket) => socket.read(&mut buffer),
            Socket::Unix(socket) => socket.read(&mut buffer),
        };
        if count.as_ref().is_err_and(is_timeout) {
            let last = &self.received[self.received.len().saturating_sub(200)..];
            let last = String::from_utf8_lossy(last);
            panic!("nothing came for {PATIENCE:?} behind {last:?}");
        }
        // A server that closes with input unread resets the connection: an end like others.
        self.broken |= count.is_err();
        let count = count.unwrap_or(0);
        self.received.extend_from_slice(&buffer[..count]);
        count > 0
    }

    /// Receives and forgets; false at the end of the stream.
    #[track_caller]
    pub fn drain_some(&mut self) -> bool {
        self.received.clear();
        self.receive()
    }

    /// A line without its end.
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.next_line().expect("a line, but the server closed")
    }

    /// A line without its end, or `None` if the server closed instead.
    #[track_caller]
    pub fn next_line(&mut self) -> Option<String> {
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.received[searched..]) {
                let rest = self.received.split_off(searched + end + 1);
                let line = std::mem::replace(&mut self.received, rest);
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            searched = self.received.len();
            if !self.receive() {
                assert_eq!(String::from_utf8_lossy(&self.received), "", "half a line");
                return None;
            }
        }
    }

    /// Lines up to the one that is `last`, which is left out.
    #[track_caller]
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
    #[track_caller]
    pub fn peek(&mut self, length: usize) -> &[u8] {
        while self.received.len() < length && self.receive() {}
        &self.received[..length]
    }

    /// The next bytes are these.
    #[track_caller]
    pub fn expect(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        // Compare while bytes arrive: a wrong reply may be shorter than the right one.
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
    #[track_caller]
    pub fn stats(&mut self, topic: &str) -> HashMap<String, String> {
        match self.stats_unless_refused(topic) {
            Ok(stats) => stats,
            Err(refusal) => panic!("stats {topic}: {refusal}"),
        }
    }

    /// `stats conns`. The server refuses it while there is hardly any room for buffers, but makes room at once, so this
    /// asks until it is not refused.
    #[track_caller]
    pub fn conns(&mut self) -> HashMap<String, String> {
        let begun = Instant::now();
        loop {
            match self.stats_unless_refused("conns") {
                Ok(stats) => return stats,
                Err(refusal) => {
                    assert_eq!(refusal, "SERVER_ERROR out of memory writing stats");
                    assert!(begun.elapsed() < PATIENCE, "stats conns: {refusal}");
                    pause();
                }
            }
        }
    }

    /// `stats` with this word behind it, by name, or the line that was the answer instead.
    #[track_caller]
    fn stats_unless_refused(&mut self, topic: &str) -> Result<HashMap<String, String>, String> {
        self.send(format!("stats {topic}\r\n"));
        let mut stats = HashMap::new();
        loop {
            let line = self.line();
            // If it is refused, no `END` line follows.
            match line.strip_prefix("STAT ") {
                Some(stat) => {
                    let (name, value) = stat.split_once(' ').unwrap_or((stat, ""));
                    stats.insert(name.to_owned(), value.to_owned());
                }
                None if line == "END" => return Ok(stats),
                None => return Err(line),
            }
        }
    }

    /// A number of `stats`.
    #[track_caller]
    pub fn stat(&mut self, name: &str) -> u64 {
        self.stats("")[name].parse().unwrap()
    }

    /// Asks for a number of `stats` until it is as wanted; what brings that about may be done in between.
    #[track_caller]
    pub fn until(&mut self, name: &str, mut is_wanted: impl FnMut(u64) -> bool) {
        let begun = Instant::now();
        loop {
            let number = self.stat(name);
            if is_wanted(number) {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{name} is still {number} after {PATIENCE:?}"
            );
            pause();
        }
    }
}

/// Between two questions whether something has come about: the server needs the core, too.
pub fn pause() {
    thread::sleep(Duration::from_millis(5));
}

/// True if this is the error of a socket that has waited for [`PATIENCE`].
fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
