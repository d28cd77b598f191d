//! A batch on its way through the rings.
//!
//! The requests of each partition form a lane. A lane sends its requests' *effects* strictly in the order of the batch:
//! a lookup, a ready, or a call. A store needs room first, so a lane asks for room a few stores ahead of its effects.
//! No other thread sees such an allocation, so its place in the order does not matter. When the room has arrived the
//! client fills it and sends the effect.
//!
//! ```text
//!  lane    get a | set b | get b | set c | get d      effects go in this order
//!                  ^               ^
//!                  room: asked for ahead of everything
//!
//!  sent    room b, room c, lookup a    | ready b, lookup b, ready c, lookup d
//! ```
//!
//! A ring keeps the order of messages, and a key has one partition, so a get behind a set of the same key finds the new
//! value, in one batch as in one connection. This needs no bookkeeping of keys. No lane waits for another: all lanes
//! send what they can before the client waits for the first answer.
//!
//! Answers are delivered in the order of the batch, as they arrive. The elements of lookups stay pinned until then. If
//! an allocation is refused because everything in the partition is pinned, the lane waits until all requests before it
//! are delivered, copies the elements that this batch still has pinned, and tries again.

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::ring::RingKind;

use super::call::Calls;
use super::client::Client;
use super::lane::{
    Awaited, Lane, Plan, ReplyState, Scratch, answered, may_want_memory, partition_of, prefetch,
    value_of,
};
use super::message::PartitionRequest;
use super::room::Reclaimed;
use super::value::CpValue;
use nuthatch_engine::reply::{Replies, Reply};
use nuthatch_engine::request::{Op, Request};
use nuthatch_partition::{Element, Outcome, Partition};

/// Longer values are read in place instead of being copied.
pub(super) const COPY_MAX: usize = 8192;

/// Stores of a lane for which room is requested ahead.
const AHEAD_MAX: usize = 16;

/// Bytes of such room, unless a single value is longer: small against any partition.
const AHEAD_BYTES: usize = 64 << 10;

/// How often a refused allocation is repeated while other clients may have pinned the memory that it needs.
pub(super) const ATTEMPTS: u32 = 200;

/// A batch under way.
pub(super) struct Batch<'b, 'c, D: RingKind, R> {
    pub(super) client: &'c mut Client<D>,
    pub(super) scratch: &'c mut Scratch,
    pub(super) now: Time,
    pub(super) requests: &'b [Request<'b>],
    pub(super) calls: Calls<'b>,
    pub(super) replies: &'c mut R,
    /// Requests whose replies the caller has.
    pub(super) delivered: usize,
    /// How often the next one was tried without success.
    pub(super) attempts: u32,
}

/// The result of an attempt to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Moved,
    Stuck,
}

impl<'b, 'c, D: RingKind, R: Replies<CpValue<D>>> Batch<'b, 'c, D, R> {
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
        // Sends the references that were given back last.
        batch.flush();
        batch.client.count(requests.len(), &batch.scratch.active);
    }

    fn flush(&mut self) {
        for &number in &self.scratch.active {
            self.client.flush_waiting(number);
        }
    }

    /// Takes the answers of a lane that have arrived.
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
                (&ReplyState::Hit(element), _) => prefetch(memory, element),
                (ReplyState::Called, Plan::Execute(call)) => {
                    // SAFETY: it was answered.
                    match unsafe { self.calls.outcome(call) } {
                        Outcome::Done(Reply::OutOfMemory) => slot = ReplyState::Short,
                        Outcome::Draft(draft) => {
                            let Request { key, op } = &self.requests[index as usize];
                            draft.fill(memory, key, op);
                            slot = ReplyState::Drafted(draft);
                        }
                        _ => lane.open.retain(|&open| open != index),
                    }
                }
                _ => {}
            }
            slots[index as usize] = slot;
            step = Step::Moved;
        }
        step
    }

    /// Sends the messages of a lane that can be sent now.
    fn issue(&mut self, number: usize) -> Step {
        let mut step = self.send_drafts(number);
        while self.ask_for_room(number) == Step::Moved || self.send_effect(number) == Step::Moved {
            step = Step::Moved;
        }
        step
    }

    /// Sends again the calls whose drafts are filled.
    fn send_drafts(&mut self, number: usize) -> Step {
        let mut step = Step::Stuck;
        for at in 0..self.scratch.lanes[number].open.len() {
            let index = self.scratch.lanes[number].open[at] as usize;
            if let (&ReplyState::Drafted(draft), Plan::Execute(call)) =
                (&self.scratch.slots[index], self.scratch.plans[index])
            {
                // SAFETY: it was answered, and is sent below.
                unsafe { self.calls.set_draft(call, draft) };
                if !self.send_call(number, index, call) {
                    return step;
                }
                self.scratch.slots[index] = ReplyState::Open;
                step = Step::Moved;
            }
        }
        step
    }

    /// Requests room for the next store, if that is not too far ahead.
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
        if !fits
            || index >= self.delivered + self.client.shared.window
            || !self.allocate(number, index)
        {
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
        let message = PartitionRequest::Allocate {
            hash: request.key.hash(),
            key_len: request.key.bytes().len(),
            value_len: value_of(request).len(),
        };
        self.send(number, index, message, Awaited::Room)
    }

    /// Stages a message whose answer belongs to `index`; false if the ring has no room for it.
    fn send(
        &mut self,
        number: usize,
        index: usize,
        message: PartitionRequest,
        awaited: Awaited,
    ) -> bool {
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
        if index >= self.delivered + self.client.shared.window {
            return Step::Stuck;
        }
        if self.must_wait(lane, index) {
            return Step::Stuck;
        }
        let hash = self.requests[index].key.hash();
        let plan = self.scratch.plans[index];
        let sent = match (plan, &self.scratch.slots[index]) {
            (Plan::Get, _) => self.send(
                number,
                index,
                PartitionRequest::Lookup { hash },
                Awaited::Lookup,
            ),
            (Plan::Execute(call), _) => self.send_call(number, index, call),
            (_, &ReplyState::Room(element)) => {
                self.fill(index, element);
                self.send_store(number, index, element)
            }
            (_, &ReplyState::Filled(element)) => self.send_store(number, index, element),
            (_, ReplyState::TooLarge | ReplyState::OutOfMemory | ReplyState::Delivered) => true,
            // Its room has not arrived, or was refused.
            _ => false,
        };
        if !sent {
            return Step::Stuck;
        }
        let lane = &mut self.scratch.lanes[number];
        lane.next += 1;
        lane.gets += usize::from(matches!(plan, Plan::Get));
        if plan.takes_room() {
            lane.rooms -= 1;
            lane.room_bytes -= value_of(&self.requests[index]).len();
        } else if may_want_memory(&self.requests[index].op) {
            lane.open.push(index as u32);
        }
        Step::Moved
    }

    /// True if this request must not follow an earlier one of the same key yet: the earlier one is a call that may have
    /// to be repeated, or a get whose metadata are not read yet while this request would change them in place.
    fn must_wait(&self, lane: &Lane, index: usize) -> bool {
        let hash = self.requests[index].key.hash();
        let same_key = |&other: &u32| self.requests[other as usize].key.hash() == hash;
        let marks = matches!(self.requests[index].op, Op::Read(_)) && lane.gets > 0;
        let undelivered = |other: &&u32| **other as usize >= self.delivered;
        let sent = self.scratch.order[..lane.next].iter().rev();
        lane.open.iter().any(same_key) || marks && sent.take_while(undelivered).any(same_key)
    }

    fn send_call(&mut self, number: usize, index: usize, call: u32) -> bool {
        let call = self.calls.address(call);
        self.send(
            number,
            index,
            PartitionRequest::Call { call },
            Awaited::Call,
        )
    }

    /// Writes key and value into a store's room.
    fn fill(&mut self, index: usize, element: Element) {
        let request = &self.requests[index];
        let key = request.key.bytes();
        let memory = &self.client.shared.memory;
        memory.write(element, 0, key);
        memory.write(element, key.len(), value_of(request));
        self.scratch.slots[index] = ReplyState::Filled(element);
    }

    /// Sends the effect of a store whose room is filled. From then on the element belongs to the partition's owner.
    fn send_store(&mut self, number: usize, index: usize, element: Element) -> bool {
        let sent = match self.scratch.plans[index] {
            Plan::Publish(call) => {
                // SAFETY: the call's address has not been sent: this is the only message that carries it.
                unsafe { self.calls.set_element(call, element) };
                self.send_call(number, index, call)
            }
            _ => self.send(
                number,
                index,
                PartitionRequest::Ready { element },
                Awaited::Ready,
            ),
        };
        if sent {
            self.scratch.slots[index] = ReplyState::Open;
        }
        sent
    }

    /// If the next reply is missing because memory was short, tries again: other clients may have pinned the memory, or
    /// may have it.
    fn try_again(&mut self) -> Step {
        match self.scratch.slots.get(self.delivered) {
            Some(ReplyState::Refused | ReplyState::Short) => self.seek_memory(self.delivered),
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
            Reclaimed::Some | Reclaimed::NotWanted => false,
            Reclaimed::Nothing => !self.client.shared.evicts,
        };
        if hopeless || self.attempts > ATTEMPTS {
            let lane = &mut self.scratch.lanes[number];
            lane.open.retain(|&open| open as usize != index);
            self.scratch.slots[index] = ReplyState::OutOfMemory;
            self.client
                .run(number, self.now, Partition::count_out_of_memory);
            return Step::Moved;
        }
        if reclaimed != Reclaimed::Some {
            std::thread::yield_now();
        }
        let sent = match (&self.scratch.slots[index], self.scratch.plans[index]) {
            (ReplyState::Short, Plan::Execute(call)) => self.send_call(number, index, call),
            _ => self.allocate(number, index),
        };
        if !sent {
            return Step::Stuck;
        }
        self.scratch.slots[index] = ReplyState::Open;
        Step::Moved
    }
}
