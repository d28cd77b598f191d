//! How long items live: to live, to idle, and both.

use std::time::{Duration, Instant};

use nuthatch::{Cache, Lifetime};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// A sixteenth of a second, and as much as the kernel's coarse clock may lag.
const EXACT: Duration = Duration::from_millis(80);

fn cache(to_live: Option<Duration>, to_idle: Option<Duration>) -> Cache {
    let mut builder = Cache::builder().memory_limit(16 << 20);
    if let Some(time) = to_live {
        builder = builder.time_to_live(time);
    }
    if let Some(time) = to_idle {
        builder = builder.time_to_idle(time);
    }
    builder.build().unwrap()
}

/// Asserts that an item expires after this time, counted from an earlier moment.
#[track_caller]
fn assert_expires(cache: &Cache, key: &str, from: Instant, after: Duration) {
    let left = cache.get_item(key).unwrap().expires_in.unwrap();
    let passed = from.elapsed();
    let most = after + EXACT;
    let least = after.saturating_sub(passed + EXACT);
    assert!(
        (least..=most).contains(&left),
        "{key}: {left:?} of {after:?}, {passed:?} ago"
    );
}

#[test]
fn a_lifetime_is_said_in_one_way_everywhere() {
    let hour_cache = cache(Some(HOUR), None);
    let start = Instant::now();
    hour_cache.insert("default", "1").unwrap();
    hour_cache.insert_for("minute", "1", MINUTE).unwrap();
    hour_cache
        .insert_for("unlimited", "1", Lifetime::Unlimited)
        .unwrap();
    hour_cache.add("added", "1", MINUTE).unwrap();
    hour_cache.replace("added", "1", Lifetime::Default).unwrap();
    let version = hour_cache.get_item("minute").unwrap().version;
    hour_cache.insert("swapped", "1").unwrap();
    hour_cache
        .compare_and_swap("minute", version, "2", HOUR / 2)
        .unwrap();
    hour_cache
        .get_or_insert_with("computed", MINUTE, || "1")
        .unwrap();
    hour_cache
        .get_or_insert_with("computed too", Lifetime::Default, || "1")
        .unwrap();
    assert_expires(&hour_cache, "default", start, HOUR);
    assert_expires(&hour_cache, "minute", start, HOUR / 2);
    assert_expires(&hour_cache, "added", start, HOUR);
    assert_expires(&hour_cache, "computed", start, MINUTE);
    assert_expires(&hour_cache, "computed too", start, HOUR);
    assert_eq!(hour_cache.get_item("unlimited").unwrap().expires_in, None);

    let plain = cache(None, None);
    plain.insert("default", "1").unwrap();
    assert_eq!(plain.get_item("default").unwrap().expires_in, None);
}

#[test]
fn time_ends_items_and_touch_prolongs_them() {
    for to_idle in [None, Some(2 * HOUR)] {
        let cache = cache(None, to_idle);
        let start = Instant::now();
        cache.insert_for("none", "1", Duration::ZERO).unwrap();
        assert_eq!(cache.get("none"), None);
        cache.insert_for("k", "1", MINUTE).unwrap();
        assert_eq!(cache.touch("k", HOUR), Ok(true));
        assert_expires(&cache, "k", start, HOUR);
        assert_eq!(cache.touch("k", MINUTE), Ok(true));
        assert_expires(&cache, "k", start, MINUTE);
        assert_eq!(cache.touch("k", Lifetime::Unlimited), Ok(true));
        let left = cache.get_item("k").unwrap().expires_in;
        assert!(left.is_none_or(|left| left > HOUR) && left.is_some() == to_idle.is_some());
        assert_eq!(cache.get("k").unwrap(), b"1");
        assert_eq!(cache.touch("k", Duration::ZERO), Ok(true));
        assert_eq!(cache.get("k"), None);
        assert_eq!(cache.touch("k", Lifetime::Unlimited), Ok(false));
        cache.audit().unwrap();
    }
}

/// An item expires at the end of its time to live or of its time to idle, whichever comes first.
#[test]
fn uses_never_prolong_the_time_to_live() {
    let idle = Duration::from_secs(600);
    let cache = cache(Some(HOUR), Some(idle));
    let start = Instant::now();
    // A time to live past 2^14 ticks, and one below; both before and after the values grew.
    for (key, lifetime, expires) in [
        ("default", Lifetime::Default, idle + idle / 16),
        ("unlimited", Lifetime::Unlimited, idle + idle / 16),
        ("five minutes", Lifetime::from(5 * MINUTE), 5 * MINUTE),
        ("day", Lifetime::from(24 * HOUR), idle + idle / 16),
    ] {
        cache.insert_for(key, "7", lifetime).unwrap();
        assert_expires(&cache, key, start, expires);
        assert_eq!(cache.incr(key, 5), Ok(Some(12)));
        assert_eq!(cache.append(key, "0"), Ok(true));
        assert_eq!(cache.prepend(key, "1"), Ok(true));
        assert_eq!(cache.get(key).unwrap(), b"1120");
        assert_expires(&cache, key, start, expires);
    }
    cache.audit().unwrap();
}

/// Each way of reading or changing an item is a use of it; a check whether it exists is none.
#[test]
fn what_is_used_lives_and_what_is_not_used_ends() {
    let idle = Duration::from_millis(600);
    type Use = fn(&Cache, &str) -> bool;
    let uses: &[(&str, Use)] = &[
        ("get", |cache, key| cache.get(key).is_some()),
        ("get_with", |cache, key| {
            cache.get_with(key, |_| ()).is_some()
        }),
        ("get_into", |cache, key| {
            cache.get_into(key, &mut Vec::new())
        }),
        ("get_item", |cache, key| cache.get_item(key).is_some()),
        ("get_many", |cache, key| {
            cache.get_many(&["nothing", "", key])[2].is_some()
        }),
        ("computed", |cache, key| {
            let value = cache.get_or_insert_with(key, Lifetime::Default, || "computed");
            value.unwrap() != b"computed"
        }),
        ("incr", |cache, key| cache.incr(key, 1).unwrap().is_some()),
        ("decr", |cache, key| cache.decr(key, 1).unwrap().is_some()),
        ("append", |cache, key| cache.append(key, "1").unwrap()),
        ("prepend", |cache, key| cache.prepend(key, "1").unwrap()),
        ("insert", |cache, key| cache.insert(key, "1").is_ok()),
    ];
    let large = vec![7; 20_000];
    // A thread that was not scheduled for long cannot have used the items in time: the test begins again.
    'again: loop {
        let cache = cache(None, Some(idle));
        for (key, _) in uses {
            cache.insert(key, "1").unwrap();
        }
        cache.insert("large", &large).unwrap();
        cache.insert("unused", "1").unwrap();
        let (begun, mut last) = (Instant::now(), Instant::now());
        while cache.contains_key("unused") || begun.elapsed() < 2 * idle {
            if last.elapsed() > idle / 3 {
                continue 'again;
            }
            last = Instant::now();
            for (key, use_it) in uses {
                let used = use_it(&cache, key);
                if last.elapsed() > idle / 3 {
                    continue 'again;
                }
                assert!(used, "{key}");
            }
            let used = cache.get("large");
            assert!(used.is_some_and(|value| value == large) || last.elapsed() > idle / 3);
            assert!(cache.iter().count() >= uses.len() || last.elapsed() > idle / 3);
            std::thread::sleep(idle / 20);
        }
        cache.audit().unwrap();
        break;
    }
}

/// The time to live ends an item that is always used.
#[test]
fn use_is_no_help_at_the_end_of_the_time_to_live() {
    let cache = cache(None, Some(Duration::from_secs(3600)));
    let start = Instant::now();
    let to_live = Duration::from_millis(300);
    cache.insert_for("k", "1", to_live).unwrap();
    while cache.get("k").is_some() {}
    assert!(start.elapsed() >= to_live - EXACT);
}
