//! `stats hash`: the index of the running server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fixture::{Fixture, Wants, config};

/// Stops the other threads when dropped, also if a test fails.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        // Relaxed: no other memory depends on it.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Items of most of these tests.
const ITEMS: usize = 1000;

/// An index small enough that all of it is looked at.
const SMALL: Wants = Wants {
    memory: 4 << 20,
    item_size_max: 1 << 19,
    evicts: true,
};

type Stats = HashMap<String, String>;

fn number(stats: &Stats, name: &str) -> u64 {
    stats[name].parse().unwrap()
}

fn mean(stats: &Stats, name: &str) -> f64 {
    stats[name].parse().unwrap()
}

/// The sum over all sizes of a column.
fn sum(stats: &Stats, column: &str) -> u64 {
    let lines = stats.iter().filter(|(name, _)| {
        let mut parts = name.split(':');
        parts.next() == Some("size") && parts.nth(1) == Some(column)
    });
    lines.map(|(_, value)| value.parse::<u64>().unwrap()).sum()
}

/// False for the oracle, the one engine without buckets.
fn has_buckets(stats: &Stats) -> bool {
    let has = stats.contains_key("buckets");
    assert!(has || stats["engine"] == "naive", "{stats:?}");
    has
}

fn sets() -> String {
    let set = |number: usize| format!("set key-{number} 0 0 1 noreply\r\nx\r\n");
    (0..ITEMS).map(set).collect()
}

fn gets(prefix: &str) -> String {
    let get = |number: usize| format!("get {prefix}-{number}\r\n");
    (0..ITEMS).map(get).collect()
}

fn values() -> String {
    let value = |number: usize| format!("VALUE key-{number} 0 1\r\nx\r\nEND\r\n");
    (0..ITEMS).map(value).collect()
}

#[test]
fn searches_and_sizes_add_up() {
    let server = Fixture::with(config(), SMALL);
    let mut client = server.client();
    client.ask(sets(), "");
    client.ask("stats reset\r\n", "RESET\r\n");
    client.ask(gets("key"), values());
    client.ask(gets("nobody"), "END\r\n".repeat(ITEMS));
    let stats = client.stats("hash");
    assert_eq!(number(&stats, "items"), ITEMS as u64);
    if !has_buckets(&stats) {
        return;
    }
    assert_eq!(number(&stats, "lookup_hits"), ITEMS as u64);
    assert_eq!(number(&stats, "lookup_misses"), ITEMS as u64);
    assert_eq!(number(&stats, "lookups"), 2 * ITEMS as u64);
    // Each hit looked at its item at least; all buckets are short, and so were all searches.
    let (hit, miss) = (
        mean(&stats, "searched_per_hit"),
        mean(&stats, "searched_per_miss"),
    );
    assert!(
        (1.0..3.0).contains(&hit) && (0.0..3.0).contains(&miss),
        "{hit} {miss}"
    );

    assert_eq!(number(&stats, "is_sample"), 0);
    assert_eq!(number(&stats, "buckets"), number(&stats, "buckets_sampled"));
    assert_eq!(sum(&stats, "items"), ITEMS as u64);
    assert_eq!(sum(&stats, "buckets"), number(&stats, "buckets"));
    assert_eq!(number(&stats, "sizes_left_out"), 0);
    // Each key was looked up once, so the chains' mean must be the counted mean.
    if let Some(expected) = stats.get("chain_searched_per_hit") {
        let expected: f64 = expected.parse().unwrap();
        assert!((hit - expected).abs() < 1e-5, "{hit}, of chains {expected}");
        // A miss searches any chain: on average, as many items as the load of the table.
        let load = ITEMS as f64 / number(&stats, "buckets") as f64;
        assert!(
            (miss - load).abs() < 0.1 + load / 2.0,
            "{miss}, load {load}"
        );
    } else {
        assert!(number(&stats, "bucket_slots") >= 4);
        assert!(hit < 1.1 && miss < 0.1, "{hit} {miss}");
    }
    // A seeded function is not far from a perfect one: a tenth of the buckets at most.
    let (used, perfect) = (mean(&stats, "used_pct"), mean(&stats, "perfect_used_pct"));
    assert!((used - perfect).abs() < 10.0, "{used} {perfect}");
}

#[test]
fn a_large_index_is_sampled_and_says_so() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask(sets(), "");
    client.send("stats hash\r\n");
    let lines = client.lines_until("END");
    assert!(lines.len() < 200, "{} lines", lines.len());
    let stats = client.stats("hash");
    if !has_buckets(&stats) {
        return;
    }
    assert_eq!(number(&stats, "is_sample"), 1);
    let (all, some) = (number(&stats, "buckets"), number(&stats, "buckets_sampled"));
    assert!(some < 2 * 4096 && some < all, "{some} of {all}");
    assert_eq!(sum(&stats, "buckets"), some);
    assert_eq!(sum(&stats, "items"), number(&stats, "sampled_items"));
}

#[test]
fn an_empty_index_has_a_histogram() {
    let server = Fixture::with(config(), SMALL);
    let stats = server.client().stats("hash");
    assert_eq!((number(&stats, "items"), number(&stats, "lookups")), (0, 0));
    assert!(!stats.contains_key("searched_per_hit"));
    if has_buckets(&stats) {
        assert!(number(&stats, "buckets") > 0);
        assert_eq!(number(&stats, "largest"), 0);
        assert_eq!(stats["size:0:buckets"], stats["buckets"]);
    }
}

#[test]
fn others_are_served_meanwhile() {
    let server = Fixture::with(config(), SMALL);
    let mut client = server.client();
    client.ask(sets(), "");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut other = server.client();
                let (sets, gets, values) = (sets(), gets("key"), values());
                while !done.load(Ordering::Relaxed) {
                    other.send(&sets);
                    other.ask(&gets, &values);
                }
            });
        }
        let _done = Done(&done);
        let mut before = 0;
        for _ in 0..30 {
            let stats = client.stats("hash");
            assert_eq!(sum(&stats, "buckets").max(1), {
                let looked_at = stats.get("buckets_sampled");
                looked_at.map_or(1, |looked_at| looked_at.parse().unwrap())
            });
            let lookups = number(&stats, "lookups");
            assert!(lookups >= before, "{lookups} after {before}");
            before = lookups;
        }
    });
    client.ask(gets("key"), values());
}
