//! What automatic pipelining saves: the server's processor time for a get, with many tasks or threads on one connection and on a
//! connection each; and how long one get takes, beside a plain loop over a socket.
//!
//!     cargo run --release -p nuthatch-client --features tokio --example pipelining -- HOST:PORT PID [SECONDS]
//!
//! PID is the server's process.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_client::{Client, tasks};

const WORKERS: usize = 64;

/// A server under measurement.
struct Server {
    address: String,
    pid: u32,
    time: Duration,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [place, pid, rest @ ..] = words.as_slice() else {
        eprintln!("pipelining: HOST:PORT PID [SECONDS]");
        std::process::exit(2);
    };
    let seconds = rest
        .first()
        .map_or(2.0, |seconds| seconds.parse().expect("a number of seconds"));
    let server = Server {
        address: format!("tcp://{place}"),
        pid: pid.parse().expect("a process id"),
        time: Duration::from_secs_f64(seconds),
    };
    let client = Client::connect(&server.address).expect("an address");
    client.set("key", [b'x'; 32], None).expect("a server");
    println!("one get at a time, p50 and p99 in us");
    show("plain loop", plain(place, server.time));
    show(
        "client, a thread",
        calls(server.time, || client.get("key").unwrap().unwrap()),
    );
    show("client, a task", one_task(&server));
    for shared in [true, false] {
        let connections = if shared {
            "one connection"
        } else {
            "a connection each"
        };
        server.report(&format!("{WORKERS} threads, {connections}"), || {
            threads(&server, shared)
        });
        server.report(&format!("{WORKERS} tasks, {connections}"), || {
            many_tasks(&server, shared)
        });
    }
}

impl Server {
    /// The processor time that the server has used so far, in clock ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .expect("the server's process");
        let (_, fields) = stat.rsplit_once(") ").expect("a process's name");
        fields
            .split(' ')
            .skip(11)
            .take(2)
            .map(|field| field.parse::<u64>().expect("a number"))
            .sum()
    }

    fn report(&self, what: &str, run: impl FnOnce() -> u64) {
        let (ticks, start) = (self.ticks(), Instant::now());
        let gets = run();
        let seconds = start.elapsed().as_secs_f64();
        let used = (self.ticks() - ticks) as f64 * 1e4 / gets as f64;
        println!(
            "{what:34} {:9.0} gets/s  server {used:6.2} us a get",
            gets as f64 / seconds
        );
    }
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e6;
    println!("{what:34} {:6.1} {:6.1}", at(50), at(99));
}

fn calls<T>(time: Duration, mut call: impl FnMut() -> T) -> Vec<Duration> {
    let end = Instant::now() + time;
    let mut times = Vec::new();
    while Instant::now() < end {
        let start = Instant::now();
        std::hint::black_box(call());
        times.push(start.elapsed());
    }
    times
}

fn plain(place: &str, time: Duration) -> Vec<Duration> {
    let mut socket = TcpStream::connect(place).expect("a server");
    socket.set_nodelay(true).expect("a socket");
    let mut room = [0; 1024];
    calls(time, || {
        socket.write_all(b"mg key v f O1\r\n").expect("a server");
        socket.read(&mut room).expect("a reply")
    })
}

fn one_task(server: &Server) -> Vec<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let client = tasks::Client::connect(&server.address).expect("an address");
    runtime.block_on(async {
        let end = Instant::now() + server.time;
        let mut times = Vec::new();
        while Instant::now() < end {
            let start = Instant::now();
            client.get("key").await.unwrap().unwrap();
            times.push(start.elapsed());
        }
        times
    })
}

/// How many gets the threads made.
fn threads(server: &Server, shared: bool) -> u64 {
    let (gets, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let first = Client::connect(&server.address).expect("an address");
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            let own = Client::connect(&server.address).expect("an address");
            let client = if shared { first.clone() } else { own };
            let (gets, is_over) = (&gets, &is_over);
            scope.spawn(move || {
                let mut made = 0;
                while !is_over.load(Ordering::Relaxed) {
                    client.get("key").unwrap().unwrap();
                    made += 1;
                }
                gets.fetch_add(made, Ordering::Relaxed);
            });
        }
        thread::sleep(server.time);
        is_over.store(true, Ordering::Relaxed);
    });
    gets.into_inner()
}

fn many_tasks(server: &Server, shared: bool) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let first = tasks::Client::connect(&server.address).expect("an address");
    let end = Instant::now() + server.time;
    runtime.block_on(async {
        let mut all = Vec::new();
        for _ in 0..WORKERS {
            let own = tasks::Client::connect(&server.address).expect("an address");
            let client = if shared { first.clone() } else { own };
            all.push(tokio::spawn(async move {
                let mut made = 0;
                while Instant::now() < end {
                    client.get("key").await.unwrap().unwrap();
                    made += 1;
                }
                made
            }));
        }
        let mut gets = 0;
        for task in all {
            gets += task.await.expect("a task");
        }
        gets
    })
}
