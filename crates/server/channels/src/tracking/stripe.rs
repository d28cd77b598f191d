//! A stripe of the table of keys: those of some hashes, behind one lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub(super) type Key = Arc<[u8]>;

/// Keys that clients have read.
#[derive(Default)]
pub(super) struct Stripe {
    keys: HashMap<Key, Entry>,
    /// Keys by the order in which they were remembered.
    order: BTreeMap<u64, Key>,
    remembered: u64,
    /// Keys by their expiries, in ticks.
    expiries: BTreeSet<(u64, Key)>,
    size: Size,
}

struct Entry {
    key: Key,
    place: u64,
    /// The numbers of the connections that have read it.
    readers: BTreeSet<u64>,
    expiry: Option<u64>,
}

/// How much a stripe, or the whole table, holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub keys: usize,
    /// Pairs of a key and a reader.
    pub pairs: usize,
    /// Bytes of the keys.
    pub bytes: usize,
}

impl Size {
    fn add(&mut self, more: Self) {
        self.keys += more.keys;
        self.pairs += more.pairs;
        self.bytes += more.bytes;
    }

    fn subtract(&mut self, less: Self) {
        self.keys -= less.keys;
        self.pairs -= less.pairs;
        self.bytes -= less.bytes;
    }
}

impl Stripe {
    /// Notes that this connection reads a key. Returns what the stripe has more.
    pub(super) fn remember(&mut self, serial: u64, key: &[u8]) -> Size {
        let more = match self.keys.get_mut(key) {
            Some(entry) => Size {
                pairs: usize::from(entry.readers.insert(serial)),
                ..Size::default()
            },
            None => self.insert(serial, key.into()),
        };
        self.size.add(more);
        more
    }

    fn insert(&mut self, serial: u64, key: Key) -> Size {
        let place = self.remembered;
        self.remembered += 1;
        self.order.insert(place, Arc::clone(&key));
        let entry = Entry {
            key: Arc::clone(&key),
            place,
            readers: BTreeSet::from([serial]),
            expiry: None,
        };
        let bytes = key.len();
        self.keys.insert(key, entry);
        Size {
            keys: 1,
            pairs: 1,
            bytes,
        }
    }

    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.keys.contains_key(key)
    }

    /// Takes the readers of a key out, but for those who stay, and the key with the last of them. Returns the readers, and
    /// what the stripe has less.
    pub(super) fn take(&mut self, key: &[u8], stays: impl Fn(u64) -> bool) -> (Vec<u64>, Size) {
        let Some(entry) = self.keys.get_mut(key) else {
            return Default::default();
        };
        let taken: Vec<u64> = entry.readers.extract_if(.., |it| !stays(*it)).collect();
        let mut less = Size {
            pairs: taken.len(),
            ..Size::default()
        };
        if entry.readers.is_empty()
            && let Some((key, entry)) = self.keys.remove_entry(key)
        {
            (less.keys, less.bytes) = (1, key.len());
            self.order.remove(&entry.place);
            if let Some(at) = entry.expiry {
                self.expiries.remove(&(at, key));
            }
        }
        self.size.subtract(less);
        (taken, less)
    }

    /// The key that was remembered first.
    pub(super) fn oldest(&self) -> Option<Key> {
        self.order.first_key_value().map(|(_, key)| Arc::clone(key))
    }

    /// A key that was read expires at this tick, if it is still here. The earliest counts: to tell it too early does no harm.
    pub(super) fn expire(&mut self, key: &[u8], at: u64) {
        let Some(entry) = self.keys.get_mut(key) else {
            return;
        };
        if entry.expiry.is_some_and(|before| before <= at) {
            return;
        }
        let key = Arc::clone(&entry.key);
        if let Some(before) = entry.expiry.replace(at) {
            self.expiries.remove(&(before, Arc::clone(&key)));
        }
        self.expiries.insert((at, key));
    }

    /// Up to so many keys that have expired by this tick.
    pub(super) fn due(&self, now: u64, most: usize) -> Vec<Key> {
        let due = self.expiries.iter().take_while(|(at, _)| *at <= now);
        due.take(most).map(|(_, key)| Arc::clone(key)).collect()
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }
}
