//! Tests of visits beside a server that moves pairs, and beside writers that are slow, or gone.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::counters::Registry;
use nuthatch_engine::{Cursor, Key, KeyHasher, Op, Request, Store, Time};
use nuthatch_fabric::threads::{Network, ThreadsFabric};

use super::backoff::Activity;
use super::shard::Shard;
use super::{Server, ServerRequest, TimedRequest};
use crate::block::Tail;
use crate::bucket::Pointer;
use crate::client::Client;
use crate::interposed::{Deed, Interposed, small};
use crate::layout::Layout;

const NOW: Time = Time(1000);

/// The session of a writer on another PE.
const WRITER: usize = 2;

struct World {
    network: Arc<Network>,
    server: Arc<Mutex<Server<ThreadsFabric>>>,
    fabric: Arc<Interposed>,
    client: Client<Interposed>,
    key: Key<'static>,
}

/// A server and a session, and a pair.
fn world() -> World {
    let config = small();
    let layout = Layout::new(&config, 3).unwrap();
    let network = Network::free(3, layout.words());
    let ends = network.ends();
    let server = Server::new(Arc::clone(&ends[0]), layout.clone(), &config);
    let fabric = Interposed::new(Arc::clone(&ends[1]), 0);
    let counts = Registry::default().register();
    let client = Client::new(Arc::clone(&fabric), Arc::new(layout), &config, 0, counts);
    let mut world = World {
        network,
        server: Arc::new(Mutex::new(server)),
        fabric,
        client,
        key: Key::new(b"key", &KeyHasher::seeded(config.seed)),
    };
    let op = Op::Store(Store::set(b"a value"));
    let key = world.key;
    let mut server = world.server.lock();
    let request = ServerRequest::Op(Request { key, op });
    TimedRequest { now: NOW, request }.encode(&mut server.message);
    assert!(server.answer(WRITER));
    drop(server);
    world.pass();
    world
}

fn find(server: &mut Server<ThreadsFabric>, key: &Key<'_>) -> Pointer {
    let words = Shard::<ThreadsFabric>::key_words(key);
    server.shard.find(key, &words).unwrap()
}

impl World {
    /// Lets what the server tells arrive.
    fn pass(&mut self) {
        for _ in 0..10 {
            self.server.lock().iterate();
        }
    }

    /// The values that a visit meets, while the server runs; `between` is called when it has nothing to do but wait.
    fn visit(
        &mut self,
        mut between: impl FnMut(&mut Server<ThreadsFabric>) + Send,
    ) -> Vec<Vec<u8>> {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let mut met = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut server = self.server.lock();
                    if server.iterate() == Activity::Waiting {
                        between(&mut server);
                    }
                    drop(server);
                    thread::yield_now();
                }
            });
            let mut from = Some(Cursor::default());
            while let Some(cursor) = from {
                from = self.client.visit(NOW, cursor, 1000, &mut |visit| {
                    met.push(visit.value.to_vec());
                });
            }
            stop.store(true, Ordering::Relaxed);
        });
        met
    }

    /// Locks the pair's block as a writer of another PE.
    fn lock(&mut self) -> (Pointer, Tail) {
        let mut server = self.server.lock();
        let pointer = find(&mut server, &self.key);
        let locked = Tail::new(server.shard.tail(pointer).version() + 1, WRITER);
        let last = server.shard.layout.block_words(pointer) - 1;
        let tail = server.shard.word(pointer, last);
        tail.store(locked.0, Ordering::Relaxed);
        (pointer, locked)
    }
}

/// Calls `deed` before the Get that follows `others` other ones.
fn before_later_get(fabric: &Arc<Interposed>, others: usize, deed: Deed) {
    let next = Arc::clone(fabric);
    *fabric.before_get.lock() = Some(Box::new(move || match others {
        0 => deed(),
        others => before_later_get(&next, others - 1, deed),
    }));
}

#[test]
fn a_pair_that_moves_between_its_bucket_and_its_block_is_met() {
    let mut world = world();
    let (served, key, fabric) = (
        Arc::clone(&world.server),
        world.key,
        Arc::clone(&world.fabric),
    );
    let bucket = served.lock().shard.layout.bucket_of(key.hash());
    // Buckets are read in order, and the pair's block behind its own.
    let deed = move || {
        let mut server = served.lock();
        let before = find(&mut server, &key);
        let page = server.shard.layout.page_of(before);
        // Room elsewhere in its class.
        let other = server.shard.pages.add(before.class()).unwrap();
        server.shard.make_blocks(other);
        assert!(server.shard.retire(page, None));
        server.shard.advance_retirement(NOW);
        assert_ne!(find(&mut server, &key), before);
    };
    before_later_get(&fabric, bucket + 1, Box::new(deed));
    let met = world.visit(|_| ());
    assert!(fabric.before_get.lock().is_none(), "it moved");
    assert_eq!(met, [b"a value"]);
}

#[test]
fn a_pair_whose_writer_takes_long_is_met() {
    let mut world = world();
    let (pointer, locked) = world.lock();
    let met = world.visit(|server| {
        // The writer changes nothing: it restores the tail.
        let before = Tail::new(locked.version() - 1, WRITER);
        let last = server.shard.layout.block_words(pointer) - 1;
        let tail = server.shard.word(pointer, last);
        tail.store(before.0, Ordering::Relaxed);
    });
    assert_eq!(met, [b"a value"]);
}

#[test]
fn a_visit_does_not_wait_for_a_dead_writer() {
    let mut world = world();
    world.lock();
    world.network.stop(WRITER);
    assert!(world.visit(|_| ()).is_empty());
    assert_eq!(world.server.lock().shard.counts.recovered, 1);
}
