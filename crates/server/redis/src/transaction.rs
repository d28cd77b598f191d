//! What a connection keeps of a transaction: its requests, and the keys that its client watches.

use nuthatch_commands::context::Context;
use nuthatch_engine::{Expiry, Item};
use nuthatch_resp::Rest;

use crate::queue::Queue;
use crate::spot::look_surely;

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
    seen: Seen,
    /// How often its database had been swapped.
    swaps: u32,
}

/// The state by which a change of an item is detected. The cas changes with the value only, so the expiry is compared
/// too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Item {
        cas: u64,
        expiry: Expiry,
    },
    Nothing,
    /// Nobody could say.
    Unknown,
}

fn seen(cx: &mut Context<'_, '_>, key: &[u8]) -> Seen {
    match look_surely(cx, key) {
        Ok(Some(Item { cas, expiry, .. })) => Seen::Item { cas, expiry },
        Ok(None) => Seen::Nothing,
        Err(_) => Seen::Unknown,
    }
}

fn seen_in(cx: &mut Context<'_, '_>, database: u8, key: &[u8]) -> Seen {
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

    /// True if the item is not as it was, or was another one meanwhile, because its database was swapped; or if that is unknown.
    pub fn has_changed(&self, cx: &mut Context<'_, '_>) -> bool {
        let now = seen_in(cx, self.database, &self.key);
        cx.shared.databases.swaps(self.database.into()) != self.swaps
            || now != self.seen
            || now == Seen::Unknown
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
