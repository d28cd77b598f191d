//! Events about keys (Redis' `notify-keyspace-events`): who has subscribed to their channels is told what has happened.
//!
//! What clients do is told by the thread that does it, behind the change. What the engine does (it evicts, it removes what
//! has expired) happens under its locks, where nobody may be told: it waits here, and the next thread that is behind a
//! batch or a step of maintenance tells it. What has no room is left out, and counted.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_channels::channels::{Channels, Published};
use nuthatch_engine::namespace::Namespace;
use nuthatch_resp::{ChannelKind, PATTERN_LEN_MAX};
use nuthatch_settings::key_events::{Class, KeyEvents};

use crate::databases::Databases;

/// The most bytes of what waits, each event with this much beside its key.
const WAITING_MAX: usize = 1 << 20;
const WAITING_OVERHEAD: usize = 64;

/// So many bytes that are compared with a word of a pattern count as one more client that is told.
const BYTES_OF_CLIENT: usize = 256;

/// What has happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A value was stored.
    Set,
    /// It was removed by a client.
    Del,
    /// It got a lifetime.
    Expire,
    /// It has no lifetime any more.
    Persist,
    /// Its lifetime has ended, and it was removed.
    Expired,
    /// It was evicted.
    Evicted,
    /// A whole number was added to its value.
    IncrBy,
    /// A number was added to its value.
    IncrByFloat,
    /// Its value became longer.
    Append,
    /// A part of its value was written.
    SetRange,
    /// It went to another name.
    RenameFrom,
    /// It came from another name.
    RenameTo,
    /// It was made as a copy.
    CopyTo,
    /// It was restored from a dump.
    Restore,
    /// It went to another database.
    MoveFrom,
    /// It came from another database.
    MoveTo,
}

impl Event {
    /// Its name, and the class that must be asked for.
    fn told(self) -> (&'static str, Class) {
        match self {
            Self::Set => ("set", Class::Text),
            Self::Del => ("del", Class::Generic),
            Self::Expire => ("expire", Class::Generic),
            Self::Persist => ("persist", Class::Generic),
            Self::Expired => ("expired", Class::Expired),
            Self::Evicted => ("evicted", Class::Evicted),
            Self::IncrBy => ("incrby", Class::Text),
            Self::IncrByFloat => ("incrbyfloat", Class::Text),
            Self::Append => ("append", Class::Text),
            Self::SetRange => ("setrange", Class::Text),
            Self::RenameFrom => ("rename_from", Class::Generic),
            Self::RenameTo => ("rename_to", Class::Generic),
            Self::CopyTo => ("copy_to", Class::Generic),
            Self::Restore => ("restore", Class::Generic),
            Self::MoveFrom => ("move_from", Class::Generic),
            Self::MoveTo => ("move_to", Class::Generic),
        }
    }
}

/// What is told, and what waits to be told.
pub struct KeyspaceEvents {
    channels: Arc<Channels>,
    /// What is asked for. Relaxed: a request that is being executed while it changes may go by the old set.
    asked: AtomicU16,
    /// [`KeyEvents::tell_anything`] of it. Relaxed: the same.
    is_used: AtomicBool,
    /// Something waits. Relaxed: a hint, and the thread that maintains looks again and again.
    any_waits: AtomicBool,
    waiting: Mutex<Waiting>,
    /// Events that had no room. Relaxed: a statistic.
    left_out: AtomicU64,
}

/// Events of keys as the engine has them.
#[derive(Default)]
struct Waiting {
    events: Vec<(Event, Box<[u8]>)>,
    bytes: usize,
}

impl KeyspaceEvents {
    /// Those that are asked for at the start.
    pub fn new(channels: Arc<Channels>, asked: KeyEvents) -> Self {
        let events = Self {
            channels,
            asked: AtomicU16::new(0),
            is_used: AtomicBool::new(false),
            any_waits: AtomicBool::new(false),
            waiting: Mutex::default(),
            left_out: AtomicU64::new(0),
        };
        events.ask(asked);
        events
    }

    /// What is asked for.
    pub fn asked(&self) -> KeyEvents {
        KeyEvents::from_bits(self.asked.load(Ordering::Relaxed))
    }

    /// This is asked for from now on.
    pub fn ask(&self, asked: KeyEvents) {
        self.asked.store(asked.bits(), Ordering::Relaxed);
        self.is_used.store(asked.tell_anything(), Ordering::Relaxed);
    }

    /// True if anything may have to be told.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// True if what the engine does in this class is told.
    pub fn wants(&self, class: Class) -> bool {
        self.is_used() && self.asked().has(class)
    }

    /// Events that had no room.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// The engine has done this to a key of its own. It is told later: the caller may hold locks.
    pub fn later(&self, event: Event, key: &[u8]) {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.bytes + key.len() + WAITING_OVERHEAD;
        if bytes > WAITING_MAX {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes = bytes;
        waiting.events.push((event, key.into()));
        self.any_waits.store(true, Ordering::Relaxed);
    }

    /// Tells what waits. Returns how many clients were told, and how many patterns were compared, as work.
    pub fn tell_waiting(&self, databases: &Databases) -> usize {
        if !self.any_waits.load(Ordering::Relaxed) {
            return 0;
        }
        let mut waiting = self.waiting.lock();
        self.any_waits.store(false, Ordering::Relaxed);
        let taken = mem::take(&mut *waiting);
        drop(waiting);
        let events = taken.events.iter();
        events
            .map(|(event, key)| self.tell(databases, *event, key))
            .sum()
    }

    /// Tells that this has happened to a key of the engine's. Returns the same.
    pub fn tell(&self, databases: &Databases, event: Event, key: &[u8]) -> usize {
        let asked = self.asked();
        let (name, class) = event.told();
        if !asked.has(class) {
            return 0;
        }
        let (namespace, key) = Namespace::split(key);
        // What a FLUSHDB has left belongs to no database.
        let Some(database) = databases.database_of(namespace) else {
            return 0;
        };
        let mut work = 0;
        if asked.has(Class::ByKey) {
            let channel = [format!("__keyspace@{database}__:").as_bytes(), key].concat();
            work += self.publish(&channel, name.as_bytes());
        }
        if asked.has(Class::ByEvent) {
            let channel = format!("__keyevent@{database}__:{name}");
            work += self.publish(channel.as_bytes(), key);
        }
        work
    }

    fn publish(&self, channel: &[u8], text: &[u8]) -> usize {
        // As of PUBLISH: all patterns are compared with it.
        if channel.len() > PATTERN_LEN_MAX {
            return 0;
        }
        let Published {
            receivers,
            compared,
            words,
        } = self.channels.publish(ChannelKind::Channel, channel, text);
        receivers + compared + channel.len().saturating_mul(words) / BYTES_OF_CLIENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_what_is_left_out_is_counted() {
        let all = "KEA".parse().unwrap();
        let events = KeyspaceEvents::new(Arc::default(), all);
        let key = [b'k'; 1000];
        let room = WAITING_MAX / (key.len() + WAITING_OVERHEAD);
        for _ in 0..room + 5 {
            events.later(Event::Expired, &key);
        }
        assert_eq!(events.left_out(), 5);
        assert_eq!(events.waiting.lock().events.len(), room);
        events.tell_waiting(&Databases::new(None));
        events.later(Event::Evicted, &key);
        assert_eq!(events.left_out(), 5);
    }

    #[test]
    fn only_what_is_asked_for_is_wanted() {
        let events = KeyspaceEvents::new(Arc::default(), KeyEvents::default());
        assert!(!events.is_used() && !events.wants(Class::Expired));
        events.ask("x".parse().unwrap());
        assert!(!events.is_used() && !events.wants(Class::Expired));
        events.ask("Ex".parse().unwrap());
        assert!(events.wants(Class::Expired) && !events.wants(Class::Evicted));
    }
}
