//! The server as a process: signals, exit codes, and the lack of file descriptors.
//!
//! This program is both sides. Started as `process serve` it is the server. Otherwise it starts itself as `process
//! serve`, and checks that server.

#[path = "wire/client.rs"]
#[allow(dead_code)]
mod client;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use client::{Client, connect_unix};
use nuthatch_check::naive::{Naive, Options};
use nuthatch_engine::Engine;
use nuthatch_server::{Address, Config, Listen, Protocol, Server, on_signals, raise_file_limit};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let tests: [(&str, fn()); 4] = [
        ("sigterm_answers_and_exits_with_0", || signal("TERM")),
        ("sigint_answers_and_exits_with_0", || signal("INT")),
        ("a_lack_of_descriptors_is_survived", few_descriptors),
        ("deaf_clients_take_a_bounded_memory_and_give_it_back", deaf),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
}

/// Prints its port, and serves until a signal comes.
fn serve() {
    let config = Config {
        listeners: vec![
            Listen::tcp((Ipv4Addr::LOCALHOST, 0)),
            unix("memcached", std::process::id()),
            unix("cpserver", std::process::id()).of(Protocol::CpServer),
        ],
        threads: NonZeroUsize::new(4).unwrap(),
        connections_max: NonZeroUsize::new(CONNECTIONS).unwrap(),
        ..Config::default()
    };
    let options = Options {
        memory_limit: MEMORY,
        ..Options::default()
    };
    let server = Server::start(config, Naive::new(options).any()).unwrap();
    on_signals(server.stopper()).unwrap();
    let (Address::Tcp(address), _) = &server.addresses()[0] else {
        panic!("a TCP address");
    };
    println!("{address}");
    server.join().unwrap();
}

/// More than any test here opens.
const CONNECTIONS: usize = 2000;

/// The engine's memory. The buffers of so many connections may hold a fourth of it.
const MEMORY: usize = 64 << 20;

/// The unix socket at which the server of this process also listens, for clients of this protocol.
fn unix_path(protocol: &str, process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("nuthatch-process-{protocol}-{process}"))
}

fn unix(protocol: &str, process: u32) -> Listen {
    Listen::unix(unix_path(protocol, process), 0o700)
}

struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    /// Starts the server with so many descriptors.
    fn start(descriptors: usize) -> Self {
        let script = format!("ulimit -n {descriptors}; exec \"$0\" serve");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        Self {
            child,
            address: line.trim().parse().unwrap(),
        }
    }

    /// A number of kilobytes from its status, in bytes.
    fn status(&self, name: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let number = line.split_whitespace().nth(1).unwrap();
        number.parse::<usize>().unwrap() << 10
    }

    fn signal(mut self, name: &str) -> ExitStatus {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Where a test fails before it has stopped its server.
        let _ = self.child.kill();
    }
}

fn signal(name: &str) {
    let process = Process::start(1024);
    let mut client = Client::tcp(process.address);
    let mut idle = Client::tcp(process.address);
    idle.ask("set k 0 0 1\r\na\r\n", "STORED\r\n");
    client.send("get k\r\n".repeat(1000));
    client.expect("VALUE k 0 1\r\na\r\nEND\r\n");
    let status = process.signal(name);
    assert_eq!(status.code(), Some(0), "{status}");
    for _ in 1..1000 {
        client.expect("VALUE k 0 1\r\na\r\nEND\r\n");
    }
    client.expect_end();
    idle.expect_end();
}

fn few_descriptors() {
    let process = Process::start(1024);
    // Later than the start, which admits no more connections than it has descriptors for.
    let id = process.child.id().to_string();
    let limited = Command::new("prlimit")
        .args(["--pid", &id, "--nofile=60:60"])
        .status();
    assert!(limited.unwrap().success());
    let mut first = Client::tcp(process.address);
    first.ask("get k\r\n", "END\r\n");
    let mut others: Vec<Client> = (0..80).map(|_| Client::tcp(process.address)).collect();
    first.until("listen_disabled_num", |times| times > 0);
    first.ask("get k\r\n", "END\r\n");
    // Clients that wait are served when others close.
    let last = others.split_off(60);
    drop(others);
    for mut client in last {
        client.ask("get k\r\n", "END\r\n");
    }
    // Accepting resumes by a timer, and may have run short once more while the others were going.
    first.until("accepting_conns", |accepts| accepts > 0);
    assert_eq!(process.signal("TERM").code(), Some(0));
}

/// Class of bug: memory that clients make the server hold when they send requests and do not read the replies.
fn deaf() {
    // The buffers hold up to a fourth. The rest is for the rounds of four workers that are under way, and for
    // holes: buffers grow, shrink, and go back to the arena of another thread than the one that is short.
    const BOUND: usize = MEMORY;
    // Both sides need this many descriptors.
    let files = raise_file_limit(CONNECTIONS as u64 + 200) as usize;
    let count = 1500.min(files - 200);
    let process = Process::start(files);
    let mut good = Client::tcp(process.address);
    for len in [10, 4000, 8000] {
        let value = "v".repeat(len);
        good.ask(format!("set k{len} 0 0 {len}\r\n{value}\r\n"), "STORED\r\n");
    }
    good.ask(
        format!("set eightnut 0 0 4000\r\n{}\r\n", "v".repeat(4000)),
        "STORED\r\n",
    );
    let base = process.status("VmRSS");
    for (protocol, request, held) in [
        ("memcached", "get k10\r\n", 8 << 20),
        ("memcached", "get k4000\r\n", 8 << 20),
        ("memcached", "get k8000 k10 k8000\r\n", 8 << 20),
        ("memcached", "stats conns\r\n", 4 << 20),
        (
            "memcached",
            "mg k10 v k Osomething\r\nget k8000\r\n",
            8 << 20,
        ),
        ("cpserver", "\0\0\0\0\0\0\0\0eightnut", 8 << 20),
    ] {
        // Unix sockets hold so little by themselves that their clients are soon stuck.
        let path = unix_path(protocol, process.child.id());
        let clients: Vec<UnixStream> = (0..count).map(|_| connect_unix(&path)).collect();
        let requests = request.repeat(20_000 / request.len());
        for mut client in &clients {
            client.set_nonblocking(true).unwrap();
            client.write_all(requests.as_bytes()).unwrap();
        }
        good.until("read_buf_bytes", |bytes| {
            if bytes < held {
                more(&clients, requests.as_bytes());
            }
            bytes >= held
        });
        more(&clients, requests.as_bytes());
        for _ in 0..100 {
            good.ask("get k10\r\n", "VALUE k10 0 10\r\nvvvvvvvvvv\r\nEND\r\n");
        }
        let peak = process.status("VmHWM");
        assert!(peak < base + BOUND, "{request:?}: from {base} to {peak}");
        drop(clients);
        // Memory that was held can be used again, so the same bound holds for the next round's peak. (The allocator
        // decides when it gives pages back to the system.)
        good.until("curr_connections", |connections| connections == 1);
        good.until("read_buf_bytes", |bytes| bytes <= 1 << 20);
    }
    assert_eq!(process.signal("TERM").code(), Some(0));
}

/// Sends what the sockets take.
fn more(clients: &[UnixStream], requests: &[u8]) {
    for mut client in clients {
        // The sockets should be full, so an error is expected.
        let _ = client.write(requests);
    }
}
