//! The clients that track, and the prefixes of those that broadcast.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Tracker;

/// The most prefixes of all clients: what they take, and what a write may have to be compared with.
pub(super) const PREFIXES_MAX: usize = 10_000;

type Prefix = Arc<[u8]>;

/// All clients that track, by the numbers of their connections.
#[derive(Default)]
pub(super) struct Clients {
    all: HashMap<u64, Client>,
    /// Who broadcasts which prefix.
    by_prefix: HashMap<Prefix, BTreeSet<u64>>,
    /// How many different prefixes have which length: a key is looked up once for each length.
    lengths: BTreeMap<usize, usize>,
    /// Prefixes of all clients.
    prefixes: usize,
}

struct Client {
    tracker: Arc<Tracker>,
    prefixes: Vec<Prefix>,
}

impl Clients {
    /// Enters a client, or changes how it tracks. False, and nothing changes, if there would be too many prefixes.
    pub(super) fn enter(&mut self, tracker: &Arc<Tracker>, prefixes: Vec<Box<[u8]>>) -> bool {
        let serial = tracker.serial();
        let own = self.all.get(&serial).map_or(0, |it| it.prefixes.len());
        if !prefixes.is_empty() && self.prefixes - own + prefixes.len() > PREFIXES_MAX {
            return false;
        }
        self.leave(serial);
        let prefixes: Vec<Prefix> = prefixes.into_iter().map(Prefix::from).collect();
        for prefix in &prefixes {
            self.prefixes += 1;
            let broadcasters = self.by_prefix.entry(Arc::clone(prefix));
            let broadcasters = broadcasters.or_insert_with(|| {
                *self.lengths.entry(prefix.len()).or_default() += 1;
                BTreeSet::new()
            });
            broadcasters.insert(serial);
        }
        let tracker = Arc::clone(tracker);
        self.all.insert(serial, Client { tracker, prefixes });
        true
    }

    /// A client tracks no longer.
    pub(super) fn leave(&mut self, serial: u64) {
        let Some(client) = self.all.remove(&serial) else {
            return;
        };
        for prefix in client.prefixes {
            self.prefixes -= 1;
            if let Some(broadcasters) = self.by_prefix.get_mut(&prefix) {
                broadcasters.remove(&serial);
                if broadcasters.is_empty() {
                    self.by_prefix.remove(&prefix);
                    self.note_gone(prefix.len());
                }
            }
        }
    }

    fn note_gone(&mut self, length: usize) {
        if let Some(count) = self.lengths.get_mut(&length) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&length);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Prefixes of all clients.
    pub(super) fn prefixes(&self) -> usize {
        self.prefixes
    }

    /// The prefixes of a client.
    pub(super) fn prefixes_of(&self, serial: u64) -> Vec<Box<[u8]>> {
        let own = self.all.get(&serial).into_iter();
        let own = own.flat_map(|client| &client.prefixes);
        own.map(|prefix| Box::from(&**prefix)).collect()
    }

    /// The client with this number, if it tracks.
    pub(super) fn get(&self, serial: u64) -> Option<&Arc<Tracker>> {
        self.all.get(&serial).map(|client| &client.tracker)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Tracker>> {
        self.all.values().map(|client| &client.tracker)
    }

    /// Those who broadcast a prefix of the key: none has two, because its prefixes do not overlap.
    pub(super) fn broadcasters_of(&self, key: &[u8]) -> impl Iterator<Item = &Arc<Tracker>> {
        let lengths = self.lengths.range(..=key.len()).map(|(length, _)| length);
        let found = lengths.filter_map(|length| self.by_prefix.get(&key[..*length]));
        found.flatten().filter_map(|serial| self.get(*serial))
    }
}
