//! Tests of the wait for sessions before a page changes its class: without it, a writer with an old pointer locks a
//! word that is no longer a tail.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::counters::Registry;
use nuthatch_engine::{AuditError, Key, KeyHasher, Op, Request, Store, Time};
use nuthatch_fabric::threads::{Network, ThreadsFabric};

use super::shard::Shard;
use super::{Server, ServerRequest, TimedRequest};
use crate::client::Client;
use crate::config::{Config, Fault};
use crate::interposed::{Interposed, LastValue, small};
use crate::layout::Layout;

const NOW: Time = Time(1000);

/// Has a store of another session's carried out.
fn store(server: &mut Server<ThreadsFabric>, key: Key<'_>, value: &[u8]) {
    let op = Op::Store(Store::set(value));
    let timed = TimedRequest {
        now: NOW,
        request: ServerRequest::Op(Request { key, op }),
    };
    timed.encode(&mut server.message);
    for _ in 0..1000 {
        let done = server.answer(2);
        // It tells clients what is new, too.
        server.iterate();
        if done {
            return;
        }
        timed.encode(&mut server.message);
    }
    panic!("no memory for {} bytes", value.len());
}

/// A session is about to lock a pair's block when the page changes its class, and then holds a value that looks like
/// the pair's tail everywhere. Returns what the audit says then.
fn write_by_an_old_pointer(fault: Fault) -> Result<(), AuditError> {
    let config = Config { fault, ..small() };
    let layout = Layout::new(&config, 3).unwrap();
    let network = Network::free(3, layout.words());
    let ends = network.ends();
    let server = Server::new(Arc::clone(&ends[0]), layout.clone(), &config);
    let server = Arc::new(Mutex::new(server));
    let fabric = Interposed::new(Arc::clone(&ends[1]), 0);
    let counts = Registry::default().register();
    let mut client = Client::new(Arc::clone(&fabric), Arc::new(layout), &config, 0, counts);
    let key = Key::new(b"key", &KeyHasher::seeded(config.seed));
    let mut request = |op| client.execute(NOW, &[Request { key, op }], &mut LastValue::default());

    store(&mut server.lock(), key, b"a value");
    // The client learns where the pair is.
    request(Op::Get);
    let served = Arc::clone(&server);
    *fabric.before_swap.lock() = Some(Box::new(move || {
        let mut server = served.lock();
        let words = Shard::<ThreadsFabric>::key_words(&key);
        let pointer = server.shard.find(&key, &words).unwrap();
        let tail = server.shard.tail(pointer);
        let page = server.shard.layout.page_of(pointer);
        assert!(server.shard.retire(page, None));
        for _ in 0..100 {
            server.iterate();
        }
        // A page that has left its class is taken before new ones.
        let value: Vec<u8> = tail.0.to_le_bytes().repeat(370);
        let name = Key::new(b"large", &server.shard.hasher);
        store(&mut server, name, &value);
    }));
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                server.lock().iterate();
                std::thread::yield_now();
            }
        });
        request(Op::Store(Store::set(b"b value")));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(fabric.before_swap.lock().is_none(), "it went to the block");
    server.lock().shard.audit()
}

#[test]
fn a_page_does_not_change_its_class_under_a_writer() {
    assert_eq!(write_by_an_old_pointer(Fault::None), Ok(()));
    assert!(write_by_an_old_pointer(Fault::NoQuiescence).is_err());
}

/// OpenSHMEM says no more of a non-blocking Get than that it has landed after `quiet`, which a server never calls.
#[test]
fn where_gets_land_at_quiet_only_pages_move_and_flushes_end() {
    let config = small();
    let layout = Layout::new(&config, 3).unwrap();
    let ends = Network::lazy(3, layout.words()).ends();
    let mut server = Server::new(Arc::clone(&ends[0]), layout, &config);
    let key = Key::new(b"key", &KeyHasher::seeded(config.seed));
    store(&mut server, key, b"a value");
    let words = Shard::<ThreadsFabric>::key_words(&key);
    let pointer = server.shard.find(&key, &words).unwrap();
    let page = server.shard.layout.page_of(pointer);
    assert!(server.shard.retire(page, None));
    for _ in 0..100 {
        server.iterate();
    }
    assert_eq!(server.shard.counts.pages_moved, 1);
    let flushed = (0..100).any(|_| {
        let request = ServerRequest::Flush(NOW);
        TimedRequest { now: NOW, request }.encode(&mut server.message);
        let done = server.answer(2);
        server.iterate();
        done
    });
    assert!(flushed);
}

#[test]
fn a_flush_waits_for_who_does_not_know_of_it() {
    let config = small();
    let layout = Layout::new(&config, 3).unwrap();
    let network = Network::free(3, layout.words());
    let ends = network.ends();
    let server = Server::new(Arc::clone(&ends[0]), layout.clone(), &config);
    let server = Arc::new(Mutex::new(server));
    let fabric = Interposed::new(Arc::clone(&ends[1]), 0);
    let client = |end| {
        let counts = Registry::default().register();
        Client::new(end, Arc::new(layout.clone()), &config, 0, counts)
    };
    let key = Key::new(b"key", &KeyHasher::seeded(config.seed));
    let mut one = client(Arc::clone(&fabric));
    let mut get = || {
        one.execute(
            NOW,
            &[Request { key, op: Op::Get }],
            &mut LastValue::default(),
        )
    };
    store(&mut server.lock(), key, b"a value");
    get();
    store(&mut server.lock(), key, b"b value");
    // It has read the pair again, and is about to mark it as used, when the flush comes.
    let served = Arc::clone(&server);
    *fabric.before_swap.lock() = Some(Box::new(move || {
        let mut server = served.lock();
        for _ in 0..10 {
            let request = ServerRequest::Flush(NOW);
            TimedRequest { now: NOW, request }.encode(&mut server.message);
            assert!(!server.answer(2), "somebody may hit the pair yet");
            server.iterate();
        }
        // No session misses the pair before that.
        let words = Shard::<ThreadsFabric>::key_words(&key);
        let pointer = server.shard.find(&key, &words).unwrap();
        let header = server.shard.header(pointer);
        assert!(server.shard.is_live(&header, NOW));
    }));
    get();
    assert!(fabric.before_swap.lock().is_none(), "it went to the block");
    let mut server = server.lock();
    let flushed = (0..10).any(|_| {
        let request = ServerRequest::Flush(NOW);
        TimedRequest { now: NOW, request }.encode(&mut server.message);
        let done = server.answer(2);
        server.iterate();
        done
    });
    assert!(flushed, "nobody is there any more");
    let control = server.shard.control().flushes;
    assert_eq!((control.generation, control.under_way), (1, false));
}

#[test]
fn blocks_that_a_wave_reads_first_are_marked_by_one_message() {
    let config = small();
    let layout = Layout::new(&config, 3).unwrap();
    let network = Network::free(3, layout.words());
    let ends = network.ends();
    let server = Server::new(Arc::clone(&ends[0]), layout.clone(), &config);
    let server = Arc::new(Mutex::new(server));
    let fabric = Interposed::new(Arc::clone(&ends[1]), 0);
    *fabric.before_swap.lock() = Some(Box::new(|| {}));
    let counts = Registry::default().register();
    let mut client = Client::new(Arc::clone(&fabric), Arc::new(layout), &config, 0, counts);
    let names: Vec<_> = (0..5_u32).map(u32::to_le_bytes).collect();
    let hasher = KeyHasher::seeded(config.seed);
    let keys: Vec<_> = names.iter().map(|name| Key::new(name, &hasher)).collect();
    for &key in &keys {
        store(&mut server.lock(), key, b"a value");
    }
    let sent = server.lock().shard.counts.messages;
    let gets: Vec<_> = keys
        .iter()
        .map(|&key| Request { key, op: Op::Get })
        .collect();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                server.lock().iterate();
                std::thread::yield_now();
            }
        });
        client.execute(NOW, &gets, &mut LastValue::default());
        stop.store(true, Ordering::Relaxed);
    });
    assert!(
        fabric.before_swap.lock().is_some(),
        "a round trip for a block"
    );
    let shard = &mut server.lock().shard;
    assert_eq!(shard.counts.messages, sent + 1);
    for key in &keys {
        let words = Shard::<ThreadsFabric>::key_words(key);
        let pointer = shard.find(key, &words).unwrap();
        assert!(
            shard
                .recency(pointer)
                .was_read(shard.tail(pointer).version())
        );
    }
}
