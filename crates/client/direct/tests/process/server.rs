//! The server of the tests: a process that stores, flushes, evicts, grows and shrinks all the time, if it is told to.

use std::io::{Read, stdin};
use std::net::Ipv4Addr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use nuthatch_cuckoo::layout::EightWay;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::reply::LastReply;
use nuthatch_engine::{AnyEngine, Clock, Engine, Handle, Key, Op, Reply, Request, Store};
use nuthatch_server::{Config, Listen, Protocol, Server};

use crate::databases;
use crate::values::{KEYS, value};

/// Bytes for items, fewer than all keys take.
const MEMORY: usize = 16 << 20;

/// Readers at the same time.
pub const CLIENTS: usize = 4;

/// A user whose processes may read, beside the server's own.
pub const GUEST: u32 = 65533;

/// What the server stores.
#[derive(Clone, Copy, PartialEq)]
pub enum Stores {
    /// Nothing by itself: Redis' clients do, at a socket beside the other.
    Nothing,
    /// One version of each key whose number is below 1000.
    Once,
    /// New versions of all keys, for ever.
    Always,
    /// What a server hands over that listens beside the socket.
    Inherited,
}

/// An engine, to read.
fn engine() -> Arc<AnyEngine> {
    let engine: Arc<Cuckoo<EightWay>> = Arc::new(
        Cuckoo::new(CuckooConfig {
            memory_limit: MEMORY,
            shared: true,
            ..CuckooConfig::default()
        })
        .unwrap(),
    );
    engine.any()
}

/// A server at this socket, at one for Redis beside it, and at one for the next server.
fn config(shared: &Path) -> Config {
    Config {
        listeners: vec![
            Listen::tcp((Ipv4Addr::LOCALHOST, 0)),
            Listen::unix(databases::socket(shared), 0o700).of(Protocol::Redis),
        ],
        shared: Some(shared.to_owned()),
        shared_mask: 0o777,
        shared_clients: NonZeroUsize::new(CLIENTS).unwrap(),
        unix_peers: Some(vec![GUEST]),
        handover: Some(shared.with_extension("handover")),
        ..Config::default()
    }
}

/// Why a server does not start at the socket of another one, whose place it does not take.
pub fn intrude(shared: &Path) -> String {
    let config = Config {
        listeners: vec![Listen::tcp((Ipv4Addr::LOCALHOST, 0))],
        handover: None,
        ..config(shared)
    };
    let refused = Server::start(config, engine());
    refused.err().unwrap().to_string()
}

/// Serves until standard input ends, or the process is killed.
pub fn serve(shared: &Path, stores: Stores) {
    let engine = engine();
    if stores == Stores::Once {
        let mut handle = engine.handle();
        (0..1000).for_each(|key| store(&engine, &mut handle, &Clock::start(), key, 1));
    }
    let server = Server::start(config(shared), Arc::clone(&engine)).unwrap();
    println!("ready");
    if stores == Stores::Always {
        thread::spawn(move || churn(&engine));
    }
    let stopper = server.stopper();
    thread::spawn(move || {
        let _ = stdin().read(&mut [0]);
        stopper.request();
    });
    server.join().unwrap();
}

fn store(engine: &AnyEngine, handle: &mut impl Handle, clock: &Clock, key: u64, version: u64) {
    let (name, value) = (key.to_le_bytes(), value(key, version));
    let key = Key::new(&name, engine.hasher());
    let op = Op::Store(Store::set(&value));
    let mut last = LastReply(Reply::Miss);
    handle.execute(clock.now(), &[Request { key, op }], &mut last);
}

fn churn(engine: &Arc<AnyEngine>) {
    let mut handle = engine.handle();
    let clock = Clock::start();
    for version in 1.. {
        for key in 0..KEYS {
            store(engine, &mut handle, &clock, key, version * KEYS + key);
            if key % 256 == 0 {
                handle.maintain(clock.now(), 100);
            }
        }
        match version % 8 {
            2 => engine.flush(clock.now(), clock.now()),
            4 => engine.set_memory_limit(MEMORY / 2).unwrap(),
            6 => engine.set_memory_limit(MEMORY).unwrap(),
            _ => {}
        }
    }
}
