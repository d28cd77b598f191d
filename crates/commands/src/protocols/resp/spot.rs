//! Requests to the engine outside of the batch, for commands that need the engine's reply before they can answer.

use std::mem::MaybeUninit;

use nuthatch_engine::{
    AnyValue, Condition, Expiry, Item, Op, Read, Replies, Reply, Request, Store, StoreMode, Value,
};
use nuthatch_protocol::resp::Error;
use nuthatch_telemetry::counters::WorkerCounters;
use nuthatch_telemetry::sizes::Lens;

use super::answers::failure;
use crate::output::Output;
use crate::stage::Stage;

/// How often a change is tried if other clients are faster.
pub const ATTEMPTS: usize = 1000;

/// The answer to one request, with the value if there is one.
#[derive(Default)]
struct CollectedReply {
    value: Output<AnyValue>,
    item: Option<Item>,
    reply: Option<Reply>,
}

impl Replies<AnyValue> for CollectedReply {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.item = Some(*item);
        self.value.begin(item.value_len, |_| {})
    }

    fn commit(&mut self, _: usize) {
        // SAFETY: the engine calls this after it wrote all of the room that it got from the last `begin`: that is its
        // side of `Replies`.
        unsafe { self.value.commit() };
    }

    fn retract(&mut self, _: usize) {
        self.item = None;
        self.value.retract();
    }

    fn large(&mut self, _: usize, item: &Item, value: AnyValue) {
        self.item = Some(*item);
        let text = self.value.text();
        while text.len() < value.len() {
            text.extend_from_slice(value.chunk(text.len()));
        }
    }

    fn done(&mut self, _: usize, reply: Reply) {
        self.reply = Some(reply);
    }
}

fn heard(stage: &mut Stage<'_, '_>, key: &[u8], op: Op<'_>) -> CollectedReply {
    let request = Request {
        key: stage.key(key),
        op,
    };
    let mut heard = CollectedReply::default();
    stage.execute(&[request], &mut heard);
    heard
}

/// The reply to a request that gets no value.
pub fn ask(stage: &mut Stage<'_, '_>, key: &[u8], op: Op<'_>) -> Reply {
    heard(stage, key, op).reply.unwrap_or(Reply::Miss)
}

/// An item and its value.
pub struct Found {
    pub item: Item,
    pub value: Vec<u8>,
}

/// Reads an item.
pub fn read(stage: &mut Stage<'_, '_>, key: &[u8]) -> Option<Found> {
    let mut heard = heard(stage, key, Op::Read(Read::default()));
    Some(Found {
        item: heard.item?,
        value: std::mem::take(heard.value.text()),
    })
}

/// Looks at an item without using it.
pub fn look(stage: &mut Stage<'_, '_>, key: &[u8]) -> Option<Item> {
    let op = Op::Read(Read {
        value: false,
        bump: false,
        idle: true,
        ..Read::default()
    });
    match ask(stage, key, op) {
        Reply::Found(item) => Some(item),
        _ => None,
    }
}

/// The new state of an item.
pub struct Change<'v, T> {
    pub value: std::borrow::Cow<'v, [u8]>,
    pub expiry: Expiry,
    pub flags: u32,
    /// The answer if the change succeeds.
    pub answer: T,
}

/// The decision about an item.
pub enum Decision<'v, T> {
    /// It stays as it is.
    Stay(T),
    /// It becomes this.
    Become(Change<'v, T>),
}

/// How a change is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Set,
    Delta { down: bool },
    Touch,
}

impl Counted {
    /// Counts a change. `there` is true if the item existed, `changed` is the new value's length if it was stored.
    pub fn count(self, counters: &WorkerCounters, key: &[u8], there: bool, changed: Option<usize>) {
        let lens = changed.map(|value| Lens {
            key: key.len(),
            value,
        });
        match (self, lens) {
            (Self::Set, Some(lens)) => counters.count_set(lens),
            // The command decided not to store.
            (Self::Set, None) => {}
            (Self::Delta { down }, lens) => counters.count_delta(down, lens.filter(|_| there)),
            (Self::Touch, lens) => counters.count_touch(lens),
        }
    }
}

/// Changes an item depending on its state. Calls `decide` again if another client changed the item meanwhile.
pub fn change<'v, T>(
    stage: &mut Stage<'_, '_>,
    key: &[u8],
    counted: Counted,
    mut decide: impl FnMut(Option<Found>) -> Result<Decision<'v, T>, Error<'static>>,
) -> Result<T, Error<'static>> {
    for _ in 0..ATTEMPTS {
        let found = read(stage, key);
        let cas = found.as_ref().map(|found| found.item.cas);
        let change = match decide(found)? {
            Decision::Stay(answer) => {
                counted.count(stage.counters, key, cas.is_some(), None);
                return Ok(answer);
            }
            Decision::Become(change) => change,
        };
        let mut store = Store::set(&change.value);
        store.flags = change.flags;
        store.expiry = change.expiry;
        match cas {
            Some(cas) => store.condition = Condition::Cas(cas),
            None => store.mode = StoreMode::Add,
        }
        let reply = ask(stage, key, Op::Store(store));
        match reply {
            Reply::Stored(_) => {
                let len = change.value.len();
                counted.count(stage.counters, key, cas.is_some(), Some(len));
                return Ok(change.answer);
            }
            Reply::TooLarge | Reply::OutOfMemory => {
                stage.counters.count_failure(&reply);
                return Err(failure(&reply));
            }
            // Another client changed it, added it, or removed it.
            _ => {}
        }
    }
    Err(Error::BUSY)
}

/// Removes an item if `is_meant` accepts it, and returns it.
pub fn take_if(
    stage: &mut Stage<'_, '_>,
    key: &[u8],
    is_meant: impl Fn(&Found) -> bool,
) -> Result<Option<Found>, Error<'static>> {
    for _ in 0..ATTEMPTS {
        let Some(found) = read(stage, key).filter(&is_meant) else {
            return Ok(None);
        };
        let removal = nuthatch_engine::Removal {
            condition: Condition::Cas(found.item.cas),
            ..Default::default()
        };
        if ask(stage, key, Op::Remove(removal)) == Reply::Removed {
            return Ok(Some(found));
        }
    }
    Err(Error::BUSY)
}
