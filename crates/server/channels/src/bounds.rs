//! The limits on what waits in the mailboxes of a server. Relaxed everywhere: numbers that may be wrong by what is being
//! put in at this moment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use nuthatch_base::sync::mutex::Mutex;

use crate::mailbox::Mailbox;

/// The most bytes of one mailbox, unless a client sets another limit.
pub const EACH_MAX: usize = 8 << 20;

/// All mailboxes together may take this part of the memory of items beside it, but always so many bytes.
const PART_OF_MEMORY: usize = 16;
const TOGETHER_MIN: usize = 1 << 20;

/// The limits, and what waits now.
pub struct Bounds {
    /// Bytes that wait now. A text that waits in several mailboxes counts once.
    waiting: AtomicUsize,
    /// The most bytes of one mailbox.
    each_max: AtomicUsize,
    /// The most bytes of all.
    together_max: AtomicUsize,
    /// All mailboxes, by the numbers of their connections.
    mailboxes: Mutex<HashMap<u64, Weak<Mailbox>>>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            each_max: AtomicUsize::new(EACH_MAX),
            together_max: AtomicUsize::new(TOGETHER_MIN),
            mailboxes: Mutex::default(),
        }
    }
}

impl Bounds {
    /// The most bytes of one mailbox that a client has set. They are never more than those of all.
    pub fn each_max(&self) -> usize {
        self.each_max.load(Ordering::Relaxed)
    }

    /// Sets the most bytes of one mailbox.
    pub fn set_each_max(&self, bytes: usize) {
        self.each_max.store(bytes, Ordering::Relaxed);
    }

    /// Sets the most bytes of all mailboxes to what suits a memory of so many bytes.
    pub fn suit(&self, memory: u64) {
        let part = usize::try_from(memory).unwrap_or(usize::MAX) / PART_OF_MEMORY;
        let together_max = part.max(TOGETHER_MIN);
        self.together_max.store(together_max, Ordering::Relaxed);
    }

    fn together_max(&self) -> usize {
        self.together_max.load(Ordering::Relaxed)
    }

    /// The most bytes of one mailbox now.
    pub(crate) fn one_max(&self) -> usize {
        self.each_max().min(self.together_max())
    }

    pub(crate) fn enter(&self, mailbox: &Arc<Mailbox>) {
        let mut mailboxes = self.mailboxes.lock();
        mailboxes.insert(mailbox.serial, Arc::downgrade(mailbox));
    }

    pub(crate) fn leave(&self, serial: u64) {
        self.mailboxes.lock().remove(&serial);
    }

    /// The mailbox that holds most. `None` if none holds more than its share. The caller holds the lock of no mailbox.
    pub(crate) fn fullest(&self) -> Option<Arc<Mailbox>> {
        let mailboxes = self.mailboxes.lock();
        let all: Vec<_> = mailboxes.values().filter_map(Weak::upgrade).collect();
        // What may be the last one to keep a mailbox ends behind this lock: the mailbox takes it again.
        drop(mailboxes);
        let share = self.together_max() / all.len().max(1);
        let sized = all.into_iter().map(|mailbox| (mailbox.memory(), mailbox));
        let (size, fullest) = sized.max_by_key(|(size, _)| *size)?;
        (size > share).then_some(fullest)
    }

    /// Bytes that wait in all mailboxes.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// True if all mailboxes together have room for this many bytes more.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.waiting().saturating_add(bytes) <= self.together_max()
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }
}
