//! The server's binary: run to its end, or as a server that is ended by its process id. For the tests of the
//! laboratory's binary too.

#![allow(dead_code)] // Each test program uses some of it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a test waits for what must come: a busy machine may take its time, and one that waits for longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Looks until there is what a test waits for.
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

pub const SET_AND_GET: &str = "set k 5 0 3\r\nabc\r\nget k\r\nquit\r\n";
pub const SET_AND_GOT: &str = "STORED\r\nVALUE k 5 3\r\nabc\r\nEND\r\n";

/// The binary `nuthatch`.
pub fn nuthatch() -> PathBuf {
    binary("nuthatch", "nuthatch-cli")
}

/// The binary `nuthatch-lab`.
pub fn nuthatch_lab() -> PathBuf {
    binary("nuthatch-lab", "nuthatch-lab")
}

/// A binary, which a build of the whole workspace puts one folder above the tests' programs.
fn binary(name: &str, package: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join(name);
    assert!(
        path.is_file(),
        "{path:?} is not built: cargo build -p {package}"
    );
    path
}

pub fn run(line: &str) -> Output {
    let words = line.split_whitespace();
    Command::new(nuthatch()).args(words).output().unwrap()
}

pub fn stdout(line: &str) -> String {
    let output = run(line);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A server, ended by its process id if a test fails.
pub struct Running {
    pub child: Child,
    pub stderr: BufReader<std::process::ChildStderr>,
    /// The line that says what runs.
    pub says: String,
    /// The lines before it.
    pub warnings: Vec<String>,
}

impl Running {
    /// Starts a server and waits for the line that says what runs.
    pub fn start(line: &str) -> Self {
        Self::start_with(line, |_| {})
    }

    /// The same server, with the flags that papers need too.
    pub fn start_in_lab(line: &str) -> Self {
        let mut command = Command::new(nuthatch_lab());
        command.arg("serve").args(line.split_whitespace());
        Self::spawn(command)
    }

    pub fn start_with(line: &str, more: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(nuthatch());
        command.args(line.split_whitespace());
        more(&mut command);
        Self::spawn(command)
    }

    /// Starts a server by any command that becomes one.
    pub fn spawn(mut command: Command) -> Self {
        command.stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut running = Self {
            child,
            stderr,
            says: String::new(),
            warnings: Vec::new(),
        };
        loop {
            let mut line = String::new();
            let length = running.stderr.read_line(&mut line).unwrap();
            assert!(length > 0, "it ended: {:?}", running.warnings);
            if line.contains(": engine ") {
                running.says = line;
                return running;
            }
            running.warnings.push(line);
        }
    }

    /// The address at which it reports to listen.
    pub fn address(&self) -> &str {
        let memcached = self.says.split(", CPServer at ").next().unwrap();
        let memcached = memcached.split(", Redis at ").next().unwrap();
        let memcached = memcached.trim_end().trim_end_matches(" (TLS)");
        memcached.rsplit(' ').next().unwrap()
    }

    /// The same for CPServer's clients.
    pub fn cpserver_address(&self) -> &str {
        self.says
            .trim_end()
            .rsplit_once(", CPServer at ")
            .unwrap()
            .1
    }

    /// The same for Redis' clients.
    pub fn redis_address(&self) -> &str {
        let says = self.says.trim_end().trim_end_matches(" (TLS)");
        says.rsplit_once(", Redis at ").unwrap().1
    }

    pub fn ask(&self, request: &str) -> String {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        talk(stream, request)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// A number of /proc/PID/status.
    pub fn status(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// A line of `stats` or of one of its kinds.
    pub fn stat(&self, kind: &str, name: &str) -> String {
        let stats = self.ask(&format!("stats {kind}\r\nquit\r\n"));
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.unwrap_or_else(|| panic!("{name}: {stats}")).to_owned()
    }

    /// Waits until a number of `stats` is no longer 0.
    pub fn wait_for_stat(&self, name: &str) {
        wait_until(name, || (self.stat("", name) != "0").then_some(()));
    }

    /// Ends it by a signal, and returns its exit code and the rest of its output.
    pub fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        self.signal(signal);
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request that ends with quit and reads to the end.
pub fn talk(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}
