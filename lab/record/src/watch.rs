//! The connection to a server that is watched.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_program::Failure;

/// How long the server may take to be reached, and to agree.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a wait ends, to look whether the recording does.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes read at a time.
const BUFFER: usize = 1 << 20;
/// The longest line.
const LINE_MAX: usize = 64 << 10;
/// Letters of a refusal that are shown.
const SHOWN: usize = 200;

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
    /// Some of a line.
    Part,
    /// Nothing for now.
    Nothing,
    /// The server has closed the connection.
    End,
}

impl Watch {
    /// Connects, and begins to watch, unless `stop` is set before the server agrees.
    pub fn begin(target: &str, stop: &AtomicBool) -> Result<Self, Failure> {
        let mut said = String::new();
        for words in KINDS {
            let stream = connect(target, stop)?;
            let mut watch = Self {
                stream,
                buffer: vec![0; BUFFER].into(),
                received: Vec::new(),
                at: 0,
            };
            said = watch.ask(target, words, stop)?;
            if said == "OK" {
                return Ok(watch);
            }
        }
        let said: String = said.chars().take(SHOWN).collect();
        Err(Failure::run(format!(
            "{target}: it does not let itself be watched: {said}"
        )))
    }

    /// Sends a request, and waits for the line that answers it.
    fn ask(&mut self, target: &str, words: &str, stop: &AtomicBool) -> Result<String, Failure> {
        let named = |error: std::io::Error| Failure::run(format!("{target}: {error}"));
        self.stream.write_all(words.as_bytes()).map_err(named)?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            go_on(stop)?;
            match self.hear().map_err(named)? {
                Heard::Line(line) => return Ok(String::from_utf8_lossy(line).into_owned()),
                Heard::Part | Heard::Nothing => {}
                Heard::End => return Ok("it closed the connection".to_owned()),
            }
        }
        let seconds = PATIENCE.as_secs();
        Err(Failure::run(format!(
            "{target}: no answer for {seconds} seconds"
        )))
    }

    /// The next line, after one look at what has come, so that a line that comes in pieces holds nobody up.
    pub fn hear(&mut self) -> std::io::Result<Heard<'_>> {
        if !self.has_line() {
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
            if !self.has_line() {
                return Ok(Heard::Part);
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

/// Errors: `stop` is set.
fn go_on(stop: &AtomicBool) -> Result<(), Failure> {
    // Relaxed: the flag publishes no other memory.
    match stop.load(Ordering::Relaxed) {
        true => Err(Failure::run("interrupted")),
        false => Ok(()),
    }
}

/// A connection whose reads wait for no longer than a look. Neither a name server nor a server that is not there can be
/// waited for in looks: so a thread does, which the end of the program ends, too.
fn connect(target: &str, stop: &AtomicBool) -> Result<TcpStream, Failure> {
    let (sender, receiver) = mpsc::channel();
    let name = target.to_owned();
    thread::spawn(move || {
        // Nobody waits any more after an interrupt.
        let _ = sender.send(reach(&name));
    });
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(reached) => return reached,
            Err(RecvTimeoutError::Timeout) => go_on(stop)?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::run(format!("{target}: a thread panicked")));
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a recording may wait for a name")]
fn reach(target: &str) -> Result<TcpStream, Failure> {
    let addresses = target.to_socket_addrs().ok();
    let address = addresses
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(|| Failure::usage(format!("{target}: not a HOST:PORT")))?;
    let connect = || {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(LOOK))?;
        Ok(stream)
    };
    connect().map_err(|error: std::io::Error| Failure::run(format!("{target}: {error}")))
}
