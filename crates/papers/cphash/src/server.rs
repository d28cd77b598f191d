//! A server thread: serves the partitions whose leases it holds, and nothing else.
//!
//! It goes from partition to partition and from client to client, takes up to a ring full of lines from each, and
//! publishes the answers before it goes on. Between two partitions it checks whether another thread is to own one.
//! After some time without work it sleeps until a client, the controller or the end of the engine wakes it.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use nuthatch_base::sync::lease::LeaseGuard;
use nuthatch_base::sync::ring::{Line, Receiver, RingKind, WORDS};
use nuthatch_base::sync::wait::fence_before_wake;

use super::count::{COUNTS, Count};
use super::lane::prefetch;
use super::message::{Answer, Messages, PartitionRequest, encode_cas};
use super::shared::{ClientRing, Served, Shared, SharedPartition};
use nuthatch_engine::counters::Counters;
use nuthatch_engine::reply::Reply;
use nuthatch_engine::request::Store;
use nuthatch_partition::Partition;

/// Lines taken from a client before the next one's turn: as many as may be under way.
const LINES_A_TURN: usize = 8;

/// Sweeps with work between two looks at the clock for the controller.
const SWEEPS_A_LOOK: u32 = 64;

/// One server thread.
struct Server<'s, D: RingKind> {
    shared: &'s Shared<D>,
    me: u32,
    /// The leases that this thread holds, by partition.
    held: Vec<Option<LeaseGuard<'s, Served<D>>>>,
    counters: Arc<Counters<COUNTS>>,
    sweeps: u32,
    /// The moment up to which time has been counted.
    since: Instant,
}

/// Informs the clients if the thread panics, once it has released its leases.
struct Alarm<'s, D: RingKind>(&'s Shared<D>, Option<u32>);

impl<D: RingKind> Drop for Alarm<'_, D> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.raise_alarm(self.1);
        }
    }
}

/// Serves until the engine ends.
pub(super) fn run<D: RingKind>(shared: &Shared<D>, me: u32) {
    let _alarm = Alarm(shared, Some(me));
    Server::new(shared, me).run();
}

impl<'s, D: RingKind> Server<'s, D> {
    fn new(shared: &'s Shared<D>, me: u32) -> Self {
        Self {
            shared,
            me,
            held: shared.partitions.iter().map(|_| None).collect(),
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
        for (number, place) in self.shared.partitions.iter().enumerate() {
            let held = &mut self.held[number];
            if held.is_none() {
                if place.lease.owner() != self.me {
                    continue;
                }
                *held = place.lease.take(self.me);
            }
            let Some(served) = held else { continue };
            messages += serve(place, served);
            if place.lease.is_called_away(self.me)
                && let Some(lease) = held.take()
            {
                let next = place.lease.hand_over(lease);
                self.counters.add(Count::HandOvers as usize, 1);
                fence_before_wake();
                self.shared.wake(next);
            }
        }
        messages
    }

    /// Waits until there is work. A thread releases its leases while it sleeps, if clients may serve themselves
    /// meanwhile.
    fn rest(&mut self) {
        let (shared, me) = (self.shared, self.me);
        let owning = self.held.iter().any(Option::is_some);
        let mut asleep = None;
        let held = RefCell::new(&mut self.held);
        let ready = || {
            let held = held.borrow();
            let any = shared.partitions.iter().zip(held.iter());
            let any = any.into_iter().any(|(place, held)| match held {
                Some(served) => place.lease.is_called_away(me) || place.has_work(served),
                None => place.lease.owner() == me,
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
        // A thread that owns nothing was not needed.
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

/// Serves a partition whose owner sleeps, as its owner would. Returns how many messages there were, or `None` if
/// another thread has taken the lease.
pub(super) fn stand_in<D: RingKind>(shared: &Shared<D>, partition: usize) -> Option<usize> {
    let _alarm = Alarm(shared, None);
    let place = &shared.partitions[partition];
    let mut served = place.lease.borrow()?;
    Some(serve(place, &mut served))
}

/// Serves all clients of a partition. Returns how many messages there were.
fn serve<D: RingKind>(place: &SharedPartition<D>, served: &mut Served<D>) -> usize {
    if place.has_requests(served) {
        place.take_requests(served);
    }
    let Served {
        partition,
        start,
        look_ahead,
        clients,
        ..
    } = served;
    let mut messages = 0;
    let mut left = false;
    for client_ring in clients.iter_mut() {
        let mut taken = 0;
        for _ in 0..LINES_A_TURN {
            let Some(line) = client_ring.receiver.take() else {
                break;
            };
            if *look_ahead {
                load_ahead(partition, &line, *start);
            }
            for message in Messages::new(&line, *start) {
                taken += 1;
                serve_message(partition, client_ring, message);
            }
        }
        if taken > 0 {
            client_ring.receiver.publish();
            client_ring.called = true;
            left |= client_ring.left;
            messages += taken;
        }
    }
    if messages > 0 {
        fence_before_wake();
        for client_ring in clients.iter_mut() {
            if std::mem::take(&mut client_ring.called) {
                client_ring.event.wake();
            }
        }
    }
    if left {
        clients.retain(|client_ring| !client_ring.left);
    }
    messages
}

/// Serves one message.
#[inline]
fn serve_message<D: RingKind>(
    partition: &mut Partition,
    client_ring: &mut ClientRing<D>,
    message: PartitionRequest,
) {
    let answer = match message {
        PartitionRequest::Lookup { hash } => lookup(partition, client_ring, hash),
        PartitionRequest::Allocate {
            hash,
            key_len,
            value_len,
        } => match partition.insert(client_ring.now, hash, key_len, value_len) {
            Ok(element) => Answer::Element(element),
            Err(Reply::TooLarge) => Answer::TooLarge,
            Err(_) => Answer::OutOfMemory,
        },
        PartitionRequest::Ready { element } => {
            let reply = partition.publish(client_ring.now, element, &Store::set(b""));
            let cas = match reply {
                Reply::Stored(item) => Some(item.cas),
                _ => None,
            };
            return client_ring.receiver.answer(encode_cas(cas));
        }
        PartitionRequest::Release { element } => return partition.decref(element),
        PartitionRequest::Call { call } => {
            // SAFETY: the address came in a message of a client that has no answer yet: the next line of code gives it.
            unsafe { call.run(partition) };
            Answer::Done
        }
        PartitionRequest::Now { now } => {
            client_ring.now = now;
            return;
        }
        PartitionRequest::Leave => {
            client_ring.left = true;
            Answer::Done
        }
    };
    client_ring.receiver.answer(answer.encode());
}

/// Starts loading what a line's messages will need, so that their misses overlap: buckets first, then the elements in
/// them, then their neighbours in the order of use. For a ready it is the element's header and the key, which its
/// client has written.
fn load_ahead(partition: &Partition, line: &Line, start: u64) {
    let mut hashes = [0; WORDS];
    let mut count = 0;
    for message in Messages::new(line, start) {
        if let Some(hash) = message.hash() {
            partition.prefetch_bucket(hash);
            hashes[count] = hash;
            count += 1;
        } else if let PartitionRequest::Ready { element } = message {
            prefetch(partition.memory(), element);
        }
    }
    for load in [Partition::prefetch_header, Partition::prefetch_neighbours] {
        for &hash in &hashes[..count] {
            load(partition, hash);
        }
    }
}

/// A lookup by the hash alone. The client compares the key; where two keys with this hash have ever been in the table,
/// it gets all elements with it.
fn lookup<D: RingKind>(
    partition: &mut Partition,
    client_ring: &ClientRing<D>,
    hash: u64,
) -> Answer {
    if partition.has_hash_collisions() {
        let mut elements = partition.lookup_all(client_ring.now, hash);
        if elements.len() > 1 {
            return Answer::Several(elements);
        }
        return elements.pop().map_or(Answer::Miss, Answer::Element);
    }
    match partition.lookup(client_ring.now, hash) {
        Some(element) => Answer::Element(element),
        None => Answer::Miss,
    }
}
