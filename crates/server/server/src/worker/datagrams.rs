//! How a worker serves datagrams: in iterations, like connections. An iteration reads a bounded number of datagrams,
//! gives their requests to the engine in a batch, and answers each at once. Nothing of a datagram is kept afterwards.

use std::io::{self, ErrorKind, Write};
use std::mem;

use nuthatch_commands::output::Output;
use nuthatch_commands::protocols::Phase;
use nuthatch_commands::slice::{Slice, Source, Stop};
use nuthatch_engine::{AnyValue, Time};
use nuthatch_protocol::datagram;
use nuthatch_protocol::encode::TooMuch;
use nuthatch_state::account::Terms;

use super::Worker;
use super::iteration::BUFFER;
use crate::datagrams::{self, DATAGRAM_MAX, Datagram, Sender};

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
        // Slices that paused so that others could be answered go on.
        while !self.slices.is_empty() {
            self.run_slices(now, true);
            self.answer_datagrams();
            let pending = &self.own.counters.pending;
            self.own.latencies.note(pending, begun.elapsed());
        }
        self.datagrams.clear();
    }

    /// Reads datagrams of a socket, a slice for each.
    fn receive(&mut self, index: usize) {
        let reply_max = self.live.udp_reply_max.get();
        let terms = Terms {
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
            self.slices.push(Slice {
                id: self.datagrams.len(),
                source: Source::Buffer(start, end),
                position: 0,
                terms,
                logged: 0,
                output: Output::with_buffer(self.pool.take()),
                in_batch: 0,
                in_batch_max: terms.requests_max,
                commands_left: self.live.commands_per_slice.get(),
                has_run: false,
                stop: Stop::Batch,
                awaited: Default::default(),
                closing: false,
                has_quit: false,
            });
            self.datagrams.push(Datagram {
                socket: index,
                peer,
                request,
                phase: Phase::begin(socket.protocol, false),
            });
        }
    }

    /// Answers the datagrams whose slices have ended, and keeps the other slices for the next round. Those that have not
    /// run yet come first there, as with connections.
    fn answer_datagrams(&mut self) {
        let mut slices = mem::take(&mut self.slices);
        slices.sort_by_key(|slice| slice.has_run);
        for mut slice in slices {
            if slice.stop == Stop::Yielded && slice.commands_left > 0 {
                (slice.stop, slice.has_run) = (Stop::Batch, false);
                self.slices.push(slice);
                continue;
            }
            if slice.stop == Stop::Panicked {
                continue;
            }
            self.judge(&mut slice);
            self.send(slice);
        }
    }

    /// Drops a request of which a part is missing or which is too long, and an answer that is too large.
    fn judge(&mut self, slice: &mut Slice) {
        let counters = &self.own.counters;
        let phase = &mut self.datagrams[slice.id].phase;
        let refusal = match slice.stop {
            // The commands that are left are not parsed: the work for a datagram has a bound.
            Stop::Yielded if has_rest(slice) => Some(TooMuch::Commands),
            Stop::Full => Some(TooMuch::Answer),
            _ if slice.output.len() > slice.terms.output_cap => Some(TooMuch::Answer),
            _ => None,
        };
        if let Some(what) = refusal {
            counters.udp_too_large.bump();
            slice.output = Output::default();
            phase.say_too_much(what, slice.output.text());
        } else if !slice.closing && (!phase.is_at_request() || has_rest(slice)) {
            counters.udp_dropped.bump();
        }
        phase.forget();
    }

    /// Sends an answer. What the kernel does not take is lost.
    fn send(&mut self, slice: Slice) {
        let mut output: Output<AnyValue> = slice.output;
        if !output.is_empty() {
            let datagram = &self.datagrams[slice.id];
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
fn has_rest(slice: &Slice) -> bool {
    match slice.source {
        Source::Buffer(start, end) => start + slice.position < end,
        Source::Kept(..) => false,
    }
}
