//! The HTTP endpoint of metrics (`--metrics`). Threads of its own serve it, so a scrape costs the workers nothing.

mod health;
mod http;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use nuthatch_context::config::ListenAddress;
use nuthatch_context::shared::Shared;
use nuthatch_context::shutdown::Shutdown;

use self::http::Scrapes;
use crate::handover::taking::Newcomer;
use crate::handover::{METRICS, Named};
use crate::listen;

/// A bound endpoint.
pub(crate) struct Endpoint {
    listener: TcpListener,
    poll: Poll,
}

impl Endpoint {
    /// Errors name the address.
    pub(crate) fn bind(
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
            let text = format!("--metrics: {}", listen::named(place, &error));
            io::Error::new(error.kind(), text)
        })?;
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, Token(0), Interest::READABLE)?;
        shutdown.wake_also(Arc::new(Waker::new(registry, Token(1))?))?;
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
    pub(crate) fn run(mut self, shared: &Arc<Shared>) -> io::Result<()> {
        let mut events = Events::with_capacity(2);
        let scrapes = Scrapes::default();
        while !shared.shutdown.is_requested() {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            while !shared.shutdown.is_requested() {
                match self.listener.accept() {
                    Ok((stream, _)) => {
                        scrapes.begin(std::net::TcpStream::from(OwnedFd::from(stream)), shared);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // A connection broke, or no descriptor is left. Clients that wait make no second event, so try
                    // again after a rest.
                    Err(_) => shared.shutdown.sleep(REST),
                }
            }
        }
        Ok(())
    }
}

/// How long the endpoint rests after an error of accept.
const REST: Duration = Duration::from_millis(50);
