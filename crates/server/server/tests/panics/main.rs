//! Faults of the server itself: a panic of a command ends its connection alone, and a panic inside of the engine ends the
//! server, which saves its items before that.
//!
//! This program is both sides, as `process` is. The server's engine is a real one in a wrapper that panics amid requests
//! for certain keys, and its log panics at a command with a certain key: so no fault is built into the server.

#[path = "../wire/client.rs"]
#[allow(dead_code)]
mod client;
mod fragile;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, exit};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use client::Client;
use fragile::{FOR_EVER, Fragile, FragileLog, INSIDE, OUTSIDE};
use nuthatch_chained::{Chained, ChainedConfig};
use nuthatch_check::naive::{Naive, Options};
use nuthatch_cphash::CpHash;
use nuthatch_cphash::config::CpHashConfig;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::Engine;
use nuthatch_server::{Address, Config, Listen, Persistence, Server, on_signals};

const ENGINES: [&str; 4] = ["naive", "cuckoo", "chained", "cphash"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, serves, engine, folder, thread] = &arguments[..]
        && serves == "serve"
    {
        return serve(engine, Path::new(folder), thread);
    }
    let tests: [(&str, fn()); 5] = [
        ("a_panic_outside_of_the_engine_ends_its_connection", outside),
        ("a_panic_inside_of_the_engine_loses_no_item", inside),
        (
            "a_panic_of_a_thread_that_serves_one_at_a_time_ends_that_one",
            caught,
        ),
        ("a_panic_of_another_thread_loses_no_item", saved),
        ("a_save_that_hangs_ends_and_leaves_the_copy", hangs),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
}

fn serve(engine: &str, folder: &Path, thread: &str) {
    tracing::subscriber::set_global_default(FragileLog::of(thread)).unwrap();
    let engine = match engine {
        "cuckoo" => {
            let engine: Cuckoo = Cuckoo::new(CuckooConfig::default()).unwrap();
            Fragile::over(Arc::new(engine))
        }
        "cphash" => {
            let engine: CpHash = CpHash::new(CpHashConfig::default()).unwrap();
            Fragile::over(Arc::new(engine))
        }
        "sound" => Naive::new(Options::default()).any(),
        "chained" => Fragile::over(Arc::new(Chained::new(ChainedConfig::default()).unwrap())),
        _ => Fragile::over(Naive::new(Options::default())),
    };
    let config = Config {
        listeners: vec![Listen::tcp((Ipv4Addr::LOCALHOST, 0))],
        threads: NonZeroUsize::new(2).unwrap(),
        persistence: Persistence {
            restart: Some(restart_file(folder)),
            save: Some((copy(folder), Duration::from_secs(3600))),
            ..Persistence::default()
        },
        metrics: vec![Listen::tcp((Ipv4Addr::LOCALHOST, 0))],
        handover: Some(folder.join("handover")),
        failure_patience: Duration::from_secs(2),
        ..Config::default()
    };
    let server = Server::start(config, engine).unwrap();
    on_signals(server.stopper()).unwrap();
    let (Address::Tcp(address), _) = &server.addresses()[0] else {
        panic!("a TCP address");
    };
    println!("{address} {}", server.metrics_addresses()[0]);
    if server.join().is_err() {
        exit(1);
    }
}

fn restart_file(folder: &Path) -> PathBuf {
    folder.join("items")
}

fn copy(folder: &Path) -> PathBuf {
    folder.join("copy")
}

struct Process {
    child: Child,
    address: SocketAddr,
    metrics: SocketAddr,
}

impl Process {
    fn start(engine: &str, folder: &Path) -> Self {
        Self::start_with(engine, folder, "")
    }

    /// With a log that panics in the thread of this name.
    fn start_with(engine: &str, folder: &Path, thread: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["serve", engine])
            .arg(folder)
            .arg(thread)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join("says")).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let says = || fs::read_to_string(folder.join("says")).unwrap();
        let address = |word: Option<&str>| {
            let address = word.and_then(|word| word.parse().ok());
            address.unwrap_or_else(|| panic!("{engine}: {}", says()))
        };
        let mut words = line.split_whitespace();
        Self {
            child,
            address: address(words.next()),
            metrics: address(words.next()),
        }
    }

    fn code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    fn stop(self) {
        self.signal("TERM");
        assert_eq!(self.code(), Some(0));
    }
}

/// Several connections at each worker.
const CLIENTS: usize = 6;

fn outside() {
    for engine in ENGINES {
        let folder = tempfile::tempdir().unwrap();
        let process = Process::start(engine, folder.path());
        let mut others: Vec<Client> = (0..CLIENTS).map(|_| Client::tcp(process.address)).collect();
        for (number, other) in others.iter_mut().enumerate() {
            other.ask(format!("set k{number} 0 0 1\r\nv\r\n"), "STORED\r\n");
        }
        for _ in 0..CLIENTS {
            let mut client = Client::tcp(process.address);
            // The first request is in the batch already, as is that of the command that panics.
            client.send(format!(
                "ms before 1\r\na\r\nset {OUTSIDE} 0 0 1\r\nb\r\nset after 0 0 1\r\nc\r\n"
            ));
            client.expect_end();
        }
        for (number, other) in others.iter_mut().enumerate() {
            other.ask(format!("get before {OUTSIDE} after\r\n"), "END\r\n");
            let key = format!("k{number}");
            other.ask(
                format!("get {key}\r\n"),
                format!("VALUE {key} 0 1\r\nv\r\nEND\r\n"),
            );
        }
        let one = &mut others[0];
        assert_eq!(one.stat("panic_kicks"), CLIENTS as u64, "{engine}");
        assert_eq!(one.stat("curr_items"), CLIENTS as u64, "{engine}");
        one.until("curr_connections", |open| open == CLIENTS as u64);
        process.stop();
    }
}

const ITEMS: usize = 1000;

fn fill(client: &mut Client) {
    for number in 0..ITEMS {
        client.ask(format!("set k{number} 0 0 1\r\nv\r\n"), "STORED\r\n");
    }
}

fn inside() {
    for engine in ENGINES {
        let requests = ["get KEY\r\n", "set KEY 0 0 1\r\nw\r\n", "incr KEY 1\r\n"];
        for asks in requests.map(|request| request.replace("KEY", INSIDE)) {
            let folder = tempfile::tempdir().unwrap();
            let process = Process::start(engine, folder.path());
            let mut client = Client::tcp(process.address);
            fill(&mut client);
            client.send(&asks);
            client.expect_end();
            assert_eq!(process.code(), Some(1), "{engine}: {asks}");
            assert!(copy(folder.path()).exists(), "{engine}: {asks}");

            // The item of the request that panicked may be there as well.
            let process = Process::start("sound", folder.path());
            let mut client = Client::tcp(process.address);
            for number in 0..ITEMS {
                client.ask(
                    format!("get k{number}\r\n"),
                    format!("VALUE k{number} 0 1\r\nv\r\nEND\r\n"),
                );
            }
            process.stop();
        }
    }
}

/// Waits until the server has told of a panic.
fn told(folder: &Path, process: &mut Process) {
    while !fs::read_to_string(folder.join("says"))
        .unwrap()
        .contains("as planned")
    {
        assert!(process.child.try_wait().unwrap().is_none(), "it ended");
        thread::sleep(Duration::from_millis(5));
    }
}

fn caught() {
    for thread in ["acceptor", "metrics", "signals"] {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start_with("cuckoo", folder.path(), thread);
        match thread {
            "acceptor" => Client::tcp(process.address).expect_end(),
            // A reset is an error of the scrape.
            "metrics" => {
                let scrape = TcpStream::connect(process.metrics).unwrap();
                let linger = Some(Duration::ZERO);
                socket2::SockRef::from(&scrape).set_linger(linger).unwrap();
            }
            _ => process.signal("HUP"),
        }
        told(folder.path(), &mut process);
        Client::tcp(process.address).ask("set k 0 0 1\r\nv\r\n", "STORED\r\n");
        let mut scrape = TcpStream::connect(process.metrics).unwrap();
        scrape.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut page = String::new();
        scrape.read_to_string(&mut page).unwrap();
        assert!(page.contains("nuthatch_items"), "{thread}: {page}");
        process.stop();
    }
}

fn saved() {
    for thread in ["maintenance", "handover"] {
        let folder = tempfile::tempdir().unwrap();
        let process = Process::start_with("cuckoo", folder.path(), thread);
        let mut client = Client::tcp(process.address);
        fill(&mut client);
        match thread {
            // It warns of the first value that is refused.
            "maintenance" => client.send(format!("set k 0 0 {}\r\n", 2 << 20)),
            // It warns of what is no successor.
            _ => drop(UnixStream::connect(folder.path().join("handover")).unwrap()),
        }
        assert_eq!(process.code(), Some(1), "{thread}");
        let process = Process::start("sound", folder.path());
        assert_eq!(
            Client::tcp(process.address).stat("curr_items"),
            ITEMS as u64
        );
        process.stop();
    }
}

fn hangs() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start("cuckoo", folder.path());
    fill(&mut Client::tcp(process.address));
    process.stop();
    let before = fs::read(copy(folder.path())).unwrap();
    let process = Process::start("cuckoo", folder.path());
    let mut client = Client::tcp(process.address);
    client.ask("set k 0 0 1\r\nv\r\n", "STORED\r\n");
    client.send(format!("get {FOR_EVER}\r\n"));
    client.expect_end();
    assert_eq!(process.code(), Some(3));
    assert_eq!(fs::read(copy(folder.path())).unwrap(), before);
    assert!(!restart_file(folder.path()).exists());
}
