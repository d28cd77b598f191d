//! Gets of typed keys and values: the library beside moka and quick_cache with the same types, in one thread.
//!
//! `cargo run --release -p nuthatch-bench --example typed` prints the nanoseconds of a get, the median of rounds that all
//! subjects take in turn. `typed SUBJECT ROUNDS` does nothing but 1000 gets a round: of two such runs under valgrind's
//! callgrind the difference of instructions, over the difference of gets, is a get's.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::RandomState;
use nuthatch::{Cache, TypedCache};
use quick_cache::UnitWeighter;
use quick_cache::sync::DefaultLifecycle;

type Moka<K, V> = moka::sync::Cache<K, V, RandomState>;
type QuickCache<K, V> = quick_cache::sync::Cache<K, V, UnitWeighter, RandomState>;

const ITEMS: u64 = 1000;
/// Room for all items, which no cache evicts.
const ROOM: usize = 2 * ITEMS as usize;
/// Rounds of a measurement, and measurements of which the median is shown.
const ROUNDS: usize = 2000;
const TIMES: usize = 9;

/// Gets all items, each once.
type Round = Box<dyn Fn()>;

/// The 16 bytes of a key that is a string.
fn name(number: u64) -> String {
    format!("user:{number:011}")
}

/// The 32 bytes of a value that is a string.
fn text(number: u64) -> String {
    format!("{number:032}")
}

/// A round of `get` for each key.
fn round<K: 'static, R>(keys: impl Fn(u64) -> K, get: impl Fn(&K) -> R + 'static) -> Round {
    let keys: Vec<K> = (0..ITEMS).map(keys).collect();
    Box::new(move || {
        for key in &keys {
            black_box(get(black_box(key)));
        }
    })
}

fn bytes() -> Cache {
    Cache::new(16 << 20).expect("a limit within its bounds")
}

fn typed<K, V>() -> TypedCache<K, V> {
    TypedCache::of(bytes())
}

fn moka<K, V>() -> Moka<K, V>
where
    K: std::hash::Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    moka::sync::Cache::builder()
        .max_capacity(ROOM as u64)
        .build_with_hasher(RandomState::default())
}

fn quick<K: std::hash::Hash + Eq, V: Clone>() -> QuickCache<K, V> {
    QuickCache::with(
        ROOM,
        ROOM as u64,
        UnitWeighter,
        RandomState::default(),
        DefaultLifecycle::default(),
    )
}

/// Numbers under numbers.
fn numbers() -> Vec<(&'static str, Round)> {
    let (raw, ours, moka, quick) = (bytes(), typed::<u64, u64>(), moka(), quick());
    for number in 0..ITEMS {
        raw.insert(number.to_le_bytes(), number.to_le_bytes())
            .expect("room");
        ours.insert(number, number).expect("room");
        moka.insert(number, number);
        quick.insert(number, number);
    }
    let same = |number| number;
    vec![
        (
            "u64: u64, Cache::get_with",
            round(same, move |key| {
                raw.get_with(key.to_le_bytes(), |value| {
                    value.try_into().map(u64::from_le_bytes)
                })
            }),
        ),
        (
            "u64: u64, TypedCache::get",
            round(same, move |key| ours.get(*key)),
        ),
        ("u64: u64, moka", round(same, move |key| moka.get(key))),
        (
            "u64: u64, quick_cache",
            round(same, move |key| quick.get(key)),
        ),
    ]
}

/// Strings under strings.
fn strings() -> Vec<(&'static str, Round)> {
    let (raw, ours) = (bytes(), typed::<String, String>());
    let (moka, quick) = (moka::<String, String>(), quick::<String, String>());
    let (shared_moka, shared_quick) = (self::moka(), self::quick());
    for number in 0..ITEMS {
        let (name, text) = (name(number), text(number));
        raw.insert(&name, &text).expect("room");
        ours.insert(&name, &text).expect("room");
        let shared: Arc<str> = text.as_str().into();
        shared_moka.insert(name.clone(), Arc::clone(&shared));
        shared_quick.insert(name.clone(), shared);
        moka.insert(name.clone(), text.clone());
        quick.insert(name, text);
    }
    let (raw_with, ours_with) = (raw.clone(), ours.clone());
    vec![
        (
            "String: String, Cache::get",
            round(name, move |key| raw.get(key)),
        ),
        (
            "String: String, TypedCache::get",
            round(name, move |key| ours.get(key)),
        ),
        (
            "String: String, moka",
            round(name, move |key| moka.get(key)),
        ),
        (
            "String: String, quick_cache",
            round(name, move |key| quick.get(key)),
        ),
        (
            "String: &str, Cache::get_with",
            round(name, move |key| raw_with.get_with(key, <[u8]>::len)),
        ),
        (
            "String: &str, TypedCache::get_with",
            round(name, move |key| ours_with.get_with(key, str::len)),
        ),
        (
            "String: Arc<str>, moka",
            round(name, move |key| shared_moka.get(key)),
        ),
        (
            "String: Arc<str>, quick_cache",
            round(name, move |key| shared_quick.get(key)),
        ),
    ]
}

/// Nanoseconds of a get.
fn time(round: &Round) -> f64 {
    let began = Instant::now();
    (0..ROUNDS).for_each(|_| round());
    began.elapsed().as_nanos() as f64 / (ROUNDS as f64 * ITEMS as f64)
}

fn main() -> Result<(), String> {
    let subjects: Vec<(&str, Round)> = numbers().into_iter().chain(strings()).collect();
    let mut words = std::env::args().skip(1);
    if let Some(subject) = words.next() {
        let named = subjects.iter().find(|(name, _)| *name == subject);
        let (_, round) = named.ok_or("no such subject")?;
        let rounds: usize = words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or("no rounds")?;
        (0..rounds).for_each(|_| round());
        return Ok(());
    }
    let mut times = vec![Vec::new(); subjects.len()];
    for _ in 0..TIMES {
        for ((_, round), times) in subjects.iter().zip(&mut times) {
            times.push(time(round));
        }
    }
    for ((name, _), mut times) in subjects.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        println!(
            "{name}: {:.1} ns ({:.1} to {:.1})",
            times[TIMES / 2],
            times[0],
            times[TIMES - 1]
        );
    }
    Ok(())
}
