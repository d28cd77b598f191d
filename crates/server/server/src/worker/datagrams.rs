//! How a worker serves datagrams: in iterations, like connections. An iteration reads a bounded number of datagrams,
//! gives their requests to the engine in a batch, and answers each at once. Nothing of a datagram is kept afterwards.

use std::io::{self, ErrorKind, Write};
use std::mem;

use nuthatch_commands::output::Output;
use nuthatch_commands::turn::{Source, Stop, Turn};
use nuthatch_engine::{AnyValue, Time};
use nuthatch_protocol::datagram;
use nuthatch_protocol::encode::TooMuch;
use nuthatch_state::buffers::TurnLimits;

use super::Worker;
use super::iteration::BUFFER;
use crate::datagrams::{self, DATAGRAM_MAX, Datagram, Sender};
use crate::protocols::Phase;

/// Datagrams of an iteration: connections have their turn in between.
const DATAGRAMS_MAX: usize = 64;

impl Worker {
    /// Registers the datagram sockets with the poll.
    pub(super) fn register_datagrams(&mut self) -> io::Result<()> {
        for (index, socket) in self.datagram_sockets.iter_mut().enumerate() {
            let token = datagrams::token(index);
            let registry = self.poll.registry();
            registry.register(&mut socket.socket, token, mio::Interest::READABLE)?;
        }
        Ok(())
    }

    /// True if datagrams may wait.
    pub(super) fn has_datagrams(&self) -> bool {
        self.reading && self.datagram_sockets.iter().any(|socket| socket.ready)
    }

    /// Takes some of the datagrams that have come, and answers them.
    pub(super) fn serve_datagrams(&mut self, now: Time) {
        if !self.has_datagrams() {
            return;
        }
        let begun = std::time::Instant::now();
        self.used = 0;
        for index in 0..self.datagram_sockets.len() {
            self.receive(index);
        }
        // Turns that paused so that others could be answered go on.
        while !self.turns.is_empty() {
            self.serve_turns(now, true);
            self.answer_datagrams();
            let pending = &self.own.counters.pending;
            self.own.latencies.note(pending, begun.elapsed());
        }
        self.datagrams.clear();
    }

    /// Reads datagrams of a socket, a turn for each.
    fn receive(&mut self, index: usize) {
        let reply_max = self.live.udp_reply_max.get();
        let turn_limits = TurnLimits {
            output_cap: reply_max,
            requests_max: self.shared.config.batch_max.get(),
            read_max: DATAGRAM_MAX,
            awaited_max: DATAGRAM_MAX,
        };
        let socket = &mut self.datagram_sockets[index];
        while socket.ready
            && self.datagrams.len() < DATAGRAMS_MAX
            && self.used + DATAGRAM_MAX <= BUFFER
        {
            let room = &mut self.buffer[self.used..self.used + DATAGRAM_MAX];
            let (count, peer) = match socket.socket.recv_from(room) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    socket.ready = false;
                    return;
                }
                // The error of an earlier answer: its client's socket is closed.
                Err(_) => continue,
            };
            self.own.counters.udp_datagrams.bump();
            self.own.counters.bytes_read.add(count as u64);
            let Some((request, text)) = datagram::parse(&room[..count]) else {
                self.own.counters.udp_dropped.bump();
                continue;
            };
            let (start, end) = (self.used + text, self.used + count);
            self.used = end;
            self.turns.push(Turn::new(
                self.datagrams.len(),
                Source::Buffer(start, end),
                Output::with_buffer(self.pool.take()),
                turn_limits,
                self.live.commands_per_turn.get(),
            ));
            self.datagrams.push(Datagram {
                socket: index,
                peer,
                request,
                phase: Phase::begin(socket.protocol, false),
            });
        }
    }

    /// Answers the datagrams whose turns have ended, and keeps the other turns for the next round. Those that have not
    /// run yet come first there, as with connections.
    fn answer_datagrams(&mut self) {
        let mut turns = mem::take(&mut self.turns);
        turns.sort_by_key(|turn| turn.has_run);
        for mut turn in turns {
            if turn.stop == Stop::Yielded && turn.commands_left > 0 {
                (turn.stop, turn.has_run) = (Stop::Batch, false);
                self.turns.push(turn);
                continue;
            }
            if turn.stop == Stop::Panicked {
                continue;
            }
            self.judge(&mut turn);
            self.send(turn);
        }
    }

    /// Drops a request of which a part is missing or which is too long, and an answer that is too large.
    fn judge(&mut self, turn: &mut Turn) {
        let counters = &self.own.counters;
        let phase = &mut self.datagrams[turn.id].phase;
        let refusal = match turn.stop {
            // The commands that are left are not parsed: the work for a datagram has a bound.
            Stop::Yielded if has_rest(turn) => Some(TooMuch::Commands),
            Stop::Full => Some(TooMuch::Answer),
            _ if turn.output.len() > turn.limits.output_cap => Some(TooMuch::Answer),
            _ => None,
        };
        if let Some(what) = refusal {
            counters.udp_too_large.bump();
            turn.output = Output::default();
            phase.say_too_much(what, turn.output.text());
        } else if !turn.closing && (!phase.is_at_request() || has_rest(turn)) {
            counters.udp_dropped.bump();
        }
        phase.forget();
    }

    /// Sends an answer. What the kernel does not take is lost.
    fn send(&mut self, turn: Turn) {
        let mut output: Output<AnyValue> = turn.output;
        if !output.is_empty() {
            let datagram = &self.datagrams[turn.id];
            let socket = &self.datagram_sockets[datagram.socket].socket;
            let mut frames = Sender::new(socket, datagram.peer, datagram.request, output.len());
            let mut sent = 0;
            let written = output.write_to(&mut frames, &mut sent);
            if written.and_then(|_| frames.flush()).is_err() {
                self.own.counters.udp_unsent.bump();
                return;
            }
            self.own.counters.bytes_written.add(sent);
        }
        self.pool.give(output.into_buffer());
    }
}

/// True if bytes are left of a request's datagram.
fn has_rest(turn: &Turn) -> bool {
    match turn.source {
        Source::Buffer(start, end) => start + turn.position < end,
        Source::Kept(..) => false,
    }
}
