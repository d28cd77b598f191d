//! Values that clients announce and do not send.

use std::thread;
use std::time::{Duration, Instant};

use super::client::{Client, PATIENCE, pause};
use super::fixture::{Fixture, Wants, any_port, config};
use nuthatch_server::{Config, Protocol};

/// Bytes of an announced value.
const VALUE: usize = 1_000_000;

const NO_ROOM: &str = "SERVER_ERROR out of memory storing object";
const CLOSED: &str = "SERVER_ERROR out of memory reading request";

/// A server in which values under way may take half of the memory, and clients may be silent while it is less than a
/// quarter.
fn server(memory: usize) -> Fixture {
    let wants = Wants {
        memory,
        ..Wants::default()
    };
    Fixture::with(config(), wants)
}

/// Clients that announce a value, and send no more than three bytes of it.
fn announce(server: &Fixture, count: usize) -> Vec<Client> {
    let one = |number| {
        let mut client = server.client();
        client.send(format!("set up{number} 0 0 {VALUE}\r\nabc"));
        client
    };
    (0..count).map(one).collect()
}

/// Waits until the server has heard of this many values: it has reserved them, refused them, or closed their clients.
fn await_announced(client: &mut Client, count: usize) {
    let begun = Instant::now();
    loop {
        let stats = client.stats("");
        let number = |name: &str| stats[name].parse::<usize>().unwrap();
        let reserved = number("upload_bytes") / VALUE;
        if reserved + number("store_no_memory") + number("upload_kicks") == count {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "not all were heard: {stats:?}");
        pause();
    }
}

fn set(key: &str, value: &str) -> String {
    format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())
}

/// Class of bug: what clients announce takes everything from the others.
#[test]
fn silent_announcers_take_a_part_of_the_memory_and_give_it_back() {
    const ANNOUNCED: usize = 66;
    const OLD: usize = 1000;
    let server = server(64 << 20);
    let mut client = server.client();
    for number in 0..OLD {
        client.ask(
            set(&format!("old{number}"), &"o".repeat(1000)),
            "STORED\r\n",
        );
    }
    let silent = announce(&server, ANNOUNCED);
    await_announced(&mut client, ANNOUNCED);
    assert!(client.stat("store_no_memory") > 0);
    for number in 0..100 {
        client.ask(set(&format!("new{number}"), "hi"), "STORED\r\n");
        let found = format!("VALUE new{number} 0 2\r\nhi\r\nEND\r\n");
        client.ask(format!("get new{number}\r\n"), found);
    }
    let before = client.stat("get_hits");
    for number in 0..OLD {
        client.send(format!("get old{number}\r\n"));
        client.lines_until("END");
    }
    let stayed = client.stat("get_hits") - before;
    assert!(stayed > OLD as u64 / 2, "{stayed} of {OLD} stayed");

    client.until("upload_bytes", |bytes| bytes <= 16 << 20);
    client.ask(set("large", &"l".repeat(VALUE)), "STORED\r\n");
    let mut told = 0;
    for mut one in silent.into_iter().filter(Client::has_input) {
        match one.line().as_str() {
            CLOSED => {
                one.send("more");
                one.expect_orderly_end();
                told += 1;
            }
            line => assert_eq!(line, NO_ROOM),
        }
    }
    // Of 33 values only 16 may be silent.
    assert!(told >= 17, "{told} were told");
    assert!(client.stat("upload_kicks") >= told);
}

#[test]
fn who_brings_a_value_slowly_stays_beside_the_silent() {
    let server = server(64 << 20);
    let (mut client, mut slow) = (server.client(), server.client());
    let request = set("slow", &"s".repeat(VALUE));
    let mut pieces = request.as_bytes().chunks(VALUE / 40);
    slow.send(pieces.next().unwrap());
    client.until("upload_bytes", |bytes| bytes == VALUE as u64);
    let _silent = announce(&server, 66);
    await_announced(&mut client, 67);
    client.until("upload_bytes", |bytes| {
        match pieces.next() {
            Some(piece) => slow.send(piece),
            None => {
                slow.expect("STORED\r\n");
                pieces = request.as_bytes().chunks(VALUE / 40);
            }
        }
        thread::sleep(Duration::from_millis(250));
        bytes <= 16 << 20
    });
    pieces.for_each(|piece| slow.send(piece));
    slow.expect("STORED\r\n");
    assert!(client.stat("upload_kicks") > 0);
}

#[test]
fn a_value_that_is_refused_by_its_announcement_evicts_nothing() {
    // On a machine so slow that the first clients are closed for their silence, the next ones are not refused. Nor are
    // they if an engine with partitions has refused one of the first, because too many are for one partition.
    while !refuses_without_evicting() {}
}

/// A statistic, once it has stayed the same for a while.
fn steady(client: &mut Client, name: &str) -> u64 {
    let mut value = client.stat(name);
    loop {
        thread::sleep(Duration::from_millis(1500));
        match client.stat(name) {
            same if same == value => return value,
            other => value = other,
        }
    }
}

fn refuses_without_evicting() -> bool {
    const FIT: usize = 8;
    let server = server(16 << 20);
    let mut client = server.client();
    let value = "v".repeat(10_000);
    for number in 0..2000 {
        client.ask(set(&format!("k{number}"), &value), "STORED\r\n");
    }
    let _silent = announce(&server, FIT);
    await_announced(&mut client, FIT);
    if client.stat("upload_bytes") < (FIT * VALUE) as u64 {
        return false;
    }
    // Partitions that have given their capacity to others evict for a while.
    let before = steady(&mut client, "evictions");
    let _more = announce(&server, FIT);
    await_announced(&mut client, 2 * FIT);
    let after = client.stat("evictions");
    if client.stat("upload_kicks") > 0 {
        return false;
    }
    assert!(before > 0);
    assert_eq!(
        (client.stat("store_no_memory"), after),
        (FIT as u64, before)
    );
    true
}

/// A server of all protocols.
fn all_protocols() -> Config {
    Config {
        listeners: vec![
            any_port(),
            any_port().of(Protocol::Redis),
            any_port().of(Protocol::CpServer),
        ],
        ..config()
    }
}

/// What comes before a value of this length in a set of the binary protocol.
fn binary_front(value_len: u32) -> Vec<u8> {
    let extras = [0; 8];
    let mut request = vec![0x80, 0x01, 0, 1, 8, 0, 0, 0];
    request.extend((extras.len() as u32 + 1 + value_len).to_be_bytes());
    request.extend([0; 12]);
    request.extend(extras);
    request.extend(b"k");
    request
}

/// What comes before a value of this length in a STORE of CPServer's protocol.
fn cpserver_front(value_len: u32) -> Vec<u8> {
    [
        &3_u32.to_le_bytes()[..],
        &value_len.to_le_bytes(),
        &1_u64.to_le_bytes(),
    ]
    .concat()
}

#[test]
fn every_protocol_gives_back_what_it_reserves() {
    let server = Fixture::with(all_protocols(), Wants::default());
    let mut client = server.client();
    let redis = |verb: &str| {
        let front = format!("*3\r\n${}\r\n{verb}\r\n$1\r\nk\r\n${VALUE}\r\n", verb.len());
        front.into_bytes()
    };
    let text = |line: String| line.into_bytes();
    type Connect = fn(&Fixture) -> Client;
    let protocols: [(Connect, Vec<u8>, &str); 7] = [
        (
            Fixture::client,
            text(format!("set k 0 0 {VALUE}\r\n")),
            "\r\n",
        ),
        (Fixture::client, text(format!("ms k {VALUE}\r\n")), "\r\n"),
        (Fixture::client, binary_front(VALUE as u32), ""),
        (Fixture::redis_client, redis("SET"), "\r\n"),
        (Fixture::redis_client, redis("MSET"), "\r\n"),
        (Fixture::redis_client, redis("APPEND"), "\r\n"),
        (Fixture::cpserver_client, cpserver_front(VALUE as u32), ""),
    ];
    let value = vec![b'v'; VALUE];
    for (connect, front, end) in protocols {
        let begin = || {
            let mut one = connect(&server);
            one.send(&front);
            one.send(&value[..VALUE / 2]);
            one
        };
        let one = begin();
        client.until("upload_bytes", |bytes| bytes == VALUE as u64);
        drop(one);
        client.until("upload_bytes", |bytes| bytes == 0);

        let mut one = begin();
        client.until("upload_bytes", |bytes| bytes == VALUE as u64);
        one.send(&value[VALUE / 2..]);
        one.send(end);
        one.peek(1);
        assert_eq!(client.stat("upload_bytes"), 0);
    }
}
