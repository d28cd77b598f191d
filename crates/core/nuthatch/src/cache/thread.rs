//! What each thread keeps of a cache, a session and counts of its reads, and which calls still work when a thread ends.
//!
//! When a thread ends, the destructors of its thread-locals run, and one of them may use a cache: a buffer that is
//! written back, say. The crate `thread_local` keeps the thread's number in a thread-local too. A call for the number
//! after its destruction panics, and a panic in a destructor ends the process. So a guard of ours, which is destroyed
//! before the number (thread-locals are destroyed in the reverse order of their registration), marks when the number
//! may not be used any more.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thread_local::ThreadLocal;

use nuthatch_cuckoo::Cuckoo;
use nuthatch_cuckoo::layout::EightWay;
use nuthatch_engine::counters::{Counters, Registry};

use super::Session;

/// What all threads keep of a cache.
pub(super) struct Sessions {
    /// No other cache of the process has or had it.
    id: u64,
    threads: ThreadLocal<PerThread>,
    reads: Registry<4>,
}

/// Reads of all threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reads {
    /// That hit, in a session with the engine, which has counted its searches.
    hits: u64,
    /// That missed there.
    misses: u64,
    /// That hit without a session.
    pub hits_at_once: u64,
    /// That missed so.
    pub misses_at_once: u64,
}

impl Reads {
    /// All that hit.
    pub fn hits(&self) -> u64 {
        self.hits + self.hits_at_once
    }

    /// All that missed.
    pub fn misses(&self) -> u64 {
        self.misses + self.misses_at_once
    }
}

/// What one thread keeps of a cache.
///
/// Parts of several threads lie side by side, and each get writes to its own. They share no line, nor a pair of lines,
/// which some processors load together.
#[repr(align(128))]
pub(super) struct PerThread {
    /// In use while the caller's code is lent a value of a batch.
    pub session: RefCell<Session>,
    /// In the order of [`Reads`].
    reads: Arc<Counters<4>>,
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
    /// The cache that the thread has used last, as its id, and the thread's part of it: finding a part by the thread's
    /// number takes ten instructions more. Id 0 stands for none. Set only while the thread's life is known, and cleared
    /// when that ends: a part belongs to the thread for as long as the number does.
    static LAST: Cell<(u64, *const PerThread)> = const { Cell::new((0, ptr::null())) };
    static GUARD: Guard = const { Guard };
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        LIFE.set(Life::Ending);
        LAST.set((0, ptr::null()));
    }
}

impl Default for Sessions {
    fn default() -> Self {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Self {
            // Relaxed: a number of its own.
            id: IDS.fetch_add(1, Ordering::Relaxed),
            threads: ThreadLocal::default(),
            reads: Registry::default(),
        }
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
        let (id, part) = LAST.get();
        if id == self.id {
            // SAFETY: `find` has put it there for the cache with this id, which is this one. The cache drops no part and
            // moves none before it is dropped itself, and it is borrowed here.
            return Some(unsafe { &*part });
        }
        self.find()
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> Option<&PerThread> {
        let part = self.threads.get()?;
        if let Life::Known = LIFE.get() {
            LAST.set((self.id, part));
        }
        Some(part)
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

    /// The reads of all threads.
    pub fn reads(&self) -> Reads {
        let [hits, misses, hits_at_once, misses_at_once] = self.reads.sums();
        Reads {
            hits,
            misses,
            hits_at_once,
            misses_at_once,
        }
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

    /// Counts a read without a session.
    #[inline(always)]
    pub fn count_at_once(&self, hit: bool) {
        self.reads.add(if hit { 2 } else { 3 }, 1);
    }

    #[inline(always)]
    fn count(&self, hits: u64, misses: u64) {
        self.reads.add(0, hits);
        self.reads.add(1, misses);
    }
}
