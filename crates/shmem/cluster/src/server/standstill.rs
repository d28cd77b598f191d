//! Tests of a server beside a PE that stands still: the server does not wait for that PE, and serves the others
//! meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::{Key, Op, Reply, Request, Store, StoreMode, Time};
use nuthatch_fabric::threads::{Network, ThreadsFabric};
use nuthatch_fabric::{Address, Fabric, Gone, forward_fabric};

use super::{Server, ServerReply, ServerRequest, TimedRequest};
use crate::config::Config;
use crate::layout::{Layout, RING};
use crate::ring::Sender;

const NOW: Time = Time(1000);

/// The PE that stands still.
const STILL: usize = 1;

type Deed = Box<dyn FnOnce(&ThreadsFabric) -> Result<(), Gone> + Send>;

/// A server's end of a network on which one PE can stand still: operations on its memory are carried out when it goes
/// on. A call that would wait for a PE panics.
struct Still {
    fabric: Arc<ThreadsFabric>,
    stands: AtomicBool,
    held: Mutex<Vec<Deed>>,
}

impl Still {
    fn below(&self) -> &ThreadsFabric {
        &self.fabric
    }

    fn own(&self, pe: usize) -> &ThreadsFabric {
        assert_eq!(pe, self.fabric.pe(), "the server waits for a PE");
        &self.fabric
    }

    fn later(
        &self,
        pe: usize,
        deed: impl FnOnce(&ThreadsFabric) -> Result<(), Gone> + Send + 'static,
    ) -> Result<(), Gone> {
        if pe == STILL && self.stands.load(Ordering::Relaxed) {
            self.held.lock().push(Box::new(deed));
            return Ok(());
        }
        deed(&self.fabric)
    }

    fn go_on(&self) {
        self.stands.store(false, Ordering::Relaxed);
        let held = std::mem::take(&mut *self.held.lock());
        for deed in held {
            deed(&self.fabric).unwrap();
        }
    }
}

impl Fabric for Still {
    forward_fabric!(pe pes verified allocate local is_gone fence barrier broadcast pause doze nanos);

    fn direct(&self, _: usize, _: Address, _: usize) -> Option<&[AtomicU64]> {
        None
    }

    fn put(&self, pe: usize, to: Address, words: &[u64]) -> Result<(), Gone> {
        self.own(pe).put(pe, to, words)
    }

    fn get(&self, pe: usize, from: Address, into: &mut [u64]) -> Result<(), Gone> {
        self.own(pe).get(pe, from, into)
    }

    fn put_nbi(&self, pe: usize, to: Address, from: Address, words: usize) -> Result<(), Gone> {
        self.later(pe, move |fabric| fabric.put_nbi(pe, to, from, words))
    }

    fn get_nbi(&self, pe: usize, from: Address, into: Address, words: usize) -> Result<(), Gone> {
        self.later(pe, move |fabric| fabric.get_nbi(pe, from, into, words))
    }

    fn signal(&self, pe: usize, to: Address, from: Address) -> Result<(), Gone> {
        self.later(pe, move |fabric| fabric.signal(pe, to, from))
    }

    fn compare_swap(&self, pe: usize, at: Address, expected: u64, new: u64) -> Result<u64, Gone> {
        self.own(pe).compare_swap(pe, at, expected, new)
    }

    fn fetch_add(&self, pe: usize, at: Address, by: u64) -> Result<u64, Gone> {
        self.own(pe).fetch_add(pe, at, by)
    }

    fn swap(&self, pe: usize, at: Address, new: u64) -> Result<u64, Gone> {
        self.own(pe).swap(pe, at, new)
    }

    fn fetch(&self, pe: usize, at: Address) -> Result<u64, Gone> {
        self.own(pe).fetch(pe, at)
    }

    fn set(&self, pe: usize, at: Address, word: u64) -> Result<(), Gone> {
        self.own(pe).set(pe, at, word)
    }

    fn quiet(&self) -> Result<(), Gone> {
        panic!("the server waits for all PEs");
    }
}

/// A server, the end of the PE that stands still, and the layout.
fn server() -> (Server<Still>, Arc<Still>, Arc<ThreadsFabric>, Layout) {
    let config = Config {
        memory: 256 << 10,
        memory_max: 256 << 10,
        item_size_max: 4 << 10,
        buckets: Some(8),
        ..Config::default()
    };
    let layout = Layout::new(&config, 3).unwrap();
    let ends = Network::free(3, layout.words()).ends();
    let still = Arc::new(Still {
        fabric: Arc::clone(&ends[0]),
        stands: AtomicBool::new(true),
        held: Mutex::default(),
    });
    let server = Server::new(Arc::clone(&still), layout.clone(), &config);
    (server, still, Arc::clone(&ends[STILL]), layout)
}

/// Tries a message of the PE that goes on, once.
fn try_once(server: &mut Server<Still>, request: ServerRequest<'_>) -> bool {
    TimedRequest { now: NOW, request }.encode(&mut server.message);
    let done = server.answer(2);
    server.iterate();
    done
}

/// Has an operation of that PE carried out.
fn request(server: &mut Server<Still>, name: &[u8], op: Op<'_>) {
    let key = Key::new(name, &server.shard.hasher);
    let done = (0..1000).any(|_| try_once(server, ServerRequest::Op(Request { key, op })));
    assert!(done, "it waits for who stands still");
}

#[test]
fn a_flush_waits_for_who_stands_still_and_nobody_else_does() {
    let (mut server, still, ..) = server();
    request(&mut server, b"key", Op::Store(Store::set(b"a value")));
    for _ in 0..100 {
        assert!(
            !try_once(&mut server, ServerRequest::Flush(NOW)),
            "it may hit the pair"
        );
        request(&mut server, b"key", Op::Get);
        assert!(matches!(
            ServerReply::decode(&server.reply),
            Some(ServerReply::Value(..))
        ));
    }
    still.go_on();
    let done = (0..10).any(|_| try_once(&mut server, ServerRequest::Flush(NOW)));
    assert!(done, "nobody stands still");
    request(&mut server, b"key", Op::Get);
    assert_eq!(
        ServerReply::decode(&server.reply),
        Some(ServerReply::Reply(Reply::Miss, None))
    );
}

#[test]
fn a_flush_at_a_later_time_is_answered_when_all_have_heard_of_it() {
    let (mut server, still, ..) = server();
    let later = Time(NOW.0 + 80);
    for _ in 0..100 {
        assert!(!try_once(&mut server, ServerRequest::Flush(later)));
    }
    still.go_on();
    assert!((0..10).any(|_| try_once(&mut server, ServerRequest::Flush(later))));
    assert_eq!(server.shard.flushes.next, Some(later));
}

#[test]
fn a_page_waits_for_who_stands_still_and_nobody_else_does() {
    let (mut server, still, end, layout) = server();
    let mut number = 0_u32;
    let mut fill = |server: &mut Server<Still>, value: &[u8], times: usize| {
        for _ in 0..times {
            number += 1;
            request(server, &number.to_le_bytes(), Op::Store(Store::set(value)));
        }
    };
    fill(&mut server, b"a value", 100);
    let page = server.shard.pages.idle_page(usize::MAX).unwrap_or(0);
    assert!(server.shard.retire(page, None));
    // Notices that come up meanwhile are not put while others are on their way.
    fill(&mut server, &[7; 1000], 500);
    assert!(server.shard.retirement.is_some() && server.shard.counts.pages_moved == 0);
    assert!(still.held.lock().len() < 10);
    // The PE is in the middle of direct operations.
    let busy = |word| end.local(layout.busy(STILL), 1)[0].store(word, Ordering::Relaxed);
    busy(1);
    still.go_on();
    fill(&mut server, b"a value", 10);
    assert!(server.shard.retirement.is_some() && server.shard.counts.pages_moved == 0);
    busy(2);
    fill(&mut server, b"a value", 10);
    assert!(server.shard.counts.pages_moved > 0);
    assert_eq!(server.shard.audit(), Ok(()));
}

#[test]
fn a_full_ring_of_who_stands_still_stops_nobody() {
    let (mut server, still, end, layout) = server();
    let (requests, staged) = (layout.requests(STILL), layout.requests_staged(STILL, 0));
    let mut sender = Sender::new(0, requests, staged);
    let key = Key::new(b"key", &server.shard.hasher);
    request(&mut server, b"key", Op::Store(Store::set(&[7; 1000])));
    // More requests than there is room for replies.
    let mut message = Vec::new();
    let get = ServerRequest::Op(Request { key, op: Op::Get });
    TimedRequest {
        now: NOW,
        request: get,
    }
    .encode(&mut message);
    let mut sent = 0;
    while sender.has_room(&*end, message.len()) {
        sender.stage(&*end, &message);
        sender.flush(&*end).unwrap();
        sent += 1;
    }
    assert!(sent * 1000 / 8 > 2 * RING);
    let append = Store {
        mode: StoreMode::Append,
        ..Store::set(b"")
    };
    for _ in 0..100 {
        request(&mut server, b"key", Op::Store(append));
    }
    let served = server.shard.counts.messages;
    assert!(served > 0 && (served as usize) < sent);
    still.go_on();
    // It reads, and gets the rest.
    let mut receiver =
        crate::ring::Receiver::new(0, layout.replies(STILL, 0), layout.replies_staged(STILL));
    let (mut reply, mut got) = (Vec::new(), 0);
    while got < sent {
        server.iterate();
        while receiver.read(&*end, &mut reply).unwrap() {
            assert!(matches!(
                ServerReply::decode(&reply),
                Some(ServerReply::Value(..))
            ));
            receiver.take(reply.len());
            receiver.acknowledge(&*end).unwrap();
            got += 1;
        }
    }
}
