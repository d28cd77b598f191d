//! The way to one server, for threads: a connection, and another one after it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::backoff::Backoff;
use crate::call::Call;
use crate::connection::Connection;
use crate::site::Site;
use crate::transport::Socket;
use crate::wire::{Reply, Request};
use crate::{CarriedOut, Error};

/// The way to one server.
#[derive(Debug)]
pub(crate) struct Link {
    site: Site,
    state: Mutex<State>,
    /// Somebody has connected, or has failed to.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    connection: Option<Arc<Connection>>,
    is_connecting: bool,
    backoff: Backoff,
    /// Why the last attempt failed.
    reason: Arc<str>,
}

/// A call that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    connection: Arc<Connection>,
    call: Arc<Call>,
}

impl Link {
    pub fn new(site: Site) -> Self {
        Self {
            site,
            state: Mutex::new(State {
                connection: None,
                is_connecting: false,
                backoff: Backoff::default(),
                reason: "never connected".into(),
            }),
            changed: Condvar::new(),
        }
    }

    pub fn site(&self) -> &Site {
        &self.site
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server's keys go to others: it failed too often, and nobody else need try it now.
    pub fn is_ejected(&self, now: Instant) -> bool {
        let after = self.site.options.eject_after;
        // Without the lock if it can never be.
        if after == 0 {
            return false;
        }
        let state = self.state();
        state.backoff.failures() >= after
            && (state.is_connecting || state.backoff.remaining(now).is_some())
    }

    /// Sends requests and waits for their replies. What the server surely has not carried out, and what changes nothing, is sent
    /// once more if the connection ends.
    pub fn call(&self, requests: &[Request<'_>], deadline: Instant) -> Result<Vec<Reply>, Error> {
        let started = self.start(requests, deadline);
        self.finish(started, requests, deadline)
    }

    /// The first half of [`Link::call`]: it sends them.
    pub fn start(&self, requests: &[Request<'_>], deadline: Instant) -> Result<Sent, Error> {
        let connection = self.connection(deadline)?;
        let call = connection.start(requests, deadline)?;
        Ok(Sent { connection, call })
    }

    /// The second half: it waits for the replies.
    pub fn finish(
        &self,
        started: Result<Sent, Error>,
        requests: &[Request<'_>],
        deadline: Instant,
    ) -> Result<Vec<Reply>, Error> {
        let finish = |sent: Sent| sent.connection.finish(&sent.call, deadline);
        match started.and_then(finish) {
            Err(Error::Lost { carried_out, .. })
                if carried_out == CarriedOut::No || requests.iter().all(Request::is_read) =>
            {
                self.start(requests, deadline).and_then(finish)
            }
            outcome => outcome,
        }
    }

    /// Ends the present connection: what came on it can be no reply.
    pub fn end(&self, reason: &str) {
        let connection = self.state().connection.take();
        if let Some(connection) = connection {
            connection.end(reason);
        }
    }

    /// The present connection, or a new one.
    fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Error> {
        let mut state = self.state();
        loop {
            if let Some(connection) = &state.connection {
                if connection.death().is_none() {
                    return Ok(connection.clone());
                }
                state.connection = None;
            }
            let now = Instant::now();
            if let Some(left) = state.backoff.remaining(now) {
                return Err(self.site.down(&state.reason, left));
            }
            if !state.is_connecting {
                break;
            }
            let left = deadline.saturating_duration_since(now);
            if left.is_zero() {
                return Err(Error::Timeout {
                    carried_out: CarriedOut::No,
                });
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_connecting = true;
        drop(state);
        let connected = self.connect();
        let mut state = self.state();
        state.is_connecting = false;
        self.changed.notify_all();
        match connected {
            Ok(connection) => {
                state.backoff.succeeded();
                state.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(reason) => {
                let now = Instant::now();
                state.reason = reason.into();
                state.backoff.failed(now, &self.site.options);
                let left = state.backoff.remaining(now).unwrap_or_default();
                Err(self.site.down(&state.reason, left))
            }
        }
    }

    fn connect(&self) -> Result<Arc<Connection>, String> {
        let options = &self.site.options;
        let deadline = self.site.connect_deadline();
        let socket = Socket::connect(&self.site.endpoint, options.connect_timeout)
            .map_err(|error| error.to_string())?;
        let connection = Arc::new(Connection::new(
            self.site.transport(socket)?,
            options.clone(),
        ));
        for greeting in self.site.greetings() {
            let requests = std::slice::from_ref(&greeting);
            let sent = connection.start(requests, deadline);
            let replies = sent.and_then(|call| connection.finish(&call, deadline));
            Site::welcome(&greeting, &replies.map_err(|error| error.to_string())?)?;
        }
        Ok(connection)
    }
}
