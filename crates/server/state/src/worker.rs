//! The part of a worker that other threads share: how they reach it, and the counters and other statistics that it shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::telemetry::connections::Info;
use crate::telemetry::counters::WorkerCounters;
use crate::telemetry::hot::Hot;
use crate::telemetry::latency::Latencies;
use crate::telemetry::prefixes::Counted;
use crate::telemetry::sizes::SizeClasses;
use crate::telemetry::watch::Call;
use mio::Waker;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::counters::Counter;

use crate::isolation::WorkerLock;
use crate::origins::Seat;
use crate::stream::Stream;
use nuthatch_settings::config::Protocol;

/// What a worker shares with other threads: they leave connections here and wake it, and read its counters.
pub struct SharedWorker {
    arrivals: Mutex<Vec<Arrival>>,
    /// Connections that have output to make by themselves.
    calls: Mutex<Vec<usize>>,
    /// What is to be done with which connections.
    errands: Mutex<Vec<Errand>>,
    waker: Arc<Waker>,
    connections: AtomicUsize,
    /// Held while the engine executes something for the worker.
    pub lock: WorkerLock,
    /// Memory that the worker keeps for its next requests.
    pub idle: IdleMemory,
    /// Iterations of the worker. The worker is alive if the count rises when it is woken.
    pub iterations: Counter,
    /// The worker's counters.
    pub counters: WorkerCounters,
    /// How long its requests took.
    pub latencies: Latencies,
    /// The most frequent keys of its requests.
    pub hot: Hot,
    /// Its counts by prefix.
    pub prefixes: Counted,
}

/// Memory that a worker keeps for its next requests, as of its last sweep.
#[derive(Default)]
pub struct IdleMemory {
    /// Bytes of empty buffers. All of these are Relaxed: statistics.
    buffers: AtomicUsize,
    /// Answers that its batches have room for, and their bytes.
    answers: AtomicUsize,
    answers_bytes: AtomicUsize,
}

impl IdleMemory {
    /// Sets the numbers. Only the worker calls this.
    pub fn show(&self, buffers: usize, answers: usize, answers_bytes: usize) {
        self.buffers.store(buffers, Ordering::Relaxed);
        self.answers.store(answers, Ordering::Relaxed);
        self.answers_bytes.store(answers_bytes, Ordering::Relaxed);
    }

    /// Bytes of empty buffers.
    pub fn buffers(&self) -> usize {
        self.buffers.load(Ordering::Relaxed)
    }

    /// Answers that its batches have room for, and their bytes.
    pub fn answers(&self) -> (usize, usize) {
        let answers = self.answers.load(Ordering::Relaxed);
        (answers, self.answers_bytes.load(Ordering::Relaxed))
    }
}

/// A connection on its way from the acceptor to a worker.
pub struct Arrival {
    /// Its socket.
    pub stream: Stream,
    /// The information that statistics show.
    pub info: Arc<Info>,
    /// Its place among the connections of its address. A unix socket has none.
    pub seat: Option<Seat>,
    /// The protocol of its client.
    pub protocol: Protocol,
    /// Its client has to log in.
    pub login: bool,
}

/// What another thread asks a worker to do with a connection.
#[derive(Clone, Copy, Debug)]
pub struct Errand {
    /// The connection's id at the worker.
    pub connection: usize,
    /// Its number. Another connection may have its id by now.
    pub serial: u64,
    /// What to do.
    pub what: What,
}

/// See [`Errand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// To close it: another client has ended it (CLIENT KILL).
    Close,
    /// To close it: it had no room for what it was sent unasked.
    CloseSlow,
    /// To open its mailbox: another client redirects to it what it is told (CLIENT TRACKING).
    OpenMail,
}

impl SharedWorker {
    /// That of a worker which `waker` wakes.
    pub fn new(waker: Arc<Waker>, sizes: SizeClasses) -> Self {
        Self {
            arrivals: Mutex::default(),
            calls: Mutex::default(),
            errands: Mutex::default(),
            waker,
            connections: AtomicUsize::new(0),
            lock: WorkerLock::default(),
            idle: IdleMemory::default(),
            iterations: Counter::default(),
            counters: WorkerCounters::new(sizes),
            latencies: Latencies::default(),
            hot: Hot::default(),
            prefixes: Counted::default(),
        }
    }

    /// Open connections, with those that the worker has not taken yet.
    pub fn connections(&self) -> usize {
        // Relaxed: balance and limits may be wrong by the connections that open and close at this moment.
        self.connections.load(Ordering::Relaxed)
    }

    /// Hands a connection to the worker.
    pub fn leave(&self, arrival: Arrival) {
        // Relaxed: as connections().
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.arrivals.lock().push(arrival);
        // If this fails, the worker takes the connection with the next one.
        self.wake();
    }

    /// Wakes the worker.
    pub fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            // The worker does its work at the next event.
            tracing::warn!(%error, "cannot wake a worker");
        }
    }

    /// Takes the connections that were left. Only the worker calls this.
    pub fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut *self.arrivals.lock())
    }

    /// Takes the calls.
    pub fn calls(&self) -> Vec<usize> {
        std::mem::take(&mut *self.calls.lock())
    }

    /// Leaves an errand. The caller wakes the worker.
    pub fn send(&self, errand: Errand) {
        self.errands.lock().push(errand);
    }

    /// Takes the errands.
    pub fn errands(&self) -> Vec<Errand> {
        std::mem::take(&mut *self.errands.lock())
    }

    /// The worker closed a connection.
    pub fn closed_one(&self) {
        // Relaxed: as connections().
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Call for SharedWorker {
    fn call(&self, connection: usize) {
        self.calls.lock().push(connection);
        self.wake();
    }

    fn end(&self, connection: usize, serial: u64) {
        self.send(Errand {
            connection,
            serial,
            what: What::CloseSlow,
        });
        self.wake();
    }
}
