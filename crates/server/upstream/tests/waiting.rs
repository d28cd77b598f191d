//! Copies by the clock: a caller reads it once a turn, and its thread may wait for servers meanwhile.

#![cfg(not(loom))]

use std::io::{BufRead, BufReader, Write};
use std::mem::{MaybeUninit, take};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nuthatch_client::Client;
use nuthatch_cuckoo::layout::EightWay;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{
    CommonSettings, Engine, Handle, Item, Key, Op, Replies, Reply, Request, Time,
};
use nuthatch_upstream::Upstream;

/// The flags of the item that a read found.
#[derive(Default)]
struct Flags {
    flags: Option<u32>,
    room: Vec<MaybeUninit<u8>>,
}

impl<V> Replies<V> for Flags {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.flags = Some(item.flags);
        self.room.resize(item.value_len, MaybeUninit::new(0));
        &mut self.room
    }
    fn commit(&mut self, _: usize) {}
    fn retract(&mut self, _: usize) {
        self.flags = None;
    }
    fn large(&mut self, _: usize, _: &Item, _: V) {}
    fn done(&mut self, _: usize, _: Reply) {}
}

/// A server of one connection. Each read finds other flags. It says nothing of the key `silent` until it is asked for more.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let (mut late, mut reads) = ("", 0);
        for line in BufReader::new(&stream).lines().map_while(Result::ok) {
            let answer = match line.split(' ').nth(1) {
                None => "MN\r\n".to_owned(),
                Some("silent") => {
                    late = "EN\r\n";
                    continue;
                }
                Some(_) => {
                    reads += 1;
                    let number = line.rsplit(' ').next().unwrap_or_default();
                    format!("VA 1 f{reads} c7 t-1 {number}\r\nx\r\n")
                }
            };
            let answer = take(&mut late).to_owned() + &answer;
            // The client may have left.
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn a_thread_that_waits_uses_no_copy_beyond_its_lifetime() {
    let address = format!("tcp://127.0.0.1:{}?timeout_ms=600", server());
    let client = Client::connect(&address).unwrap();
    let config = CuckooConfig::from(&CommonSettings::default());
    let near: Cuckoo<EightWay> = Cuckoo::new(config).unwrap();
    let lifetime = Duration::from_millis(200);
    let engine = Arc::new(Upstream::new(Arc::new(near), client, lifetime));
    let mut handle = engine.handle();
    // One turn.
    let now = Time(16);
    let mut flags_of = |key: &str| {
        let key = Key::new(key.as_bytes(), engine.hasher());
        let mut found = Flags::default();
        handle.execute(now, &[Request { key, op: Op::Get }], &mut found);
        found.flags
    };
    assert_eq!(flags_of("key"), Some(1));
    assert_eq!(flags_of("silent"), None);
    assert_eq!(flags_of("key"), Some(2), "not the copy");
}
