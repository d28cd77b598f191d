//! Limits out of their bounds, and limits at their bounds.

use std::error::Error as _;
use std::thread;
use std::time::Duration;

use nuthatch_engine::stats::EngineStats;

use nuthatch::{BuildError, Builder, Cache, Error, Lifetime, LoadError};

const MIB: usize = 1 << 20;

/// A cache of this builder stores, returns and removes items.
fn assert_works(builder: Builder) {
    let cache = builder.build().unwrap();
    for number in 0..1000_u32 {
        cache.insert(number.to_le_bytes(), [7; 400]).unwrap();
        assert_eq!(cache.get(number.to_le_bytes()).unwrap(), [7; 400]);
    }
    assert!(cache.stats().memory_used <= cache.stats().memory_limit);
    cache.audit().unwrap();
}

#[test]
fn a_memory_limit_of_nothing_is_refused() {
    for asked in [0, 1, MIB - 1] {
        let error = Cache::new(asked).unwrap_err();
        assert!(
            matches!(error, BuildError::MemoryLimit { asked: told, least: MIB, .. } if told == asked),
            "{error:?}"
        );
        assert!(error.source().is_none() && error.to_string().contains("at least 1048576"));
    }
    assert_works(Cache::builder().memory_limit(MIB));
}

#[test]
fn a_memory_limit_of_everything_is_refused() {
    for builder in [
        Cache::builder().memory_limit(usize::MAX),
        Cache::builder().memory_limit(usize::MAX / 2),
        // A lower limit has smaller pages, and the address space for those is bounded.
        Cache::builder()
            .memory_limit(256 * MIB)
            .memory_limit_max(usize::MAX),
    ] {
        let error = builder.build().unwrap_err();
        assert!(matches!(error, BuildError::AddressSpace(_)), "{error:?}");
        assert!(error.source().is_some() && error.to_string().contains("address space"));
    }
}

#[test]
fn any_initial_capacity_is_cut_to_what_fits() {
    for items in [0, 1, usize::MAX] {
        let builder = Cache::builder().memory_limit(4 * MIB);
        assert_works(builder.initial_capacity(items));
    }
}

#[test]
fn the_item_limit_is_within_its_bounds() {
    for asked in [0, 1023, 2 * MIB + 1, usize::MAX] {
        let builder = Cache::builder().memory_limit(4 * MIB).item_size_max(asked);
        let error = builder.build().unwrap_err();
        match error {
            BuildError::ItemSizeMax {
                asked: told,
                least,
                most,
                ..
            } => assert_eq!((told, least, most), (asked, 1024, 2 * MIB)),
            other => panic!("{other:?}"),
        }
    }
    for least in [1024, 2 * MIB] {
        assert_works(Cache::builder().memory_limit(4 * MIB).item_size_max(least));
    }
    // By default it is what the memory limit allows.
    let small = Cache::new(MIB).unwrap();
    assert_eq!(small.insert("k", vec![1; MIB / 2]), Err(Error::TooLarge));
    assert_eq!(small.insert("k", vec![1; MIB / 4]), Ok(()));
}

#[test]
fn the_memory_limit_is_changed_to_what_can_be() {
    let cache = Cache::builder().memory_limit(8 * MIB).build().unwrap();
    for asked in [0, 1, 9 * MIB, usize::MAX] {
        let error = cache.set_memory_limit(asked).unwrap_err();
        assert_eq!(error.asked(), asked);
        assert!((error.least()..=error.most()).contains(&(6 * MIB)));
        assert!((8 * MIB..9 * MIB).contains(&error.most()));
        assert!(
            error
                .to_string()
                .starts_with(&format!("a memory limit of {asked} bytes: "))
        );
        assert_eq!(cache.stats().memory_limit, 8 * MIB as u64);
    }
    cache.set_memory_limit(6 * MIB).unwrap();
    assert_eq!(cache.stats().memory_limit, 6 * MIB as u64);
}

/// 60 MiB of items, of which the limit allows 4 from now on. Nobody maintains the cache.
fn lowered() -> Cache {
    let builder = Cache::builder().memory_limit(64 * MIB).hash_seed(1);
    let cache = builder.item_size_max(64 << 10).build().unwrap();
    for number in 0..100_000_u32 {
        cache.insert(number.to_le_bytes(), [1; 1000]).unwrap();
    }
    assert!(cache.stats().memory_used > 60 * MIB as u64);
    cache.set_memory_limit(4 * MIB).unwrap();
    cache
}

/// Class of bug: a store waits until a lowered limit is reached, and is refused if that is far.
#[test]
fn stores_go_on_while_a_lower_limit_is_approached() {
    let cache = lowered();
    let pages = |stats: EngineStats| stats.log.unwrap().pages_cleaned;
    let (mut least, mut stores) = (u64::MAX, 0_u32);
    while cache.stats().memory_used > 4 * MIB as u64 {
        let before = pages(cache.engine_stats());
        assert_eq!(
            cache.insert(stores.to_be_bytes(), [2; 1000]),
            Ok(()),
            "{stores}"
        );
        let after = cache.engine_stats();
        assert!(
            after.memory_used <= least.saturating_add(MIB as u64),
            "it falls"
        );
        least = least.min(after.memory_used);
        let cleaned = pages(after) - before;
        assert!(cleaned <= 4, "one store waited for {cleaned} pages");
        stores += 1;
    }
    // A part of what was given back was stored again: half of it at most.
    assert!((5_000..40_000).contains(&stores), "{stores}");
    assert_eq!(cache.get((stores - 1).to_be_bytes()).unwrap(), [2; 1000]);
    cache.audit().unwrap();
}

#[test]
fn stores_of_several_threads_go_on_while_a_lower_limit_is_approached() {
    let cache = lowered();
    thread::scope(|scope| {
        for thread in 0..4_u8 {
            let cache = &cache;
            scope.spawn(move || {
                for number in 0..20_000_u32 {
                    let key = [&[thread][..], &number.to_le_bytes()].concat();
                    let len = [100, 3000, 40_000][number as usize % 3];
                    assert_eq!(cache.insert(key, vec![3; len]), Ok(()), "{number}");
                }
            });
        }
    });
    assert!(cache.stats().memory_used <= 4 * MIB as u64);
    cache.audit().unwrap();
}

/// A cache never serves an item past its lifetime, and panics at no lifetime.
#[test]
fn times_of_nothing_and_of_everything() {
    let build = |builder: Builder| builder.memory_limit(4 * MIB).build().unwrap();
    for time in [Duration::ZERO, Duration::MAX] {
        let to_live = build(Cache::builder().time_to_live(time));
        let to_idle = build(Cache::builder().time_to_idle(time));
        let both = build(Cache::builder().time_to_live(time).time_to_idle(time));
        for cache in [to_live, to_idle, both] {
            cache.insert("k", "1").unwrap();
            assert_eq!(cache.get("k").is_some(), time == Duration::MAX);
            assert_eq!(cache.get("k").is_some(), time == Duration::MAX);
            assert_eq!(
                cache.touch("k", Duration::MAX).unwrap(),
                time == Duration::MAX
            );
            cache.audit().unwrap();
        }
    }
}

/// What an application does with errors: show them, box them, send them.
#[test]
fn errors_are_errors() {
    fn shown(error: impl std::error::Error + Send + Sync + 'static) -> String {
        let error: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
        error.to_string()
    }
    let cache = Cache::new(4 * MIB).unwrap();
    assert_eq!(
        shown(cache.insert("", "").unwrap_err()),
        "a key has 1 to 250 bytes"
    );
    assert!(shown(cache.set_memory_limit(0).unwrap_err()).contains("at least"));
    assert!(shown(Cache::new(0).unwrap_err()).contains("at least"));
    // The cache may be far from full: others that store may hold the memory.
    assert!(shown(Error::OutOfMemory).contains("being read or stored"));
    let parse = || "x".parse::<u32>().map(|_| "");
    let failed = cache.try_get_or_insert_with("k", Lifetime::Default, parse);
    let failed = failed.unwrap_err();
    assert!(matches!(failed, LoadError::Load(_)));
    assert!(shown(failed).contains("invalid digit"));
}

/// All public types implement `Debug`, and those that threads share are `Sync`.
#[test]
fn everything_can_be_shown() {
    use std::panic::{RefUnwindSafe, UnwindSafe};
    fn shared<T: Send + Sync + std::fmt::Debug>(_: &T) {}
    fn unwinds<T: UnwindSafe + RefUnwindSafe>(_: &T) {}
    let builder = Cache::builder()
        .memory_limit(4 * MIB)
        .eviction_listener(|_| ());
    assert!(format!("{builder:?}").contains("listener: true"));
    let cache = builder.build().unwrap();
    cache.insert("k", "1").unwrap();
    assert!(format!("{cache:?}").starts_with("Cache { entry_count: 1"));
    assert!(format!("{:?}", cache.get_item("k")).contains("version"));
    shared(&cache);
    unwinds(&cache);
    shared(&cache.iter());
    shared(&cache.stats());
}
