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
//! The table has stripes: each is the table of the keys of some hashes, behind a lock. A thread that has the lock of a stripe
//! may take that of the clients, and none takes them the other way round.
//!
//! Invariants:
//! 1. A key is remembered before it is read.
//! 2. A change is told after it was made, and before it is answered. So if `changed` does not find the key, it was before
//!    `remember` in the order of the stripe's lock, the write was before the read, and the read has seen it.
//! 3. What is told waits in a mailbox until the answers to all requests before are in the output (see [`crate::mailbox`]):
//!    the client gets it behind the value that is no longer the key's.
//! 4. Where nobody tracks, writers do not look here. A client that begins waits for all requests that are being executed
//!    meanwhile, even if it is not the first: the first may be waiting yet. Their writes are before its reads. (The caller's
//!    part.)
//! 5. A key that is taken out of the table, for whatever reason, is told to its readers: to those that still track, by the
//!    options that they have then. So the table knows readers by their numbers. Who has changed it and is not told (NOLOOP) stays
//!    its reader. Only when nobody tracks any more, the keys are dropped and not told: under the lock of its stripe, so that
//!    nobody has begun and read meanwhile.
//!
//! Keys are those of clients, without their databases, as in Redis.

mod clients;
mod stripe;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_resp::Version;

use crate::letter::{self, Letter, Text};
use crate::mailbox::Mailbox;
use clients::Clients;
use stripe::{Key, Size, Stripe};

/// The most pairs of a key and a client that has read it, unless a client sets another limit.
const PAIRS_MAX: usize = 1_000_000;

/// About what a pair takes, with its key and its places in the table's orders, in bytes; and the part of the memory of items
/// that all pairs may take beside it, unless a client sets another limit.
const PAIR_BYTES: usize = 512;
const PART_OF_MEMORY: usize = 16;

/// The keys of a table have no more bytes than so many times the most pairs.
const BYTES_OF_PAIR: usize = 64;

/// Stripes of the table.
const STRIPES: usize = 64;

/// Keys of a stripe that are looked at under one hold of its lock, where there may be many.
const STEP: usize = 256;

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
    /// Something was to be told to the connection that `options.redirect` names, and it was closed. Relaxed: a remark.
    is_broken: AtomicBool,
}

impl Tracker {
    /// The client with this mailbox, which is named by this number when it writes.
    pub fn new(mailbox: Arc<Mailbox>, options: Options, number: usize) -> Self {
        Self {
            mailbox,
            options,
            number,
            is_broken: AtomicBool::new(false),
        }
    }

    /// True if the connection that is told instead was found closed.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    fn serial(&self) -> u64 {
        self.mailbox.serial
    }

    /// True if it is the writer itself, and is not told that.
    fn is_loop(&self, writer: Option<usize>) -> bool {
        self.options.no_loop && writer == Some(self.number)
    }
}

/// What clients track.
pub struct Tracking {
    /// Some client tracks. Relaxed: who begins waits until all see it (invariant 4).
    is_used: AtomicBool,
    /// Prefixes of clients that broadcast. Relaxed: the same.
    prefixes: AtomicUsize,
    /// Locked for as long as it takes to find who is told: nobody is told under this lock.
    clients: Mutex<Clients>,
    stripes: [Mutex<Stripe>; STRIPES],
    hasher: RandomState,
    /// The size of the table, changed behind the lock of a stripe. Relaxed, as all below: limits.
    keys: AtomicUsize,
    pairs: AtomicUsize,
    bytes: AtomicUsize,
    pairs_max: AtomicUsize,
    /// The stripe whose oldest key is forgotten next.
    next_victim: AtomicUsize,
    /// Stripes that were emptied at once, for the thread that sweeps to drop.
    emptied: Mutex<Vec<Stripe>>,
    /// The mailboxes of all connections that have or had one, or will, by their numbers. What is not here is closed.
    mailboxes: Mutex<HashMap<u64, Place>>,
}

/// Where a connection is told what others have redirected to it.
enum Place {
    Mailbox(Weak<Mailbox>),
    /// Its worker is about to open the mailbox, or will when its client turns out to speak Redis' protocol. Meanwhile
    /// something was to be told, or not.
    Expected {
        missed: bool,
    },
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
            is_used: AtomicBool::new(false),
            prefixes: AtomicUsize::new(0),
            clients: Mutex::default(),
            stripes: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            keys: AtomicUsize::new(0),
            pairs: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            pairs_max: AtomicUsize::new(PAIRS_MAX),
            next_victim: AtomicUsize::new(0),
            emptied: Mutex::default(),
            mailboxes: Mutex::default(),
        }
    }
}

impl Tracking {
    /// True if any client tracks.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Numbers about the table.
    pub fn totals(&self) -> Totals {
        let clients = self.clients.lock();
        Totals {
            clients: clients.len(),
            keys: self.keys.load(Ordering::Relaxed),
            pairs: self.pairs.load(Ordering::Relaxed),
            prefixes: clients.prefixes(),
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

    /// Sets the most pairs. Keys beyond it are told as changed, step by step: by who reads, and by [`Self::sweep`].
    pub fn set_pairs_max(&self, pairs: usize) {
        self.pairs_max.store(pairs, Ordering::Relaxed);
    }

    /// Others redirect to the connection with this number. True if the caller is to have its mailbox opened. The caller
    /// looks behind this whether the connection is open: if not, nobody calls [`Self::leave`] for it any more.
    pub fn expect(&self, serial: u64) -> bool {
        let mut mailboxes = self.mailboxes.lock();
        let place = mailboxes.entry(serial);
        let is_new = matches!(place, Entry::Vacant(_));
        place.or_insert(Place::Expected { missed: false });
        is_new
    }

    /// True if the connection with this number is to open its mailbox. Who opens none at that asks again when it can.
    pub fn is_expected(&self, serial: u64) -> bool {
        matches!(
            self.mailboxes.lock().get(&serial),
            Some(Place::Expected { .. })
        )
    }

    /// A connection has a mailbox now.
    pub fn enter(&self, mailbox: &Arc<Mailbox>) {
        let place = Place::Mailbox(Arc::downgrade(mailbox));
        let before = self.mailboxes.lock().insert(mailbox.serial, place);
        if let Some(Place::Expected { missed: true }) = before {
            mailbox.put_change(None, true);
        }
    }

    /// The connection with this number is closed: clients that redirect to it are told so.
    pub fn leave(&self, serial: u64) {
        self.mailboxes.lock().remove(&serial);
    }

    /// A client begins to track, or to track otherwise, with these prefixes if it broadcasts. What it has read before is
    /// told all the same. False, and nothing changes, if all clients together would have too many prefixes.
    #[must_use]
    pub fn begin(&self, tracker: &Arc<Tracker>, prefixes: Vec<Box<[u8]>>) -> bool {
        let mut clients = self.clients.lock();
        let is_one = clients.enter(tracker, prefixes);
        self.note_clients(&clients);
        is_one
    }

    /// A client tracks no longer. Its keys stay in the table until they change.
    pub fn end(&self, tracker: &Tracker) {
        let mut clients = self.clients.lock();
        clients.leave(tracker.serial());
        self.note_clients(&clients);
        drop(clients);
        if !self.is_used() {
            // Under the lock of a stripe nobody can read a key of it: who begins meanwhile has none there yet.
            self.empty(|| self.clients.lock().len() == 0);
        }
    }

    fn note_clients(&self, clients: &Clients) {
        self.is_used.store(clients.len() > 0, Ordering::Relaxed);
        self.prefixes.store(clients.prefixes(), Ordering::Relaxed);
    }

    /// The prefixes of a client.
    pub fn prefixes_of(&self, tracker: &Tracker) -> Vec<Box<[u8]>> {
        self.clients.lock().prefixes_of(tracker.serial())
    }

    fn stripe_of(&self, key: &[u8]) -> MutexGuard<'_, Stripe> {
        let hash = self.hasher.hash_one(key);
        self.stripes[hash as usize % STRIPES].lock()
    }

    fn add(&self, more: Size) {
        self.keys.fetch_add(more.keys, Ordering::Relaxed);
        self.pairs.fetch_add(more.pairs, Ordering::Relaxed);
        self.bytes.fetch_add(more.bytes, Ordering::Relaxed);
    }

    fn subtract(&self, less: Size) {
        self.keys.fetch_sub(less.keys, Ordering::Relaxed);
        self.pairs.fetch_sub(less.pairs, Ordering::Relaxed);
        self.bytes.fetch_sub(less.bytes, Ordering::Relaxed);
    }

    /// A client is about to read these keys.
    pub fn remember<'k>(&self, tracker: &Tracker, keys: impl Iterator<Item = &'k [u8]>) {
        let mut count = 0;
        for key in keys {
            let mut stripe = self.stripe_of(key);
            self.add(stripe.remember(tracker.serial(), key));
            count += 1;
        }
        // More than come in, so that a limit that was lowered is reached.
        self.forget(2 * count);
    }

    /// Tells the oldest keys as changed if there are too many, up to so many.
    fn forget(&self, most: usize) {
        for _ in 0..most {
            let pairs_max = self.pairs_max();
            let bytes_max = pairs_max.saturating_mul(BYTES_OF_PAIR);
            if self.pairs.load(Ordering::Relaxed) <= pairs_max
                && self.bytes.load(Ordering::Relaxed) <= bytes_max
            {
                return;
            }
            if let Some(key) = self.victim() {
                self.changed(&key, None);
            }
        }
    }

    /// The oldest key of the next stripe that has one.
    fn victim(&self) -> Option<Key> {
        (0..STRIPES).find_map(|_| {
            let number = self.next_victim.fetch_add(1, Ordering::Relaxed);
            self.stripes[number % STRIPES].lock().oldest()
        })
    }

    /// This key that was read expires at this tick.
    pub fn expire(&self, key: &[u8], at: u64) {
        self.stripe_of(key).expire(key, at);
    }

    /// A key was changed by the client with this number, or by the server itself. Returns how many are told.
    pub fn changed(&self, key: &[u8], writer: Option<usize>) -> usize {
        let mut stripe = self.stripe_of(key);
        let broadcasts = self.prefixes.load(Ordering::Relaxed) > 0;
        if !broadcasts && !stripe.has(key) {
            return 0;
        }
        let clients = self.clients.lock();
        // Invariant 5: who is not told keeps it. It may read the key again behind its own change, in a batch whose keys are
        // remembered already.
        let is_loop = |serial| clients.get(serial).is_some_and(|it| it.is_loop(writer));
        let (readers, less) = stripe.take(key, is_loop);
        self.subtract(less);
        drop(stripe);
        let readers = readers.iter().filter_map(|serial| clients.get(*serial));
        let readers = readers.filter(|it| !it.options.broadcast);
        let broadcasters = clients.broadcasters_of(key);
        let told = readers.chain(broadcasters.filter(|it| !it.is_loop(writer)));
        let told: Vec<_> = told.cloned().collect();
        drop(clients);
        self.tell(&told, Some(key))
    }

    /// All keys are gone, or may have changed. Returns how many are told.
    pub fn flushed(&self) -> usize {
        self.empty(|| true);
        let all: Vec<_> = self.clients.lock().all().cloned().collect();
        self.tell(&all, None)
    }

    /// Takes all keys out of the table, as long as this is true. Each lock is held for a moment: another thread drops what are
    /// many.
    fn empty(&self, is_still: impl Fn() -> bool) {
        for stripe in &self.stripes {
            let mut stripe = stripe.lock();
            if !is_still() {
                return;
            }
            let keys = std::mem::take(&mut *stripe);
            self.subtract(keys.size());
            drop(stripe);
            if keys.size().keys > STEP {
                self.emptied.lock().push(keys);
            }
        }
    }

    /// Tells the keys that have expired by now, and some of those that are too many.
    pub fn sweep(&self, now: u64) {
        // Dropped when the lock is free again.
        let emptied = std::mem::take(&mut *self.emptied.lock());
        drop(emptied);
        if !self.is_used() {
            return;
        }
        for stripe in &self.stripes {
            loop {
                let due = stripe.lock().due(now, STEP);
                for key in &due {
                    self.changed(key, None);
                }
                if due.len() < STEP {
                    break;
                }
            }
        }
        self.forget(STEP * STRIPES);
    }

    /// Tells these clients of a key, or of all keys. Returns how many they are. All share a text.
    fn tell(&self, trackers: &[Arc<Tracker>], key: Option<&[u8]>) -> usize {
        let mut text = None;
        for tracker in trackers {
            let text = key.map(|key| {
                let made = || Text::new(letter::key(key), tracker.mailbox.bounds());
                &*text.get_or_insert_with(made)
            });
            self.tell_one(tracker, text);
        }
        trackers.len()
    }

    fn tell_one(&self, tracker: &Tracker, key: Option<&Text>) {
        let own = &tracker.mailbox;
        let is_able = own.version() == Version::Resp3;
        let Some(serial) = tracker.options.redirect else {
            // A client of RESP2 could not tell it from an answer.
            if is_able {
                own.put_change(key, false);
            }
            return;
        };
        let other = match self.mailboxes.lock().get_mut(&serial) {
            Some(Place::Mailbox(mailbox)) => mailbox.upgrade(),
            Some(Place::Expected { missed }) => {
                *missed = true;
                return;
            }
            None => None,
        };
        match other {
            Some(other) if other.version() == Version::Resp3 || other.is_subscribed() => {
                other.put_change(key, true);
            }
            Some(_) => {}
            None => {
                tracker.is_broken.store(true, Ordering::Relaxed);
                if is_able {
                    own.put(Letter::Broken(serial));
                }
            }
        }
    }
}
