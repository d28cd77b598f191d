//! The acceptor thread: it accepts connections and hands each to the worker that has the fewest connections.

use std::io::{self, ErrorKind, Write};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};
use nuthatch_protocol::encode::Crowd;
use nuthatch_security::guesses::Origin;
use nuthatch_state::buffers::Level;
use nuthatch_state::origins::Seat;
use nuthatch_state::server_state::ServerState;
use nuthatch_state::stream::{Socket, Stream};
use nuthatch_state::telemetry::connections::Peer;
use nuthatch_state::worker::Arrival;

use crate::listen::Listener;
use crate::protocols;
use crate::rejected::Rejected;
use crate::sys::peer;

const WAKE: Token = Token(usize::MAX);

/// How long the acceptor rests when the process has no descriptor left: by then some connection will have closed.
const REST: Duration = Duration::from_millis(20);

/// How often a stopping acceptor looks whether a pause is over.
const PAUSE_STEP: Duration = Duration::from_millis(1);

/// Accepts until the server stops.
pub(crate) struct Acceptor {
    shared: Arc<ServerState>,
    poll: Poll,
    listeners: Vec<Listener>,
    /// Listeners that an event reported ready and that no accept has found empty since. Events are edge-triggered: the
    /// poll does not repeat an event that the acceptor did not act upon.
    ready: Vec<bool>,
    /// Since when the acceptor rests, if it does.
    resting: Option<Instant>,
    rejected: Rejected,
}

impl Acceptor {
    pub(crate) fn new(shared: Arc<ServerState>, mut listeners: Vec<Listener>) -> io::Result<Self> {
        let poll = Poll::new()?;
        for (index, listener) in listeners.iter_mut().enumerate() {
            listener.register(poll.registry(), Token(index))?;
        }
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        shared.shutdown.wake_also(waker)?;
        Ok(Self {
            shared,
            poll,
            ready: vec![false; listeners.len()],
            listeners,
            resting: None,
            rejected: Rejected::default(),
        })
    }

    /// Returns when the stop is requested, and closes the listeners on return.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        while !self.shared.shutdown.is_requested() {
            match self.poll.poll(&mut events, self.patience()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                if event.token() != WAKE {
                    self.ready[event.token().0] = true;
                }
            }
            if self.shared.pause.stops_accepting() {
                self.shared.pause.acceptor_rests();
                continue;
            }
            self.wake_up();
            self.rejected.close_old(Instant::now());
            for index in 0..self.listeners.len() {
                if self.ready[index] {
                    self.accept_all(index);
                }
            }
        }
        self.leave();
        Ok(())
    }

    /// Closes the listeners. After a handover the other process has them, and the files of unix sockets stay.
    fn leave(self) {
        // The other process may be about to take them over.
        while self.shared.pause.stops_accepting() {
            std::thread::sleep(PAUSE_STEP);
        }
        if self.shared.pause.is_handed_over() {
            self.listeners.into_iter().for_each(Listener::leave);
        }
    }

    /// How long to wait for clients.
    fn patience(&self) -> Option<Duration> {
        match self.resting {
            Some(_) => Some(REST),
            None => self.rejected.patience(Instant::now()),
        }
    }

    /// Ends a rest that has lasted long enough.
    fn wake_up(&mut self) {
        if let Some(since) = self.resting
            && since.elapsed() >= REST
        {
            let rested = since.elapsed().as_micros() as u64;
            self.shared
                .telemetry
                .accepting
                .time_in_listen_disabled_us
                .add(rested);
            self.shared.telemetry.accepting.set_suspended(false);
            self.resting = None;
        }
    }

    fn accept_all(&mut self, index: usize) {
        while self.resting.is_none() && !self.shared.shutdown.is_requested() {
            match self.listeners[index].accept() {
                Ok((socket, address)) => {
                    let peer = match address {
                        Some(address) => Peer::Tcp(address),
                        None => Peer::Unix,
                    };
                    // Unwind safe: the socket is closed and its seat is free, and no other connection is concerned.
                    let placed = catch_unwind(AssertUnwindSafe(|| self.place(index, socket, peer)));
                    if placed.is_err() {
                        self.shared.telemetry.accepting.rejected_connections.bump();
                        tracing::error!(
                            %peer,
                            "closed: its acceptance met a fault of the server; please report it"
                        );
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.ready[index] = false;
                    return;
                }
                Err(error) if is_exhaustion(&error) => {
                    tracing::warn!(%error, "accepting rests");
                    self.rejected.close_all();
                    self.shared.telemetry.accepting.listen_disabled_num.bump();
                    self.shared.telemetry.accepting.set_suspended(true);
                    self.resting = Some(Instant::now());
                }
                // The connection died before it was accepted; the next one is well.
                Err(error) => tracing::debug!(%error, "accept"),
            }
        }
    }

    /// Hands a connection on, or refuses it.
    fn place(&mut self, number: usize, socket: Socket, peer: Peer) {
        let shared = &self.shared;
        if let Err(why) = self.may_connect(&socket) {
            shared.telemetry.accepting.rejected_connections.bump();
            tracing::warn!("a unix socket's client is refused: {why}");
            return;
        }
        let seat = match self.seat(peer) {
            Ok(seat) => seat,
            Err(crowd) => return self.refuse(number, socket, crowd),
        };
        let listener = &self.listeners[number];
        let protocol = listener.protocol();
        let tls = shared.security.tls.as_ref().zip(listener.tls());
        let tls = tls.map(|(tls, verify)| tls.session(verify));
        let tls = match tls.transpose() {
            Ok(tls) => tls,
            Err(error) => return tracing::warn!(%error, "a TLS session"),
        };
        let local = socket.local();
        let stream = Stream::new(socket, tls);
        let fd = stream.as_fd().as_raw_fd();
        tracing::debug!("<{fd} new client connected from {peer}");
        shared.telemetry.accepting.total_connections.bump();
        let now = shared.clock.now();
        let info = shared.telemetry.registry.enter(peer, local, number, now);
        let worker = shared
            .workers
            .iter()
            .min_by_key(|worker| worker.connections());
        if let Some(worker) = worker {
            worker.leave(Arrival {
                stream,
                info,
                seat,
                protocol,
                login: shared.security.has_passwords(),
            });
        }
    }

    /// The place of one more connection. Errors: there are too many.
    fn seat(&self, peer: Peer) -> Result<Option<Seat>, Crowd> {
        let shared = &self.shared;
        let seat = match peer {
            Peer::Tcp(address) => {
                let origin = Origin::of(Some(address.ip()));
                let limit = shared.live.load().address_connections_max;
                let most = limit.map_or(usize::MAX, NonZeroUsize::get);
                let seat = shared.accounts.origins.take_seat(origin, most).ok_or_else(|| {
                    shared.telemetry.accepting.rejected_by_address.bump();
                    tracing::warn!(peer = %origin, most, "refused: an address may have no more connections");
                    Crowd::OfAddress
                });
                Some(seat?)
            }
            Peer::Udp(_) | Peer::Unix | Peer::Ring => None,
        };
        let buffers = &shared.accounts.buffers;
        let is_full = shared.connections() >= shared.live.load().connections_max.get();
        // Each takes memory before it asks for anything, under TLS most.
        let is_in_want = buffers.is_in_want() && buffers.level() == Level::Over;
        match is_full || is_in_want {
            true => Err(Crowd::OfServer),
            false => Ok(seat),
        }
    }

    /// Tells a client that there are too many.
    fn refuse(&mut self, number: usize, socket: Socket, crowd: Crowd) {
        self.shared.telemetry.accepting.rejected_connections.bump();
        let listener = &self.listeners[number];
        // Under TLS nothing can be said before the handshake.
        if let Some(words) = protocols::too_many(listener.protocol(), crowd)
            && listener.tls().is_none()
        {
            let mut stream = Stream::new(socket, None);
            // A fresh socket takes so few bytes, unless its peer has closed.
            let _ = stream.write(words);
            self.rejected.keep(stream, Instant::now());
        }
    }

    /// `Ok` if the process at the other end may be a client. For unix sockets the kernel tells its user.
    fn may_connect(&self, socket: &Socket) -> Result<(), String> {
        let Socket::Unix(socket) = socket else {
            return Ok(());
        };
        let peer = peer::user(socket).map_err(|error| error.to_string())?;
        let is_own = peer == 0 || peer == nix::unistd::geteuid().as_raw();
        match is_own || self.shared.live.load().lets_user(peer) {
            true => Ok(()),
            false => Err(format!("user {peer}")),
        }
    }
}

/// Errors of accept that last until some descriptor is closed.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}
