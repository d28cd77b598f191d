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
    /// Its clock's nanoseconds, if operations have prices: of a wait, and of a signal, which each batch of messages ends
    /// with.
    clock: AtomicU64,
    prices: Option<[u64; 2]>,
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
            clock: AtomicU64::new(0),
            prices: None,
        })
    }

    /// The same, whose clock goes on by `wait` nanoseconds for each call for whose answer the PE waits, and by `message`
    /// for each batch of messages, and stands still otherwise.
    pub fn priced(
        fabric: Arc<ThreadsFabric>,
        reachable: usize,
        wait: u64,
        message: u64,
    ) -> Arc<Self> {
        let end = Self::new(fabric, reachable);
        let mut end = Arc::into_inner(end).expect("it is new");
        end.prices = Some([wait, message]);
        Arc::new(end)
    }

    fn wait(&self) {
        // Relaxed, here and below: counts, of which only the PE itself asks.
        self.waits.fetch_add(1, Ordering::Relaxed);
        if let Some([wait, _]) = self.prices {
            self.clock.fetch_add(wait, Ordering::Relaxed);
        }
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
        if let Some([_, message]) = self.prices {
            self.clock.fetch_add(message, Ordering::Relaxed);
        }
        self.fabric.signal(pe, to, from)
    }

    fn nanos(&self) -> u64 {
        match self.prices {
            Some(_) => self.clock.load(Ordering::Relaxed),
            None => self.fabric.nanos(),
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
