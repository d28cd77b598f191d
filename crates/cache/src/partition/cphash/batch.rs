//! A batch on its way through the rings.
//!
//! The requests of each partition form a lane. A lane sends its requests' *effects* strictly in the
//! order of the batch: a lookup, a ready, or a call. A store needs room first, so a lane asks for room
//! ahead of its effects, a few stores in advance: an allocation nobody sees, so its place in the order
//! is of no consequence. When the room is there the client fills it and sends the effect.
//!
//! ```text
//!  lane    get a | set b | get b | set c | get d      effects go in this order
//!                  ^               ^
//!                  room: asked for ahead of everything
//!
//!  sent    room b, room c, lookup a    | ready b, lookup b, ready c, lookup d
//! ```
//!
//! A ring keeps the order of messages, and a key has one partition, so a get behind a set of the same
//! key finds the new value, in one batch as in one connection, and no bookkeeping of keys is needed.
//! No lane waits for another: all issue what they can before the first answer is awaited.
//!
//! Answers are delivered in the order of the batch, as they come. What was looked up stays pinned until
//! then. If an allocation is refused because everything in the partition is pinned, the lane waits until
//! all before it is delivered, copies out what this batch still has pinned, and tries again.

use std::collections::VecDeque;

use nuthatch_hash::split;
use nuthatch_sync::clock::Time;
use nuthatch_sync::ring::{Design, Word};

use super::call::{Call, Calls, Task};
use super::client::Client;
use super::message::{Answer, Message, decode_cas};
use super::room::Reclaimed;
use super::value::CpValue;
use crate::partition::{Element, Memory, Outcome};
use crate::reply::{Item, Replies, Reply};
use crate::request::{Condition, Expiry, Leave, Op, Request, Store, StoreMode};

/// Longer values are read in place instead of being copied.
pub(super) const COPY_MAX: usize = 8192;

/// Stores of a lane that room is asked for ahead.
const AHEAD_MAX: usize = 16;

/// Bytes of such room, unless a single value is longer: small against any partition.
const AHEAD_BYTES: usize = 64 << 10;

/// Requests that may be under way at a time, answered or not.
const WINDOW: usize = 1024;

/// How often a refused allocation is tried while others may have pinned what is in the way.
pub(super) const ATTEMPTS: u32 = 200;

/// How a request goes.
#[derive(Clone, Copy, Debug)]
enum Plan {
    /// A lookup.
    Get,
    /// Room, and a ready.
    Set,
    /// Room, and the call with this number, which publishes it.
    Publish(u32),
    /// The call with this number.
    Execute(u32),
}

/// What is known of a request.
enum Slot {
    /// Nothing, or something is under way.
    Open,
    /// A store has room.
    Room(Element),
    /// Which is filled; the call that publishes it, if it needs one.
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
    /// It was answered that there is no memory for it.
    Short,
    TooLarge,
    OutOfMemory,
    /// The caller has the reply.
    Delivered,
}

/// What an answer is to.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    Lookup,
    Room,
    Ready,
    Call,
}

/// The requests of one partition.
#[derive(Default)]
struct Lane {
    /// Positions in `order`: the next effect, the next store to get room, the end.
    next: usize,
    ahead: usize,
    end: usize,
    /// Stores that have room, or asked for it, and took no effect yet.
    rooms: usize,
    room_bytes: usize,
    /// Calls under way that may find no memory, and are to be repeated then: nothing of the same key may
    /// overtake them.
    open: Vec<u32>,
    /// What answers are to come to, in order.
    awaited: VecDeque<(Awaited, u32)>,
}

/// A batch's memory, kept from one to the next.
#[derive(Default)]
pub(super) struct Scratch {
    plans: Vec<Plan>,
    slots: Vec<Slot>,
    /// Requests by partition, in order.
    order: Vec<u32>,
    lanes: Vec<Lane>,
    /// The partitions that have any.
    active: Vec<usize>,
}

/// A batch under way.
pub(super) struct Batch<'b, 'c, D: Design, R> {
    client: &'c mut Client<D>,
    scratch: &'c mut Scratch,
    now: Time,
    requests: &'b [Request<'b>],
    calls: Calls<'b>,
    replies: &'c mut R,
    /// Requests whose replies the caller has.
    delivered: usize,
    /// How often the next one was tried in vain.
    attempts: u32,
}

/// The way of a request, whose call would have this number.
fn plan(op: &Op<'_>, call: u32, evicts: bool) -> Plan {
    match op {
        Op::Get => Plan::Get,
        // A full store without eviction must look at what is there before it asks for room.
        Op::Store(store) if evicts => match store.mode {
            StoreMode::Set if is_plain(store) => Plan::Set,
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => Plan::Publish(call),
            StoreMode::Append | StoreMode::Prepend => Plan::Execute(call),
        },
        _ => Plan::Execute(call),
    }
}

/// True if a ready says all there is to say.
fn is_plain(store: &Store<'_>) -> bool {
    store.condition == Condition::None
        && store.new_cas.is_none()
        && store.flags == 0
        && store.expiry == Expiry::Never
}

impl Scratch {
    /// Sorts a batch into lanes. Returns the calls that it takes.
    fn sort<'b>(
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
            let plan = plan(&request.op, calls.len() as u32, evicts);
            match (plan, request.op) {
                (Plan::Execute(_), _) => calls.push(Call::new(now, Task::Execute(*request))),
                (Plan::Publish(_), Op::Store(store)) => {
                    calls.push(Call::new(now, Task::Publish(None, store)));
                }
                _ => {}
            }
            self.plans.push(plan);
            self.slots.push(Slot::Open);
            self.lanes[partition_of(request, partitions)].end += 1;
        }
        let mut start = 0;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            if lane.end > 0 {
                self.active.push(number);
            }
            (lane.next, lane.ahead) = (start, start);
            start += lane.end;
            // Where the next request goes, until all have gone.
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

    /// Forgets a batch of which nothing is under way any more.
    fn clear(&mut self) {
        for number in self.active.drain(..) {
            let lane = &mut self.lanes[number];
            (lane.next, lane.ahead, lane.end) = (0, 0, 0);
            (lane.rooms, lane.room_bytes) = (0, 0);
            lane.open.clear();
            debug_assert!(lane.awaited.is_empty());
        }
    }
}

/// What came of an attempt to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Moved,
    Stuck,
}

impl<'b, 'c, D: Design, R: Replies<CpValue<D>>> Batch<'b, 'c, D, R> {
    /// Carries out a batch.
    pub fn run(
        client: &'c mut Client<D>,
        scratch: &'c mut Scratch,
        now: Time,
        requests: &'b [Request<'b>],
        replies: &'c mut R,
    ) {
        let partitions = client.channels.len();
        let calls = scratch.sort(now, requests, partitions, client.shared.evicts);
        let mut batch = Self {
            client,
            scratch,
            now,
            requests,
            calls,
            replies,
            delivered: 0,
            attempts: 0,
        };
        while batch.delivered < requests.len() {
            let mut step = Step::Stuck;
            for position in 0..batch.scratch.active.len() {
                let number = batch.scratch.active[position];
                let (came, went) = (batch.collect(number), batch.issue(number));
                if came == Step::Moved || went == Step::Moved {
                    step = Step::Moved;
                }
            }
            let (gone, tried) = (batch.deliver(), batch.try_again());
            if [step, gone, tried] == [Step::Stuck; 3] {
                batch.client.wait(&batch.scratch.active);
            }
        }
        // The references that were given back last.
        batch.flush();
        batch.client.count(requests.len(), &batch.scratch.active);
    }

    fn flush(&mut self) {
        for &number in &self.scratch.active {
            self.client.flush_waiting(number);
        }
    }

    /// Takes the answers of a lane that are there.
    fn collect(&mut self, number: usize) -> Step {
        let Scratch {
            plans,
            slots,
            lanes,
            ..
        } = &mut *self.scratch;
        let lane = &mut lanes[number];
        let memory = &self.client.shared.memory;
        let mut step = Step::Stuck;
        while let Some((awaited, index)) = lane.awaited.front().copied() {
            let Some(word) = self.client.channels[number].receive() else {
                break;
            };
            lane.awaited.pop_front();
            let mut slot = answered(awaited, word);
            match (&slot, plans[index as usize]) {
                (&Slot::Hit(element), _) => prefetch(memory, element),
                (Slot::Called, Plan::Execute(call)) => {
                    // SAFETY: it was answered.
                    let outcome = unsafe { self.calls.outcome(call) };
                    if matches!(outcome, Outcome::Done(Reply::OutOfMemory)) {
                        slot = Slot::Short;
                    } else {
                        lane.open.retain(|&open| open != index);
                    }
                }
                _ => {}
            }
            slots[index as usize] = slot;
            step = Step::Moved;
        }
        step
    }

    /// Sends what a lane can send.
    fn issue(&mut self, number: usize) -> Step {
        let mut step = Step::Stuck;
        while self.ask_for_room(number) == Step::Moved || self.send_effect(number) == Step::Moved {
            step = Step::Moved;
        }
        step
    }

    /// Asks for the room of the next store, if that is not too far ahead.
    fn ask_for_room(&mut self, number: usize) -> Step {
        let lane = &mut self.scratch.lanes[number];
        if lane.ahead == lane.end || lane.rooms == AHEAD_MAX {
            return Step::Stuck;
        }
        let index = self.scratch.order[lane.ahead] as usize;
        if !self.scratch.plans[index].takes_room() {
            lane.ahead += 1;
            return Step::Moved;
        }
        let bytes = value_of(&self.requests[index]).len();
        let fits = lane.rooms == 0 || lane.room_bytes + bytes <= AHEAD_BYTES;
        if !fits || index >= self.delivered + WINDOW || !self.allocate(number, index) {
            return Step::Stuck;
        }
        let lane = &mut self.scratch.lanes[number];
        lane.ahead += 1;
        lane.rooms += 1;
        lane.room_bytes += bytes;
        Step::Moved
    }

    fn allocate(&mut self, number: usize, index: usize) -> bool {
        let request = &self.requests[index];
        let message = Message::Allocate {
            hash: request.key.hash(),
            key_len: request.key.bytes().len(),
            value_len: value_of(request).len(),
        };
        self.send(number, index, message, Awaited::Room)
    }

    /// Stages a message whose answer is to `index`; false if there is no room for it.
    fn send(&mut self, number: usize, index: usize, message: Message, awaited: Awaited) -> bool {
        let sent = self.client.channels[number].put(self.now, message).is_ok();
        if sent {
            let lane = &mut self.scratch.lanes[number];
            lane.awaited.push_back((awaited, index as u32));
        }
        sent
    }

    /// Sends the effect of the lane's next request, if it can be sent.
    fn send_effect(&mut self, number: usize) -> Step {
        let lane = &self.scratch.lanes[number];
        if lane.next == lane.end {
            return Step::Stuck;
        }
        let index = self.scratch.order[lane.next] as usize;
        if index >= self.delivered + WINDOW {
            return Step::Stuck;
        }
        let hash = self.requests[index].key.hash();
        let same_key = |&open: &u32| self.requests[open as usize].key.hash() == hash;
        if lane.open.iter().any(same_key) {
            return Step::Stuck;
        }
        let plan = self.scratch.plans[index];
        let sent = match (plan, &self.scratch.slots[index]) {
            (Plan::Get, _) => self.send(number, index, Message::Lookup { hash }, Awaited::Lookup),
            (Plan::Execute(call), _) => self.send_call(number, index, call),
            (_, &Slot::Room(element)) => {
                self.fill(index, element);
                self.send_store(number, index, element)
            }
            (_, &Slot::Filled(element)) => self.send_store(number, index, element),
            (_, Slot::TooLarge | Slot::OutOfMemory | Slot::Delivered) => true,
            // Its room is on the way, or was refused.
            _ => false,
        };
        if !sent {
            return Step::Stuck;
        }
        let lane = &mut self.scratch.lanes[number];
        lane.next += 1;
        if plan.takes_room() {
            lane.rooms -= 1;
            lane.room_bytes -= value_of(&self.requests[index]).len();
        } else if may_want_memory(&self.requests[index].op) {
            lane.open.push(index as u32);
        }
        Step::Moved
    }

    fn send_call(&mut self, number: usize, index: usize, call: u32) -> bool {
        let call = self.calls.address(call);
        self.send(number, index, Message::Call { call }, Awaited::Call)
    }

    /// Lays key and value into a store's room.
    fn fill(&mut self, index: usize, element: Element) {
        let request = &self.requests[index];
        let key = request.key.bytes();
        let memory = &self.client.shared.memory;
        memory.write(element, 0, key);
        memory.write(element, key.len(), value_of(request));
        self.scratch.slots[index] = Slot::Filled(element);
    }

    /// Sends the effect of a store whose room is filled. From then on the partition's owner has it.
    fn send_store(&mut self, number: usize, index: usize, element: Element) -> bool {
        let sent = match self.scratch.plans[index] {
            Plan::Publish(call) => {
                // SAFETY: its address has not been sent: this is the only message that carries it.
                unsafe { self.calls.set_element(call, element) };
                self.send_call(number, index, call)
            }
            _ => self.send(number, index, Message::Ready { element }, Awaited::Ready),
        };
        if sent {
            self.scratch.slots[index] = Slot::Open;
        }
        sent
    }

    /// If the next reply is missing for want of memory: others may have pinned what is in the way, or
    /// have the memory.
    fn try_again(&mut self) -> Step {
        match self.scratch.slots.get(self.delivered) {
            Some(Slot::Refused | Slot::Short) => self.seek_memory(self.delivered),
            _ => Step::Stuck,
        }
    }

    #[cold]
    fn seek_memory(&mut self, index: usize) -> Step {
        let number = partition_of(&self.requests[index], self.client.channels.len());
        self.copy_out();
        self.flush();
        let reclaimed = self.client.reclaim(number, self.now);
        self.attempts += 1;
        let hopeless = match reclaimed {
            Reclaimed::Some => false,
            Reclaimed::Nothing => !self.client.shared.evicts,
            Reclaimed::NotWanted => true,
        };
        if hopeless || self.attempts > ATTEMPTS {
            let lane = &mut self.scratch.lanes[number];
            lane.open.retain(|&open| open as usize != index);
            self.scratch.slots[index] = Slot::OutOfMemory;
            return Step::Moved;
        }
        if reclaimed == Reclaimed::Nothing {
            std::thread::yield_now();
        }
        let sent = match (&self.scratch.slots[index], self.scratch.plans[index]) {
            (Slot::Short, Plan::Execute(call)) => self.send_call(number, index, call),
            _ => self.allocate(number, index),
        };
        if !sent {
            return Step::Stuck;
        }
        self.scratch.slots[index] = Slot::Open;
        Step::Moved
    }

    /// Copies what this batch has pinned, and gives the references back.
    fn copy_out(&mut self) {
        for index in self.delivered..self.requests.len() {
            let Slot::Hit(element) = self.scratch.slots[index] else {
                continue;
            };
            let key = self.requests[index].key.bytes();
            let memory = &self.client.shared.memory;
            self.scratch.slots[index] = if memory.has_key(element, key) {
                let item = memory.item(element, self.now);
                let value = memory.to_vec(element, key.len(), item.value_len);
                Slot::Copied(Box::new((item, value)))
            } else {
                Slot::Miss
            };
            self.release(index, element);
        }
    }

    fn release(&mut self, index: usize, element: Element) {
        let number = partition_of(&self.requests[index], self.client.channels.len());
        let message = Message::Release { element };
        self.client.put_waiting(number, self.now, message);
    }

    /// Delivers the replies that are next in the order of the batch.
    fn deliver(&mut self) -> Step {
        let before = self.delivered;
        while self.delivered < self.requests.len() && self.deliver_one(self.delivered) {
            self.delivered += 1;
            self.attempts = 0;
        }
        if self.delivered > before {
            Step::Moved
        } else {
            Step::Stuck
        }
    }

    /// Delivers one reply; false if it is not there yet. A slot is gone when its reference has another
    /// owner, so that none is lost if the caller's code panics.
    fn deliver_one(&mut self, index: usize) -> bool {
        match &mut self.scratch.slots[index] {
            Slot::Open | Slot::Room(_) | Slot::Filled(_) | Slot::Refused | Slot::Short => {
                return false;
            }
            &mut Slot::Hit(element) => self.deliver_hit(index, element),
            Slot::Several(elements) => {
                let elements = std::mem::take(elements);
                self.choose(index, elements);
                return false;
            }
            Slot::Copied(copied) => {
                let (item, value) = std::mem::take(&mut **copied);
                self.deliver_copy(index, &item, value);
            }
            &mut Slot::Stored(cas) => {
                let value_len = value_of(&self.requests[index]).len();
                let item = Item {
                    value_len,
                    cas,
                    ..Item::default()
                };
                self.replies.done(index, Reply::Stored(item));
            }
            Slot::Called => self.deliver_outcome(index),
            Slot::Miss | Slot::Delivered => self.replies.done(index, Reply::Miss),
            Slot::TooLarge => self.replies.done(index, Reply::TooLarge),
            Slot::OutOfMemory => self.replies.done(index, Reply::OutOfMemory),
        }
        self.scratch.slots[index] = Slot::Delivered;
        true
    }

    /// A lookup's element: the key decides whether it is a hit.
    fn deliver_hit(&mut self, index: usize, element: Element) {
        let memory = &self.client.shared.memory;
        if memory.has_key(element, self.requests[index].key.bytes()) {
            let item = memory.item(element, self.now);
            self.give(index, element, &item);
        } else {
            self.replies.done(index, Reply::Miss);
            self.release(index, element);
        }
    }

    fn deliver_outcome(&mut self, index: usize) {
        let (Plan::Execute(call) | Plan::Publish(call)) = self.scratch.plans[index] else {
            return;
        };
        // SAFETY: it was answered.
        match unsafe { self.calls.outcome(call) } {
            Outcome::Done(reply) => self.replies.done(index, reply),
            Outcome::Value(element, item) => self.give(index, element, &item),
        }
    }

    /// Hands out the value of a pinned element.
    fn give(&mut self, index: usize, element: Element, item: &Item) {
        let key_len = self.requests[index].key.bytes().len();
        let shared = &self.client.shared;
        if item.value_len > COPY_MAX {
            let number = partition_of(&self.requests[index], shared.places.len());
            let value = CpValue::pinned(shared, number, element, key_len, item.value_len);
            self.scratch.slots[index] = Slot::Delivered;
            return self.replies.large(index, item, value);
        }
        let room = self.replies.begin(index, item);
        shared.memory.read(element, key_len, room);
        self.replies.commit(index);
        self.release(index, element);
    }

    fn deliver_copy(&mut self, index: usize, item: &Item, value: Vec<u8>) {
        if value.len() > COPY_MAX {
            return self.replies.large(index, item, CpValue::copied(value));
        }
        self.replies.begin(index, item).write_copy_of_slice(&value);
        self.replies.commit(index);
    }

    /// Two keys have this request's hash: keeps the one that is its own.
    #[cold]
    fn choose(&mut self, index: usize, elements: Vec<Element>) {
        self.scratch.slots[index] = Slot::Miss;
        for element in elements {
            let memory = &self.client.shared.memory;
            if memory.has_key(element, self.requests[index].key.bytes()) {
                self.scratch.slots[index] = Slot::Hit(element);
            } else {
                self.release(index, element);
            }
        }
    }
}

/// Whatever happened, nothing is under way behind this: no call's address, no reference.
impl<D: Design, R> Drop for Batch<'_, '_, D, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abandon();
        }
        self.scratch.clear();
    }
}

impl<D: Design, R> Batch<'_, '_, D, R> {
    /// The caller's code panicked: waits for all that is under way, and drops what came of it.
    #[cold]
    fn abandon(&mut self) {
        let active = self.scratch.active.clone();
        for &number in &active {
            while let Some((awaited, index)) = self.scratch.lanes[number].awaited.pop_front() {
                let Some(word) = self.client.receive_waiting(number) else {
                    // Its owner panicked: nobody looks at the calls any more.
                    self.scratch.lanes[number].awaited.clear();
                    break;
                };
                self.scratch.slots[index as usize] = answered(awaited, word);
            }
        }
        for index in self.delivered..self.requests.len() {
            let element = match (&self.scratch.slots[index], self.scratch.plans[index]) {
                (&(Slot::Room(element) | Slot::Filled(element) | Slot::Hit(element)), _) => element,
                (Slot::Called, Plan::Execute(call) | Plan::Publish(call)) => {
                    // SAFETY: it was answered.
                    match unsafe { self.calls.outcome(call) } {
                        Outcome::Value(element, _) => element,
                        Outcome::Done(_) => continue,
                    }
                }
                _ => continue,
            };
            let number = partition_of(&self.requests[index], self.client.channels.len());
            self.client.shared.places[number].give_back(element);
        }
    }
}

impl Plan {
    fn takes_room(self) -> bool {
        matches!(self, Plan::Set | Plan::Publish(_))
    }
}

/// What an answer makes of a request.
fn answered(awaited: Awaited, word: Word) -> Slot {
    match awaited {
        Awaited::Lookup => match Answer::decode(word) {
            Answer::Element(element) => Slot::Hit(element),
            Answer::Several(elements) => Slot::Several(elements),
            _ => Slot::Miss,
        },
        Awaited::Room => match Answer::decode(word) {
            Answer::Element(element) => Slot::Room(element),
            Answer::TooLarge => Slot::TooLarge,
            _ => Slot::Refused,
        },
        Awaited::Ready => match decode_cas(word) {
            Some(cas) => Slot::Stored(cas),
            None => Slot::OutOfMemory,
        },
        Awaited::Call => Slot::Called,
    }
}

/// Starts loading an element's header and data.
fn prefetch(memory: &Memory, element: Element) {
    memory.prefetch(element.line());
    memory.prefetch_data(element);
}

/// The partition of a request.
#[inline]
fn partition_of(request: &Request<'_>, partitions: usize) -> usize {
    split::partition(request.key.hash(), partitions as u32) as usize
}

/// True for a call that may need room for an element.
fn may_want_memory(op: &Op<'_>) -> bool {
    match op {
        Op::Get => false,
        Op::Read(read) => read.vivify.is_some(),
        Op::Store(_) | Op::Delta(_) => true,
        Op::Remove(removal) => removal.leave != Leave::Nothing,
    }
}

/// A store's value.
#[inline]
fn value_of<'v>(request: &Request<'v>) -> &'v [u8] {
    match request.op {
        Op::Store(store) => store.value,
        _ => &[],
    }
}
