//! The engine interface, which all servers and libraries build on: batch in, batch out.

use std::sync::Arc;

use nuthatch_base::hash::KeyHasher;
use nuthatch_base::sync::clock::Time;

use crate::any::AnyEngine;
use crate::inspect::{Audit, Footprint, Inspect};
use crate::limit::LimitError;
use crate::reply::{Item, Replies, Reply};
use crate::request::{COMMON_KEY_LEN_MAX, Key, Request, Store};
use crate::sharing::Sharing;
use crate::stats::EngineStats;

/// A table with its memory, shared between threads. A program chooses it once, at the top.
///
/// Engines number their stores, and panic at the next store when no number is left: after 2^50 stores, or 2^48 in one
/// partition (lockhash, cphash). That is years away at millions of stores a second.
pub trait Engine: Inspect + Audit + Send + Sync + Sized + 'static {
    /// A thread's handle to the engine.
    type Handle: Handle;

    /// This engine without its type. An engine implements it in code that has no type parameter, with the same body: then
    /// the whole engine is compiled in its own crate, and not where engines are chosen.
    fn any(self: Arc<Self>) -> Arc<AnyEngine> {
        AnyEngine::new(self)
    }

    /// A new handle. A handle costs little while it exists, and something to make: make one for each thread.
    fn handle(self: &Arc<Self>) -> Self::Handle;

    /// The function that hashes this engine's keys.
    fn hasher(&self) -> &KeyHasher;

    /// The engine's name, the value of `--engine`.
    fn name(&self) -> &'static str;

    /// Counters and sizes, summed over all handles.
    fn stats(&self) -> EngineStats;

    /// Sets the counters of [`EngineStats`] that only ever rise back to zero.
    fn reset_stats(&self);

    /// Every item stored before `at` stops being returned from `at` on (flush_all). A moment not
    /// after `now` takes effect before this returns, on everything stored before this call. A later
    /// call replaces a delayed one.
    fn flush(&self, now: Time, at: Time);

    /// The same, for who tells a client what became of it. Errors: [`Reply::Unavailable`], if the items are copies of others', and
    /// one of those did not answer: its items are still there.
    fn try_flush(&self, now: Time, at: Time) -> Result<(), Reply> {
        self.flush(now, at);
        Ok(())
    }

    /// Numbers stores from `least` on, or from the next number if that is higher. So items that keep the cas of an
    /// earlier engine share it with no later store. Handles that have stored may still give out a few lower numbers. An
    /// engine whose items never come from another does nothing.
    fn number_from(&self, least: u64) {
        let _ = least;
    }

    /// A number above the cas of every store so far, except those that clients chose: an engine that takes the place of
    /// this one goes on from there. 0 for an engine whose items never go to another.
    fn next_number(&self) -> u64 {
        0
    }

    /// Changes the memory limit, in bytes (cache_memlimit). A lower one is reached step by step, in [`Handle::maintain`]
    /// and by stores, whose memory makes room for itself. The error gives the possible limits.
    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError>;

    /// True if the items are copies of others': they are neither saved nor taken from another server.
    fn holds_copies(&self) -> bool {
        false
    }

    /// The largest item (header, key and value), in bytes.
    fn item_size_max(&self) -> usize;

    /// The longest key that this engine takes, in bytes. Callers give it none that is longer.
    fn key_len_max(&self) -> usize {
        COMMON_KEY_LEN_MAX
    }

    /// False: a full engine answers [`Reply::OutOfMemory`] instead of evicting (`-M`).
    fn evicts(&self) -> bool;

    /// Notes that the item at an address of its memory was used, by another process that reads it. The address may be any
    /// number. ([`hints`](crate::hints))
    fn note_use(&self, address: u64) {
        let _ = address;
    }

    /// The memory that other processes can read, if the engine was made so.
    fn sharing(&self) -> Option<Arc<dyn Sharing>> {
        None
    }
}

/// A thread's handle to an engine: it holds the thread's statistics and random state.
pub trait Handle: Send {
    /// A large value, held in place for as long as its reader needs it.
    type Value: Value;

    /// An item under construction, whose bytes arrive piece by piece. Dropping it frees it.
    type Reservation: Reservation;

    /// Values longer than this are handed out by [`Replies::large`] instead of being copied.
    const COPY_MAX: usize;

    /// A hint: a request about this key will be in the next batch. The caller gives it for each key in order, as soon
    /// as it knows the key and before it reads the next one: that reading overlaps with the loads of the first lines
    /// that the requests need. An engine may ignore any number of hints.
    ///
    /// A caller that knows a batch before the last one was executed hints it whole before that: then the loads for both
    /// overlap. So hints are in the order of the requests of all batches; a request that was not hinted in its place
    /// takes longer, and those hinted behind it may be forgotten.
    fn prefetch(&mut self, key: &Key<'_>) {
        let _ = key;
    }

    /// Carries out a batch: requests take effect in order, each atomically for its key, and are
    /// answered in order. `now` is the moment at which all of them happen.
    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    );

    /// Begins a store whose value (`value_len` bytes) arrives later. The key has no new value before
    /// [`Handle::commit`]. Any length is allowed; fails with [`Reply::TooLarge`] or [`Reply::OutOfMemory`].
    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<Self::Reservation, Reply>;

    /// Carries out the store of a complete reservation; `store.value` is ignored. The reply is that of the same store
    /// in a batch. Panics if bytes are missing, or if a handle of another engine made the reservation; the reservation
    /// is freed then.
    fn commit(&mut self, now: Time, reservation: Self::Reservation, store: &Store<'_>) -> Reply;

    /// Background work, bounded by `budget` (about so many items are looked at): frees expired
    /// items, moves memory to where it is needed, grows the index. Returns true if there is
    /// more to do at once.
    fn maintain(&mut self, now: Time, budget: usize) -> bool;

    /// Visits items: calls `visit` for up to about `budget` places and returns where to go on, or `None` at the end. It
    /// blocks no thread. An item that is neither changed nor evicted between the first call and the last is visited
    /// once, as long as it is not moved. An engine that makes room by moving items may show a moved item again. It may
    /// also miss one: if the item is being moved when the walk begins, or if it is moved more than once meanwhile, each
    /// time out of the walk's way. So few items are missed while the walk is faster than the moves that stores cause. A
    /// walk that is slower, beside many writers or because its caller waits between calls, may miss many items that
    /// stay. If nothing is stored meanwhile and [`Handle::maintain`] is not called, nothing is moved. An item that has
    /// expired or was flushed is not visited. Start with `Cursor::default()`.
    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor>;
}

/// The place where a visit goes on. Its meaning is the engine's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The next place.
    pub place: u64,
    /// The end of the walk, in an engine whose items move; 0: not known yet.
    pub end: u64,
}

impl Cursor {
    /// A cursor at a place, in an engine whose items do not move.
    pub fn at(place: u64) -> Self {
        Self { place, end: 0 }
    }
}

/// One item met by [`Handle::visit`].
pub struct Visit<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its metadata.
    pub item: Item,
    /// Its value. Empty for values over [`Handle::COPY_MAX`]; get those by key.
    pub value: &'a [u8],
    /// The memory that it takes.
    pub footprint: Footprint,
}

/// A value held in place: its bytes do not change and are not reused before it is dropped. It is not always contiguous.
pub trait Value: Send {
    /// Bytes in all.
    fn len(&self) -> usize;

    /// True if it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The longest contiguous piece that starts at `offset`: empty only at the end.
    fn chunk(&self, offset: usize) -> &[u8];

    /// Bytes of memory that belong to this value alone: 0 if it lies in the engine's memory, which the engine counts.
    fn memory(&self) -> usize {
        0
    }
}

/// Panics as [`Handle::commit`] does, unless the reservation is complete and was made by this engine: for engines.
pub fn assert_commits(reservation: &impl Reservation, is_own: bool) {
    assert_eq!(
        reservation.missing(),
        0,
        "a reservation is committed when it is complete"
    );
    assert!(
        is_own,
        "a reservation is committed to the engine that made it"
    );
}

/// An item under construction.
pub trait Reservation: Send {
    /// Appends bytes to the value. Panics if they are more than were reserved.
    fn write(&mut self, bytes: &[u8]);

    /// Bytes still missing.
    fn missing(&self) -> usize;
}
