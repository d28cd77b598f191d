//! Single flight: one caller computes a missing value, the others wait for it, threads and tasks alike.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};

use nuthatch_base::sync::mutex::Mutex;

/// Locks: many, so that flights of different keys seldom contend for one.
const SHARDS: usize = 64;

/// Computations under way, by key.
pub(crate) struct Flights {
    shards: [Mutex<Shard>; SHARDS],
}

type Shard = HashMap<Box<[u8]>, Arc<Flight>>;

/// One computation.
pub(crate) struct Flight {
    state: Mutex<State>,
}

struct State {
    outcome: Outcome,
    /// The thread that runs the computation at this moment.
    runner: Option<ThreadId>,
    /// The wakers of the followers that wait, by the number that each was given.
    waiting: BTreeMap<u64, Waker>,
    next: u64,
}

enum Outcome {
    Flying,
    Landed(Arc<[u8]>),
    /// The leader gave up: an error, a panic, or a task that was dropped.
    Failed,
}

/// What a caller has to do.
pub(crate) enum Role<'a> {
    /// Compute.
    Leader(Leader<'a>),
    /// Wait for the leader.
    Follower(Arc<Flight>),
    /// Neither: this thread is computing the value already, and would wait for itself.
    Recursive,
}

/// The right and the duty to compute the value. If it is dropped without a value, a follower computes.
pub(crate) struct Leader<'a> {
    flights: &'a Flights,
    key: &'a [u8],
    hash: u64,
    flight: Arc<Flight>,
    landed: bool,
}

impl Default for Flights {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl Flights {
    /// Joins the key's flight, or starts it.
    pub fn join<'a>(&'a self, key: &'a [u8], hash: u64) -> Role<'a> {
        match self.shard(hash).lock().entry(key.into()) {
            Entry::Occupied(flight) => {
                if flight.get().runs_here() {
                    Role::Recursive
                } else {
                    Role::Follower(Arc::clone(flight.get()))
                }
            }
            Entry::Vacant(place) => {
                let flight = Arc::new(Flight::new());
                place.insert(Arc::clone(&flight));
                Role::Leader(Leader {
                    flights: self,
                    key,
                    hash,
                    flight,
                    landed: false,
                })
            }
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}

impl Flight {
    fn new() -> Self {
        Self {
            state: Mutex::new(State {
                outcome: Outcome::Flying,
                runner: None,
                waiting: BTreeMap::new(),
                next: 0,
            }),
        }
    }

    fn runs_here(&self) -> bool {
        self.state.lock().runner == Some(thread::current().id())
    }

    /// Blocks until the flight ends; `None` if the leader gave up.
    pub fn wait(&self) -> Option<Arc<[u8]>> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut landing = pin!(self.landing());
        loop {
            match landing.as_mut().poll(&mut context) {
                Poll::Ready(value) => return value,
                // Returns when `Unpark` was woken, or spuriously.
                Poll::Pending => thread::park(),
            }
        }
    }

    /// A future of the flight's end; `None` if the leader gave up. It may be dropped before that.
    pub fn landing(&self) -> Landing<'_> {
        Landing {
            flight: self,
            number: None,
        }
    }

    /// Ends the flight, and wakes all followers that wait.
    fn end(&self, outcome: Outcome) {
        let waiting = {
            let mut state = self.state.lock();
            state.outcome = outcome;
            std::mem::take(&mut state.waiting)
        };
        // Not under the lock: a waker runs its executor's code.
        waiting.into_values().for_each(Waker::wake);
    }
}

/// Waits for the end of a flight.
pub(crate) struct Landing<'f> {
    flight: &'f Flight,
    /// The number under which its waker waits.
    number: Option<u64>,
}

impl Future for Landing<'_> {
    type Output = Option<Arc<[u8]>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        let mut state = self.flight.state.lock();
        match &state.outcome {
            Outcome::Landed(value) => return Poll::Ready(Some(Arc::clone(value))),
            Outcome::Failed => return Poll::Ready(None),
            Outcome::Flying => {}
        }
        let number = self.number.unwrap_or(state.next);
        state.next = state.next.max(number + 1);
        let replaced = state.waiting.insert(number, waker);
        drop(state);
        drop(replaced);
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.flight.state.lock().waiting.remove(&number);
            drop(waker);
        }
    }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Leader<'_> {
    /// Runs the computation, or a part of it, on this thread. A call in it for the same key gets [`Role::Recursive`].
    pub fn run<T>(&self, compute: impl FnOnce() -> T) -> T {
        /// Ends the run, also by a panic.
        struct Running<'f>(&'f Flight);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                self.0.state.lock().runner = None;
            }
        }
        self.flight.state.lock().runner = Some(thread::current().id());
        let _running = Running(&self.flight);
        compute()
    }

    /// Hands the value to all followers.
    pub fn land(mut self, value: &[u8]) {
        self.landed = true;
        self.leave();
        // No caller can join any more. If none has joined, nothing is copied.
        let followed = Arc::strong_count(&self.flight) > 1;
        if followed {
            self.flight.end(Outcome::Landed(value.into()));
        }
    }

    /// Takes the flight out of the map, so that a caller that misses from now on starts a new one.
    fn leave(&self) {
        self.flights.shard(self.hash).lock().remove(self.key);
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if !self.landed {
            self.leave();
            self.flight.end(Outcome::Failed);
        }
    }
}
