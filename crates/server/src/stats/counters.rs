//! What is counted while serving. Each counter has one writer, so counting is a plain add to a
//! line that nobody else writes; `stats` sums over the workers when somebody asks.

use nuthatch_engine::Reply;
use nuthatch_engine::counters::Counter;

/// Declares the counters once: the struct, their sum, and their reset.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What one worker counts.
        #[derive(Default)]
        pub(crate) struct WorkerCounters {
            $($(#[$doc])* pub(crate) $name: Counter,)*
        }

        /// The sum over all workers at one moment.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Totals {
            $(pub(crate) $name: u64,)*
        }

        impl WorkerCounters {
            /// Adds these counters to `totals`.
            pub(crate) fn add_to(&self, totals: &mut Totals) {
                $(totals.$name += self.$name.get();)*
            }

            /// `stats reset`.
            pub(crate) fn reset(&self) {
                $(self.$name.reset();)*
            }
        }
    };
}

counters! {
    /// Keys asked for by get, gets, mg.
    cmd_get,
    /// Storage commands that came to the engine.
    cmd_set,
    cmd_flush,
    /// touch, gat, mg with T.
    cmd_touch,
    cmd_meta,
    get_hits,
    get_misses,
    delete_hits,
    delete_misses,
    incr_hits,
    incr_misses,
    decr_hits,
    decr_misses,
    cas_hits,
    cas_misses,
    cas_badval,
    touch_hits,
    touch_misses,
    store_too_large,
    store_no_memory,
    bytes_read,
    bytes_written,
    /// Connections closed for what they held while all connections held too much.
    read_buf_oom,
    /// Turns cut short so that others get theirs.
    conn_yields,
    /// Closed by the idle timeout.
    idle_kicks,
    /// Datagrams that came.
    udp_datagrams,
    /// Those that are cut, or a part of something longer.
    udp_dropped,
    /// Answers that were too large.
    udp_too_large,
    /// Answers that the kernel did not take whole.
    udp_unsent,
    /// Logins.
    auth_cmds,
    /// Those that failed.
    auth_errors,
    /// Connections closed for what is no TLS.
    ssl_handshake_errors,
}

/// What requests of any protocol count.
impl WorkerCounters {
    /// Counts a get.
    #[inline]
    pub(crate) fn count_get(&self, hit: bool) {
        self.cmd_get.bump();
        match hit {
            true => self.get_hits.bump(),
            false => self.get_misses.bump(),
        }
    }

    /// Counts a touch, or a get that touches.
    pub(crate) fn count_touch(&self, hit: bool) {
        self.cmd_touch.bump();
        match hit {
            true => self.touch_hits.bump(),
            false => self.touch_misses.bump(),
        }
    }

    pub(crate) fn count_delete(&self, hit: bool) {
        match hit {
            true => self.delete_hits.bump(),
            false => self.delete_misses.bump(),
        }
    }

    /// Counts an addition or a subtraction.
    pub(crate) fn count_delta(&self, down: bool, reply: &Reply) {
        match (reply, down) {
            (Reply::Number(..), false) => self.incr_hits.bump(),
            (Reply::Number(..), true) => self.decr_hits.bump(),
            (Reply::NotFound, false) => self.incr_misses.bump(),
            (Reply::NotFound, true) => self.decr_misses.bump(),
            _ => {}
        }
    }

    /// Counts a store that could not be.
    pub(crate) fn count_failure(&self, reply: &Reply) {
        match reply {
            Reply::TooLarge => self.store_too_large.bump(),
            Reply::OutOfMemory => self.store_no_memory.bump(),
            _ => {}
        }
    }
}

/// What the acceptor counts, and the number of connections that everybody needs.
#[derive(Default)]
pub(crate) struct AcceptorCounters {
    /// Connections accepted since the start.
    pub(crate) total_connections: Counter,
    /// Connections refused for being one too many.
    pub(crate) rejected_connections: Counter,
    /// How often accepting was suspended for want of descriptors.
    pub(crate) listen_disabled_num: Counter,
    /// For how long in all.
    pub(crate) listen_disabled_us: Counter,
    /// 1 while it is suspended.
    pub(crate) suspended: Counter,
}

impl AcceptorCounters {
    /// `stats reset`.
    pub(crate) fn reset(&self) {
        self.total_connections.reset();
        self.rejected_connections.reset();
        self.listen_disabled_num.reset();
        self.listen_disabled_us.reset();
    }

    /// Marks whether accepting is suspended. Only the acceptor calls this.
    pub(crate) fn set_suspended(&self, suspended: bool) {
        self.suspended.reset();
        self.suspended.add(u64::from(suspended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_sums_and_a_reset_zeroes() {
        let (one, two) = (WorkerCounters::default(), WorkerCounters::default());
        one.get_hits.add(2);
        two.get_hits.bump();
        two.bytes_read.add(10);
        let mut totals = Totals::default();
        one.add_to(&mut totals);
        two.add_to(&mut totals);
        assert_eq!((totals.get_hits, totals.bytes_read), (3, 10));
        two.reset();
        assert_eq!(two.get_hits.get(), 0);
    }
}
