//! The server as a process: signals, exit codes, and the lack of file descriptors.
//!
//! This program is both sides. Started as `process serve` it is the server; otherwise it starts
//! itself so, and judges it.

#[path = "wire/client.rs"]
#[allow(dead_code)]
mod client;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::process::{Child, Command, ExitStatus, Stdio};

use client::Client;
use nuthatch_check::naive::{Naive, Options};
use nuthatch_server::{Address, Config, Listen, Server, on_signals};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let tests: [(&str, fn()); 3] = [
        ("sigterm_answers_and_exits_with_0", || signal("TERM")),
        ("sigint_answers_and_exits_with_0", || signal("INT")),
        ("a_lack_of_descriptors_is_survived", few_descriptors),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
}

/// Says its port, and serves until a signal comes.
fn serve() {
    let config = Config {
        listeners: vec![Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))],
        threads: NonZeroUsize::new(2).unwrap(),
        ..Config::default()
    };
    let server = Server::start(config, Naive::new(Options::default())).unwrap();
    on_signals(server.stopper()).unwrap();
    let Address::Tcp(address) = &server.addresses()[0] else {
        panic!("a TCP address");
    };
    println!("{address}");
    server.join().unwrap();
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
    let process = Process::start(60);
    let mut first = Client::tcp(process.address);
    first.ask("get k\r\n", "END\r\n");
    let mut others: Vec<Client> = (0..80).map(|_| Client::tcp(process.address)).collect();
    while first.stat("listen_disabled_num") == 0 {}
    first.ask("get k\r\n", "END\r\n");
    // Those who wait are served when others go.
    let last = others.split_off(60);
    drop(others);
    for mut client in last {
        client.ask("get k\r\n", "END\r\n");
    }
    assert_eq!(first.stat("accepting_conns"), 1);
    assert_eq!(process.signal("TERM").code(), Some(0));
}
