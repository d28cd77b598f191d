//! Channels: who has subscribed to what, and who gets a message.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_resp::{ChannelKind as Kind, Glob, Version, Writer};

use crate::mailbox::{Frame, Mailbox};

/// The most subscriptions of a connection. Each costs every message of its kind time, or the server memory.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;

/// Bytes of memory that a subscription takes beside its name's.
const SUBSCRIPTION_OVERHEAD: usize = 160;

/// The first word of a message.
fn word(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Channel => b"message",
        Kind::Pattern => b"pmessage",
        Kind::Shard => b"smessage",
    }
}

type Name = Arc<[u8]>;

/// The channels of a server.
#[derive(Default)]
pub struct Channels {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    channels: HashMap<Name, Vec<Arc<Mailbox>>>,
    shards: HashMap<Name, Vec<Arc<Mailbox>>>,
    patterns: HashMap<Name, Matching>,
}

struct Matching {
    glob: Glob,
    subscribers: Vec<Arc<Mailbox>>,
}

/// What became of a message.
#[derive(Default)]
pub struct Published {
    /// How many have got it.
    pub receivers: usize,
    /// Patterns that it was compared with.
    pub compared: usize,
}

impl Channels {
    /// Sends a message to all who have subscribed to its channel.
    pub fn publish(&self, kind: Kind, channel: &[u8], text: &[u8]) -> Published {
        let mut published = Published::default();
        let tables = self.tables.lock();
        let table = match kind {
            Kind::Shard => &tables.shards,
            Kind::Channel | Kind::Pattern => &tables.channels,
        };
        if let Some(subscribers) = table.get(channel) {
            let frames = Frames::new(|writer| {
                writer.push(3);
                for part in [word(kind), channel, text] {
                    writer.bulk(part);
                }
            });
            published.put(subscribers, frames);
        }
        if kind == Kind::Shard {
            return published;
        }
        for (pattern, matching) in &tables.patterns {
            published.compared += 1;
            if !matching.glob.matches(channel) {
                continue;
            }
            let frames = Frames::new(|writer| {
                writer.push(4);
                for part in [word(Kind::Pattern), pattern, channel, text] {
                    writer.bulk(part);
                }
            });
            published.put(&matching.subscribers, frames);
        }
        published
    }

    /// The names of channels that have subscribers, and that a pattern matches.
    pub fn names(&self, kind: Kind, pattern: Option<&Glob>) -> Vec<Name> {
        let tables = self.tables.lock();
        let table = match kind {
            Kind::Shard => &tables.shards,
            Kind::Channel | Kind::Pattern => &tables.channels,
        };
        let matching = |name: &&Name| pattern.is_none_or(|pattern| pattern.matches(name));
        table.keys().filter(matching).cloned().collect()
    }

    /// How many have subscribed to a channel.
    pub fn subscribers(&self, kind: Kind, channel: &[u8]) -> usize {
        let tables = self.tables.lock();
        let table = match kind {
            Kind::Shard => &tables.shards,
            Kind::Channel | Kind::Pattern => &tables.channels,
        };
        table.get(channel).map_or(0, Vec::len)
    }

    /// How many channels, or patterns, have subscribers.
    pub fn count(&self, kind: Kind) -> usize {
        let tables = self.tables.lock();
        match kind {
            Kind::Channel => tables.channels.len(),
            Kind::Pattern => tables.patterns.len(),
            Kind::Shard => tables.shards.len(),
        }
    }

    fn add(&self, kind: Kind, name: &Name, mailbox: &Arc<Mailbox>) {
        let mut tables = self.tables.lock();
        let name = Arc::clone(name);
        let subscribers = match kind {
            Kind::Channel => tables.channels.entry(name).or_default(),
            Kind::Shard => tables.shards.entry(name).or_default(),
            Kind::Pattern => {
                let glob = Glob::new(&name);
                let entry = tables.patterns.entry(name);
                let matching = entry.or_insert_with(|| Matching {
                    glob,
                    subscribers: Vec::new(),
                });
                &mut matching.subscribers
            }
        };
        subscribers.push(Arc::clone(mailbox));
    }

    fn remove(&self, kind: Kind, name: &Name, mailbox: &Arc<Mailbox>) {
        let mut tables = self.tables.lock();
        let table = match kind {
            Kind::Channel => &mut tables.channels,
            Kind::Shard => &mut tables.shards,
            Kind::Pattern => {
                if let Entry::Occupied(mut entry) = tables.patterns.entry(Arc::clone(name)) {
                    leave(&mut entry.get_mut().subscribers, mailbox);
                    if entry.get().subscribers.is_empty() {
                        entry.remove();
                    }
                }
                return;
            }
        };
        if let Entry::Occupied(mut entry) = table.entry(Arc::clone(name)) {
            leave(entry.get_mut(), mailbox);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }
}

fn leave(subscribers: &mut Vec<Arc<Mailbox>>, mailbox: &Arc<Mailbox>) {
    if let Some(at) = subscribers.iter().position(|it| Arc::ptr_eq(it, mailbox)) {
        subscribers.swap_remove(at);
    }
}

/// A message in both versions of the protocol, each made when the first receiver needs it.
pub struct Frames<F> {
    write: F,
    made: [Option<Frame>; 2],
}

impl<F: Fn(&mut Writer<'_>)> Frames<F> {
    /// Of a message that this function writes.
    pub fn new(write: F) -> Self {
        let made = [None, None];
        Self { write, made }
    }

    /// The message for a client of this version.
    pub fn of(&mut self, version: Version) -> &Frame {
        let write = &self.write;
        self.made[usize::from(version == Version::Resp3)].get_or_insert_with(|| {
            let mut out = Vec::new();
            write(&mut Writer::new(&mut out, version));
            out.into()
        })
    }
}

impl Published {
    fn put(&mut self, to: &[Arc<Mailbox>], mut frames: Frames<impl Fn(&mut Writer<'_>)>) {
        for mailbox in to {
            self.receivers += 1;
            mailbox.put(frames.of(mailbox.version()));
        }
    }
}

/// What a connection has subscribed to. Dropping it ends its subscriptions.
pub struct Subscriptions {
    channels: Arc<Channels>,
    mailbox: Arc<Mailbox>,
    /// By kind.
    names: [HashMap<Name, ()>; 3],
    /// Bytes of memory that they take.
    memory: usize,
}

impl Subscriptions {
    /// None yet.
    pub fn new(channels: Arc<Channels>, mailbox: Arc<Mailbox>) -> Self {
        Self {
            channels,
            mailbox,
            names: Default::default(),
            memory: 0,
        }
    }

    /// Subscribes. False if there are too many.
    pub fn add(&mut self, kind: Kind, name: &[u8]) -> bool {
        if self.names[kind as usize].contains_key(name) {
            return true;
        }
        if self.names.iter().map(HashMap::len).sum::<usize>() >= SUBSCRIPTIONS_MAX {
            return false;
        }
        let name: Name = name.into();
        self.channels.add(kind, &name, &self.mailbox);
        self.memory += memory_of(kind, &name);
        self.names[kind as usize].insert(name, ());
        true
    }

    /// Ends a subscription, if there is one.
    pub fn remove(&mut self, kind: Kind, name: &[u8]) {
        if let Some((name, ())) = self.names[kind as usize].remove_entry(name) {
            self.channels.remove(kind, &name, &self.mailbox);
            self.memory -= memory_of(kind, &name);
        }
    }

    /// The names of a kind.
    pub fn names(&self, kind: Kind) -> Vec<Name> {
        self.names[kind as usize].keys().cloned().collect()
    }

    /// How many there are, as the answer to a change of this kind says: shards are counted apart.
    pub fn count(&self, kind: Kind) -> usize {
        let [channels, patterns, shards] = self.names.each_ref().map(HashMap::len);
        match kind {
            Kind::Channel | Kind::Pattern => channels + patterns,
            Kind::Shard => shards,
        }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.names.iter().all(HashMap::is_empty)
    }

    /// Bytes of memory that they take.
    pub fn memory(&self) -> usize {
        self.memory
    }
}

fn memory_of(kind: Kind, name: &[u8]) -> usize {
    let automaton = match kind {
        Kind::Pattern => (1 << u8::BITS) * (name.len() / 8 + size_of::<u64>()),
        Kind::Channel | Kind::Shard => 0,
    };
    name.len() + SUBSCRIPTION_OVERHEAD + automaton
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        for kind in Kind::ALL {
            for name in self.names(kind) {
                self.channels.remove(kind, &name, &self.mailbox);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Bounds;
    use crate::mailbox::tests::{Calls, mailbox};

    fn said(mailbox: &Mailbox) -> String {
        let mut out = Vec::new();
        assert!(mailbox.take(&mut out, usize::MAX));
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    }

    #[test]
    fn who_has_subscribed_is_told() {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        let channels: Arc<Channels> = Arc::default();
        let boxes = [0, 1].map(|id| Arc::new(mailbox(id, &calls, &bounds)));
        let mut all = boxes
            .each_ref()
            .map(|mailbox| Subscriptions::new(Arc::clone(&channels), Arc::clone(mailbox)));
        assert!(all[0].add(Kind::Channel, b"news") && all[0].add(Kind::Channel, b"news"));
        assert!(all[1].add(Kind::Pattern, b"n*") && all[1].add(Kind::Shard, b"news"));
        assert_eq!(
            (all[0].count(Kind::Channel), all[1].count(Kind::Pattern)),
            (1, 1)
        );
        boxes[1].set_version(Version::Resp3);

        assert_eq!(channels.publish(Kind::Channel, b"news", b"hi").receivers, 2);
        assert_eq!(said(&boxes[0]), "*3 $7 message $4 news $2 hi ");
        assert_eq!(said(&boxes[1]), ">4 $8 pmessage $2 n* $4 news $2 hi ");
        assert_eq!(channels.publish(Kind::Shard, b"news", b"").receivers, 1);
        assert_eq!(said(&boxes[1]), ">3 $8 smessage $4 news $0  ");
        assert_eq!(channels.publish(Kind::Channel, b"other", b"").receivers, 0);

        assert_eq!(channels.subscribers(Kind::Channel, b"news"), 1);
        let glob = Glob::new(b"x*");
        assert_eq!(channels.names(Kind::Channel, Some(&glob)).len(), 0);
        assert_eq!(channels.names(Kind::Channel, None).len(), 1);
        all[0].remove(Kind::Channel, b"news");
        assert_eq!((all[0].memory(), all[0].is_empty()), (0, true));
        drop(all);
        assert_eq!(Kind::ALL.map(|kind| channels.count(kind)), [0; 3]);
        assert_eq!(channels.publish(Kind::Channel, b"news", b"hi").receivers, 0);
    }

    #[test]
    fn subscriptions_have_a_limit() {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        let mailbox = Arc::new(mailbox(0, &calls, &bounds));
        let mut subscriptions = Subscriptions::new(Arc::default(), mailbox);
        for number in 0..SUBSCRIPTIONS_MAX {
            assert!(subscriptions.add(Kind::Channel, number.to_string().as_bytes()));
        }
        assert!(subscriptions.add(Kind::Channel, b"0"), "it is there");
        assert!(!subscriptions.add(Kind::Shard, b"one more"));
    }
}
