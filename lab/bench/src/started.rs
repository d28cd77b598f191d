//! Servers that a bench starts, on free ports and chosen cores, and ends.

use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use nuthatch_program::signals;

use crate::os;
use crate::server::{ask, connect_patiently};

/// The interval between two attempts to connect to a starting server, or two checks whether one has ended.
const LOOK: Duration = Duration::from_millis(10);

/// How many such checks an ending server gets before it is killed.
const LOOKS_BEFORE_KILL: usize = 500;

/// How long to wait for the last output of a server that has ended.
const PATIENCE: Duration = Duration::from_secs(1);

/// A server.
pub struct Started {
    command: String,
    child: Child,
    address: SocketAddr,
}

impl Started {
    /// Starts a server on a free port, and waits until it takes a connection.
    pub fn start(command: &str, cores: &[usize], stop: &AtomicBool) -> Result<Self, String> {
        Self::start_until(command, cores, stop, |address| {
            TcpStream::connect(address).is_ok()
        })
    }

    /// Starts a server, and waits until it `is_up`. A free port is found for `{port}`; a command without it listens elsewhere.
    pub fn start_until(
        command: &str,
        cores: &[usize],
        stop: &AtomicBool,
        is_up: impl Fn(SocketAddr) -> bool,
    ) -> Result<Self, String> {
        let address = free_address().map_err(|error| format!("no free port: {error}"))?;
        let command = command.replace("{port}", &address.port().to_string());
        let mut child = spawn(&command, cores).map_err(|error| format!("{command}: {error}"))?;
        let complaint = child.stderr.take().map(first_line);
        let mut server = Self {
            command,
            child,
            address,
        };
        while !is_up(address) {
            if let Ok(Some(status)) = server.child.try_wait() {
                // Waited for, but not for ever: a child of its own may have the same standard error.
                let line = complaint.and_then(|lines| lines.recv_timeout(PATIENCE).ok());
                let line = line.map(|line| format!(": {line}")).unwrap_or_default();
                return Err(format!("{}: ended at once: {status}{line}", server.command));
            }
            if stop.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            thread::sleep(LOOK);
        }
        Ok(server)
    }

    /// Its command line.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Where it listens, if its command has `{port}`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection to it, for requests that are answered soon.
    pub fn connect(&self) -> std::io::Result<TcpStream> {
        connect_patiently(self.address)
    }

    /// The version that it reports in memcached's protocol. Nuthatch has one of its own besides, among the first lines
    /// of `stats`.
    pub fn version(&self, tls: bool) -> Result<String, String> {
        let version = self.find(b"version\r\n", tls, 1, "VERSION ")?;
        let own = self.find(b"stats\r\n", tls, 8, "STAT nuthatch_version ");
        Ok(match own {
            Ok(own) => format!("{version} (nuthatch {own})"),
            Err(_) => version,
        })
    }

    /// The same in Redis' protocol.
    pub fn redis_version(&self, tls: bool) -> Result<String, String> {
        let request = b"*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n";
        // Behind the answer's length and the section's name.
        self.find(request, tls, 8, "redis_version:")
    }

    /// The text behind `name` at the beginning of one of the first `lines` lines of the answer.
    fn find(&self, request: &[u8], tls: bool, lines: usize, name: &str) -> Result<String, String> {
        let named = |error: std::io::Error| format!("{}: {error}", self.command);
        let mut first = None;
        let answer = ask(self.address, request, tls).map_err(named)?;
        for line in BufReader::new(answer).lines().take(lines) {
            let line = line.map_err(named)?;
            if let Some(found) = line.strip_prefix(name) {
                return Ok(found.trim_end().to_owned());
            }
            first.get_or_insert(line);
        }
        let answer = first.unwrap_or_default();
        Err(format!("{}: no version: {answer}", self.command))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        os::ask_to_end(self.child.id());
        for _ in 0..LOOKS_BEFORE_KILL {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(LOOK);
        }
        // It ignored the request to end. Errors mean that it has just ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Set when the run is asked to end: to be looked at, so that started servers are ended.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals::ending() {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| format!("signals: {error}"))?;
    }
    Ok(stop)
}

/// Ports below the range from which Linux assigns free ports to servers and to the near ends of connections.
const PORTS: Range<u16> = 20_000..32_768;

/// How many of them are tried.
const TRIES: usize = 100;

/// A port that was free a moment ago, and that the system assigns to no other program before the server binds it.
pub fn free_address() -> std::io::Result<SocketAddr> {
    let any = || TcpListener::bind((Ipv4Addr::LOCALHOST, rand::random_range(PORTS)));
    let found = (0..TRIES).find_map(|_| any().ok());
    found.map_or_else(any, Ok)?.local_addr()
}

/// Bytes of a line of a server that are kept.
const LINE_MAX: u64 = 4096;

/// The first line that a server writes to its standard error, or its beginning. What follows is read as well, and thrown
/// away, so that the server never waits for a reader.
fn first_line(stderr: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut stderr, mut line) = (BufReader::new(stderr), Vec::new());
        if let Ok(1..) = stderr.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            // Wanted only if the server ends at once.
            let _ = sender.send(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
        }
        // An error is the end, too.
        let _ = io::copy(&mut stderr, &mut io::sink());
    });
    receiver
}

/// Starts a command on some cores. A child inherits the affinity of the thread that starts it, so it
/// is started from a thread that has it.
fn spawn(command: &str, cores: &[usize]) -> Result<Child, String> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or("no command")?;
    let mut command = Command::new(program);
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    thread::scope(|scope| {
        let starter = scope.spawn(|| {
            os::pin_to(cores)?;
            command.spawn().map_err(|error| error.to_string())
        });
        starter.join().map_err(|_| "a thread panicked".to_owned())?
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_command_that_cannot_start_or_stay_is_named() {
        let stop = AtomicBool::new(false);
        let cores = os::cores();
        let missing = Started::start("/no/such/server -p {port}", &cores, &stop);
        assert!(missing.is_err_and(|error| error.starts_with("/no/such/server -p ")));
        let ending = Started::start("true", &cores, &stop);
        assert!(ending.is_err_and(|error| error.starts_with("true: ended at once")));
    }

    #[test]
    fn a_server_of_another_protocol_has_no_version() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut server = Started {
            command: "other".to_owned(),
            child: spawn("sleep 1000", &os::cores()).unwrap(),
            address: listener.local_addr().unwrap(),
        };
        const OURS: &str = "STAT pid 1\r\nSTAT nuthatch_version 0.1.0\r\nEND\r\n";
        for (answers, version) in [
            (
                &["VERSION 1.6.45\r\n", "STAT pid 1\r\nEND\r\n"][..],
                Ok("1.6.45"),
            ),
            (&["VERSION 1.6.45\r\n", OURS], Ok("1.6.45 (nuthatch 0.1.0)")),
            (&["ERROR\r\n"], Err("other: no version: ERROR")),
            (&[""], Err("other: no version: ")),
        ] {
            let answering = thread::spawn({
                let listener = listener.try_clone().unwrap();
                move || {
                    for (command, answer) in ["version\r\n", "stats\r\n"].iter().zip(answers) {
                        let (mut stream, _) = listener.accept().unwrap();
                        let mut asked = vec![0; command.len()];
                        stream.read_exact(&mut asked).unwrap();
                        assert_eq!(asked, command.as_bytes());
                        stream.write_all(answer.as_bytes()).unwrap();
                    }
                }
            });
            let told = server.version(false);
            answering.join().unwrap();
            assert_eq!(told.as_deref().map_err(String::as_str), version);
        }
        drop(listener);
        assert!(server.version(false).is_err());
        server.child.kill().unwrap();
    }

    #[test]
    fn an_interrupted_start_ends_the_child() {
        let stop = AtomicBool::new(true);
        let started = Started::start("sleep 1000", &os::cores(), &stop);
        assert_eq!(started.err().as_deref(), Some("interrupted"));
    }

    /// The user gets the reason why a server does not start: memcached refuses to run as root, for example.
    #[test]
    fn a_server_that_ends_at_once_says_why() {
        let stop = AtomicBool::new(false);
        let command = "cat /no/such/file";
        let error = Started::start(command, &os::cores(), &stop).err().unwrap();
        let (start, complaint) = error.split_at(command.len());
        assert_eq!(start, command);
        assert!(complaint.contains("/no/such/file"), "{error}");
    }

    /// Class of fault: a server's output that makes this program grow.
    #[test]
    fn of_a_line_without_end_the_beginning_is_kept_and_the_rest_read() {
        let mut child = Command::new("head")
            .args(["-c", "10000000", "/dev/zero"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = first_line(child.stdout.take().unwrap());
        assert_eq!(lines.recv().unwrap().len() as u64, LINE_MAX);
        // It has written all, so all was read.
        assert!(child.wait().unwrap().success());
        assert!(lines.recv().is_err(), "a line that nobody wants");
    }
}
