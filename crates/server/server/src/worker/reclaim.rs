//! Reclaim of connections' buffer memory: a worker closes connections that hold too much, so that the others keep their
//! terms. [`buffers`](nuthatch_state::buffers) decides when.
//!
//! Each worker judges its own connections; the acceptor spreads them evenly. The worker that raised the account's level
//! woke the others to do the same. A connection's cost is what it holds, times how long: a connection that has just
//! begun a long line is closed after connections that have held less for longer.
//!
//! The engine's memory that values under way take has an account of its own, [`uploads`](nuthatch_state::uploads).

use nuthatch_engine::{Engine, Time};
use nuthatch_state::buffers::{Level, PATIENCE, PATIENCE_WHEN_FULL};
use nuthatch_state::telemetry::watch::line::Reason;

use super::Worker;
use crate::connection::Connection;

impl Worker {
    /// While the account is full, closes connections of this worker that hold more than a fair share: at first only
    /// those that have not just turned it over. Another worker may have connections that cost more, so the rest is
    /// spared until the account is `Over`.
    #[inline]
    pub(super) fn reclaim(&mut self) {
        self.shared.heed_want();
        if self.shared.accounts.buffers.level() >= Level::Full {
            self.reclaim_from(Level::Full, |connection, now| {
                connection.is_stuck_for(PATIENCE_WHEN_FULL, now)
            });
            if self.shared.accounts.buffers.level() == Level::Over {
                self.reclaim_from(Level::Over, |_, _| true);
            }
        }
    }

    /// While the account fills, also closes connections that make no progress.
    pub(super) fn reclaim_from_stuck(&mut self) {
        if self.shared.accounts.buffers.level() >= Level::Filling {
            self.reclaim_from(Level::Filling, |connection, now| {
                connection.is_stuck_for(PATIENCE, now)
            });
        }
    }

    /// Closes connections that hold more than a fair share and that `may` accepts, until the account is relieved of
    /// this level. Those that cost most are first.
    #[cold]
    fn reclaim_from(&mut self, level: Level, may: impl Fn(&Connection, Time) -> bool) {
        let now = self.now;
        let share = self
            .shared
            .accounts
            .buffers
            .share(level, self.shared.connections());
        let mut costs: Vec<(u64, usize)> = self
            .holders
            .above(share)
            .map(|id| (id, &self.connections[id]))
            .filter(|(_, connection)| may(connection, now))
            .map(|(id, connection)| (connection.cost(now), id))
            .collect();
        costs.sort_unstable_by(|one, other| other.cmp(one));
        for (_, id) in costs {
            if self.shared.accounts.buffers.is_relieved_of(level) {
                return;
            }
            let connection = &self.connections[id];
            tracing::warn!(
                peer = %connection.info.peer(),
                bytes = connection.accounted,
                "closed: connections hold too much, and this one more than its share"
            );
            self.own.counters.read_buf_oom.bump();
            self.close_for_memory(id);
        }
    }

    /// While values under way take much of the engine's memory, closes connections that bring hardly anything of
    /// theirs. A connection whose next turn is due may have brought more than was read: it is spared.
    pub(super) fn close_stuck_uploads(&mut self) {
        if !self.shared.accounts.uploads.are_many() {
            return;
        }
        let now = self.now;
        let connections = self.connections.iter_mut();
        let stuck: Vec<usize> = connections
            .filter(|(_, connection)| !connection.state.is_queued())
            .filter_map(|(id, connection)| {
                let value = connection.phase.partial()?;
                value.is_stuck(now).then_some(id)
            })
            .collect();
        for id in stuck {
            let connection = &mut self.connections[id];
            let missing = connection.phase.missing();
            tracing::warn!(
                peer = %connection.info.peer(),
                missing,
                "closed: values under way take much memory, and this one does not come"
            );
            self.own.counters.upload_kicks.bump();
            self.close_for_memory(id);
        }
    }

    /// While stores find no memory, closes connections that take hardly anything of the values that wait for them: these
    /// values cannot be evicted. An engine that does not evict refuses stores for another reason.
    pub(super) fn close_stuck_readers(&mut self) {
        if self.readers == 0 || !self.shared.engine.evicts() {
            return;
        }
        let failed = self.shared.workers.iter();
        let failed = failed
            .map(|worker| worker.counters.store_no_memory.get())
            .sum();
        let fail = failed > std::mem::replace(&mut self.stores_failed, failed);
        let now = self.now;
        let connections = self.connections.iter_mut();
        let stuck: Vec<usize> = connections
            .filter_map(|(id, connection)| connection.is_stuck_reading(now).then_some(id))
            .collect();
        if !fail {
            return;
        }
        for id in stuck {
            let connection = &self.connections[id];
            tracing::warn!(
                peer = %connection.info.peer(),
                bytes = connection.output.pinned(),
                "closed: stores find no memory, and it does not take the values that it asked for"
            );
            self.own.counters.reader_kicks.bump();
            self.close_for(id, Reason::Error);
        }
    }

    /// Closes a connection for the memory that it holds. The client is told why if no reply is under way.
    pub(super) fn close_for_memory(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        connection.end = Reason::Error;
        if connection.output.is_empty() && connection.state.is_open() {
            connection.phase.say_out_of_memory(connection.output.text());
            connection.forget_input();
            connection.state.part();
            self.flush(id);
        } else {
            self.close(id);
        }
        self.publish();
    }
}
