//! Models of the doubling of the index beside readers and writers.

use std::sync::Arc;

use loom::thread;
use nuthatch_base::hash::split::partner_offset;
use nuthatch_cuckoo::index::{Index, Position};
use nuthatch_cuckoo::layout::{Geometry, SlotWord};
use nuthatch_engine::{Engine, Handle};
use nuthatch_store::memory::arena::Address;

use crate::world::*;

/// Buckets before the doubling.
const BUCKETS: u64 = 8;

/// An engine whose index doubles from 8 to 16 buckets and has split two, and `keys`, stored before.
/// The keys lie in buckets from 2 on.
fn growing(keys: &[u64]) -> Arc<Model> {
    let engine = engine(BUCKETS as usize);
    let mut handle = engine.handle();
    for &key in keys {
        set(&mut handle, key, 1);
    }
    // Three keys of the first two buckets: the third starts the doubling and finds room when the first has moved to
    // bucket 8.
    for wanted in [[8, 1], [1, 8], [0, 1]] {
        set(&mut handle, key_in(2 * BUCKETS, wanted), 1);
    }
    assert!(engine.stats().index_growing);
    engine
}

/// Splits the next bucket.
fn split(engine: &Arc<Model>) {
    engine.handle().maintain(NOW, 1);
}

/// Runs operations on a thread of their own.
fn spawn<T: 'static>(
    engine: &Arc<Model>,
    body: impl FnOnce(&mut OurHandle) -> T + 'static,
) -> thread::JoinHandle<T> {
    let mut handle = engine.handle();
    thread::spawn(move || body(&mut handle))
}

/// Cuckoo 4, and the note at `Index::geometry`: a key whose bucket is split under its reader is never missed, whether
/// it stays or moves, and whether the reader finds it in its first bucket or its second.
#[test]
fn a_reader_never_misses_a_key_that_is_split() {
    for wanted in [[10, 3], [2, 3], [3, 10]] {
        let key = key_in(2 * BUCKETS, wanted);
        model(2, move || {
            let engine = growing(&[key]);
            let reader = spawn(&engine, move |handle| get(handle, key));
            split(&engine);
            assert_eq!(reader.join().unwrap(), Some(1));
            audit(&engine);
        });
    }
}

/// The same for a batch, which prefetches buckets long before it reads them.
#[test]
fn a_batch_never_misses_a_key_that_is_split() {
    let keys = [key_in(2 * BUCKETS, [10, 3]), key_in(2 * BUCKETS, [11, 10])];
    model(1, move || {
        let engine = growing(&keys);
        let reader = spawn(&engine, move |handle| get_both(handle, keys));
        split(&engine);
        assert_eq!(reader.join().unwrap(), [Some(1); 2]);
        audit(&engine);
    });
}

/// Cuckoo 1 to 3: a store beside the split of its bucket leaves one item, in a place where readers look.
#[test]
fn a_store_beside_a_split_leaves_one_item() {
    for wanted in [[10, 3], [2, 11]] {
        let key = key_in(2 * BUCKETS, wanted);
        model(2, move || {
            let engine = growing(&[key]);
            let writer = spawn(&engine, move |handle| {
                set(handle, key, 2);
                get(handle, key)
            });
            split(&engine);
            assert_eq!(writer.join().unwrap(), Some(2));
            assert_eq!(get(&mut engine.handle(), key), Some(2));
            audit(&engine);
        });
    }
}

/// Cuckoo 1: an insert pushes items aside while their buckets are split: each move is refused or correct, in the split
/// half, the other half, and across.
#[test]
fn moves_beside_a_split_are_refused_or_right() {
    // The items of buckets 2 and 3 can move to 5 and to 6; the new key needs 2 or 3.
    for [first, second] in [[[10, 5], [3, 6]], [[2, 5], [11, 14]], [[2, 13], [3, 2]]] {
        let keys = [first, second].map(|wanted| key_in(2 * BUCKETS, wanted));
        let new = key_in(BUCKETS, [2, 3]);
        model(2, move || {
            let engine = growing(&keys);
            let writer = spawn(&engine, move |handle| set(handle, new, 2));
            split(&engine);
            split(&engine);
            writer.join().unwrap();
            let mut handle = engine.handle();
            assert_eq!(keys.map(|key| get(&mut handle, key)), [Some(1); 2]);
            assert_eq!(get(&mut handle, new), Some(2));
            audit(&engine);
        });
    }
}

/// Cuckoo 1: a path leads from the split half into a bucket that is split meanwhile, after which the item's other
/// bucket is another one.
#[test]
fn moves_into_a_bucket_that_is_split_are_refused_or_right() {
    // The setup's last store splits bucket 2, so 3 is the next. The new key finds its buckets taken by one key that can
    // move to 3, or to 11 once that exists, and by another.
    let moved = key_in(2 * BUCKETS, [0, 11]);
    let blocker = key_in(2 * BUCKETS, [5, 4]);
    let new = key_in(2 * BUCKETS, [0, 5]);
    model(2, move || {
        let engine = growing(&[blocker]);
        let mut handle = engine.handle();
        assert!(delete(&mut handle, key_in(2 * BUCKETS, [0, 1])));
        set(&mut handle, moved, 1);
        let writer = spawn(&engine, move |handle| set(handle, new, 2));
        split(&engine);
        writer.join().unwrap();
        assert_eq!(get(&mut handle, moved), Some(1));
        assert_eq!(get(&mut handle, blocker), Some(1));
        assert_eq!(get(&mut handle, new), Some(2));
        audit(&engine);
    });
}

/// Two threads split, and a reader looks: the splits run one after the other.
#[test]
fn two_splitters_do_not_split_a_bucket_twice() {
    let keys = [key_in(2 * BUCKETS, [10, 3]), key_in(2 * BUCKETS, [11, 6])];
    model(2, move || {
        let engine = growing(&keys);
        let other = spawn(&engine, move |handle| {
            handle.maintain(NOW, 1);
            keys.map(|key| get(handle, key))
        });
        split(&engine);
        assert_eq!(other.join().unwrap(), [Some(1); 2]);
        audit(&engine);
    });
}

/// A lookup and a split at the level of the index; `stale` looks with a geometry that was loaded before its snapshot.
fn look_beside_a_split(stale: bool) {
    loom::model(move || {
        let index = Arc::new(Index::<OneSlot>::new(2, 4, 2).unwrap());
        // Tag 1, bucket 2 of 4.
        let place = index.place(1 << 48 | 2);
        let item = SlotWord::new::<OneSlot>(place.tag, Address(0));
        index.store(Position { bucket: 0, slot: 0 }, item);
        index.publish(Geometry {
            growing: true,
            ..index.geometry()
        });
        let reader = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                let before = index.geometry();
                let (snapshot, mut buckets) = index.begin(&place);
                if stale {
                    buckets = [before.locate(place.first), before.locate(place.second)];
                }
                let found = index.matches(buckets, place.tag);
                if index.unchanged(&snapshot) {
                    assert_ne!(found, 0, "missed");
                }
            })
        };
        let geometry = index.geometry();
        {
            let _guard = index.lock_bucket(0);
            index.store(Position { bucket: 2, slot: 0 }, item);
            index.store(Position { bucket: 0, slot: 0 }, SlotWord::EMPTY);
            index.publish(Geometry {
                split: 1,
                ..geometry
            });
        }
        reader.join().unwrap();
    });
}

/// Both halves of a bucket have one stripe, so a get that looks into its first bucket alone finds a key there by the
/// version of that stripe, although the bucket is split meanwhile.
#[test]
fn a_split_is_noticed_by_the_first_bucket_alone() {
    loom::model(move || {
        let index = Arc::new(Index::<OneSlot>::new(2, 4, 2).unwrap());
        let place = index.place(1 << 48 | 2);
        let item = SlotWord::new::<OneSlot>(place.tag, Address(0));
        index.store(Position { bucket: 0, slot: 0 }, item);
        let growing = Geometry {
            growing: true,
            ..index.geometry()
        };
        index.publish(growing);
        let reader = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                let (snapshot, bucket) = index.begin_first(&place);
                let found = index.match_in(bucket, place.tag);
                if index.unchanged(&snapshot) {
                    assert_eq!(found, Some(item), "missed");
                }
            })
        };
        {
            let _guard = index.lock_bucket(0);
            index.store(Position { bucket: 2, slot: 0 }, item);
            index.store(Position { bucket: 0, slot: 0 }, SlotWord::EMPTY);
            index.publish(Geometry {
                split: 1,
                ..growing
            });
        }
        reader.join().unwrap();
    });
}

/// The usual get checks that the table is at rest, and reads with that geometry. If a doubling begins meanwhile, and
/// has split the bucket of its key, the get notices: by the geometry that comes with the split's version, or by the
/// version. The split holds one of the key's two stripes.
#[test]
fn a_doubling_that_begins_is_noticed() {
    for (first, second) in [(5, 10), (10, 5)] {
        loom::model(move || {
            let index = Arc::new(Index::<OneSlot>::new(8, 16, 8).unwrap());
            let tag = (1..).find(|&tag| partner_offset(tag) & 15 == first ^ second);
            let place = index.place(tag.unwrap() << 48 | first);
            let item = SlotWord::new::<OneSlot>(place.tag, Address(0));
            let [low, high] = [2, 10].map(|bucket| Position { bucket, slot: 0 });
            index.store(low, item);
            let reader = {
                let index = Arc::clone(&index);
                thread::spawn(move || {
                    let Some((snapshot, buckets)) = index.begin_at_rest(&place) else {
                        return;
                    };
                    let found = index.matches(buckets, place.tag);
                    if index.unchanged(&snapshot) {
                        assert_ne!(found, 0, "missed");
                    }
                })
            };
            let growing = Geometry {
                growing: true,
                split: 2,
                ..index.geometry()
            };
            index.publish(growing);
            {
                let _guard = index.lock_bucket(low.bucket);
                index.store(high, item);
                index.store(low, SlotWord::EMPTY);
                index.publish(Geometry {
                    split: 3,
                    ..growing
                });
            }
            reader.join().unwrap();
        });
    }
}

/// The order that `Index::geometry` requires: first the snapshot, then the geometry.
#[test]
fn a_geometry_loaded_after_the_snapshot_is_vouched_for() {
    look_beside_a_split(false);
}

/// Canary: a geometry loaded before is wrong, and the models find it.
#[test]
#[should_panic(expected = "missed")]
fn canary_a_geometry_loaded_before_the_snapshot_is_stale() {
    look_beside_a_split(true);
}
