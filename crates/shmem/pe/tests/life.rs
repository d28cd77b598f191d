//! PEs that are threads: gateways speak memcached, and all end together.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown as Half, SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use nuthatch_fabric::threads::{Network, ThreadsFabric};
use nuthatch_fabric::{Address, Fabric, NoMemory, forward_fabric};
use nuthatch_pe::{Abort, Options, Plan, own_words, run};
use nuthatch_program::Failure;
use nuthatch_server::Shutdown;

fn options(line: &str) -> Options {
    let words = std::iter::once("nuthatch-pe").chain(line.split_whitespace());
    Options::try_parse_from(words).unwrap()
}

/// A fabric that notices an allocation while a server of its PE runs: an allocation waits for all PEs, and with
/// OpenSHMEM it competes with the server's calls.
struct Watched {
    fabric: Arc<ThreadsFabric>,
    serves: AtomicBool,
    /// What was noticed on any PE.
    allocates_late: Arc<AtomicBool>,
}

impl Watched {
    fn below(&self) -> &ThreadsFabric {
        if thread::current().name() == Some("server") {
            // Relaxed: the flag is all there is to see.
            self.serves.store(true, Ordering::Relaxed);
        }
        &self.fabric
    }
}

impl Fabric for Watched {
    forward_fabric!(pe pes verified local direct put get put_nbi get_nbi compare_swap fetch_add swap fetch set signal);
    forward_fabric!(is_gone fence quiet barrier broadcast pause doze nanos);

    fn allocate(&self, words: usize) -> Result<Address, NoMemory> {
        // So long that a server that has been started makes a call.
        thread::sleep(Duration::from_millis(100));
        if self.serves.load(Ordering::Relaxed) {
            self.allocates_late.store(true, Ordering::Relaxed);
        }
        self.fabric.allocate(words)
    }
}

/// Runs a job in which `asks` is given the gateways' port files; `change` may spoil a PE's plan.
fn job(
    line: &str,
    pes: usize,
    change: impl Fn(usize, &mut Plan) + Sync,
    asks: impl FnOnce(&[Shutdown], &dyn Fn(usize) -> SocketAddr),
) -> Vec<Result<(), Failure>> {
    let options = options(line);
    let files = tempfile::tempdir().unwrap();
    let file = |pe: usize| files.path().join(pe.to_string());
    let store = options.store(pes).unwrap();
    let words = store.symmetric_words(pes).unwrap() + own_words::<ThreadsFabric>(pes);
    let stops: Vec<_> = (0..pes).map(|_| Shutdown::default()).collect();
    let abort: Abort = Arc::new(|| unreachable!("no server panics"));
    let allocates_late = Arc::new(AtomicBool::new(false));
    let ended = thread::scope(|scope| {
        let ends = Network::free(pes, words).ends();
        let running: Vec<_> = ends
            .into_iter()
            .zip(&stops)
            .map(|(end, stop)| {
                let mut plan = options.plan(end.pe(), pes).unwrap();
                if let Some(gateway) = &mut plan.gateway {
                    gateway.port_file = Some(file(end.pe()));
                }
                change(end.pe(), &mut plan);
                let abort = &abort;
                let fabric = Arc::new(Watched {
                    fabric: end,
                    serves: AtomicBool::new(false),
                    allocates_late: Arc::clone(&allocates_late),
                });
                scope.spawn(move || run(&fabric, plan, stop, abort))
            })
            .collect();
        let asked = catch_unwind(AssertUnwindSafe(|| {
            asks(&stops, &|pe| address(&file(pe)));
        }));
        if let Err(panic) = asked {
            // Otherwise the PEs would run on.
            stops[0].request();
            resume_unwind(panic);
        }
        running.into_iter().map(|pe| pe.join().unwrap()).collect()
    });
    assert!(
        !allocates_late.load(Ordering::Relaxed),
        "a PE allocates while it serves"
    );
    ended
}

/// Where a gateway listens, once it does.
fn address(file: &Path) -> SocketAddr {
    loop {
        if let Ok(text) = fs::read_to_string(file)
            && let Some(port) = text.lines().next().filter(|_| text.ends_with('\n'))
        {
            let port = port.rsplit(' ').next().unwrap().parse().unwrap();
            return SocketAddr::from(([127, 0, 0, 1], port));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn ask(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream.shutdown(Half::Write).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

const ANY_PORT: &str = "-p 0 -l 127.0.0.1 -m 8 -t 2 --directory 1024";

#[test]
fn what_one_gateway_stores_another_finds() {
    let line = format!("--servers 2 {ANY_PORT}");
    let ended = job(
        &line,
        4,
        |_, _| {},
        |stops, at| {
            assert_eq!(ask(at(2), "set k 5 0 3\r\nabc\r\n"), "STORED\r\n");
            assert_eq!(ask(at(3), "get k\r\n"), "VALUE k 5 3\r\nabc\r\nEND\r\n");
            assert_eq!(ask(at(3), "flush_all\r\n"), "OK\r\n");
            assert_eq!(ask(at(2), "get k\r\n"), "END\r\n");
            // A server that is told to stop ends the gateways, too.
            stops[0].request();
        },
    );
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
}

#[test]
fn a_gateway_tells_of_the_job() {
    let line = format!("--servers 2 {ANY_PORT}");
    let ended = job(
        &line,
        4,
        |_, _| {},
        |stops, at| {
            let mut text = String::new();
            for number in 0..60 {
                text += &format!("set key{number} 0 0 1\r\nx\r\nget key{number}\r\n");
            }
            ask(at(3), &text);
            // Servers send their statistics once a second.
            let told = loop {
                let told = ask(at(3), "stats cluster\r\n");
                let items = |told: &str| {
                    let lines = told.lines().filter(|line| line.contains(":items "));
                    lines
                        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
                        .sum::<u64>()
                };
                if items(&told) == 60 {
                    break told;
                }
                thread::sleep(Duration::from_millis(1));
            };
            let value = |name: &str| {
                let line = told
                    .lines()
                    .find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name));
                let value = line.and_then(|line| line.strip_prefix(' '));
                value.unwrap_or_else(|| panic!("no {name}: {told}"))
            };
            let number = |name: &str| value(name).parse::<u64>().unwrap();
            assert_eq!(
                (value("pe"), value("pes"), value("servers")),
                ("3", "4", "2")
            );
            assert_eq!(value("silent_pes"), "none");
            let sum = |name: &str| {
                (0..2)
                    .map(|server| number(&format!("server:{server}:{name}")))
                    .sum()
            };
            let (requests, items): (u64, u64) = (sum("requests"), sum("items"));
            assert_eq!((requests, items), (120, 60));
            let done = ["direct_gets", "direct_misses", "direct_sets", "messages"].map(number);
            assert!(done.iter().sum::<u64>() >= 120, "{told}");
            for server in 0..2 {
                assert_eq!(value(&format!("server:{server}:state")), "answers");
                assert_eq!(value(&format!("server:{server}:reached_by")), "loads");
                assert!(value(&format!("server:{server}:known_gets")).starts_with("1:"));
                assert!(number(&format!("server:{server}:epoch")) > 0);
                assert!(number(&format!("server:{server}:memory_used")) > 0);
            }
            // Requests of another gateway are not counted here, and a reset sets the counts to zero.
            assert!(ask(at(2), "stats cluster\r\n").contains("STAT server:0:requests 0\r\n"));
            assert_eq!(ask(at(3), "stats reset\r\n"), "RESET\r\n");
            assert!(ask(at(3), "stats cluster\r\n").contains("STAT server:1:requests 0\r\n"));
            stops[0].request();
        },
    );
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
}

#[test]
fn co_located_pes_serve_each_other_until_a_client_ends_them() {
    let line = format!("--co-located -A {ANY_PORT}");
    let ended = job(
        &line,
        2,
        |_, _| {},
        |_, at| {
            for number in 0..100 {
                let set = format!("set key{number} 0 0 1\r\nx\r\n");
                assert_eq!(ask(at(number % 2), &set), "STORED\r\n");
            }
            let all: String = (0..100).map(|number| format!(" key{number}")).collect();
            let found = ask(at(1), &format!("get{all}\r\n"));
            assert_eq!(found.matches("VALUE").count(), 100);
            ask(at(1), "shutdown\r\n");
        },
    );
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
}

#[test]
fn other_flags_of_one_pe_end_the_job_on_all() {
    let line = format!("--servers 1 {ANY_PORT}");
    let spoil = |pe, plan: &mut Plan| {
        if pe == 2 {
            plan.store.sessions = 1;
        }
    };
    for ended in job(&line, 3, spoil, |_, _| {}) {
        let Err(Failure::Usage(said)) = ended else {
            panic!("{ended:?}");
        };
        assert!(
            said.contains("PE 2") && said.contains("sessions 1 instead of 2"),
            "{said}"
        );
    }
}

#[test]
fn a_gateway_that_cannot_listen_ends_the_job_and_says_why() {
    let line = format!("--servers 1 {ANY_PORT}");
    let spoil = |pe, plan: &mut Plan| {
        if let (2, Some(gateway)) = (pe, &mut plan.gateway) {
            // No host has this address: it is reserved for documentation.
            let nowhere = SocketAddr::from(([192, 0, 2, 1], 0));
            gateway.listeners = vec![nuthatch_server::Listen::tcp(nowhere)];
        }
    };
    let ended = job(&line, 3, spoil, |_, _| {});
    let error = ended[2].as_ref().unwrap_err().to_string();
    assert!(error.contains("192.0.2.1"), "{error}");
    assert!(ended[0].is_ok() && ended[1].is_ok(), "{ended:?}");
}

/// How long a client waits for an event. Only how a failure shows depends on it.
const WAIT: Duration = Duration::from_secs(120);

#[test]
fn clients_that_never_read_do_not_hold_all_of_a_gateways_memory() {
    let line = "--servers 1 -p 0 -l 127.0.0.1 -m 16 -t 1 --directory 1024";
    let ended = job(
        line,
        2,
        |_, _| {},
        |stops, at| {
            let value = "x".repeat(1 << 20);
            let len = value.len() - 100;
            let set = format!("set k 0 0 {len}\r\n{}\r\n", &value[..len]);
            assert_eq!(ask(at(1), &set), "STORED\r\n");
            // A megabyte for each at least, once sockets take no more: more than all connections may hold.
            let silent: Vec<_> = (0..24)
                .map(|_| {
                    let mut stream = TcpStream::connect(at(1)).unwrap();
                    stream.write_all("get k\r\n".repeat(64).as_bytes()).unwrap();
                    stream
                })
                .collect();
            let refuses = |stats: &str| !stats.contains("STAT read_buf_oom 0\r\n");
            let begun = Instant::now();
            while !refuses(&ask(at(1), "stats\r\n")) {
                assert!(
                    begun.elapsed() < WAIT,
                    "values of a connection are not counted"
                );
                thread::sleep(Duration::from_millis(1));
            }
            drop(silent);
            stops[0].request();
        },
    );
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
}
