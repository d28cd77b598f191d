//! Regression tests of hostile uses: each test here broke the engine once, or was written to.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nuthatch::{Cache, Error, Lifetime};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{
    Audit, Engine, Handle, Item, Key, KeyHasher, Replies, Reply, Reservation, Store, Time,
};

const NOW: Time = Time(16);
const MIB: usize = 1 << 20;

/// Class: an eviction by the index instead of the memory. A cache that may not evict has a full index that cannot grow,
/// because memory is short, but still free chunks: it refuses the store, and keeps its items.
#[test]
fn a_full_index_evicts_nothing_where_nothing_may_be_evicted() {
    // Limits at which the index fills up at different fillings of the memory.
    for (limit, items) in [(8, 200_000), (9, 120_000), (10, 100_000), (12, 130_000)] {
        let cache = Cache::builder()
            .memory_limit(limit * MIB)
            .initial_capacity(items)
            .evict(false)
            .hash_seed(1)
            .build()
            .unwrap();
        let mut stored = Vec::new();
        for number in 0..400_000_u32 {
            match cache.insert(number.to_le_bytes(), b"v") {
                Ok(()) => stored.push(number),
                Err(Error::OutOfMemory) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(stored.len() > 50_000);
        assert_eq!(cache.stats().evictions, 0, "{limit} MiB, {items} items");
        for number in stored {
            assert!(cache.contains_key(number.to_le_bytes()));
        }
        cache.audit().unwrap();
    }
}

/// Class: user code under a lock. A listener may call the cache (a second level would), also when it is called for an
/// item that is removed because its page is emptied for another class.
#[test]
fn a_listener_may_store_while_pages_move() {
    use std::sync::{Mutex, OnceLock};
    let behind: Arc<OnceLock<Cache>> = Arc::default();
    let told = Arc::new(AtomicU64::new(0));
    let busy = Arc::new(Mutex::new(()));
    let cache = {
        let (behind, told) = (Arc::clone(&behind), Arc::clone(&told));
        Cache::builder()
            .memory_limit(8 * MIB)
            .eviction_listener(move |removed| {
                told.fetch_add(1, Ordering::Relaxed);
                // Not again for what this store evicts.
                if let (Ok(_once), Some(cache)) = (busy.try_lock(), behind.get()) {
                    // Refusals are lawful: the page that is being emptied is not free yet.
                    let _ = cache.insert([removed.key, b"'"].concat(), [7; 5000]);
                    let _ = cache.get(removed.key);
                }
            })
            .build()
            .unwrap()
    };
    assert!(behind.set(cache.clone()).is_ok());
    for number in 0..100_000_u32 {
        cache.insert(number.to_le_bytes(), [1; 40]).unwrap();
    }
    // Sizes drift: the new class has no page.
    for number in 0..500_u32 {
        cache.insert(number.to_be_bytes(), [2; 9000]).unwrap();
    }
    assert!(told.load(Ordering::Relaxed) > 1000);
    assert!(cache.engine_stats().pages_moved > 0);
    cache.audit().unwrap();
}

/// Class: a poisoned lock taken for a busy one. A listener that panics while a page is emptied does not stop the cache.
#[test]
fn a_listener_that_panics_once_does_not_stop_the_cache() {
    let told = Arc::new(AtomicU64::new(0));
    let cache = {
        let told = Arc::clone(&told);
        Cache::builder()
            .memory_limit(8 * MIB)
            .eviction_listener(move |removed| {
                if removed.value_len == 40 && told.fetch_add(1, Ordering::Relaxed) == 0 {
                    panic!("as planned");
                }
            })
            .build()
            .unwrap()
    };
    let mut small = 0_u32;
    while cache.stats().memory_used + 2 * MIB as u64 <= cache.stats().memory_limit {
        cache.insert(small.to_le_bytes(), [1; 40]).unwrap();
        small += 1;
    }
    let mut panics = 0;
    // Five classes that have no page yet.
    for number in 0..500_u32 {
        let value = vec![2; 9000 << (number / 100)];
        let stored = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            cache.insert(number.to_be_bytes(), &value)
        }));
        match stored {
            Ok(stored) => stored.unwrap(),
            Err(_) => panics += 1,
        }
    }
    assert_eq!(panics, 1);
    assert!(cache.engine_stats().pages_moved >= 4);
}

/// Calls everything of a cache that needs a session, when its thread ends.
struct AtTheEnd(Cache);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let Self(cache) = self;
        cache.insert("last", "words").unwrap();
        assert_eq!(cache.get("last").unwrap(), b"words");
        assert_eq!(
            cache.get_many(&["last", "no"])[0].as_deref(),
            Some(&b"words"[..])
        );
        let computed = cache.get_or_insert_with("computed", Lifetime::Default, || "late");
        assert_eq!(computed.unwrap(), b"late");
        for number in 0..100_u32 {
            cache.insert(number.to_le_bytes(), [1; 30_000]).unwrap();
        }
        cache.maintain(1000);
        cache.insert("done", "so").unwrap();
    }
}

thread_local! {
    static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// Class: a thread-local that is destroyed already. Destructors that run at a thread's end may use a cache, whatever is
/// destroyed first: what the thread has of the cache, or the value that uses it.
#[test]
fn destructors_of_a_thread_that_ends_may_use_the_cache() {
    let leave = |cache: &Cache| AT_THE_END.set(Some(AtTheEnd(cache.clone())));
    let orders: [&(dyn Fn(&Cache) + Sync); 3] = [
        &|cache| {
            cache.insert("first", "1").unwrap();
            leave(cache);
        },
        &|cache| {
            leave(cache);
            cache.insert("first", [1; 9000]).unwrap();
            assert!(cache.get("first").is_some());
        },
        &leave,
    ];
    for (order, run) in orders.into_iter().enumerate() {
        let told = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&told);
        let cache = Cache::builder()
            .memory_limit(MIB)
            .eviction_listener(move |_| _ = count.fetch_add(1, Ordering::Relaxed))
            .build()
            .unwrap();
        std::thread::scope(|scope| {
            // Its destructors have run when it is joined, which the end of a scope does not wait for.
            scope.spawn(|| run(&cache)).join().unwrap();
        });
        assert_eq!(cache.get("done").as_deref(), Some(&b"so"[..]), "{order}");
        assert!(told.load(Ordering::Relaxed) > 50, "{order}");
        cache.audit().unwrap();
    }
}

/// Class: work that ends only when other threads rest. Removals that return a value, and new lifetimes in a cache with
/// a time to idle, make progress beside a thread that never stops replacing the same item.
#[test]
fn removals_and_touches_end_beside_a_writer_that_does_not() {
    let cache = Cache::builder()
        .memory_limit(64 * MIB)
        .time_to_idle(Duration::from_secs(3600))
        .build()
        .unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let values = [vec![1; 100_000], vec![2; 99_000]];
            for turn in 0.. {
                cache.insert("hot", &values[turn % 2]).unwrap();
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let mut removed = 0;
        while removed < 300 {
            cache.touch("hot", Duration::from_secs(60)).unwrap();
            if let Some(value) = cache.remove("hot") {
                let whole = [(1, 100_000), (2, 99_000)];
                assert!(whole.contains(&(value[0], value.len())));
                assert!(value.iter().all(|byte| *byte == value[0]));
                removed += 1;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    cache.audit().unwrap();
}

/// A receiver that keeps only the last reply without a value.
struct Last(Option<Reply>);

impl<V> Replies<V> for Last {
    fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
        unreachable!("nothing is read")
    }
    fn commit(&mut self, _: usize) {}
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, _: V) {}
    fn done(&mut self, _: usize, reply: Reply) {
        self.0 = Some(reply);
    }
}

fn engine(memory: usize, item: usize) -> Arc<Cuckoo> {
    let config = CuckooConfig {
        memory_limit: memory,
        memory_limit_max: memory,
        item_size_max: item,
        hasher: KeyHasher::seeded(1),
        ..CuckooConfig::default()
    };
    Arc::new(Cuckoo::new(config).unwrap())
}

/// Class: a bounded search for a victim that meets only chunks that cannot be evicted. A huge value that is being
/// received holds more chunks in a row than are tried; another store must find the evictable ones behind.
#[test]
fn a_huge_value_on_its_way_does_not_hide_what_can_be_evicted() {
    let engine = engine(400 * MIB, 180 * MIB);
    let mut handle = engine.handle();
    let hasher = engine.hasher().clone();
    let huge = handle
        .reserve(NOW, Key::new(b"huge", &hasher), 175 * MIB)
        .unwrap();
    let value = vec![3; 400_000];
    let mut refused = 0;
    for number in 0..2000_u32 {
        let key = number.to_le_bytes();
        let request = nuthatch_engine::Request {
            key: Key::new(&key, &hasher),
            op: nuthatch_engine::Op::Store(Store::set(&value)),
        };
        let mut last = Last(None);
        handle.execute(NOW, &[request], &mut last);
        refused += usize::from(!matches!(last.0, Some(Reply::Stored(_))));
    }
    assert_eq!(refused, 0);
    assert!(huge.missing() > 0);
    drop(huge);
    engine.audit().unwrap();
}

/// Class: arithmetic on a number that an operator sets.
#[test]
fn any_number_of_initial_items_is_cut_to_what_fits() {
    for items in [0, 1, usize::MAX / 10, usize::MAX] {
        let config = CuckooConfig {
            memory_limit: 4 * MIB,
            memory_limit_max: 4 * MIB,
            initial_items: Some(items),
            item_size_max: MIB,
            ..CuckooConfig::default()
        };
        let engine = Arc::new(Cuckoo::<nuthatch_cuckoo::layout::EightWay>::new(config).unwrap());
        engine.audit().unwrap();
    }
}

/// Class: a bound that is counted in pages, whose size comes from another limit. A cache that began small has small
/// pages. When it is full at a raised limit, its ghosts want a hundred of them at once: a store that cleans pages for
/// the ghosts finds room for itself behind them.
#[test]
fn a_store_in_small_pages_finds_room_behind_those_that_wait() {
    let cache = Cache::builder()
        .memory_limit(MIB)
        .memory_limit_max(128 * MIB)
        .item_size_max(1024)
        .hash_seed(1)
        .build()
        .unwrap();
    cache.set_memory_limit(128 * MIB).unwrap();
    for number in 0..260_000_u32 {
        let stored = cache.insert(number.to_le_bytes(), [1; 500]);
        assert_eq!(stored, Ok(()), "{number}: {:?}", cache.stats());
    }
    assert!(cache.stats().evictions > 0);
    cache.audit().unwrap();
}
