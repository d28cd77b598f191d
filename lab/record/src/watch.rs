//! The connection to a server that is watched.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use nuthatch_program::Failure;

/// How long the server may take to agree.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a wait for lines ends, to look whether the recording does.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes read at a time.
const BUFFER: usize = 1 << 20;
/// The longest line.
const LINE_MAX: usize = 64 << 10;

/// The kinds of events, and the same without those that memcached knows only since later.
const KINDS: [&str; 2] = [
    "watch fetchers mutations evictions deletions\r\n",
    "watch fetchers mutations evictions\r\n",
];

/// A connection that receives the server's events.
pub struct Watch {
    stream: TcpStream,
    buffer: Box<[u8]>,
    received: Vec<u8>,
    /// Bytes of lines that were given out.
    at: usize,
}

/// What has come.
pub enum Heard<'w> {
    /// A line, without its end.
    Line(&'w [u8]),
    /// Nothing for now.
    Nothing,
    /// The server has closed the connection.
    End,
}

impl Watch {
    /// Connects, and begins to watch.
    pub fn begin(target: &str) -> Result<Self, Failure> {
        let address = find(target)?;
        let mut said = String::new();
        for words in KINDS {
            let (watch, answer) = Self::ask(address, words)
                .map_err(|error| Failure::run(format!("{target}: {error}")))?;
            if answer == "OK" {
                watch.stream.set_read_timeout(Some(LOOK))?;
                return Ok(watch);
            }
            said = answer;
        }
        Err(Failure::run(format!(
            "{target}: it does not let itself be watched: {said}"
        )))
    }

    /// Sends a request, and returns the line that answers it.
    fn ask(address: SocketAddr, words: &str) -> std::io::Result<(Self, String)> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(words.as_bytes())?;
        let mut watch = Self {
            stream,
            buffer: vec![0; BUFFER].into(),
            received: Vec::new(),
            at: 0,
        };
        let answer = match watch.hear()? {
            Heard::Line(line) => String::from_utf8_lossy(line).into_owned(),
            Heard::Nothing => "no answer".to_owned(),
            Heard::End => "it closed the connection".to_owned(),
        };
        Ok((watch, answer))
    }

    /// The next line.
    pub fn hear(&mut self) -> std::io::Result<Heard<'_>> {
        while !self.has_line() {
            self.received.drain(..self.at);
            self.at = 0;
            if self.received.len() > LINE_MAX {
                return Err(std::io::Error::other("a line that does not end"));
            }
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return Ok(Heard::End),
                Ok(length) => self.received.extend_from_slice(&self.buffer[..length]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                        return Ok(Heard::Nothing);
                    }
                    ErrorKind::ConnectionReset => return Ok(Heard::End),
                    _ => return Err(error),
                },
            }
        }
        let rest = &self.received[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(0);
        self.at += end + 1;
        let line = &rest[..end];
        Ok(Heard::Line(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// True if a line has come already.
    fn has_line(&self) -> bool {
        self.received[self.at..].contains(&b'\n')
    }
}

#[expect(clippy::disallowed_methods, reason = "a recording may wait for a name")]
fn find(target: &str) -> Result<SocketAddr, Failure> {
    let addresses = target.to_socket_addrs().ok();
    addresses
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(|| Failure::usage(format!("{target}: not a HOST:PORT")))
}
