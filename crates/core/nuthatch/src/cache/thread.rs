//! What each thread keeps of a cache, a session and counts of its reads, and which calls still work when a thread ends.
//!
//! Each thread that uses caches has a [number](super::number), and in each cache the part of this number. When a thread
//! ends, the destructors of its thread-locals run, in an order that nobody promises, and any of them may use a cache: a
//! buffer that is written back, say. One destructor of ours ends all at once: it forgets the part that the thread used
//! last, then the number, and then gives the number back. Before it, the thread uses its parts as ever. After it, it has
//! none, and its calls make a session each.
//!
//! Invariant: a part is used by the thread alone that has its number. No two threads have a number at the same time, and
//! who gets it next has taken it under the lock under which it was given back, behind the last use of its parts.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nuthatch_cuckoo::Cuckoo;
use nuthatch_cuckoo::layout::EightWay;
use nuthatch_engine::counters::{Counters, Registry};

use super::Session;
use super::number::{ByNumber, Number};

/// What all threads keep of a cache.
pub(super) struct Sessions {
    /// No other cache of the process has or had it.
    id: u64,
    threads: Parts,
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

/// The parts of all threads.
#[derive(Default)]
struct Parts(ByNumber<PerThread>);

// SAFETY: a shared part is used by the one thread that has its number: `Sessions` looks for no other part than that of
// the calling thread (the module's invariant). So its session, which is all of it that threads cannot share, is used by one
// thread at a time, and that may be another than the one that made it, since a part can be sent:
unsafe impl Sync for Parts {}
const _: () = {
    const fn can_be_sent<T: Send>() {}
    can_be_sent::<PerThread>();
};

/// The phase of a thread's life, for its sessions.
#[derive(Clone, Copy)]
enum Life {
    /// It has used no cache yet.
    New,
    /// It has a number.
    Known(Number),
    /// It is ending, and has given its number back.
    Ending,
}

thread_local! {
    /// Without a destructor, so that it can always be read.
    static LIFE: Cell<Life> = const { Cell::new(Life::New) };
    /// The cache that the thread has used last, as its id, and the thread's part of it: finding a part by the thread's
    /// number takes more instructions. Id 0 stands for none. Set only while the thread has a number, and cleared before
    /// that is given back.
    static LAST: Cell<(u64, *const PerThread)> = const { Cell::new((0, ptr::null())) };
    static GUARD: Guard = const { Guard };
}

/// Ends what a thread has of caches.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        LAST.set((0, ptr::null()));
        if let Life::Known(number) = LIFE.replace(Life::Ending) {
            number.give_back();
        }
    }
}

/// The calling thread's number, which it gets now if it has none. `None` if it is ending.
fn own_number() -> Option<Number> {
    match LIFE.get() {
        Life::Known(number) => Some(number),
        Life::Ending => None,
        Life::New => {
            // First: what would give the number back is there before the number.
            GUARD.try_with(|_| ()).ok()?;
            let number = Number::take();
            LIFE.set(Life::Known(number));
            Some(number)
        }
    }
}

impl Default for Sessions {
    fn default() -> Self {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Self {
            // Relaxed: a number of its own.
            id: IDS.fetch_add(1, Ordering::Relaxed),
            threads: Parts::default(),
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
            // moves none before it is dropped itself, and it is borrowed here. The part is still this thread's: `Guard`
            // clears this before it gives the number back.
            return Some(unsafe { &*part });
        }
        self.find()
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> Option<&PerThread> {
        let Life::Known(number) = LIFE.get() else {
            return None;
        };
        let part = self.threads.0.get(number)?;
        LAST.set((self.id, part));
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
        let number = own_number()?;
        let new = || PerThread {
            session: RefCell::new(Session::deferring(engine)),
            reads: self.reads.register(),
        };
        Some(self.threads.0.get_or_make(number, new))
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

// Windows runs these destructors under its loader's lock, so that no thread begins or ends meanwhile.
#[cfg(all(test, not(windows)))]
mod tests {
    use std::thread;

    use nuthatch_cuckoo::CuckooConfig;

    use super::*;

    /// Calls something when its thread ends.
    struct AtTheEnd(Box<dyn Fn()>);

    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            self.0();
        }
    }

    thread_local! {
        static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    }

    /// Class of bug: what belongs to a thread that is ending is given to another one before its last use. In whichever
    /// order the destructors of a thread run, another thread that begins meanwhile gets another part.
    #[test]
    fn a_part_has_one_thread_to_the_end() {
        let config = CuckooConfig {
            memory_limit: 1 << 20,
            item_size_max: 1 << 19,
            ..CuckooConfig::default()
        };
        let engine = &*Box::leak(Box::new(Arc::new(Cuckoo::new(config).unwrap())));
        let sessions = &*Box::leak(Box::new(Sessions::default()));
        let own = move || sessions.of_this_thread(engine).map(ptr::from_ref);
        let address = move || own().map_or(0, |part| part.addr());
        let leave = move || {
            let check = move || {
                let mine = [address(), address()];
                let other = thread::spawn(address).join().unwrap();
                assert!(other != 0 && !mine.contains(&other), "{mine:?}, {other}");
            };
            AT_THE_END.set(Some(AtTheEnd(Box::new(check))));
        };
        let begins: [&(dyn Fn() + Sync); 3] = [
            &leave,
            &|| {
                leave();
                assert_ne!(address(), 0);
            },
            &|| {
                assert_ne!(address(), 0);
                leave();
            },
        ];
        for begin in begins {
            thread::scope(|scope| scope.spawn(begin).join().unwrap());
        }
    }
}
