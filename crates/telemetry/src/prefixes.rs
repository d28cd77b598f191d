//! Counts by key prefix: `stats detail on`, `off`, `dump`.
//!
//! Only the keys of text commands (get, gat, set, delete and their variants) are counted, as in
//! memcached. They have neither spaces nor control characters, so a prefix can be written into a line
//! as it is. A key in base64 or one of CPServer's may contain any byte.
//!
//! Each worker counts for itself, and no two wait for each other: all that they share is which prefixes there are, and that
//! is asked once for each. A report adds up what all of them counted.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_engine::KeyHasher;
use nuthatch_sync::mutex::{Mutex, MutexGuard};

/// Ends a prefix; keys without one are not counted.
const DELIMITER: u8 = b':';

/// The control character above the printable ones.
const DELETE: u8 = 0x7f;

/// So many prefixes are told apart; later ones are not counted, so that clients who invent them
/// cannot fill the memory, which is beside the engine's limit.
const PREFIXES_MAX: usize = 1 << 12;

/// Places of a worker's table: never more than half of them are taken.
const PLACES: usize = 2 * PREFIXES_MAX;

/// What is counted of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A get that found the key.
    Hit,
    /// A get that did not.
    Miss,
    /// A store.
    Set,
    /// A delete.
    Delete,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    hit: u64,
    miss: u64,
    set: u64,
    del: u64,
}

/// Whether prefixes are counted, and which there are. Off by default, and then they cost one load.
#[derive(Default)]
pub struct Prefixes {
    enabled: AtomicBool,
    /// All that any worker counts.
    known: Mutex<HashSet<Box<[u8]>>>,
}

/// What one worker counted.
#[derive(Default)]
pub struct Counted(Mutex<Table>);

/// Counts events for one worker. Reports wait while this lives.
pub struct Recorder<'p> {
    prefixes: &'p Prefixes,
    hasher: &'p KeyHasher,
    table: MutexGuard<'p, Table>,
}

impl Prefixes {
    /// True if events are counted.
    #[inline(always)]
    pub fn is_enabled(&self) -> bool {
        // Relaxed: counting may begin a moment late.
        self.enabled.load(Ordering::Relaxed)
    }

    /// Has events counted from now on, or no longer.
    pub fn enable(&self, enabled: bool) {
        // Relaxed: as is_enabled().
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    /// What counts a worker's events, if they are counted.
    #[inline]
    pub fn recorder<'p>(
        &'p self,
        counted: &'p Counted,
        hasher: &'p KeyHasher,
    ) -> Option<Recorder<'p>> {
        self.is_enabled().then(|| Recorder {
            prefixes: self,
            hasher,
            table: counted.0.lock(),
        })
    }

    /// `stats reset`.
    pub fn clear<'p>(&self, workers: impl Iterator<Item = &'p Counted>) {
        // First: what a worker counts then is known again, and never more than the limit.
        *self.known.lock() = HashSet::new();
        for worker in workers {
            *worker.0.lock() = Table::default();
        }
    }

    /// The lines of `stats detail dump`.
    pub fn dump<'p>(&self, workers: impl Iterator<Item = &'p Counted>) -> Vec<u8> {
        let mut sums: HashMap<Box<[u8]>, Counts> = HashMap::new();
        for worker in workers {
            for Entry { prefix, counts, .. } in &worker.0.lock().entries {
                if !sums.contains_key(prefix) {
                    sums.insert(prefix.clone(), Counts::default());
                }
                if let Some(sum) = sums.get_mut(prefix) {
                    sum.hit += counts.hit;
                    sum.miss += counts.miss;
                    sum.set += counts.set;
                    sum.del += counts.del;
                }
            }
        }
        let mut out = Vec::new();
        for (
            prefix,
            Counts {
                hit,
                miss,
                set,
                del,
            },
        ) in &sums
        {
            out.extend_from_slice(b"PREFIX ");
            out.extend_from_slice(prefix);
            let get = hit + miss;
            // A Vec takes all that is written to it.
            let _ = write!(out, " get {get} hit {hit} set {set} del {del}\r\n");
        }
        out.extend_from_slice(b"END\r\n");
        out
    }

    /// True if a prefix is counted. One that no text command can have is not: its bytes could end a line of the dump.
    fn admits(&self, prefix: &[u8]) -> bool {
        if !prefix.iter().all(|&byte| byte > b' ' && byte != DELETE) {
            return false;
        }
        let mut known = self.known.lock();
        if known.contains(prefix) {
            return true;
        }
        let has_room = known.len() < PREFIXES_MAX;
        if has_room {
            known.insert(prefix.into());
        }
        has_room
    }
}

impl Recorder<'_> {
    /// Counts an event of a key. Cold, as it is by default: the code around it is made for counting being off.
    #[cold]
    #[inline(never)]
    pub fn record(&mut self, key: &[u8], event: Event) {
        let Some(end) = delimiter(key) else {
            return;
        };
        let signature = match end <= WORD {
            true => short(key, end),
            false => self.hasher.hash(&key[..end]),
        };
        let prefix = &key[..end];
        let entry = match self.table.find(signature, prefix) {
            Some(entry) => entry,
            None => match self.begin(signature, prefix) {
                Some(entry) => entry,
                None => return,
            },
        };
        let counts = &mut self.table.entries[entry].counts;
        match event {
            Event::Hit => counts.hit += 1,
            Event::Miss => counts.miss += 1,
            Event::Set => counts.set += 1,
            Event::Delete => counts.del += 1,
        }
    }

    /// The number of the entry of a prefix that this worker meets for the first time.
    #[cold]
    fn begin(&mut self, signature: u64, prefix: &[u8]) -> Option<usize> {
        if !self.prefixes.admits(prefix) {
            return None;
        }
        // Nobody outside knows it: nobody can choose prefixes that are all looked for at one place.
        let factor = self.hasher.hash(b"prefixes") | 1;
        self.table.insert(signature, prefix, factor)
    }
}

/// Prefixes of so many bytes are told apart by a number that is these bytes; longer ones by their hash, and their bytes.
const WORD: usize = 8;

/// The first bytes of a key as a number, so many of them, up to eight.
#[inline]
fn short(key: &[u8], len: usize) -> u64 {
    let word = match key.first_chunk::<WORD>() {
        Some(word) => *word,
        None => {
            let mut word = [0; WORD];
            word[..key.len()].copy_from_slice(key);
            word
        }
    };
    let mask = u64::MAX.checked_shr(64 - 8 * len as u32).unwrap_or(0);
    u64::from_le_bytes(word) & mask
}

/// Where a key's prefix ends: eight bytes at a time, as every key of a busy server comes by here.
#[inline]
fn delimiter(key: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    let mut words = key.chunks_exact(WORD);
    for (number, word) in words.by_ref().enumerate() {
        let Ok(word) = <[u8; WORD]>::try_from(word) else {
            break;
        };
        // A byte that is the delimiter becomes 0; of the bits that are left then, the lowest is that of the first.
        let differs = u64::from_le_bytes(word) ^ (ONES * u64::from(DELIMITER));
        let zeros = differs.wrapping_sub(ONES) & !differs & TOPS;
        if zeros != 0 {
            return Some(number * WORD + zeros.trailing_zeros() as usize / 8);
        }
    }
    let rest = words.remainder();
    let end = rest.iter().position(|&byte| byte == DELIMITER)?;
    Some(key.len() - rest.len() + end)
}

/// Counts by prefix, in the order of their coming, and where each is.
#[derive(Default)]
struct Table {
    entries: Vec<Entry>,
    /// With linear probing: 0, or the number of an entry and 1. Empty before the first one.
    places: Vec<u16>,
    /// What spreads signatures over the places.
    factor: u64,
}

struct Entry {
    /// See [`WORD`].
    signature: u64,
    prefix: Box<[u8]>,
    counts: Counts,
}

impl Table {
    #[inline]
    fn find(&self, signature: u64, prefix: &[u8]) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let mut place = self.place(signature);
        loop {
            // Half of the places are 0: this ends.
            let number = usize::from(self.places[place]).checked_sub(1)?;
            let entry = &self.entries[number];
            let alike = entry.signature == signature && entry.prefix.len() == prefix.len();
            if alike && (prefix.len() <= WORD || *entry.prefix == *prefix) {
                return Some(number);
            }
            place = (place + 1) % PLACES;
        }
    }

    #[inline]
    fn place(&self, signature: u64) -> usize {
        (signature.wrapping_mul(self.factor) >> (u64::BITS - PLACES.ilog2())) as usize % PLACES
    }

    /// Adds one that is not there. `None` if there is no place for it.
    fn insert(&mut self, signature: u64, prefix: &[u8], factor: u64) -> Option<usize> {
        if self.entries.len() == PREFIXES_MAX {
            return None;
        }
        // The same for all that this table ever has.
        self.factor = factor;
        self.places.resize(PLACES, 0);
        let mut place = self.place(signature);
        while self.places[place] != 0 {
            place = (place + 1) % PLACES;
        }
        let number = self.entries.len();
        // At most PREFIXES_MAX.
        self.places[place] = number as u16 + 1;
        self.entries.push(Entry {
            signature,
            prefix: prefix.into(),
            counts: Counts::default(),
        });
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASHER: KeyHasher = KeyHasher::seeded(1);

    fn record(prefixes: &Prefixes, counted: &Counted, key: &[u8], event: Event) {
        let mut recorder = prefixes.recorder(counted, &HASHER).unwrap();
        recorder.record(key, event);
    }

    #[test]
    fn keys_count_under_what_stands_before_the_first_colon_whichever_worker_counts() {
        let prefixes = Prefixes::default();
        let workers = [Counted::default(), Counted::default()];
        assert!(prefixes.recorder(&workers[0], &HASHER).is_none());
        prefixes.enable(true);
        for (number, (key, event)) in [
            (&b"user:1"[..], Event::Set),
            (b"user:1", Event::Hit),
            (b"user:2", Event::Miss),
            (b"user:1", Event::Delete),
            (b"user", Event::Set),
            (b"x\r\nEND\r\n:1", Event::Set),
            (b"a b:1", Event::Set),
        ]
        .into_iter()
        .enumerate()
        {
            record(&prefixes, &workers[number % 2], key, event);
        }
        assert_eq!(
            prefixes.dump(workers.iter()),
            b"PREFIX user get 2 hit 1 set 1 del 1\r\nEND\r\n"
        );
        prefixes.clear(workers.iter());
        assert_eq!(prefixes.dump(workers.iter()), b"END\r\n");
    }

    #[test]
    fn their_number_is_bounded_over_all_workers_and_each_counts_those_that_are_known() {
        let prefixes = Prefixes::default();
        prefixes.enable(true);
        let workers = [Counted::default(), Counted::default()];
        for worker in &workers {
            for number in 0..PREFIXES_MAX + 10 {
                record(
                    &prefixes,
                    worker,
                    format!("{number}:").as_bytes(),
                    Event::Set,
                );
            }
        }
        let dump = String::from_utf8(prefixes.dump(workers.iter())).unwrap();
        assert_eq!(dump.lines().count(), PREFIXES_MAX + 1);
        assert_eq!(dump.matches(" set 2 ").count(), PREFIXES_MAX);
    }

    #[test]
    fn prefixes_of_any_length_are_told_apart() {
        let prefixes = Prefixes::default();
        prefixes.enable(true);
        let worker = Counted::default();
        let names: Vec<String> = (0..20).map(|len| "p".repeat(len)).collect();
        for name in names.iter().chain(&names) {
            // Of a key that is shorter than a word, and of a longer one.
            for rest in [":", ":and more of it"] {
                record(
                    &prefixes,
                    &worker,
                    format!("{name}{rest}").as_bytes(),
                    Event::Set,
                );
            }
        }
        let dump = String::from_utf8(prefixes.dump([&worker].into_iter())).unwrap();
        for name in &names {
            let line = format!("PREFIX {name} get 0 hit 0 set 4 del 0\r\n");
            assert!(dump.contains(&line), "{name}: {dump}");
        }
        assert_eq!(dump.lines().count(), names.len() + 1);
    }

    #[test]
    fn a_delimiter_is_found_wherever_it_is() {
        for len in 0..30 {
            assert_eq!(delimiter(&vec![b'k'; len]), None);
            for at in 0..len {
                let mut key = vec![b';'; len];
                key[at] = DELIMITER;
                // Another one behind it means nothing.
                key[len - 1] = DELIMITER;
                assert_eq!(delimiter(&key), Some(at), "{at} of {len}");
            }
        }
    }
}
