//! The present connection to a server, or when the next one is tried. Whoever connects, asks here first and reports here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::site::Site;
use crate::{CarriedOut, Error, Options};

/// Why a server is left alone that takes connections.
const HANGS: &str = "it greets, and answers nothing in time";
/// Why one was left that had answered before.
const LATE: &str = "it has answered nothing in time";

/// What ends.
pub(crate) trait Ends {
    /// Whether it has.
    fn has_ended(&self) -> bool;
    /// Ends it, for this reason.
    fn end(&self, reason: &str);
    /// Whether a call was answered on it.
    fn has_answered(&self) -> bool;
    /// Whether it was left because an answer was late.
    fn was_late(&self) -> bool;
}

/// The state of a link.
#[derive(Debug)]
pub(crate) struct Attempts<C> {
    connection: Option<Arc<C>>,
    /// When the attempt began that is under way.
    connecting_since: Option<Instant>,
    backoff: Backoff,
    /// The server is in doubt since its last connection was left: an attempt may take all its time.
    is_in_doubt: bool,
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
    /// The same, but it need not wait for that.
    ConnectAside,
    /// It waits for who makes one: until then, if not until its deadline.
    Wait(Option<Instant>),
    /// It fails.
    Fail(Error),
}

impl<C> Default for Attempts<C> {
    fn default() -> Self {
        Self {
            connection: None,
            connecting_since: None,
            backoff: Backoff::default(),
            is_in_doubt: false,
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
            if connection.was_late() {
                self.is_in_doubt = true;
                self.reason = LATE.into();
                // A server that greets and answers nothing is no better than one that does not greet.
                if !connection.has_answered() {
                    self.reason = HANGS.into();
                    self.backoff.failed(Instant::now(), &site.options);
                }
            }
            self.connection = None;
        }
        let now = Instant::now();
        if let Some(left) = self.backoff.remaining(now) {
            return Step::Fail(site.down(&self.reason, left));
        }
        let patience = self.patience(&site.options);
        if let Some(since) = self.connecting_since {
            return Step::Wait(patience.and_then(|patience| since.checked_add(patience)));
        }
        self.connecting_since = Some(now);
        match patience {
            Some(_) => Step::ConnectAside,
            None => Step::Connect,
        }
    }

    /// How long all calls together wait for a connection, if not until their deadlines.
    fn patience(&self, options: &Options) -> Option<Duration> {
        let is_in_doubt = self.is_in_doubt || self.backoff.failures() > 0;
        let wait = options.retry_wait.filter(|wait| !wait.is_zero());
        wait.filter(|_| is_in_doubt)
    }

    /// The error of a call that waits for the present attempt no longer.
    pub fn no_connection_yet(&self, site: &Site, is_in_doubt: bool) -> Error {
        match is_in_doubt {
            true => site.down(&self.reason, Duration::ZERO),
            false => Error::Timeout {
                carried_out: CarriedOut::No,
            },
        }
    }

    /// There is a connection.
    pub fn succeeded(&mut self, connection: Arc<C>) {
        self.connecting_since = None;
        self.is_in_doubt = false;
        self.backoff.connected();
        self.connection = Some(connection);
    }

    /// There is none, and for a while nobody tries to make one.
    pub fn failed(&mut self, site: &Site, reason: String) -> Error {
        let now = Instant::now();
        self.connecting_since = None;
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
        self.connecting_since = None;
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
        let rests =
            self.connecting_since.is_some() || self.backoff.remaining(Instant::now()).is_some();
        self.backoff.failures() >= after && rests
    }
}
