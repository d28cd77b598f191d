//! Counts by key prefix: `stats detail on`, `off`, `dump`.
//!
//! The keys of gets, gats, sets, deletes and their variants are counted, as in memcached, in text and in the binary
//! protocol. The dump writes a prefix into a line as it is, so a prefix with spaces or control characters is not
//! counted.
//!
//! Each worker counts for itself, and no two wait for each other: they share only the set of known prefixes, and a
//! worker looks there once for each prefix. A report adds up the counts of all workers.
//!
//! * `delimiter`: finds the end of a key's prefix.
//! * `table`: the counts of one worker, and how it finds those of a key's prefix.

mod delimiter;
mod table;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_engine::KeyHasher;
use nuthatch_engine::request::KEY_LEN_MAX;

use self::table::{Counts, Table, is_long};

/// The control character above the printable ones.
const DELETE: u8 = 0x7f;

/// The most prefixes that are counted. Later ones are not, so that clients that invent prefixes cannot fill the memory,
/// which is not within the engine's limit.
const PREFIXES_MAX: usize = 1 << 12;

/// The events of a key that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A get that found the key.
    Hit,
    /// A get that did not find it.
    Miss,
    /// A store.
    Set,
    /// A delete.
    Delete,
}

/// The switch of counting, and the known prefixes. Off by default, and then it costs one load.
#[derive(Default)]
pub struct Prefixes {
    enabled: AtomicBool,
    /// All prefixes that any worker counts.
    known: Mutex<HashSet<Box<[u8]>>>,
}

/// The counts of one worker.
#[derive(Default)]
pub struct Counted(Mutex<Table>);

/// Counts events for one worker. Reports wait while this lives.
pub struct Recorder<'p> {
    prefixes: &'p Prefixes,
    hasher: &'p KeyHasher,
    table: MutexGuard<'p, Table>,
}

impl Prefixes {
    /// Counts from the start if `enabled`, else from a later [`Self::enable`].
    pub fn new(enabled: bool) -> Self {
        let prefixes = Self::default();
        prefixes.enable(enabled);
        prefixes
    }

    /// True if events are counted.
    #[inline(always)]
    pub fn is_enabled(&self) -> bool {
        // Relaxed: counting may begin a moment late.
        self.enabled.load(Ordering::Relaxed)
    }

    /// Switches counting on or off.
    pub fn enable(&self, enabled: bool) {
        // Relaxed: as is_enabled().
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    /// The recorder of a worker's events, if counting is on.
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
        // Clear these first: a prefix that a worker counts from now on is entered again, and there are never more than
        // the limit.
        *self.known.lock() = HashSet::new();
        for worker in workers {
            *worker.0.lock() = Table::default();
        }
    }

    /// The lines of `stats detail dump`.
    pub fn dump<'p>(&self, workers: impl Iterator<Item = &'p Counted>) -> Vec<u8> {
        let mut sums: HashMap<Box<[u8]>, Counts> = HashMap::new();
        for worker in workers {
            for (prefix, counts) in worker.0.lock().iter() {
                if let Some(sum) = sums.get_mut(prefix) {
                    sum.add(counts);
                } else {
                    sums.insert(prefix.into(), *counts);
                }
            }
        }
        let mut out = Vec::new();
        for (prefix, counts) in &sums {
            out.extend_from_slice(b"PREFIX ");
            out.extend_from_slice(prefix);
            let of = |event| counts.of(event);
            let (hit, set, del) = (of(Event::Hit), of(Event::Set), of(Event::Delete));
            let get = hit + of(Event::Miss);
            // A write to a Vec does not fail.
            let _ = write!(out, " get {get} hit {hit} set {set} del {del}\r\n");
        }
        out.extend_from_slice(b"END\r\n");
        out
    }

    /// True if a prefix is counted. A prefix that no text command can have is not: its bytes could end a line of the
    /// dump, and its length would be memory that a client chooses.
    fn admits(&self, prefix: &[u8]) -> bool {
        if prefix.len() > KEY_LEN_MAX || !prefix.iter().all(|&byte| byte > b' ' && byte != DELETE) {
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
    /// Counts an event of a key.
    #[inline(always)]
    pub fn record(&mut self, key: &[u8], event: Event) {
        if !self.table.count_near(key, event) {
            self.record_elsewhere(key, event);
        }
    }

    #[inline(never)]
    fn record_elsewhere(&mut self, key: &[u8], event: Event) {
        if !self.table.count(key, event) {
            self.record_long_or_new(key, event);
        }
    }

    /// The same for a key whose prefix has more than two words or is new to this worker, and for a key without a
    /// prefix.
    #[inline(never)]
    fn record_long_or_new(&mut self, key: &[u8], event: Event) {
        let Some(end) = delimiter::position(key) else {
            return;
        };
        let prefix = &key[..end];
        let hash = self.hasher.hash(prefix);
        if !(is_long(prefix) && self.table.count_long(prefix, hash, event)) {
            self.begin(prefix, hash, event);
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self, prefix: &[u8], hash: u64, event: Event) {
        if self.prefixes.admits(prefix) {
            // The factors are secret, so no client can choose prefixes that all collide at one place.
            let factors = [&b"first"[..], b"second"].map(|word| self.hasher.hash(word) | 1);
            self.table.begin(prefix, hash, factors, event);
        }
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
            // A key that is shorter than a word, and a longer one.
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
    fn keys_without_a_delimiter_are_not_counted() {
        let prefixes = Prefixes::default();
        prefixes.enable(true);
        let worker = Counted::default();
        for len in 0..40 {
            record(&prefixes, &worker, &vec![b'k'; len], Event::Set);
        }
        assert_eq!(prefixes.dump([&worker].into_iter()), b"END\r\n");
    }

    /// Each prefix has a place of its own, whichever came first, and however the table has grown meanwhile.
    #[test]
    fn counts_are_exact_while_prefixes_take_turns() {
        let prefixes = Prefixes::default();
        prefixes.enable(true);
        let worker = Counted::default();
        let mut expected: HashMap<String, u64> = HashMap::new();
        let mut random = 1_u64;
        for round in 0..40_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // More and more prefixes: of one word, of two, of more, and with bytes beyond ASCII.
            let number = (random >> 33) % (1 + round / 20);
            let name = match number % 4 {
                0 => format!("{number}"),
                1 => format!("session-{number}"),
                2 => format!("a-prefix-that-is-long-{number}"),
                _ => format!("\u{e9}{number}"),
            };
            *expected.entry(name.clone()).or_default() += 1;
            let key = format!("{name}:{round}");
            record(&prefixes, &worker, key.as_bytes(), Event::Hit);
        }
        let dump = String::from_utf8(prefixes.dump([&worker].into_iter())).unwrap();
        assert_eq!(dump.lines().count(), expected.len() + 1);
        for (name, count) in expected {
            let line = format!("PREFIX {name} get {count} hit {count} set 0 del 0\r\n");
            assert!(dump.contains(&line), "{line}");
        }
    }

    /// Class of bug: the result of a guess is taken for a free place.
    #[test]
    fn bytes_beyond_ascii_are_counted_from_the_first_one_on() {
        let prefixes = Prefixes::default();
        prefixes.enable(true);
        let worker = Counted::default();
        for _ in 0..3 {
            for byte in 0x80..=0xff {
                record(
                    &prefixes,
                    &worker,
                    &[byte, b'a', b':', b'1', b'2', b'3', b'4', b'5'],
                    Event::Set,
                );
                record(
                    &prefixes,
                    &worker,
                    &[byte, byte, byte, byte, byte, byte, byte, b':'],
                    Event::Set,
                );
            }
        }
        let dump = prefixes.dump([&worker].into_iter());
        let text = String::from_utf8_lossy(&dump);
        assert_eq!(
            text.matches(" get 0 hit 0 set 3 del 0").count(),
            256,
            "{text}"
        );
    }

    /// A prefix of two words differs from a prefix that is its first word.
    #[test]
    fn prefixes_that_begin_alike_are_told_apart() {
        let prefixes = Prefixes::default();
        prefixes.enable(true);
        let worker = Counted::default();
        let names = [
            "1234567",
            "12345678",
            "123456789",
            "123456789012345",
            "1234567890123456",
            "12345678901234567",
        ];
        for (number, name) in names.iter().enumerate() {
            for _ in 0..=number {
                record(
                    &prefixes,
                    &worker,
                    format!("{name}:").as_bytes(),
                    Event::Delete,
                );
            }
        }
        let dump = String::from_utf8(prefixes.dump([&worker].into_iter())).unwrap();
        for (number, name) in names.iter().enumerate() {
            let line = format!("PREFIX {name} get 0 hit 0 set 0 del {}\r\n", number + 1);
            assert!(dump.contains(&line), "{line}{dump}");
        }
    }
}
