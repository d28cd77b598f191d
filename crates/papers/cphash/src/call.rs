//! Calls: operations that lie in the client's stack frame. A partition's owner carries them out there.
//!
//! Every operation except a plain get and a plain set is a call: the message is the address of a [`Call`]. The client
//! neither touches nor moves the call before it has the answer, and waits for the answer even when it panics, so the
//! address stays valid for as long as the owner may use it.

use std::cell::UnsafeCell;

use nuthatch_base::sync::clock::Time;

use nuthatch_engine::reply::Reply;
use nuthatch_engine::request::{Request, Store};
use nuthatch_partition::{Draft, Element, Outcome, Partition};

/// The task of a call.
pub(super) enum Task<'a> {
    /// A request; an element that it returns is pinned for the client. The draft is the one that the request made
    /// before, and is filled.
    Execute(Request<'a>, Option<Draft>),
    /// A store whose key and value the client has written into this element.
    Publish(Option<Element>, Store<'a>),
    /// Anything else.
    Run(&'a mut (dyn FnMut(&mut Partition) + Send)),
}

/// A task and its result.
pub(super) struct Call<'a> {
    now: Time,
    task: Task<'a>,
    outcome: Outcome,
}

/// The address of a call, as a message carries it: a number, not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address(u64);

impl<'a> Call<'a> {
    /// A call for a task at `now`.
    pub fn new(now: Time, task: Task<'a>) -> Self {
        Self {
            now,
            task,
            outcome: Outcome::Done(Reply::Miss),
        }
    }

    /// Owner: carries the task out.
    fn run(&mut self, partition: &mut Partition) {
        self.outcome = match &mut self.task {
            Task::Execute(Request { key, op }, draft) => {
                let outcome = match draft.take() {
                    None => partition.execute(self.now, key, op),
                    Some(draft) => partition.finish(self.now, key, op, draft),
                };
                partition.pin_value(outcome)
            }
            Task::Publish(Some(element), store) => {
                Outcome::Done(partition.publish(self.now, *element, store))
            }
            Task::Publish(None, _) => Outcome::Done(Reply::OutOfMemory),
            Task::Run(work) => {
                work(partition);
                Outcome::Done(Reply::Removed)
            }
        };
    }
}

/// The calls of a batch. None moves once its address is known.
#[derive(Default)]
pub(super) struct Calls<'a>(Vec<UnsafeCell<Call<'a>>>);

impl<'a> Calls<'a> {
    /// Adds a call, before any address is taken.
    pub fn push(&mut self, call: Call<'a>) {
        self.0.push(UnsafeCell::new(call));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The address of a call. After this no call may be added.
    pub fn address(&self, call: u32) -> Address {
        Address::of(&self.0[call as usize])
    }

    /// Sets the element to publish.
    ///
    /// # Safety
    /// The call's address was not sent yet.
    pub unsafe fn set_element(&self, call: u32, filled: Element) {
        // SAFETY: no other thread has the call's address; this thread has no other reference to it.
        if let Task::Publish(element, _) = unsafe { &mut (*self.0[call as usize].get()).task } {
            *element = Some(filled);
        }
    }

    /// Sets the draft to finish.
    ///
    /// # Safety
    /// The call was answered, and its address was not sent since.
    pub unsafe fn set_draft(&self, call: u32, filled: Draft) {
        // SAFETY: no other thread looks at the call; this thread has no other reference to it.
        if let Task::Execute(_, draft) = unsafe { &mut (*self.0[call as usize].get()).task } {
            *draft = Some(filled);
        }
    }

    /// The result of a call.
    ///
    /// # Safety
    /// The call was answered.
    pub unsafe fn outcome(&self, call: u32) -> Outcome {
        // SAFETY: the owner's accesses lie before its answer.
        unsafe { (*self.0[call as usize].get()).outcome }
    }
}

impl Address {
    /// The address of a call that does not move until it is answered, and is not touched meanwhile.
    pub fn of(call: &UnsafeCell<Call<'_>>) -> Self {
        Self(std::ptr::from_ref(call).expose_provenance() as u64)
    }

    /// The address as a number of 48 bits or so.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The address with this number, as [`Address::number`] returned it.
    pub fn of_number(number: u64) -> Option<Self> {
        (number != 0).then_some(Self(number))
    }

    /// Owner: carries out the call at this address.
    ///
    /// # Safety
    /// The address came in a message of a client that has no answer to it yet.
    pub unsafe fn run(self, partition: &mut Partition) {
        let call = std::ptr::with_exposed_provenance_mut::<Call<'_>>(self.0 as usize);
        // SAFETY: the client keeps the call alive, in its place and untouched until it has the
        // answer, and the ring's Release and Acquire order its accesses before ours and ours before
        // its next. So the reference is unique, and the lifetimes within have not ended.
        unsafe { (*call).run(partition) };
    }
}
