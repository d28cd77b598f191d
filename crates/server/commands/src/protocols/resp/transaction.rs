//! What a connection keeps of a transaction: its requests, and the keys that its client watches.

use nuthatch_engine::Expiry;
use nuthatch_resp::Rest;

use super::queue::Queue;
use super::spot::look;
use crate::context::Context;

/// The requests since MULTI.
#[derive(Default)]
pub struct Transaction {
    pub requests: Queue,
    /// True if one of the requests was refused.
    pub refused: bool,
}

impl Transaction {
    pub fn memory(&self) -> usize {
        self.requests.memory()
    }
}

/// A watched key of a database, and the state of its item when WATCH looked at it.
pub struct Watched {
    pub database: u8,
    pub key: Box<[u8]>,
    seen: Option<Seen>,
    /// How often its database had been swapped.
    swaps: u32,
}

/// The state by which a change of an item is detected. The cas changes with the value only, so the expiry is compared
/// too.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    cas: u64,
    expiry: Expiry,
}

fn seen(cx: &mut Context<'_, '_>, key: &[u8]) -> Option<Seen> {
    look(cx, key).map(|item| Seen {
        cas: item.cas,
        expiry: item.expiry,
    })
}

fn seen_in(cx: &mut Context<'_, '_>, database: u8, key: &[u8]) -> Option<Seen> {
    let present = cx.shared.databases.namespace(database.into());
    let own = std::mem::replace(&mut cx.namespace, present);
    let seen = seen(cx, key);
    cx.namespace = own;
    seen
}

impl Watched {
    /// A key of the database of the running turn's connection, and the state in which its item is now.
    pub fn new(cx: &mut Context<'_, '_>, database: u8, key: &[u8]) -> Self {
        // A swap behind this counts.
        let swaps = cx.shared.databases.swaps(database.into());
        Self {
            database,
            key: key.into(),
            seen: seen_in(cx, database, key),
            swaps,
        }
    }

    /// True if the item is not as it was, or was another one meanwhile, because its database was swapped.
    pub fn has_changed(&self, cx: &mut Context<'_, '_>) -> bool {
        cx.shared.databases.swaps(self.database.into()) != self.swaps
            || seen_in(cx, self.database, &self.key) != self.seen
    }

    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.key.len()
    }
}

/// A request that arrives and is to be queued.
pub struct Collected {
    pub request: Vec<u8>,
    pub rest: Rest,
}

impl Collected {
    pub fn memory(&self) -> usize {
        self.request.capacity()
    }
}

/// A transaction to be executed if its watched keys are as they were.
pub struct Exec {
    pub requests: Queue,
    pub watched: Vec<Watched>,
}

impl Exec {
    pub fn memory(&self) -> usize {
        let watched: usize = self.watched.iter().map(Watched::memory).sum();
        size_of::<Self>() + self.requests.memory() + watched
    }
}
