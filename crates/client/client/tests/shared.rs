//! Servers whose memory a client reads, and which it asks by a ring or by a socket: what they store is seen, and it is noticed
//! when they end, however they do.
#![cfg(all(
    feature = "shm",
    target_os = "linux",
    not(any(nuthatch_unix, nuthatch_portable))
))]

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nuthatch_client::{CarriedOut, Client, Compute, Error, Local, Outcome};
use tempfile::TempDir;

mod servers;

use running::{PATIENCE, Running, wait_until};
use servers::*;

const MINUTE: Duration = Duration::from_secs(60);
const ADDRESS: &str = "NUTHATCH_CLIENT_TEST_ADDRESS";

/// A folder for the sockets of servers that follow each other.
struct Place {
    folder: TempDir,
    /// Their clients may use the socket, if they get no ring.
    has_or: bool,
}

impl Place {
    fn new(has_or: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, has_or }
    }

    /// One for each kind of address.
    fn all() -> [Self; 2] {
        [Self::new(false), Self::new(true)]
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn serve(&self, flags: &str) -> Running {
        let (socket, shared) = (self.path("socket"), self.path("shared"));
        Running::start(&format!(
            "-s {} --shared {} -t 1 -m 64 {flags}",
            socket.display(),
            shared.display()
        ))
    }

    /// Pauses are short: tests begin servers again.
    fn address(&self) -> String {
        let (socket, shared) = (self.path("socket"), self.path("shared"));
        let or = match self.has_or {
            true => format!("or=unix://{}&", socket.display()),
            false => String::new(),
        };
        let (shared, patience) = (shared.display(), PATIENCE.as_millis());
        format!("shm://{shared}?{or}retry_least_ms=1&retry_most_ms=20&timeout_ms={patience}")
    }

    fn client(&self) -> Client {
        Client::connect(&self.address()).unwrap()
    }
}

/// How many gets the server was asked. It knows nothing of those that clients answered by themselves.
fn asked(server: &Server) -> u64 {
    server.running().stat("", "cmd_get").parse().unwrap()
}

#[test]
fn what_is_there_is_read_without_asking() {
    for server in [Server::shared(""), Server::ringless("")].map(Option::unwrap) {
        let client = Client::connect(&server.address()).unwrap();
        // The first call connects.
        client.set("k", "v", MINUTE).unwrap();
        let long = vec![b'x'; 300_000];
        client.set("long", &long, None).unwrap();
        let before = asked(&server);
        for _ in 0..100 {
            assert_eq!(client.get("k"), Ok(Some(b"v".to_vec())));
            assert_eq!(client.get("none"), Ok(None));
        }
        assert_eq!(client.get("long"), Ok(Some(long)));
        let item = client.get_item("k").unwrap().unwrap();
        let left = item.left.unwrap();
        assert!(left <= MINUTE && left > MINUTE / 2);
        assert_eq!(client.cas("k", "w", None, item.cas), Ok(Outcome::Done));
        assert_eq!(client.get_item("k").unwrap().unwrap().left, None);
        let many = client.get_many(&["k", "none", "long"]).complete().unwrap();
        assert_eq!(many[0], Some(b"w".to_vec()));
        assert!(many[1].is_none() && many[2].is_some());
        let how = Compute::new(MINUTE).early(Duration::from_secs(1));
        let computed = client.get_or_compute("k", how, || Err::<Vec<u8>, _>("not computed"));
        assert_eq!(computed, Ok(b"w".to_vec()));
        assert_eq!(asked(&server), before);
    }
}

#[test]
fn a_server_counts_its_readers() {
    let place = Place::new(false);
    let _server = place.serve("");
    let asking = Client::connect(&format!("unix://{}", place.path("socket").display())).unwrap();
    let stat = |name: &str| -> u64 {
        let (_, stats) = asking.stats("").pop().unwrap();
        let stats = stats.unwrap();
        let (_, value) = stats.iter().find(|(known, _)| known == name).unwrap();
        value.parse().unwrap()
    };
    let client = place.client();
    client.set("k", "v", None).unwrap();
    assert_eq!(client.get("k"), Ok(Some(b"v".to_vec())));
    wait_until("its use of the item", || {
        (stat("shared_uses") > 0).then_some(())
    });
    assert_eq!(stat("shared_readers"), 1);
    assert_eq!((stat("total_shared_readers"), stat("total_rings")), (1, 1));
    drop(client);
    wait_until("its end", || (stat("shared_readers") == 0).then_some(()));
    let mut stranger = UnixStream::connect(place.path("shared")).unwrap();
    stranger.write_all(&[0; 64]).unwrap();
    wait_until("its refusal", || {
        (stat("rejected_shared_readers") == 1).then_some(())
    });
}

#[test]
fn what_is_known_is_told_without_a_server() {
    let server = Server::shared("").unwrap();
    let client = Client::connect(&server.address_with("value_max=1000")).unwrap();
    // Nothing is connected.
    assert_eq!(client.get_local("k"), Ok(Local::Unknown));
    client.set("k", "v", None).unwrap();
    let before = asked(&server);
    assert_eq!(client.get_local("k"), Ok(Local::Value(b"v".to_vec())));
    assert_eq!(client.get_local("none"), Ok(Local::Missing));
    let item = client.get_item_local("k").unwrap().unwrap().unwrap();
    assert_eq!(item.value, b"v");
    assert_eq!(client.get_item_local("none"), Ok(Some(None)));
    let error = |length, limit| Err(Error::Key { length, limit });
    assert_eq!(client.get_local(""), error(0, 250));
    assert!(client.get_item_local("").is_err());
    assert_eq!(client.make_stale("k", MINUTE), Ok(Outcome::Done));
    assert_eq!(client.get_local("k"), Ok(Local::Unknown));
    let other = Client::connect(&server.address()).unwrap();
    other.set("k", vec![b'x'; 1001], None).unwrap();
    assert_eq!(client.get_local("k"), Ok(Local::Unknown));
    assert_eq!(asked(&server), before);
    let asking = Client::connect(&format!("tcp://{}", server.place())).unwrap();
    asking.version();
    assert_eq!(asking.get_local("k"), Ok(Local::Unknown));
    assert_eq!(asking.get_item_local("k"), Ok(None));
    assert_eq!(asking.get_local("x".repeat(251)), error(251, 250));
}

#[test]
fn what_is_stale_is_asked_for() {
    for server in [Server::shared(""), Server::ringless("")].map(Option::unwrap) {
        let client = Client::connect(&server.address()).unwrap();
        client.set("k", "old", None).unwrap();
        assert_eq!(client.make_stale("k", MINUTE), Ok(Outcome::Done));
        let many = client.get_many(&["none", "k"]).complete().unwrap();
        assert_eq!(many, [None, Some(b"old".to_vec())]);
        assert!(asked(&server) > 0);
        assert_eq!(client.make_stale("k", MINUTE), Ok(Outcome::Done));
        let computed = client.get_or_compute("k", Compute::new(MINUTE), || {
            Ok::<_, Error>(b"new".to_vec())
        });
        assert_eq!(computed, Ok(b"new".to_vec()));
        assert_eq!(client.get("k"), Ok(Some(b"new".to_vec())));
    }
}

#[test]
fn a_value_that_is_too_long_is_the_error_that_a_socket_gives() {
    for server in [Server::shared(""), Server::ringless("")].map(Option::unwrap) {
        let client = Client::connect(&server.address()).unwrap();
        client.set("k", "123456", None).unwrap();
        let strict = |address: &str| Client::connect(address).unwrap().get("k").unwrap_err();
        let plain = format!("tcp://{}?value_max=3", server.place());
        assert_eq!(strict(&server.address_with("value_max=3")), strict(&plain));
    }
}

/// The kind of fault is a value of the server before, read from its memory after the next one has taken a store.
#[test]
fn each_server_is_read_after_the_one_before() {
    for place in Place::all() {
        let mut server = place.serve("");
        let client = place.client();
        for round in 0_u32..10 {
            let value = round.to_string();
            // What was sent when the server ended may have been carried out: it is not sent again.
            wait_until("a store", || client.set("k", &value, None).ok());
            assert_eq!(client.get("k"), Ok(Some(value.into_bytes())));
            let ended = if round % 2 == 0 {
                Signal::SIGKILL
            } else {
                Signal::SIGTERM
            };
            server.end(ended);
            // Of one that was killed, the last values may be read for a moment.
            let error = wait_until("an error", || client.get("k").err());
            assert!(
                matches!(error, Error::Down { .. } | Error::Lost { .. }),
                "{error}"
            );
            server = place.serve("");
        }
    }
}

/// The kind of fault is a change that fails because its server began anew while nobody asked.
#[test]
fn a_server_that_began_anew_meanwhile_is_asked_without_a_failure() {
    for place in Place::all() {
        for ended in [Signal::SIGKILL, Signal::SIGTERM] {
            let mut server = place.serve("");
            let client = place.client();
            client.set("k", "old", None).unwrap();
            let begin = Instant::now();
            server.end(ended);
            server = place.serve("");
            // Who has just asked does not look.
            let pause = Duration::from_millis(200);
            wait_until("a pause", || (begin.elapsed() > pause).then_some(()));
            client.set("k", "new", None).unwrap();
            assert_eq!(client.get("k"), Ok(Some(b"new".to_vec())));
            drop(server);
        }
    }
}

#[test]
fn the_successor_of_a_handover_is_read() {
    for place in Place::all() {
        let handover = format!("--handover {}", place.path("handover").display());
        let mut first = place.serve(&handover);
        let client = place.client();
        client.set("k", "1", None).unwrap();
        assert_eq!(client.get("k"), Ok(Some(b"1".to_vec())));
        let second = place.serve(&handover);
        first.child.wait().unwrap();
        wait_until("a store", || client.set("k", "2", None).ok());
        assert_eq!(client.get("k"), Ok(Some(b"2".to_vec())));
        // Its memory is found again, too, and then nothing is asked.
        let gets = || second_stat(&place);
        wait_until("its memory", || {
            let before = gets();
            client.get("k").unwrap();
            (gets() == before).then_some(())
        });
        drop(second);
    }
}

/// The gets that the server at the socket was asked.
fn second_stat(place: &Place) -> u64 {
    let stream = UnixStream::connect(place.path("socket")).unwrap();
    let stats = running::talk(stream, "stats\r\nquit\r\n");
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("STAT cmd_get "));
    line.unwrap().parse().unwrap()
}

/// Values tell whose they are and when they were stored; a reader never sees an older one after a newer one.
#[test]
fn a_server_killed_under_readers_and_writers_shows_nothing_wrong() {
    const KEYS: u64 = 50;
    let value = |key: u64, version: u64| {
        format!("{key}:{version}:{}", key ^ version).repeat(1 + version as usize % 40)
    };
    for place in Place::all() {
        let mut server = place.serve("");
        let client = place.client();
        let (is_over, version) = (AtomicBool::new(false), AtomicU64::new(1));
        // The last version of each key whose store was answered, since the server began.
        let answered: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        let hits = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let version = version.fetch_add(1, Ordering::Relaxed);
                    let key = version % KEYS;
                    match client.set(key.to_string(), value(key, version), None) {
                        Ok(()) => answered[key as usize].store(version, Ordering::SeqCst),
                        Err(error) => assert!(
                            matches!(error, Error::Down { .. } | Error::Lost { .. }),
                            "{error}"
                        ),
                    }
                }
            });
            for reader in 0..3 {
                let (client, answered, is_over, hits, value) =
                    (&client, &answered, &is_over, &hits, &value);
                scope.spawn(move || {
                    let mut turn: u64 = reader;
                    while !is_over.load(Ordering::Relaxed) {
                        turn += 1;
                        let key = turn * 7 % KEYS;
                        let least = answered[key as usize].load(Ordering::SeqCst);
                        match client.get(key.to_string()) {
                            Ok(Some(bytes)) => {
                                let text = String::from_utf8(bytes).unwrap();
                                let found = text.split(':').nth(1).unwrap().parse().unwrap();
                                assert_eq!(text, value(key, found));
                                assert!(found >= least, "key {key}: {found} after {least}");
                                hits.fetch_add(1, Ordering::Relaxed);
                            }
                            // The server that had it has ended.
                            Ok(None) => {}
                            Err(error) => assert_eq!(
                                error.carried_out() == CarriedOut::Maybe,
                                matches!(error, Error::Lost { .. }),
                                "{error}"
                            ),
                        }
                    }
                });
            }
            for _ in 0..6 {
                let before = hits.load(Ordering::Relaxed);
                wait_until("hits", || {
                    (hits.load(Ordering::Relaxed) > before + 1000).then_some(())
                });
                server.signal(Signal::SIGKILL);
                server.child.wait().unwrap();
                server = place.serve("");
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_server_without_shared_memory_is_asked() {
    let place = Place::new(true);
    let socket = place.path("socket");
    let without = Running::start(&format!("-s {} -t 1", socket.display()));
    let client = place.client();
    client.set("k", "v", None).unwrap();
    assert_eq!(client.get("k"), Ok(Some(b"v".to_vec())));
    // It comes back with memory, which is found.
    without.end(Signal::SIGTERM);
    let _with = place.serve("");
    wait_until("a store", || client.set("k", "w", None).ok());
    let before = second_stat(&place);
    assert_eq!(client.get("k"), Ok(Some(b"w".to_vec())));
    assert_eq!(second_stat(&place), before);
}

/// The words of a server that is down, for a client that has nothing else than this server's ring.
fn why_down(client: &Client) -> String {
    match client.set("k", "v", None).unwrap_err() {
        Error::Down { reason, .. } => reason.to_string(),
        error => panic!("{error}"),
    }
}

#[test]
fn a_server_without_a_ring_for_one_more_is_asked_by_the_socket_or_says_why() {
    let server = Server::ringless("").unwrap();
    let asks = Client::connect(&server.address()).unwrap();
    asks.set("k", "v", None).unwrap();
    let before = asked(&server);
    assert_eq!(asks.get("k"), Ok(Some(b"v".to_vec())));
    assert_eq!(asked(&server), before, "its memory is read all the same");
    let address = server.address();
    let (alone, _) = address.split_once('?').unwrap();
    let why = why_down(&Client::connect(alone).unwrap());
    assert_eq!(why, "too many rings are open (--shared-clients)");
}

/// The kind of fault is a time that begins anew with each byte.
#[test]
fn an_answer_in_pieces_takes_no_more_than_the_time_of_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            while socket.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
        }
    });
    let address = format!("shm://{}?connect_timeout_ms=200", path.display());
    let why = why_down(&Client::connect(&address).unwrap());
    assert_eq!(why, "the server does not answer");
}

/// A server of the version before refuses the message in which a ring is asked for, in its words.
#[test]
fn an_older_server_says_that_it_has_no_rings() {
    use std::io::{Read, Write};
    let place = Place::new(false);
    let older = std::os::unix::net::UnixListener::bind(place.path("shared")).unwrap();
    let words = "this server talks to its readers in another version";
    let mut answer = [0; 128];
    answer[..8].copy_from_slice(b"nuthatch");
    (answer[8], answer[12]) = (1, words.len() as u8);
    answer[16..16 + words.len()].copy_from_slice(words.as_bytes());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = older.accept().unwrap().0;
            let mut hello = [0; 16];
            stream.read_exact(&mut hello).unwrap();
            assert_eq!(hello[8], 2);
            stream.write_all(&answer).unwrap();
        });
        assert_eq!(why_down(&place.client()), words);
    });
}

/// Values that are larger than a ring, of threads that share it: who sends waits for room, and who reads tells of it.
#[test]
fn values_larger_than_the_ring_go_through_it() {
    let place = Place::new(false);
    let _server = place.serve("-m 256");
    let client = place.client();
    let value = |thread: u8, round: u8| vec![thread ^ round; 700_000 + usize::from(thread) * 3];
    thread::scope(|scope| {
        for thread in 0..8 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..20 {
                    let key = format!("large {thread}");
                    client.set(&key, value(thread, round), None).unwrap();
                    let got = client.get_and_touch(&key, None).unwrap();
                    assert!(got == Some(value(thread, round)), "{key} {round}");
                    client.incr("small", 1).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_stopped_server_lets_calls_run_out_of_time_and_goes_on() {
    let place = Place::new(false);
    let server = place.serve("");
    let client = Client::connect(&format!("{}&timeout_ms=30", place.address())).unwrap();
    let set = |value: &str| client.set("k", value, None);
    wait_until("a store", || set("v").ok());
    server.signal(Signal::SIGSTOP);
    let large = vec![b'x'; 300_000];
    let error = wait_until("a timeout", || set("w").err());
    let carried_out = CarriedOut::Maybe;
    assert_eq!(error, Error::Timeout { carried_out });
    assert!(client.set("large", &large, None).is_err());
    server.signal(Signal::SIGCONT);
    wait_until("a store", || set("x").ok());
    wait_until("a large store", || client.set("large", &large, None).ok());
    assert_eq!(client.get("k"), Ok(Some(b"x".to_vec())));
}

/// Runs one of the tests below as a process, as this user or as another one.
fn run_child(name: &str, address: &str, user: Option<u32>) {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--ignored", "--nocapture"]);
    command.env(ADDRESS, address).stdin(Stdio::null());
    if let Some(user) = user {
        command.uid(user);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{output:?}"
    );
}

fn child_client() -> Client {
    Client::connect(&std::env::var(ADDRESS).unwrap()).unwrap()
}

/// A process that may use the server's socket and not its memory.
#[test]
#[ignore = "a part of `a_user_who_may_not_read_asks`"]
fn stranger() {
    let client = child_client();
    assert_eq!(client.get("k"), Ok(Some(b"v".to_vec())));
    client.set("k", "w", None).unwrap();
    assert_eq!(client.get("k"), Ok(Some(b"w".to_vec())));
}

#[test]
fn a_user_who_may_not_read_asks() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let server = Server::shared("").unwrap();
    let client = Client::connect(&server.address()).unwrap();
    client.set("k", "v", None).unwrap();
    let program = std::env::current_exe().unwrap();
    // Where the program lies, another user may not look.
    if !is_open(&program) {
        println!("skipped: other users cannot run {}", program.display());
        return;
    }
    let before = asked(&server);
    let address = format!("{}?or=tcp://{}", server.address(), server.place());
    run_child("stranger", &address, Some(65534));
    assert!(asked(&server) >= before + 2);
    assert_eq!(client.get("k"), Ok(Some(b"w".to_vec())));
}

fn is_open(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let enters = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.permissions().mode() & 1 == 1)
    };
    program.ancestors().all(enters)
}

/// The parent and its child each read and store, and neither disturbs the other.
#[test]
#[ignore = "a part of `a_child_of_fork_connects_by_itself`"]
fn parent() {
    let client = child_client();
    client.set("k", "parent", None).unwrap();
    // Others are in the middle of calls meanwhile, with locks that the child does not have.
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                client.set("busy", "v", None).unwrap();
            }
        });
        for round in 0..20 {
            in_child(|| {
                let key = format!("child {round}");
                client.get("k") == Ok(Some(b"parent".to_vec()))
                    && client.set(&key, "v", None).is_ok()
                    && client.get(&key) == Ok(Some(b"v".to_vec()))
            });
            assert_eq!(
                client.get(format!("child {round}")),
                Ok(Some(b"v".to_vec()))
            );
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_child_of_fork_connects_by_itself() {
    for place in Place::all() {
        let _server = place.serve("");
        run_child("parent", &place.address(), None);
    }
}

#[cfg(feature = "tokio")]
#[tokio::test(flavor = "multi_thread")]
async fn tasks_read_without_asking_and_notice_the_end() {
    for place in Place::all() {
        let server = place.serve("");
        let client = nuthatch_client::tasks::Client::connect(&place.address()).unwrap();
        client.set("k", "v", None).await.unwrap();
        let before = second_stat(&place);
        for _ in 0..100 {
            assert_eq!(client.get("k").await, Ok(Some(b"v".to_vec())));
        }
        let many = client.get_many(&["k", "none"]).await.complete().unwrap();
        assert_eq!(many, [Some(b"v".to_vec()), None]);
        assert_eq!(second_stat(&place), before);
        server.end(Signal::SIGKILL);
        // For a moment its last values may be read.
        let error = loop {
            match client.get("k").await {
                Ok(found) => assert_eq!(found, Some(b"v".to_vec())),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, Error::Down { .. } | Error::Lost { .. }),
            "{error}"
        );
        let _next = place.serve("");
        while client.set("k", "w", None).await.is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(client.get("k").await, Ok(Some(b"w".to_vec())));
    }
}

/// A server whose items are copies of another's: what is not there is asked for, once, and is read from memory then.
#[test]
fn a_sidecar_is_asked_for_what_its_memory_lacks() {
    let behind = Server::nuthatch("");
    let upstream = format!("--upstream tcp://{}", behind.place());
    for lifetime in ["3600000", "1"] {
        let flags = format!("{upstream} --upstream-lifetime {lifetime}");
        for sidecar in [Server::shared(&flags), Server::ringless(&flags)] {
            let sidecar = sidecar.expect("Linux");
            let client = Client::connect(&sidecar.address()).unwrap();
            let origin = Client::connect(&behind.address()).unwrap();
            origin.set("there", "1", MINUTE).unwrap();
            assert_eq!(client.get("there").unwrap().unwrap(), b"1");
            assert_eq!(client.get("nowhere").unwrap(), None);
            let found = client.get_many(&["there", "nowhere"]).complete().unwrap();
            assert_eq!(found, [Some(b"1".to_vec()), None]);
            let local = client.get_local("nowhere").unwrap();
            assert_eq!(local, Local::Unknown);
            if lifetime != "1" {
                let value = Local::Value(b"1".to_vec());
                assert_eq!(client.get_local("there").unwrap(), value);
            }
            // The time that is left is the item's, not the copy's.
            let item = client.get_item("there").unwrap().unwrap();
            assert!(item.left.is_some_and(|left| left > MINUTE / 2), "{item:?}");
            assert_eq!(item.cas, origin.get_item("there").unwrap().unwrap().cas);
            client.set("there", "2", MINUTE).unwrap();
            assert_eq!(origin.get("there").unwrap().unwrap(), b"2");
            assert_eq!(client.get("there").unwrap().unwrap(), b"2");
            assert_eq!(
                client.add("there", "3", MINUTE).unwrap(),
                Outcome::NotStored
            );
            assert_eq!(client.delete("there").unwrap(), Outcome::Done);
            assert_eq!(client.get("there").unwrap(), None);
        }
    }
}
