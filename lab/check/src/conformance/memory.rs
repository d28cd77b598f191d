//! Cases of the memory limit: what happens at it, and what is counted.

use nuthatch_engine::{Engine, Expiry, Handle, Inspect, Op, Removal, Reply, Store};
use nuthatch_workload::value;

use super::client::Client;
use super::{Case, Setup};
use crate::answer::Answer;

/// An engine that answers that it is out of memory.
const REFUSING: Setup = Setup {
    evicts: false,
    ..Setup::TIGHT
};

/// The same with so little room that it is soon filled again.
const SMALL_REFUSING: Setup = Setup {
    evicts: false,
    ..Setup::SMALL
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::on(Setup::SMALL, "memory_full_evicts_and_stores", evicts),
        Case::on(Setup::TIGHT, "memory_sizes_drift", drift),
        Case::on(Setup::TIGHT, "memory_sizes_mix", mix),
        Case::on(Setup::SMALL, "memory_recent_hits_stay", recent),
        Case::on(Setup::TIGHT, "memory_recent_large_hits_stay", recent_large),
        Case::on(REFUSING, "memory_full_refuses_when_told_to", refuses),
        Case::on(
            SMALL_REFUSING,
            "memory_that_items_left_serves_any_size",
            left_serves_any_size,
        ),
        Case::on(
            SMALL_REFUSING,
            "memory_of_the_dead_makes_room_at_once",
            dead_make_room,
        ),
        Case::on(
            SMALL_REFUSING,
            "memory_of_the_dead_makes_room_for_an_index",
            dead_make_room_for_an_index,
        ),
        Case::on(
            SMALL_REFUSING,
            "memory_of_the_dead_is_found_behind_the_living",
            dead_behind_the_living,
        ),
        Case::on(
            REFUSING,
            "memory_of_the_dead_makes_room_under_a_lower_limit",
            dead_under_a_lower_limit,
        ),
        Case::on(Setup::TIGHT, "memory_limit_changes", limit_changes),
        Case::on(
            Setup::SMALL,
            "memory_limit_has_a_maximum",
            limit_has_a_maximum,
        ),
        Case::new("stats_count_items", stats),
        Case::new("stats_show_the_index", index),
        Case::new("stats_count_searches", searches),
        Case::new("engine_says_how_it_was_made", describes),
    ]
}

/// Stores a self-checking value, which must succeed, and checks the limit and the counters.
fn put(client: &mut Client, number: usize, len: usize) {
    let key = format!("key {number}");
    let len = len.max(value::len_min(key.len()));
    client.set(
        key.as_bytes(),
        &value::make(key.as_bytes(), number as u64, len),
    );
}

/// Reads it: a miss is lawful, a wrong value is not. True if it was found.
fn look(client: &mut Client, number: usize) -> bool {
    let key = format!("key {number}");
    let Some(found) = client.get(key.as_bytes()) else {
        return false;
    };
    assert_eq!(value::check(key.as_bytes(), &found), Ok(number as u64));
    true
}

/// How many requests a batch has where a case moves much: on a fabric between PEs each batch costs turns of the scheduler.
const BATCH: usize = 128;

/// Carries out the same operation on each of these keys, a few at a time.
fn ask_each(client: &mut Client, numbers: &[usize], op: Op<'_>) -> Vec<Answer> {
    let keys = numbers.iter().map(|number| format!("key {number}"));
    let keys: Vec<String> = keys.collect();
    let pieces = keys.chunks(BATCH).flat_map(|keys| {
        let batch = keys.iter().map(|key| (key.as_bytes(), op));
        client.ask_all(&batch.collect::<Vec<_>>())
    });
    pieces.collect()
}

/// Stores self-checking values of `len` bytes in one batch: the numbers of those that were stored; the others found no room.
fn store_all(client: &mut Client, numbers: &[usize], len: usize) -> Vec<usize> {
    store_all_until(client, numbers, len, Expiry::Never)
}

/// As [`store_all`], for items with this expiry.
fn store_all_until(
    client: &mut Client,
    numbers: &[usize],
    len: usize,
    expiry: Expiry,
) -> Vec<usize> {
    let items = numbers.iter().map(|&number| {
        let key = format!("key {number}");
        let value = value::make(key.as_bytes(), number as u64, len);
        (key, value)
    });
    let items: Vec<(String, Vec<u8>)> = items.collect();
    let batch = items.iter().map(|(key, value)| {
        let store = Store {
            expiry,
            ..Store::set(value)
        };
        (key.as_bytes(), Op::Store(store))
    });
    let answers = client.ask_all(&batch.collect::<Vec<_>>());
    let stored = numbers
        .iter()
        .zip(answers)
        .filter_map(|(&number, answer)| match answer {
            Answer::Done(Reply::Stored(_)) => Some(number),
            Answer::Done(Reply::OutOfMemory) => None,
            other => panic!("a set was answered {other:?}"),
        });
    stored.collect()
}

/// As [`look`], in batches: how many were found.
fn look_all(client: &mut Client, numbers: &[usize]) -> usize {
    let answers = ask_each(client, numbers, Op::Get);
    let present = numbers
        .iter()
        .zip(answers)
        .filter(|(number, answer)| match answer {
            Answer::Value(_, found) => {
                let key = format!("key {number}");
                assert_eq!(value::check(key.as_bytes(), found), Ok(**number as u64));
                true
            }
            Answer::Done(Reply::Miss) => false,
            other => panic!("a get of key {number} was answered {other:?}"),
        });
    present.count()
}

fn within_limit(client: &Client) {
    let stats = client.engine.stats();
    assert!(
        stats.memory_used <= stats.memory_limit,
        "{} bytes used of {}",
        stats.memory_used,
        stats.memory_limit
    );
}

fn evicts(client: &mut Client) {
    const LEN: usize = 1000;
    let count = 4 * Setup::SMALL.memory_limit / LEN;
    // Not in batches: an engine that evicts at random may evict an item that was stored a moment ago, but not the
    // newest.
    for number in 0..count {
        put(client, number, LEN);
        assert!(look(client, number), "the newest is there");
        if number % 1000 == 0 {
            client.handle.maintain(client.now, 100);
            within_limit(client);
        }
    }
    within_limit(client);
    let all: Vec<usize> = (0..count).collect();
    let present = look_all(client, &all);
    let stats = client.engine.stats();
    assert_eq!(stats.items, present as u64);
    assert_eq!(stats.evictions + stats.items, count as u64);
    assert_eq!(stats.out_of_memory, 0);
    // The oracle of efficiency is elsewhere; but half of the memory must hold items.
    assert!(
        present * LEN * 2 > Setup::SMALL.memory_limit,
        "{present} items"
    );
}

fn drift(client: &mut Client) {
    // From a few hundred bytes to a hundred thousand and back, each for more than fits.
    let lens = [300, 1000, 3000, 10_000, 30_000, 100_000];
    let mut first = 0;
    for len in lens.into_iter().chain(lens.into_iter().rev()) {
        let count = 2 * Setup::TIGHT.memory_limit / len;
        let all: Vec<usize> = (first..first + count).collect();
        first += count;
        for &number in &all {
            put(client, number, len);
            assert!(look(client, number), "the newest is there");
            if number % 100 == 0 {
                client.handle.maintain(client.now, 100);
            }
        }
        within_limit(client);
        let bytes = look_all(client, &all) * len;
        assert!(
            bytes * 4 > Setup::TIGHT.memory_limit,
            "values of {len} bytes thrash in {bytes} bytes"
        );
    }
    assert_eq!(client.engine.stats().out_of_memory, 0);
}

fn mix(client: &mut Client) {
    let lens = [40, 900_000, 64, 5000, 200, 120_000, 8192, 8193, 1000];
    let mut hits = 0;
    for number in 0..3000 {
        put(client, number % 700, lens[number % lens.len()]);
        assert!(look(client, number % 700), "the newest is there");
        hits += usize::from(look(client, number * 31 % 700));
        if number % 5 == 0 {
            client.delete(format!("key {}", number * 17 % 700).as_bytes());
        }
        within_limit(client);
    }
    // A seventh of them fit, and the reads should find about as many.
    assert!(hits > 100, "{hits} of 3000 were there");
    assert_eq!(client.engine.stats().out_of_memory, 0);
}

fn recent(client: &mut Client) {
    const LEN: usize = 1000;
    const HOT: usize = 100;
    for number in 0..HOT {
        put(client, number, LEN);
    }
    // The hot items are hit often while items of four times the memory are stored.
    let mut misses = 0;
    for number in HOT..4 * Setup::SMALL.memory_limit / LEN {
        put(client, number, LEN);
        if !look(client, number % HOT) {
            misses += 1;
            put(client, number % HOT, LEN);
        }
    }
    // The number of misses is the engine's choice; an engine that forgets items in constant use is broken.
    let reads = 4 * Setup::SMALL.memory_limit / LEN - HOT;
    assert!(misses * 10 < reads, "{misses} misses of {reads}");
}

/// Hits keep large values in memory like small ones: also values that are not copied out, and values in pieces.
fn recent_large(client: &mut Client) {
    // How many times the memory is filled by other items.
    const ROUNDS: usize = 10;
    const SMALL: usize = 4000;
    for (hot, others) in [
        (20_000_usize, 20_000),
        (20_000, 4000),
        (20_000, 1000),
        (700_000, 100_000),
        (700_000, 300_000),
    ] {
        let stores = ROUNDS * Setup::TIGHT.memory_limit / others;
        // Hits come when other values have taken as many bytes as the large one: more frequent hits test no more.
        let gap = hot.div_ceil(others);
        let [small, large] =
            [SMALL, hot].map(|hot| misses_of_hot(client, hot, stores, others, gap));
        // An engine that evicts at random loses any value about once a round, also a small one.
        if small >= ROUNDS / 2 {
            continue;
        }
        assert!(
            large <= small + 1,
            "a value of {hot} bytes was missed {large} times among {stores} stores of {others} bytes, \
             one of {SMALL} bytes {small} times"
        );
    }
}

/// How often a value is missed that is hit three times whenever `gap` others were stored.
fn misses_of_hot(
    client: &mut Client,
    hot: usize,
    stores: usize,
    others: usize,
    gap: usize,
) -> usize {
    let store = |client: &mut Client| {
        put(client, 0, hot);
        assert!(look(client, 0), "the newest is there");
    };
    let mut misses = 0;
    store(client);
    for number in 1..=stores {
        put(client, number, others);
        if number % gap == 0 {
            if !look(client, 0) {
                misses += 1;
                store(client);
            }
            // The bytes need no second check.
            let hits = client.ask_all(&[(b"key 0", Op::Get), (b"key 0", Op::Get)]);
            assert_eq!(hits.len(), 2);
        }
        if number % 100 == 0 {
            client.handle.maintain(client.now, 100);
        }
    }
    misses
}

/// Stores values of `len` bytes under numbers from `first` on, until one of a batch is refused: the numbers of those that
/// were stored. They take half of the memory at least.
fn fill_up(client: &mut Client, first: usize, len: usize, expiry: Expiry) -> Vec<usize> {
    let stored = fill_the_rest(client, first, len, expiry);
    let (count, limit) = (stored.len(), client.engine.stats().memory_limit as usize);
    assert!(count * len * 2 > limit, "{count} items of {len} bytes");
    stored
}

/// As [`fill_up`], also where there is little room.
fn fill_the_rest(client: &mut Client, first: usize, len: usize, expiry: Expiry) -> Vec<usize> {
    let limit = client.engine.stats().memory_limit as usize;
    let (mut tried, mut stored) = (0, Vec::new());
    while stored.len() == tried {
        let numbers: Vec<usize> = (first + tried..first + tried + BATCH).collect();
        stored.extend(store_all_until(client, &numbers, len, expiry));
        tried += BATCH;
        assert!(stored.len() * len < limit, "past the limit");
    }
    stored
}

fn refuses(client: &mut Client) {
    const LEN: usize = 1000;
    assert!(!client.engine.evicts());
    let stored = fill_up(client, 0, LEN, Expiry::Never);
    let count = stored.len();
    assert_eq!(look_all(client, &stored), count);
    let stats = client.engine.stats();
    assert_eq!((stats.evictions, stats.items), (0, count as u64));
    assert!(stats.out_of_memory >= 1);
    within_limit(client);
    // Deleted items make room. The same keys are stored, because where servers divide the keys, other keys would be
    // divided differently: one server would be full before the other.
    let half = &stored[..count / 2];
    for answer in ask_each(client, half, Op::Remove(Removal::default())) {
        assert_eq!(answer, Answer::Done(Reply::Removed));
    }
    for numbers in half.chunks(BATCH) {
        assert_eq!(store_all(client, numbers, LEN), numbers);
    }
}

/// How items leave that nothing evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    Removed,
    Expired,
    Flushed,
}

/// Where nothing is evicted, an engine whose items have all left refuses no items of another size.
fn left_serves_any_size(client: &mut Client) {
    change_sizes(client, maintain_until_empty);
}

/// The same although nobody maintains the engine: dead items that nobody has met make room when it is needed.
fn dead_make_room(client: &mut Client) {
    change_sizes(client, |_| ());
}

fn maintain_until_empty(client: &mut Client) {
    let mut rounds = 0;
    while client.engine.stats().items > 0 {
        client.handle.maintain(client.now, 1000);
        client.wait(1);
        rounds += 1;
        assert!(rounds < 100_000, "dead items are never swept");
    }
}

/// Fills the engine with values of one length, lets all of them leave, and goes on with another length. From long values
/// to short ones the index must grow, too.
fn change_sizes(client: &mut Client, maintain: fn(&mut Client)) {
    let mut first = 0;
    for (len, leaving) in [
        (20_000, Leaving::Removed),
        (600, Leaving::Removed),
        (3000, Leaving::Expired),
        (20_000, Leaving::Flushed),
        (200_000, Leaving::Expired),
        (1000, Leaving::Flushed),
        (200_000, Leaving::Removed),
    ] {
        let expiry = match leaving {
            Leaving::Expired => client.in_seconds(10),
            _ => Expiry::Never,
        };
        let stored = fill_up(client, first, len, expiry);
        assert_eq!(look_all(client, &stored), stored.len());
        within_limit(client);
        first += stored.len() + BATCH;
        match leaving {
            Leaving::Removed => {
                for answer in ask_each(client, &stored, Op::Remove(Removal::default())) {
                    assert_eq!(answer, Answer::Done(Reply::Removed));
                }
            }
            Leaving::Expired => client.wait(11),
            Leaving::Flushed => client.engine.flush(client.now, client.now),
        }
        maintain(client);
    }
    assert_eq!(client.engine.stats().evictions, 0);
}

/// Long values have died, so the index of short ones can grow as far as in an empty engine.
fn dead_make_room_for_an_index(client: &mut Client) {
    const LEN: usize = 100;
    let mut first = 0;
    for len in [200_000, 30_000, 3000] {
        first += fill_up(client, first, len, Expiry::Never).len() + BATCH;
        client.engine.flush(client.now, client.now);
    }
    let stored = fill_up(client, first, LEN, Expiry::Never);
    assert_eq!(look_all(client, &stored), stored.len());
    let stored = stored.len();
    first += stored + BATCH;
    // All that was dead is gone after that.
    for _ in 0..1000 {
        client.handle.maintain(client.now, 1000);
    }
    let more = fill_the_rest(client, first, LEN, Expiry::Never).len();
    assert!(more < stored / 4, "{stored}, and {more} after maintenance");
}

/// Half of the memory has what lives, and was stored first.
fn dead_behind_the_living(client: &mut Client) {
    const LIVING: usize = 1000;
    let half = Setup::SMALL.memory_limit / 2 / LIVING;
    let living: Vec<usize> = (0..half).collect();
    assert_eq!(store_all(client, &living, LIVING).len(), half);
    let expiry = client.in_seconds(10);
    fill_the_rest(client, half, 3000, expiry);
    client.wait(11);
    let large = [usize::MAX];
    assert_eq!(store_all(client, &large, 100_000), large);
    assert_eq!(look_all(client, &living), half);
}

/// A limit that was higher has left places in which there is nothing.
fn dead_under_a_lower_limit(client: &mut Client) {
    let limit = Setup::TIGHT.memory_limit;
    let mut first = fill_up(client, 0, 1000, Expiry::Never).len() + BATCH;
    client.engine.set_memory_limit(limit / 4).unwrap();
    client.engine.flush(client.now, client.now);
    maintain_until_empty(client);
    while client.engine.stats().memory_used > limit as u64 / 4 {
        client.handle.maintain(client.now, 1000);
    }
    first += fill_the_rest(client, first, 1000, Expiry::Never).len() + BATCH;
    for round in 0..20 {
        client.engine.flush(client.now, client.now);
        let len = [100_000, 1000][round % 2];
        let one = [first];
        assert_eq!(store_all(client, &one, len), one, "round {round}");
        let more = fill_the_rest(client, first + 1, len, Expiry::Never);
        assert_eq!(
            look_all(client, &one) + look_all(client, &more),
            1 + more.len()
        );
        first += 1 + more.len() + BATCH;
    }
}

fn limit_changes(client: &mut Client) {
    const LEN: usize = 1000;
    let limit = Setup::TIGHT.memory_limit;
    let refused = client.engine.set_memory_limit(0);
    assert!(refused.is_err_and(|error| error.least() > 0 && error.most() >= limit));
    assert_eq!(client.engine.stats().memory_limit, limit as u64);
    assert!(fill(client, limit, LEN) * LEN * 2 > limit);

    let lower = limit / 2;
    assert_eq!(client.engine.set_memory_limit(lower), Ok(()));
    assert_eq!(client.engine.stats().memory_limit, lower as u64);
    let mut rounds = 0;
    while client.engine.stats().memory_used > lower as u64 {
        client.handle.maintain(client.now, 1000);
        client.wait(1);
        rounds += 1;
        assert!(rounds < 100_000, "it never comes below the lower limit");
    }
    let all: Vec<usize> = (0..limit / LEN).collect();
    assert!(look_all(client, &all) > 0, "all had to go for a half");
    let fitted = fill(client, limit, LEN);
    assert!(fitted * LEN * 2 > lower, "{fitted} items");
    within_limit(client);

    assert_eq!(client.engine.set_memory_limit(limit), Ok(()));
    assert_eq!(client.engine.stats().memory_limit, limit as u64);
    let more = fill(client, limit, LEN);
    assert!(more * LEN > lower && more > fitted, "{more} items");
    within_limit(client);
}

/// No maximum is configured, which means the limit itself.
fn limit_has_a_maximum(client: &mut Client) {
    const MORE: usize = 4096;
    let limit = Setup::SMALL.memory_limit;
    // Also when the index and others have taken memory beside the items.
    for _ in 0..2 {
        let refused = client.engine.set_memory_limit(limit + MORE);
        assert!(refused.is_err_and(|error| (limit..limit + MORE).contains(&error.most())));
        assert_eq!(client.engine.stats().memory_limit, limit as u64);
        assert!(fill(client, limit, 100) > 0);
    }
}

/// Stores values of this length, `bytes` together; returns how many the engine held at the end.
fn fill(client: &mut Client, bytes: usize, len: usize) -> usize {
    let count = bytes / len;
    let all: Vec<usize> = (0..count).collect();
    for numbers in all.chunks(BATCH) {
        assert_eq!(store_all(client, numbers, len), numbers);
    }
    look_all(client, &all)
}

fn stats(client: &mut Client) {
    let empty = client.engine.stats();
    assert_eq!(
        (empty.items, empty.total_items, empty.item_bytes),
        (0, 0, 0)
    );
    assert!(empty.memory_limit > 0 && empty.memory_used <= empty.memory_limit);
    for number in 0..500 {
        client.set(format!("key {number}").as_bytes(), &[b'v'; 100]);
    }
    for number in 0..100 {
        client.set(format!("key {number}").as_bytes(), &[b'w'; 100]);
        client.get(format!("key {number}").as_bytes());
    }
    for number in 400..500 {
        client.delete(format!("key {number}").as_bytes());
    }
    let stats = client.engine.stats();
    assert_eq!((stats.items, stats.total_items), (400, 600));
    assert_eq!(
        (stats.evictions, stats.expired, stats.out_of_memory),
        (0, 0, 0)
    );
    let payload = (0..400).map(|n| format!("key {n}").len() as u64 + 100);
    let payload: u64 = payload.sum();
    assert!(stats.item_bytes >= payload, "{} bytes", stats.item_bytes);
    assert!(stats.memory_used >= stats.item_bytes);
    let used: usize = stats.classes.iter().map(|class| class.used_chunks).sum();
    assert!(used >= 400, "{used} chunks in use");

    client.engine.reset_stats();
    let stats = client.engine.stats();
    assert_eq!((stats.items, stats.total_items), (400, 0));
    assert!(stats.item_bytes >= payload);
    client.set(b"one more", b"value");
    assert_eq!(client.engine.stats().total_items, 1);
}

fn index(client: &mut Client) {
    const ITEMS: usize = 5000;
    for number in 0..ITEMS {
        client.set(format!("key {number}").as_bytes(), b"value");
    }
    let Some(all) = client.engine.index_histogram(u64::MAX) else {
        return;
    };
    assert_eq!((all.items(), all.is_sample()), (ITEMS as u64, false));
    assert_eq!(all.looked_at, all.sizes.iter().sum::<u64>());
    let some = client
        .engine
        .index_histogram(all.buckets / 4)
        .unwrap_or_default();
    assert_eq!((some.buckets, some.is_sample()), (all.buckets, true));
    // The sample's mean is near that of all: a quarter of thousands of items was seen.
    let mean = some.items() as f64 / some.looked_at as f64 * all.buckets as f64;
    assert!((mean / ITEMS as f64 - 1.0).abs() < 0.2, "{mean} of {ITEMS}");
}

fn searches(client: &mut Client) {
    const ITEMS: u64 = 500;
    let keys: Vec<String> = (0..ITEMS).map(|number| format!("key {number}")).collect();
    for key in &keys {
        client.set(key.as_bytes(), b"value");
    }
    client.engine.reset_stats();
    for key in &keys {
        assert!(client.get(key.as_bytes()).is_some());
        assert!(client.get(format!("no {key}").as_bytes()).is_none());
    }
    // In batches as well, and by reads with options.
    let gets: Vec<(&[u8], Op<'_>)> = keys.iter().map(|key| (key.as_bytes(), Op::Get)).collect();
    client.ask_all(&gets);
    client.peek(keys[0].as_bytes());
    // An engine without an index counts no searches.
    if client.engine.index_histogram(1).is_none() {
        return;
    }
    let stats = client.engine.stats();
    assert_eq!(stats.lookup_hits, 2 * ITEMS + 1);
    assert_eq!(stats.lookups, 3 * ITEMS + 1);
    // Every hit looked at its item; the tables are not so full that many others were in the way.
    assert!(stats.searched_hit >= stats.lookup_hits);
    assert!(stats.searched_hit < 4 * stats.lookup_hits);
    assert!(stats.searched_miss < 4 * ITEMS);
    client.engine.reset_stats();
    assert_eq!(client.engine.stats().lookups, 0);
}

fn describes(client: &mut Client) {
    assert_eq!(client.engine.item_size_max(), Setup::AMPLE.item_size_max);
    assert_eq!(
        client.engine.stats().memory_limit,
        Setup::AMPLE.memory_limit as u64
    );
    assert!(client.engine.evicts());
    assert!(!client.engine.name().is_empty());
}
