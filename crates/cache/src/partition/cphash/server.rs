//! A server thread: serves the partitions whose seats it holds, and nothing else.
//!
//! It goes from partition to partition and from client to client, takes up to a ring full of lines
//! from each, and publishes the answers before it goes on. Between two partitions it looks whether
//! one is wanted elsewhere. When there was nothing to do for a while it sleeps until a client, the
//! controller or the end of the engine wakes it.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use nuthatch_sync::ring::{Design, Line, Receiver, WORDS};
use nuthatch_sync::seat::Held;
use nuthatch_sync::wait::announce;

use super::count::{COUNTS, Count};
use super::lane::prefetch;
use super::message::{Answer, Message, Messages, encode_cas};
use super::shared::{Place, Served, Shared, Visitor};
use crate::counters::Counters;
use crate::partition::Partition;
use crate::reply::Reply;
use crate::request::Store;

/// Lines taken from a client before the next has its turn: as many as may be under way.
const LINES_A_TURN: usize = 8;

/// Sweeps with work between two looks at the clock for the controller's sake.
const SWEEPS_A_LOOK: u32 = 64;

/// One server thread.
struct Server<'s, D: Design> {
    shared: &'s Shared<D>,
    me: u32,
    /// The seats that this thread holds, by partition.
    held: Vec<Option<Held<'s, Served<D>>>>,
    counters: Arc<Counters<COUNTS>>,
    sweeps: u32,
    /// Up to when time is counted.
    since: Instant,
}

/// Tells the clients if the thread panics, once it has let go of its seats.
struct Alarm<'s, D: Design>(&'s Shared<D>, Option<u32>);

impl<D: Design> Drop for Alarm<'_, D> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.raise_alarm(self.1);
        }
    }
}

/// Serves until the engine ends.
pub(super) fn run<D: Design>(shared: &Shared<D>, me: u32) {
    let _alarm = Alarm(shared, Some(me));
    Server::new(shared, me).run();
}

impl<'s, D: Design> Server<'s, D> {
    fn new(shared: &'s Shared<D>, me: u32) -> Self {
        Self {
            shared,
            me,
            held: shared.places.iter().map(|_| None).collect(),
            counters: shared.counters.register(),
            sweeps: 0,
            since: Instant::now(),
        }
    }

    fn run(mut self) {
        while !self.shared.is_stopping() {
            let served = self.sweep();
            if served == 0 {
                self.mark(Count::BusyNanos);
                self.rest();
                continue;
            }
            self.counters.add(Count::Served as usize, served as u64);
            self.sweeps += 1;
            if self.sweeps.is_multiple_of(SWEEPS_A_LOOK) {
                let now = self.mark(Count::BusyNanos);
                self.shared.control(now);
            }
        }
        self.shared.counters.unregister(&self.counters);
    }

    /// Serves each partition once. Returns how many messages there were.
    fn sweep(&mut self) -> usize {
        let mut messages = 0;
        for (number, place) in self.shared.places.iter().enumerate() {
            let held = &mut self.held[number];
            if held.is_none() {
                if place.seat.owner() != self.me {
                    continue;
                }
                *held = place.seat.take(self.me);
            }
            let Some(served) = held else { continue };
            messages += serve(place, served, self.shared.is_upper(number));
            if place.seat.is_called_away(self.me)
                && let Some(seat) = held.take()
            {
                let next = place.seat.hand_over(seat);
                self.counters.add(Count::HandOvers as usize, 1);
                announce();
                self.shared.wake(next);
            }
        }
        messages
    }

    /// Waits until there is something to do. A thread that sleeps gets up from its seats, if
    /// clients may serve themselves meanwhile.
    fn rest(&mut self) {
        let (shared, me) = (self.shared, self.me);
        let owning = self.held.iter().any(Option::is_some);
        let mut asleep = None;
        let held = RefCell::new(&mut self.held);
        let ready = || {
            let held = held.borrow();
            let any = shared.places.iter().zip(held.iter());
            let any = any.into_iter().any(|(place, held)| match held {
                Some(served) => place.seat.is_called_away(me) || place.has_work(served),
                None => place.seat.owner() == me,
            });
            any || shared.is_stopping()
        };
        let rise = || {
            asleep = Some(Instant::now());
            if shared.self_service {
                held.borrow_mut().fill_with(|| None);
            }
        };
        shared.servers[me as usize].event.doze(ready, rise);
        if let Some(asleep) = asleep {
            self.spend(Count::PollingNanos, asleep);
        }
        // A thread that owns nothing has nothing to sleep through.
        self.mark(match (asleep, owning) {
            (None, _) => Count::PollingNanos,
            (Some(_), true) => Count::SleepingNanos,
            (Some(_), false) => Count::UnneededNanos,
        });
    }

    /// Counts the time up to now, which it returns.
    fn mark(&mut self, count: Count) -> Instant {
        let now = Instant::now();
        self.spend(count, now);
        now
    }

    fn spend(&mut self, count: Count, now: Instant) {
        let spent = now.duration_since(self.since).as_nanos() as u64;
        self.counters.add(count as usize, spent);
        self.since = now;
    }
}

/// Serves a partition whose owner sleeps, as its owner would. Returns how many messages there were,
/// or nothing if somebody else has taken the seat.
pub(super) fn stand_in<D: Design>(shared: &Shared<D>, partition: usize) -> Option<usize> {
    let _alarm = Alarm(shared, None);
    let place = &shared.places[partition];
    let mut served = place.seat.borrow()?;
    Some(serve(place, &mut served, shared.is_upper(partition)))
}

/// Serves all clients of a partition. Returns how many messages there were.
fn serve<D: Design>(place: &Place<D>, served: &mut Served<D>, upper: bool) -> usize {
    if place.has_mail(served) {
        place.read_mail(served);
    }
    let Served {
        partition,
        visitors,
        ..
    } = served;
    let mut messages = 0;
    let mut left = false;
    for visitor in visitors.iter_mut() {
        let mut taken = 0;
        for _ in 0..LINES_A_TURN {
            let Some(line) = visitor.receiver.take() else {
                break;
            };
            taken += serve_line(partition, visitor, &line, upper);
        }
        if taken > 0 {
            visitor.receiver.publish();
            visitor.called = true;
            left |= visitor.left;
            messages += taken;
        }
    }
    if messages > 0 {
        announce();
        for visitor in visitors.iter_mut() {
            if std::mem::take(&mut visitor.called) {
                visitor.event.wake();
            }
        }
    }
    if left {
        visitors.retain(|visitor| !visitor.left);
    }
    messages
}

/// Serves one line.
fn serve_line<D: Design>(
    partition: &mut Partition,
    visitor: &mut Visitor<D>,
    line: &Line,
    upper: bool,
) -> usize {
    look_ahead(partition, line, upper);
    let mut messages = 0;
    for message in Messages::new(line, upper) {
        messages += 1;
        let answer = match message {
            Message::Lookup { hash } => lookup(partition, visitor, hash),
            Message::Allocate {
                hash,
                key_len,
                value_len,
            } => match partition.insert(visitor.now, hash, key_len, value_len) {
                Ok(element) => Answer::Element(element),
                Err(Reply::TooLarge) => Answer::TooLarge,
                Err(_) => Answer::OutOfMemory,
            },
            Message::Ready { element } => {
                let reply = partition.publish(visitor.now, element, &Store::set(b""));
                let cas = match reply {
                    Reply::Stored(item) => Some(item.cas),
                    _ => None,
                };
                visitor.receiver.answer(encode_cas(cas));
                continue;
            }
            Message::Release { element } => {
                partition.decref(element);
                continue;
            }
            Message::Call { call } => {
                // SAFETY: it came in a message of a client that has no answer yet: the next line
                // is.
                unsafe { call.run(partition) };
                Answer::Done
            }
            Message::Now { now } => {
                visitor.now = now;
                continue;
            }
            Message::Leave => {
                visitor.left = true;
                Answer::Done
            }
        };
        visitor.receiver.answer(answer.encode());
    }
    messages
}

/// Starts loading what a line's messages will need, so that their misses overlap: buckets first, then the
/// elements in them, then their neighbours in the order of use. Of an element that is ready it is the header
/// and the key, which its client has written.
fn look_ahead(partition: &Partition, line: &Line, upper: bool) {
    let mut hashes = [0; WORDS];
    let mut count = 0;
    for message in Messages::new(line, upper) {
        if let Some(hash) = message.hash() {
            partition.prefetch_bucket(hash);
            hashes[count] = hash;
            count += 1;
        } else if let Message::Ready { element } = message {
            prefetch(partition.memory(), element);
        }
    }
    for load in [Partition::prefetch_header, Partition::prefetch_neighbours] {
        for &hash in &hashes[..count] {
            load(partition, hash);
        }
    }
}

/// A lookup by the hash alone. The client compares the key; where two keys with this hash were ever
/// seen, it gets all that are there.
fn lookup<D: Design>(partition: &mut Partition, visitor: &Visitor<D>, hash: u64) -> Answer {
    if partition.has_twins() {
        let mut elements = partition.lookup_all(visitor.now, hash);
        if elements.len() > 1 {
            return Answer::Several(elements);
        }
        return elements.pop().map_or(Answer::Miss, Answer::Element);
    }
    match partition.lookup(visitor.now, hash) {
        Some(element) => Answer::Element(element),
        None => Answer::Miss,
    }
}
