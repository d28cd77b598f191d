//! Tools for tests: a fabric that runs a closure right before a certain operation, settings of a small store, and a
//! place for the answer.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::{Item, Replies, Reply};
use nuthatch_fabric::threads::ThreadsFabric;
use nuthatch_fabric::{Address, Fabric, Gone, Verified, forward_fabric};

use crate::config::{Config, Operations};

/// A store so small that pages move soon, and whose sessions use direct operations.
pub fn small() -> Config {
    Config {
        memory: 256 << 10,
        memory_max: 256 << 10,
        item_size_max: 4 << 10,
        buckets: Some(8),
        operations: Operations::Direct,
        ..Config::default()
    }
}

/// A closure that runs once.
pub type Deed = Box<dyn FnOnce() + Send>;

/// A PE's end of a network, as seen by a PE that can load the memory of the first `reachable` PEs.
pub struct Interposed {
    fabric: Arc<ThreadsFabric>,
    reachable: usize,
    verified: Verified,
    /// Runs before the next Get.
    pub before_get: Mutex<Option<Deed>>,
    /// Runs before the next compare-swap.
    pub before_swap: Mutex<Option<Deed>>,
    /// Calls for whose answer the PE has waited.
    pub waits: AtomicU64,
    /// If not zero, by how much the clock goes on: for a wait, and for a signal, with which each batch of messages ends.
    pub prices: [AtomicU64; 2],
    clock: AtomicU64,
}

impl Interposed {
    /// Without closures yet.
    pub fn new(fabric: Arc<ThreadsFabric>, reachable: usize) -> Arc<Self> {
        let verified = fabric.verified();
        Self::beyond_standard(fabric, reachable, verified)
    }

    /// The same, of a library for which `verified` is known.
    pub fn beyond_standard(
        fabric: Arc<ThreadsFabric>,
        reachable: usize,
        verified: Verified,
    ) -> Arc<Self> {
        Arc::new(Self {
            fabric,
            reachable,
            verified,
            before_get: Mutex::default(),
            before_swap: Mutex::default(),
            waits: AtomicU64::new(0),
            prices: Default::default(),
            clock: AtomicU64::new(0),
        })
    }

    fn wait(&self) {
        // Relaxed, here and below: counts, of which only the PE itself asks.
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.pay(0);
    }

    fn pay(&self, price: usize) {
        let price = self.prices[price].load(Ordering::Relaxed);
        self.clock.fetch_add(price, Ordering::Relaxed);
    }

    fn below(&self) -> &ThreadsFabric {
        &self.fabric
    }
}

fn happen(deed: &Mutex<Option<Deed>>) {
    // Not under the lock: a deed may look whether it is still to come.
    let deed = deed.lock().take();
    deed.into_iter().for_each(|deed| deed());
}

impl Fabric for Interposed {
    forward_fabric!(pe pes allocate local put put_nbi get_nbi fetch_add swap fetch);
    forward_fabric!(is_gone fence barrier broadcast pause doze);

    fn verified(&self) -> Verified {
        self.verified
    }

    fn direct(&self, pe: usize, at: Address, words: usize) -> Option<&[AtomicU64]> {
        let is_reachable = pe < self.reachable;
        is_reachable
            .then(|| self.fabric.direct(pe, at, words))
            .flatten()
    }

    fn get(&self, pe: usize, from: Address, into: &mut [u64]) -> Result<(), Gone> {
        happen(&self.before_get);
        self.wait();
        self.fabric.get(pe, from, into)
    }

    fn compare_swap(&self, pe: usize, at: Address, expected: u64, new: u64) -> Result<u64, Gone> {
        happen(&self.before_swap);
        self.wait();
        self.fabric.compare_swap(pe, at, expected, new)
    }

    fn set(&self, pe: usize, at: Address, word: u64) -> Result<(), Gone> {
        // Open MPI's is a swap.
        self.wait();
        self.fabric.set(pe, at, word)
    }

    fn signal(&self, pe: usize, to: Address, from: Address) -> Result<(), Gone> {
        self.pay(1);
        self.fabric.signal(pe, to, from)
    }

    fn nanos(&self) -> u64 {
        match self.prices[0].load(Ordering::Relaxed) {
            0 => self.fabric.nanos(),
            _ => self.clock.load(Ordering::Relaxed),
        }
    }

    fn quiet(&self) -> Result<(), Gone> {
        self.wait();
        self.fabric.quiet()
    }
}

/// The last value that was answered; other answers are forgotten.
#[derive(Default)]
pub struct LastValue(Vec<MaybeUninit<u8>>);

impl LastValue {
    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: `begin` made initialised bytes, and over these only such are written.
        let byte = |byte: &MaybeUninit<u8>| unsafe { byte.assume_init() };
        self.0.iter().map(byte).collect()
    }
}

impl<V> Replies<V> for LastValue {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.0 = vec![MaybeUninit::new(0); item.value_len];
        &mut self.0
    }

    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, _: V) {}

    fn done(&mut self, _: usize, _: Reply) {}
}
