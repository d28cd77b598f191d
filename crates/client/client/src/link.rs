//! The way to one server, for threads: a connection, and another one after it.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;
use crate::address::Endpoint;
use crate::aside;
use crate::attempts::{Ends, Step};
use crate::call::Call;
use crate::connection::Connection;
use crate::memory::View;
use crate::site::Site;
use crate::transport::Socket;
use crate::way::{Connected, State, Way, may_be_repeated};
use crate::wire::{Reply, Request};

/// The way to one server, for threads.
pub(crate) type Link = Way<Connection, Condvar>;

/// A call that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    connection: Arc<Connection>,
    call: Arc<Call>,
}

impl Ends for Connection {
    fn has_ended(&self) -> bool {
        self.has_ended_idle()
    }

    fn end(&self, reason: &str) {
        self.end(reason);
    }

    fn has_answered(&self) -> bool {
        self.queue().lock().has_answered()
    }

    fn was_late(&self) -> bool {
        self.queue().lock().was_late()
    }
}

impl Link {
    /// Sends requests and waits for their replies. What the server surely has not carried out, and what changes nothing, is sent
    /// once more if the connection ends.
    pub fn call(
        &self,
        requests: &[Request<'_>],
        mut deadline: Instant,
    ) -> Result<Vec<Reply>, Error> {
        let started = self.start(requests, &mut deadline);
        self.finish(started, requests, &mut deadline)
    }

    /// The first half of [`Link::call`]: it sends them. If it has to connect, the deadline is put off by the time that takes.
    fn start(&self, requests: &[Request<'_>], deadline: &mut Instant) -> Result<Sent, Error> {
        let connection = self.connection(deadline);
        Self::send(connection, requests, *deadline)
    }

    /// The same by a connection that was asked for before.
    pub fn send(
        connection: Result<Arc<Connection>, Error>,
        requests: &[Request<'_>],
        deadline: Instant,
    ) -> Result<Sent, Error> {
        let connection = connection?;
        let call = connection.start(requests, deadline)?;
        Ok(Sent { connection, call })
    }

    /// The second half: it waits for the replies.
    pub fn finish(
        &self,
        started: Result<Sent, Error>,
        requests: &[Request<'_>],
        deadline: &mut Instant,
    ) -> Result<Vec<Reply>, Error> {
        let finish = |sent: Sent, deadline| sent.connection.finish(&sent.call, deadline);
        match started.and_then(|sent| finish(sent, *deadline)) {
            Err(error) if may_be_repeated(&error, requests) => {
                let started = self.start(requests, deadline);
                started.and_then(|sent| finish(sent, *deadline))
            }
            outcome => outcome,
        }
    }

    /// The present connection, or a new one.
    pub fn connection(&self, deadline: &mut Instant) -> Result<Arc<Connection>, Error> {
        let (site, state) = (self.site(), self.state());
        let came = Instant::now();
        let mut has_begun = false;
        let mut attempts = state.attempts();
        loop {
            let patience_ends = match attempts.step(site) {
                Step::Use(connection) => {
                    drop(attempts);
                    self.look_for_memory(&connection);
                    return Ok(connection);
                }
                Step::Fail(error) => return Err(error),
                Step::Connect => break,
                Step::ConnectAside => {
                    drop(attempts);
                    self.connect_aside()?;
                    attempts = state.attempts();
                    // One attempt is enough for a call.
                    if std::mem::replace(&mut has_begun, true) {
                        return Err(attempts.no_connection_yet(site, true));
                    }
                    continue;
                }
                Step::Wait(end) => end,
            };
            let end = patience_ends.map_or(*deadline, |end| end.min(*deadline));
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The servers beside it have their whole time.
                *deadline += patience_ends.map_or(Duration::ZERO, |_| came.elapsed());
                return Err(attempts.no_connection_yet(site, patience_ends.is_some()));
            }
            let waited = state.changed.wait_timeout(attempts, left);
            attempts = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(attempts);
        let began = Instant::now();
        let outcome = state.conclude(site, connect(site));
        *deadline += began.elapsed();
        state.changed.notify_all();
        outcome
    }

    /// Makes an attempt to connect, for which nobody has to wait.
    fn connect_aside(&self) -> Result<(), Error> {
        let (site, state) = (self.site().clone(), self.shared_state());
        let conclude = |site: &Site, state: &State<_, Condvar>, connected| {
            let outcome = state.conclude(site, connected);
            state.changed.notify_all();
            outcome
        };
        let spawned = aside::spawn("nuthatch-connect", {
            let (site, state) = (site.clone(), state.clone());
            move || {
                // Nobody is to wait for ever for one that panicked.
                let connected = panic::catch_unwind(AssertUnwindSafe(|| connect(&site)));
                let connected = connected.unwrap_or_else(|_| Err("a panic".to_owned()));
                // Who waits, or comes later, sees what came of it.
                drop(conclude(&site, &state, connected));
            }
        });
        match spawned {
            Ok(()) => Ok(()),
            Err(error) => conclude(&site, &state, Err(error.to_string())).map(drop),
        }
    }

    /// If the server's memory was not to be had when the connection was made, asks for it again now and then.
    fn look_for_memory(&self, connection: &Arc<Connection>) {
        // Without it the connection serves as well.
        if self.wants_memory()
            && let Some(view) = view(self.site())
        {
            self.found_memory(connection, view);
        }
    }
}

/// The server's memory, if it gives that to this process.
fn view(site: &Site) -> Option<Arc<View>> {
    let path = site.endpoint.shared()?;
    let view = View::connect(path, site.options.connect_timeout);
    view.ok().map(Arc::new)
}

/// A connection, and the memory if the server gives it to this process.
fn connect(site: &Site) -> Result<Connected<Connection>, String> {
    let patience = site.options.connect_timeout;
    let Some(path) = site.endpoint.shared() else {
        return Ok((connect_to(site, &site.endpoint)?, None));
    };
    match (View::connect_with_ring(path, patience), &site.or) {
        (Ok((view, ring)), _) => {
            let connection = greet(site, Socket::Ring(ring))?;
            Ok((connection, Some(Arc::new(view))))
        }
        // Memory last: that of an earlier server than the connection's would not show what is stored through that.
        (Err(_), Some(or)) => Ok((connect_to(site, or)?, view(site))),
        (Err(refusal), None) => Err(refusal),
    }
}

fn connect_to(site: &Site, endpoint: &Endpoint) -> Result<Arc<Connection>, String> {
    let socket = Socket::connect(endpoint, site.options.connect_timeout);
    greet(site, socket.map_err(|error| error.to_string())?)
}

/// A connection by this socket, on which the server has answered.
fn greet(site: &Site, socket: Socket) -> Result<Arc<Connection>, String> {
    let deadline = site.connect_deadline();
    let connection = Connection::new(site.transport(socket)?, site.options.clone());
    for greeting in site.greetings() {
        let requests = std::slice::from_ref(&greeting);
        let sent = connection.start(requests, deadline);
        let replies = sent.and_then(|call| connection.finish(&call, deadline));
        Site::welcome(&greeting, replies)?;
    }
    Ok(Arc::new(connection))
}
