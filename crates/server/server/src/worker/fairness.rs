//! Tests: whose turn it is when clients want more than an iteration has time for.

use std::io::{self, ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use nuthatch_check::naive::{Naive, Options};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{AnyEngine, Engine};
use nuthatch_settings::config::{Config, Protocol};

use super::alone::Alone;
use crate::datagrams::DatagramSocket;

/// Bytes of a value whose answer fills much of an iteration and is copied nevertheless.
const LONG: usize = 8_000;

fn engine() -> Arc<AnyEngine> {
    let options = Options {
        memory_limit: 1 << 20,
        memory_limit_max: 1 << 20,
        ..Options::default()
    };
    Naive::new(options).any()
}

fn count(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// Takes what has come for a client.
fn take(client: &mut UnixStream) -> Vec<u8> {
    let mut taken = Vec::new();
    match client.read_to_end(&mut taken) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => taken,
        ended => panic!("the server closed: {ended:?}"),
    }
}

/// A client asks so many turns before it has this answer. The others take what has come for them and ask again in each.
fn turns_until(
    served: &mut Alone,
    client: &mut UnixStream,
    answer: &[u8],
    mut others: impl FnMut() -> io::Result<()>,
) -> usize {
    const MANY: usize = 1_000;
    let mut answered = Vec::new();
    for turn in 0..MANY {
        served.turn().unwrap();
        others().unwrap();
        answered.extend(take(client));
        if answered == answer {
            return turn;
        }
        assert!(answer.starts_with(&answered), "{}", answered.escape_ascii());
    }
    panic!("nothing came in {MANY} turns");
}

#[test]
fn answers_that_fill_each_turn_keep_nobody_out() {
    let config = Config {
        connections_max: count(16),
        ..Config::default()
    };
    let mut served = Alone::start(config, engine(), Vec::new()).unwrap();
    let mut client = served.connect(Protocol::Memcached).unwrap();

    // Each asks for far more than it gets, and takes all that it gets. Such answers are made at once, not in a batch.
    let asked = b"stats\r\n".repeat(1_000);
    let mut greedy: Vec<UnixStream> = (0..12)
        .map(|_| served.connect(Protocol::Memcached).unwrap())
        .collect();
    let count = greedy.len();
    let mut others = || {
        for greedy in &mut greedy {
            take(greedy);
            // What has no room is not asked now.
            let _ = greedy.write(&asked);
        }
        Ok(())
    };
    for _ in 0..count {
        others().unwrap();
        served.turn().unwrap();
    }
    let mut waits = Vec::new();
    for _ in 0..20 {
        client.write_all(b"mn\r\n").unwrap();
        waits.push(turns_until(
            &mut served,
            &mut client,
            b"MN\r\n",
            &mut others,
        ));
    }
    assert!(waits.iter().any(|&turns| turns > 0), "it never had to wait");
    assert!(waits.iter().all(|&turns| turns <= count), "{waits:?}");
}

/// Class of bug: work that no answer shows, and that no turn's budget counts.
#[test]
fn a_value_that_is_copied_for_a_script_counts_twice() {
    const LEN: usize = 700_000;
    const SCRIPTS: usize = 10;
    // Its pages are a 256th of this, so such a value lies in many pieces.
    let memory = CuckooConfig {
        memory_limit: 16 << 20,
        ..CuckooConfig::default()
    };
    let engine: Cuckoo = Cuckoo::new(memory).unwrap();
    let mut served = Alone::start(Config::default(), Arc::new(engine).any(), Vec::new()).unwrap();
    let mut client = served.connect(Protocol::Redis).unwrap();
    let last = (LEN - 1).to_string();
    client
        .write_all(&request(&["SETRANGE", "k", &last, "y"]))
        .unwrap();
    let len = format!(":{LEN}\r\n");
    turns_until(&mut served, &mut client, len.as_bytes(), || Ok(()));
    let script = "return #redis.call('get', KEYS[1])";
    let scripts = request(&["EVAL", script, "1", "k"]).repeat(SCRIPTS);
    client.write_all(&scripts).unwrap();
    let answers = len.repeat(SCRIPTS);
    let turns = turns_until(&mut served, &mut client, answers.as_bytes(), || Ok(()));
    // One reads 684 KiB and copies as many, of the 1024 that a turn has.
    assert!(turns >= SCRIPTS - 1, "{turns}");
}

/// Class of bug: work that no answer shows.
#[test]
fn who_writes_pays_for_who_is_told() {
    const CLIENTS: usize = 200;
    const SETS: usize = 1_000;
    let config = Config {
        connections_max: count(CLIENTS + 8),
        ..Config::default()
    };
    let mut served = Alone::start(config, engine(), Vec::new()).unwrap();
    let track = request(&["CLIENT", "TRACKING", "ON", "BCAST"]);
    let mut near: Vec<UnixStream> = (0..CLIENTS)
        .map(|_| {
            let mut near = served.connect(Protocol::Redis).unwrap();
            near.write_all(&[request(&["HELLO", "3"]), track.clone()].concat())
                .unwrap();
            while !take(&mut near).ends_with(b"+OK\r\n") {
                served.turn().unwrap();
            }
            near
        })
        .collect();
    let mut writer = served.connect(Protocol::Redis).unwrap();
    let sets = request(&["SET", "k", "v"]).repeat(SETS);
    writer.write_all(&sets).unwrap();
    let answers = b"+OK\r\n".repeat(SETS);
    let mut told = 0;
    let turns = turns_until(&mut served, &mut writer, &answers, || {
        near.iter_mut().for_each(|near| told += take(near).len());
        Ok(())
    });
    // A set is a quarter of a command for each who is told: of a thousand that a turn has, 50 and its own.
    assert!(turns >= SETS / 40, "{turns}");
    assert!(told > 0);
}

/// Class of bug: a long value that is copied in one turn.
#[test]
fn a_long_value_is_copied_to_another_key_in_many_turns() {
    const LEN: usize = 3 << 20;
    let memory = CuckooConfig {
        memory_limit: 64 << 20,
        item_size_max: 4 << 20,
        ..CuckooConfig::default()
    };
    let engine: Cuckoo = Cuckoo::new(memory).unwrap();
    let mut served = Alone::start(Config::default(), Arc::new(engine).any(), Vec::new()).unwrap();
    let mut client = served.connect(Protocol::Redis).unwrap();
    let last = (LEN - 1).to_string();
    client
        .write_all(&request(&["SETRANGE", "k", &last, "y"]))
        .unwrap();
    turns_until(
        &mut served,
        &mut client,
        format!(":{LEN}\r\n").as_bytes(),
        || Ok(()),
    );
    for (words, answer) in [
        (&["COPY", "k", "copy"][..], ":1\r\n"),
        (&["RENAME", "copy", "new"], "+OK\r\n"),
        (&["MOVE", "new", "3"], ":1\r\n"),
    ] {
        let length = request(&["STRLEN", "k"]);
        client
            .write_all(&[request(words), length].concat())
            .unwrap();
        let answers = format!("{answer}:{LEN}\r\n");
        let turns = turns_until(&mut served, &mut client, answers.as_bytes(), || Ok(()));
        // 3 MiB, of the one that a turn has.
        assert!(turns >= 2, "{words:?}: {turns}");
    }
}

/// A request of Redis' protocol.
fn request(words: &[&str]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    request.into_bytes()
}

/// A request in the frame of its datagram.
fn framed(id: u16, request: &[u8]) -> Vec<u8> {
    [&id.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0], request].concat()
}

/// The number of the request that the next answer is for.
fn next_answer(client: &UdpSocket) -> Option<u16> {
    let mut frame = [0; 2_000];
    let len = client.recv(&mut frame).ok()?;
    assert!(len > 8, "{len} bytes");
    Some(u16::from_be_bytes([frame[0], frame[1]]))
}

#[test]
fn datagrams_that_had_no_turn_come_before_those_that_had_one() {
    let config = Config {
        udp_reply_max: count(65_000),
        batch_max: count(1),
        ..Config::default()
    };
    let local = "127.0.0.1:0".parse().unwrap();
    let (sockets, address) = DatagramSocket::bind(local, 1, Protocol::Memcached, None).unwrap();
    let mut served = Alone::start(config, engine(), sockets).unwrap();
    let mut client = served.connect(Protocol::Memcached).unwrap();
    write!(client, "set long 0 0 {LONG}\r\n{}\r\n", "v".repeat(LONG)).unwrap();
    turns_until(&mut served, &mut client, b"STORED\r\n", || Ok(()));

    // Eight answers each: the iteration is full in the middle of the seventeenth. Each has a socket of its own, which has
    // room for its answers.
    const FILLED_BY: u16 = 17;
    let asked = b"get long\r\n".repeat(8);
    let clients = [(); FILLED_BY as usize].map(|()| UdpSocket::bind(local).unwrap());
    for (id, client) in (1..).zip(&clients) {
        client.send_to(&framed(id, &asked), address).unwrap();
    }
    let last = clients.last().unwrap();
    last.send_to(&framed(FILLED_BY + 1, b"mn\r\n"), address)
        .unwrap();
    served.turn().unwrap();
    last.set_nonblocking(true).unwrap();
    let answers: Vec<u16> = std::iter::from_fn(|| next_answer(last)).collect();
    assert_eq!(answers.first(), Some(&(FILLED_BY + 1)), "{answers:?}");
    assert_eq!(answers.last(), Some(&FILLED_BY), "{answers:?}");
}
