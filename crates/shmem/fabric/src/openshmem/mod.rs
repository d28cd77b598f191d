//! The fabric of OpenSHMEM 1.4: PEs are processes, which a launcher (`oshrun`) starts on one machine or many.
//!
//! It uses only the standard's calls (`shim.c`), and some variables of Open MPI ([`prepare`]).
//!
//! * Memory: each [`Fabric::allocate`] is one of the library's symmetric allocations, and words are numbered through
//!   all of them (`segments.rs`). Every call looks up where its words lie, so that no safe call reaches memory that
//!   is not ours.
//! * Threads: the library is asked for `SHMEM_THREAD_MULTIPLE`. If it gives less, one lock serializes the calls. With
//!   `SERIALIZED` that is what the standard requires. With less the standard requires all calls from one thread, which
//!   no store with progress and gateway threads can promise. Libraries with such levels mean that they have no locks of
//!   their own, and need one call at a time.
//! * Progress: a PE that makes no call may answer no other PE, see [`Fabric::pause`].
//! * Failure: none is survived. When a PE dies the launcher ends the job, so [`Gone`] is never returned.

mod backoff;
mod calls;
mod heap;
mod segments;

use std::ffi::{CString, c_int};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};

use crate::{Address, Fabric, Gone, NoMemory, Verified};
use backoff::Backoff;
use segments::Segments;

/// Where allocations begin: at a line.
const ALIGNMENT: usize = 64;

/// Words that the fabric has for itself: see [`Internals`].
const ROUNDS: usize = 64;
const BOARD: usize = 512;
const OWN: usize = ROUNDS + 8 + BOARD;

/// Attempts of a wait that only spin; longer waits give the core away.
const LOOKS: u32 = 64;

/// How many threads of a PE may call the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Threads {
    /// There is only one.
    Single,
    /// Only the one that started it.
    Funneled,
    /// One at a time.
    Serialized,
    /// Any, at any time.
    Multiple,
}

impl Threads {
    fn of(level: c_int) -> Self {
        match level {
            3 => Threads::Multiple,
            2 => Threads::Serialized,
            1 => Threads::Funneled,
            _ => Threads::Single,
        }
    }
}

/// Why there is no fabric.
#[derive(Clone, Debug)]
pub enum CannotOpen {
    /// The symmetric memory does not go into the machine, or into the heap.
    Memory(NoMemory),
    /// The library does not start, and has said why itself.
    Library,
}

impl fmt::Display for CannotOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotOpen::Memory(none) => none.fmt(f),
            CannotOpen::Library => f.write_str("OpenSHMEM does not start"),
        }
    }
}

impl std::error::Error for CannotOpen {}

impl From<NoMemory> for CannotOpen {
    fn from(none: NoMemory) -> Self {
        CannotOpen::Memory(none)
    }
}

/// Words that the fabric has for itself.
#[derive(Clone, Copy)]
struct Internals {
    /// One word for each round of a barrier: the last barrier that the neighbour of that round has announced.
    rounds: Address,
    /// A word that is put to the word behind it, to give the library a call.
    idle: Address,
    /// What is being broadcast.
    board: Address,
}

/// This PE's end of OpenSHMEM.
pub struct OpenShmem {
    pe: usize,
    pes: usize,
    threads: Threads,
    /// Serializes the calls, unless the library allows them from any threads.
    lock: Option<Mutex<()>>,
    segments: Segments,
    internals: Internals,
    /// Barriers that this PE has begun.
    barriers: AtomicU64,
    verified: Verified,
    /// Whether this started OpenSHMEM, and ends it.
    started: bool,
    clock: Instant,
    backoff: Backoff,
}

impl OpenShmem {
    /// Starts OpenSHMEM, with a symmetric heap for `words` words unless the environment sets its size. Collective. It
    /// ends when the fabric drops, which is collective too.
    ///
    /// # Safety
    /// No other thread of the process looks at its environment meanwhile: it is changed. And OpenSHMEM is started
    /// once in a process.
    pub unsafe fn open(words: usize) -> Result<Self, CannotOpen> {
        // SAFETY: the caller's promise.
        unsafe { Self::open_with(words, Threads::Multiple) }
    }

    /// The same, asking the library for no more than this level of threads.
    ///
    /// # Safety
    /// That of [`OpenShmem::open`].
    pub unsafe fn open_with(words: usize, most: Threads) -> Result<Self, CannotOpen> {
        // SAFETY: the caller's promise.
        unsafe { prepare(words)? };
        // SAFETY: the caller promises that nobody else has started it.
        let level = unsafe { calls::nuthatch_fabric_start(most as c_int) };
        if level < 0 {
            return Err(CannotOpen::Library);
        }
        Ok(Self::begin(Threads::of(level), true)?)
    }

    /// Takes part in an OpenSHMEM program: one that has started OpenSHMEM, and ends it after this has dropped.
    /// Collective, as the drop is.
    ///
    /// # Safety
    /// OpenSHMEM is started, and not ended before this drops. If the program asked for fewer threads than any, it
    /// makes no calls of its own while another thread uses the fabric.
    pub unsafe fn join() -> Result<Self, CannotOpen> {
        Ok(Self::begin(
            Threads::of(calls::nuthatch_fabric_level()),
            false,
        )?)
    }

    fn begin(threads: Threads, started: bool) -> Result<Self, NoMemory> {
        let mut fabric = Self {
            pe: calls::nuthatch_fabric_pe() as usize,
            pes: calls::nuthatch_fabric_pes() as usize,
            threads,
            lock: (threads != Threads::Multiple).then(Mutex::default),
            segments: Segments::new(),
            internals: Internals {
                rounds: Address(0),
                idle: Address(0),
                board: Address(0),
            },
            barriers: AtomicU64::new(0),
            verified: verified(),
            started,
            clock: Instant::now(),
            backoff: Backoff::default(),
        };
        let own = fabric.allocate(OWN)?;
        fabric.internals = Internals {
            rounds: own,
            idle: own.plus(ROUNDS),
            board: own.plus(ROUNDS + 8),
        };
        fabric.connect();
        Ok(fabric)
    }

    /// Connects this PE with all others while all of them answer. Otherwise UCX does it at the first send, or at the
    /// first `quiet` after anything, with all PEs: a PE that stands still at that moment would make others wait that
    /// need nothing of it (seen over TCP).
    fn connect(&self) {
        for pe in 0..self.pes {
            let _ = self.put_nbi(pe, self.internals.idle.plus(2), self.internals.idle, 1);
        }
        self.barrier();
    }

    /// The level that the library gives.
    pub fn threads(&self) -> Threads {
        self.threads
    }

    /// Ends all PEs at once.
    pub fn abort(&self, status: u8) -> ! {
        calls::nuthatch_fabric_exit(status.into());
        std::process::exit(status.into());
    }

    /// Enters the library, alone if the library requires that.
    #[inline]
    fn serialize(&self) -> Option<MutexGuard<'_, ()>> {
        self.lock.as_ref().map(Mutex::lock)
    }

    /// A PE's number as the library takes it. Panics if there is no such PE.
    #[inline]
    fn target(&self, pe: usize) -> c_int {
        assert!(pe < self.pes, "there is no PE {pe}");
        pe as c_int
    }

    /// Where words lie, as the library takes the address. Panics if they were not allocated.
    #[inline]
    fn words(&self, at: Address, words: usize) -> *mut u64 {
        self.segments.find(at, words).1.cast()
    }

    /// Where each PE's words lie for this PE's loads and stores.
    fn reachable(&self, mine: *mut AtomicU64) -> Box<[*mut AtomicU64]> {
        let pes = 0..self.pes;
        // SAFETY: `mine` is symmetric memory, and there are so many PEs.
        pes.map(|pe| unsafe { calls::nuthatch_fabric_ptr(mine.cast(), pe as c_int).cast() })
            .collect()
    }

    /// In each round of this barrier, signals to one neighbour and waits for the signal of another: after the round of
    /// distance 2^n each PE has heard, by way of others, of the 2^(n+1) - 1 before it.
    ///
    /// OpenSHMEM's own barrier keeps the library's lock, or ours, while it waits. Then other threads of this PE could
    /// not do what other PEs may wait for before they come to the barrier.
    fn rounds(&self) {
        let barrier = self.barriers.fetch_add(1, Ordering::Relaxed) + 1;
        let mut distance = 1;
        for round in 0..ROUNDS {
            if distance >= self.pes {
                break;
            }
            let word = self.internals.rounds.plus(round);
            let _ = self.set((self.pe + distance) % self.pes, word, barrier);
            let mut attempt = 0;
            while self.fetch(self.pe, word).is_ok_and(|told| told < barrier) {
                self.pause(attempt);
                attempt = attempt.saturating_add(1);
            }
            distance *= 2;
        }
        // The signals must be on their way before this PE makes no more calls.
        let _ = self.quiet();
    }
}

impl Fabric for OpenShmem {
    fn pe(&self) -> usize {
        self.pe
    }

    fn pes(&self) -> usize {
        self.pes
    }

    fn verified(&self) -> Verified {
        self.verified
    }

    fn allocate(&self, words: usize) -> Result<Address, NoMemory> {
        let refused = |advice| NoMemory { words, advice };
        let alone = self.serialize();
        if self.segments.is_full() {
            return Err(refused("there are too many allocations: make fewer".into()));
        }
        let bytes = words
            .max(1)
            .checked_mul(8)
            .ok_or_else(|| refused(heap::advice()))?;
        // SAFETY: any size may be asked for.
        let mine = unsafe { calls::nuthatch_fabric_align(ALIGNMENT, bytes) };
        if mine.is_null() {
            return Err(refused(heap::advice()));
        }
        // SAFETY: these bytes are ours, and no other PE knows of them before the barrier below.
        unsafe { mine.cast::<u8>().write_bytes(0, bytes) };
        let mine = mine.cast::<AtomicU64>();
        let theirs = self.reachable(mine);
        // SAFETY: the library keeps the memory until `drop`; a peer's is as long.
        let first = unsafe { self.segments.add(words, mine, theirs) };
        drop(alone);
        // No PE may put anything to a PE that has yet to write its zeros.
        match first.0 {
            // The fabric's own words, which a barrier of ours needs.
            0 => calls::nuthatch_fabric_barrier_all(),
            _ => self.barrier(),
        }
        // All pages exist now, so they are mapped. Otherwise the first Get from each would be a page fault of two
        // microseconds, which a measurement would take for the cost of a Get.
        for peer in (0..self.pes).filter(|&peer| peer != self.pe) {
            if let Some(theirs) = self.direct(peer, first, words) {
                // SAFETY: the peer's words are mapped there, for loads and stores.
                unsafe { calls::nuthatch_fabric_map(theirs.as_ptr().cast(), size_of_val(theirs)) };
            }
        }
        Ok(first)
    }

    fn local(&self, at: Address, words: usize) -> &[AtomicU64] {
        let (_, at) = self.segments.find(at, words);
        // SAFETY: the words are there for as long as the segments, which live as long as `self`, and Rust accesses
        // them as atomics only. The library accesses them too, from outside of Rust: from other processes, or by C in
        // this one, which moves whole aligned words or (a Put that comes in pieces) bytes. A word that is read may then
        // be any mixture of bytes, which is a valid value of a word.
        unsafe { std::slice::from_raw_parts(at, words) }
    }

    fn direct(&self, pe: usize, at: Address, words: usize) -> Option<&[AtomicU64]> {
        let (segment, at) = self.segments.find(at, words);
        let theirs = segment.direct(pe, at)?;
        // SAFETY: as in `local`; the library promises that the peer's segment can be loaded and stored there.
        Some(unsafe { std::slice::from_raw_parts(theirs, words) })
    }

    fn put(&self, pe: usize, to: Address, words: &[u64]) -> Result<(), Gone> {
        let to = self.words(to, words.len());
        let _alone = self.serialize();
        // SAFETY: both are so many words long; the library has read the source when it returns.
        unsafe { calls::nuthatch_fabric_put(to, words.as_ptr(), words.len(), self.target(pe)) };
        Ok(())
    }

    fn get(&self, pe: usize, from: Address, into: &mut [u64]) -> Result<(), Gone> {
        let from = self.words(from, into.len());
        let _alone = self.serialize();
        // SAFETY: both are so many words long; the library has written the buffer when it returns.
        unsafe { calls::nuthatch_fabric_get(into.as_mut_ptr(), from, into.len(), self.target(pe)) };
        Ok(())
    }

    fn put_nbi(&self, pe: usize, to: Address, from: Address, words: usize) -> Result<(), Gone> {
        let (to, from) = (self.words(to, words), self.words(from, words));
        // A library that completes non-blocking operations at `quiet` only might keep the words until then.
        let put = match self.verified.lands_alone {
            true => calls::nuthatch_fabric_put_nbi,
            false => calls::nuthatch_fabric_put,
        };
        let _alone = self.serialize();
        // SAFETY: both are so many words of symmetric memory, which stays.
        unsafe { put(to, from, words, self.target(pe)) };
        Ok(())
    }

    fn get_nbi(&self, pe: usize, from: Address, into: Address, words: usize) -> Result<(), Gone> {
        let (from, into) = (self.words(from, words), self.words(into, words));
        let _alone = self.serialize();
        // SAFETY: both are so many words of symmetric memory, which stays.
        unsafe { calls::nuthatch_fabric_get_nbi(into, from, words, self.target(pe)) };
        Ok(())
    }

    fn compare_swap(&self, pe: usize, at: Address, expected: u64, new: u64) -> Result<u64, Gone> {
        let at = self.words(at, 1);
        let _alone = self.serialize();
        // SAFETY: a word of symmetric memory.
        Ok(unsafe { calls::nuthatch_fabric_compare_swap(at, expected, new, self.target(pe)) })
    }

    fn fetch_add(&self, pe: usize, at: Address, by: u64) -> Result<u64, Gone> {
        let at = self.words(at, 1);
        let _alone = self.serialize();
        // SAFETY: a word of symmetric memory.
        Ok(unsafe { calls::nuthatch_fabric_fetch_add(at, by, self.target(pe)) })
    }

    fn swap(&self, pe: usize, at: Address, new: u64) -> Result<u64, Gone> {
        let at = self.words(at, 1);
        let _alone = self.serialize();
        // SAFETY: a word of symmetric memory.
        Ok(unsafe { calls::nuthatch_fabric_swap(at, new, self.target(pe)) })
    }

    fn fetch(&self, pe: usize, at: Address) -> Result<u64, Gone> {
        let at = self.words(at, 1);
        let _alone = self.serialize();
        // SAFETY: a word of symmetric memory.
        Ok(unsafe { calls::nuthatch_fabric_fetch(at, self.target(pe)) })
    }

    fn set(&self, pe: usize, at: Address, word: u64) -> Result<(), Gone> {
        let at = self.words(at, 1);
        let _alone = self.serialize();
        // SAFETY: a word of symmetric memory.
        unsafe { calls::nuthatch_fabric_set(at, word, self.target(pe)) };
        Ok(())
    }

    /// A non-blocking Put of eight aligned bytes. UCX stores them by a copy of eight bytes, also when the other PE's
    /// library stores what came by TCP; the C library's copy of eight aligned bytes is one store (x86-64 and aarch64).
    fn signal(&self, pe: usize, to: Address, from: Address) -> Result<(), Gone> {
        self.put_nbi(pe, to, from, 1)
    }

    /// No PE is ever known to be gone: the job ends.
    fn is_gone(&self, _: usize) -> bool {
        false
    }

    fn fence(&self) {
        let _alone = self.serialize();
        calls::nuthatch_fabric_fence();
    }

    fn quiet(&self) -> Result<(), Gone> {
        let _alone = self.serialize();
        calls::nuthatch_fabric_quiet();
        Ok(())
    }

    fn barrier(&self) {
        // As the library's own barrier would.
        let _ = self.quiet();
        self.rounds();
    }

    fn broadcast(&self, root: usize, words: &mut [u64]) {
        for words in words.chunks_mut(BOARD) {
            if self.pe == root {
                for (word, value) in self
                    .local(self.internals.board, words.len())
                    .iter()
                    .zip(&*words)
                {
                    // Relaxed: the barrier comes before any PE reads it.
                    word.store(*value, Ordering::Relaxed);
                }
            }
            self.barrier();
            let _ = self.get(root, self.internals.board, words);
            // The root's next words overwrite these.
            self.barrier();
        }
    }

    /// Over TCP, Open MPI carries out other PEs' operations on this PE only in this PE's calls, and only in calls that
    /// find something to do: a load, a `shmem_test` or an atomic fetch from itself let no other PE proceed (measured:
    /// Gets of another PE stood still). With the variable that [`prepare`] sets, a non-blocking Put does, also one to
    /// this PE.
    fn pause(&self, attempt: u32) {
        let _ = self.put_nbi(self.pe, self.internals.idle.plus(1), self.internals.idle, 1);
        match attempt < LOOKS {
            true => std::hint::spin_loop(),
            false => self.backoff.pause(),
        }
    }

    fn doze(&self, longest: Duration) {
        self.pause(0);
        std::thread::sleep(longest);
    }

    fn nanos(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }
}

impl Drop for OpenShmem {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The others would wait for this PE for ever.
            calls::nuthatch_fabric_exit(101);
        }
        let _ = self.quiet();
        if self.started {
            // SAFETY: it was started by `open`, and nothing of it is in use any more.
            unsafe { calls::nuthatch_fabric_finalize() };
            return;
        }
        for memory in self.segments.backwards() {
            // SAFETY: the library's memory, and nobody borrows it any more. Collective, in the same order on all.
            unsafe { calls::nuthatch_fabric_free(memory.cast()) };
        }
    }
}

/// What was verified for the library beyond the standard: nothing, unless it is Open MPI 4.1, whose UCX was looked at.
fn verified() -> Verified {
    let is_verified = calls::nuthatch_fabric_is_open_mpi_4_1() != 0;
    Verified {
        // Where `shmem_ptr` gives an address, the calling PE's processor stores a Put's words itself, before the call
        // returns (by a copy, or by `process_vm_writev`), and x86-64 keeps stores in order.
        ordered_for_loads: is_verified && cfg!(target_arch = "x86_64"),
        // Every call that makes progress has Gets land, also `pause`, and over shared memory they land at once.
        lands_alone: is_verified,
    }
}

/// How many PEs the launcher has started, as it tells by a variable; `None` if it does not. Known before OpenSHMEM is
/// started, when the heap must be asked for.
pub fn launched() -> Option<usize> {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Sets the variables that OpenSHMEM reads when it starts, except for those that the user has set, with a symmetric
/// heap for `words` words. [`OpenShmem::open`] calls it. A program that starts OpenSHMEM and then joins calls it
/// before.
///
/// # Safety
/// No other thread uses the environment meanwhile.
pub unsafe fn prepare(words: usize) -> Result<(), NoMemory> {
    let asked = [heap::OPEN_MPI, heap::STANDARD].map(|name| std::env::var(name).ok());
    let [open_mpi, standard] = asked;
    let size = open_mpi
        .or(standard)
        .unwrap_or_else(|| heap::bytes_for(words + OWN).to_string());
    if let Some(bytes) = heap::parse(&size) {
        heap::check(bytes)?;
    }
    let defaults = [
        (heap::OPEN_MPI, size.as_str()),
        (heap::STANDARD, &size),
        // Without this, Debian's Open MPI 4.1 crashes when it ends, in a memory hook.
        ("OMPI_MCA_memory", "^patcher"),
        // A non-blocking Put carries out other PEs' operations on this PE: see `pause`.
        ("OMPI_MCA_spml_ucx_nb_put_progress_thresh", "1"),
        // UCX gives up a TCP connection on which nothing has arrived for 16 seconds, and later sends are lost without a
        // word. The system gives one up when data has had no acknowledgement for some fifteen minutes.
        ("UCX_TCP_KEEPIDLE", "inf"),
    ];
    for (name, value) in defaults {
        let [name, value] = [name, value].map(|text| CString::new(text).expect("no zero inside"));
        // SAFETY: two strings, and the caller's promise.
        unsafe { calls::nuthatch_fabric_set_default(name.as_ptr(), value.as_ptr()) };
    }
    Ok(())
}
