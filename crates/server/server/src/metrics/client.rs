//! One client of the endpoint: its request, its answer, its end. Nothing here waits: a client that is slow keeps its
//! place among the [`clients`](super::clients), and no thread.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use nuthatch_security::guesses::Origin;
use nuthatch_state::server_state::ServerState;

use super::health::{self, Check};
use super::http::{self, Request};

/// The longest request.
const REQUEST_MAX: usize = 8 << 10;

/// Bytes of a read.
const READ: usize = 2 << 10;

/// Reads of what a client sends behind its request.
const READS: usize = 64;

/// How long a client may take in all to send its request, and again to close when it has its answer: a byte now and
/// then wins it no time.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client may take in all to read the answer: as long as Prometheus waits for it by default.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// A client.
pub(super) struct Client {
    stream: TcpStream,
    /// Where it comes from.
    pub(super) origin: Origin,
    state: State,
    /// When the patience with it ends.
    latest: Instant,
}

/// What a client is awaited for.
enum State {
    /// The rest of its request.
    Request(Vec<u8>),
    /// Nothing: the workers are.
    Check { check: Check, wants_body: bool },
    /// That it reads its answer, of which so many bytes are sent.
    Answer { answer: Vec<u8>, sent: usize },
    /// That it closes; what it sends meanwhile is read so many times more.
    Close { reads: usize },
}

/// Whether a client stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is awaited.
    Waits,
    /// All is said.
    Over,
}

impl Client {
    pub(super) fn new(stream: TcpStream, origin: Origin, now: Instant) -> Self {
        Self {
            stream,
            origin,
            state: State::Request(Vec::new()),
            latest: now + PATIENCE,
        }
    }

    /// The socket, to be registered.
    pub(super) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// True if its health check is under way.
    pub(super) fn is_checked(&self) -> bool {
        matches!(self.state, State::Check { .. })
    }

    /// How long it may stay without an event.
    pub(super) fn patience(&self, now: Instant) -> Duration {
        match self.state {
            State::Check { .. } => health::STEP,
            _ => self.latest.saturating_duration_since(now),
        }
    }

    /// Does all that can be done now. Errors end the client.
    pub(super) fn advance(&mut self, shared: &ServerState, now: Instant) -> io::Result<Turn> {
        loop {
            match self.step(shared, now) {
                Ok(Some(turn)) => return Ok(turn),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return match now < self.latest {
                        true => Ok(Turn::Waits),
                        false => Err(ErrorKind::TimedOut.into()),
                    };
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One read or write. `None` if another may follow.
    fn step(&mut self, shared: &ServerState, now: Instant) -> io::Result<Option<Turn>> {
        match &mut self.state {
            State::Request(bytes) => {
                let mut room = [0; READ];
                let most = READ.min(REQUEST_MAX - bytes.len());
                let count = self.stream.read(&mut room[..most])?;
                bytes.extend_from_slice(&room[..count]);
                let is_end = count == 0 || bytes.len() == REQUEST_MAX;
                match Request::parse(bytes) {
                    Some(request) => self.begin(shared, request, now),
                    None if is_end => self.begin(shared, Request::Bad, now),
                    None => {}
                }
            }
            State::Check { check, wants_body } => {
                let Some(outcome) = check.outcome(shared, now) else {
                    return Ok(Some(Turn::Waits));
                };
                let answer = http::health(outcome, *wants_body);
                self.answer(answer, now);
            }
            State::Answer { answer, sent } => {
                *sent += self.stream.write(&answer[*sent..])?;
                if *sent == answer.len() {
                    self.stream.shutdown(Shutdown::Write)?;
                    self.state = State::Close { reads: READS };
                    self.latest = now + PATIENCE;
                }
            }
            // With unread input the kernel would reset the connection before the client has read the answer.
            State::Close { reads } => {
                let is_last = *reads == 0 || self.stream.read(&mut [0; READ])? == 0;
                if is_last {
                    return Ok(Some(Turn::Over));
                }
                *reads -= 1;
            }
        }
        Ok(None)
    }

    /// The request has arrived.
    fn begin(&mut self, shared: &ServerState, request: Request, now: Instant) {
        match request {
            Request::Health { wants_body } => {
                let check = Check::begin(shared, now);
                self.state = State::Check { check, wants_body };
            }
            request => self.answer(http::answer(shared, request), now),
        }
    }

    fn answer(&mut self, answer: String, now: Instant) {
        let answer = answer.into_bytes();
        self.state = State::Answer { answer, sent: 0 };
        self.latest = now + ANSWER_PATIENCE;
    }
}
