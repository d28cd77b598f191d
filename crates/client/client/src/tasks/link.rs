//! The way to one server, for tasks: a connection, and another one after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::timeout_at;

use super::connection::{Connection, Ticket};
use crate::address::Endpoint;
use crate::attempts::{Attempts, Step};
use crate::input::said;
use crate::link::may_be_repeated;
use crate::pool::Way;
use crate::site::Site;
use crate::transport::Socket;
use crate::wire::{Reply, Request};
use crate::{CarriedOut, Error};

/// The way to one server.
#[derive(Debug)]
pub(crate) struct Link {
    site: Site,
    attempts: Mutex<Attempts<Connection>>,
    /// Somebody has connected, or has not.
    changed: Notify,
}

/// Somebody connects. If the task is dropped meanwhile, somebody else may.
struct Connecting<'a> {
    link: &'a Link,
    is_through: bool,
}

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        if !self.is_through {
            self.link.attempts().gave_up();
        }
        self.link.changed.notify_waiters();
    }
}

impl Way for Link {
    fn new(site: Site) -> Self {
        Self {
            site,
            attempts: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn is_ejected(&self) -> bool {
        let after = self.site.options.eject_after;
        // Without the lock if it can never be.
        after > 0 && self.attempts().is_ejected(after)
    }
}

impl Link {
    pub fn site(&self) -> &Site {
        &self.site
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts<Connection>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends requests and waits for their replies. What the server surely has not carried out, and what changes nothing, is sent
    /// once more if the connection ends.
    pub async fn call(
        &self,
        requests: &[Request<'_>],
        deadline: Instant,
    ) -> Result<Vec<Reply>, Error> {
        let started = self.start(requests, deadline).await;
        self.finish(started, requests, deadline).await
    }

    /// The first half of [`Link::call`]: it sends them.
    pub async fn start(
        &self,
        requests: &[Request<'_>],
        deadline: Instant,
    ) -> Result<Ticket, Error> {
        self.connection(deadline)
            .await?
            .start(requests, deadline)
            .await
    }

    /// The second half: it waits for the replies.
    pub async fn finish(
        &self,
        started: Result<Ticket, Error>,
        requests: &[Request<'_>],
        deadline: Instant,
    ) -> Result<Vec<Reply>, Error> {
        let outcome = match started {
            Ok(ticket) => ticket.finish(deadline).await,
            Err(error) => Err(error),
        };
        match outcome {
            Err(error) if may_be_repeated(&error, requests) => {
                self.start(requests, deadline).await?.finish(deadline).await
            }
            outcome => outcome,
        }
    }

    /// Ends the present connection: what came on it can be no reply.
    pub fn end(&self, reason: &str) {
        let connection = self.attempts().take();
        if let Some(connection) = connection {
            connection.end(reason);
        }
    }

    /// The present connection, or a new one.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Error> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            let step = self.attempts().step(&self.site);
            match step {
                Step::Use(connection) => return Ok(connection),
                Step::Fail(error) => return Err(error),
                Step::Connect => break,
                Step::Wait => {}
            }
            if timeout_at(deadline.into(), changed).await.is_err() {
                let carried_out = CarriedOut::No;
                return Err(Error::Timeout { carried_out });
            }
        }
        let mut connecting = Connecting {
            link: self,
            is_through: false,
        };
        let connected = timeout_at(self.site.connect_deadline().into(), self.connect()).await;
        let connected = connected.unwrap_or_else(|_| Err("no connection in time".to_owned()));
        connecting.is_through = true;
        match connected {
            Ok(connection) => {
                self.attempts().succeeded(connection.clone());
                Ok(connection)
            }
            Err(reason) => Err(self.attempts().failed(&self.site, reason)),
        }
    }

    async fn connect(&self) -> Result<Arc<Connection>, String> {
        let socket = match &self.site.endpoint {
            Endpoint::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port))
                    .await
                    .map_err(said)?;
                Socket::TaskTcp(stream)
            }
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(said)?;
                Socket::TaskUnix(stream)
            }
        };
        let transport = self.site.transport(socket)?;
        let connection = Arc::new(Connection::new(transport, self.site.options.clone()));
        let deadline = self.site.connect_deadline();
        for greeting in self.site.greetings() {
            let replies = match connection
                .start(std::slice::from_ref(&greeting), deadline)
                .await
            {
                Ok(ticket) => ticket.finish(deadline).await,
                Err(error) => Err(error),
            };
            Site::welcome(&greeting, replies)?;
        }
        Ok(connection)
    }
}
