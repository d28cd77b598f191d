//! A server's address, a connection to it, and the request for its hash statistics.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use nuthatch_program::Failure;

/// How long a server may take to accept, and to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer at most. A real one has less than a twentieth of it.
const ANSWER_MAX: u64 = 1 << 18;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Host and port.
    Tcp(String),
    /// A socket's path.
    Unix(PathBuf),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return Ok(Self::Unix(PathBuf::from(text)));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let bare = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        match port.parse::<u16>() {
            Ok(1..) if !host.is_empty() && !bare => Ok(Self::Tcp(text.to_owned())),
            _ => Err("HOST:PORT, such as localhost:11211 or [::1]:11211, \
                      or a path with a slash in it"
                .to_owned()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => out.write_str(address),
            Self::Unix(path) => path.display().fmt(out),
        }
    }
}

trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// A connection to a server.
pub struct Connection<'t> {
    target: &'t Target,
    stream: BufReader<Box<dyn Stream>>,
}

impl<'t> Connection<'t> {
    /// Connects. Errors: no server.
    pub fn open(target: &'t Target) -> Result<Self, Failure> {
        let stream = connect(target)
            .map_err(|error| Failure::run(format!("no server at {target}: {error}")))?;
        let stream = BufReader::new(stream);
        Ok(Self { target, stream })
    }

    /// The names and values of `stats hash`. Errors: the connection ends, or the answer is malformed.
    pub fn query(&mut self) -> Result<Vec<(String, String)>, Failure> {
        let target = self.target;
        let lost = |error: io::Error| {
            let words = match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!("does not answer within {} s", TIMEOUT.as_secs())
                }
                _ => error.to_string(),
            };
            Failure::run(format!("{target}: {words}"))
        };
        let request = b"stats hash\r\n";
        let sent = self.stream.get_mut().write_all(request);
        sent.and_then(|()| self.stream.get_mut().flush())
            .map_err(lost)?;
        let mut answer = self.stream.by_ref().take(ANSWER_MAX);
        let mut pairs = Vec::new();
        loop {
            let mut line = Vec::new();
            answer.read_until(b'\n', &mut line).map_err(lost)?;
            let Some(line) = line.strip_suffix(b"\n") else {
                return Err(Failure::run(match answer.limit() {
                    0 => format!("{target}: more than {ANSWER_MAX} bytes for `stats hash`"),
                    _ => format!("{target}: the server closed the connection"),
                }));
            };
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end();
            if line == "END" {
                return Ok(pairs);
            }
            let Some((name, value)) = line
                .strip_prefix("STAT ")
                .and_then(|rest| rest.split_once(' '))
            else {
                return Err(unknown(target, line));
            };
            pairs.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// The error for an answer of a server that is no Nuthatch, in a form fit to be shown.
fn unknown(target: &Target, line: &str) -> Failure {
    let shown: String = line.chars().take(60).collect();
    Failure::run(format!(
        "{target} does not know `stats hash`, as a Nuthatch server does; it said: {}",
        shown.escape_debug()
    ))
}

#[expect(clippy::disallowed_methods, reason = "a bench may wait for a name")]
fn connect(target: &Target) -> io::Result<Box<dyn Stream>> {
    match target {
        Target::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            Ok(Box::new(stream))
        }
        Target::Tcp(address) => {
            let mut failed = io::Error::new(io::ErrorKind::NotFound, "no address of that name");
            for address in address.to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, TIMEOUT) {
                    Ok(stream) => {
                        stream.set_read_timeout(Some(TIMEOUT))?;
                        stream.set_write_timeout(Some(TIMEOUT))?;
                        stream.set_nodelay(true)?;
                        return Ok(Box::new(stream));
                    }
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        for good in ["localhost:11211", "127.0.0.1:1", "[::1]:65535"] {
            assert_eq!(good.parse(), Ok(Target::Tcp(good.to_owned())));
        }
        let path = "/run/nuthatch.sock";
        assert_eq!(path.parse(), Ok(Target::Unix(path.into())));
        for bad in [
            "",
            "localhost",
            "localhost:",
            ":11211",
            "a:0",
            "a:65536",
            "::1:11211",
        ] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }
}
