//! Values that leave, and the listener who is told of them.
//!
//! An operation copies what it removes into a queue of its own, and tells it when it is over: then no lock is
//! held, nothing is half done, and the listener may use the cache as it likes. What the listener's own calls
//! remove is not told from within the listener, or it would be called on top of itself until the stack ends: it
//! goes to the engine's backlog, and is told when the listener has returned.
//!
//! ```text
//!  operation -> its queue -> told at its end, or at TELL_AT bytes before it goes on
//!                                |
//!                            listener -> its own calls -> backlog -> told at the end of this operation, a few,
//!                                                                    and of later ones
//! ```
//!
//! A listener that stores an item for each it is told of makes as many removals as it hears of. So no operation
//! tells all of the backlog, and the backlog is bounded: what finds no room there is counted as untold.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use nuthatch_sync::mutex::Mutex;
use nuthatch_sync::shim::{AtomicU64, AtomicUsize, Ordering};

use nuthatch_engine::reply::Item;

/// Why a value left the cache. Each leaves once, for one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalCause {
    /// Evicted: its room was needed.
    Size,
    /// Its time was over, and its memory was taken back or went to a new value of the key.
    Expired,
    /// It was removed on request. What is removed with everything else at once is told when its memory is taken back.
    Explicit,
    /// Another value took its place.
    Replaced,
}

impl RemovalCause {
    /// True if the cache removed the value by itself.
    pub fn was_evicted(self) -> bool {
        matches!(self, Self::Size | Self::Expired)
    }
}

/// What is called with a value that has left: the cause, key, metadata, value. One of more than [`COPY_MAX`] bytes
/// comes as an empty slice; `item.value_len` tells its length.
pub type Callback = Arc<dyn Fn(RemovalCause, &[u8], &Item, &[u8]) + Send + Sync>;

/// Told of the values that leave.
///
/// It is called on the thread whose operation removed the value, once the operation has taken effect and before
/// its call returns; of operations that remove more than a mebibyte, also in between. No lock is
/// held (but see below), so it may read, store, remove and flush, in this cache too, through another handle; or
/// panic: the caller of the operation sees the panic.
///
/// What its own calls remove is told later: some of it by the same operation, the rest by later ones of any
/// thread and by maintenance. Up to a mebibyte waits for that. Beyond, which takes a listener that stores about as
/// much as it is told of, values are not told, but counted
/// ([`EngineStats::untold`](nuthatch_engine::stats::EngineStats::untold)).
///
/// Of the paper's design (`Paper`), whose one writer holds its lock throughout, an operation tells only at its
/// end, and not more than 8 MiB.
#[derive(Clone)]
pub struct Listener {
    /// What is called.
    pub callback: Callback,
    /// False: it is told of evicted values alone ([`RemovalCause::was_evicted`]), and no others are copied for it.
    pub hears_all: bool,
}

/// The longest value that is copied on its way out, in bytes.
pub const COPY_MAX: usize = 1 << 20;

/// Bytes of removed items at which an operation tells of them before it goes on.
pub const TELL_AT: usize = 1 << 20;

/// Bytes that the queue of an operation may have, if it cannot tell before its end.
const QUEUE_MAX: usize = 8 << 20;

/// Bytes that the backlog may have.
const BACKLOG_MAX: usize = 1 << 20;

/// Items of the backlog that an operation tells of after its own: more than a listener that stores now and then
/// makes by that, and few enough that no operation takes long for it.
pub const FOLLOW_UP: usize = 16;

/// A copy of an item whose value has left.
pub struct Removed {
    cause: RemovalCause,
    item: Item,
    key_len: usize,
    /// Key, then value.
    data: Vec<u8>,
}

impl Removed {
    /// An item with this key and, if it is told, value.
    pub fn new(cause: RemovalCause, item: Item, key_len: usize, data: Vec<u8>) -> Self {
        Self {
            cause,
            item,
            key_len,
            data,
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.data.capacity()
    }
}

/// Removed items that wait to be told, first come first.
#[derive(Default)]
pub struct Queue {
    waiting: VecDeque<Removed>,
    bytes: usize,
}

impl Queue {
    /// Adds an item, unless that would pass the bound of an operation's queue: false then.
    pub fn push(&mut self, removed: Removed) -> bool {
        self.push_within(removed, QUEUE_MAX)
    }

    fn push_within(&mut self, removed: Removed, most: usize) -> bool {
        let bytes = self.bytes + removed.bytes();
        let fits = bytes <= most;
        if fits {
            self.bytes = bytes;
            self.waiting.push_back(removed);
        }
        fits
    }

    fn pop(&mut self) -> Option<Removed> {
        let removed = self.waiting.pop_front()?;
        self.bytes -= removed.bytes();
        Some(removed)
    }

    /// True if there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True if the operation is to tell before it goes on.
    pub fn is_long(&self) -> bool {
        self.bytes >= TELL_AT
    }
}

/// A listener, and what it is still to be told of.
pub struct Removals {
    listener: Listener,
    backlog: Mutex<Queue>,
    /// Items in the backlog, so that the common case costs one load.
    waiting: AtomicUsize,
    /// Threads on which the listener is being called.
    telling: Mutex<Vec<ThreadId>>,
    untold: AtomicU64,
}

impl Removals {
    /// Nothing has left yet.
    pub fn new(listener: Listener) -> Self {
        Self {
            listener,
            backlog: Mutex::default(),
            waiting: AtomicUsize::new(0),
            telling: Mutex::default(),
            untold: AtomicU64::new(0),
        }
    }

    /// True if the listener is told of values that leave for this cause.
    pub fn wants(&self, cause: RemovalCause) -> bool {
        self.listener.hears_all || cause.was_evicted()
    }

    /// Tells of what an operation of this thread removed, and of up to `follow_up` items of the backlog. No lock is
    /// held. What is left if the listener panics is told later.
    pub fn tell(&self, own: Queue, follow_up: usize) {
        // Relaxed: what is missed now is told next time.
        if own.is_empty() && self.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut own = OwnQueue {
            removals: self,
            queue: own,
        };
        let Some(_telling) = Telling::begin(self) else {
            // The listener is below on this thread's stack.
            return;
        };
        while let Some(removed) = own.queue.pop() {
            self.call(&removed);
        }
        for _ in 0..follow_up {
            let Some(removed) = self.take() else { break };
            self.call(&removed);
        }
    }

    /// Leaves what an operation removed to later ones.
    pub fn defer(&self, mut queue: Queue) {
        if queue.is_empty() {
            return;
        }
        let mut backlog = self.backlog.lock();
        let mut untold = 0;
        while let Some(removed) = queue.pop() {
            untold += u64::from(!backlog.push_within(removed, BACKLOG_MAX));
        }
        self.waiting.store(backlog.waiting.len(), Ordering::Relaxed);
        self.count_untold(untold);
    }

    /// Counts items of which nobody will be told.
    pub fn count_untold(&self, items: u64) {
        // Relaxed: a statistic.
        self.untold.fetch_add(items, Ordering::Relaxed);
    }

    /// Items of which nobody was told, since the start or the last reset.
    pub fn untold(&self) -> u64 {
        self.untold.load(Ordering::Relaxed)
    }

    /// Counts from zero again.
    pub fn reset(&self) {
        self.untold.store(0, Ordering::Relaxed);
    }

    fn take(&self) -> Option<Removed> {
        let mut backlog = self.backlog.lock();
        let removed = backlog.pop();
        self.waiting.store(backlog.waiting.len(), Ordering::Relaxed);
        removed
    }

    fn call(&self, removed: &Removed) {
        let (key, value) = removed.data.split_at(removed.key_len);
        (self.listener.callback)(removed.cause, key, &removed.item, value);
    }
}

/// A queue whose rest goes to the backlog, also if the listener panics.
struct OwnQueue<'a> {
    removals: &'a Removals,
    queue: Queue,
}

impl Drop for OwnQueue<'_> {
    fn drop(&mut self) {
        self.removals.defer(std::mem::take(&mut self.queue));
    }
}

/// This thread calls the listener until this is dropped.
struct Telling<'a>(&'a Removals, ThreadId);

impl<'a> Telling<'a> {
    /// `None` if it does so already.
    fn begin(removals: &'a Removals) -> Option<Self> {
        let me = thread::current().id();
        let mut telling = removals.telling.lock();
        if telling.contains(&me) {
            return None;
        }
        telling.push(me);
        Some(Self(removals, me))
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        let Self(removals, me) = self;
        removals.telling.lock().retain(|other| other != me);
    }
}
