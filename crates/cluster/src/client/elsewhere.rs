//! Tests of a session that loads a server's memory while others write there from elsewhere.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nuthatch_engine::counters::Registry;
use nuthatch_engine::{Item, Key, KeyHasher, Op, Replies, Reply, Request, Store, Time};
use nuthatch_fabric::threads::{Network, ThreadsFabric};
use nuthatch_fabric::{Address, Fabric, Gone, forward_fabric};
use nuthatch_sync::mutex::Mutex;

use super::Client;
use crate::config::{Config, Operations};
use crate::layout::Layout;
use crate::server::Server;

const NOW: Time = Time(1000);

type Deed = Box<dyn FnOnce() + Send>;

/// A fabric on which the last PE is on another host, and on which something happens before the next Get.
struct OnHosts {
    fabric: Arc<ThreadsFabric>,
    before_get: Mutex<Option<Deed>>,
}

impl OnHosts {
    fn below(&self) -> &ThreadsFabric {
        &self.fabric
    }
}

impl Fabric for OnHosts {
    forward_fabric!(pe pes allocate local put put_nbi get_nbi compare_swap fetch_add swap fetch set);
    forward_fabric!(signal is_gone fence quiet barrier broadcast pause doze nanos);

    fn direct(&self, pe: usize, at: Address, words: usize) -> Option<&[AtomicU64]> {
        let is_here = pe + 1 < self.pes();
        is_here.then(|| self.fabric.direct(pe, at, words)).flatten()
    }

    fn get(&self, pe: usize, from: Address, into: &mut [u64]) -> Result<(), Gone> {
        let deed = self.before_get.lock().take();
        deed.into_iter().for_each(|deed| deed());
        self.fabric.get(pe, from, into)
    }
}

/// Takes values.
#[derive(Default)]
struct Values(Vec<MaybeUninit<u8>>);

impl<V> Replies<V> for Values {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.0 = vec![MaybeUninit::new(0); item.value_len];
        &mut self.0
    }

    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, _: V) {}

    fn done(&mut self, _: usize, _: Reply) {}
}

#[test]
fn equal_versions_are_not_believed_where_words_are_stored_in_any_order() {
    let config = Config {
        memory: 256 << 10,
        memory_max: 256 << 10,
        item_size_max: 4 << 10,
        buckets: Some(8),
        operations: Operations::Direct,
        ..Config::default()
    };
    let layout = Layout::new(&config, 3).unwrap();
    let ends = Network::free(3, layout.words()).ends();
    let mut server = Server::new(Arc::clone(&ends[0]), layout.clone(), &config);
    let fabric = Arc::new(OnHosts {
        fabric: Arc::clone(&ends[1]),
        before_get: Mutex::new(None),
    });
    let counts = Registry::default().register();
    let own = (Arc::clone(&fabric), Arc::new(layout.clone()));
    let mut client = Client::new(own.0, own.1, &config, 0, counts);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&stop));
        let key = Key::new(b"key", &KeyHasher::seeded(config.seed));
        let mut ask = |op| {
            let mut values = Values::default();
            client.execute(NOW, &[Request { key, op }], &mut values);
            values.0
        };
        ask(Op::Store(Store::set(b"a value")));
        ask(Op::Get);
        let (_, hint) = client.directory.find(key.hash()).unwrap();
        // A word of the value is not there yet, though those at the ends are.
        let at = layout.block(hint.pointer).plus(crate::block::KEY + 1);
        let word = &ends[0].local(at, 1)[0];
        let right = word.swap(0, Ordering::Relaxed);
        let end = Arc::clone(&ends[0]);
        *fabric.before_get.lock() = Some(Box::new(move || {
            end.local(at, 1)[0].store(right, Ordering::Relaxed);
        }));
        let mut values = Values::default();
        client.execute(NOW, &[Request { key, op: Op::Get }], &mut values);
        stop.store(true, Ordering::Relaxed);
        // SAFETY: all of them were written.
        let value: Vec<u8> = values
            .0
            .iter()
            .map(|byte| unsafe { byte.assume_init() })
            .collect();
        assert_eq!(value, b"a value");
    });
}
