//! The end of connections that the server closes: their clients can still read the last reply.
//!
//! A connection whose last reply the client may not have read is not closed at once: if there is unread input, the
//! kernel resets the connection, and the client may lose that reply. So the server shuts its own side down, drops what
//! the client still sends, and closes when the client does, or when that takes too long.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use nuthatch_state::system;
use nuthatch_state::telemetry::watch::line::Reason;
use nuthatch_state::worker::What;

use super::Worker;
use crate::connection::Connection;
use crate::connection::state::Ending;

/// How long a client may take to close once all output is sent.
const LINGER: Duration = Duration::from_secs(5);

/// Bytes that the client may send meanwhile.
const LINGER_BYTES: usize = 64 << 20;

impl Worker {
    /// All output is sent: ends the connection if it is ending. False if it was closed.
    #[inline]
    pub(super) fn end(&mut self, id: usize) -> bool {
        match self.connections[id].state.ending() {
            Ending::Open { .. } | Ending::Lingering { .. } => true,
            Ending::Parting => self.linger(id),
            Ending::Finished => {
                self.connections[id].stream.say_end();
                self.close(id);
                false
            }
        }
    }

    /// Shuts the server's side down, and goes on reading. False if the connection was closed.
    #[cold]
    fn linger(&mut self, id: usize) -> bool {
        let connection = &mut self.connections[id];
        if connection.stream.finish().is_err() {
            self.close(id);
            return false;
        }
        connection.state.linger(self.now, LINGER_BYTES);
        connection.forget_input();
        self.lingering += 1;
        self.enqueue(id);
        true
    }

    /// Drops input of a connection that lingers.
    #[cold]
    pub(super) fn drop_input(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        let room = &mut self.buffer[self.used..];
        match connection.stream.read(room) {
            Ok(count) if count > 0 && connection.state.drops(count) => {
                self.own.counters.bytes_read.add(count as u64);
                let emptied = connection.stream.was_emptied(count, room.len());
                connection.state.has_read(emptied);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => connection.state.would_block(),
            // The client closed, or sends more than the limit.
            Ok(_) | Err(_) => return self.close(id),
        }
        if connection.state.is_readable() {
            self.enqueue(id);
        }
    }

    /// Closes lingering connections whose clients take too long to close.
    pub(super) fn close_lingering(&mut self) {
        if self.lingering == 0 {
            return;
        }
        let now = self.now;
        let late: Vec<usize> = self
            .connections
            .iter()
            .filter(|(_, connection)| {
                let since = connection.state.lingers_since();
                since.is_some_and(|since| now.since(since) >= LINGER)
            })
            .map(|(id, _)| id)
            .collect();
        for id in late {
            self.close(id);
        }
    }

    /// Closes TCP connections on which no byte went either way for too long. A client that reads what the kernel has
    /// buffered for it is not silent, though the server sees nothing of that: so when the time seems to be over, the
    /// worker asks the kernel. A client that then stops reading is closed when the time is over once more.
    pub(super) fn close_silent(&mut self) {
        let Some(limit) = self.live.idle_timeout else {
            return;
        };
        let now = self.now;
        let mut silent = Vec::new();
        for (id, connection) in &mut self.connections {
            // A watcher may be silent for long.
            if connection.stream.is_local()
                || connection.phase.is_watching()
                || now.since(connection.active) < limit
            {
                continue;
            }
            let untaken = system::untaken(connection.stream.as_fd()).unwrap_or(0);
            if untaken > 0 && untaken != connection.untaken {
                connection.active = now;
            } else {
                silent.push(id);
            }
            connection.untaken = untaken;
        }
        for id in silent {
            self.own.counters.idle_kicks.bump();
            self.close_for(id, Reason::IdleTimeout);
        }
    }

    /// Does what other threads ask for.
    pub(super) fn do_errands(&mut self) {
        for errand in self.own.errands() {
            let id = errand.connection;
            let connection = self.connections.get_mut(id);
            let connection = connection.filter(|it| it.info.serial() == errand.serial);
            match (errand.what, connection) {
                (What::Close, Some(_)) => self.close_for(id, Reason::Normal),
                (What::CloseSlow, Some(_)) => {
                    self.own.counters.slow_subscribers.bump();
                    self.close_for(id, Reason::Error);
                }
                (What::OpenMail, Some(connection)) => {
                    let Connection { phase, info, .. } = connection;
                    phase.open_mail(&self.shared, &self.own, id, info);
                }
                (What::OpenMail | What::Close | What::CloseSlow, None) => {}
            }
        }
    }

    /// Closes connections whose clients take too long to be admitted.
    pub(super) fn close_late(&mut self) {
        if !self.shared.security.admits_late() {
            return;
        }
        let (limit, now) = (self.live.login_timeout, self.now);
        let connections = self.connections.iter_mut();
        let late: Vec<usize> = connections
            .filter_map(|(id, connection)| connection.is_late(limit, now).then_some(id))
            .collect();
        for id in late {
            tracing::debug!(peer = %self.connections[id].info.peer(), "closed: it did not log in");
            self.own.counters.login_kicks.bump();
            self.close_for(id, Reason::Error);
        }
    }
}
