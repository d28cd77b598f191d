//! The HTTP endpoint of metrics (`--metrics`). A thread of its own serves it, so a scrape costs the workers nothing.

mod client;
mod clients;
mod health;
mod http;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use nuthatch_context::config::ListenAddress;
use nuthatch_context::shared::Shared;
use nuthatch_context::shutdown::Shutdown;
use nuthatch_security::guesses::Origin;

use self::clients::Clients;
use crate::handover::taking::Newcomer;
use crate::handover::{METRICS, Named};
use crate::listen;

/// A bound endpoint.
pub(crate) struct Endpoint {
    listener: TcpListener,
    poll: Poll,
}

impl Endpoint {
    /// Binds the first of these places that this machine has, if there are any. Errors name the address.
    pub(crate) fn bind_first(
        places: &[ListenAddress],
        mut newcomer: Option<&mut Newcomer>,
        shutdown: &Shutdown,
    ) -> io::Result<Option<Self>> {
        let mut tried = Ok(None);
        for place in places {
            tried = Self::bind(place, newcomer.as_deref_mut(), shutdown).map(Some);
            match &tried {
                Err(error) if listen::has_no_address(error) => {}
                _ => break,
            }
        }
        tried
    }

    fn bind(
        place: &ListenAddress,
        newcomer: Option<&mut Newcomer>,
        shutdown: &Shutdown,
    ) -> io::Result<Self> {
        let bound = match place {
            ListenAddress::Tcp(address) => {
                let given = newcomer.and_then(|newcomer| newcomer.tcp(METRICS, *address));
                match given {
                    Some(socket) => Ok(TcpListener::from_std(socket.into())),
                    None => TcpListener::bind(*address),
                }
            }
            ListenAddress::Inherited(fd) => listen::inherit_tcp(*fd),
            _ => Err(io::Error::other("metrics are served by TCP")),
        };
        let mut listener = bound.map_err(|error| {
            let text = format!("--metrics: {}", listen::named(place, None, &error));
            io::Error::new(listen::kind(&error), text)
        })?;
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        shutdown.wake_also(Arc::new(Waker::new(registry, WAKE)?))?;
        Ok(Self { listener, poll })
    }

    /// Its socket, for another process.
    pub(crate) fn copy(&self) -> io::Result<Named> {
        Ok(Named {
            name: METRICS,
            socket: self.listener.as_fd().try_clone_to_owned()?,
        })
    }

    /// Where it was bound.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let mut clients = Clients::new();
        // Events are edge-triggered: none repeats that there are connections which were not accepted.
        let mut waiting = Waiting::Nobody;
        while !shared.shutdown.is_requested() {
            let patience = [clients.patience(), waiting.patience()];
            let patience = patience.into_iter().flatten().min();
            match self.poll.poll(&mut events, patience) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => waiting = Waiting::Somebody,
                    WAKE => {}
                    Token(id) => clients.advance(id, shared),
                }
            }
            clients.advance_due(shared);
            if waiting != Waiting::Nobody {
                waiting = self.accept_some(&mut clients, shared);
            }
        }
        Ok(())
    }

    /// Accepts a few, and returns whether there may be more: those who have come are looked at in between, before they
    /// are displaced.
    fn accept_some(&self, clients: &mut Clients, shared: &Shared) -> Waiting {
        for _ in 0..ACCEPTS {
            let accepted = self.listener.accept().and_then(|(stream, peer)| {
                let origin = Origin::of(Some(peer.ip()));
                clients.enter(stream, origin, self.poll.registry(), shared)
            });
            match accepted {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Waiting::Nobody,
                // A connection broke, or no descriptor is left.
                Err(_) => return Waiting::Later,
            }
        }
        Waiting::Somebody
    }
}

const LISTENER: Token = Token(usize::MAX);
const WAKE: Token = Token(usize::MAX - 1);

/// Events that are taken at a time.
const EVENTS: usize = 64;

/// Connections that are accepted in a row.
const ACCEPTS: usize = 8;

/// How long the endpoint rests after an error of accept.
const REST: Duration = Duration::from_millis(50);

/// Whether there are connections to accept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nobody,
    Somebody,
    /// There may be, but the last try failed.
    Later,
}

impl Waiting {
    /// How long the endpoint may wait for events meanwhile. `None` is without an end.
    fn patience(self) -> Option<Duration> {
        match self {
            Self::Nobody => None,
            Self::Somebody => Some(Duration::ZERO),
            Self::Later => Some(REST),
        }
    }
}
