//! A worker's loop: it waits for events, and serves all connections that have something to do.
//!
//! * [`iteration`]: a round of reads, batches and writes.
//! * [`reclaim`]: closes connections that hold too much memory, or do not bring the values that hold it.
//! * [`rings`]: clients in shared memory, of which no event tells while the worker is awake.
//! * [`datagrams`]: requests by UDP, each for itself.
//! * [`ending`]: how the server closes a connection, and which connections it closes for their silence.

#[cfg(any(test, fuzzing))]
pub(crate) mod alone;
mod datagrams;
mod ending;
#[cfg(test)]
mod fairness;
mod hold;
mod iteration;
mod reclaim;
mod rings;

use std::io::{self, ErrorKind};
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bumpalo::Bump;
use mio::{Events, Poll, Token};
use nuthatch_commands::batch::BatchBuffers;
use nuthatch_commands::output::Written;
use nuthatch_commands::turn::Turn;
use nuthatch_engine::request::PREFIX_LEN_MAX;
use nuthatch_engine::{AnyHandle, Engine, Time};
use nuthatch_protocol::Limits;
use nuthatch_state::buffers::Level;
use nuthatch_state::live::View;
use nuthatch_state::server_state::ServerState;
use nuthatch_state::telemetry::watch::line::{self, Reason};
use nuthatch_state::worker::SharedWorker;
use slab::Slab;

use crate::connection::Connection;
use crate::datagrams::{self as udp, Datagram, DatagramSocket};
use crate::holders::Holders;
use crate::pool::Pool;

/// The token of the waker, which no connection has.
pub(crate) const WAKE: Token = Token(usize::MAX);

/// How often the worker looks for connections to close because time has passed.
const SWEEP: Duration = Duration::from_secs(1);

/// How long a stopping worker tries to send what is unsent.
pub(crate) const DRAIN: Duration = Duration::from_millis(700);

/// How often a stopping worker looks whether it may end.
const DRAIN_STEP: Duration = Duration::from_millis(20);

/// One thread's connections and memory.
pub(crate) struct Worker {
    shared: Arc<ServerState>,
    /// The settings of this iteration.
    live: View,
    /// Its number among the workers.
    number: usize,
    /// What other threads share of it.
    own: Arc<SharedWorker>,
    handle: AnyHandle,
    poll: Poll,
    connections: Slab<Connection>,
    datagram_sockets: Vec<DatagramSocket>,
    /// The datagrams of this iteration.
    datagrams: Vec<Datagram>,
    /// The run queue: ids of the connections whose turn is next.
    ready: Vec<usize>,
    /// Those that come first in the next loop: this one had no time for them.
    put_off: Vec<usize>,
    /// The read buffer of this iteration, and how much of it is used.
    buffer: Box<[u8]>,
    used: usize,
    /// Inputs of this iteration that their connections had kept.
    kept: Vec<Vec<u8>>,
    turns: Vec<Turn>,
    batch: BatchBuffers,
    decoded: Bump,
    pool: Pool,
    holders: Holders,
    /// Bytes that its connections hold more than the account has for them. Negative if they hold fewer.
    unpublished: isize,
    limits: Limits,
    /// Handshakes that this loop may still go on with.
    handshakes_left: usize,
    /// Connections whose output is all sent and that wait for the client to close.
    lingering: usize,
    /// Connections with values that stay in the engine until the client takes them.
    readers: usize,
    /// Stores of all workers that had found no memory at the last look.
    stores_failed: u64,
    /// When the poll returned the events of this loop.
    now: Time,
    swept: Time,
    /// When a stopping worker ends in any case.
    draining: Option<Instant>,
    /// False when every connection has had its last turn that reads.
    reading: bool,
    /// It has closed its connections for a pause.
    rests: bool,
    held: hold::State,
    rings: rings::Rings,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<ServerState>,
        own: Arc<SharedWorker>,
        poll: Poll,
        datagram_sockets: Vec<DatagramSocket>,
    ) -> Self {
        let handle = shared.engine.handle();
        let mut workers = shared.workers.iter();
        let number = workers.position(|it| Arc::ptr_eq(it, &own));
        let number = number.unwrap_or_default();
        let pool = Pool::shared_by(shared.config.threads.get());
        let limits = Limits {
            value_max: shared.engine.item_size_max(),
            // An engine's keys have room for what keeps the databases apart.
            key_max: shared.engine.key_len_max() - PREFIX_LEN_MAX,
        };
        let live = View::new(&shared.live);
        Self {
            shared,
            live,
            number,
            own,
            handle,
            poll,
            connections: Slab::new(),
            datagram_sockets,
            datagrams: Vec::new(),
            ready: Vec::new(),
            put_off: Vec::new(),
            buffer: vec![0; iteration::BUFFER].into_boxed_slice(),
            used: 0,
            kept: Vec::new(),
            turns: Vec::new(),
            batch: BatchBuffers::default(),
            decoded: Bump::new(),
            pool,
            holders: Holders::default(),
            unpublished: 0,
            limits,
            handshakes_left: 0,
            lingering: 0,
            readers: 0,
            stores_failed: 0,
            now: Time(0),
            swept: Time(0),
            draining: None,
            reading: true,
            rests: false,
            held: hold::State::default(),
            rings: rings::Rings::default(),
        }
    }

    /// Serves until the server stops.
    pub(crate) fn run(self) -> io::Result<()> {
        // A panic leaves the worker as it is, for good: to drop what it holds of an engine in an unknown state, values and
        // reservations, might wait for ever for a lock that this thread holds, and then nothing would be saved.
        let mut worker = ManuallyDrop::new(self);
        let ended = worker.serve_to_the_end();
        drop(ManuallyDrop::into_inner(worker));
        ended
    }

    fn serve_to_the_end(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        self.register_datagrams()?;
        loop {
            match self.wait(&mut events) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                waited => waited?,
            }
            if self.turn(&events) {
                return Ok(());
            }
        }
    }

    /// Does what there is to do after these events. True at the end.
    fn turn(&mut self, events: &Events) -> bool {
        self.own.iterations.bump();
        let now = self.shared.clock.now();
        self.now = now;
        self.live.update(&self.shared.live);
        let mut woken = false;
        for event in events {
            if event.token() == WAKE {
                woken = true;
            } else {
                self.note(event);
            }
        }
        if woken {
            self.welcome(now);
        }
        self.look_at_hold();
        if !self.holds_all() {
            self.serve(now);
        }
        if !self.is_holding() {
            self.serve_datagrams(now);
        }
        self.publish();
        self.reclaim();
        self.sweep();
        if let Some(latest) = self.draining {
            self.reading = false;
            self.part();
            if self.connections.is_empty() || Instant::now() >= latest {
                if self.shared.shutdown.is_requested() {
                    return true;
                }
                self.rest();
            }
        }
        false
    }

    /// How long to wait for events.
    fn patience(&self) -> Option<Duration> {
        if self.is_holding() && (self.holds_all() || self.ready.is_empty()) {
            Some(self.patience_of_hold())
        } else if !self.ready.is_empty() || self.has_datagrams() {
            Some(Duration::ZERO)
        } else if self.draining.is_some() {
            Some(DRAIN_STEP)
        } else if self.has_to_sweep() {
            Some(SWEEP)
        } else {
            None
        }
    }

    /// Does what there is to do now, without waiting. True if there is more.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn turn_now(&mut self, events: &mut Events) -> io::Result<bool> {
        match self.poll.poll(events, Some(Duration::ZERO)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            polled => polled?,
        }
        // Nobody waits for time to pass here.
        self.shared.hold.end();
        let has_some = !events.is_empty() || !self.ready.is_empty();
        self.turn(events);
        Ok(has_some)
    }

    /// Bytes of buffers that its connections hold.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn memory(&self) -> usize {
        let connections = self.connections.iter();
        connections.map(|(_, connection)| connection.memory()).sum()
    }

    /// Records what an event says of its connection.
    #[inline]
    fn note(&mut self, event: &mio::event::Event) {
        if let Some(index) = udp::index_of(event.token(), self.datagram_sockets.len()) {
            self.datagram_sockets[index].ready = true;
            return;
        }
        let id = event.token().0;
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let state = &mut connection.state;
        if event.is_readable() {
            state.saw_input();
        }
        if event.is_read_closed() || event.is_error() {
            state.saw_hang_up();
        }
        // A ring that is full, and whose client has gone, gets no more room: a write finds that out.
        if event.is_writable() || event.is_error() || event.is_write_closed() {
            state.saw_room();
        }
        if state.enqueue() {
            self.ready.push(id);
        }
    }

    /// Takes in new connections, begins to stop or to rest, or goes on.
    fn welcome(&mut self, now: Time) {
        self.greet(now);
        let pause = &self.shared.pause;
        let (ends, parts) = (
            self.shared.shutdown.is_requested(),
            pause.closes_connections(),
        );
        if self.draining.is_none() && (ends || parts && !self.rests) {
            self.draining = Some(Instant::now() + DRAIN);
            // Requests that have arrived by now are read and answered: every connection gets one last turn.
            for (id, connection) in &mut self.connections {
                connection.state.saw_input();
                if connection.state.enqueue() {
                    self.ready.push(id);
                }
            }
        }
        if self.rests && !parts && !ends {
            (self.rests, self.reading) = (false, true);
        }
        self.do_errands();
        for id in self.own.calls() {
            if let Some(connection) = self.connections.get_mut(id)
                && connection.phase.is_called()
                && connection.state.call()
            {
                self.ready.push(id);
            }
        }
    }

    /// Takes in new connections.
    fn greet(&mut self, now: Time) {
        for arrival in self.own.take() {
            let mut connection = Connection::new(arrival, now);
            let slot = self.connections.vacant_entry();
            let token = Token(slot.key());
            let registered = connection.stream.register(self.poll.registry(), token);
            if registered.is_ok() && self.draining.is_none() {
                let number = self.shared.number_of(&connection.info);
                line::connection(
                    &self.shared.telemetry.watchers,
                    connection.info.peer(),
                    None,
                    number,
                );
                let id = slot.key();
                self.rings.enter(id, &mut connection.stream);
                let is_ended = connection.info.sit(self.number, id);
                let Connection { phase, info, .. } = slot.insert(connection);
                // Others may have redirected to it before it had a seat here.
                if self.shared.tracking.is_expected(info.serial()) {
                    phase.open_mail(&self.shared, &self.own, id, info);
                }
                if is_ended {
                    self.close_for(id, Reason::Normal);
                }
            } else {
                self.shared.leave(&connection.info);
                self.own.closed_one();
            }
        }
    }

    /// Sends as much output as the socket takes. False if the connection was closed.
    fn flush(&mut self, id: usize) -> bool {
        let connection = &mut self.connections[id];
        let mut sent = 0;
        let written = if connection.state.is_writable() {
            connection
                .output
                .write_to(&mut connection.stream, &mut sent)
        } else {
            Ok(Written::Blocked)
        };
        self.own.counters.bytes_written.add(sent);
        let rest = match written {
            Ok(Written::All) if connection.stream.has_unsent() => connection.stream.send_rest(),
            _ => Ok(true),
        };
        let written = match rest.and_then(|all| written.map(|written| (written, all))) {
            Ok((_, false)) => Written::Blocked,
            Ok((written, true)) => written,
            Err(_) => {
                self.close_for(id, Reason::Error);
                return false;
            }
        };
        if sent > 0 {
            connection.active = self.now;
            connection.has_sent(sent);
        }
        let watches = connection.state.wrote(written == Written::All);
        match written {
            Written::All => {
                let output = mem::take(&mut connection.output);
                self.pool.give(output.into_buffer());
                if !self.end(id) {
                    return false;
                }
            }
            Written::Blocked => connection.output.shrink(),
        }
        let connection = &mut self.connections[id];
        let (before, reads) = connection.note_pins(self.now);
        self.readers = self.readers + usize::from(reads) - usize::from(before);
        self.enter(id);
        watches.is_none_or(|watches| self.watch(id, watches))
    }

    /// Makes the poll watch for room in the socket, or stop watching. False if the connection was closed.
    fn watch(&mut self, id: usize, blocked: bool) -> bool {
        let connection = &mut self.connections[id];
        connection.info.set_blocked(blocked);
        let registry = self.poll.registry();
        let watched = connection
            .stream
            .watch_writable(registry, Token(id), blocked);
        if watched.is_err() {
            self.close_for(id, Reason::Error);
        }
        watched.is_ok()
    }

    /// Records how many bytes a connection holds now.
    #[inline]
    fn enter(&mut self, id: usize) {
        let (before, held) = self.connections[id].account(self.now);
        if before != held {
            self.unpublished += held as isize - before as isize;
            self.holders.change(id, before, held);
        }
    }

    /// Publishes the recorded changes to the account of all workers.
    #[inline]
    fn publish(&mut self) {
        let change = mem::take(&mut self.unpublished);
        if change != 0 && self.shared.accounts.buffers.change(change) {
            self.shared.wake_workers();
        }
    }

    /// Closes a connection, for the reason that it has, or because the server stops.
    fn close(&mut self, id: usize) {
        let reason = match self.draining {
            Some(_) => Reason::Shutdown,
            None => self.connections[id].end,
        };
        self.close_for(id, reason);
    }

    /// Closes a connection. Dropping it closes the socket, frees an unfinished value, and unpins values.
    fn close_for(&mut self, id: usize, reason: Reason) {
        let mut connection = self.connections.remove(id);
        self.rings.leave(id, &mut connection.stream);
        let fd = connection.stream.as_fd().as_raw_fd();
        let number = self.shared.number_of(&connection.info);
        line::connection(
            &self.shared.telemetry.watchers,
            connection.info.peer(),
            Some(reason),
            number,
        );
        tracing::debug!("<{fd} connection closed.");
        self.unpublished -= connection.accounted as isize;
        self.holders.change(id, connection.accounted, 0);
        self.lingering -= usize::from(connection.state.lingers_since().is_some());
        self.readers -= usize::from(connection.reading.is_some());
        // A connection uses two buffers at most: fewer connections need fewer.
        self.pool.keep(2 * self.connections.len());
        if self.connections.is_empty() {
            // The slab may have grown large.
            self.connections = Slab::new();
        }
        self.shared.leave(&connection.info);
        self.own.closed_one();
    }

    /// True if the worker may have to close a connection because time passes.
    fn has_to_sweep(&self) -> bool {
        !self.connections.is_empty()
            && (self.live.idle_timeout.is_some()
                || self.shared.security.admits_late()
                || self.lingering > 0
                || self.readers > 0
                || self.shared.accounts.buffers.level() != Level::Plenty
                || self.shared.accounts.uploads.are_many())
    }

    /// Closes the connections whose time is over, once per [`SWEEP`].
    fn sweep(&mut self) {
        if !self.has_to_sweep() || self.now.since(self.swept) < SWEEP {
            return;
        }
        self.swept = self.now;
        self.reclaim();
        self.reclaim_from_stuck();
        self.close_stuck_uploads();
        self.close_stuck_readers();
        self.close_lingering();
        if !self.is_holding() {
            self.close_silent();
            self.close_late();
        }
        self.publish();
        let (answers, bytes) = self.batch.room();
        self.own.idle.show(self.pool.bytes(), answers, bytes);
    }

    /// Closes the connections that are left, and reads nothing until the pause is over.
    fn rest(&mut self) {
        let left: Vec<usize> = self.connections.iter().map(|(id, _)| id).collect();
        for id in left {
            self.close(id);
        }
        self.ready.clear();
        self.publish();
        self.draining = None;
        self.rests = true;
        self.shared.pause.worker_rests();
    }

    /// Closes connections whose output is all sent.
    fn part(&mut self) {
        let done: Vec<usize> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.output.is_empty() && connection.state.is_done())
            .filter(|(_, connection)| !connection.stream.has_unsent())
            .map(|(id, _)| id)
            .collect();
        for id in done {
            self.connections[id].stream.say_end();
            self.close(id);
        }
    }
}
