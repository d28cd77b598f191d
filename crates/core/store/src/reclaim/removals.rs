//! Removals: copies of the values that leave, and the listener that is told of them.
//!
//! An operation copies what it removes into its own queue, and notifies the listener at its end: then the thread holds
//! no lock, nothing is half done, and the listener may use the cache as it likes. Items that the listener's own calls
//! remove are not told from within the listener, or it would be called on top of itself until the stack ends: they go
//! to the engine's backlog, and are told when the listener has returned.
//!
//! ```text
//!  operation -> its queue -> told at its end, or at NOTIFY_AT bytes before it goes on
//!                                |
//!                            listener -> its own calls -> backlog -> told at the end of this operation, a few,
//!                                                                    and of later ones
//! ```
//!
//! A listener that stores an item for each removal that it is told of makes as many removals again. So no operation
//! tells the whole backlog, and the backlog is bounded: an item that finds no room there is counted as untold.
//!
//! A panic of the listener in the middle of an operation is caught, and goes on when the operation has ended: memory
//! that the operation has taken, and that nothing refers to yet, would be lost if it unwound there.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{self, ThreadId};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::shim::{AtomicU64, AtomicUsize, Ordering};

use nuthatch_engine::reply::Item;

/// Why a value left the cache. Each value leaves once, for one of these causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalCause {
    /// Evicted: its room was needed.
    Size,
    /// It had expired, and its memory was taken back or went to a new value of the key.
    Expired,
    /// It was removed on request. Values that a flush removed are told when their memory is taken back.
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

/// The function that is called with a value that has left: the cause, key, metadata, value. A value of more than
/// [`COPY_MAX`] bytes is passed as an empty slice; `item.value_len` is its length.
pub type Callback = Arc<dyn Fn(RemovalCause, &[u8], &Item, &[u8]) + Send + Sync>;

/// A callback for the values that leave the cache.
///
/// It is called on the thread whose operation removed the value, once the operation has taken effect and before its
/// call returns. An operation that removes more than a mebibyte also calls it in between. The thread holds no lock (but
/// see below), so the callback may read, store, remove and flush, in this cache too, through another handle. It may
/// panic: the caller of the operation sees the panic, the first one if there are several, when the operation has ended.
///
/// Values that its own calls remove are told later: some by the same operation, the rest by later ones of any thread
/// and by maintenance. Up to a mebibyte waits for that. Values beyond that bound are not told, but counted
/// ([`EngineStats::untold`](nuthatch_engine::stats::EngineStats::untold)). Only a listener that stores about as much as
/// it is told of gets there.
///
/// In the paper's design (`Paper`), whose one writer holds its lock throughout, an operation tells only at its end, and
/// not more than 8 MiB.
#[derive(Clone)]
pub struct Listener {
    /// The function that is called.
    pub callback: Callback,
    /// False: the callback is only called for evicted values ([`RemovalCause::was_evicted`]), and no others are copied
    /// for it.
    pub hears_all: bool,
}

/// The longest value that is copied on its way out, in bytes.
pub const COPY_MAX: usize = 1 << 20;

/// Bytes of removed items at which an operation tells of them before it goes on.
pub const NOTIFY_AT: usize = 1 << 20;

/// Bytes that the queue of an operation may hold, if it cannot tell before its end.
const QUEUE_MAX: usize = 8 << 20;

/// Bytes that the backlog may hold.
const BACKLOG_MAX: usize = 1 << 20;

/// Items of the backlog that an operation tells after its own: more than a listener that stores now and then adds by
/// that, and few enough that no operation takes long for it.
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
    /// An item with this key and, if it is to be told, its value.
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
    /// The listener's first panic in the middle of the operation. The backlog has none.
    panic: Option<Box<dyn Any + Send>>,
}

impl Queue {
    /// Adds an item. False if the queue of an operation has no room for it.
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
        self.bytes >= NOTIFY_AT
    }
}

/// A listener, and the backlog of removals that it is still to be told of.
pub struct Removals {
    listener: Listener,
    backlog: Mutex<Queue>,
    /// Items in the backlog, so that the common case costs one load.
    waiting: AtomicUsize,
    /// Threads on which the listener is being called.
    notifying: Mutex<Vec<ThreadId>>,
    untold: AtomicU64,
}

impl Removals {
    /// A listener with an empty backlog.
    pub fn new(listener: Listener) -> Self {
        Self {
            listener,
            backlog: Mutex::default(),
            waiting: AtomicUsize::new(0),
            notifying: Mutex::default(),
            untold: AtomicU64::new(0),
        }
    }

    /// True if the listener is to be told of values that leave for this cause.
    pub fn wants(&self, cause: RemovalCause) -> bool {
        self.listener.hears_all || cause.was_evicted()
    }

    /// Notifies the listener in the middle of an operation, which has removed much. The thread holds no lock. A panic
    /// of the listener stays in the queue until the operation has ended.
    #[cold]
    pub fn notify_between(&self, queue: &RefCell<Queue>) {
        let mut own = queue.take();
        let before = own.panic.take();
        // The listener's own state is its own matter. Of ours it has seen what every caller may see.
        let told = catch_unwind(AssertUnwindSafe(|| self.notify(own, 0)));
        queue.borrow_mut().panic = before.or(told.err());
    }

    /// Notifies the listener, at an operation's end, of what the operation removed, and of up to `follow_up` items of
    /// the backlog. The thread holds no lock. If the listener panics, the rest is told later. A panic that it had
    /// before is resumed.
    pub fn notify(&self, mut own: Queue, follow_up: usize) {
        let Some(first) = own.panic.take() else {
            return self.call_with_all(own, follow_up);
        };
        let _later = catch_unwind(AssertUnwindSafe(|| self.call_with_all(own, follow_up)));
        resume_unwind(first);
    }

    fn call_with_all(&self, own: Queue, follow_up: usize) {
        // Relaxed: an item that this load misses is told next time.
        if own.is_empty() && self.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut own = OwnQueue {
            removals: self,
            queue: own,
        };
        let Some(_telling) = Notifying::begin(self) else {
            // The listener already runs below on this thread's stack.
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

    /// Leaves what an operation removed to later operations.
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

    /// Counts items of which the listener will not be told.
    pub fn count_untold(&self, items: u64) {
        // Relaxed: a statistic.
        self.untold.fetch_add(items, Ordering::Relaxed);
    }

    /// Items of which the listener was not told, since the start or the last reset.
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

/// The queue of an operation. What is left in it goes to the backlog, also if the listener panics.
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
struct Notifying<'a>(&'a Removals, ThreadId);

impl<'a> Notifying<'a> {
    /// `None` if this thread calls the listener already.
    fn begin(removals: &'a Removals) -> Option<Self> {
        let me = thread::current().id();
        let mut notifying = removals.notifying.lock();
        if notifying.contains(&me) {
            return None;
        }
        notifying.push(me);
        Some(Self(removals, me))
    }
}

impl Drop for Notifying<'_> {
    fn drop(&mut self) {
        let Self(removals, me) = self;
        removals.notifying.lock().retain(|other| other != me);
    }
}
