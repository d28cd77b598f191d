//! The state that server threads and clients share.

use std::sync::Arc;
use std::time::Instant;

use nuthatch_base::hash::split;
use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::lease::Lease;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::ring::{Receiver, RingKind};
use nuthatch_base::sync::shim::{AtomicU32, AtomicUsize, Ordering};
use nuthatch_base::sync::wait::{Event, fence_before_wake};

use nuthatch_engine::counters::Registry;
use nuthatch_partition::{BlockMemory, Element, Partition};

use super::config::CpHashConfig;
use super::control::{self, Controller, EPOCH, Sample};
use super::count::{COUNTS, Count};

/// The state that the engine, its server threads and its clients share.
pub(super) struct Shared<D: RingKind> {
    pub memory: Arc<BlockMemory>,
    pub partitions: Box<[SharedPartition<D>]>,
    pub servers: Box<[Inbox]>,
    /// The number of server threads that may own partitions now: the first ones.
    pub active: AtomicUsize,
    /// 1: the server threads end.
    pub stop: AtomicU32,
    /// 1: a server thread panicked, and its partitions have no owner.
    pub broken: AtomicU32,
    /// False: nothing is evicted to make room.
    pub evicts: bool,
    /// Clients serve themselves while a partition's owner sleeps.
    pub self_service: bool,
    /// Requests that a client may have under way at a time, answered or not.
    pub window: usize,
    pub counters: Registry<COUNTS>,
    /// The events at which the clients sleep.
    clients: Mutex<Vec<Arc<Event>>>,
    adaptation: Mutex<Adaptation>,
    /// The partition that maintenance looks at next.
    next: AtomicUsize,
}

/// The part of a server thread that other threads access.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Inbox {
    /// The event at which it sleeps.
    pub event: Event,
    /// 1: it has panicked.
    dead: AtomicU32,
}

/// The state for the decision how many server threads own partitions.
struct Adaptation {
    controller: Controller,
    /// The start of the epoch, and the counters at that moment.
    since: Instant,
    sums: [u64; COUNTS],
}

/// The shared part of a partition.
#[repr(align(64))]
pub(super) struct SharedPartition<D: RingKind> {
    pub lease: Lease<Served<D>>,
    /// Counts the owner's work besides rings: joining clients and returned references.
    requests: AtomicU32,
    joining: Mutex<Vec<ClientRing<D>>>,
    /// References that were dropped by threads without a ring.
    returns: Mutex<Vec<Element>>,
}

/// A partition and the rings of its clients. Only its owner has access.
pub(super) struct Served<D: RingKind> {
    pub partition: Partition,
    /// The least hash of the partition.
    pub start: u64,
    /// What a line's messages need is loaded ahead of serving them.
    pub look_ahead: bool,
    pub clients: Vec<ClientRing<D>>,
    requests_taken: u32,
}

/// A client, from a partition's side.
pub(super) struct ClientRing<D: RingKind> {
    pub receiver: D::Receiver,
    /// The moment of its messages.
    pub now: Time,
    /// The event at which the client waits.
    pub event: Arc<Event>,
    /// True if it was served since it was last woken.
    pub called: bool,
    /// True if it has disconnected.
    pub left: bool,
}

impl<D: RingKind> ClientRing<D> {
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

impl<D: RingKind> SharedPartition<D> {
    /// A partition whose hashes begin at `start`, served with a look ahead or without.
    pub fn new(owner: u32, partition: Partition, start: u64, look_ahead: bool) -> Self {
        let served = Served {
            partition,
            start,
            look_ahead,
            clients: Vec::new(),
            requests_taken: 0,
        };
        Self {
            lease: Lease::new(owner, served),
            requests: AtomicU32::new(0),
            joining: Mutex::new(Vec::new()),
            returns: Mutex::new(Vec::new()),
        }
    }

    /// Adds a client. It is served once it has sent a message and woken the owner.
    pub fn welcome(&self, client_ring: ClientRing<D>) {
        self.joining.lock().push(client_ring);
        self.post();
    }

    /// Returns a dropped reference. This is not urgent for the owner, so it is not woken.
    pub fn give_back(&self, element: Element) {
        self.returns.lock().push(element);
        self.post();
    }

    fn post(&self) {
        // Release: pairs with the Acquire in `has_requests`; the requests themselves are under locks anyway.
        self.requests.fetch_add(1, Ordering::Release);
    }

    /// Owner: true if there are requests.
    #[inline]
    pub fn has_requests(&self, served: &Served<D>) -> bool {
        // Acquire: pairs with the Release in `post`.
        self.requests.load(Ordering::Acquire) != served.requests_taken
    }

    /// Owner: takes the requests.
    #[cold]
    pub fn take_requests(&self, served: &mut Served<D>) {
        // Acquire: as above. Requests posted after this are taken next time.
        served.requests_taken = self.requests.load(Ordering::Acquire);
        served.clients.append(&mut self.joining.lock());
        for element in self.returns.lock().drain(..) {
            served.partition.decref(element);
        }
    }

    /// Owner: true if there is work.
    #[inline]
    pub fn has_work(&self, served: &Served<D>) -> bool {
        self.has_requests(served)
            || served
                .clients
                .iter()
                .any(|client_ring| client_ring.receiver.has_line())
    }
}

impl<D: RingKind> Shared<D> {
    /// The state that `partitions` and the server threads of the configuration will share.
    pub fn new(
        memory: Arc<BlockMemory>,
        partitions: impl ExactSizeIterator<Item = Partition>,
        config: &CpHashConfig,
    ) -> Self {
        let count = partitions.len();
        let (min, max) = config.threads();
        let place = |(number, partition)| {
            let start = split::partition_start(number as u32, count as u32);
            let owner = control::owner(number, count, min);
            SharedPartition::new(owner, partition, start, config.look_ahead)
        };
        Self {
            memory,
            partitions: partitions.enumerate().map(place).collect(),
            servers: (0..max).map(|_| Inbox::default()).collect(),
            active: AtomicUsize::new(min),
            stop: AtomicU32::new(0),
            broken: AtomicU32::new(0),
            evicts: config.evicts,
            self_service: config.self_service(),
            window: config.window,
            counters: Registry::default(),
            clients: Mutex::new(Vec::new()),
            adaptation: Mutex::new(Adaptation {
                controller: Controller::new(min, max.min(count)),
                since: Instant::now(),
                sums: [0; COUNTS],
            }),
            next: AtomicUsize::new(0),
        }
    }

    /// The least hash of a partition.
    pub fn start(&self, partition: usize) -> u64 {
        split::partition_start(partition as u32, self.partitions.len() as u32)
    }

    /// Wakes a server thread, if it sleeps, so that it looks for what was announced.
    pub fn wake(&self, server: u32) {
        self.servers[server as usize].event.wake();
    }

    fn wake_all(&self) {
        fence_before_wake();
        for server in &self.servers {
            server.event.wake();
        }
    }

    /// Ends all server threads.
    pub fn stop(&self) {
        self.stop.store(1, Ordering::Relaxed);
        self.wake_all();
    }

    /// Notes that a server thread, or a client that served in its place, has panicked: no thread may wait for it.
    pub fn raise_alarm(&self, server: Option<u32>) {
        if let Some(server) = server {
            self.servers[server as usize]
                .dead
                .store(1, Ordering::Relaxed);
        }
        self.broken.store(1, Ordering::Relaxed);
        fence_before_wake();
        for client in &*self.clients.lock() {
            client.wake();
        }
    }

    /// A client joins.
    pub fn register(&self, event: &Arc<Event>) {
        self.clients.lock().push(Arc::clone(event));
    }

    /// A client leaves.
    pub fn unregister(&self, event: &Arc<Event>) {
        self.clients
            .lock()
            .retain(|other| !Arc::ptr_eq(other, event));
    }

    #[inline]
    pub fn is_stopping(&self) -> bool {
        // Relaxed: the caller reads nothing but the flag.
        self.stop.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub fn is_broken(&self) -> bool {
        // Relaxed: as above.
        self.broken.load(Ordering::Relaxed) != 0
    }

    /// True if the owner of a partition has panicked, or the client that served in its place.
    pub fn is_abandoned(&self, partition: usize) -> bool {
        let lease = &self.partitions[partition].lease;
        let dead = |server: u32| self.servers[server as usize].dead.load(Ordering::Relaxed) != 0;
        self.is_broken() && (lease.is_abandoned() || dead(lease.owner()))
    }

    /// The first of the next partitions to compare.
    pub fn next_sample(&self, count: usize) -> usize {
        // Relaxed: any start will do.
        self.next.fetch_add(count, Ordering::Relaxed) % self.partitions.len()
    }

    /// If an epoch is over, decides how many server threads own partitions.
    pub fn control(&self, now: Instant) {
        let Some(mut adaptation) = self.adaptation.try_lock() else {
            return;
        };
        let elapsed = now.duration_since(adaptation.since);
        if elapsed < EPOCH {
            return;
        }
        let sums = self.counters.sums();
        let before = std::mem::replace(&mut adaptation.sums, sums);
        adaptation.since = now;
        // The engine rested in between: the epoch gives no information.
        if elapsed > 3 * EPOCH {
            return;
        }
        let rise = |count: Count| (sums[count as usize] - before[count as usize]) as f64;
        let active = self.active.load(Ordering::Relaxed);
        let threads = adaptation.controller.decide(Sample {
            rate: rise(Count::Served) / elapsed.as_secs_f64(),
            busy: rise(Count::BusyNanos) / elapsed.as_nanos() as f64 / active as f64,
        });
        if threads != active {
            self.share_out(threads);
        }
    }

    /// Makes the first so many server threads the owners of all partitions.
    pub fn share_out(&self, threads: usize) {
        // Relaxed: a statistic.
        self.active.store(threads, Ordering::Relaxed);
        for (number, place) in self.partitions.iter().enumerate() {
            let owner = control::owner(number, self.partitions.len(), threads);
            place.lease.assign(owner);
        }
        self.wake_all();
    }
}
