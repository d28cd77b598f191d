//! An iteration: one read, one turn and one write for each ready connection.
//!
//! An iteration admits as many ready connections as its read buffer has room for, and reads once for each. Then all
//! their requests go to the engine in one batch (or a few), and the worker writes the replies:
//!
//! ```text
//!  ready    3 17 4 ...
//!             | read, one after the other
//!  buffer   |get a\r\nget b\r\n|set c 0 0 2\r\nhi\r\n|get a\r\ng|
//!             | parse                                        \ kept by its connection
//!  batch     a  b  c  a
//!             | execute
//!  outputs  |VALUE a..VALUE b..|STORED\r\n|VALUE a ..|
//!             | write, one after the other
//! ```
//!
//! Without pipelining that is one epoll_wait, one read and one write per request. The worker does not repeat a short
//! read to see the socket empty, because new bytes make a new event.

use std::io::{ErrorKind, Read};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use bumpalo::Bump;
use nuthatch_commands::context::Context;
use nuthatch_commands::conversation;
use nuthatch_commands::executing::execute;
use nuthatch_commands::output::Output;
use nuthatch_commands::turn::{Source, Stop, Turn};
use nuthatch_engine::request::LONG_KEY_LEN_MAX;
use nuthatch_engine::{Engine, Time, has_unwound};
use nuthatch_resp as resp;
use nuthatch_state::buffers::{AWAITED_MAX, TurnLimits};
use nuthatch_state::telemetry::connections::Info;
use nuthatch_state::telemetry::watch::line::{self, Reason};
use nuthatch_state::worker::SharedWorker;
use slab::Slab;

use super::Worker;
use crate::connection::Connection;
use crate::connection::state::{Ending, Work};
use crate::datagrams::{Datagram, DatagramSocket};
use crate::pending_input::{Joined, PendingInput};
use crate::protocols::{Phase, run};

/// Bytes of the read buffer.
pub(super) const BUFFER: usize = 512 << 10;

/// The most TLS handshakes that a loop goes on with: each takes as long as thousands of requests. The other handshakes
/// have their turn in the next loop, so that requests wait for few of them.
pub(super) const HANDSHAKES: usize = 8;

/// Bytes of the arena for copied requests that a worker keeps between two iterations.
const ARENA_KEPT: usize = 64 << 10;

/// With less room than this for a read, the next connection waits for the next iteration.
const READ_MIN: usize = 16 << 10;

/// An iteration that has read this many bytes admits no other connection, so that the bytes read first are still in the
/// cache.
const ITERATION_BYTES: usize = 128 << 10;

/// An iteration that has made this much output begins no other batch: the output goes to the sockets first. So replies
/// that wait for the end of their iteration take bounded memory, whatever the requests are.
const ITERATION_OUTPUT: usize = 1 << 20;

/// An iteration that has copied this many bytes of queued requests begins no other turn: the copies stay until its end.
const ITERATION_DECODED: usize = 1 << 20;

/// The longest incomplete command that a connection keeps: no other protocol's is as long as Redis'.
const WAITING_MAX: usize =
    LONG_KEY_LEN_MAX + resp::ARGUMENTS_LEN_MAX + resp::LINE_MAX + AWAITED_MAX;

const _: () = assert!(
    WAITING_MAX + READ_MIN <= BUFFER,
    "an empty buffer has room for what any connection keeps, and to read more"
);

/// A command has panicked: its connection is closed.
#[cold]
fn note_fault(own: &SharedWorker, info: &Info) {
    own.counters.panic_kicks.bump();
    // The panic's own message has the place.
    tracing::error!(
        peer = %info.peer(),
        "closed: a command of this connection met a fault of the server; please report it"
    );
}

impl Worker {
    /// Gives every ready connection one turn. A connection that has more to do is ready again for the next loop, so
    /// that the worker sees events in between.
    pub(super) fn serve(&mut self, now: Time) {
        if self.ready.is_empty() {
            return;
        }
        self.set_back();
        let mut ready = mem::take(&mut self.ready);
        let mut next = 0;
        self.handshakes_left = HANDSHAKES;
        while next < ready.len() {
            let batch_max = self.shared.config.batch_max.get();
            let turn_limits = self.shared.accounts.buffers.turn_limits(batch_max);
            self.used = 0;
            let begun = Instant::now();
            while let Some(&id) = ready.get(next) {
                if !self.has_room_for(id) {
                    break;
                }
                next += 1;
                self.admit(id, turn_limits);
            }
            if !self.turns.is_empty() {
                self.serve_turns(now, false);
                self.finish(now, &turn_limits);
                let pending = &self.own.counters.pending;
                self.own.latencies.note(pending, begun.elapsed());
            }
            self.publish();
            self.reclaim();
        }
        ready.clear();
        // Connections that were queued meanwhile are in the new `self.ready`.
        if self.ready.is_empty() {
            self.ready = ready;
        }
        self.ready.splice(..0, self.put_off.drain(..));
    }

    /// True if the iteration can read for this connection.
    fn has_room_for(&self, id: usize) -> bool {
        let waiting = match self.connections.get(id) {
            Some(connection) if connection.state.needs_input() => connection.waiting.len(),
            _ => 0,
        };
        self.used < ITERATION_BYTES && self.used + waiting + READ_MIN <= BUFFER
    }

    /// Gives a connection a turn in this iteration, if there is something to do. Notes the end of a handshake.
    fn admit(&mut self, id: usize, turn_limits: TurnLimits) {
        let connection = self.connections.get(id);
        let shakes = connection.is_some_and(|it| !it.stream.is_ready());
        self.admit_now(id, turn_limits);
        if shakes {
            let connection = self.connections.get(id);
            let is_new = connection.is_some_and(|it| it.stream.has_new_session());
            self.own.counters.ssl_new_sessions.add(is_new.into());
        }
    }

    fn admit_now(&mut self, id: usize, turn_limits: TurnLimits) {
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        // Not queued: the connection that was queued has closed and this one has its id, or this one had its turn
        // already.
        if !connection.state.dequeue() {
            return;
        }
        if !connection.stream.is_ready() {
            if self.handshakes_left == 0 {
                self.enqueue(id);
                self.own.counters.conn_yields.bump();
                return;
            }
            self.handshakes_left -= 1;
        }
        let has_unsent = !connection.output.is_empty() || connection.stream.has_unsent();
        if has_unsent && connection.state.is_writable() && !self.flush(id) {
            return;
        }
        let connection = &mut self.connections[id];
        let work = match connection.state.ending() {
            Ending::Open { work } => work,
            Ending::Lingering { .. } => return self.drop_input(id),
            Ending::Finished | Ending::Parting => return,
        };
        if connection.output.len() >= turn_limits.output_cap {
            return;
        }
        let source = match work {
            Work::Left => {
                let (bytes, start) = connection.waiting.take();
                self.keep(bytes, start)
            }
            Work::Done => match self.read(id, &turn_limits) {
                Some(source) => source,
                None => return,
            },
            Work::Called => return,
        };
        let connection = &mut self.connections[id];
        let output = if connection.output.is_empty() {
            Output::with_buffer(self.pool.take())
        } else {
            mem::take(&mut connection.output)
        };
        let commands = self.live.commands_per_turn.get();
        self.turns.push(Turn {
            in_batch_max: connection.in_batch_max.min(turn_limits.requests_max),
            ..Turn::new(id, source, output, turn_limits, commands)
        });
    }

    /// Stores an input for the duration of this iteration.
    fn keep(&mut self, bytes: Vec<u8>, start: usize) -> Source {
        self.kept.push(bytes);
        Source::Kept(self.kept.len() - 1, start)
    }

    /// Reads once. `None` if there is no input for a turn. Then the connection may have been closed.
    #[inline]
    fn read(&mut self, id: usize, turn_limits: &TurnLimits) -> Option<Source> {
        let connection = &mut self.connections[id];
        if !connection.state.is_readable() || !self.reading {
            return None;
        }
        // Leave room for the waiting bytes: they may have to stand before the new ones.
        let start = self.used;
        let from = start + connection.waiting.len();
        let to = (from + connection.read_max(turn_limits)).min(BUFFER);
        let count = loop {
            match connection.stream.read(&mut self.buffer[from..to]) {
                Ok(count) => break count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    connection.state.would_block();
                    if connection.stream.has_unsent()
                        && let Some(watches) = connection.state.wrote(false)
                    {
                        self.watch(id, watches);
                    }
                    return None;
                }
                Err(error) => {
                    if connection.stream.ring().is_some() {
                        tracing::warn!(%error, peer = %connection.info.peer(), "closed");
                    } else if error.kind() == ErrorKind::InvalidData {
                        let counters = &self.own.counters;
                        match connection.stream.is_ready() {
                            true => counters.ssl_proto_errors.bump(),
                            false => counters.ssl_handshake_errors.bump(),
                        }
                        line::tls_error(
                            &self.shared.telemetry.watchers,
                            &error,
                            connection.stream.as_fd(),
                        );
                        // The warning tells of a misconfigured client.
                        tracing::warn!(%error, peer = %connection.info.peer(), "TLS failed");
                    }
                    self.close_for(id, Reason::Error);
                    return None;
                }
            }
        };
        if count == 0 {
            connection.state.read_end();
            self.flush(id);
            return None;
        }
        let emptied = connection.stream.was_emptied(count, to - from);
        connection.state.has_read(emptied);
        self.own.counters.bytes_read.add(count as u64);
        if from > start {
            return self.join(id, from, from + count, turn_limits);
        }
        self.used = from + count;
        Some(Source::Buffer(start, self.used))
    }

    /// Joins the bytes read, `buffer[from..to]`, with the connection's waiting input. `None` if all of it goes on
    /// waiting.
    fn join(
        &mut self,
        id: usize,
        from: usize,
        to: usize,
        turn_limits: &TurnLimits,
    ) -> Option<Source> {
        let connection = &mut self.connections[id];
        let start = self.used;
        let (place, arrived) = self.buffer[start..to].split_at_mut(from - start);
        match connection.waiting.join(place, arrived) {
            Joined::Incomplete => {
                connection.active = self.now;
                self.enter(id);
                self.queue_again(id, turn_limits);
                None
            }
            Joined::Before(buffer) => {
                self.pool.give(buffer);
                self.used = to;
                Some(Source::Buffer(start, to))
            }
            Joined::Behind(bytes, start) => Some(self.keep(bytes, start)),
            Joined::NoMemory => {
                self.close_for_want(id);
                None
            }
        }
    }

    /// Runs the turns of connections, or those of datagrams. A FLUSHDB meanwhile is behind some of their requests.
    pub(super) fn serve_turns(&mut self, now: Time, of_datagrams: bool) {
        let emptied = self.shared.databases.emptied();
        self.run_turns(now, of_datagrams);
        self.shared.databases.note_end(emptied);
    }

    /// Parses, executes and answers the inputs of all turns.
    fn run_turns(&mut self, now: Time, of_datagrams: bool) {
        let Self {
            shared,
            own,
            handle,
            connections,
            datagrams,
            datagram_sockets,
            buffer,
            kept,
            turns,
            decoded,
            limits,
            held,
            ..
        } = self;
        let mut batch = self.batch.take(shared.config.batch_max.get());
        let (hasher, logged) = (shared.engine.hasher(), conversation::is_logged());
        // Bytes of copied output of all turns.
        let mut written = 0;
        let mut peers = match of_datagrams {
            false => Peers::Connections(connections),
            true => Peers::Datagrams(datagrams, datagram_sockets),
        };
        loop {
            for (index, turn) in turns.iter_mut().enumerate() {
                if turn.stop != Stop::Batch || batch.is_full() {
                    continue;
                }
                if written >= ITERATION_OUTPUT || decoded.allocated_bytes() >= ITERATION_DECODED {
                    turn.stop = Stop::Yielded;
                    continue;
                }
                turn.has_run = true;
                let Peer { phase, fd, info } = peers.of(turn.id);
                let (before, mark) = (turn.output.copied(), batch.mark());
                let input = input_of(turn.source, buffer, kept);
                let mut cx = Context {
                    shared,
                    handle,
                    batch: &mut batch,
                    decoded,
                    hasher,
                    counters: &own.counters,
                    socket: fd,
                    worker: own,
                    limits: *limits,
                    namespace: shared.databases.namespace(0),
                    now,
                    present: Default::default(),
                    tracker: None,
                    naming: Default::default(),
                    holds_writes: held.holds_writes(),
                    in_script: false,
                    turn: index as u32,
                    info,
                    work: Default::default(),
                };
                // Unwind safe, if the panic is not the engine's. What the turn changes is of its connection alone, which
                // is closed: its output, its phase (with it go a value under way, its share of the account, and what is
                // queued or watched). What it shares with the other turns is valid at each step: the batch, which is cut;
                // the arena, which only grows until the iteration's end; the counters. Guards release locks.
                let ran = catch_unwind(AssertUnwindSafe(|| match logged {
                    true => run::run_logged(&mut cx, turn, phase, input, fd),
                    false => run::run(&mut cx, turn, phase, input),
                }));
                match ran {
                    Ok(stop) => {
                        turn.stop = stop;
                        written += turn.output.copied() - before;
                    }
                    // The engine's state is every connection's: the server ends.
                    Err(panic) if has_unwound() => resume_unwind(panic),
                    Err(_) => {
                        batch.cut(mark);
                        turn.give_up();
                        note_fault(own, info);
                    }
                }
            }
            if !batch.is_empty() {
                let mut number_of = |turn: &Turn| shared.number_of(peers.of(turn.id).info);
                execute(shared, own, handle, turns, &batch, now, |turns| {
                    turns.iter().map(&mut number_of).collect()
                });
                own.hot.look(&batch.requests, hasher);
                if logged {
                    conversation::executed(batch.requests.len(), turns.len());
                }
                batch.clear();
            }
            if logged {
                for turn in turns.iter_mut() {
                    let Peer { phase, fd, .. } = peers.of(turn.id);
                    run::answered(phase, &turn.output, turn.logged, fd);
                    turn.logged = turn.output.end();
                }
            }
            let mut unfinished = false;
            written = 0;
            for turn in turns.iter_mut() {
                written += turn.output.copied();
                turn.adapt();
                unfinished |= turn.stop == Stop::Batch;
            }
            if !unfinished {
                break;
            }
        }
        self.batch.give(batch);
        empty(&mut self.decoded);
    }

    /// Ends the iteration: keeps unused input, sends output.
    fn finish(&mut self, now: Time, turn_limits: &TurnLimits) {
        let mut turns = mem::take(&mut self.turns);
        for turn in turns.drain(..) {
            let id = turn.id;
            if turn.stop == Stop::Panicked {
                self.close_for(id, Reason::Error);
                continue;
            }
            if !self.keep_input(&turn) {
                self.connections[id].output = turn.output;
                self.close_for_want(id);
                continue;
            }
            let connection = &mut self.connections[id];
            connection.touch(now);
            connection.in_batch_max = turn.in_batch_max;
            connection.state.stopped(turn.stop, turn.closing);
            if turn.closing && !turn.has_quit {
                connection.end = Reason::Error;
            }
            connection.output = turn.output;
            if turn.stop == Stop::Yielded {
                self.own.counters.conn_yields.bump();
            }
            if connection.output.is_empty() && !connection.stream.has_unsent() {
                let output = mem::take(&mut connection.output);
                self.pool.give(output.into_buffer());
                if !self.end(id) {
                    continue;
                }
                self.enter(id);
            } else if !self.flush(id) {
                continue;
            }
            if turn.has_run {
                self.queue_again(id, turn_limits);
            } else {
                self.put_off(id, turn_limits);
            }
        }
        self.turns = turns;
        self.kept.clear();
    }

    /// Closes a connection for whose input the system gives no memory.
    #[cold]
    fn close_for_want(&mut self, id: usize) {
        let peer = self.connections[id].info.peer();
        tracing::warn!(%peer, "closed: the system gives no memory for what it has sent");
        self.own.counters.read_buf_oom.bump();
        self.close_for_memory(id);
    }

    /// Leaves a turn's unused input with its connection. False if there is no memory for it.
    #[inline]
    fn keep_input(&mut self, turn: &Turn) -> bool {
        let connection = &mut self.connections[turn.id];
        match turn.source {
            Source::Buffer(start, end) => {
                connection.has_moved(turn.position);
                let rest = &self.buffer[start + turn.position..end];
                if !rest.is_empty() {
                    let Some(copy) = PendingInput::copy_of(rest, turn.awaited) else {
                        return false;
                    };
                    connection.waiting = copy;
                }
            }
            Source::Kept(place, start) => {
                connection.has_moved(turn.position - start);
                let input = mem::take(&mut self.kept[place]);
                let rest = input.len() - turn.position;
                if rest * 2 > input.capacity() {
                    connection.waiting = PendingInput::new(input, turn.position, turn.awaited);
                } else {
                    // Little of it is left: copy it, so that it does not hold so large a buffer.
                    let rest = &input[turn.position..];
                    let Some(copy) = PendingInput::copy_of(rest, turn.awaited) else {
                        return false;
                    };
                    connection.waiting = copy;
                    self.pool.give(input);
                }
            }
        }
        true
    }

    /// Puts a connection that need not wait for an event on the run queue again.
    fn queue_again(&mut self, id: usize, turn_limits: &TurnLimits) {
        let connection = &self.connections[id];
        if connection.state.has_more() && connection.output.len() < turn_limits.output_cap {
            self.enqueue(id);
        }
    }

    /// The same for a connection whose turn has not run: it comes before those that had their turn. Otherwise some
    /// clients whose answers fill each iteration would keep the others out for as long as they like.
    #[cold]
    fn put_off(&mut self, id: usize, turn_limits: &TurnLimits) {
        let connection = &mut self.connections[id];
        if connection.output.len() < turn_limits.output_cap && connection.state.enqueue() {
            self.put_off.push(id);
        }
    }

    /// Puts a connection on the run queue, if it is not there.
    pub(super) fn enqueue(&mut self, id: usize) {
        if self.connections[id].state.enqueue() {
            self.ready.push(id);
        }
    }
}

#[inline(always)]
fn input_of<'w>(source: Source, buffer: &'w [u8], kept: &'w [Vec<u8>]) -> &'w [u8] {
    match source {
        Source::Buffer(start, end) => &buffer[start..end],
        Source::Kept(place, _) => &kept[place],
    }
}

/// Frees what an iteration allocated. An arena keeps its largest chunk for the next iteration, and one iteration of
/// copied requests may have needed megabytes.
#[inline]
fn empty(arena: &mut Bump) {
    arena.reset();
    if arena.allocated_bytes() > ARENA_KEPT {
        *arena = Bump::new();
    }
}

/// The owners of the turns: connections or datagrams.
enum Peers<'w> {
    Connections(&'w mut Slab<Connection>),
    Datagrams(&'w mut [Datagram], &'w [DatagramSocket]),
}

/// What a turn's commands may use of its connection or datagram.
struct Peer<'w> {
    phase: &'w mut Phase,
    fd: RawFd,
    info: &'w Info,
}

impl Peers<'_> {
    #[inline]
    fn of(&mut self, id: usize) -> Peer<'_> {
        match self {
            Self::Connections(connections) => {
                let connection = &mut connections[id];
                Peer {
                    phase: &mut connection.phase,
                    fd: connection.stream.as_fd().as_raw_fd(),
                    info: &connection.info,
                }
            }
            Self::Datagrams(datagrams, sockets) => {
                let datagram = &mut datagrams[id];
                let socket = &sockets[datagram.socket];
                Peer {
                    phase: &mut datagram.phase,
                    fd: socket.fd(),
                    info: &socket.info,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_that_has_grown_is_given_back() {
        let mut arena = Bump::new();
        arena.alloc_slice_copy(&[7; 1000]);
        empty(&mut arena);
        let little = arena.allocated_bytes();
        assert!(0 < little && little <= ARENA_KEPT, "{little}");
        for _ in 0..10 {
            arena.alloc_slice_copy(&[7; ARENA_KEPT]);
        }
        empty(&mut arena);
        assert_eq!(arena.allocated_bytes(), 0);
    }
}
