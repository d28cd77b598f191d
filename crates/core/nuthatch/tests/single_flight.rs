//! Computations of missing values: one at a time for each key, by threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::Duration;

use nuthatch::{Cache, Error, Lifetime, LoadError, RemovalCause};

const KEPT: Lifetime = Lifetime::Default;

fn cache() -> Cache {
    Cache::new(16 << 20).unwrap()
}

#[test]
fn exactly_one_caller_computes() {
    let cache = cache();
    for round in 0..50_u32 {
        let (computed, barrier) = (AtomicU32::new(0), Barrier::new(6));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    barrier.wait();
                    let value = cache.get_or_insert_with(round.to_le_bytes(), KEPT, || {
                        computed.fetch_add(1, Ordering::Relaxed);
                        "value"
                    });
                    assert_eq!(value.unwrap(), b"value");
                });
            }
        });
        assert_eq!(computed.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_failed_computation_lets_another_try() {
    let cache = cache();
    let failed = cache.try_get_or_insert_with("k", KEPT, || Err::<Vec<u8>, _>("no"));
    assert_eq!(failed, Err(LoadError::Load("no")));
    let (attempts, barrier) = (AtomicU32::new(0), Barrier::new(4));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    cache.get_or_insert_with("p", KEPT, || {
                        let earlier = attempts.fetch_add(1, Ordering::Relaxed);
                        assert!(earlier > 0, "the first panics");
                        "second"
                    })
                }));
                assert!(outcome.is_err() || outcome.unwrap().unwrap() == b"second");
            });
        }
    });
    assert_eq!(attempts.load(Ordering::Relaxed), 2);
}

/// The value is computed, so all callers that wait for it get it.
#[test]
fn a_value_that_cannot_be_stored_is_returned() {
    let too_large = cache();
    let full = Cache::builder()
        .memory_limit(4 << 20)
        .evict(false)
        .build()
        .unwrap();
    let filled = (0..u32::MAX).find(|number| full.insert(number.to_le_bytes(), [1; 500]).is_err());
    assert!(filled.is_some());
    for (cache, value) in [(too_large, vec![7; 2 << 20]), (full, vec![7; 100_000])] {
        let (computed, barrier) = (AtomicU32::new(0), Barrier::new(4));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    let got = cache.get_or_insert_with("k", KEPT, || {
                        computed.fetch_add(1, Ordering::Relaxed);
                        value.clone()
                    });
                    assert!(got.is_ok_and(|got| got == value));
                });
            }
        });
        assert!(!cache.contains_key("k"));
        assert!((1..=4).contains(&computed.load(Ordering::Relaxed)));
        cache.audit().unwrap();
    }
}

#[test]
fn a_key_that_cannot_be_stored_is_not_computed() {
    let cache = cache();
    for key in [&[][..], &[1; 251]] {
        let refused = cache.get_or_insert_with(key, KEPT, || -> Vec<u8> { panic!("computed") });
        assert_eq!(refused, Err(Error::KeyLength));
    }
}

/// A computation that calls for its own key gets an error, however deep the call; it may compute other keys.
#[test]
fn recursion_is_an_error() {
    let cache = cache();
    let outer = cache.get_or_insert_with("a", KEPT, || {
        let inner = cache.get_or_insert_with("b", KEPT, || {
            let own = cache.get_or_insert_with("a", KEPT, || "never");
            assert_eq!(own, Err(Error::Recursion));
            let own = cache.try_get_or_insert_with("b", KEPT, || Err::<String, _>("never"));
            assert_eq!(own, Err(LoadError::Cache(Error::Recursion)));
            // Reads and stores of the key are no recursion.
            assert_eq!(cache.get("a"), None);
            cache.insert("a", "early").unwrap();
            "inner"
        });
        [b"outer of ", &inner.unwrap()[..]].concat()
    });
    assert_eq!(outer.unwrap(), b"outer of inner");
    assert_eq!(cache.get("a").unwrap(), b"outer of inner");
    // It is over: the same thread may compute again.
    cache.invalidate_all();
    assert_eq!(
        cache.get_or_insert_with("a", KEPT, || "again").unwrap(),
        b"again"
    );
}

/// Between a computation and the end of its flight the caller's code runs, too: a conversion of the value, and a
/// listener that recomputes the value that left. Neither waits for its own thread.
#[test]
fn recursion_behind_the_computation_is_an_error() {
    struct Recursive<'c>(&'c Cache);
    impl From<Recursive<'_>> for Vec<u8> {
        fn from(value: Recursive<'_>) -> Self {
            let own = value.0.get_or_insert_with("k", KEPT, || "never");
            assert_eq!(own, Err(Error::Recursion));
            b"converted".to_vec()
        }
    }
    let (behind, asked): (Arc<OnceLock<Cache>>, Arc<Mutex<Vec<_>>>) = Default::default();
    let cache = {
        let (behind, asked) = (Arc::clone(&behind), Arc::clone(&asked));
        Cache::builder()
            .memory_limit(4 << 20)
            .removal_listener(move |removed| {
                let cache = behind.get().unwrap();
                let again = cache.get_or_insert_with(removed.key, KEPT, || "recomputed");
                asked.lock().unwrap().push((removed.cause, again));
            })
            .build()
            .unwrap()
    };
    assert!(behind.set(cache.clone()).is_ok());
    let value = cache.get_or_insert_with("k", KEPT, || Recursive(&cache));
    assert_eq!(value.unwrap(), b"converted");
    // A store over an expired item reports that one as expired; the new value has expired at once as well.
    cache.insert_for("old", "value", Duration::ZERO).unwrap();
    asked.lock().unwrap().clear();
    let value = cache.get_or_insert_with("old", Duration::ZERO, || "new");
    assert_eq!(value.unwrap(), b"new");
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    assert_eq!(asked, [(RemovalCause::Expired, Err(Error::Recursion))]);
}

/// While a thread computes, other threads that call for the same key wait, also threads that it has started itself.
#[test]
fn another_thread_of_the_computation_is_no_recursion() {
    let cache = cache();
    let asked = Barrier::new(2);
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            asked.wait();
            cache.get_or_insert_with("k", KEPT, || "by the follower")
        });
        let led = cache.get_or_insert_with("k", KEPT, || {
            asked.wait();
            "by the leader"
        });
        assert_eq!(led.unwrap(), b"by the leader");
        assert_eq!(follower.join().unwrap().unwrap(), b"by the leader");
    });
}
