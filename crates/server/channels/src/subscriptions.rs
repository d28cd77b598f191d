//! What one connection has subscribed to.

use std::collections::HashMap;
use std::sync::Arc;

use nuthatch_resp::ChannelKind as Kind;

use crate::channels::{Channels, Name};
use crate::letter::Subscription;
use crate::mailbox::Mailbox;

/// The most subscriptions of a connection. Each costs every message of its kind time, or the server memory.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;

/// Bytes of memory that a subscription takes beside its name's.
const SUBSCRIPTION_OVERHEAD: usize = 240;

/// Why there is no subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The connection has too many.
    Connection,
    /// All connections together have too many patterns.
    Patterns,
}

/// The subscriptions of a connection. Dropping it ends them.
pub struct Subscriptions {
    channels: Arc<Channels>,
    mailbox: Arc<Mailbox>,
    /// By kind.
    names: [HashMap<Name, Arc<Subscription>>; 3],
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

    /// The number of channels, patterns and channels of shards.
    pub fn numbers(&self) -> [usize; 3] {
        self.names.each_ref().map(HashMap::len)
    }

    /// Subscribes.
    pub fn add(&mut self, kind: Kind, name: &[u8]) -> Result<(), Full> {
        if self.names[kind as usize].contains_key(name) {
            return Ok(());
        }
        if self.names.iter().map(HashMap::len).sum::<usize>() >= SUBSCRIPTIONS_MAX {
            return Err(Full::Connection);
        }
        let name: Name = name.into();
        let subscription = Subscription::new(Arc::clone(&self.mailbox));
        let added = self.channels.add(kind, &name, &subscription);
        added.map_err(|_| Full::Patterns)?;
        self.memory += memory_of(kind, &name);
        self.names[kind as usize].insert(name, subscription);
        Ok(())
    }

    /// Ends a subscription, if there is one.
    pub fn remove(&mut self, kind: Kind, name: &[u8]) {
        if let Some((name, subscription)) = self.names[kind as usize].remove_entry(name) {
            self.channels.remove(kind, &name, &subscription);
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
            for (name, subscription) in std::mem::take(&mut self.names[kind as usize]) {
                self.channels.remove(kind, &name, &subscription);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;
    use crate::mailbox::tests::{Calls, mailbox};

    #[test]
    fn subscriptions_have_a_limit() {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        let mailbox = mailbox(0, &calls, &bounds);
        let mut subscriptions = Subscriptions::new(Arc::default(), mailbox);
        for number in 0..SUBSCRIPTIONS_MAX {
            let name = number.to_string();
            assert_eq!(subscriptions.add(Kind::Channel, name.as_bytes()), Ok(()));
        }
        assert_eq!(subscriptions.add(Kind::Channel, b"0"), Ok(()));
        let full = subscriptions.add(Kind::Shard, b"one more");
        assert_eq!(full, Err(Full::Connection));
    }
}
