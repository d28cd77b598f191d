//! The present connection to a server, or when the next one is tried. Whoever connects, asks here first and reports here.

use std::sync::Arc;
use std::time::Instant;

use crate::Error;
use crate::backoff::Backoff;
use crate::site::Site;

/// Why a server is left alone that takes connections.
const HANGS: &str = "it greets, and answers nothing in time";

/// What ends.
pub(crate) trait Ends {
    /// Whether it has.
    fn has_ended(&self) -> bool;
    /// Ends it, for this reason.
    fn end(&self, reason: &str);
    /// Whether a call was answered on it.
    fn has_answered(&self) -> bool;
    /// Whether it was left because none was.
    fn has_hung(&self) -> bool;
}

/// The state of a link.
#[derive(Debug)]
pub(crate) struct Attempts<C> {
    connection: Option<Arc<C>>,
    is_connecting: bool,
    backoff: Backoff,
    /// Why the last attempt failed.
    reason: Arc<str>,
}

/// What a call does that needs a connection.
#[derive(Debug)]
pub(crate) enum Step<C> {
    /// It uses this one.
    Use(Arc<C>),
    /// It makes one: now nobody else does, until [`Attempts::succeeded`], [`Attempts::failed`] or [`Attempts::gave_up`].
    Connect,
    /// It waits for who makes one.
    Wait,
    /// It fails.
    Fail(Error),
}

impl<C> Default for Attempts<C> {
    fn default() -> Self {
        Self {
            connection: None,
            is_connecting: false,
            backoff: Backoff::default(),
            reason: "never connected".into(),
        }
    }
}

impl<C: Ends> Attempts<C> {
    /// What a call is to do.
    pub fn step(&mut self, site: &Site) -> Step<C> {
        if let Some(connection) = &self.connection {
            if self.backoff.failures() > 0 && connection.has_answered() {
                self.backoff.succeeded();
            }
            if !connection.has_ended() {
                return Step::Use(connection.clone());
            }
            // A server that greets and answers nothing is no better than one that does not greet.
            if connection.has_hung() {
                self.reason = HANGS.into();
                self.backoff.failed(Instant::now(), &site.options);
            }
            self.connection = None;
        }
        if let Some(left) = self.backoff.remaining(Instant::now()) {
            return Step::Fail(site.down(&self.reason, left));
        }
        if std::mem::replace(&mut self.is_connecting, true) {
            Step::Wait
        } else {
            Step::Connect
        }
    }

    /// There is a connection.
    pub fn succeeded(&mut self, connection: Arc<C>) {
        self.is_connecting = false;
        self.backoff.connected();
        self.connection = Some(connection);
    }

    /// There is none, and for a while nobody tries to make one.
    pub fn failed(&mut self, site: &Site, reason: String) -> Error {
        let now = Instant::now();
        self.is_connecting = false;
        self.reason = reason.into();
        self.backoff.failed(now, &site.options);
        site.down(
            &self.reason,
            self.backoff.remaining(now).unwrap_or_default(),
        )
    }

    /// There is none, but that says nothing about the server.
    #[cfg(feature = "tokio")]
    pub fn gave_up(&mut self) {
        self.is_connecting = false;
    }

    /// Whether this is the present connection.
    pub fn uses(&self, connection: &Arc<C>) -> bool {
        let present = self.connection.as_ref();
        present.is_some_and(|present| Arc::ptr_eq(present, connection))
    }

    /// The present connection, which is not to be used any more.
    pub fn take(&mut self) -> Option<Arc<C>> {
        self.connection.take()
    }

    /// Whether the server's keys go to others: it failed so often, and nobody else need try it now.
    pub fn is_ejected(&self, after: u32) -> bool {
        let rests = self.is_connecting || self.backoff.remaining(Instant::now()).is_some();
        self.backoff.failures() >= after && rests
    }
}
