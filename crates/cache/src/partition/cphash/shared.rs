//! What server threads and clients share.

use std::sync::Arc;

use nuthatch_sync::clock::Time;
use nuthatch_sync::ring::{Design, Receiver};
use nuthatch_sync::seat::Seat;
use nuthatch_sync::shim::{AtomicU32, AtomicUsize, Mutex, MutexGuard, Ordering};
use nuthatch_sync::wait::{Event, announce};

use crate::counters::Registry;
use crate::partition::element::Element;
use crate::partition::memory::Memory;
use crate::partition::table::Partition;

use super::count::COUNTS;

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
    pub counters: Registry<COUNTS>,
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
    /// It has said farewell.
    pub left: bool,
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
    /// Wakes the owners of these partitions, if they sleep, to see what was sent to them.
    pub fn wake_owners(&self, partitions: impl Iterator<Item = usize>) {
        announce();
        for partition in partitions {
            self.wake(self.places[partition].seat.owner());
        }
    }

    /// Wakes a server thread, if it sleeps, to see what was announced.
    pub fn wake(&self, server: u32) {
        self.servers[server as usize].wake();
    }

    pub fn wake_all(&self) {
        announce();
        for server in &self.servers {
            server.wake();
        }
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
}
