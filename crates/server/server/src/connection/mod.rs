//! A connection between two turns. Most connections are idle most of the time, so a connection owns no buffer unless
//! the buffer has data.
//!
//! * [`state`]: the states of its socket, of its place in the run queue, and of its end.

pub(crate) mod state;

use std::sync::Arc;
use std::time::Duration;

use nuthatch_commands::output::Output;
use nuthatch_engine::{AnyValue, Time};
use nuthatch_settings::config::Protocol;
use nuthatch_state::buffers::{PATIENCE, READ_MAX, TurnLimits};
use nuthatch_state::origins::Seat;
use nuthatch_state::stream::Stream;
use nuthatch_state::telemetry::connections::Info;
use nuthatch_state::telemetry::watch::line::Reason;
use nuthatch_state::uploads::PARTS;
use nuthatch_state::worker::Arrival;

use self::state::State;
use crate::pending_input::PendingInput;
use crate::protocols::Phase;

/// Requests that a fresh connection may have in a batch.
const IN_BATCH_FIRST: usize = 32;

/// One client.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) info: Arc<Info>,
    _seat: Option<Seat>,
    /// What its listener's clients speak.
    pub(crate) protocol: Protocol,
    /// Its client has to log in.
    login: bool,
    /// When it was last seen admitted, or else when it was accepted: the client's time limit to log in counts from
    /// here.
    admitted: Time,
    /// Input that was read and not used up.
    pub(crate) waiting: PendingInput,
    /// Replies that the socket did not take.
    pub(crate) output: Output<AnyValue>,
    pub(crate) phase: Phase,
    /// Bytes of buffers that the account has for it.
    pub(crate) accounted: usize,
    /// When it last held nothing, or had last used up or sent as many bytes as it holds.
    turned_over: Time,
    /// Bytes used up and sent since then.
    moved: usize,
    /// Bytes sent so far.
    sent: u64,
    /// How its client takes values that stay in the engine, while there are any.
    pub(crate) reading: Option<Reading>,
    /// When a byte last came from the client or went to it.
    pub(crate) active: Time,
    /// Bytes that the client's side had not taken from the kernel when the worker last asked the kernel.
    pub(crate) untaken: usize,
    /// Requests that this connection may have in a batch: see [`Turn`](nuthatch_commands::turn::Turn).
    pub(crate) in_batch_max: usize,
    pub(crate) state: State,
    /// What watchers receive when it is closed, unless the server stops: the reason is known before the client has taken
    /// the last reply.
    pub(crate) end: Reason,
}

impl Connection {
    pub(crate) fn new(arrival: Arrival, now: Time) -> Self {
        Self {
            stream: arrival.stream,
            info: arrival.info,
            _seat: arrival.seat,
            protocol: arrival.protocol,
            waiting: PendingInput::default(),
            output: Output::default(),
            phase: Phase::begin(arrival.protocol, arrival.login),
            login: arrival.login,
            admitted: now,
            accounted: 0,
            turned_over: now,
            moved: 0,
            sent: 0,
            reading: None,
            active: now,
            untaken: 0,
            in_batch_max: IN_BATCH_FIRST,
            state: State::new(),
            end: Reason::Normal,
        }
    }

    /// Bytes to read in a turn.
    #[inline]
    pub(crate) fn read_max(&self, turn_limits: &TurnLimits) -> usize {
        // Bytes of the value go to the engine, and need not be kept.
        self.phase.missing().clamp(turn_limits.read_max, READ_MAX)
    }

    /// Bytes of buffers that it holds.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        self.waiting.memory() + self.output.memory() + self.phase.memory()
    }

    /// Notes that this many bytes of input were used up, or of output were sent.
    #[inline]
    pub(crate) fn has_moved(&mut self, bytes: usize) {
        self.moved = self.moved.saturating_add(bytes);
    }

    /// Notes that this many bytes were sent.
    pub(crate) fn has_sent(&mut self, bytes: u64) {
        self.sent += bytes;
        self.has_moved(bytes as usize);
    }

    /// Looks at how its client takes values that stay in the engine. True if it takes hardly anything of them for
    /// [`PATIENCE`]. A part of the values counts and not a number of bytes, so that a client is done after a time that
    /// has a bound.
    pub(crate) fn is_stuck_reading(&mut self, now: Time) -> bool {
        let Some(reading) = &mut self.reading else {
            return false;
        };
        if now.since(reading.since) < PATIENCE {
            return false;
        }
        if self.sent - reading.sent < (reading.pinned / PARTS) as u64 {
            return true;
        }
        *reading = Reading::of(now, self.sent, self.output.pinned());
        false
    }

    /// Notes whether values that stay in the engine wait for the client. Returns whether they did, and whether they do.
    #[inline]
    pub(crate) fn note_pins(&mut self, now: Time) -> (bool, bool) {
        let before = self.reading.is_some();
        match self.output.pinned() {
            0 => self.reading = None,
            pinned => {
                let sent = self.sent;
                self.reading.get_or_insert(Reading::of(now, sent, pinned));
            }
        }
        (before, self.reading.is_some())
    }

    /// Updates how many bytes of buffers it holds. Returns the old number and the new one.
    #[inline]
    pub(crate) fn account(&mut self, now: Time) -> (usize, usize) {
        let (before, held) = (self.accounted, self.memory());
        if before == 0 || self.moved >= held {
            self.turned_over = now;
            self.moved = 0;
        }
        self.accounted = held;
        (before, held)
    }

    /// Drops the client's unfinished work: input that waits, and the state of its protocol.
    pub(crate) fn forget_input(&mut self) {
        self.waiting = PendingInput::default();
        self.phase = Phase::begin(self.protocol, self.login);
    }

    /// True if its client takes longer than `limit` with its handshake or its password. The worker calls this again and
    /// again while the client is admitted, so a client that gives its login up (RESET) has the whole limit again.
    pub(crate) fn is_late(&mut self, limit: Duration, now: Time) -> bool {
        let is_admitted = match self.phase {
            Phase::Undecided { .. } => !self.login,
            _ => self.phase.is_admitted(),
        };
        if is_admitted && self.stream.is_ready() {
            self.admitted = now;
        }
        now.since(self.admitted) >= limit
    }

    /// What it costs the other connections: bytes that it holds and that have not moved, times the moments for which it
    /// has held as many. So of two connections that hold as much for as long, the one whose client reads costs less.
    pub(crate) fn cost(&self, now: Time) -> u64 {
        let moments = now.0.saturating_sub(self.turned_over.0);
        self.accounted.saturating_sub(self.moved) as u64 * (u64::from(moments) + 1)
    }

    /// True if it has held its bytes for this long, and fewer than all of them have moved.
    pub(crate) fn is_stuck_for(&self, time: Duration, now: Time) -> bool {
        now.since(self.turned_over) >= time
    }

    /// Notes the time of a command.
    #[inline]
    pub(crate) fn touch(&mut self, now: Time) {
        if now.seconds() != self.active.seconds() {
            self.info.set_active(now);
        }
        self.active = now;
    }
}

/// The state of a client's reading when it was last looked at.
pub(crate) struct Reading {
    since: Time,
    /// Bytes sent to it by then.
    sent: u64,
    /// Unsent bytes of values that stay in the engine.
    pinned: usize,
}

impl Reading {
    fn of(since: Time, sent: u64, pinned: usize) -> Self {
        Self {
            since,
            sent,
            pinned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_security::login::Login;
    use nuthatch_state::stream::Socket;
    use nuthatch_state::telemetry::connections::Peer;

    fn connection(login: bool) -> Connection {
        let (socket, _) = mio::net::UnixStream::pair().unwrap();
        let arrival = Arrival {
            stream: Stream::new(Socket::Unix(socket), None),
            info: Arc::new(Info::unregistered(Peer::Unix, Time(0))),
            seat: None,
            protocol: Protocol::Redis,
            login,
        };
        Connection::new(arrival, Time(0))
    }

    #[test]
    fn who_gives_up_that_it_is_admitted_has_as_long_again() {
        let limit = Duration::from_secs(30);
        let at = |seconds| Time(0).after(Duration::from_secs(seconds));
        let mut silent = connection(true);
        assert!(!silent.is_late(limit, at(29)) && silent.is_late(limit, at(30)));
        let mut client = connection(true);
        client.phase = Phase::begin(Protocol::Redis, false);
        assert!(!client.is_late(limit, at(1000)));
        // RESET: a client sends it when it gives its connection back to a pool.
        client.phase = Phase::begin(Protocol::Redis, true);
        assert!(!client.is_late(limit, at(1001)) && !client.is_late(limit, at(1029)));
        assert!(client.is_late(limit, at(1030)));
        assert!(!connection(false).is_late(limit, at(1000)));
    }

    #[test]
    fn what_login_bears_is_counted() {
        let mut login = Login::default();
        let borne = (0..100).take_while(|_| !login.is_enough()).count();
        assert_eq!(borne, 7);
    }
}
