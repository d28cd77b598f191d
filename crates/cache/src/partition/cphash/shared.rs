//! What server threads and clients share.

use std::sync::Arc;
use std::time::Instant;

use nuthatch_sync::clock::Time;
use nuthatch_sync::ring::{Design, Receiver};
use nuthatch_sync::seat::Seat;
use nuthatch_sync::shim::{AtomicU32, AtomicUsize, Mutex, MutexGuard, Ordering};
use nuthatch_sync::wait::{Event, announce};

use crate::counters::Registry;
use crate::partition::{Element, Memory, Partition};

use super::control::{self, Controller, EPOCH, Sample};
use super::count::{COUNTS, Count};

/// What the engine, its server threads and its clients share.
pub(super) struct Shared<D: Design> {
    pub memory: Arc<Memory>,
    pub places: Box<[Place<D>]>,
    /// Where each server thread sleeps.
    pub servers: Box<[Event]>,
    /// Server threads that may own partitions now: the first so many.
    pub active: AtomicUsize,
    /// 1: the server threads end.
    pub stop: AtomicU32,
    /// 1: a server thread panicked, and its partitions are nobody's.
    pub broken: AtomicU32,
    /// False: nothing is evicted to make room.
    pub evicts: bool,
    pub counters: Registry<COUNTS>,
    /// Where each client sleeps.
    clients: Mutex<Vec<Arc<Event>>>,
    pilot: Mutex<Pilot>,
    /// The partition that maintenance looks at next.
    next: AtomicUsize,
}

/// Who decides how many server threads own partitions, and from what.
struct Pilot {
    controller: Controller,
    /// When the epoch began, and what the counters said then.
    since: Instant,
    sums: [u64; COUNTS],
}

/// A partition's place.
#[repr(align(64))]
pub(super) struct Place<D: Design> {
    pub seat: Seat<Served<D>>,
    /// What the owner has to look at besides rings: newcomers and returns, counted.
    mail: AtomicU32,
    newcomers: Mutex<Vec<Visitor<D>>>,
    /// References that were dropped where there was no ring.
    returns: Mutex<Vec<Element>>,
}

/// A partition and the rings of its clients: its owner's alone.
pub(super) struct Served<D: Design> {
    pub partition: Partition,
    pub visitors: Vec<Visitor<D>>,
    mail_read: u32,
}

/// A client as a partition sees it.
pub(super) struct Visitor<D: Design> {
    pub receiver: D::Receiver,
    /// The moment of its messages.
    pub now: Time,
    /// Where it waits.
    pub event: Arc<Event>,
    /// It was served since it was last woken.
    pub called: bool,
    /// It has said farewell.
    pub left: bool,
}

impl<D: Design> Visitor<D> {
    /// A client that waits at `event`.
    pub fn new(receiver: D::Receiver, event: Arc<Event>) -> Self {
        Self {
            receiver,
            now: Time::default(),
            event,
            called: false,
            left: false,
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<D: Design> Place<D> {
    pub fn new(owner: u32, partition: Partition) -> Self {
        let served = Served {
            partition,
            visitors: Vec::new(),
            mail_read: 0,
        };
        Self {
            seat: Seat::new(owner, served),
            mail: AtomicU32::new(0),
            newcomers: Mutex::new(Vec::new()),
            returns: Mutex::new(Vec::new()),
        }
    }

    /// A client comes. It is served once it has sent something and woken the owner.
    pub fn welcome(&self, visitor: Visitor<D>) {
        lock(&self.newcomers).push(visitor);
        self.post();
    }

    /// A reference is dropped. The owner need not hurry, so it is not woken.
    pub fn give_back(&self, element: Element) {
        lock(&self.returns).push(element);
        self.post();
    }

    fn post(&self) {
        // Release: pairs with the Acquire in `has_mail`; the letters lie under locks anyway.
        self.mail.fetch_add(1, Ordering::Release);
    }

    /// Owner: true if there is mail.
    #[inline]
    pub fn has_mail(&self, served: &Served<D>) -> bool {
        // Acquire: pairs with the Release in `post`.
        self.mail.load(Ordering::Acquire) != served.mail_read
    }

    /// Owner: reads it.
    #[cold]
    pub fn read_mail(&self, served: &mut Served<D>) {
        // Acquire: as above. What is posted after this is read next time.
        served.mail_read = self.mail.load(Ordering::Acquire);
        served.visitors.append(&mut lock(&self.newcomers));
        for element in lock(&self.returns).drain(..) {
            served.partition.decref(element);
        }
    }

    /// Owner: true if there is something to do.
    #[inline]
    pub fn has_work(&self, served: &Served<D>) -> bool {
        self.has_mail(served)
            || served
                .visitors
                .iter()
                .any(|visitor| visitor.receiver.has_line())
    }
}

impl<D: Design> Shared<D> {
    /// What `partitions` and `min` to `max` server threads will share.
    pub fn new(
        memory: Arc<Memory>,
        partitions: impl ExactSizeIterator<Item = Partition>,
        (min, max): (usize, usize),
        evicts: bool,
    ) -> Self {
        let count = partitions.len();
        let place = |(number, partition)| Place::new(control::owner(number, count, min), partition);
        Self {
            memory,
            places: partitions.enumerate().map(place).collect(),
            servers: (0..max).map(|_| Event::default()).collect(),
            active: AtomicUsize::new(min),
            stop: AtomicU32::new(0),
            broken: AtomicU32::new(0),
            evicts,
            counters: Registry::default(),
            clients: Mutex::new(Vec::new()),
            pilot: Mutex::new(Pilot {
                controller: Controller::new(min, max.min(count)),
                since: Instant::now(),
                sums: [0; COUNTS],
            }),
            next: AtomicUsize::new(0),
        }
    }

    /// Wakes the owners of these partitions, if they sleep, to see what was sent to them.
    pub fn wake_owners(&self, partitions: &[usize]) {
        announce();
        for &partition in partitions {
            self.wake(self.places[partition].seat.owner());
        }
    }

    /// Wakes a server thread, if it sleeps, to see what was announced.
    pub fn wake(&self, server: u32) {
        self.servers[server as usize].wake();
    }

    fn wake_all(&self) {
        announce();
        for server in &self.servers {
            server.wake();
        }
    }

    /// Ends all server threads.
    pub fn stop(&self) {
        self.stop.store(1, Ordering::Relaxed);
        self.wake_all();
    }

    /// A server thread panics: nobody shall wait for it.
    pub fn raise_alarm(&self) {
        self.broken.store(1, Ordering::Relaxed);
        announce();
        for client in &*lock(&self.clients) {
            client.wake();
        }
    }

    /// A client joins.
    pub fn register(&self, event: &Arc<Event>) {
        lock(&self.clients).push(Arc::clone(event));
    }

    /// A client leaves.
    pub fn unregister(&self, event: &Arc<Event>) {
        lock(&self.clients).retain(|other| !Arc::ptr_eq(other, event));
    }

    #[inline]
    pub fn is_stopping(&self) -> bool {
        // Relaxed: the flag is all there is to see.
        self.stop.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub fn is_broken(&self) -> bool {
        // Relaxed: as above.
        self.broken.load(Ordering::Relaxed) != 0
    }

    /// True if the owner of a partition has panicked.
    pub fn is_abandoned(&self, partition: usize) -> bool {
        self.is_broken() && self.places[partition].seat.is_abandoned()
    }

    /// Where to look next for partitions to compare.
    pub fn next_sample(&self, count: usize) -> usize {
        // Relaxed: where to begin does not matter.
        self.next.fetch_add(count, Ordering::Relaxed) % self.places.len()
    }

    /// If an epoch is over, decides how many server threads own partitions.
    pub fn control(&self, now: Instant) {
        let Ok(mut pilot) = self.pilot.try_lock() else {
            return;
        };
        let elapsed = now.duration_since(pilot.since);
        if elapsed < EPOCH {
            return;
        }
        let sums = self.counters.sums();
        let before = std::mem::replace(&mut pilot.sums, sums);
        pilot.since = now;
        // There was a rest in between: nothing can be learnt from it.
        if elapsed > 3 * EPOCH {
            return;
        }
        let rise = |count: Count| (sums[count as usize] - before[count as usize]) as f64;
        let active = self.active.load(Ordering::Relaxed);
        let threads = pilot.controller.decide(Sample {
            rate: rise(Count::Served) / elapsed.as_secs_f64(),
            busy: rise(Count::BusyNanos) / elapsed.as_nanos() as f64 / active as f64,
        });
        if threads != active {
            self.share_out(threads);
        }
    }

    /// Makes the first so many server threads the owners of all partitions.
    fn share_out(&self, threads: usize) {
        // Relaxed: for whoever asks.
        self.active.store(threads, Ordering::Relaxed);
        for (number, place) in self.places.iter().enumerate() {
            let owner = control::owner(number, self.places.len(), threads);
            place.seat.assign(owner);
        }
        self.wake_all();
    }
}
