//! Models of a partition with a descriptor: readers under the lock of their bucket, beside the partition's owner.
//! Claims cite the invariants of `partition/descriptor.rs` ("descriptor n") and `partition/bucket.rs` ("bucket n").

use std::mem::MaybeUninit;
use std::sync::Arc;

use loom::thread;
use nuthatch_base::hash::split;
use nuthatch_base::sync::spinlock::SpinLock;
use nuthatch_engine::{Delta, Expiry, Key, Op, Read, Removal, Reply, Store, Time, TouchIf};
use nuthatch_partition::memory::BLOCK_COST;
use nuthatch_partition::{
    BlockMemory, Descriptor, Element, Eviction, Outcome, Partition, PartitionConfig,
};

use crate::world::{NOW, hasher, model, number, value};

/// A partition as LockHash has it with random eviction.
struct World {
    memory: Arc<BlockMemory>,
    descriptors: Arc<[Descriptor]>,
    partition: SpinLock<Partition>,
}

impl World {
    /// Two buckets, in one block of 16 lines; and `blocks` blocks with room for five elements each.
    fn new(blocks: usize) -> Arc<Self> {
        let bytes = (1 + blocks) * BLOCK_COST;
        let memory = Arc::new(BlockMemory::new(bytes, bytes).unwrap());
        let config = PartitionConfig {
            eviction: Eviction::Random,
            evicts: true,
            item_size_max: 1024,
            capacity: bytes,
            seed: 1,
        };
        let descriptors: Arc<[Descriptor]> = [Descriptor::default()].into();
        let mut partition =
            Partition::with_descriptor(Arc::clone(&memory), config, Arc::clone(&descriptors), 0);
        partition.begin(2);
        Arc::new(Self {
            memory,
            descriptors,
            partition: SpinLock::new(partition),
        })
    }

    /// Two blocks of 16 lines: 8 and 2 of the first are used, 10 of the second; then 2 and 10. So key 2, whose number
    /// is 20, must move before a block can be given away.
    fn with_a_block_to_give() -> Arc<Self> {
        let world = Self::new(2);
        world.set_bytes(1, &[1; 440]);
        world.set(2, 20);
        world.set_bytes(3, &[3; 560]);
        world.delete(1);
        world
    }

    fn descriptor(&self) -> &Descriptor {
        &self.descriptors[0]
    }

    fn ask(&self, now: Time, key: u64, op: Op<'_>) -> Outcome {
        let key = key.to_le_bytes();
        let key = Key::new(&key, &hasher());
        self.partition.lock().execute(now, &key, &op)
    }

    fn set(&self, key: u64, number: u64) {
        self.set_bytes(key, &value(number));
    }

    fn set_bytes(&self, key: u64, bytes: &[u8]) {
        self.ask(NOW, key, Op::Store(Store::set(bytes)));
    }

    fn delete(&self, key: u64) {
        self.ask(NOW, key, Op::Remove(Removal::default()));
    }

    /// A plain get, as a handle of LockHash does it.
    fn get(&self, key: u64) -> Option<u64> {
        let key = key.to_le_bytes();
        let key = Key::new(&key, &hasher());
        let sight = self.descriptor().seek(&self.memory, NOW, &key);
        let held = sight.expect("no flush is due").live?;
        held.get(NOW);
        let mut bytes = [MaybeUninit::new(0); 16];
        held.copy_value(&mut bytes);
        // SAFETY: made initialised, written over since.
        Some(number(unsafe { bytes.assume_init_ref() }))
    }

    /// A read that wins the right to refresh a stale item, or touches it. Returns the item that it saw.
    fn read(&self, key: u64, read: &Read) -> Option<nuthatch_engine::Item> {
        let key = key.to_le_bytes();
        let key = Key::new(&key, &hasher());
        let sight = self.descriptor().seek(&self.memory, NOW, &key);
        let held = sight.expect("no flush is due").live?;
        let item = held.read(NOW, read);
        Some(item.unwrap_or_else(|refusal| panic!("refused: {refusal:?}")))
    }

    /// A reference to the key's element, as a reader of a large value takes it.
    fn pin(&self, key: u64) -> Option<Element> {
        let key = key.to_le_bytes();
        let key = Key::new(&key, &hasher());
        let sight = self.descriptor().seek(&self.memory, NOW, &key);
        sight.expect("no flush is due").live?.pin()
    }

    /// The number in the value of a pinned element.
    fn number_in(&self, element: Element) -> u64 {
        let mut bytes = [MaybeUninit::new(0); 16];
        self.memory.read(element, 8, &mut bytes);
        // SAFETY: made initialised, written over since.
        number(unsafe { bytes.assume_init_ref() })
    }

    fn finish(&self) {
        let partition = self.partition.lock();
        assert_eq!(partition.counts().held, 0);
        partition.audit().unwrap();
    }
}

/// The first keys that fall into `bucket` of an array of `buckets`.
fn keys_in(bucket: u32, buckets: u32) -> impl Iterator<Item = u64> {
    let hash = |key: &u64| hasher().hash(&key.to_le_bytes());
    (0..).filter(move |key| split::bucket_of_growing(hash(key), buckets) == bucket)
}

/// Descriptor 5: a reader finds the old value or the new one, whole, and never none.
#[test]
fn a_key_that_is_being_replaced_is_never_missed() {
    model(3, || {
        let world = World::new(1);
        world.set(1, 10);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let seen = world.get(1).expect("the key is always there");
                assert!([10, 11].contains(&seen));
            })
        };
        world.set(1, 11);
        reader.join().unwrap();
        assert_eq!(world.get(1), Some(11));
        world.finish();
    });
}

/// Descriptor 5: a replace needs the room of the item that it replaces. It does not evict that item first: if a reader
/// misses the item, nothing takes its place later.
#[test]
fn what_was_missed_does_not_come_back_by_a_replace() {
    model(3, || {
        let world = World::new(1);
        // 9 of the block's 16 lines.
        let long = |number| [&value(number)[..], &[0; 484]].concat();
        world.set_bytes(1, &long(10));
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let seen = [world.get(1), world.get(1)];
                assert!(!matches!(seen, [None, Some(_)]), "{seen:?}");
            })
        };
        let new = long(11);
        let replace = Store {
            mode: nuthatch_engine::StoreMode::Replace,
            ..Store::set(&new)
        };
        world.ask(NOW, 1, Op::Store(replace));
        reader.join().unwrap();
        world.finish();
    });
}

/// Descriptor 4: the lines of an element that was taken out are used again first, by another key of another bucket. A
/// reader that had found the element sees it whole, or does not find it.
#[test]
fn what_a_reader_walks_over_is_not_reused() {
    let (one, other) = (keys_in(0, 2).next().unwrap(), keys_in(1, 2).next().unwrap());
    model(3, move || {
        let world = World::new(1);
        world.set(one, 10);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || assert!([None, Some(10)].contains(&world.get(one))))
        };
        world.delete(one);
        world.set(other, 20);
        reader.join().unwrap();
        assert_eq!((world.get(one), world.get(other)), (None, Some(20)));
        world.finish();
    });
}

/// Descriptor 2: a bucket that is being divided hides none of its elements, neither one that stays nor those that move.
/// Of two that move, the later one in the chain is found through the other.
#[test]
fn a_division_hides_nothing() {
    let stays = keys_in(0, 3).next().unwrap();
    let moves: Vec<_> = keys_in(2, 3).take(2).collect();
    for chain in [[stays, moves[0]], [moves[0], moves[1]]] {
        for sought in chain {
            model(3, move || {
                let world = World::new(1);
                for key in chain {
                    world.set(key, key);
                }
                let reader = {
                    let world = Arc::clone(&world);
                    thread::spawn(move || assert_eq!(world.get(sought), Some(sought)))
                };
                // The third element is one too many for two buckets: the first is divided.
                let other = keys_in(1, 3).next().unwrap();
                world.set(other, other);
                reader.join().unwrap();
                assert_eq!(world.partition.lock().counts().buckets, 3);
                assert_eq!(world.get(sought), Some(sought));
                world.finish();
            });
        }
    }
}

/// Descriptor 3: of two readers that try to win a stale item, one wins; and the touch of a third is not undone.
#[test]
fn readers_that_mark_one_element_lose_no_mark() {
    const WIN: Read = Read {
        value: false,
        touch: None,
        vivify: None,
        recache_below: Some(u32::MAX),
        unless_cas: None,
        touch_if: TouchIf::Always,
        new_cas: None,
        may_win: true,
        bump: true,
        idle: false,
        details: true,
    };
    let touch = Read {
        touch: Some(Expiry::At(Time(500))),
        may_win: false,
        ..WIN
    };
    model(3, move || {
        let world = World::new(1);
        let bytes = value(10);
        let expiring = Store {
            expiry: Expiry::At(Time(100)),
            ..Store::set(&bytes)
        };
        world.ask(NOW, 1, Op::Store(expiring));
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.read(1, &touch).expect("the key is always there");
                world.read(1, &WIN).expect("the key is always there").won
            })
        };
        let won = world.read(1, &WIN).expect("the key is always there").won;
        assert!(won != reader.join().unwrap(), "one of them wins");
        let seen = world.read(1, &WIN).expect("the key is always there");
        assert!(seen.won_before && seen.fetched);
        assert_eq!(seen.expiry, Expiry::At(Time(500)));
        world.finish();
    });
}

/// Descriptor 3: a reader's change to an element that is being rewritten comes before or after the rewrite, and is not
/// lost.
#[test]
fn a_touch_beside_an_append_is_kept() {
    let touch = Read {
        value: false,
        touch: Some(Expiry::At(Time(500))),
        ..Read::default()
    };
    model(2, move || {
        let world = World::new(1);
        world.set(1, 10);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.read(1, &touch).expect("the key is always there"))
        };
        let append = Store {
            mode: nuthatch_engine::StoreMode::Append,
            ..Store::set(b"more")
        };
        world.ask(NOW, 1, Op::Store(append));
        reader.join().unwrap();
        let seen = world.read(1, &Read::default()).unwrap();
        assert_eq!((seen.expiry, seen.value_len), (Expiry::At(Time(500)), 20));
        assert!(seen.fetched);
        world.finish();
    });
}

/// Descriptor 3: a reader may end the life of a number that is being replaced by one of fewer lines. The number is then
/// stored anew.
#[test]
fn a_number_touched_to_its_end_is_made_again() {
    let touch = Read {
        value: false,
        touch: Some(Expiry::At(Time(NOW.0 - 1))),
        ..Read::default()
    };
    model(2, move || {
        let world = World::new(1);
        world.set_bytes(1, &[[b'0'; 59].as_slice(), b"5"].concat());
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.read(1, &touch))
        };
        let up = Delta {
            vivify: Some((70, Expiry::Never)),
            ..Delta::up(1)
        };
        let told = world.ask(NOW, 1, Op::Delta(up));
        let number = match told {
            Outcome::Done(Reply::Number(number, _) | Reply::Created(number, _)) => number,
            other => panic!("{other:?}"),
        };
        assert!([6, 70].contains(&number), "{number}");
        reader.join().unwrap();
        world.finish();
    });
}

/// Descriptor 4 and partition 7: a pinned element outlives its place in the table, and the last one of owner and reader
/// frees it once.
#[test]
fn what_is_pinned_outlives_its_place() {
    model(2, || {
        let world = World::new(1);
        world.set(1, 10);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let Some(element) = world.pin(1) else {
                    return;
                };
                assert_eq!(world.number_in(element), 10);
                world.partition.lock().decref(element);
            })
        };
        world.partition.lock().evict(NOW);
        world.set(2, 20);
        reader.join().unwrap();
        assert_eq!(world.get(2), Some(20));
        world.finish();
    });
}

/// Descriptor 3 and 4: an element that moves to other lines, because its block is given away, is never missed, and the
/// next content of the block is not taken for it.
#[test]
fn a_move_hides_nothing() {
    model(2, || {
        let world = World::with_a_block_to_give();
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || assert_eq!(world.get(2), Some(20)))
        };
        assert!(world.partition.lock().reclaim(NOW));
        world.set_bytes(4, &[4; 560]);
        reader.join().unwrap();
        assert_eq!(world.partition.lock().counts().moved, 1);
        assert_eq!(world.get(2), Some(20));
        world.finish();
    });
}

/// Partition 7: a pinned element stays in its place, although its block was to be given away.
#[test]
fn what_is_pinned_is_not_moved() {
    model(2, || {
        let world = World::with_a_block_to_give();
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let element = world.pin(2).expect("the key is always there");
                assert_eq!(world.number_in(element), 20);
                element
            })
        };
        world.partition.lock().reclaim(NOW);
        world.set_bytes(4, &[4; 560]);
        let element = reader.join().unwrap();
        assert_eq!(world.number_in(element), 20);
        world.partition.lock().decref(element);
        world.finish();
    });
}

/// Descriptor 3: giving a reference back undoes no mark, and no mark restores the reference.
#[test]
fn a_touch_beside_a_reference_given_back_is_kept() {
    let touch = Read {
        touch: Some(Expiry::At(Time(500))),
        ..Read::default()
    };
    model(3, move || {
        let world = World::new(1);
        world.set(1, 10);
        let element = world.pin(1).unwrap();
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.read(1, &touch).expect("the key is always there"))
        };
        world.partition.lock().decref(element);
        reader.join().unwrap();
        let seen = world.read(1, &Read::default()).unwrap();
        assert_eq!(seen.expiry, Expiry::At(Time(500)));
        let evicted = world.partition.lock().evict(NOW);
        assert!(evicted, "nobody reads it");
        world.finish();
    });
}

/// Descriptor 6: an item that was stored before a flush is not returned by a read that began after its end, whether the
/// flush took effect at once or was delayed.
#[test]
fn what_is_flushed_is_gone() {
    for at in [NOW, Time(NOW.0 + 1)] {
        model(3, move || {
            let world = World::new(1);
            world.set(1, 10);
            let flushed = Arc::new(loom::sync::atomic::AtomicBool::new(false));
            let reader = {
                let (world, flushed) = (Arc::clone(&world), Arc::clone(&flushed));
                thread::spawn(move || {
                    let before = flushed.load(loom::sync::atomic::Ordering::Acquire);
                    let bytes = 1_u64.to_le_bytes();
                    let key = Key::new(&bytes, &hasher());
                    // The owner carries out a flush that is due.
                    let sight = world.descriptor().seek(&world.memory, at, &key);
                    let hit = sight.is_some_and(|sight| sight.live.is_some());
                    assert!(!(before && hit), "a flushed item is returned");
                })
            };
            world.partition.lock().flush(NOW, at);
            flushed.store(true, loom::sync::atomic::Ordering::Release);
            // The first operation at that time puts the flush into effect.
            world.ask(at, 2, Op::Get);
            reader.join().unwrap();
            world.set(1, 11);
            assert_eq!(world.get(1), Some(11));
            world.finish();
        });
    }
}

/// Bucket 2: two buckets in one word, with a reader at one and the owner at the other.
#[test]
fn neighbours_in_a_word_do_not_disturb_each_other() {
    let (one, other) = (keys_in(0, 2).next().unwrap(), keys_in(1, 2).next().unwrap());
    model(3, move || {
        let world = World::new(1);
        world.set(one, 10);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || assert_eq!(world.get(one), Some(10)))
        };
        world.set(other, 20);
        reader.join().unwrap();
        assert_eq!((world.get(one), world.get(other)), (Some(10), Some(20)));
        world.finish();
    });
}
