//! A call: what waits for replies.

use std::sync::PoisonError;
use std::task::Waker;

use crate::Error;
use crate::sync::{Mutex, MutexGuard, Thread, current};
use crate::wire::{Reply, Request};

/// Who waits.
#[derive(Clone, Debug)]
pub(crate) enum Waiter {
    /// A parked thread.
    Thread(Thread),
    /// A task.
    Task(Waker),
}

impl Waiter {
    /// The present thread.
    pub fn here() -> Self {
        Self::Thread(current())
    }

    /// Wakes it. It may find nothing to do.
    pub fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }

    /// Whether both wake the same.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Thread(one), Self::Thread(other)) => one.id() == other.id(),
            (Self::Task(one), Self::Task(other)) => one.will_wake(other),
            _ => false,
        }
    }
}

/// A call. It ends once: with the last reply, or with an error, or by being abandoned.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// The key of the place that the server may keep for who made the call: nobody else computes the value meanwhile.
    place: Option<Box<[u8]>>,
    state: Mutex<State>,
}

/// What became of a reply.
#[derive(Debug)]
pub(crate) enum Answered {
    /// The call has it. Who waits for the call is to be woken, if the reply was the last one.
    Taken(Option<Waiter>),
    /// It is dropped, for nobody wants it; and the place that the server keeps is to be given up.
    Dropped(Option<Place>),
}

/// A place that the server keeps for who computes its value.
#[derive(Debug)]
pub(crate) struct Place {
    pub key: Box<[u8]>,
    /// The number of the empty item there.
    pub cas: u64,
}

#[derive(Debug, Default)]
struct State {
    replies: Vec<Reply>,
    outcome: Option<Result<(), Error>>,
    is_abandoned: bool,
    waiter: Option<Waiter>,
}

impl Call {
    /// A call of these requests.
    pub fn of(requests: &[Request<'_>]) -> Self {
        let place = match requests {
            [request] => request.place().map(|key| key.bytes().into()),
            _ => None,
        };
        Self {
            place,
            ..Self::default()
        }
    }

    /// The place that the server keeps, as this reply says.
    fn place(&self, reply: &Reply) -> Option<Place> {
        let key = self.place.clone()?;
        let cas = reply.place()?;
        Some(Place { key, cas })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reply came.
    pub fn answer(&self, reply: Reply, is_last: bool) -> Answered {
        let mut state = self.state();
        if state.is_abandoned {
            return Answered::Dropped(self.place(&reply));
        }
        state.replies.push(reply);
        if !is_last {
            return Answered::Taken(None);
        }
        state.outcome = Some(Ok(()));
        Answered::Taken(state.waiter.take())
    }

    /// No more replies come. Returns who waits for the call.
    pub fn fail(&self, error: Error) -> Option<Waiter> {
        let mut state = self.state();
        state.outcome.get_or_insert(Err(error));
        state.waiter.take()
    }

    /// What the call came to, once. Until then, this one is to be woken when it ends.
    #[cfg(feature = "tokio")]
    pub fn take_or_wait(&self, waiter: Waiter) -> Option<Result<Vec<Reply>, Error>> {
        let mut state = self.state();
        let outcome = state.take();
        if outcome.is_none() {
            state.waiter = Some(waiter);
        }
        outcome
    }

    /// What the call came to, once.
    pub fn take(&self) -> Option<Result<Vec<Reply>, Error>> {
        self.state().take()
    }

    /// Who is to be woken when the call ends.
    pub fn wait(&self, waiter: Waiter) {
        self.state().waiter = Some(waiter);
    }

    /// Nobody is to be woken.
    pub fn wait_no_longer(&self) {
        self.state().waiter = None;
    }

    /// Who waits, if somebody does.
    pub fn waiter(&self) -> Option<Waiter> {
        self.state().waiter.clone()
    }

    /// Nobody wants the replies any more: they are dropped as they come. If they have come, returns the place that the
    /// server keeps.
    pub fn abandon(&self) -> Option<Place> {
        let mut state = self.state();
        let abandoned = std::mem::replace(
            &mut *state,
            State {
                is_abandoned: true,
                ..State::default()
            },
        );
        abandoned.replies.iter().find_map(|reply| self.place(reply))
    }
}

impl State {
    fn take(&mut self) -> Option<Result<Vec<Reply>, Error>> {
        let outcome = self.outcome.take()?;
        let replies = std::mem::take(&mut self.replies);
        Some(outcome.map(|()| replies))
    }
}
