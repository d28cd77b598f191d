//! What each thread keeps of a cache, a session and counts of its reads, and which calls still work when a thread ends.
//!
//! When a thread ends, the destructors of its thread-locals run, and one of them may use a cache: a buffer that is
//! written back, say. The crate `thread_local` keeps the thread's number in a thread-local too. A call for the number
//! after its destruction panics, and a panic in a destructor ends the process. So a guard of ours, which is destroyed
//! before the number (thread-locals are destroyed in the reverse order of their registration), marks when the number
//! may not be used any more.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thread_local::ThreadLocal;

use nuthatch_cuckoo::Cuckoo;
use nuthatch_cuckoo::layout::EightWay;
use nuthatch_engine::counters::{Counters, Registry};

use super::Session;

/// What all threads keep of a cache.
#[derive(Default)]
pub(super) struct Sessions {
    threads: ThreadLocal<PerThread>,
    reads: Registry<2>,
}

/// What one thread keeps of a cache.
///
/// Parts of several threads lie side by side, and each get writes to its own. They share no line, nor a pair of lines,
/// which some processors load together.
#[repr(align(128))]
pub(super) struct PerThread {
    /// In use while the caller's code is lent a value of a batch.
    pub session: RefCell<Session>,
    /// Reads that hit, and reads that missed.
    reads: Arc<Counters<2>>,
}

/// The phase of a thread's life, for its sessions.
#[derive(Clone, Copy)]
enum Life {
    /// It has used no cache yet, or is ending and had used none before.
    New,
    /// It has a number.
    Known,
    /// It is ending: its number is destroyed, or will be soon.
    Ending,
}

thread_local! {
    /// Without a destructor, so that it can always be read.
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
    /// This thread's part, which is made now if it has none. `None` if the thread is ending and can have none any more.
    #[inline(always)]
    pub fn of_this_thread(&self, engine: &Arc<Cuckoo<EightWay>>) -> Option<&PerThread> {
        self.get().or_else(|| self.first(engine))
    }

    /// This thread's part, if it has one.
    #[inline(always)]
    pub fn get(&self) -> Option<&PerThread> {
        self.threads.get()
    }

    /// Counts reads of the calling thread, whose part is `thread`: `None` if it is ending.
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
                // Another user of the crate may have taken the thread's number, and it may be destroyed already. Only
                // the panic shows that. It leaves no session half made, because it comes before the session is made.
                let own = catch_unwind(AssertUnwindSafe(make)).ok();
                // Registered after the number, so that it is destroyed first.
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
