//! Models of partitions behind locks: the accesses of readers and writers outside of the lock.

use std::mem::MaybeUninit;
use std::sync::Arc;

use loom::thread;
use nuthatch_base::sync::spinlock::SpinLock;
use nuthatch_engine::{Key, Op, Reply, Store};
use nuthatch_partition::memory::BLOCK_COST;
use nuthatch_partition::{BlockMemory, Element, Eviction, Partition, PartitionConfig};

use crate::world::{NOW, hasher, model, number, value};

/// A partition behind its lock, as in LockHash, and the memory that clients access without it.
struct World {
    memory: Arc<BlockMemory>,
    partition: SpinLock<Partition>,
}

impl World {
    /// Room for three elements: blocks of 16 lines, one of them for the buckets.
    fn new() -> Arc<Self> {
        let bytes = 2 * BLOCK_COST;
        let memory = Arc::new(BlockMemory::new(bytes, bytes).unwrap());
        let config = PartitionConfig {
            eviction: Eviction::Lru,
            evicts: true,
            item_size_max: 512,
            capacity: bytes,
            seed: 1,
        };
        let partition = SpinLock::new(Partition::new(Arc::clone(&memory), config));
        Arc::new(Self { memory, partition })
    }

    fn set(&self, key: u64, number: u64) {
        let (key, value) = (key.to_le_bytes(), value(number));
        let key = Key::new(&key, &hasher());
        let op = Op::Store(Store::set(&value));
        self.partition.lock().execute(NOW, &key, &op);
    }

    fn lookup(&self, key: u64) -> Option<Element> {
        let hash = hasher().hash(&key.to_le_bytes());
        self.partition.lock().lookup(NOW, hash)
    }

    fn decref(&self, element: Element) {
        self.partition.lock().decref(element);
    }

    /// The number in an element's value, read without the lock.
    fn read(&self, element: Element) -> u64 {
        let mut bytes = [MaybeUninit::new(0); 16];
        self.memory.read(element, 8, &mut bytes);
        // SAFETY: made initialised, written over since.
        number(unsafe { bytes.assume_init_ref() })
    }

    /// A store whose bytes are written without the lock, between insert and Ready.
    fn fill(&self, key: u64, number: u64) {
        let bytes = key.to_le_bytes();
        let hash = hasher().hash(&bytes);
        let made = self.partition.lock().insert(NOW, hash, 8, 16);
        let element = made.unwrap();
        self.memory.write(element, 0, &bytes);
        self.memory.write(element, 8, &value(number));
        let reply = self
            .partition
            .lock()
            .publish(NOW, element, &Store::set(b""));
        assert!(matches!(reply, Reply::Stored(_)));
    }

    fn finish(&self) {
        let partition = self.partition.lock();
        assert_eq!(partition.counts().held, 0);
        partition.audit().unwrap();
    }
}

/// Partition 2: a reader finds the old value or the new one, whole, and never none, while another
/// client's element goes from NOT READY to READY.
#[test]
fn a_key_that_is_being_replaced_is_never_missed() {
    model(3, || {
        let world = World::new();
        world.set(1, 10);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let element = world.lookup(1).expect("the key is always there");
                assert!([10, 11].contains(&world.read(element)));
                world.decref(element);
            })
        };
        world.fill(1, 11);
        reader.join().unwrap();
        let element = world.lookup(1).unwrap();
        assert_eq!(world.read(element), 11);
        world.decref(element);
        world.finish();
    });
}

/// Partition 7: the lines of an element with a reader are not reused, whatever is stored meanwhile. The last one,
/// writer or reader, frees it once.
#[test]
fn what_is_read_is_not_reused() {
    model(3, || {
        let world = World::new();
        world.set(1, 10);
        let element = world.lookup(1).unwrap();
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                assert_eq!(world.read(element), 10);
                world.decref(element);
            })
        };
        // The old element's lines would be the first to be used again.
        world.set(1, 11);
        world.fill(2, 20);
        reader.join().unwrap();
        world.finish();
        assert_eq!(world.partition.lock().counts().items, 2);
    });
}

/// Canary: a reader that gave its reference back too early reads bytes that another thread wrote since.
#[test]
#[should_panic(expected = "left == right")]
fn canary_a_read_after_the_reference_is_noticed() {
    model(3, || {
        let world = World::new();
        world.set(1, 10);
        let element = world.lookup(1).unwrap();
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.decref(element);
                assert_eq!(world.read(element), 10);
            })
        };
        world.set(1, 11);
        world.set(2, 20);
        reader.join().unwrap();
    });
}
