//! Tests of listeners that do whatever a program may do: of the library's interface, and of both designs of the engine
//! that has listeners.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use nuthatch::{Cache, CasOutcome, Lifetime, RemovalCause};
use nuthatch_cuckoo::config::Listener;
use nuthatch_cuckoo::layout::{EightWay, Paper, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{
    Audit, Engine, Handle, Item, Key, KeyHasher, Op, Replies, Reply, Request, Store, Time,
};

const MIB: usize = 1 << 20;
const NOW: Time = Time(16);
/// Most bytes of removed values that wait for the listener.
const BACKLOG: usize = MIB;

/// How deep calls of the listener are nested, at most.
#[derive(Default)]
struct Depth {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Depth {
    fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let depth = 1 + self.now.fetch_add(1, Ordering::Relaxed);
        self.most.fetch_max(depth, Ordering::Relaxed);
        let done = work();
        self.now.fetch_sub(1, Ordering::Relaxed);
        done
    }
}

/// Receives whether a request was stored.
struct Stored(bool);

impl<V> Replies<V> for Stored {
    fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
        panic!("nothing is read");
    }
    fn commit(&mut self, _: usize) {}
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, _: V) {}
    fn done(&mut self, _: usize, reply: Reply) {
        self.0 = matches!(reply, Reply::Stored(_));
    }
}

fn set<D: Variant>(engine: &Arc<Cuckoo<D>>, key: &[u8], value: &[u8]) -> bool {
    let request = Request {
        key: Key::new(key, engine.hasher()),
        op: Op::Store(Store::set(value)),
    };
    let mut stored = Stored(false);
    engine.handle().execute(NOW, &[request], &mut stored);
    stored.0
}

/// An engine of `memory_limit` bytes whose listener is given the engine.
fn engine<D: Variant>(
    memory_limit: usize,
    hears_all: bool,
    listener: impl Fn(&Arc<Cuckoo<D>>, &[u8], &[u8]) + Send + Sync + 'static,
) -> Arc<Cuckoo<D>> {
    let behind: Arc<OnceLock<std::sync::Weak<Cuckoo<D>>>> = Arc::default();
    let seen = Arc::clone(&behind);
    let config = CuckooConfig {
        memory_limit,
        hasher: KeyHasher::seeded(1),
        listener: Some(Listener {
            callback: Arc::new(move |_, key: &[u8], _: &Item, value: &[u8]| {
                if let Some(engine) = seen.get().and_then(|engine| engine.upgrade()) {
                    listener(&engine, key, value);
                }
            }),
            hears_all,
        }),
        ..CuckooConfig::default()
    };
    let engine = Arc::new(Cuckoo::<D>::new(config).unwrap());
    assert!(behind.set(Arc::downgrade(&engine)).is_ok());
    engine
}

/// The listener makes one store for each removal that it is called for: without a bound the calls would nest for ever.
fn storm<D: Variant>() {
    let (told, depth) = (Arc::new(AtomicUsize::new(0)), Arc::new(Depth::default()));
    let (count, within) = (Arc::clone(&told), Arc::clone(&depth));
    let engine = engine::<D>(4 * MIB, false, move |engine, _, value| {
        within.within(|| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            assert!(set(engine, format!("again {number}").as_bytes(), value));
        });
    });
    for number in 0..8000_u32 {
        assert!(set(&engine, &number.to_le_bytes(), &[7; 1000]));
    }
    let (stats, told) = (engine.stats(), told.load(Ordering::Relaxed) as u64);
    assert!(
        told > 8000 && stats.untold > 0,
        "{told} told, {} not",
        stats.untold
    );
    // Removals that were neither told nor counted as untold are waiting.
    let waiting = stats.evictions - told - stats.untold;
    assert!(
        waiting > 0 && waiting < (BACKLOG / 1000) as u64,
        "{waiting} wait"
    );
    assert_eq!(depth.most.load(Ordering::Relaxed), 1);
    engine.reset_stats();
    assert_eq!(engine.stats().untold, 0);
    engine.audit().unwrap();
}

#[test]
fn a_listener_that_stores_for_each_removal_ends() {
    storm::<EightWay>();
    storm::<Paper>();
}

#[test]
fn a_listener_of_the_cache_that_stores_for_each_removal_ends() {
    let behind: Arc<OnceLock<Cache>> = Arc::default();
    let told = Arc::new(AtomicUsize::new(0));
    let (seen, count) = (Arc::clone(&behind), Arc::clone(&told));
    let cache = Cache::builder()
        .memory_limit(4 * MIB)
        .eviction_listener(move |removed| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            if let Some(cache) = seen.get() {
                let key = format!("again {number}");
                cache.insert(&key, removed.value.unwrap()).unwrap();
                // The key it was stored under is found, unless it was evicted at once.
                cache.get(&key);
            }
        })
        .build()
        .unwrap();
    assert!(behind.set(cache.clone()).is_ok());
    std::thread::scope(|scope| {
        for thread in 0..3_u32 {
            let cache = &cache;
            scope.spawn(move || {
                for number in 0..3000_u32 {
                    let key = (thread << 16 | number).to_le_bytes();
                    cache.insert(key, [7; 1000]).unwrap();
                }
            });
        }
    });
    assert!(told.load(Ordering::Relaxed) > 9000);
    cache.audit().unwrap();
}

/// A second level: a value that leaves is stored once more, under another key, and then leaves for good. The listener
/// is called for every removal, for some of them later.
#[test]
fn what_a_listener_removes_is_told_as_well() {
    fn check<D: Variant>() {
        let told = Arc::new(Mutex::new(std::collections::HashSet::new()));
        let heard = Arc::clone(&told);
        let engine = engine::<D>(4 * MIB, false, move |engine, key, value| {
            assert!(heard.lock().unwrap().insert(key.to_vec()), "told twice");
            if key.len() == 4 {
                assert!(set(engine, &[key, b" again"].concat(), value));
            }
        });
        let mut waited = 0;
        for number in 0..8000_u32 {
            assert!(set(&engine, &number.to_le_bytes(), &[7; 1000]));
            let evicted = engine.stats().evictions as usize;
            waited = waited.max(evicted - told.lock().unwrap().len());
        }
        engine.handle().maintain(NOW, 10_000);
        let stats = engine.stats();
        assert_eq!(told.lock().unwrap().len() as u64, stats.evictions);
        // Until the first copy is evicted, each removal makes another: one more waits after each store.
        assert!(stats.untold == 0 && waited < 600, "{waited} waited");
        engine.audit().unwrap();
    }
    check::<EightWay>();
    check::<Paper>();
}

/// The caller sees the panic, the operation has taken effect, the listener is called for the other values later, and no
/// memory is lost.
#[test]
fn a_listener_that_panics_loses_nothing() {
    fn check<D: Variant>() {
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let engine = engine::<D>(8 * MIB, false, move |_, _, _| {
            assert!(
                !count.fetch_add(1, Ordering::Relaxed).is_multiple_of(7),
                "as planned"
            );
        });
        let mut panics = 0;
        let mut last = [0; 4];
        for number in 0..20_000_u32 {
            last = number.to_le_bytes();
            // Some need the room of several others, of another class, and some need pieces of many.
            let len = match number % 100 {
                0 => 600_000,
                1 => 20_000,
                _ => 1000,
            };
            let value = vec![7; len];
            let stored = catch_unwind(AssertUnwindSafe(|| set(&engine, &last, &value)));
            match stored {
                Ok(stored) => assert!(stored),
                Err(_) => panics += 1,
            }
        }
        assert!(panics > 1000);
        let again = catch_unwind(AssertUnwindSafe(|| set(&engine, &last, b"")));
        assert!(again.is_err() || engine.stats().total_items > 10_000);
        // By its end the listener was called for all that waited; some of these calls panic as well.
        while catch_unwind(AssertUnwindSafe(|| engine.handle().maintain(NOW, 10_000))).is_err() {}
        let stats = engine.stats();
        let heard = told.load(Ordering::Relaxed) as u64 + stats.untold;
        assert_eq!(heard, stats.evictions);
        engine.audit().unwrap();
    }
    check::<EightWay>();
    check::<Paper>();
}

/// So large values are told of in the middle of an operation: what it has taken by then is not lost by a panic, which its
/// caller sees when it has ended.
#[test]
fn a_listener_that_panics_in_the_middle_of_an_operation_loses_nothing() {
    let panics = Arc::new(AtomicBool::new(true));
    let panics_now = Arc::clone(&panics);
    let cache = Cache::builder()
        .memory_limit(64 * MIB)
        .eviction_listener(move |_| {
            if panics_now.load(Ordering::Relaxed) {
                // Without a word on standard error.
                resume_unwind(Box::new("as planned"));
            }
        })
        .build()
        .unwrap();
    let value = vec![7; MIB - 100];
    let mut panicked = 0;
    for number in 0..1000_u32 {
        let stored = || cache.insert(number.to_le_bytes(), &value);
        match catch_unwind(AssertUnwindSafe(stored)) {
            Ok(stored) => stored.unwrap(),
            Err(_) => {
                panicked += 1;
                panics.store(false, Ordering::Relaxed);
                let key = number.to_le_bytes();
                assert!(cache.contains_key(key), "it has taken effect");
                panics.store(true, Ordering::Relaxed);
            }
        }
    }
    assert!(panicked > 500, "{panicked} panics");
    panics.store(false, Ordering::Relaxed);
    for number in 0..100_u32 {
        cache.insert(number.to_le_bytes(), &value).unwrap();
    }
    cache.audit().unwrap();
}

/// An operation that removes very much calls the listener before it ends: it holds copies of no more than a mebibyte,
/// and of what one step removes, at a time.
#[test]
fn a_store_that_removes_much_tells_before_it_ends() {
    let behind: Arc<OnceLock<Cache>> = Arc::default();
    let (before, after) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, early, late) = (Arc::clone(&behind), Arc::clone(&before), Arc::clone(&after));
    let cache = Cache::builder()
        .memory_limit(64 * MIB)
        .item_size_max(32 * MIB)
        .eviction_listener(move |removed| {
            assert_eq!(removed.cause, RemovalCause::Size);
            let Some(cache) = seen.get() else { return };
            let counter = if cache.contains_key("huge") {
                &late
            } else {
                &early
            };
            counter.fetch_add(removed.value_len, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    for number in 0..70_000_u32 {
        cache.insert(number.to_le_bytes(), [7; 1000]).unwrap();
    }
    assert!(behind.set(cache.clone()).is_ok());
    cache.insert("huge", vec![1; 30 * MIB]).unwrap();
    let [before, after] = [before, after].map(|bytes| bytes.load(Ordering::Relaxed));
    assert!(before > 20 * MIB, "{before} bytes are told on the way");
    assert!(after < 3 * MIB, "{after} bytes are held until the end");
    cache.audit().unwrap();
}

/// A listener may do whatever a program may do with a cache, and may wait for other threads that do it.
#[test]
fn a_listener_does_what_it_likes() {
    fn check<D: Variant>() {
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let engine = engine::<D>(4 * MIB, true, move |engine, key, value| {
            match count.fetch_add(1, Ordering::Relaxed) % 6 {
                0 => assert!(set(engine, key, value)),
                1 => engine.flush(NOW, NOW),
                2 => {
                    engine.handle().maintain(NOW, 1000);
                }
                3 => {
                    let mut handle = engine.handle();
                    let from = nuthatch_engine::Cursor::default();
                    handle.visit(NOW, from, 100, &mut |_| ());
                }
                4 => std::thread::scope(|scope| {
                    let elsewhere = scope.spawn(|| set(engine, b"elsewhere", value));
                    assert!(elsewhere.join().unwrap());
                }),
                _ => drop(engine.stats()),
            }
        });
        for number in 0..20_000_u32 {
            assert!(set(&engine, &(number % 10_000).to_le_bytes(), &[7; 1000]));
        }
        assert!(told.load(Ordering::Relaxed) > 1000);
        engine.handle().maintain(NOW, 1000);
        engine.audit().unwrap();
    }
    check::<EightWay>();
    check::<Paper>();
}

/// What each method of the cache reports to the listener: the cause and the value that left.
#[test]
fn each_method_tells_what_left() {
    type Heard = Vec<(RemovalCause, String)>;
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let told = Arc::clone(&heard);
    let cache = Cache::builder()
        .memory_limit(4 * MIB)
        // So that touching stores the item anew.
        .time_to_idle(Duration::from_secs(3600))
        .removal_listener(move |removed| {
            assert_eq!(removed.key, b"key");
            let value = String::from_utf8(removed.value.unwrap().to_vec()).unwrap();
            told.lock().unwrap().push((removed.cause, value));
        })
        .build()
        .unwrap();
    let left = || std::mem::take(&mut *heard.lock().unwrap());
    let one = |cause, value: &str| vec![(cause, value.to_owned())];

    cache.insert("key", "1").unwrap();
    assert!(cache.touch("key", Lifetime::Unlimited).unwrap());
    assert!(!cache.add("key", "refused", Lifetime::Default).unwrap());
    assert!(cache.append("key", "").unwrap());
    assert_eq!(left(), []);
    cache.insert("key", "2").unwrap();
    assert_eq!(left(), one(RemovalCause::Replaced, "1"));
    assert_eq!(cache.incr("key", 40).unwrap(), Some(42));
    assert_eq!(left(), one(RemovalCause::Replaced, "2"));
    assert!(cache.append("key", "0").unwrap());
    assert_eq!(left(), one(RemovalCause::Replaced, "42"));
    assert!(cache.replace("key", "new", Lifetime::Default).unwrap());
    assert_eq!(left(), one(RemovalCause::Replaced, "420"));
    let version = cache.get_item("key").unwrap().version;
    let swapped = cache.compare_and_swap("key", version, "newer", Lifetime::Default);
    assert_eq!(swapped, Ok(CasOutcome::Stored));
    assert_eq!(left(), one(RemovalCause::Replaced, "new"));
    assert_eq!(cache.remove("key"), Some(b"newer".to_vec()));
    assert_eq!(left(), one(RemovalCause::Explicit, "newer"));
    cache.insert("key", "again").unwrap();
    assert!(cache.invalidate("key"));
    assert_eq!(left(), one(RemovalCause::Explicit, "again"));
    cache.insert_for("key", "dead", Duration::ZERO).unwrap();
    cache.insert("key", "alive").unwrap();
    assert_eq!(left(), one(RemovalCause::Expired, "dead"));
    cache.invalidate_all();
    assert_eq!(left(), []);
    while cache.maintain(10_000) {}
    assert_eq!(left(), one(RemovalCause::Explicit, "alive"));
}

/// The listener gets a long value whole, wherever its pieces lie.
#[test]
fn a_value_of_a_mebibyte_is_told() {
    let heard = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&heard);
    let cache = Cache::builder()
        .removal_listener(move |removed| {
            let value = removed.value.unwrap();
            assert!(value.iter().all(|byte| *byte == 7) && value.len() == removed.value_len);
            told.fetch_add(value.len(), Ordering::Relaxed);
        })
        .build()
        .unwrap();
    let long = vec![7; MIB - 100];
    cache.insert("long", &long).unwrap();
    cache.insert("long", "\x07").unwrap();
    cache.invalidate("long");
    assert_eq!(heard.load(Ordering::Relaxed), long.len() + 1);
}

/// Class: a thread of the library that the caller's code ends. After a listener panicked, expired values are still
/// freed and reported.
#[test]
fn the_maintenance_thread_outlives_a_listener_that_panics() {
    let (sender, told) = std::sync::mpsc::channel();
    let cache = Cache::builder()
        .memory_limit(4 * MIB)
        .maintenance_thread(true)
        .eviction_listener(move |removed| {
            sender.send(removed.key.to_vec()).unwrap();
            panic!("as planned");
        })
        .build()
        .unwrap();
    for key in [b"1", b"2", b"3"] {
        cache.insert_for(key, "value", Duration::ZERO).unwrap();
        assert_eq!(told.recv().unwrap(), key);
    }
}

/// The caller sees the first of several panics of one operation: the others often follow from it.
#[test]
fn the_first_panic_is_seen() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let cache = Cache::builder()
        .memory_limit(64 * MIB)
        .eviction_listener(move |_| {
            resume_unwind(Box::new(counted.fetch_add(1, Ordering::Relaxed)));
        })
        .build()
        .unwrap();
    let (value, mut several) = (vec![7; MIB - 100], 0);
    for number in 0..1000_u32 {
        let before = calls.load(Ordering::Relaxed);
        let insert = || cache.insert(number.to_le_bytes(), &value);
        if let Err(seen) = catch_unwind(AssertUnwindSafe(insert)) {
            assert_eq!(*seen.downcast::<usize>().unwrap(), before);
            several += usize::from(calls.load(Ordering::Relaxed) > before + 1);
        }
    }
    assert!(several > 0);
}
