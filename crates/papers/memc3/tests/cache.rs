//! The four caches: what they hold and give back, in which order items leave, and that a value is always its key's.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nuthatch_memc3::{
    Cache, ChainingClock, ChainingLru, CuckooClock, CuckooLru, Index, KeyWords, Order, ValueWords,
};

fn key(number: u64) -> KeyWords {
    [number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number]
}

/// A value that tells its key and its version, in every word.
fn value(number: u64, version: u64) -> ValueWords {
    [number ^ version << 32; 4]
}

/// True if the value is one that this key had.
fn is_its_own(number: u64, value: ValueWords) -> bool {
    value.iter().all(|&word| word == value[0]) && value[0] as u32 == number as u32
}

/// Calls a generic function for each of the caches.
macro_rules! each_cache {
    ($function:ident) => {
        $function::<_, _>(ChainingLru::new);
        $function::<_, _>(CuckooLru::new);
        $function::<_, _>(ChainingClock::new);
        $function::<_, _>(CuckooClock::new);
    };
}

type Make<I, O> = fn(usize) -> std::io::Result<Cache<I, O>>;

#[test]
fn items_have_the_papers_sizes() {
    let sizes = [
        ChainingLru::ITEM,
        CuckooLru::ITEM,
        ChainingClock::ITEM,
        CuckooClock::ITEM,
    ];
    assert_eq!(sizes, [104, 96, 80, 72]);
}

/// A few items in a cache that holds them all, then more than it holds.
fn holds_what_fits<I: Index, O: Order>(make: Make<I, O>) {
    let items = if cfg!(miri) { 40 } else { 1000 };
    let cache = make(items * Cache::<I, O>::ITEM).unwrap();
    assert_eq!(cache.capacity(), items);
    let items = items as u64;
    for number in 0..items {
        assert!(cache.set(&key(number), &value(number, 0)));
    }
    for number in 0..items {
        assert_eq!(cache.get(&key(number)), Some(value(number, 0)));
        assert_eq!(cache.get(&key(items + number)), None);
        assert!(cache.set(&key(number), &value(number, 1)));
        assert_eq!(cache.get(&key(number)), Some(value(number, 1)));
    }
    assert_eq!(cache.count() as u64, items);
    assert!(cache.delete(&key(3)) && !cache.delete(&key(3)));
    assert_eq!(
        (cache.get(&key(3)), cache.count() as u64),
        (None, items - 1)
    );
    for number in items..4 * items {
        assert!(cache.set(&key(number), &value(number, 0)));
    }
    assert_eq!(cache.count() as u64, items);
    let held = (0..4 * items).filter(|&number| cache.get(&key(number)).is_some());
    assert_eq!(held.count() as u64, items);
}

#[test]
fn caches_hold_what_fits() {
    each_cache!(holds_what_fits);
}

fn leaves_by_lru<I: Index, O: Order>(make: Make<I, O>) {
    const ITEMS: usize = 20;
    let cache = make(ITEMS * Cache::<I, O>::ITEM).unwrap();
    let mut model: VecDeque<u64> = VecDeque::new();
    let mut number = 1_u64;
    for _ in 0..2000 {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let asked = (number >> 33) % 30;
        let at = model.iter().position(|&held| held == asked);
        assert_eq!(cache.get(&key(asked)).is_some(), at.is_some());
        match at {
            Some(at) => {
                model.remove(at);
            }
            None => {
                cache.set(&key(asked), &value(asked, 0));
                if model.len() == ITEMS {
                    model.pop_front();
                }
            }
        }
        model.push_back(asked);
    }
}

#[test]
fn lru_is_exact() {
    leaves_by_lru(ChainingLru::new);
    leaves_by_lru(CuckooLru::new);
}

fn spares_what_was_hit<I: Index, O: Order>(make: Make<I, O>) {
    let cache = make(100 * Cache::<I, O>::ITEM).unwrap();
    for number in 0..100 {
        cache.set(&key(number), &value(number, 0));
    }
    // The first one clears all bits, and takes the first item.
    cache.set(&key(100), &value(100, 0));
    assert_eq!(cache.get(&key(0)), None);
    for number in 0..50 {
        cache.get(&key(number));
    }
    for number in 101..140 {
        cache.set(&key(number), &value(number, 0));
    }
    for number in 1..50 {
        assert!(cache.get(&key(number)).is_some(), "{number} was hit");
    }
}

#[test]
fn clock_spares_what_was_hit() {
    spares_what_was_hit(ChainingClock::new);
    spares_what_was_hit(CuckooClock::new);
}

/// Class of bug: a reader gets bytes of another item, or of two, while an item is replaced.
fn values_are_their_keys<I: Index + Sync, O: Order + Sync>(make: Make<I, O>) {
    let (items, rounds) = if cfg!(miri) { (8, 20) } else { (64, 1000) };
    let cache = make(items * Cache::<I, O>::ITEM).unwrap();
    let keys = 2 * items as u64;
    let over = AtomicBool::new(false);
    /// Ends the reader, also if the writer fails.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            // Relaxed: the flag publishes nothing.
            self.0.store(true, Ordering::Relaxed);
        }
    }
    thread::scope(|scope| {
        let _end = End(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for number in 0..keys {
                    if let Some(found) = cache.get(&key(number)) {
                        assert!(is_its_own(number, found), "{number}: {found:?}");
                    }
                }
            }
        });
        for version in 0..rounds {
            for number in 0..keys {
                cache.set(&key(number), &value(number, version));
                let found = cache.get(&key(number));
                assert_eq!(found, Some(value(number, version)));
            }
            cache.delete(&key(version % keys));
        }
    });
    assert!(cache.count() <= items);
}

#[test]
fn values_are_their_keys_while_items_are_replaced() {
    each_cache!(values_are_their_keys);
}
