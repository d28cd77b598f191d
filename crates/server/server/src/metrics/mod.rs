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
use nuthatch_security::guesses::Origin;
use nuthatch_settings::config::{Listen, ListenAddress};
use nuthatch_state::server_state::ServerState;
use nuthatch_state::shutdown::Shutdown;

use self::clients::Clients;
use crate::handover::taking::Successor;
use crate::handover::{METRICS, Named};
use crate::listen;

/// A bound endpoint.
pub(crate) struct Endpoint {
    listeners: Vec<TcpListener>,
    poll: Poll,
}

impl Endpoint {
    /// Binds these addresses, if there are any. Errors name the address.
    pub(crate) fn bind(
        addresses: &[Listen],
        mut successor: Option<&mut Successor>,
        shutdown: &Shutdown,
    ) -> io::Result<Option<Self>> {
        if addresses.is_empty() {
            return Ok(None);
        }
        let bind = |listen: &Listen| bind(listen, successor.as_deref_mut());
        let mut listeners = listen::bind_and_warn(addresses.iter(), bind)?;
        let poll = Poll::new()?;
        let registry = poll.registry();
        for listener in &mut listeners {
            registry.register(listener, LISTENER, Interest::READABLE)?;
        }
        shutdown.wake_also(Arc::new(Waker::new(registry, WAKE)?))?;
        Ok(Some(Self { listeners, poll }))
    }

    /// Its sockets, for another process.
    pub(crate) fn copies(&self) -> io::Result<Vec<Named>> {
        let copies = self.listeners.iter().map(|listener| {
            Ok(Named {
                name: METRICS,
                socket: listener.as_fd().try_clone_to_owned()?,
            })
        });
        copies.collect()
    }

    /// Where it was bound.
    pub(crate) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self, shared: &ServerState) -> io::Result<()> {
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
    fn accept_some(&self, clients: &mut Clients, shared: &ServerState) -> Waiting {
        let each = self.listeners.iter();
        let each = each.map(|listener| self.accept_at(listener, clients, shared));
        each.max().unwrap_or(Waiting::Nobody)
    }

    fn accept_at(
        &self,
        listener: &TcpListener,
        clients: &mut Clients,
        shared: &ServerState,
    ) -> Waiting {
        for _ in 0..ACCEPTS {
            let accepted = listener.accept().and_then(|(stream, peer)| {
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

fn bind(listen: &Listen, successor: Option<&mut Successor>) -> io::Result<TcpListener> {
    let address = &listen.address;
    let bound = match address {
        ListenAddress::Tcp(address) => {
            let given = successor.and_then(|successor| successor.tcp(METRICS, *address));
            let bound = given.map_or_else(|| listen::listen_at(*address, BACKLOG), Ok);
            bound.map(|socket| TcpListener::from_std(socket.into()))
        }
        ListenAddress::Inherited(fd) => listen::inherit_tcp(*fd),
        _ => Err(io::Error::other("metrics are served by TCP")),
    };
    bound.map_err(|error| {
        let named = listen::named(address, listen.name.as_deref(), &error);
        io::Error::new(named.kind(), format!("--metrics: {named}"))
    })
}

/// All listeners have one token: whichever has a client, all are asked.
const LISTENER: Token = Token(usize::MAX);
const WAKE: Token = Token(usize::MAX - 1);

/// Events that are taken at a time.
const EVENTS: usize = 64;

/// Connections that the kernel queues before they are accepted.
const BACKLOG: i32 = 128;

/// Connections that are accepted in a row at an address.
const ACCEPTS: usize = 8;

/// How long the endpoint rests after an error of accept.
const REST: Duration = Duration::from_millis(50);

/// Whether there are connections to accept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Waiting {
    Nobody,
    /// There may be, but the last try failed.
    Later,
    Somebody,
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
