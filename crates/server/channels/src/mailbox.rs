//! A mailbox: the frames that wait for one connection.
//!
//! Invariants:
//! 1. A frame that was put in is taken out, in order, or the connection ends: the mailbox is full, or it is closed. Then it
//!    holds nothing any more, however long others keep it.
//! 2. While frames wait, the worker is called, or has been called and has not taken them: `called` is cleared before the
//!    frames are looked at, and set after a frame is put in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_resp::Version;

use crate::Call;

/// A frame as its client gets it. Those of several connections share it.
pub type Frame = Arc<[u8]>;

/// Bytes of memory that a waiting frame takes beside its own.
const FRAME_OVERHEAD: usize = 32;

/// The limit on what waits in all mailboxes of a server, and on one of them. Relaxed everywhere: numbers that may be
/// wrong by what is being put in at this moment.
#[derive(Debug)]
pub struct Bounds {
    /// Bytes that wait now.
    waiting: AtomicUsize,
    /// The most bytes of one mailbox.
    each_max: AtomicUsize,
}

/// The most bytes of one mailbox, unless a client sets another limit.
pub const EACH_MAX: usize = 8 << 20;

/// All mailboxes together may have so many times the limit of one.
const TOGETHER: usize = 8;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            each_max: AtomicUsize::new(EACH_MAX),
        }
    }
}

impl Bounds {
    /// The most bytes of one mailbox.
    pub fn each_max(&self) -> usize {
        self.each_max.load(Ordering::Relaxed)
    }

    /// Sets the most bytes of one mailbox.
    pub fn set_each_max(&self, bytes: usize) {
        self.each_max.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that wait in all mailboxes.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// Whose mailbox it is.
#[derive(Clone)]
pub struct Owner {
    /// The connection's worker.
    pub worker: Arc<dyn Call>,
    /// Its number at the worker.
    pub connection: usize,
    /// Its number, which no other connection has or had.
    pub serial: u64,
}

/// What waits for a connection.
pub struct Mailbox {
    /// Whose it is.
    pub owner: Owner,
    bounds: Arc<Bounds>,
    queue: Mutex<Queue>,
    /// See invariant 2. Set by an AcqRel swap, cleared with Release.
    called: AtomicBool,
    /// The client speaks RESP3. Relaxed: its own worker changes it, between two requests.
    is_resp3: AtomicBool,
    /// The client has subscribed to channels. Relaxed: the same.
    is_subscribed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// The connection ends, or a frame found no room, so that it will: no more frames.
    closed: bool,
}

impl Queue {
    fn close(&mut self, bounds: &Bounds) {
        let bytes = std::mem::take(&mut self.bytes);
        bounds.waiting.fetch_sub(bytes, Ordering::Relaxed);
        self.frames = VecDeque::new();
        self.closed = true;
    }
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It waits.
    Waits,
    /// It has no room: the worker is to end the connection.
    Overflows,
    /// The connection is ending already.
    Ends,
}

impl Mailbox {
    /// An empty one.
    pub fn new(owner: Owner, bounds: Arc<Bounds>, version: Version) -> Self {
        Self {
            owner,
            bounds,
            queue: Mutex::default(),
            called: AtomicBool::new(false),
            is_resp3: AtomicBool::new(version == Version::Resp3),
            is_subscribed: AtomicBool::new(false),
        }
    }

    /// True if the client has subscribed to channels.
    pub fn is_subscribed(&self) -> bool {
        self.is_subscribed.load(Ordering::Relaxed)
    }

    /// Notes whether the client has subscribed to channels.
    pub fn set_subscribed(&self, is_one: bool) {
        self.is_subscribed.store(is_one, Ordering::Relaxed);
    }

    /// The protocol's version of its client.
    pub fn version(&self) -> Version {
        match self.is_resp3.load(Ordering::Relaxed) {
            true => Version::Resp3,
            false => Version::Resp2,
        }
    }

    /// The client changes the protocol's version.
    pub fn set_version(&self, version: Version) {
        self.is_resp3
            .store(version == Version::Resp3, Ordering::Relaxed);
    }

    /// Puts a frame in, and calls the worker. If there is no room for it, the worker ends the connection.
    pub fn put(&self, frame: &Frame) -> Put {
        let size = frame.len() + FRAME_OVERHEAD;
        let mut queue = self.queue.lock();
        if queue.closed {
            return Put::Ends;
        }
        let each_max = self.bounds.each_max();
        let waiting = self.bounds.waiting() + size;
        if queue.bytes + size > each_max || waiting > each_max.saturating_mul(TOGETHER) {
            queue.close(&self.bounds);
            drop(queue);
            self.owner
                .worker
                .end(self.owner.connection, self.owner.serial);
            return Put::Overflows;
        }
        self.bounds.waiting.fetch_add(size, Ordering::Relaxed);
        queue.bytes += size;
        queue.frames.push_back(Arc::clone(frame));
        drop(queue);
        // AcqRel: pairs with the Release store of `take`, and with the swaps of other threads.
        if !self.called.swap(true, Ordering::AcqRel) {
            self.owner.worker.call(self.owner.connection);
        }
        Put::Waits
    }

    /// Moves frames into an output until that has so many bytes. True if no frame is left.
    pub fn take(&self, out: &mut Vec<u8>, out_max: usize) -> bool {
        // Release: pairs with the swap of `put`. What is put in from here on calls again.
        self.called.store(false, Ordering::Release);
        let mut queue = self.queue.lock();
        while out.len() < out_max {
            let Some(frame) = queue.frames.pop_front() else {
                return true;
            };
            let size = frame.len() + FRAME_OVERHEAD;
            queue.bytes -= size;
            self.bounds.waiting.fetch_sub(size, Ordering::Relaxed);
            out.extend_from_slice(&frame);
        }
        queue.frames.is_empty()
    }

    /// The connection ends: nothing waits any more.
    pub fn close(&self) {
        self.queue.lock().close(&self.bounds);
    }

    /// Bytes of memory of what waits.
    pub fn memory(&self) -> usize {
        self.queue.lock().bytes
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Records the calls.
    #[derive(Default)]
    pub(crate) struct Calls(Mutex<Vec<usize>>, Mutex<Vec<u64>>);

    impl Call for Calls {
        fn call(&self, connection: usize) {
            self.0.lock().push(connection);
        }

        fn end(&self, _: usize, serial: u64) {
            self.1.lock().push(serial);
        }
    }

    impl Calls {
        pub(crate) fn ended(&self) -> Vec<u64> {
            std::mem::take(&mut *self.1.lock())
        }

        pub(crate) fn take(&self) -> Vec<usize> {
            std::mem::take(&mut *self.0.lock())
        }
    }

    pub(crate) fn mailbox(connection: usize, calls: &Arc<Calls>, bounds: &Arc<Bounds>) -> Mailbox {
        let owner = Owner {
            worker: Arc::clone(calls) as Arc<dyn Call>,
            connection,
            serial: connection as u64,
        };
        Mailbox::new(owner, Arc::clone(bounds), Version::Resp2)
    }

    #[test]
    fn frames_come_in_order_and_the_worker_is_called_once() {
        let (calls, bounds) = (Arc::default(), Arc::default());
        let mailbox = mailbox(3, &calls, &bounds);
        for text in [&b"one"[..], b"two", b"three"] {
            assert_eq!(mailbox.put(&text.into()), Put::Waits);
        }
        assert_eq!(calls.take(), [3]);
        let mut out = Vec::new();
        assert!(!mailbox.take(&mut out, 4));
        assert_eq!(out, b"onetwo");
        assert!(mailbox.take(&mut out, 100));
        assert_eq!((out.as_slice(), bounds.waiting()), (&b"onetwothree"[..], 0));
        assert_eq!(mailbox.put(&b"four"[..].into()), Put::Waits);
        assert_eq!(calls.take(), [3]);
        drop(mailbox);
        assert_eq!(bounds.waiting(), 0);
    }

    #[test]
    fn one_that_is_not_emptied_overflows_once() {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        bounds.set_each_max(100);
        let mailbox = mailbox(1, &calls, &bounds);
        let frame: Frame = [b'x'; 40][..].into();
        assert_eq!(mailbox.put(&frame), Put::Waits);
        assert_eq!(mailbox.put(&frame), Put::Overflows);
        assert_eq!(mailbox.put(&frame), Put::Ends);
        assert_eq!(calls.ended(), [1]);
        assert_eq!((mailbox.memory(), bounds.waiting()), (0, 0));
    }

    #[test]
    fn a_closed_one_holds_nothing() {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        let mailbox = mailbox(1, &calls, &bounds);
        let frame: Frame = [b'x'; 40][..].into();
        assert_eq!(mailbox.put(&frame), Put::Waits);
        mailbox.close();
        assert_eq!(Arc::strong_count(&frame), 1);
        assert_eq!(mailbox.put(&frame), Put::Ends);
        assert_eq!((mailbox.memory(), bounds.waiting()), (0, 0));
        assert_eq!(calls.ended(), [0; 0]);
    }

    #[test]
    fn all_together_have_a_limit() {
        let (calls, bounds): (_, Arc<Bounds>) = (Arc::default(), Arc::default());
        bounds.set_each_max(100);
        let frame: Frame = [b'x'; 60][..].into();
        let all: Vec<_> = (0..20).map(|id| mailbox(id, &calls, &bounds)).collect();
        let put = all.iter().map(|mailbox| mailbox.put(&frame));
        let waits = put.filter(|put| *put == Put::Waits).count();
        assert_eq!(waits, TOGETHER * 100 / (60 + FRAME_OVERHEAD));
    }
}
