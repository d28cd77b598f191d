//! The way to one server, for threads: a connection, and another one after it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::attempts::{Attempts, Ends, Step};
use crate::call::Call;
use crate::connection::Connection;
use crate::memory::{Memory, View};
use crate::pool::Way;
use crate::process::PerProcess;
use crate::site::Site;
use crate::transport::Socket;
use crate::wire::{Reply, Request};
use crate::{CarriedOut, Error};

/// Why a connection was closed whose server has left its memory.
pub(crate) const ENDED: &str = "the server has ended, or another has taken its place";

/// The way to one server.
#[derive(Debug)]
pub(crate) struct Link {
    site: Site,
    state: PerProcess<State>,
}

/// What a process has of it.
#[derive(Debug, Default)]
struct State {
    attempts: Mutex<Attempts<Connection>>,
    /// Changes together with the connection, under the lock of that, so that it is never the memory of an earlier server.
    memory: Memory,
    /// Somebody has connected, or has failed to.
    changed: Condvar,
}

impl State {
    fn attempts(&self) -> MutexGuard<'_, Attempts<Connection>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    connection: Arc<Connection>,
    call: Arc<Call>,
}

impl Ends for Connection {
    fn has_ended(&self) -> bool {
        self.is_over()
    }
}

impl Way for Link {
    fn new(site: Site) -> Self {
        Self {
            state: PerProcess::new(site.shared.is_some()),
            site,
        }
    }

    fn site(&self) -> &Site {
        &self.site
    }

    fn is_ejected(&self) -> bool {
        let after = self.site.options.eject_after;
        // Without the lock if it can never be.
        after > 0 && self.state.get().attempts().is_ejected(after)
    }

    fn memory(&self) -> &Memory {
        &self.state.get().memory
    }

    fn leave_ended(&self) {
        let state = self.state.get();
        if !state.memory.has_ended() {
            return;
        }
        let mut attempts = state.attempts();
        // Another thread may have been here meanwhile.
        if state.memory.has_ended() {
            state.memory.set(None, &self.site.options);
            let connection = attempts.take();
            drop(attempts);
            if let Some(connection) = connection {
                connection.end(ENDED);
            }
        }
    }
}

impl Link {
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
            Err(error) if may_be_repeated(&error, requests) => {
                self.start(requests, deadline).and_then(finish)
            }
            outcome => outcome,
        }
    }

    /// Ends the present connection: what came on it can be no reply.
    pub fn end(&self, reason: &str) {
        let connection = self.state.get().attempts().take();
        if let Some(connection) = connection {
            connection.end(reason);
        }
    }

    /// The present connection, or a new one.
    fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Error> {
        let state = self.state.get();
        let mut attempts = state.attempts();
        loop {
            match attempts.step(&self.site) {
                Step::Use(connection) => {
                    drop(attempts);
                    self.look_for_memory();
                    return Ok(connection);
                }
                Step::Fail(error) => return Err(error),
                Step::Connect => break,
                Step::Wait => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let carried_out = CarriedOut::No;
                return Err(Error::Timeout { carried_out });
            }
            let waited = state.changed.wait_timeout(attempts, left);
            attempts = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(attempts);
        let connected = self.connect();
        let mut attempts = state.attempts();
        state.changed.notify_all();
        match connected {
            Ok((connection, view)) => {
                state.memory.set(view, &self.site.options);
                attempts.succeeded(connection.clone());
                Ok(connection)
            }
            Err(reason) => Err(attempts.failed(&self.site, reason)),
        }
    }

    /// If the server's memory was not to be had when the connection was made, asks for it again now and then.
    fn look_for_memory(&self) {
        if self.site.shared.is_some() && self.memory().begin_again(&self.site.options) {
            // Without it the connection serves as well.
            if let Some(view) = self.view() {
                self.memory().set(Some(Arc::new(view)), &self.site.options);
            }
        }
    }

    /// The server's memory, if it gives that to this process.
    fn view(&self) -> Option<View> {
        let path = self.site.shared.as_deref()?;
        View::connect(path, self.site.options.connect_timeout).ok()
    }

    /// A connection, and the memory if the server gives it to this process.
    fn connect(&self) -> Result<(Arc<Connection>, Option<Arc<View>>), String> {
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
            Site::welcome(&greeting, replies)?;
        }
        // Last: memory of an earlier server than the connection's would not show what is stored through that.
        let view = self.view().map(Arc::new);
        Ok((connection, view))
    }
}

/// Whether a failed call may be sent once more: it surely was not carried out, or changes nothing.
pub(crate) fn may_be_repeated(error: &Error, requests: &[Request<'_>]) -> bool {
    match error {
        Error::Lost { carried_out, .. } => {
            *carried_out == CarriedOut::No || requests.iter().all(Request::is_read)
        }
        _ => false,
    }
}
