//! CLIENT TRACKING: which keys clients have read, and who is told when they change.
//!
//! A client that keeps what it has read must learn of every later change, so none may be lost between a read and a write
//! beside it:
//!
//! ```text
//!  reader's worker   remember(key) ............ read ........ answer, and only then what waits in the mailbox
//!  writer's worker                 ... write ......... changed(key): takes the key out, tells its readers
//! ```
//!
//! Invariants:
//! 1. A key is remembered before it is read.
//! 2. A change is told after it was made, and before it is answered. So if `changed` does not find the key, it was before
//!    `remember` in the order of the table's lock, the write was before the read, and the read has seen it.
//! 3. What is told waits in a mailbox until the answers to all requests before are in the output (see [`crate::mailbox`]):
//!    the client gets it behind the value that is no longer the key's.
//! 4. Where nobody tracks, writers do not look here. A client that begins waits for all requests that are being executed
//!    meanwhile, even if it is not the first: the first may be waiting yet. Their writes are before its reads. (The caller's
//!    part.)
//! 5. A key that is taken out of the table, for whatever reason, is told to its readers: to those that still track, by the
//!    options that they have then. So the table knows readers by their numbers. Who has changed it and is not told (NOLOOP) stays
//!    its reader.
//!
//! Keys are those of clients, without their databases, as in Redis.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_resp::{Version, Writer};

use crate::mailbox::Mailbox;

/// The most pairs of a key and a client that has read it, unless a client sets another limit.
const PAIRS_MAX: usize = 1_000_000;

/// About what a pair takes, with its key and its places in the table's orders, in bytes; and the part of the memory of items
/// that all pairs may take beside it, unless a client sets another limit.
const PAIR_BYTES: usize = 512;
const PART_OF_MEMORY: usize = 16;

/// The keys of a table have no more bytes than so many times the most pairs.
const BYTES_OF_PAIR: usize = 64;

/// The most prefixes of all clients: every write is compared with all of them.
const PREFIXES_MAX: usize = 10_000;

/// The channel of clients of RESP2 that are told what others have read.
const INVALIDATE: &[u8] = b"__redis__:invalidate";

/// The most pairs that a client may set, beside a memory of so many bytes: they take no more than that, or are no more than
/// the most of a default.
pub fn pairs_allowed(memory: u64) -> usize {
    let pairs = usize::try_from(memory).unwrap_or(usize::MAX) / PAIR_BYTES;
    pairs.max(PAIRS_MAX)
}

/// How a client tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// It is told of all keys with its prefixes, whoever reads them (BCAST).
    pub broadcast: bool,
    /// Only reads that the client announces are tracked (OPTIN).
    pub opt_in: bool,
    /// All reads are tracked, but for those that the client announces (OPTOUT).
    pub opt_out: bool,
    /// It is not told what it changes itself (NOLOOP).
    pub no_loop: bool,
    /// The number of the connection that is told instead (REDIRECT).
    pub redirect: Option<u64>,
}

/// A client that tracks.
pub struct Tracker {
    mailbox: Arc<Mailbox>,
    /// How it tracks.
    pub options: Options,
    /// The number by which writers are named.
    number: usize,
}

impl Tracker {
    /// The client with this mailbox, which is named by this number when it writes.
    pub fn new(mailbox: Arc<Mailbox>, options: Options, number: usize) -> Self {
        Self {
            mailbox,
            options,
            number,
        }
    }

    fn serial(&self) -> u64 {
        self.mailbox.owner.serial
    }

    /// True if it is the writer itself, and is not told that.
    fn is_loop(&self, writer: Option<usize>) -> bool {
        self.options.no_loop && writer == Some(self.number)
    }
}

type Key = Arc<[u8]>;

/// What clients track.
pub struct Tracking {
    table: Mutex<Table>,
    /// The mailboxes of all connections that have one, by their numbers.
    mailboxes: Mutex<HashMap<u64, Weak<Mailbox>>>,
    /// Relaxed: a limit.
    pairs_max: AtomicUsize,
}

#[derive(Default)]
struct Table {
    keys: HashMap<Key, Entry>,
    /// Keys by the order in which they were remembered.
    order: BTreeMap<u64, Key>,
    remembered: u64,
    /// Keys by their expiries, in ticks.
    expiries: BTreeSet<(u64, Key)>,
    pairs: usize,
    bytes: usize,
    /// All clients that track, by their numbers.
    trackers: HashMap<u64, Arc<Tracker>>,
    /// Of those that broadcast, with their numbers.
    prefixes: Vec<(Box<[u8]>, u64)>,
}

struct Entry {
    key: Key,
    place: u64,
    readers: BTreeSet<u64>,
    expiry: Option<u64>,
}

/// Numbers about the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Clients that track.
    pub clients: usize,
    /// Keys that were read.
    pub keys: usize,
    /// Pairs of a key and a client.
    pub pairs: usize,
    /// Prefixes of clients that broadcast.
    pub prefixes: usize,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            mailboxes: Mutex::default(),
            pairs_max: AtomicUsize::new(PAIRS_MAX),
        }
    }
}

impl Tracking {
    /// True if any client tracks.
    pub fn is_used(&self) -> bool {
        !self.table.lock().trackers.is_empty()
    }

    /// Numbers about the table.
    pub fn totals(&self) -> Totals {
        let table = self.table.lock();
        Totals {
            clients: table.trackers.len(),
            keys: table.keys.len(),
            pairs: table.pairs,
            prefixes: table.prefixes.len(),
        }
    }

    /// The most pairs of a key and a client that has read it.
    pub fn pairs_max(&self) -> usize {
        self.pairs_max.load(Ordering::Relaxed)
    }

    /// Sets the most pairs to what suits a memory of so many bytes.
    pub fn suit(&self, memory: u64) {
        let pairs = usize::try_from(memory).unwrap_or(usize::MAX) / PART_OF_MEMORY / PAIR_BYTES;
        self.set_pairs_max(pairs.clamp(1, PAIRS_MAX));
    }

    /// Sets the most pairs. Keys beyond it are told as changed when the next one is read.
    pub fn set_pairs_max(&self, pairs: usize) {
        self.pairs_max.store(pairs, Ordering::Relaxed);
    }

    /// A connection has a mailbox now.
    pub fn enter(&self, mailbox: &Arc<Mailbox>) {
        let mut mailboxes = self.mailboxes.lock();
        mailboxes.insert(mailbox.owner.serial, Arc::downgrade(mailbox));
    }

    /// The connection with this number has none any more.
    pub fn leave(&self, serial: u64) {
        self.mailboxes.lock().remove(&serial);
    }

    /// A client begins to track, or to track otherwise, with these prefixes if it broadcasts. What it has read before is
    /// told all the same. False, and nothing changes, if all clients together would have too many prefixes.
    #[must_use]
    pub fn begin(&self, tracker: &Arc<Tracker>, prefixes: Vec<Box<[u8]>>) -> bool {
        let serial = tracker.serial();
        let mut table = self.table.lock();
        let others = table.prefixes.iter().filter(|(_, its)| *its != serial);
        if !prefixes.is_empty() && others.count() + prefixes.len() > PREFIXES_MAX {
            return false;
        }
        table.trackers.insert(serial, Arc::clone(tracker));
        table.drop_prefixes(serial);
        let of_it = prefixes.into_iter().map(|prefix| (prefix, serial));
        table.prefixes.extend(of_it);
        true
    }

    /// A client tracks no longer. Its keys stay in the table until they change.
    pub fn end(&self, tracker: &Tracker) {
        let mut table = self.table.lock();
        table.trackers.remove(&tracker.serial());
        table.drop_prefixes(tracker.serial());
        if table.trackers.is_empty() {
            let Table { remembered, .. } = *table;
            *table = Table {
                remembered,
                ..Table::default()
            };
        }
    }

    /// The prefixes of a client.
    pub fn prefixes_of(&self, tracker: &Tracker) -> Vec<Box<[u8]>> {
        let table = self.table.lock();
        let own = table.prefixes.iter();
        let own = own.filter(|(_, its)| *its == tracker.serial());
        own.map(|(prefix, _)| prefix.clone()).collect()
    }

    /// A client is about to read these keys.
    pub fn remember<'k>(&self, tracker: &Tracker, keys: impl Iterator<Item = &'k [u8]>) {
        let pairs_max = self.pairs_max();
        let mut forgotten = Vec::new();
        let mut table = self.table.lock();
        for key in keys {
            table.remember(tracker.serial(), key);
            while table.pairs > pairs_max || table.bytes > pairs_max.saturating_mul(BYTES_OF_PAIR) {
                let Some((_, key)) = table.order.first_key_value() else {
                    break;
                };
                let key = Arc::clone(key);
                let readers = table.take(&key);
                forgotten.push((key, table.trackers_of(&readers)));
            }
        }
        drop(table);
        for (key, readers) in forgotten {
            self.tell(&readers, Some(&key), None);
        }
    }

    /// These keys that were read expire at these ticks.
    pub fn expire<'k>(&self, expiries: impl Iterator<Item = (&'k [u8], u64)>) {
        let mut table = self.table.lock();
        let Table {
            keys,
            expiries: all,
            ..
        } = &mut *table;
        for (key, at) in expiries {
            let Some(entry) = keys.get_mut(key) else {
                continue;
            };
            let key = Arc::clone(&entry.key);
            // The earliest: to tell it too early does no harm.
            if entry.expiry.is_none_or(|before| at < before) {
                if let Some(before) = entry.expiry.replace(at) {
                    all.remove(&(before, Arc::clone(&key)));
                }
                all.insert((at, key));
            }
        }
    }

    /// A key was changed by the client with this number, or by the server itself.
    pub fn changed(&self, key: &[u8], writer: Option<usize>) {
        let mut table = self.table.lock();
        let readers = table.take(key);
        let mut told = table.trackers_of(&readers);
        // Invariant 5: who is not told keeps it. It may read the key again behind its own change, in a batch whose keys are
        // remembered already.
        for tracker in told.extract_if(.., |tracker| tracker.is_loop(writer)) {
            table.remember(tracker.serial(), key);
        }
        told.extend(table.broadcasters_of(key));
        drop(table);
        self.tell(&told, Some(key), writer);
    }

    /// All keys are gone, or may have changed.
    pub fn flushed(&self) {
        let mut table = self.table.lock();
        table.forget_all();
        let all: Vec<_> = table.trackers.values().cloned().collect();
        drop(table);
        self.tell(&all, None, None);
    }

    /// Tells the keys that have expired.
    pub fn sweep(&self, now: u64) {
        let mut table = self.table.lock();
        let mut due = Vec::new();
        while let Some((_, key)) = table.expiries.first().filter(|(at, _)| *at <= now) {
            due.push(Arc::clone(key));
            let first = table.expiries.pop_first();
            debug_assert!(first.is_some());
        }
        drop(table);
        for key in due {
            self.changed(&key, None);
        }
    }

    /// Tells these clients of a key, or of all keys.
    fn tell(&self, trackers: &[Arc<Tracker>], key: Option<&[u8]>, writer: Option<usize>) {
        for tracker in trackers {
            if !tracker.is_loop(writer) {
                self.tell_one(tracker, key);
            }
        }
    }

    fn tell_one(&self, tracker: &Tracker, key: Option<&[u8]>) {
        let own = &tracker.mailbox;
        let mut out = Vec::new();
        let Some(serial) = tracker.options.redirect else {
            // A client of RESP2 could not tell it from an answer.
            if own.version() == Version::Resp3 {
                invalidate(&mut Writer::new(&mut out, Version::Resp3), key);
                own.put(&out.into());
            }
            return;
        };
        let other = self.mailboxes.lock().get(&serial).and_then(Weak::upgrade);
        match other {
            Some(other) if other.version() == Version::Resp3 => {
                invalidate(&mut Writer::new(&mut out, Version::Resp3), key);
                other.put(&out.into());
            }
            Some(other) if other.is_subscribed() => {
                let mut writer = Writer::new(&mut out, Version::Resp2);
                writer.array(3);
                writer.bulk(b"message");
                writer.bulk(INVALIDATE);
                keys(&mut writer, key);
                other.put(&out.into());
            }
            Some(_) => {}
            None if own.version() == Version::Resp3 => {
                let mut writer = Writer::new(&mut out, Version::Resp3);
                writer.push(2);
                writer.bulk(b"tracking-redir-broken");
                writer.integer(serial as i64);
                own.put(&out.into());
            }
            None => {}
        }
    }
}

fn invalidate(writer: &mut Writer<'_>, key: Option<&[u8]>) {
    writer.push(2);
    writer.bulk(b"invalidate");
    keys(writer, key);
}

fn keys(writer: &mut Writer<'_>, key: Option<&[u8]>) {
    match key {
        Some(key) => {
            writer.array(1);
            writer.bulk(key);
        }
        None => writer.null_array(),
    }
}

impl Table {
    fn remember(&mut self, serial: u64, key: &[u8]) {
        if let Some(entry) = self.keys.get_mut(key) {
            self.pairs += usize::from(entry.readers.insert(serial));
            return;
        }
        let key: Key = key.into();
        let place = self.remembered;
        self.remembered += 1;
        self.pairs += 1;
        self.bytes += key.len();
        self.order.insert(place, Arc::clone(&key));
        let entry = Entry {
            key: Arc::clone(&key),
            place,
            readers: BTreeSet::from([serial]),
            expiry: None,
        };
        self.keys.insert(key, entry);
    }

    /// Takes a key out, and returns who has read it.
    fn take(&mut self, key: &[u8]) -> BTreeSet<u64> {
        let Some((key, entry)) = self.keys.remove_entry(key) else {
            return BTreeSet::new();
        };
        self.order.remove(&entry.place);
        self.pairs -= entry.readers.len();
        self.bytes -= key.len();
        if let Some(at) = entry.expiry {
            self.expiries.remove(&(at, key));
        }
        entry.readers
    }

    fn forget_all(&mut self) {
        self.keys.clear();
        self.order.clear();
        self.expiries.clear();
        (self.pairs, self.bytes) = (0, 0);
    }

    fn drop_prefixes(&mut self, serial: u64) {
        self.prefixes.retain(|(_, its)| *its != serial);
    }

    /// Those of the readers that still track what they read.
    fn trackers_of(&self, readers: &BTreeSet<u64>) -> Vec<Arc<Tracker>> {
        let trackers = readers.iter().filter_map(|it| self.trackers.get(it));
        let trackers = trackers.filter(|it| !it.options.broadcast);
        trackers.cloned().collect()
    }

    /// Those who broadcast a prefix of the key: none has two, because its prefixes do not overlap.
    fn broadcasters_of(&self, key: &[u8]) -> impl Iterator<Item = Arc<Tracker>> {
        let theirs = self.prefixes.iter();
        let theirs = theirs.filter(move |(prefix, _)| key.starts_with(prefix));
        theirs.filter_map(|(_, serial)| self.trackers.get(serial).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Bounds;
    use crate::mailbox::tests::{Calls, mailbox};

    struct World {
        calls: Arc<Calls>,
        bounds: Arc<Bounds>,
        tracking: Tracking,
    }

    impl World {
        fn new() -> Self {
            Self {
                calls: Arc::default(),
                bounds: Arc::default(),
                tracking: Tracking::default(),
            }
        }

        fn client(&self, id: usize, version: Version) -> Arc<Mailbox> {
            let mailbox = Arc::new(mailbox(id, &self.calls, &self.bounds));
            mailbox.set_version(version);
            self.tracking.enter(&mailbox);
            mailbox
        }

        fn track(
            &self,
            mailbox: &Arc<Mailbox>,
            options: Options,
            prefixes: &[&str],
        ) -> Arc<Tracker> {
            let number = mailbox.owner.connection;
            let tracker = Arc::new(Tracker::new(Arc::clone(mailbox), options, number));
            let prefixes = prefixes.iter().map(|prefix| prefix.as_bytes().into());
            assert!(self.tracking.begin(&tracker, prefixes.collect()));
            tracker
        }

        fn read(&self, tracker: &Arc<Tracker>, keys: &[&'static str]) {
            self.tracking
                .remember(tracker, keys.iter().map(|key| key.as_bytes()));
        }
    }

    fn said(mailbox: &Mailbox) -> String {
        let mut out = Vec::new();
        assert!(mailbox.take(&mut out, usize::MAX));
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    }

    const A: &str = ">2 $10 invalidate *1 $1 a ";
    const B: &str = ">2 $10 invalidate *1 $1 b ";

    #[test]
    fn a_key_that_was_read_is_told_once() {
        let world = World::new();
        let one = world.client(1, Version::Resp3);
        let tracker = world.track(&one, Options::default(), &[]);
        world.read(&tracker, &["a", "b", "a"]);
        assert_eq!(
            (world.tracking.totals().keys, world.tracking.totals().pairs),
            (2, 2)
        );
        world.tracking.changed(b"a", Some(9));
        world.tracking.changed(b"a", Some(9));
        world.tracking.changed(b"other", None);
        assert_eq!(said(&one), A);
        world.tracking.flushed();
        assert_eq!(said(&one), ">2 $10 invalidate _ ");
        world.read(&tracker, &["a"]);
        world.tracking.end(&tracker);
        world.tracking.changed(b"a", None);
        assert_eq!((said(&one).as_str(), world.tracking.is_used()), ("", false));
    }

    #[test]
    fn who_begins_again_is_told_what_it_has_read_before() {
        let world = World::new();
        let one = world.client(1, Version::Resp3);
        let before = world.track(&one, Options::default(), &[]);
        world.read(&before, &["a", "b"]);
        let options = Options {
            no_loop: true,
            ..Options::default()
        };
        world.track(&one, options, &[]);
        world.tracking.changed(b"b", Some(1));
        assert_eq!(said(&one), "", "by the options that it has now");
        world.tracking.changed(b"a", Some(2));
        assert_eq!(said(&one), A);
    }

    #[test]
    fn a_table_has_a_limit_and_tells_what_it_forgets() {
        let world = World::new();
        world.tracking.set_pairs_max(2);
        let one = world.client(1, Version::Resp3);
        let tracker = world.track(&one, Options::default(), &[]);
        world.read(&tracker, &["a", "b", "c"]);
        assert_eq!(said(&one), A);
        assert_eq!(world.tracking.totals().pairs, 2);
        let long = [b'k'; 2 * BYTES_OF_PAIR + 1];
        world.tracking.remember(&tracker, [&long[..]].into_iter());
        assert_eq!(
            world.tracking.totals(),
            Totals {
                clients: 1,
                ..Totals::default()
            }
        );
        assert!(said(&one).starts_with(B));
    }

    #[test]
    fn a_table_suits_the_memory() {
        let tracking = Tracking::default();
        for (memory, pairs) in [(0, 1), (64 << 20, 8192), (u64::MAX, PAIRS_MAX)] {
            tracking.suit(memory);
            assert_eq!(tracking.pairs_max(), pairs);
        }
        assert_eq!(pairs_allowed(64 << 20), PAIRS_MAX);
        assert_eq!(pairs_allowed(1 << 40), 1 << 31);
    }

    #[test]
    fn what_expires_is_told_when_it_does() {
        let world = World::new();
        let one = world.client(1, Version::Resp3);
        let tracker = world.track(&one, Options::default(), &[]);
        world.read(&tracker, &["a", "b"]);
        let expiries = [(&b"a"[..], 10), (b"a", 7), (b"b", 20), (b"none", 1)];
        world.tracking.expire(expiries.into_iter());
        world.tracking.sweep(6);
        assert_eq!(said(&one), "");
        world.tracking.sweep(7);
        assert_eq!(said(&one), A);
        world.tracking.changed(b"b", None);
        assert_eq!(said(&one), B);
        world.tracking.sweep(30);
        assert_eq!(said(&one), "");
    }

    #[test]
    fn who_broadcasts_has_prefixes() {
        let world = World::new();
        let one = world.client(1, Version::Resp3);
        let options = Options {
            broadcast: true,
            no_loop: true,
            ..Options::default()
        };
        let tracker = world.track(&one, options, &["a", "b"]);
        world.tracking.changed(b"c", None);
        world.tracking.changed(b"a", Some(1));
        assert_eq!(said(&one), "", "it has changed it itself");
        world.tracking.changed(b"a", Some(2));
        world.tracking.changed(b"b", None);
        assert_eq!(said(&one), [A, B].concat());
        assert_eq!(world.tracking.prefixes_of(&tracker).len(), 2);
        world.tracking.end(&tracker);
        assert_eq!(world.tracking.totals(), Totals::default());
    }

    #[test]
    fn all_prefixes_have_a_limit() {
        let world = World::new();
        let options = Options {
            broadcast: true,
            ..Options::default()
        };
        let one = world.client(1, Version::Resp3);
        let all: Vec<String> = (0..PREFIXES_MAX).map(|it| format!("{it:04}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        world.track(&one, options, &all);
        let other = world.client(2, Version::Resp3);
        let tracker = Arc::new(Tracker::new(other, options, 2));
        assert!(!world.tracking.begin(&tracker, vec![b"a"[..].into()]));
        assert_eq!(world.tracking.totals().clients, 1);
        world.track(&one, options, &all[1..]);
        assert!(world.tracking.begin(&tracker, vec![b"a"[..].into()]));
        assert_eq!(world.tracking.totals().prefixes, PREFIXES_MAX);
    }

    /// Class of fault: the keys of a batch are remembered before its own changes are made.
    #[test]
    fn who_is_not_told_of_its_own_change_is_told_of_the_next() {
        let world = World::new();
        let one = world.client(1, Version::Resp3);
        let options = Options {
            no_loop: true,
            ..Options::default()
        };
        let tracker = world.track(&one, options, &[]);
        world.read(&tracker, &["a"]);
        world.tracking.changed(b"a", Some(1));
        assert_eq!(said(&one), "");
        world.tracking.changed(b"a", Some(2));
        assert_eq!(said(&one), A);
    }

    #[test]
    fn another_connection_may_be_told() {
        let world = World::new();
        let (one, other) = (
            world.client(1, Version::Resp3),
            world.client(2, Version::Resp2),
        );
        let options = Options {
            redirect: Some(2),
            ..Options::default()
        };
        let tracker = world.track(&one, options, &[]);
        world.read(&tracker, &["a"]);
        world.tracking.changed(b"a", None);
        assert_eq!(said(&other), "", "it has not subscribed");
        other.set_subscribed(true);
        world.read(&tracker, &["a"]);
        world.tracking.changed(b"a", None);
        assert_eq!(
            said(&other),
            "*3 $7 message $20 __redis__:invalidate *1 $1 a "
        );
        world.tracking.leave(2);
        drop(other);
        world.read(&tracker, &["a"]);
        world.tracking.changed(b"a", None);
        assert_eq!(said(&one), ">2 $21 tracking-redir-broken :2 ");
    }

    /// Invariants 1 and 2: readers keep what they have read, as near caches do, until they are told. After all writes, what
    /// they keep is what there is.
    #[test]
    fn no_change_is_lost_beside_a_read() {
        use std::sync::atomic::AtomicU64;
        let world = World::new();
        let value = AtomicU64::new(0);
        let one = world.client(1, Version::Resp3);
        let tracker = world.track(&one, Options::default(), &[]);
        const WRITES: u64 = if cfg!(miri) { 50 } else { 20_000 };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=WRITES {
                    value.store(number, Ordering::Release);
                    world.tracking.changed(b"a", Some(2));
                }
            });
            let mut kept = None;
            while kept != Some(WRITES) {
                if kept.is_none() {
                    world.read(&tracker, &["a"]);
                    kept = Some(value.load(Ordering::Acquire));
                }
                // Behind the answer. The writer needs the mailbox, too.
                match said(&one).is_empty() {
                    true => std::thread::yield_now(),
                    false => kept = None,
                }
            }
        });
    }
}
