//! What each thread has of a cache, a session and counts of its reads, and what is left of that when a thread ends.
//!
//! When a thread ends, the destructors of its thread-locals run, and one of them may use a cache: a buffer that is
//! written back, say. The crate `thread_local` keeps the thread's number in a thread-local too, and asking for one
//! when that is gone is a panic, which in a destructor ends the process. So a guard of ours, which goes before the
//! number does (what was registered last is destroyed first), says when to ask no more.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thread_local::ThreadLocal;

use nuthatch_cuckoo::Cuckoo;
use nuthatch_cuckoo::layout::EightWay;
use nuthatch_engine::counters::{Counters, Registry};

use super::Session;

/// What a cache's threads have of it.
#[derive(Default)]
pub(super) struct Sessions {
    threads: ThreadLocal<PerThread>,
    reads: Registry<2>,
}

/// What a thread has of a cache.
pub(super) struct PerThread {
    /// In use while the caller's code is lent a value of a batch.
    pub session: RefCell<Session>,
    /// Reads that hit, and reads that missed.
    reads: Arc<Counters<2>>,
}

/// How far a thread is, as sessions see it.
#[derive(Clone, Copy)]
enum Life {
    /// It has used no cache yet, or is ending and had used none before.
    New,
    /// It has a number.
    Known,
    /// It is ending: its number is gone, or will be.
    Ending,
}

thread_local! {
    /// Without a destructor, so that it can always be asked.
    static LIFE: Cell<Life> = const { Cell::new(Life::New) };
    static GUARD: Guard = const { Guard };
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        LIFE.set(Life::Ending);
    }
}

impl Sessions {
    /// This thread's, which it gets now if it has none. `None` if the thread is ending and has none any more.
    #[inline(always)]
    pub fn of_this_thread(&self, engine: &Arc<Cuckoo<EightWay>>) -> Option<&PerThread> {
        self.get().or_else(|| self.first(engine))
    }

    /// This thread's, if it has one.
    #[inline(always)]
    pub fn get(&self) -> Option<&PerThread> {
        self.threads.get()
    }

    /// Counts reads of a thread, which is this one: `None` if it is ending.
    #[inline(always)]
    pub fn count_reads(&self, thread: Option<&PerThread>, hits: u64, misses: u64) {
        match thread {
            Some(thread) => thread.count(hits, misses),
            None => self.count_last_reads(hits, misses),
        }
    }

    #[cold]
    fn count_last_reads(&self, hits: u64, misses: u64) {
        let reads = self.reads.register();
        reads.add(0, hits);
        reads.add(1, misses);
        self.reads.unregister(&reads);
    }

    /// Reads that hit, and reads that missed, of all threads.
    pub fn reads(&self) -> [u64; 2] {
        self.reads.sums()
    }

    #[cold]
    fn first(&self, engine: &Arc<Cuckoo<EightWay>>) -> Option<&PerThread> {
        let new = || PerThread {
            session: RefCell::new(Session::deferring(engine)),
            reads: self.reads.register(),
        };
        let make = || self.threads.get_or(new);
        match LIFE.get() {
            Life::Known => Some(make()),
            Life::Ending => None,
            Life::New => {
                // Another user of the crate may have had the thread's number, and have lost it. Nothing tells but
                // the panic, which cannot leave a session half made: it comes before that.
                let own = catch_unwind(AssertUnwindSafe(make)).ok();
                // Registered behind the number, so that it goes first.
                let guarded = GUARD.try_with(|_| ()).is_ok();
                let known = own.is_some() && guarded;
                LIFE.set(if known { Life::Known } else { Life::Ending });
                own
            }
        }
    }
}

impl PerThread {
    /// Counts a read.
    #[inline(always)]
    pub fn count_read(&self, hit: bool) {
        self.reads.add(usize::from(!hit), 1);
    }

    #[inline(always)]
    fn count(&self, hits: u64, misses: u64) {
        self.reads.add(0, hits);
        self.reads.add(1, misses);
    }
}
