//! The delivery of a batch: replies go out in the order of the batch, and references are given back.

use nuthatch_base::sync::ring::RingKind;

use super::batch::{Batch, COPY_MAX, Step};
use super::lane::{Plan, ReplyState, answered, partition_of, value_of};
use super::message::PartitionRequest;
use super::value::CpValue;
use nuthatch_engine::reply::{Item, Replies, Reply};
use nuthatch_partition::{Element, Outcome};

impl<D: RingKind, R: Replies<CpValue<D>>> Batch<'_, '_, D, R> {
    /// Copies the elements that this batch has pinned, and gives the references back.
    pub(super) fn copy_out(&mut self) {
        for index in self.delivered..self.requests.len() {
            let ReplyState::Hit(element) = self.scratch.slots[index] else {
                continue;
            };
            self.scratch.slots[index] = match self.found(index, element) {
                Some(item) => {
                    let key_len = self.requests[index].key.bytes().len();
                    let memory = &self.client.shared.memory;
                    let value = memory.to_vec(element, key_len, item.value_len);
                    ReplyState::Copied(Box::new((item, value)))
                }
                None => ReplyState::Miss,
            };
            self.release(index, element);
        }
    }

    fn release(&mut self, index: usize, element: Element) {
        let number = partition_of(&self.requests[index], self.client.channels.len());
        let message = PartitionRequest::Release { element };
        self.client.put_waiting(number, self.now, message);
    }

    /// Delivers the next replies in the order of the batch.
    pub(super) fn deliver(&mut self) -> Step {
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

    /// Delivers one reply; false if it has not arrived. The slot is emptied when its reference gets another owner, so
    /// that no reference is lost if the caller's code panics.
    fn deliver_one(&mut self, index: usize) -> bool {
        match &mut self.scratch.slots[index] {
            ReplyState::Open
            | ReplyState::Room(_)
            | ReplyState::Filled(_)
            | ReplyState::Refused
            | ReplyState::Short
            | ReplyState::Drafted(_) => {
                return false;
            }
            &mut ReplyState::Hit(element) => self.deliver_hit(index, element),
            ReplyState::Several(elements) => {
                let elements = std::mem::take(elements);
                self.choose(index, elements);
                return false;
            }
            ReplyState::Copied(copied) => {
                let (item, value) = std::mem::take(&mut **copied);
                self.deliver_copy(index, &item, value);
            }
            &mut ReplyState::Stored(cas) => {
                let value_len = value_of(&self.requests[index]).len();
                let item = Item {
                    value_len,
                    cas,
                    ..Item::default()
                };
                self.replies.done(index, Reply::Stored(item));
            }
            ReplyState::Called => self.deliver_outcome(index),
            ReplyState::Miss | ReplyState::Delivered => self.replies.done(index, Reply::Miss),
            ReplyState::TooLarge => self.replies.done(index, Reply::TooLarge),
            ReplyState::OutOfMemory => self.replies.done(index, Reply::OutOfMemory),
        }
        self.scratch.slots[index] = ReplyState::Delivered;
        true
    }

    /// A lookup's element: the key decides whether it is a hit.
    fn deliver_hit(&mut self, index: usize, element: Element) {
        match self.found(index, element) {
            Some(item) => self.give(index, element, &item),
            None => {
                self.replies.done(index, Reply::Miss);
                self.release(index, element);
            }
        }
    }

    /// The item of a lookup's element, if it is this request's.
    fn found(&self, index: usize, element: Element) -> Option<Item> {
        let memory = &self.client.shared.memory;
        if !memory.has_key(element, self.requests[index].key.bytes()) {
            return None;
        }
        let item = memory.item(element, self.now);
        // Its owner found it alive. If another client has given it an earlier expiry since, this request takes effect
        // after that.
        (!item.expiry.is_past(self.now)).then_some(item)
    }

    fn deliver_outcome(&mut self, index: usize) {
        let (Plan::Execute(call) | Plan::Publish(call)) = self.scratch.plans[index] else {
            return;
        };
        // SAFETY: it was answered.
        match unsafe { self.calls.outcome(call) } {
            Outcome::Done(reply) => self.replies.done(index, reply),
            Outcome::Value(element, item) => self.give(index, element, &item),
            // Its state is `Drafted` then, not `Called`.
            Outcome::Draft(_) => {}
        }
    }

    /// Hands out the value of a pinned element.
    fn give(&mut self, index: usize, element: Element, item: &Item) {
        let key_len = self.requests[index].key.bytes().len();
        let shared = &self.client.shared;
        if item.value_len > COPY_MAX {
            let number = partition_of(&self.requests[index], shared.partitions.len());
            let value = CpValue::pinned(shared, number, element);
            self.scratch.slots[index] = ReplyState::Delivered;
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
        self.scratch.slots[index] = ReplyState::Miss;
        for element in elements {
            let memory = &self.client.shared.memory;
            if memory.has_key(element, self.requests[index].key.bytes()) {
                self.scratch.slots[index] = ReplyState::Hit(element);
            } else {
                self.release(index, element);
            }
        }
    }
}

/// After this, in any case, nothing is under way: no call's address, no reference.
impl<D: RingKind, R> Drop for Batch<'_, '_, D, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abandon();
        }
        self.scratch.clear();
    }
}

impl<D: RingKind, R> Batch<'_, '_, D, R> {
    /// The caller's code panicked: waits for all answers under way, and drops their results.
    #[cold]
    fn abandon(&mut self) {
        let active = self.scratch.active.clone();
        for &number in &active {
            while let Some((awaited, index)) = self.scratch.lanes[number].awaited.pop_front() {
                let Some(word) = self.client.receive_waiting(number) else {
                    // The partition's owner panicked: no thread uses the calls any more.
                    self.scratch.lanes[number].awaited.clear();
                    break;
                };
                self.scratch.slots[index as usize] = answered(awaited, word);
            }
        }
        for index in self.delivered..self.requests.len() {
            let elements = match (&self.scratch.slots[index], self.scratch.plans[index]) {
                (
                    &(ReplyState::Room(element)
                    | ReplyState::Filled(element)
                    | ReplyState::Hit(element)),
                    _,
                ) => [Some(element), None],
                (&ReplyState::Drafted(draft), _) => [Some(draft.source), Some(draft.made)],
                (ReplyState::Called, Plan::Execute(call) | Plan::Publish(call)) => {
                    // SAFETY: it was answered.
                    match unsafe { self.calls.outcome(call) } {
                        Outcome::Value(element, _) => [Some(element), None],
                        Outcome::Draft(draft) => [Some(draft.source), Some(draft.made)],
                        Outcome::Done(_) => continue,
                    }
                }
                _ => continue,
            };
            let number = partition_of(&self.requests[index], self.client.channels.len());
            for element in elements.into_iter().flatten() {
                self.client.shared.partitions[number].give_back(element);
            }
        }
    }
}
