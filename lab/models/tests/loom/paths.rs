//! Models of MemC3's appendix: a reader beside an insert that moves keys along a path, at the level of the index (items
//! are slots, distinguished by their tags) and through the whole engine.

use std::sync::Arc;

use loom::thread;
use nuthatch_base::hash::split;
use nuthatch_cuckoo::index::{Candidates, Index, Moved, Position};
use nuthatch_cuckoo::layout::SlotWord;
use nuthatch_cuckoo::search::{Searched, Searcher};
use nuthatch_engine::Engine;
use nuthatch_store::memory::arena::Address;

use crate::world::*;

const BUCKETS: u64 = 8;

/// A hash with these two buckets; `number` distinguishes keys of the same buckets.
fn hash_in(first: u64, second: u64, number: usize) -> u64 {
    let tag = (1..=0xffff_u64)
        .filter(|&tag| split::partner_offset(tag) & (BUCKETS - 1) == first ^ second)
        .nth(number)
        .unwrap();
    tag << 48 | first
}

/// An index in which `keys` lie in their first buckets.
fn table(keys: &[u64]) -> Arc<Index<OneSlot>> {
    let index = Index::new(BUCKETS, BUCKETS, BUCKETS as usize).unwrap();
    for &key in keys {
        let place = index.place(key);
        insert(&index, &place);
    }
    Arc::new(index)
}

fn item(place: &Candidates) -> SlotWord {
    SlotWord::new::<OneSlot>(place.tag, Address(place.first & 0xffff))
}

fn insert(index: &Index<OneSlot>, place: &Candidates) -> bool {
    let locked = index.lock(place);
    match locked.free_slot() {
        Some(at) => {
            locked.store(at, item(place));
            true
        }
        None => {
            locked.release_unmodified();
            false
        }
    }
}

/// Finds a path and follows it from its end, as the engine does. False if it became stale.
fn make_room(index: &Index<OneSlot>, place: &Candidates, moves: usize) -> bool {
    let mut searcher = Searcher::new(1);
    assert_ne!(searcher.search(index, place, |_| None), Searched::Full);
    assert_eq!(searcher.path.steps.len(), moves);
    let mut free = searcher.path.free.unwrap();
    searcher.path.steps.iter().rev().all(|&(from, item)| {
        let moved = index.relocate(from, free, item, |_| None) == Moved::Done;
        free = from;
        moved
    })
}

/// One optimistic lookup; `None` if it must begin again.
fn attempt(index: &Index<OneSlot>, place: &Candidates) -> Option<Option<SlotWord>> {
    let (snapshot, buckets) = index.begin(place);
    let mask = index.matches(buckets, place.tag);
    let found = (mask != 0).then(|| index.load(Position::matched::<OneSlot>(buckets, mask)));
    index.unchanged(&snapshot).then_some(found)
}

fn look(index: &Index<OneSlot>, place: &Candidates) -> Option<SlotWord> {
    loop {
        if let Some(found) = attempt(index, place) {
            return found;
        }
        thread::yield_now();
    }
}

/// The same as a get does it: the first bucket alone, then both.
fn attempt_first(index: &Index<OneSlot>, place: &Candidates) -> Option<Option<SlotWord>> {
    let (snapshot, bucket) = index.begin_first(place);
    match index.match_in(bucket, place.tag) {
        Some(slot) => index.unchanged(&snapshot).then_some(Some(slot)),
        None => attempt(index, place),
    }
}

/// The appendix's picture: key0 in bucket 2 can move to 5, key1 in bucket 1 can move to 2, and a new key arrives that
/// only fits bucket 1 (its other bucket, 4, has a key that could move to no nearer place).
struct Picture {
    key0: u64,
    key1: u64,
    blocker: u64,
    blocked: u64,
    new: u64,
}

fn picture() -> Picture {
    Picture {
        key0: hash_in(2, 5, 0),
        key1: hash_in(1, 2, 0),
        // 4 and 7 hold each other's keys.
        blocker: hash_in(4, 7, 0),
        blocked: hash_in(7, 4, 1),
        new: hash_in(1, 4, 0),
    }
}

/// A reader of `wanted` beside the insert of the new key, which takes a path of two moves.
fn read_beside_insert(wanted: impl Fn(&Picture) -> u64 + Copy + Send + Sync + 'static, held: bool) {
    model(2, move || {
        let picture = picture();
        let index = table(&[picture.key0, picture.key1, picture.blocker, picture.blocked]);
        let reader = {
            let index = Arc::clone(&index);
            let place = index.place(wanted(&picture));
            thread::spawn(move || {
                assert_eq!(look(&index, &place), held.then(|| item(&place)));
            })
        };
        let place = index.place(picture.new);
        assert!(make_room(&index, &place, 2));
        assert!(insert(&index, &place));
        reader.join().unwrap();
        for key in [picture.key0, picture.key1, picture.blocker, picture.new] {
            let place = index.place(key);
            assert_eq!(look(&index, &place), Some(item(&place)));
        }
    });
}

/// Cuckoo 4, the appendix's case 1: the key that was moved out of the slot earlier.
#[test]
fn case_1_the_key_displaced_before_is_found() {
    read_beside_insert(|picture| picture.key0, true);
}

/// Cuckoo 4, case 2: the key that is moved.
#[test]
fn case_2_the_displaced_key_is_found() {
    read_beside_insert(|picture| picture.key1, true);
}

/// Case 3: a third key, whose other bucket has the slot that changes: present in its first bucket.
#[test]
fn case_3_a_third_key_is_found() {
    read_beside_insert(|picture| picture.blocker, true);
}

/// Case 3: a third key that is not in the table and whose buckets both change: no other key is taken
/// for it.
#[test]
fn case_3_an_absent_key_is_not_found() {
    read_beside_insert(|_| hash_in(2, 1, 7), false);
}

/// Cuckoo 3: a hit in the first bucket alone needs the version of no other stripe, and who does not hit there looks into
/// both. The reader finds each key, whether it leaves its first bucket, comes into it, or stays there.
#[test]
fn a_key_is_found_by_its_first_bucket_alone() {
    // The last one lies in its second bucket and moves to its first.
    for (first, second) in [(2, 5), (5, 2)] {
        model(3, move || {
            let hash = hash_in(first, second, 0);
            let index = table(&[hash_in(2, 5, 0)]);
            let place = index.place(hash);
            let moved = item(&place);
            let (from, to) = (
                Position { bucket: 2, slot: 0 },
                Position { bucket: 5, slot: 0 },
            );
            index.store(from, moved);
            let reader = {
                let index = Arc::clone(&index);
                thread::spawn(move || {
                    let found = attempt_first(&index, &place);
                    assert!(found.is_none_or(|found| found == Some(moved)), "missed");
                })
            };
            assert_eq!(index.relocate(from, to, moved, |_| None), Moved::Done);
            reader.join().unwrap();
        });
    }
}

/// Canary: a miss needs both versions. A reader that took the version of the first bucket's stripe alone for one misses
/// a key that is moved there and back between its looks.
#[test]
#[should_panic(expected = "missed")]
fn canary_a_miss_by_one_version_is_wrong() {
    loom::model(|| {
        let hash = hash_in(2, 5, 0);
        let index = table(&[hash]);
        let place = index.place(hash);
        let reader = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                let (snapshot, bucket) = index.begin_first(&place);
                let found = index.match_in(bucket, place.tag).is_some();
                // It should look into the other bucket.
                assert!(found || !index.unchanged(&snapshot), "missed");
            })
        };
        let (from, to) = (
            Position { bucket: 2, slot: 0 },
            Position { bucket: 5, slot: 0 },
        );
        index.relocate(from, to, item(&place), |_| None);
        reader.join().unwrap();
    });
}

/// Stripes 1, cuckoo 1: two inserts whose paths cross. A move that came late is refused; no item is lost, and none is
/// present twice.
#[test]
fn crossing_paths_lose_and_double_nothing() {
    model(3, || {
        // 1 and 3 both try to push the key of bucket 2 into bucket 5.
        let key = hash_in(2, 5, 0);
        let (one, other) = (hash_in(1, 2, 0), hash_in(3, 2, 0));
        let held = [
            key,
            hash_in(1, 6, 0),
            hash_in(6, 1, 1),
            hash_in(3, 0, 0),
            hash_in(0, 3, 1),
        ];
        let index = table(&held);
        let push = |index: &Index<OneSlot>, hash| {
            let place = index.place(hash);
            let mut searcher = Searcher::new(1);
            // The path may be stale by now, or there may be none any more: then this insert gives up.
            searcher.search(index, &place, |_| None) != Searched::Full
                && searcher.path.steps.first().is_none_or(|&(from, item)| {
                    let free = searcher.path.free.unwrap();
                    searcher.path.steps.len() == 1
                        && index.relocate(from, free, item, |_| None) == Moved::Done
                })
                && insert(index, &place)
        };
        let writer = {
            let index = Arc::clone(&index);
            thread::spawn(move || push(&index, one))
        };
        let here = push(&index, other);
        let there = writer.join().unwrap();
        assert!(here || there);
        let mut expected = held.to_vec();
        expected.extend(there.then_some(one));
        expected.extend(here.then_some(other));
        let mut slots: Vec<u64> = (0..BUCKETS)
            .map(|bucket| index.load(Position { bucket, slot: 0 }).0)
            .filter(|&slot| slot != 0)
            .collect();
        let mut wanted: Vec<u64> = expected
            .iter()
            .map(|&key| item(&index.place(key)).0)
            .collect();
        slots.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(slots, wanted);
    });
}

/// Cuckoo 4 through the whole engine: a key that is never deleted is never missed while an insert
/// pushes it and another aside.
#[test]
fn a_key_that_stays_is_never_missed_while_it_is_moved() {
    let key0 = key_in(BUCKETS, [2, 5]);
    let key1 = key_in(BUCKETS, [1, 2]);
    let blockers = [key_in(BUCKETS, [4, 7]), key_in(BUCKETS, [7, 4])];
    let new = key_in(BUCKETS, [1, 4]);
    // The buckets of key1 change in both moves, so it can be read again and again; its model is bounded more tightly.
    for (watched, preemptions) in [(key0, 1), (key1, 0)] {
        model(preemptions, move || {
            let engine = engine(BUCKETS as usize);
            let mut handle = engine.handle();
            for key in [key0, key1].into_iter().chain(blockers) {
                set(&mut handle, key, key);
            }
            let reader = {
                let mut handle = engine.handle();
                thread::spawn(move || get(&mut handle, watched))
            };
            set(&mut handle, new, new);
            assert_eq!(reader.join().unwrap(), Some(watched));
            assert_eq!(engine.stats().displacements, 2);
            assert!(!engine.stats().index_growing);
            audit(&engine);
        });
    }
}

/// Canary: a reader that does not check the versions misses a key while it is moved.
#[test]
#[should_panic(expected = "missed")]
fn canary_a_reader_without_the_check_misses() {
    loom::model(|| {
        let hash = hash_in(2, 5, 0);
        let index = table(&[hash]);
        let place = index.place(hash);
        let reader = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                let (_snapshot, buckets) = index.begin(&place);
                let found = index.matches(buckets, place.tag);
                assert_ne!(found, 0, "missed");
            })
        };
        let (from, to) = (
            Position { bucket: 2, slot: 0 },
            Position { bucket: 5, slot: 0 },
        );
        assert_eq!(
            index.relocate(from, to, item(&place), |_| None),
            Moved::Done
        );
        reader.join().unwrap();
    });
}
