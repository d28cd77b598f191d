//! The counters of workers and of the acceptor. Each counter has one writer, so to count is a plain add to a cache line
//! that no other thread writes. `stats` sums over the workers on request.
//!
//! An event of an item is counted by its size class, and as a request whose time will be [measured](super::latency).
//! The sums over all classes are made on request.

use std::sync::atomic::{AtomicU64, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::Reply;
use nuthatch_engine::counters::Counter;

use super::latency::{Group, Pending};
use super::sizes::{CLASSES, Lens, SizeClasses};

/// Declares the counters once: the struct, their sum, and their reset.
macro_rules! counters {
    (
        $($(#[$doc:meta])* $name:ident,)*
        ; by class: $($(#[$class_doc:meta])* $class_name:ident,)*
    ) => {
        /// The counters of one worker.
        pub struct WorkerCounters {
            $(
                #[doc = concat!("The counter `", stringify!($name), "`.")]
                $(#[$doc])*
                pub $name: Counter,
            )*
            classes: [ClassCounters; CLASSES],
            sizes: SizeClasses,
            /// The counts at the last `stats reset`: the thread that resets is not the thread that counts.
            base: Mutex<Totals>,
            /// Requests whose time is not known yet.
            pub pending: Pending,
        }

        /// One worker's counters of a size class, in a cache line.
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
            /// The counts by class, whose sums are above.
            pub classes: [ClassTotals; CLASSES],
        }

        /// The same sum for a size class.
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
            /// The counters for an engine with these classes.
            pub fn new(sizes: SizeClasses) -> Self {
                Self {
                    $($name: Counter::default(),)*
                    classes: std::array::from_fn(|_| ClassCounters::default()),
                    sizes,
                    base: Mutex::default(),
                    pending: Pending::default(),
                }
            }

            /// Adds the counts since the last reset to `totals`.
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
    /// Redis' reads of an item's properties, without its value.
    look_hits,
    look_misses,
    /// Commands of Redis' protocol.
    redis_commands,
    /// Keys of Redis' clients that are longer than any item's.
    key_too_long,
    store_too_large,
    store_no_memory,
    bytes_read,
    bytes_written,
    /// Connections closed for what they held while all connections held too much.
    read_buf_oom,
    /// Connections closed because they did not bring the values that they had announced.
    upload_kicks,
    /// Connections closed because they did not take large values while stores found no memory.
    reader_kicks,
    /// Connections closed because a command of theirs panicked.
    panic_kicks,
    /// Slices cut short so that other connections get theirs.
    conn_yields,
    /// Closed by the idle timeout.
    idle_kicks,
    /// Received datagrams.
    udp_datagrams,
    /// Datagrams that are cut, or a part of a longer request.
    udp_dropped,
    /// Answers that were too large.
    udp_too_large,
    /// Answers that the kernel did not take whole.
    udp_unsent,
    /// Logins.
    auth_cmds,
    /// Failed logins.
    auth_errors,
    /// Of these, logins of peers that had guessed too often.
    auth_limited,
    /// Connections closed because the client's handshake is no valid TLS.
    ssl_handshake_errors,
    /// Connections closed for an invalid record after the handshake.
    ssl_proto_errors,
    /// Handshakes that did not resume an earlier session.
    ssl_new_sessions,
    ; by class:
    get_hits,
    /// Storage commands that reached the engine, by the class of the item to store.
    cmd_set,
    incr_hits,
    decr_hits,
    cas_hits,
    /// By the class of the item to store.
    cas_badval,
    touch_hits,
}

/// Counting for the requests of all protocols.
impl WorkerCounters {
    #[inline]
    fn class(&self, lens: Lens) -> &ClassCounters {
        // Class numbers are below CLASSES. The remainder spares the bounds check.
        &self.classes[self.sizes.class(lens) % CLASSES]
    }

    /// Counts a get. For a hit, `hit` has the item's lengths.
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

    /// Counts a read of an item's properties.
    pub fn count_look(&self, hit: bool) {
        self.pending.add(Group::OTHER);
        match hit {
            true => self.look_hits.bump(),
            false => self.look_misses.bump(),
        }
    }

    /// Counts a store, whatever its outcome.
    pub fn count_set(&self, offered: Lens) {
        self.class(offered).cmd_set.bump();
        self.pending.add(Group::set(offered.value));
    }

    /// Counts the outcome of a store with a cas.
    pub fn count_cas(&self, offered: Lens, reply: &Reply) {
        match reply {
            Reply::Stored(_) => self.class(offered).cas_hits.bump(),
            Reply::Exists => self.class(offered).cas_badval.bump(),
            _ => self.cas_misses.bump(),
        }
    }

    /// Counts a delete that found an item, or none.
    pub fn count_delete(&self, hit: bool) {
        self.pending.add(Group::DELETE);
        match hit {
            true => self.delete_hits.bump(),
            false => self.delete_misses.bump(),
        }
    }

    /// Counts an addition or a subtraction. For a hit, `hit` has the lengths of the number's item.
    pub fn count_delta(&self, down: bool, hit: Option<Lens>) {
        self.pending.add(Group::DELTA);
        match (hit, down) {
            (Some(lens), false) => self.class(lens).incr_hits.bump(),
            (Some(lens), true) => self.class(lens).decr_hits.bump(),
            (None, false) => self.incr_misses.bump(),
            (None, true) => self.decr_misses.bump(),
        }
    }

    /// The same by the engine's reply. `key` is the length of the key. A value that is no number counts neither as a
    /// hit nor as a miss.
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

    /// Counts a failed store.
    pub fn count_failure(&self, reply: &Reply) {
        match reply {
            Reply::TooLarge => self.store_too_large.bump(),
            Reply::OutOfMemory => self.store_no_memory.bump(),
            _ => {}
        }
    }
}

impl Totals {
    /// Keys read by get, gets, mg.
    pub fn cmd_get(&self) -> u64 {
        self.get_hits + self.get_misses
    }
}

/// A counter that shows the count since the last reset. Any thread may reset it.
#[derive(Default)]
pub struct ResettableCounter {
    count: Counter,
    /// The count at the last reset. Relaxed: of two resets at once either is right.
    base: AtomicU64,
}

impl ResettableCounter {
    /// Adds. Only the one writing thread calls this.
    pub fn add(&self, amount: u64) {
        self.count.add(amount);
    }

    /// Adds 1.
    pub fn bump(&self) {
        self.add(1);
    }

    /// The count since the last reset.
    pub fn get(&self) -> u64 {
        // Read the base first: it is never above a count that is read after it, unless a reset comes between the two.
        let base = self.base.load(Ordering::Relaxed);
        self.count.get().saturating_sub(base)
    }

    /// Begins again at 0.
    pub fn reset(&self) {
        self.base.store(self.count.get(), Ordering::Relaxed);
    }
}

/// The acceptor's counters.
#[derive(Default)]
pub struct AcceptorCounters {
    /// Connections accepted since the start.
    pub total_connections: ResettableCounter,
    /// Connections refused, because there were too many or their user may not connect.
    pub rejected_connections: ResettableCounter,
    /// Those of them whose address had as many as an address may have.
    pub rejected_by_address: ResettableCounter,
    /// How often accepting was suspended for want of descriptors.
    pub listen_disabled_num: ResettableCounter,
    /// The time for which it was suspended, in microseconds.
    pub listen_disabled_us: ResettableCounter,
    /// 1 while it is suspended.
    pub suspended: Counter,
}

impl AcceptorCounters {
    /// `stats reset`.
    pub fn reset(&self) {
        self.total_connections.reset();
        self.rejected_connections.reset();
        self.rejected_by_address.reset();
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

    /// The thread that resets is not the thread that counts: an addition at that moment must not bring old counts back.
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
