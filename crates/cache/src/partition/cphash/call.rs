//! What a client leaves in its own frame for the owner of a partition to carry out.
//!
//! Everything but a plain get and a plain set goes this way: the message is the address of a [`Call`].
//! The client neither touches nor moves the call before it has the answer, and waits for it even when
//! it panics, so the address stays good for as long as the owner may use it.

use std::ptr::NonNull;

use nuthatch_sync::clock::Time;

use crate::partition::element::Element;
use crate::partition::operate::Outcome;
use crate::partition::table::Partition;
use crate::reply::Reply;
use crate::request::{Request, Store};

/// What to do.
pub(super) enum Task<'a> {
    /// A request; an element that it returns is pinned for the client.
    Execute(Request<'a>),
    /// A store whose value the client has laid in this element.
    Publish(Element, Store<'a>),
    /// Anything else.
    Run(&'a mut (dyn FnMut(&mut Partition) + Send)),
}

/// A task and what came of it.
pub(super) struct Call<'a> {
    now: Time,
    task: Task<'a>,
    outcome: Outcome,
}

/// The address of a call, as a message carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address(NonNull<Call<'static>>);

impl<'a> Call<'a> {
    /// Something to be done at `now`.
    pub fn new(now: Time, task: Task<'a>) -> Self {
        Self {
            now,
            task,
            outcome: Outcome::Done(Reply::Miss),
        }
    }

    /// Where it lies. Only messages to the owners of partitions are made of it.
    pub fn address(&mut self) -> Address {
        Address(NonNull::from(self).cast())
    }

    /// What came of it, once it was answered.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Owner: does it.
    fn run(&mut self, partition: &mut Partition) {
        self.outcome = match &mut self.task {
            Task::Execute(request) => {
                let outcome = partition.execute(self.now, &request.key, &request.op);
                match outcome {
                    Outcome::Value(element, _) if !partition.pin(element) => {
                        Outcome::Done(Reply::OutOfMemory)
                    }
                    outcome => outcome,
                }
            }
            Task::Publish(element, store) => {
                Outcome::Done(partition.publish(self.now, *element, store))
            }
            Task::Run(work) => {
                work(partition);
                Outcome::Done(Reply::Removed)
            }
        };
    }
}

impl Address {
    /// As a number of 48 bits or so.
    pub fn number(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// The address that [`Address::number`] told.
    pub fn of_number(number: u64) -> Option<Self> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(number as usize)).map(Self)
    }

    /// Owner: does what is written there.
    ///
    /// # Safety
    /// The address came in a message of a client that has no answer to it yet.
    pub unsafe fn run(self, partition: &mut Partition) {
        // SAFETY: the client keeps the call alive, in its place and untouched until it has the answer,
        // and the ring's Release and Acquire order its accesses before ours and ours before its next.
        // So the reference is unique, and the lifetimes within have not ended.
        let call = unsafe { &mut *self.0.as_ptr() };
        call.run(partition);
    }
}
