//! What waits on one connection: bytes to be sent, and calls in the order of their replies. No I/O.
//!
//! Everything is under one lock, which is held for as long as it takes to copy a request or to hand out the replies of one read.
//!
//! Invariants:
//! 1. The calls of `pending` stand in the order in which their requests were added to `out`.
//! 2. A call in `pending` has no outcome. It leaves `pending` as it gets one.
//! 3. After `death` is set, `pending` is empty and stays so.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::call::{Answered, Call, Place, Waiter};
use crate::key::Key;
use crate::roles::Roles;
use crate::sync::{Mutex, MutexGuard};
use crate::wire::{Code, NO_META, Reply, Request};
use crate::{CarriedOut, Error, Options};

/// The queue of a connection.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    requests_max: usize,
    bytes_max: usize,
}

/// What is under the lock.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Bytes that nobody has taken yet to send them.
    out: Vec<u8>,
    /// How many bytes were ever added to `out`, and taken from it.
    added: u64,
    taken: u64,
    pending: VecDeque<Pending>,
    /// How many replies the calls of `pending` still need.
    requests: usize,
    /// When the last call was added.
    last: Option<Instant>,
    /// The number that the next request carries.
    opaque: u16,
    /// Who waits for room.
    room: Vec<Waiter>,
    death: Option<Arc<str>>,
    /// A command was answered. The greeting is none.
    has_answered: bool,
    /// Its oldest reply was too late.
    is_late: bool,
    /// Who sends and reads, where the callers' own threads do that.
    pub roles: Roles,
    /// Who sends, where a task does that.
    sender: Option<Waker>,
}

#[derive(Debug)]
struct Pending {
    call: Arc<Call>,
    /// How many replies it still needs.
    left: usize,
    /// The number that its next reply carries, if its replies have one.
    opaque: Option<u16>,
    /// Where its first byte is, counted from the first one ever added.
    begins: u64,
    since: Instant,
}

impl Queue {
    /// An empty one. A call of more requests than `requests_max` has to be alone.
    pub fn new(requests_max: usize, bytes_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            requests_max,
            bytes_max,
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call of these requests. None: there is no room.
    pub fn enter(
        &self,
        state: &mut State,
        requests: &[Request<'_>],
        now: Instant,
    ) -> Result<Option<Arc<Call>>, Error> {
        if let Some(reason) = &state.death {
            return Err(Error::Lost {
                reason: reason.clone(),
                carried_out: CarriedOut::No,
            });
        }
        let is_alone = state.requests == 0 && state.out.is_empty();
        let fits = state.requests + requests.len() <= self.requests_max
            && state.out.len() < self.bytes_max;
        if !is_alone && !fits {
            return Ok(None);
        }
        let before = state.out.len();
        let first = state.opaque;
        for request in requests {
            request.write(&mut state.out, state.opaque);
            state.opaque = state.opaque.wrapping_add(1);
        }
        let call = Arc::new(Call::of(requests));
        state.pending.push_back(Pending {
            call: call.clone(),
            left: requests.len(),
            opaque: requests.iter().all(Request::has_opaque).then_some(first),
            begins: state.added,
            since: now,
        });
        state.requests += requests.len();
        state.last = Some(now);
        state.added += (state.out.len() - before) as u64;
        if let Some(waker) = state.sender.take() {
            waker.wake();
        }
        Ok(Some(call))
    }

    /// Hands out replies in the order of their requests, and wakes whose call is through. An error: this cannot be the reply.
    pub fn deliver(&self, replies: &mut Vec<Reply>) -> Result<(), String> {
        let mut state = self.lock();
        state.roles.is_sleeping = false;
        let mut woken = Vec::new();
        let mut fault = Ok(());
        for reply in replies.drain(..) {
            match state.answer(reply) {
                Ok(Answered::Taken(waiter)) => woken.extend(waiter),
                Ok(Answered::Dropped(None)) => {}
                Ok(Answered::Dropped(Some(place))) => self.give_up(&mut state, &place),
                Err(reason) => {
                    fault = Err(reason);
                    break;
                }
            }
        }
        if state.requests < self.requests_max && state.out.len() < self.bytes_max {
            woken.append(&mut state.room);
        }
        drop(state);
        woken.into_iter().for_each(Waiter::wake);
        fault
    }

    /// Nobody wants the call's replies any more. Bytes may have to be sent then.
    pub fn abandon(&self, call: &Call) {
        if let Some(place) = call.abandon() {
            self.give_up(&mut self.lock(), &place);
        }
    }

    /// Gives up the place of a call that was abandoned, so that others need not wait for who computes. Where there is no room for
    /// the request, and on a connection that is over, the place ends by itself.
    fn give_up(&self, state: &mut State, place: &Place) {
        let Ok(key) = Key::new(&place.key) else {
            return;
        };
        let cas = Some(place.cas);
        let request = Request::Delete { key, cas };
        if let Ok(Some(call)) = self.enter(state, &[request], Instant::now()) {
            call.abandon();
        }
    }

    /// The connection is over: all calls fail, and no more are taken.
    pub fn die(&self, reason: &str) {
        let mut state = self.lock();
        if state.death.is_some() {
            return;
        }
        let reason: Arc<str> = reason.into();
        state.death = Some(reason.clone());
        let mut woken = std::mem::take(&mut state.room);
        let taken = state.taken;
        for pending in state.pending.drain(..) {
            let carried_out = if pending.begins < taken {
                CarriedOut::Maybe
            } else {
                CarriedOut::No
            };
            let reason = reason.clone();
            woken.extend(pending.call.fail(Error::Lost {
                reason,
                carried_out,
            }));
        }
        state.requests = 0;
        woken.extend(state.sender.take().map(Waiter::Task));
        drop(state);
        woken.into_iter().for_each(Waiter::wake);
    }

    /// Why the connection is to be ended, if its oldest reply is too late.
    pub fn too_late(&self, options: &Options) -> Option<String> {
        let mut state = self.lock();
        let late = state.oldest(Instant::now());
        let is_too_late = late > options.timeout.saturating_add(options.late_max);
        state.is_late |= is_too_late;
        is_too_late.then(|| format!("no reply for {} ms", late.as_millis()))
    }
}

impl State {
    /// Gives a reply to its call.
    fn answer(&mut self, reply: Reply) -> Result<Answered, String> {
        let Some(first) = self.pending.front_mut() else {
            return Err(format!("{} without a request", reply.code.in_words()));
        };
        first.check(&reply)?;
        self.has_answered |= first.opaque.is_some();
        first.left -= 1;
        let is_last = first.left == 0;
        let answered = first.call.answer(reply, is_last);
        self.requests -= 1;
        if is_last {
            self.pending.pop_front();
        }
        Ok(answered)
    }

    /// Exchanges the bytes to be sent for this empty buffer.
    pub fn take_output(&mut self, buffer: &mut Vec<u8>) {
        debug_assert!(buffer.is_empty());
        std::mem::swap(&mut self.out, buffer);
        self.taken = self.added;
    }

    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    pub fn is_dead(&self) -> bool {
        self.death.is_some()
    }

    /// Whether no call waits, and none was added for so long.
    pub fn is_idle(&self, now: Instant, time: Duration) -> bool {
        let last = self
            .last
            .is_some_and(|last| now.saturating_duration_since(last) >= time);
        last && self.pending.is_empty()
    }

    /// Whether a command was answered on this connection.
    pub fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Whether an answer was too late.
    pub fn was_late(&self) -> bool {
        self.is_late
    }

    /// The task that sends is to be woken when there is something to be sent, or the connection is over.
    #[cfg(feature = "tokio")]
    pub fn wake_sender(&mut self, waker: &Waker) {
        self.sender = Some(waker.clone());
    }

    /// This one is to be woken when there is room.
    pub fn wait_for_room(&mut self, waiter: Waiter) {
        if !self.room.iter().any(|other| other.is(&waiter)) {
            self.room.push(waiter);
        }
    }

    /// The first one of a line is to be woken when there is room. Who was that before it, has gone.
    #[cfg(feature = "tokio")]
    pub fn wait_first_for_room(&mut self, waiter: Waiter) {
        self.room.clear();
        self.room.push(waiter);
    }

    /// This one waits for room no longer.
    pub fn forget_room(&mut self, waiter: &Waiter) {
        self.room.retain(|other| !other.is(waiter));
    }

    /// Somebody who waits, for a reply or for room.
    pub fn somebody(&self) -> Option<Waiter> {
        let mut calls = self.pending.iter();
        calls
            .find_map(|pending| pending.call.waiter())
            .or_else(|| self.room.first().cloned())
    }

    /// For how long the oldest call has waited.
    fn oldest(&self, now: Instant) -> Duration {
        let oldest = self.pending.front();
        oldest.map_or(Duration::ZERO, |oldest| {
            now.saturating_duration_since(oldest.since)
        })
    }
}

impl Pending {
    /// Whether the reply can be one to this call. Its next reply then has the next number.
    fn check(&mut self, reply: &Reply) -> Result<(), String> {
        let Some(expected) = self.opaque.as_mut() else {
            return match reply.code {
                Code::Line(_) | Code::Stats(_) | Code::Nothing | Code::Refused(_) => Ok(()),
                _ => Err(format!("{} to an older command", reply.code.in_words())),
            };
        };
        let number = *expected;
        *expected = expected.wrapping_add(1);
        match (&reply.code, reply.details.opaque) {
            // It takes what follows the line, a value, for lines, too.
            (code, _) if code.is_unknown() => Err(NO_META.to_owned()),
            (Code::Line(_) | Code::Nothing, _) => {
                Err(format!("{} to a meta command", reply.code.in_words()))
            }
            // Only replies that say what was done, or found, surely bring the number back.
            (Code::Value(_) | Code::Done, None) => {
                Err("a reply without its request's number".to_owned())
            }
            (_, Some(other)) if other != number => Err(format!(
                "a reply to request {other:x} in place of {number:x}"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::wire::Details;

    fn enter(queue: &Queue, requests: usize) -> Option<Arc<Call>> {
        let requests = vec![Request::Nothing; requests];
        queue
            .enter(&mut queue.lock(), &requests, Instant::now())
            .unwrap()
    }

    fn replies(number: usize) -> Vec<Reply> {
        let reply = Reply {
            code: Code::Nothing,
            details: Details::default(),
        };
        vec![reply; number]
    }

    #[test]
    fn what_was_taken_may_have_been_carried_out() {
        let queue = Queue::new(10, 100);
        let sent = enter(&queue, 1).unwrap();
        queue.lock().take_output(&mut Vec::new());
        let waits = enter(&queue, 1).unwrap();
        queue.die("a test");
        let carried_out = |call: &Call| call.take().unwrap().unwrap_err().carried_out();
        assert_eq!(carried_out(&sent), CarriedOut::Maybe);
        assert_eq!(carried_out(&waits), CarriedOut::No);
        let refused = queue.enter(&mut queue.lock(), &[Request::Nothing], Instant::now());
        assert_eq!(refused.unwrap_err().carried_out(), CarriedOut::No);
    }

    #[test]
    fn there_is_room_for_so_many_requests_and_bytes() {
        let queue = Queue::new(3, 9);
        assert!(enter(&queue, 4).is_some(), "alone");
        assert!(enter(&queue, 1).is_none());
        queue.lock().take_output(&mut Vec::new());
        queue.deliver(&mut replies(2)).unwrap();
        assert!(enter(&queue, 1).is_some() && enter(&queue, 1).is_none());
        queue.deliver(&mut replies(3)).unwrap();
        queue.lock().take_output(&mut Vec::new());
        // 4 bytes each: a call finds room as long as fewer than 9 wait.
        assert!(enter(&queue, 2).is_some() && enter(&queue, 1).is_some());
        queue.deliver(&mut replies(2)).unwrap();
        assert!(enter(&queue, 1).is_none());
    }

    #[test]
    fn replies_go_to_calls_in_order_and_to_nobody_else() {
        let queue = Queue::new(10, 100);
        let (first, second) = (enter(&queue, 2).unwrap(), enter(&queue, 1).unwrap());
        queue.deliver(&mut replies(1)).unwrap();
        assert!(first.take().is_none() && second.take().is_none());
        first.abandon();
        queue.deliver(&mut replies(2)).unwrap();
        assert_eq!(second.take(), Some(Ok(replies(1))));
        assert!(queue.deliver(&mut replies(1)).is_err());
    }
}
