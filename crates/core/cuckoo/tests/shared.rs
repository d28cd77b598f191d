//! A table read through a second mapping of its memory, while it grows, evicts, moves, flushes and shrinks: the reader
//! finds no value that was never stored, and no older one than it has seen.
#![cfg(all(
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use nuthatch_base::memory::shared::{SharedFile, SharedView};
use nuthatch_base::memory::{Mapped, Part, Source};
use nuthatch_cuckoo::layout::{EightWay, EightWayClock};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig, ForeignTable, NotRead};
use nuthatch_engine::hints::Hints;
use nuthatch_engine::reply::LastReply;
use nuthatch_engine::{Clock, Engine, Expiry, Handle, Key, Op, Reply, Request, Store, Time};

fn config(memory_limit: usize) -> CuckooConfig {
    CuckooConfig {
        memory_limit,
        memory_limit_max: 4 * memory_limit,
        shared: true,
        ..CuckooConfig::default()
    }
}

struct Pair {
    engine: Arc<Cuckoo<EightWay>>,
    foreign: ForeignTable,
    hints: Hints,
    clock: Clock,
}

impl Pair {
    fn new(memory_limit: usize) -> Self {
        let engine: Arc<Cuckoo<EightWay>> = Arc::new(Cuckoo::new(config(memory_limit)).unwrap());
        let clock = Clock::start();
        let sharing = engine.sharing().unwrap();
        sharing.begin(&clock, false);
        let view = SharedView::map(&sharing.file().to_read().unwrap()).unwrap();
        let (hints, file) = Hints::new().unwrap();
        let foreign = ForeignTable::of(&view, Hints::of(&file).unwrap()).unwrap();
        Self {
            engine,
            foreign,
            hints,
            clock,
        }
    }

    fn set(&self, handle: &mut impl Handle, key: &[u8], value: &[u8], expiry: Expiry) -> Reply {
        let store = Store {
            expiry,
            ..Store::set(value)
        };
        self.run(handle, key, Op::Store(store))
    }

    fn run(&self, handle: &mut impl Handle, key: &[u8], op: Op<'_>) -> Reply {
        let key = Key::new(key, self.engine.hasher());
        let mut last = LastReply(Reply::Miss);
        handle.execute(self.clock.now(), &[Request { key, op }], &mut last);
        last.0
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        let key = self.foreign.key(key)?;
        let found = self.foreign.get(&key, &mut value).unwrap();
        found.map(|item| {
            assert_eq!(item.value_len, value.len());
            value
        })
    }
}

#[test]
fn values_of_all_lengths_are_read() {
    let pair = Pair::new(64 << 20);
    let mut handle = pair.engine.handle();
    for len in [
        0, 1, 31, 500, 8000, 8191, 8192, 9000, 70_000, 600_000, 1_000_000,
    ] {
        let value: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let key = format!("key of {len}");
        let reply = pair.set(&mut handle, key.as_bytes(), &value, Expiry::Never);
        assert!(matches!(reply, Reply::Stored(_)), "{len}: {reply:?}");
        assert_eq!(pair.get(key.as_bytes()).unwrap(), value, "{len}");
    }
    let long = vec![b'k'; 20_000];
    pair.set(&mut handle, &long, b"of a long key", Expiry::Never);
    assert_eq!(pair.get(&long).unwrap(), b"of a long key");
    assert_eq!(pair.get(b"absent"), None);
    assert!(pair.foreign.key(b"").is_none() && pair.foreign.key(&[1; 70_000]).is_none());
}

#[test]
fn flushes_lifetimes_and_the_end_are_seen() {
    let pair = Pair::new(8 << 20);
    let mut handle = pair.engine.handle();
    pair.set(&mut handle, b"a", b"1", Expiry::Never);
    let over = Expiry::At(Time(1));
    pair.set(&mut handle, b"dead", b"1", over);
    assert_eq!(pair.get(b"dead"), None);
    let later = Expiry::At(Time(u32::MAX - 2));
    pair.set(&mut handle, b"later", b"1", later);
    assert_eq!(pair.get(b"later").unwrap(), b"1");
    let now = pair.clock.now();
    pair.engine.flush(now, now);
    assert_eq!((pair.get(b"a"), pair.get(b"later")), (None, None));
    pair.set(&mut handle, b"a", b"2", Expiry::Never);
    assert_eq!(pair.get(b"a").unwrap(), b"2");
    // A flush that is due, which no request of the engine has met.
    pair.engine.flush(Time(0), Time(1));
    assert_eq!(pair.get(b"a"), None);
    handle.maintain(pair.clock.now(), 100);
    pair.set(&mut handle, b"a", b"3", Expiry::Never);
    assert_eq!(pair.get(b"a").unwrap(), b"3");
    pair.engine.sharing().unwrap().end();
    let key = pair.foreign.key(b"a").unwrap();
    let mut value = Vec::new();
    assert_eq!(pair.foreign.get(&key, &mut value), Err(NotRead::Ended));
}

#[test]
fn the_limit_cannot_be_raised_and_the_file_is_bounded_by_it() {
    const LIMIT: usize = 64 << 20;
    let pair = Pair::new(LIMIT);
    assert!(pair.engine.set_memory_limit(LIMIT + 1).is_err());
    assert!(pair.engine.set_memory_limit(LIMIT / 2).is_ok());
    let bytes = pair.engine.sharing().unwrap().file().bytes();
    assert!(bytes <= (LIMIT + LIMIT / 2 + (8 << 20)) as u64, "{bytes}");
}

#[test]
fn other_engines_are_not_shared() {
    assert!(Cuckoo::<EightWayClock>::new(config(8 << 20)).is_err());
}

/// A copy of an engine's memory, in which each word can be changed.
struct Garbled {
    view: Arc<SharedView>,
    words: Mapped<AtomicU64>,
}

impl Garbled {
    fn of(file: &SharedFile) -> Self {
        let original = SharedView::map(&file.to_read().unwrap()).unwrap();
        let len = original.bytes() / 8;
        let part = Part {
            start: 0,
            len: len as u64,
        };
        let original = Mapped::<AtomicU64>::view(&original, part).unwrap();
        let copy = Arc::new(SharedFile::new("garbled").unwrap());
        let source = Source::Shared(Arc::clone(&copy));
        let words: Mapped<AtomicU64> = Mapped::reserve_to_grow_in(&source, len).unwrap();
        for (to, from) in words.iter().zip(original.iter()) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        copy.seal().unwrap();
        let view = SharedView::map(&copy.to_read().unwrap()).unwrap();
        Self { view, words }
    }

    /// Reads keys, if the memory is taken for a table, up to the first that takes all of a reader's patience. True if it
    /// is taken for one.
    fn read(&self, keys: Range<u64>) -> bool {
        let (hints, _file) = Hints::new().unwrap();
        let Ok(table) = ForeignTable::of(&self.view, hints) else {
            return false;
        };
        let mut value = Vec::new();
        for key in keys {
            let name = key.to_le_bytes();
            let Some(key) = table.key(&name) else {
                continue;
            };
            table.prefetch(&key);
            match table.get(&key, &mut value) {
                Ok(Some(item)) => assert_eq!(item.value_len, value.len()),
                Ok(None) => assert!(value.is_empty()),
                Err(_) => break,
            }
        }
        true
    }
}

/// A process that lies, or another layout that was missed: no word of the memory ends a reader, or leads out of it.
#[test]
fn garbage_in_the_memory_ends_no_reader() {
    const KEYS: u64 = 200;
    let pair = Pair::new(2 << 20);
    let mut handle = pair.engine.handle();
    for key in 0..KEYS {
        let len = if key % 8 == 0 { 20_000 } else { 100 };
        pair.set(
            &mut handle,
            &key.to_le_bytes(),
            &vec![1; len],
            Expiry::Never,
        );
    }
    let garbled = Garbled::of(pair.engine.sharing().unwrap().file());
    assert!(garbled.read(0..KEYS));
    let garbage = [0, 7, 1 << 20, 1 << 63, (1 << 63) - 1, u64::MAX];
    // The page has fewer than 32 words. Those that change are not looked at when it is mapped.
    let mut taken = 0;
    for word in &garbled.words[..32] {
        let right = word.load(Ordering::Relaxed);
        for wrong in garbage {
            word.store(wrong, Ordering::Relaxed);
            taken += u32::from(garbled.read(0..20));
        }
        word.store(right, Ordering::Relaxed);
    }
    assert!(taken > 0);
    // Everything behind the stripes, which make a reader wait.
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        state >> 20
    };
    let used: Vec<&AtomicU64> = garbled.words[512 + 4096..]
        .iter()
        .filter(|word| word.load(Ordering::Relaxed) != 0)
        .collect();
    for round in 0..25 {
        for _ in 0..50 {
            let word = used[random() as usize % used.len()];
            let flipped = word.load(Ordering::Relaxed) ^ (random() << (random() % 64));
            word.store(flipped, Ordering::Relaxed);
        }
        let first = round * 37 % KEYS;
        assert!(garbled.read(first..KEYS) && garbled.read(0..first));
    }
}

/// Items that are read by another process alone stay, if it is told of their use, and leave if not.
#[test]
fn what_a_reader_uses_stays() {
    const LIMIT: usize = 16 << 20;
    let kept = |is_told: bool| {
        let pair = Pair::new(LIMIT);
        let mut handle = pair.engine.handle();
        let value = [7; 1000];
        let name = |number: u64| number.to_le_bytes();
        (0..500).for_each(|number| {
            pair.set(&mut handle, &name(number), &value, Expiry::Never);
        });
        for number in 500..100_000 {
            pair.set(&mut handle, &name(number), &value, Expiry::Never);
            if number % 100 == 0 {
                (0..500).for_each(|number| drop(pair.get(&name(number))));
                pair.hints.take().for_each(|address| {
                    if is_told {
                        pair.engine.note_use(address);
                    }
                });
            }
        }
        pair.engine.note_use(u64::MAX);
        (0..500)
            .filter(|&number| pair.get(&name(number)).is_some())
            .count()
    };
    let (told, untold) = (kept(true), kept(false));
    // Some meet in one word, of which the later one is told.
    assert!(told > 400 && untold < 200, "{told} and {untold} of 500");
}

/// A value that tells its key and its version in each of its words.
fn value(key: u64, version: u64, len: usize) -> Vec<u8> {
    let mut words: Vec<u8> = version.to_le_bytes().into();
    words.extend((1..len as u64 / 8).flat_map(|at| mix(key, version, at).to_le_bytes()));
    words
}

fn mix(key: u64, version: u64, at: u64) -> u64 {
    (key << 32 ^ version).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at
}

/// The version of a value, which is whole.
fn check(key: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty() && !words.is_empty());
    let version = u64::from_le_bytes(words[0]);
    for (at, word) in words.iter().enumerate().skip(1) {
        assert_eq!(
            u64::from_le_bytes(*word),
            mix(key, version, at as u64),
            "key {key}"
        );
    }
    version
}

/// Lengths of values, short ones often: plain, near the limit of those that the engine copies, and in pieces.
fn len_of(version: u64) -> usize {
    match version % 64 {
        0 => 200_000,
        1 | 2 => 8 * (1020 + version as usize % 8),
        _ => 8 * (1 + version as usize % 60),
    }
}

#[test]
fn readers_see_whole_values_and_never_older_ones() {
    const KEYS: u64 = 20_000;
    const VERSIONS: u64 = 12;
    let pair = Pair::new(16 << 20);
    let done = AtomicBool::new(false);
    let hits = AtomicU64::new(0);
    // The newest version of each key whose store has returned.
    let stored: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        let read = |seed: u64| {
            let (pair, done, hits, stored) = (&pair, &done, &hits, &stored);
            move || {
                let mut seen = vec![0; KEYS as usize];
                let mut into = Vec::new();
                let mut key = seed;
                while !done.load(Ordering::Acquire) {
                    key = (key * 5 + 7) % KEYS;
                    let newest = stored[key as usize].load(Ordering::Acquire);
                    let name = key.to_le_bytes();
                    let wanted = pair.foreign.key(&name).unwrap();
                    if pair.foreign.get(&wanted, &mut into).unwrap().is_some() {
                        let version = check(key, &into);
                        assert!(version >= newest.max(seen[key as usize]), "an older value");
                        seen[key as usize] = version;
                        hits.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        };
        scope.spawn(read(1));
        scope.spawn(read(2));
        let mut handle = pair.engine.handle();
        for version in 1..=VERSIONS {
            for key in 0..KEYS {
                let version = version * KEYS + key;
                let value = value(key, version, len_of(version));
                let name = key.to_le_bytes();
                pair.set(&mut handle, &name, &value, Expiry::Never);
                stored[key as usize].store(version, Ordering::Release);
                if key % 64 == 0 {
                    handle.maintain(pair.clock.now(), 100);
                }
            }
            let now = pair.clock.now();
            match version {
                4 => pair.engine.flush(now, now),
                6 => pair.engine.set_memory_limit(9 << 20).unwrap(),
                9 => pair.engine.set_memory_limit(16 << 20).unwrap(),
                _ => {}
            }
        }
        done.store(true, Ordering::Release);
    });
    assert!(hits.load(Ordering::Relaxed) > 1000);
    let stats = pair.engine.stats();
    assert!(stats.evictions > 0, "memory was short");
}
