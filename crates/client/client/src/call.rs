//! A call: what waits for replies.

use std::sync::PoisonError;
use std::task::Waker;

use crate::Error;
use crate::sync::{Mutex, MutexGuard, Thread, current};
use crate::wire::Reply;

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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    replies: Vec<Reply>,
    outcome: Option<Result<(), Error>>,
    is_abandoned: bool,
    waiter: Option<Waiter>,
}

impl Call {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reply came. Returns who waits for the call if it was the last one.
    pub fn answer(&self, reply: Reply, is_last: bool) -> Option<Waiter> {
        let mut state = self.state();
        if state.is_abandoned {
            return None;
        }
        state.replies.push(reply);
        if !is_last {
            return None;
        }
        state.outcome = Some(Ok(()));
        state.waiter.take()
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

    /// Nobody wants the replies any more: they are dropped as they come.
    pub fn abandon(&self) {
        let mut state = self.state();
        *state = State {
            is_abandoned: true,
            ..State::default()
        };
    }
}

impl State {
    fn take(&mut self) -> Option<Result<Vec<Reply>, Error>> {
        let outcome = self.outcome.take()?;
        let replies = std::mem::take(&mut self.replies);
        Some(outcome.map(|()| replies))
    }
}
