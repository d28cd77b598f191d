//! The way to one server, as both clients have it: its present connection and its memory. How they connect and wait is in
//! `link.rs` for threads, and in `tasks/link.rs` for tasks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::attempts::{Attempts, Ends};
use crate::memory::{Memory, View};
use crate::process::PerProcess;
use crate::site::Site;
use crate::wire::Request;
use crate::{CarriedOut, Error};

/// Why a connection was closed whose server has left its memory.
const ENDED: &str = "the server has ended, or another has taken its place";

/// A connection that was made, and the memory if the server gives it to this process.
pub(crate) type Connected<C> = (Arc<C>, Option<Arc<View>>);

/// The way to one server, by connections `C`. `N` wakes those who wait for one.
#[derive(Debug)]
pub(crate) struct Way<C, N> {
    site: Arc<Site>,
    state: PerProcess<State<C, N>>,
}

/// What a process has of it.
#[derive(Debug)]
pub(crate) struct State<C, N> {
    attempts: Mutex<Attempts<C>>,
    /// Changes together with the connection, under the lock of that, so that it is never the memory of an earlier server.
    memory: Memory,
    /// Somebody has connected, or has failed to.
    pub changed: N,
}

impl<C, N: Default> Default for State<C, N> {
    fn default() -> Self {
        Self {
            attempts: Mutex::default(),
            memory: Memory::default(),
            changed: N::default(),
        }
    }
}

impl<C, N> State<C, N> {
    pub fn attempts(&self) -> MutexGuard<'_, Attempts<C>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Ends, N> State<C, N> {
    /// Notes how an attempt to connect ended.
    pub fn conclude(
        &self,
        site: &Site,
        connected: Result<Connected<C>, String>,
    ) -> Result<Arc<C>, Error> {
        let mut attempts = self.attempts();
        match connected {
            Ok((connection, view)) => {
                self.memory.set(view, &site.options);
                attempts.succeeded(connection.clone());
                Ok(connection)
            }
            Err(reason) => Err(attempts.failed(site, reason)),
        }
    }
}

impl<C: Ends, N: Default> Way<C, N> {
    pub fn new(site: Site) -> Self {
        Self {
            state: PerProcess::default(),
            site: Arc::new(site),
        }
    }

    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// This process' state.
    pub fn state(&self) -> &State<C, N> {
        self.state.get()
    }

    /// The same, for who goes on when the call is over.
    pub fn shared_state(&self) -> Arc<State<C, N>> {
        self.state.share()
    }

    /// The server's memory.
    pub fn memory(&self) -> &Memory {
        &self.state().memory
    }

    /// Whether the server's keys go to others.
    pub fn is_ejected(&self) -> bool {
        let after = self.site.options.eject_after;
        // Without the lock if it can never be.
        after > 0 && self.state().attempts().is_ejected(after)
    }

    /// Ends the present connection: what came on it can be no reply.
    pub fn end(&self, reason: &str) {
        let connection = self.state().attempts().take();
        if let Some(connection) = connection {
            connection.end(reason);
        }
    }

    /// If the server has ended whose memory that is, it is not read any more, and its connection is of no more use.
    pub fn leave_ended(&self) {
        let state = self.state();
        if !state.memory.has_ended() {
            return;
        }
        let mut attempts = state.attempts();
        // Somebody else may have been here meanwhile.
        if state.memory.has_ended() {
            state.memory.set(None, &self.site.options);
            let connection = attempts.take();
            drop(attempts);
            if let Some(connection) = connection {
                connection.end(ENDED);
            }
        }
    }

    /// Whether the caller is to ask for the server's memory, which was not to be had when the connection was made.
    pub fn wants_memory(&self) -> bool {
        self.site.endpoint.shared().is_some() && self.memory().begin_again(&self.site.options)
    }

    /// Memory was found while this connection was in use. It is read if the connection still is.
    pub fn found_memory(&self, connection: &Arc<C>, view: Arc<View>) {
        let state = self.state();
        let attempts = state.attempts();
        if attempts.uses(connection) {
            state.memory.set(Some(view), &self.site.options);
        }
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
