//! Lanes: the requests of a batch, sorted by partition, and the state of each.

use std::collections::VecDeque;

use nuthatch_base::hash::split;
use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::ring::Word;

use super::call::{Call, Calls, Task};
use super::message::{Answer, decode_cas};
use nuthatch_engine::reply::Item;
use nuthatch_engine::request::{Condition, Expiry, Leave, Op, Request, Store, StoreMode};
use nuthatch_partition::{BlockMemory, Draft, Element};

/// The longest value of a store that is sent as one call when it is alone. Longer values are written by the client
/// itself: no server thread touches them.
const ALONE_MAX: usize = 1024;

/// The messages of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    /// A lookup.
    Get,
    /// Room, and a ready.
    Set,
    /// Room, and the call with this number, which publishes it.
    Publish(u32),
    /// The call with this number.
    Execute(u32),
}

/// The state of a request.
pub(super) enum ReplyState {
    /// Nothing, or something is under way.
    Open,
    /// A store has room.
    Room(Element),
    /// The room is filled; a call publishes it, if the store needs one.
    Filled(Element),
    /// The room was refused.
    Refused,
    /// A lookup's element, pinned; its key is not compared yet.
    Hit(Element),
    /// All live elements with the same hash, pinned.
    Several(Vec<Element>),
    /// A hit that was copied out.
    Copied(Box<(Item, Vec<u8>)>),
    /// A lookup missed.
    Miss,
    /// A set took effect, with this cas.
    Stored(u64),
    /// A call was answered.
    Called,
    /// The answer to the call: there is no memory for it.
    Short,
    /// The call keeps a long value: its new element is filled, and the call is to be sent again.
    Drafted(Draft),
    TooLarge,
    OutOfMemory,
    /// The caller has the reply.
    Delivered,
}

/// What an answer belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Awaited {
    Lookup,
    Room,
    Ready,
    Call,
}

/// The requests of one partition.
#[derive(Default)]
pub(super) struct Lane {
    /// Positions in `order`: the next effect, the next store to get room, the end.
    pub next: usize,
    pub ahead: usize,
    pub end: usize,
    /// Stores that have room, or have asked for it, and have not taken effect.
    pub rooms: usize,
    pub room_bytes: usize,
    /// Calls under way that may find no memory or make a draft, and are then repeated: no request of the same key may
    /// overtake them.
    pub open: Vec<u32>,
    /// Lookups that were sent.
    pub gets: usize,
    /// The messages that wait for an answer, in order.
    pub awaited: VecDeque<(Awaited, u32)>,
}

/// A batch's memory, reused by the next batch.
#[derive(Default)]
pub(super) struct Scratch {
    pub plans: Vec<Plan>,
    pub slots: Vec<ReplyState>,
    /// Requests by partition, in order.
    pub order: Vec<u32>,
    pub lanes: Vec<Lane>,
    /// The partitions that have requests.
    pub active: Vec<usize>,
}

/// The plan of a request, whose call would have this number.
fn plan(op: &Op<'_>, call: u32, alone: bool, evicts: bool) -> Plan {
    match op {
        Op::Get => Plan::Get,
        // With nothing to overlap, one answer to wait for is better than two.
        Op::Store(store) if alone && store.value.len() <= ALONE_MAX => Plan::Execute(call),
        // A full store without eviction must check the present item before it asks for room.
        Op::Store(store) if evicts => match store.mode {
            StoreMode::Set if is_plain(store) => Plan::Set,
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => Plan::Publish(call),
            StoreMode::Append | StoreMode::Prepend => Plan::Execute(call),
        },
        _ => Plan::Execute(call),
    }
}

/// True if a ready message can express the whole store.
fn is_plain(store: &Store<'_>) -> bool {
    store.condition == Condition::None
        && store.new_cas.is_none()
        && store.flags == 0
        && store.expiry == Expiry::Never
}

impl Scratch {
    /// Sorts a batch into lanes. Returns the calls that it needs.
    pub fn sort<'b>(
        &mut self,
        now: Time,
        requests: &[Request<'b>],
        partitions: usize,
        evicts: bool,
    ) -> Calls<'b> {
        self.lanes.resize_with(partitions, Lane::default);
        self.plans.clear();
        self.slots.clear();
        let mut calls = Calls::default();
        for request in requests {
            let plan = plan(&request.op, calls.len() as u32, requests.len() == 1, evicts);
            match (plan, request.op) {
                (Plan::Execute(_), _) => calls.push(Call::new(now, Task::Execute(*request, None))),
                (Plan::Publish(_), Op::Store(store)) => {
                    calls.push(Call::new(now, Task::Publish(None, store)));
                }
                _ => {}
            }
            self.plans.push(plan);
            self.slots.push(ReplyState::Open);
            self.lanes[partition_of(request, partitions)].end += 1;
        }
        let mut start = 0;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            if lane.end == 0 {
                continue;
            }
            self.active.push(number);
            (lane.next, lane.ahead) = (start, start);
            start += lane.end;
            // The place of the next request, until all are placed.
            lane.end = lane.next;
        }
        self.order.resize(requests.len(), 0);
        for (index, request) in requests.iter().enumerate() {
            let lane = &mut self.lanes[partition_of(request, partitions)];
            self.order[lane.end] = index as u32;
            lane.end += 1;
        }
        calls
    }

    /// Clears the state of a batch of which nothing is under way any more.
    pub fn clear(&mut self) {
        for number in self.active.drain(..) {
            let lane = &mut self.lanes[number];
            (lane.next, lane.ahead, lane.end) = (0, 0, 0);
            (lane.rooms, lane.room_bytes, lane.gets) = (0, 0, 0);
            lane.open.clear();
            debug_assert!(lane.awaited.is_empty());
        }
    }
}

impl Plan {
    /// True if it needs room before its effect.
    pub fn takes_room(self) -> bool {
        matches!(self, Plan::Set | Plan::Publish(_))
    }
}

/// The state of a request after an answer.
pub(super) fn answered(awaited: Awaited, word: Word) -> ReplyState {
    match awaited {
        Awaited::Lookup => match Answer::decode(word) {
            Answer::Element(element) => ReplyState::Hit(element),
            Answer::Several(elements) => ReplyState::Several(elements),
            _ => ReplyState::Miss,
        },
        Awaited::Room => match Answer::decode(word) {
            Answer::Element(element) => ReplyState::Room(element),
            Answer::TooLarge => ReplyState::TooLarge,
            _ => ReplyState::Refused,
        },
        Awaited::Ready => match decode_cas(word) {
            Some(cas) => ReplyState::Stored(cas),
            None => ReplyState::OutOfMemory,
        },
        Awaited::Call => ReplyState::Called,
    }
}

/// Starts loading an element's header and data.
pub(super) fn prefetch(memory: &BlockMemory, element: Element) {
    memory.prefetch(element.line());
    memory.prefetch_data(element);
}

/// The partition of a request.
#[inline]
pub(super) fn partition_of(request: &Request<'_>, partitions: usize) -> usize {
    split::partition(request.key.hash(), partitions as u32) as usize
}

/// True for a call that may need room for an element.
pub(super) fn may_want_memory(op: &Op<'_>) -> bool {
    match op {
        Op::Get => false,
        Op::Read(read) => read.vivify.is_some(),
        Op::Store(_) | Op::Delta(_) => true,
        Op::Remove(removal) => removal.leave != Leave::Nothing,
    }
}

/// A store's value.
#[inline]
pub(super) fn value_of<'v>(request: &Request<'v>) -> &'v [u8] {
    match request.op {
        Op::Store(store) => store.value,
        _ => &[],
    }
}
