//! Models of the shared table, and of statistics that another thread reads: every interleaving, and
//! every value that a relaxed load may return, of two or three threads on a table of two buckets
//! (`scripts/loom.sh`). Numbers are those of the invariants in `shared.rs`.
//!
//! All keys here have bucket 0 as their first one and different tags, so that threads conflict.
#![cfg(loom)]

use loom::thread;
use nuthatch_flow::types::{FourWay, Tag16};
use nuthatch_flow::{
    Config, Entry, Eviction, FlowHandle, Inserted, Layout, SharedFlowCache, Stats, Table,
};

/// Every hit moves up, new keys are inserted second to last: the most moves.
const BUBBLE: Eviction = Eviction::PBLRU_AUTHORS;

/// A key of the first bucket (of all layouts) with this tag.
fn key(tag: u64) -> u64 {
    tag << 48 | tag << 32
}

fn cache(layout: Layout) -> SharedFlowCache {
    let config = Config::new(0)
        .layout(layout)
        .entry(Entry::Tag16)
        .eviction(BUBBLE);
    config.seed(1).build_shared().unwrap()
}

/// A cache that holds the keys with tags 1 to `tags`, each with ten times its tag; and a handle.
fn filled(layout: Layout, tags: u64) -> (SharedFlowCache, FlowHandle) {
    let cache = cache(layout);
    let mut handle = cache.handle();
    for tag in 1..=tags {
        insert(&mut handle, tag, 10 * tag);
    }
    (cache, handle)
}

/// Models of whole operations: at most this many preemptions, unless LOOM_MAX_PREEMPTIONS is set.
fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(run);
}

/// A second thread, with a handle of its own.
fn beside<T: 'static>(
    cache: &SharedFlowCache,
    run: impl FnOnce(&mut FlowHandle) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let mut handle = cache.handle();
    thread::spawn(move || run(&mut handle))
}

fn insert(handle: &mut FlowHandle, tag: u64, value: u64) -> Inserted {
    handle.insert(key(tag), value).unwrap()
}

/// Invariants 2 and 4: neither of two keys that are swapped is missed.
#[test]
fn no_key_is_missed_while_one_moves_up() {
    model(3, || {
        let (cache, mut mover) = filled(Layout::FourWay, 2);
        let reader = beside(&cache, |reader| {
            assert_eq!(reader.lookup(key(1)), Some(10));
            assert_eq!(reader.lookup(key(2)), Some(20));
        });
        // A hit in slot 1: swapped with slot 0.
        assert_eq!(mover.lookup(key(2)), Some(20));
        reader.join().unwrap();
        assert_eq!(
            (mover.lookup(key(1)), mover.lookup(key(2))),
            (Some(10), Some(20))
        );
        assert_eq!(cache.count(), 2);
    });
}

/// Invariants 3 and 4 in a batch, whose hits take effect after all its lookups, while another thread's
/// hit moves a key up too.
#[test]
fn a_batch_misses_no_key_while_one_moves_up() {
    model(3, || {
        let (cache, mut mover) = filled(Layout::FourWay, 2);
        let reader = beside(&cache, |reader| {
            let (mut values, mut hits) = ([0; 2], [0]);
            let found = reader.lookup_many(&[key(2), key(1)], &mut values, &mut hits);
            assert_eq!((found, hits, values), (2, [0b11], [20, 10]));
        });
        assert_eq!(mover.lookup(key(2)), Some(20));
        reader.join().unwrap();
        assert_eq!(
            (mover.lookup(key(1)), mover.lookup(key(2))),
            (Some(10), Some(20))
        );
        assert_eq!(cache.count(), 2);
    });
}

/// Invariant 1: two threads that hit the same key move it once or twice; no key is lost or duplicated.
#[test]
fn two_concurrent_hits_lose_no_key() {
    model(3, || {
        let (cache, mut one) = filled(Layout::FourWay, 3);
        let other = beside(&cache, |other| assert_eq!(other.lookup(key(3)), Some(30)));
        assert_eq!(one.lookup(key(3)), Some(30));
        other.join().unwrap();
        assert_eq!(cache.count(), 3);
        for tag in 1..=3 {
            assert_eq!(one.lookup(key(tag)), Some(10 * tag));
        }
    });
}

/// Invariants 3 and 5: an update while the key moves is seen old or new, never old after new, and
/// never as another key's value.
#[test]
fn values_never_go_back() {
    model(2, || {
        let (cache, mut writer) = filled(Layout::Blp2x4, 2);
        let reader = beside(&cache, |reader| {
            let first = reader.lookup(key(2)).expect("never removed");
            let second = reader.lookup(key(2)).expect("never removed");
            assert!([20, 21].contains(&first) && [20, 21].contains(&second));
            assert!(first <= second);
        });
        // The update is a hit too: it stores the value and moves the key up. Then the other key moves up
        // again, so that the new value is in the slot of the old one.
        assert_eq!(insert(&mut writer, 2, 21), Inserted::Updated { old: 20 });
        assert_eq!(writer.lookup(key(1)), Some(10));
        reader.join().unwrap();
        assert_eq!(writer.lookup(key(2)), Some(21));
    });
}

/// Invariants 3 and 4: during an eviction a reader sees the old key or the new one, each with its
/// value; a key that stays is never missed.
#[test]
fn an_eviction_affects_no_other_key() {
    model(2, || {
        let (cache, mut writer) = filled(Layout::FourWay, 4);
        let reader = beside(&cache, |reader| {
            // Third of four: the new key is inserted there, and this one becomes the last.
            let stays = reader.lookup(key(3));
            let comes = reader.lookup(key(5));
            assert_eq!(stays, Some(30));
            assert!([None, Some(50)].contains(&comes));
        });
        assert_eq!(insert(&mut writer, 5, 50), Inserted::Evicted { value: 40 });
        reader.join().unwrap();
        assert_eq!(writer.lookup(key(4)), None);
        assert_eq!(cache.count(), 4);
    });
}

/// Invariant 1: two writers of one key leave it in the table once.
#[test]
fn two_inserts_of_a_key_take_one_slot() {
    model(2, || {
        let (cache, mut one) = filled(Layout::Blp2x4, 0);
        let other = beside(&cache, |other| insert(other, 1, 11));
        let first = insert(&mut one, 1, 10);
        let second = other.join().unwrap();
        let outcomes = (first, second);
        assert!(
            outcomes == (Inserted::Filled, Inserted::Updated { old: 10 })
                || outcomes == (Inserted::Updated { old: 11 }, Inserted::Filled)
        );
        assert_eq!(cache.count(), 1);
    });
}

/// The converse of invariant 4: a key that was removed before a lookup began is not found.
#[test]
fn a_removed_key_stays_away() {
    model(2, || {
        let (cache, mut writer) = filled(Layout::FourWay, 2);
        let reader = beside(&cache, |reader| {
            // A hit that is to move the key up while it is removed.
            let found = reader.lookup(key(2));
            assert!([None, Some(20)].contains(&found));
            found.is_none() && reader.lookup(key(2)).is_some()
        });
        assert_eq!(writer.remove(key(2)), Some(20));
        assert_eq!(writer.lookup(key(2)), None);
        assert!(!reader.join().unwrap(), "found again after it was missed");
        assert_eq!(writer.lookup(key(1)), Some(10));
        assert_eq!(cache.count(), 1);
    });
}

/// Statistics of a table of one thread, read while it counts: whatever relaxed loads return, there are never more hits
/// than lookups, no counter goes back, and after a join all counts are seen.
#[test]
fn statistics_are_read_beside_their_owner() {
    model(3, || {
        let config = Config::new(0).layout(Layout::FourWay).entry(Entry::Tag16);
        let mut cache = Table::<FourWay, Tag16>::new(&config.seed(1)).unwrap();
        let reader = cache.stats_reader();
        let owner = thread::spawn(move || {
            cache.insert(key(1), 10).unwrap();
            assert_eq!(cache.lookup(key(1)), Some(10));
            assert_eq!(cache.lookup(key(2)), None);
            cache.stats()
        });
        let (first, second) = (reader.stats(), reader.stats());
        assert!(first.hits <= first.lookups && second.hits <= second.lookups);
        assert!(first.lookups <= second.lookups && first.hits <= second.hits);
        assert!(first.filled <= second.filled && second.filled <= 1);
        let counted = owner.join().unwrap();
        let (lookups, hits, filled) = (2, 1, 1);
        let expected = Stats {
            lookups,
            hits,
            filled,
            ..Stats::default()
        };
        assert_eq!((counted, reader.stats()), (expected, expected));
    });
}
