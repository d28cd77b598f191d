//! The trait of a fabric: OpenSHMEM 1.4's one-sided operations on words of 64 bits, and nothing else.

use std::fmt;
use std::time::Duration;

/// A word of symmetric memory: the standard library's, or loom's in a model.
pub type Word = nuthatch_base::sync::shim::AtomicU64;

/// A place in symmetric memory: the number of a word, the same on every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address(pub u64);

impl Address {
    /// The place `words` words on.
    #[inline(always)]
    pub const fn plus(self, words: usize) -> Self {
        Self(self.0 + words as u64)
    }
}

/// A PE does not answer any more. OpenSHMEM never reports that: it ends the whole job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Which one.
    pub pe: usize,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PE {} is gone", self.pe)
    }
}

impl std::error::Error for Gone {}

/// Symmetric memory of this size cannot be allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMemory {
    /// Words that were asked for.
    pub words: usize,
    /// What can be done about it.
    pub advice: String,
}

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = (self.words * 8).div_ceil(1 << 20);
        write!(f, "no {mebibytes} MiB of symmetric memory: {}", self.advice)
    }
}

impl std::error::Error for NoMemory {}

/// Words of the longest copy whose words are whole. OpenSHMEM does not define it, and longer ones were seen torn inside
/// of words: UCX over TCP sends more than some 8,100 bytes in pieces that end anywhere, and in shared memory a long
/// copy may be one instruction that copies bytes and is interrupted between any two (seen once, with 512 words).
pub const WHOLE: usize = 64;

/// What a fabric does beyond OpenSHMEM's promises, as far as that was verified for the library under it. Callers must
/// also work with the default: nothing more than the standard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// A PE that loads another one's memory through [`Fabric::direct`] sees Puts of any third PE that reaches that
    /// memory, too, in the order of that PE's fences. The standard says when Puts are seen by Gets and by the target,
    /// and nothing about other PEs' loads: a library may have the network card, or another PE's thread, store them.
    pub ordered_for_loads: bool,
    /// What [`Fabric::get_nbi`] reads, and what Puts send, lands soon, also if `quiet` is not called. The standard says no
    /// more than that it has landed when `quiet` returns.
    pub lands_alone: bool,
}

/// A PE's end of a fabric: one-sided operations on the symmetric memory of all PEs. Any thread of the PE may
/// call it.
///
/// It promises what OpenSHMEM promises, and no more:
///
/// * A Put is on its way when the call returns. The words of one Put, and those of several, arrive in any order
///   and at any time before [`quiet`](Fabric::quiet) returns.
/// * [`fence`](Fabric::fence) puts all Puts and `set`s to a PE before those that follow to the same PE.
/// * The words of one Get are read in any order. A word is read whole, and arrives whole, in a copy of up to
///   [`WHOLE`] words; in a longer one it may be half of one and half of another.
/// * A word that atomic operations change is changed by atomic operations only, or by a PE that has it to itself; or it is
///   a hint, any of whose values may be lost, and is put as well, whole.
///   `compare_swap`, `fetch_add`, `swap` and `fetch` are done when they return. Callers must not rely on a fence to
///   order them: OpenSHMEM 1.4 has a fence order all atomic operations, but 1.5 only those that fetch nothing.
/// * The non-blocking operations work on this PE's own symmetric memory, so that no borrowed buffer is
///   written behind its owner's back. Their reads and writes there are complete after `quiet`. A single word that is
///   read so may be polled before that: it has its old value, or the one that was read, whole. Whether it ever has the
///   latter without `quiet` depends on the library: see [`Verified::lands_alone`].
/// * `put_nbi`, `get_nbi`, `signal` and `fence` wait for no PE. All others may, for as long as a PE, or the way to it,
///   stands still: OpenSHMEM's atomic operations are answered by the PE, also `set` (Open MPI's is a swap), and a Put
///   waits for room if the network takes no more.
///
/// A PE loads and stores words of its own memory through [`local`](Fabric::local), and those of others that it can
/// reach through [`direct`](Fabric::direct).
pub trait Fabric: Send + Sync + 'static {
    /// This PE's number.
    fn pe(&self) -> usize;

    /// How many PEs there are.
    fn pes(&self) -> usize;

    /// What it does beyond the promises above.
    fn verified(&self) -> Verified;

    /// Zeroed symmetric memory. Collective: every PE asks for the same, in the same order.
    fn allocate(&self, words: usize) -> Result<Address, NoMemory>;

    /// Words of this PE's own memory. Panics if they were not allocated.
    fn local(&self, at: Address, words: usize) -> &[Word];

    /// Words of another PE's memory that this one can load and store, if it can.
    fn direct(&self, pe: usize, at: Address, words: usize) -> Option<&[Word]>;

    /// Writes words to a PE.
    fn put(&self, pe: usize, to: Address, words: &[u64]) -> Result<(), Gone>;

    /// Reads words of a PE; they are there when it returns.
    fn get(&self, pe: usize, from: Address, into: &mut [u64]) -> Result<(), Gone>;

    /// Writes words of this PE's own memory to a PE. They must stay as they are until [`quiet`](Fabric::quiet).
    fn put_nbi(&self, pe: usize, to: Address, from: Address, words: usize) -> Result<(), Gone>;

    /// Reads words of a PE into this PE's own memory, where they are after [`quiet`](Fabric::quiet).
    fn get_nbi(&self, pe: usize, from: Address, into: Address, words: usize) -> Result<(), Gone>;

    /// Stores `new` if the word is `expected`; returns its old value.
    fn compare_swap(&self, pe: usize, at: Address, expected: u64, new: u64) -> Result<u64, Gone>;

    /// Adds to a word; returns its old value.
    fn fetch_add(&self, pe: usize, at: Address, by: u64) -> Result<u64, Gone>;

    /// Stores a word; returns its old value.
    fn swap(&self, pe: usize, at: Address, new: u64) -> Result<u64, Gone>;

    /// Reads a word that others change by atomic operations.
    fn fetch(&self, pe: usize, at: Address) -> Result<u64, Gone>;

    /// Stores a word, atomically. As a Put, it is only on its way when the call returns.
    fn set(&self, pe: usize, at: Address, word: u64) -> Result<(), Gone>;

    /// Stores a word that lies in this PE's own memory at a PE, whole, and never waits for that PE: a [`put_nbi`] of one
    /// word, of which a PE that sleeps is notified. No PE changes that word by atomic operations, and it has one writer
    /// at a time. The source word must stay as it is until it has arrived: a source that is read later would pass by a
    /// [`fence`].
    ///
    /// [`put_nbi`]: Fabric::put_nbi
    /// [`fence`]: Fabric::fence
    fn signal(&self, pe: usize, to: Address, from: Address) -> Result<(), Gone>;

    /// Orders what this PE has sent before what it will send, for each target PE.
    fn fence(&self);

    /// Returns when all that this PE has sent has arrived, and all that it has asked for. Error: something was lost
    /// with a PE, or with several, of which it names one. Every later call returns the error, too, so that every thread
    /// of this PE sees it; [`is_gone`](Fabric::is_gone) tells for each PE whether it is gone.
    fn quiet(&self) -> Result<(), Gone>;

    /// True if a PE is known to be gone. Never waits; false proves nothing.
    fn is_gone(&self, pe: usize) -> bool;

    /// Returns when every PE has called it. Collective.
    fn barrier(&self);

    /// Hands the root's words to every PE. Collective.
    fn broadcast(&self, root: usize, words: &mut [u64]);

    /// One attempt of a wait for another PE, counted from 0: lets the fabric make progress, and gives the core away as
    /// the wait grows long.
    fn pause(&self, attempt: u32);

    /// A rest of a PE that has had no request for a while: lets the fabric make progress, and gives the core away for
    /// up to `longest`.
    fn doze(&self, longest: Duration);

    /// Nanoseconds of a monotonic clock of this PE: for measurements, never for correctness.
    fn nanos(&self) -> u64;
}
