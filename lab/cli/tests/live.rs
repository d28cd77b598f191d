//! Tests of `nuthatch-lab hash live` with real servers: what it shows, and its errors for other servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread;

const LAB: &str = env!("CARGO_BIN_EXE_nuthatch-lab");

/// Items that a test stores in a server.
const ITEMS: u64 = 2000;

/// A server, ended by its process id.
struct Server {
    child: Child,
    /// The line that says what runs.
    says: String,
    _stderr: BufReader<ChildStderr>,
}

impl Server {
    /// Starts one on a free port and waits for the line with its address.
    fn start(engine: &str) -> Self {
        Self::start_with(engine, &[])
    }

    fn start_with(engine: &str, more: &[&str]) -> Self {
        let mut child = Command::new(LAB)
            .args(["serve", "-l", "127.0.0.1", "-p", "0", "-m", "32", "-t", "2"])
            .args(["--engine", engine])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut says = String::new();
        while !says.contains(": engine ") {
            says.clear();
            assert!(stderr.read_line(&mut says).unwrap() > 0, "it ended");
        }
        Self {
            child,
            says,
            _stderr: stderr,
        }
    }

    fn address(&self) -> &str {
        self.says.trim_end().rsplit(' ').next().unwrap()
    }

    /// Stores items, gets each once, and gets as many missing ones.
    fn use_it(&self) {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let mut request = String::new();
        for number in 0..ITEMS {
            request += &format!("set k{number} 0 0 1 noreply\r\nx\r\n");
        }
        request += "stats reset\r\n";
        for number in 0..ITEMS {
            request += &format!("get k{number}\r\nget no{number}\r\n");
        }
        request += "quit\r\n";
        // The replies are fewer than a socket holds, but need not be.
        let mut writer = stream.try_clone().unwrap();
        let sender = thread::spawn(move || writer.write_all(request.as_bytes()).unwrap());
        let mut replies = String::new();
        stream.read_to_string(&mut replies).unwrap();
        sender.join().unwrap();
        assert_eq!(replies.matches("VALUE k").count() as u64, ITEMS);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn live(target: &str, words: &[&str]) -> Output {
    Command::new(LAB)
        .args(["hash", "live", "--target", target])
        .args(words)
        .output()
        .unwrap()
}

fn stdout(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(output: &Output, code: i32, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(why), "`{why}` in {said}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn every_engine_shows_its_index() {
    for engine in [
        "cuckoo",
        "cuckoo-paper",
        "chained",
        "chained-clock",
        "lockhash",
        "cphash",
    ] {
        // An index of which only a sample is shown.
        let (per_item, memory) = match engine.starts_with("cuckoo") {
            true => ("in 4 KiB", "128"),
            false => ("a KiB", "32"),
        };
        let server = Server::start_with(engine, &["-m", memory]);
        let says = format!(" slots (room for one item {per_item} of memory), ");
        assert!(server.says.contains(&says), "{}", server.says);
        server.use_it();
        let text = stdout(live(server.address(), &[]));
        for words in [
            &*format!("== {engine} at {}: {ITEMS} items\n", server.address()),
            "a sample: ",
            "hash table size is ",
            "objects searched: 1.",
            "(perfect ",
            "hash table histogram:\n size    buckets       items sum-pct      buckets",
            &*format!("{ITEMS} hits and {ITEMS} misses; "),
        ] {
            assert!(text.contains(words), "{engine}: `{words}` in\n{text}");
        }

        let line = stdout(live(server.address(), &["--json"]));
        let seen: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(seen["engine"], engine);
        assert_eq!(
            (&seen["items"], &seen["hits"]),
            (&ITEMS.into(), &ITEMS.into())
        );
        let index = &seen["index"];
        assert_eq!(index["is_sample"], true);
        let items = index["histogram"].as_array().unwrap().iter();
        let items: u64 = items.map(|row| row["items"].as_u64().unwrap()).sum();
        assert_eq!(index["items_sampled"], items);
        assert!(index["perfect"]["used_share"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn the_index_has_room_for_the_items_asked_for() {
    for engine in ["chained", "lockhash", "cphash"] {
        let server = Server::start_with(engine, &["-o", "hashpower=16"]);
        let index = "index of 65536 slots (room for the items asked for), ";
        assert!(server.says.contains(index), "{}", server.says);
    }
}

#[test]
fn it_looks_again_as_often_as_asked() {
    let server = Server::start("cuckoo");
    server.use_it();
    let words = ["--interval", "0.1", "--count", "3"];
    let text = stdout(live(server.address(), &words));
    assert_eq!(text.matches("== cuckoo at ").count(), 3);
    assert_eq!(
        text.matches(": 0 hits, 0 misses; objects searched: - for")
            .count(),
        2
    );
    let lines = stdout(live(server.address(), &[&words[..], &["--json"]].concat()));
    assert_eq!(lines.lines().count(), 3);
}

#[test]
fn a_server_that_goes_away_ends_it_with_words() {
    let mut server = Server::start("chained");
    let mut child = Command::new(LAB)
        .args(["hash", "live", "--target", server.address()])
        .args(["--interval", "0.1", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    assert!(first.contains("\"engine\":\"chained\""), "{first}");
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    stdout.read_to_string(&mut first).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.starts_with("nuthatch-lab: 127.0.0.1:"), "{said}");
}

/// A server that gives the same answer to every request.
fn answering(answer: &'static str) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 64];
        let length = stream.read(&mut asked).unwrap();
        assert_eq!(&asked[..length], b"stats hash\r\n");
        stream.write_all(answer.as_bytes()).unwrap();
    });
    (address, thread)
}

#[test]
fn servers_of_other_kinds_are_told_apart() {
    for (answer, why) in [
        ("ERROR\r\n", "does not know `stats hash`"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "it said: HTTP/1.1 400"),
        ("END\r\n", "lacks `engine`"),
        ("STAT engine x\r\nEND\r\n", "lacks `items`"),
        ("STAT engine x\r\n", "closed the connection"),
        ("", "closed the connection"),
    ] {
        let (address, thread) = answering(answer);
        refused(&live(&address, &[]), 1, why);
        thread.join().unwrap();
    }
}

#[test]
fn what_cannot_be_meant() {
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    refused(&live(&free.to_string(), &[]), 1, "no server at 127.0.0.1:");
    refused(
        &live("/nowhere/at/all", &[]),
        1,
        "no server at /nowhere/at/all",
    );
    refused(&live("localhost", &[]), 2, "HOST:PORT");
    refused(&live("localhost:99999", &[]), 2, "HOST:PORT");
    refused(
        &live("localhost:1", &["--interval", "0"]),
        2,
        "from 0.1 to 86400",
    );
    refused(&live("localhost:1", &["--count", "2"]), 2, "--interval");
}
