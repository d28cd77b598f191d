//! What is counted while serving. Each counter has one writer, so counting is a plain add to a
//! line that nobody else writes; `stats` sums over the workers when somebody asks.
//!
//! What is about an item is counted by its size class, and as a request whose time will be [noted](super::latency). The
//! sums over all classes are made when they are asked for.

use std::sync::atomic::{AtomicU64, Ordering};

use nuthatch_engine::Reply;
use nuthatch_engine::counters::Counter;
use nuthatch_sync::mutex::Mutex;

use super::latency::{Group, Pending};
use super::sizes::{CLASSES, Lens, SizeClasses};

/// Declares the counters once: the struct, their sum, and their reset.
macro_rules! counters {
    (
        $($(#[$doc:meta])* $name:ident,)*
        ; by class: $($(#[$class_doc:meta])* $class_name:ident,)*
    ) => {
        /// What one worker counts.
        pub struct WorkerCounters {
            $(
                #[doc = concat!("The counter `", stringify!($name), "`.")]
                $(#[$doc])*
                pub $name: Counter,
            )*
            classes: [ClassCounters; CLASSES],
            sizes: SizeClasses,
            /// What had been counted at the last `stats reset`: who asks for one is not who counts.
            base: Mutex<Totals>,
            /// Requests whose time is not known yet.
            pub pending: Pending,
        }

        /// What one worker counts of a size class: a line of the processor's caches.
        #[derive(Default)]
        #[repr(align(64))]
        struct ClassCounters {
            $($(#[$class_doc])* $class_name: Counter,)*
        }

        /// The sum over all workers at one moment.
        #[derive(Clone, Debug)]
        pub struct Totals {
            $(
                #[doc = concat!("The sum of `", stringify!($name), "`.")]
                $(#[$doc])*
                pub $name: u64,
            )*
            $(
                #[doc = concat!("The sum of `", stringify!($class_name), "`.")]
                $(#[$class_doc])*
                pub $class_name: u64,
            )*
            /// By class, of which these are sums.
            pub classes: [ClassTotals; CLASSES],
        }

        /// The same of a size class.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ClassTotals {
            $(
                #[doc = concat!("The sum of `", stringify!($class_name), "`.")]
                $(#[$class_doc])*
                pub $class_name: u64,
            )*
        }

        impl Default for Totals {
            fn default() -> Self {
                Self {
                    $($name: 0,)*
                    $($class_name: 0,)*
                    classes: [ClassTotals::default(); CLASSES],
                }
            }
        }

        impl WorkerCounters {
            /// For an engine with these classes.
            pub fn new(sizes: SizeClasses) -> Self {
                Self {
                    $($name: Counter::default(),)*
                    classes: std::array::from_fn(|_| ClassCounters::default()),
                    sizes,
                    base: Mutex::default(),
                    pending: Pending::default(),
                }
            }

            /// Adds what was counted since the last reset to `totals`.
            pub fn add_to(&self, totals: &mut Totals) {
                let base = self.base.lock();
                $(totals.$name += self.$name.get() - base.$name;)*
                for (class, (sums, base)) in
                    self.classes.iter().zip(totals.classes.iter_mut().zip(&base.classes))
                {
                    $(
                        let count = class.$class_name.get() - base.$class_name;
                        sums.$class_name += count;
                        totals.$class_name += count;
                    )*
                }
            }

            /// `stats reset`, by any thread.
            pub fn reset(&self) {
                let mut base = self.base.lock();
                $(base.$name = self.$name.get();)*
                for (class, base) in self.classes.iter().zip(&mut base.classes) {
                    $(base.$class_name = class.$class_name.get();)*
                }
            }
        }
    };
}

counters! {
    cmd_flush,
    /// touch, gat, mg with T.
    cmd_touch,
    cmd_meta,
    get_misses,
    delete_hits,
    delete_misses,
    incr_misses,
    decr_misses,
    cas_misses,
    touch_misses,
    /// Redis' questions about an item, without its value.
    look_hits,
    look_misses,
    /// Commands of Redis' protocol.
    redis_commands,
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
    /// Of them, those of peers that had guessed too often.
    auth_limited,
    /// Connections closed for what is no TLS.
    ssl_handshake_errors,
    /// Connections closed for a record that is wrong, behind the handshake.
    ssl_proto_errors,
    /// Handshakes that did not go on with an earlier session.
    ssl_new_sessions,
    ; by class:
    get_hits,
    /// Storage commands that came to the engine, by the class of what they brought.
    cmd_set,
    incr_hits,
    decr_hits,
    cas_hits,
    /// By the class of what was to be stored.
    cas_badval,
    touch_hits,
}

/// What requests of any protocol count.
impl WorkerCounters {
    #[inline]
    fn class(&self, lens: Lens) -> &ClassCounters {
        // Classes are fewer: the remainder spares the check.
        &self.classes[self.sizes.class(lens) % CLASSES]
    }

    /// Counts a get; a hit with what it hit.
    #[inline]
    pub fn count_get(&self, hit: Option<Lens>) {
        match hit {
            Some(lens) => {
                self.class(lens).get_hits.bump();
                self.pending.add(Group::get(lens.value));
            }
            None => {
                self.get_misses.bump();
                self.pending.add(Group::MISS);
            }
        }
    }

    /// Counts a touch, or a get that touches.
    pub fn count_touch(&self, hit: Option<Lens>) {
        self.cmd_touch.bump();
        self.pending.add(Group::TOUCH);
        match hit {
            Some(lens) => self.class(lens).touch_hits.bump(),
            None => self.touch_misses.bump(),
        }
    }

    /// Counts a question about an item.
    pub fn count_look(&self, hit: bool) {
        self.pending.add(Group::OTHER);
        match hit {
            true => self.look_hits.bump(),
            false => self.look_misses.bump(),
        }
    }

    /// Counts a store, whatever became of it.
    pub fn count_set(&self, offered: Lens) {
        self.class(offered).cmd_set.bump();
        self.pending.add(Group::set(offered.value));
    }

    /// Counts what became of a store under the condition of a cas.
    pub fn count_cas(&self, offered: Lens, reply: &Reply) {
        match reply {
            Reply::Stored(_) => self.class(offered).cas_hits.bump(),
            Reply::Exists => self.class(offered).cas_badval.bump(),
            _ => self.cas_misses.bump(),
        }
    }

    /// A delete that found an item, or none.
    pub fn count_delete(&self, hit: bool) {
        self.pending.add(Group::DELETE);
        match hit {
            true => self.delete_hits.bump(),
            false => self.delete_misses.bump(),
        }
    }

    /// Counts an addition or a subtraction; a hit with the number's item.
    pub fn count_delta(&self, down: bool, hit: Option<Lens>) {
        self.pending.add(Group::DELTA);
        match (hit, down) {
            (Some(lens), false) => self.class(lens).incr_hits.bump(),
            (Some(lens), true) => self.class(lens).decr_hits.bump(),
            (None, false) => self.incr_misses.bump(),
            (None, true) => self.decr_misses.bump(),
        }
    }

    /// The same by what the engine answered; the key has so many bytes. What is no number is none of both.
    pub fn count_delta_reply(&self, down: bool, key: usize, reply: &Reply) {
        match reply {
            Reply::Number(_, item) => {
                let value = item.value_len;
                self.count_delta(down, Some(Lens { key, value }));
            }
            Reply::NotFound => self.count_delta(down, None),
            _ => self.pending.add(Group::DELTA),
        }
    }

    /// Counts a store that could not be.
    pub fn count_failure(&self, reply: &Reply) {
        match reply {
            Reply::TooLarge => self.store_too_large.bump(),
            Reply::OutOfMemory => self.store_no_memory.bump(),
            _ => {}
        }
    }
}

impl Totals {
    /// Keys asked for by get, gets, mg.
    pub fn cmd_get(&self) -> u64 {
        self.get_hits + self.get_misses
    }
}

/// A counter that is told since the last reset, which any thread may ask for.
#[derive(Default)]
pub struct ResettableCounter {
    count: Counter,
    /// Where it stood then. Relaxed: of two resets at once either is right.
    base: AtomicU64,
}

impl ResettableCounter {
    /// Adds; only for the one thread that writes.
    pub fn add(&self, amount: u64) {
        self.count.add(amount);
    }

    /// One more.
    pub fn bump(&self) {
        self.add(1);
    }

    /// What came since the last reset.
    pub fn get(&self) -> u64 {
        // The base first: it is never above a count that is read behind it, but by a reset amid the two.
        let base = self.base.load(Ordering::Relaxed);
        self.count.get().saturating_sub(base)
    }

    /// Begins at 0.
    pub fn reset(&self) {
        self.base.store(self.count.get(), Ordering::Relaxed);
    }
}

/// What the acceptor counts, and the number of connections that everybody needs.
#[derive(Default)]
pub struct AcceptorCounters {
    /// Connections accepted since the start.
    pub total_connections: ResettableCounter,
    /// Connections refused for being one too many.
    pub rejected_connections: ResettableCounter,
    /// How often accepting was suspended for want of descriptors.
    pub listen_disabled_num: ResettableCounter,
    /// For how long in all.
    pub listen_disabled_us: ResettableCounter,
    /// 1 while it is suspended.
    pub suspended: Counter,
}

impl AcceptorCounters {
    /// `stats reset`.
    pub fn reset(&self) {
        self.total_connections.reset();
        self.rejected_connections.reset();
        self.listen_disabled_num.reset();
        self.listen_disabled_us.reset();
    }

    /// Marks whether accepting is suspended. Only the acceptor calls this.
    pub fn set_suspended(&self, suspended: bool) {
        self.suspended.reset();
        self.suspended.add(u64::from(suspended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_sums_and_a_reset_zeroes() {
        let [one, two] = [0, 1].map(|_| WorkerCounters::new(SizeClasses::default()));
        let lens = Lens { key: 3, value: 7 };
        one.count_get(Some(lens));
        one.count_get(None);
        two.count_get(Some(lens));
        two.bytes_read.add(10);
        let sum = || {
            let mut totals = Totals::default();
            one.add_to(&mut totals);
            two.add_to(&mut totals);
            totals
        };
        let totals = sum();
        assert_eq!((totals.get_hits, totals.bytes_read), (2, 10));
        assert_eq!((totals.cmd_get(), totals.classes[1].get_hits), (3, 2));
        two.reset();
        assert_eq!((sum().get_hits, sum().bytes_read), (1, 0));
        let told = ResettableCounter::default();
        told.add(3);
        told.reset();
        told.bump();
        assert_eq!(told.get(), 1);
    }

    /// The thread that resets is not the one that counts: an addition at that moment must bring nothing back.
    #[test]
    fn a_reset_holds_while_its_worker_counts_on() {
        let counters = WorkerCounters::new(SizeClasses::default());
        counters.bytes_read.add(1 << 40);
        let rounds = 200_000;
        std::thread::scope(|scope| {
            scope.spawn(|| (0..rounds).for_each(|_| counters.bytes_read.bump()));
            for _ in 0..1000 {
                counters.reset();
                let mut totals = Totals::default();
                counters.add_to(&mut totals);
                assert!(totals.bytes_read <= rounds);
            }
        });
    }
}
