//! Channels: who has subscribed to what, and who gets a message.
//!
//! A publisher holds a lock only to take the list of those who have subscribed. It compares, writes and puts in without a
//! lock: who subscribes or ends meanwhile makes a new list, and leaves the publisher the old one.

use std::collections::HashMap;
use std::sync::Arc;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_resp::{ChannelKind as Kind, Glob};

use crate::letter::{self, Letter, Subscription, Text};

/// The most patterns that all clients together may subscribe to, and their bytes: every message is compared with all of them.
pub const PATTERNS_MAX: usize = 10_000;
const PATTERNS_BYTES_MAX: usize = 64 * PATTERNS_MAX;

/// The first word of a message.
fn word(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Channel => b"message",
        Kind::Pattern => b"pmessage",
        Kind::Shard => b"smessage",
    }
}

pub(crate) type Name = Arc<[u8]>;

/// The channels of a server.
#[derive(Default)]
pub struct Channels {
    /// By kind.
    tables: [Mutex<Table>; 3],
}

/// The names of a kind that somebody has subscribed to.
#[derive(Default)]
struct Table {
    topics: Arc<Vec<Topic>>,
    places: HashMap<Name, usize>,
    /// Bytes of the names.
    bytes: usize,
}

#[derive(Clone)]
struct Topic {
    name: Name,
    /// If the name is a pattern.
    glob: Option<Arc<Glob>>,
    subscribers: Arc<Vec<Arc<Subscription>>>,
}

/// There are too many patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPatterns;

/// What became of a message.
#[derive(Default)]
pub struct Published {
    /// How many have got it.
    pub receivers: usize,
    /// Patterns that it was compared with.
    pub compared: usize,
    /// Words of bits that this took for each byte of the channel's name.
    pub words: usize,
}

impl Channels {
    fn table(&self, kind: Kind) -> &Mutex<Table> {
        &self.tables[kind as usize]
    }

    /// Sends a message to all who have subscribed to its channel.
    pub fn publish(&self, kind: Kind, channel: &[u8], text: &[u8]) -> Published {
        let mut published = Published::default();
        let subscribers = self.table(kind).lock().subscribers(channel);
        if let Some(subscribers) = subscribers {
            published.put(&subscribers, &[word(kind), channel, text]);
        }
        if kind == Kind::Shard {
            return published;
        }
        let patterns = Arc::clone(&self.table(Kind::Pattern).lock().topics);
        for pattern in &*patterns {
            let Some(glob) = &pattern.glob else {
                continue;
            };
            published.compared += 1;
            published.words += glob.words();
            if glob.matches(channel) {
                let parts = [word(Kind::Pattern), &pattern.name, channel, text];
                published.put(&pattern.subscribers, &parts);
            }
        }
        published
    }

    /// The names that have subscribers. A publisher does not wait for who looks through them.
    pub fn names(&self, kind: Kind) -> Vec<Name> {
        let table = self.table(kind).lock();
        table.places.keys().cloned().collect()
    }

    /// How many have subscribed to a channel.
    pub fn subscribers(&self, kind: Kind, channel: &[u8]) -> usize {
        let subscribers = self.table(kind).lock().subscribers(channel);
        subscribers.map_or(0, |subscribers| subscribers.len())
    }

    /// How many names of this kind have subscribers.
    pub fn count(&self, kind: Kind) -> usize {
        self.table(kind).lock().places.len()
    }

    pub(crate) fn add(
        &self,
        kind: Kind,
        name: &Name,
        subscription: &Arc<Subscription>,
    ) -> Result<(), TooManyPatterns> {
        let is_pattern = kind == Kind::Pattern;
        // Before others have to wait, though it may be there already.
        let glob = is_pattern.then(|| Arc::new(Glob::new(name)));
        let mut table = self.table(kind).lock();
        if is_pattern && !table.places.contains_key(name) {
            let bytes = table.bytes + name.len();
            if table.places.len() >= PATTERNS_MAX || bytes > PATTERNS_BYTES_MAX {
                return Err(TooManyPatterns);
            }
        }
        let topic = table.topic(name, glob);
        subscription.set_place(topic.subscribers.len());
        Arc::make_mut(&mut topic.subscribers).push(Arc::clone(subscription));
        Ok(())
    }

    pub(crate) fn remove(&self, kind: Kind, name: &Name, subscription: &Arc<Subscription>) {
        subscription.end();
        self.table(kind).lock().remove(name, subscription);
    }
}

impl Table {
    fn subscribers(&self, name: &[u8]) -> Option<Arc<Vec<Arc<Subscription>>>> {
        let place = *self.places.get(name)?;
        Some(Arc::clone(&self.topics[place].subscribers))
    }

    /// The topic of this name, made if there is none.
    fn topic(&mut self, name: &Name, glob: Option<Arc<Glob>>) -> &mut Topic {
        let topics = Arc::make_mut(&mut self.topics);
        let place = *self.places.entry(Arc::clone(name)).or_insert_with(|| {
            self.bytes += name.len();
            topics.push(Topic {
                name: Arc::clone(name),
                glob,
                subscribers: Arc::default(),
            });
            topics.len() - 1
        });
        &mut topics[place]
    }

    fn remove(&mut self, name: &Name, subscription: &Arc<Subscription>) {
        let Some(&place) = self.places.get(name) else {
            return;
        };
        let topics = Arc::make_mut(&mut self.topics);
        let subscribers = Arc::make_mut(&mut topics[place].subscribers);
        let at = subscription.place();
        if subscribers
            .get(at)
            .is_some_and(|it| Arc::ptr_eq(it, subscription))
        {
            subscribers.swap_remove(at);
            if let Some(moved) = subscribers.get(at) {
                moved.set_place(at);
            }
        }
        if !subscribers.is_empty() {
            return;
        }
        self.places.remove(name);
        self.bytes -= name.len();
        topics.swap_remove(place);
        if let Some(moved) = topics.get(place) {
            self.places.insert(Arc::clone(&moved.name), place);
        }
    }
}

impl Published {
    /// Sends a message of these parts. All who get it share its text.
    fn put(&mut self, to: &[Arc<Subscription>], parts: &[&[u8]]) {
        let Some(first) = to.first() else {
            return;
        };
        let text = Text::new(letter::message(parts), first.mailbox.bounds());
        for subscription in to {
            self.receivers += 1;
            let letter = Letter::Message(text.clone(), Arc::clone(subscription));
            subscription.mailbox.put(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;
    use crate::mailbox::tests::{Calls, mailbox, said};
    use crate::subscriptions::Subscriptions;
    use nuthatch_resp::Version;

    #[test]
    fn who_has_subscribed_is_told() {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        let channels: Arc<Channels> = Arc::default();
        let boxes = [0, 1].map(|id| mailbox(id, &calls, &bounds));
        let mut all = boxes
            .each_ref()
            .map(|mailbox| Subscriptions::new(Arc::clone(&channels), Arc::clone(mailbox)));
        for (at, kind, name) in [
            (0, Kind::Channel, "news"),
            (0, Kind::Channel, "news"),
            (1, Kind::Pattern, "n*"),
            (1, Kind::Shard, "news"),
        ] {
            assert_eq!(all[at].add(kind, name.as_bytes()), Ok(()));
        }
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
        assert_eq!(channels.names(Kind::Channel).len(), 1);
        all[0].remove(Kind::Channel, b"news");
        assert_eq!((all[0].memory(), all[0].is_empty()), (0, true));
        drop(all);
        assert_eq!(Kind::ALL.map(|kind| channels.count(kind)), [0; 3]);
        assert_eq!(channels.publish(Kind::Channel, b"news", b"hi").receivers, 0);
        assert_eq!(bounds.waiting(), 0);
    }

    /// A client of RESP2 could not tell what comes behind the answer to its UNSUBSCRIBE from an answer.
    #[test]
    fn nothing_is_sent_of_a_subscription_that_is_over() {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        let channels: Arc<Channels> = Arc::default();
        let mailbox = mailbox(0, &calls, &bounds);
        let mut own = Subscriptions::new(Arc::clone(&channels), Arc::clone(&mailbox));
        for name in [&b"a"[..], b"b"] {
            assert_eq!(own.add(Kind::Channel, name), Ok(()));
            assert_eq!(channels.publish(Kind::Channel, name, b"hi").receivers, 1);
        }
        own.remove(Kind::Channel, b"a");
        assert_eq!(own.add(Kind::Channel, b"a"), Ok(()));
        assert_eq!(said(&mailbox), "*3 $7 message $1 b $2 hi ");
    }

    /// In every order: each leaves the place where it is then.
    #[test]
    fn who_ends_is_found_where_it_is() {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        let channels: Channels = Channels::default();
        let name: Name = b"c"[..].into();
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2], [1, 0, 3, 2]] {
            let all = [0, 1, 2, 3].map(|id| Subscription::new(mailbox(id, &calls, &bounds)));
            for subscription in &all {
                assert_eq!(channels.add(Kind::Channel, &name, subscription), Ok(()));
            }
            for (ended, at) in order.into_iter().enumerate() {
                channels.remove(Kind::Channel, &name, &all[at]);
                channels.remove(Kind::Channel, &name, &all[at]);
                let published = channels.publish(Kind::Channel, b"c", b"x");
                assert_eq!(published.receivers, 3 - ended);
                assert_eq!(said(&all[at].mailbox).matches("message").count(), 0);
            }
        }
    }

    #[test]
    fn all_patterns_have_a_limit() {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        let channels: Arc<Channels> = Arc::default();
        let add = |channels: &Channels, name: &str| {
            let subscription = Subscription::new(mailbox(0, &calls, &bounds));
            let name: Name = name.as_bytes().into();
            let added = channels.add(Kind::Pattern, &name, &subscription);
            added.map(|()| (name, subscription))
        };
        let all: Vec<_> = (0..PATTERNS_MAX)
            .map(|number| add(&channels, &format!("{number}*")).unwrap())
            .collect();
        assert_eq!(add(&channels, "more*").err(), Some(TooManyPatterns));
        assert!(add(&channels, "7*").is_ok(), "it is there");
        for (name, subscription) in &all {
            channels.remove(Kind::Pattern, name, subscription);
        }
        assert_eq!(channels.count(Kind::Pattern), 1);
        let long = |number| format!("{number:01024}");
        let are_added = (0..PATTERNS_MAX).take_while(|it| add(&channels, &long(*it)).is_ok());
        assert_eq!(are_added.count(), PATTERNS_BYTES_MAX / 1024 - 1);
    }

    /// Publishers use the lists that they have taken while others change them.
    #[test]
    fn who_stays_gets_every_message_while_others_come_and_go() {
        const MESSAGES: usize = if cfg!(miri) { 20 } else { 2000 };
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        let channels: Arc<Channels> = Arc::default();
        let subscriptions = |mailbox: &Arc<_>| {
            let mut own = Subscriptions::new(Arc::clone(&channels), Arc::clone(mailbox));
            assert_eq!(own.add(Kind::Channel, b"c"), Ok(()));
            assert_eq!(own.add(Kind::Pattern, b"c*"), Ok(()));
            own
        };
        let stays = mailbox(0, &calls, &bounds);
        let own = subscriptions(&stays);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..MESSAGES {
                    let text = number.to_string();
                    let published = channels.publish(Kind::Channel, b"c", text.as_bytes());
                    assert!(published.receivers >= 2);
                }
            });
            for id in 1..MESSAGES / 2 {
                drop(subscriptions(&mailbox(id, &calls, &bounds)));
            }
        });
        let got = said(&stays);
        let texts: Vec<usize> = got
            .split(['*', '>'])
            .filter(|it| it.starts_with("3 "))
            .map(|it| it.split_whitespace().last().unwrap().parse().unwrap())
            .collect();
        assert_eq!(texts, Vec::from_iter(0..MESSAGES));
        drop(own);
    }
}
