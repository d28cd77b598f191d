//! What a log remembers of items that have left, and how large items are.

use std::io;

use nuthatch_base::sync::shim::{AtomicUsize, Ordering};

use super::Log;
use super::depths::Depths;
use super::ghosts::Ghosts;
use crate::eviction::log::mean::MeanSize;
use crate::eviction::log::{Ghost, Queue};
use crate::store::Store;

/// Ghosts for each item that the memory holds.
const GHOSTS: usize = 3;

/// One part in `GHOSTS_SHARE` of the memory is for ghosts, at most.
const GHOSTS_SHARE: usize = 64;

/// What distinguishes a ghost of the main queue: these bits of its fingerprint are inverted.
const OF_MAIN: u64 = 0x2a5;

/// Items met by a cleaning whose sizes are noted together: the mean of few items is unsteady.
const MET_MANY: usize = 8;

/// Items that a cleaning has met.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    items: usize,
    bytes: usize,
}

impl Met {
    /// So many more, of so many bytes.
    pub(super) fn note(&mut self, items: usize, bytes: usize) {
        self.items += items;
        self.bytes += bytes;
    }

    pub(super) fn are_many(&self) -> bool {
        self.items >= MET_MANY
    }

    /// How many, and their bytes. There are none from then on.
    pub(super) fn take(&mut self) -> (usize, usize) {
        let Self { items, bytes } = std::mem::take(self);
        (items, bytes)
    }
}

/// Ghosts, if the policy asks about them; an estimate of what more memory would have given; and the mean size of items.
pub struct History {
    /// Items that left. Those that left the main queue have [`OF_MAIN`] in their hashes.
    pub ghosts: Ghosts,
    /// False: there are no ghosts.
    keeps_ghosts: bool,
    /// What more memory would have given.
    pub depths: Depths,
    /// Items in the memory for which `depths` was made.
    items: AtomicUsize,
    mean: MeanSize,
}

impl History {
    /// Nothing is remembered yet. The memory limit is `limit` bytes, and may be raised to `limit_max`.
    pub fn new(limit: usize, limit_max: usize, keeps_ghosts: bool) -> io::Result<Self> {
        let depths = Depths::new()?;
        depths.note_limit(limit);
        Ok(Self {
            ghosts: Ghosts::reserve(limit_max / GHOSTS_SHARE)?,
            keeps_ghosts,
            depths,
            items: AtomicUsize::new(0),
            mean: MeanSize::default(),
        })
    }

    /// The ghost of an item with this hash, if it is one. It is none from then on.
    pub fn take_ghost(&self, hash: u64) -> Option<Ghost> {
        if !self.keeps_ghosts {
            return None;
        }
        let mut queues = [(Queue::Probation, hash), (Queue::Main, hash ^ OF_MAIN)].into_iter();
        queues.find_map(|(queue, hash)| {
            let age = self.ghosts.take(hash)?;
            Some(Ghost { queue, age })
        })
    }

    /// Starts loading what [`History::add_ghost`] will need for an item with this hash.
    pub fn prefetch(&self, hash: u64) {
        self.ghosts.prefetch(hash);
    }

    /// An item with this hash has left a queue.
    pub fn add_ghost(&self, queue: Queue, hash: u64) {
        if self.keeps_ghosts {
            self.ghosts.insert(match queue {
                Queue::Probation => hash,
                Queue::Main => hash ^ OF_MAIN,
            });
        }
    }

    /// The mean size in bytes of the items in the pages cleaned lately; 0 before the first cleaning.
    pub fn mean_bytes(&self) -> usize {
        self.mean.bytes()
    }

    /// Sets the memory's limit, in bytes. Returns the bytes that ghosts give back for it.
    pub fn note_limit(&self, limit: usize) -> usize {
        self.depths.note_limit(limit);
        let most = self.ghosts.bytes_for(usize::MAX, limit / GHOSTS_SHARE);
        self.ghosts.shrink(most)
    }

    /// Notes that a cleaning met `items` items of `bytes` bytes together.
    pub fn note_sizes(&self, store: &Store<Log>, items: usize, bytes: usize) {
        if items == 0 {
            return;
        }
        self.mean.note(items, bytes);
        let held = self.depths.limit() / self.mean_bytes().max(1);
        if self.keeps_ghosts {
            let share = self.depths.limit() / GHOSTS_SHARE;
            let wanted = self.ghosts.bytes_for(GHOSTS * held, share);
            if wanted >= 2 * self.ghosts.bytes().max(1) {
                self.make_room(store);
            }
        } else if held >= 2 * self.items.load(Ordering::Relaxed).max(1) {
            self.follow(held);
        }
    }

    /// Makes room for the ghosts of all items, within the limit, as soon as twice as many ghosts are wanted as there is
    /// room for: sizes may have shrunk since, or the limit may have been raised. Pages that are cleaned meanwhile are
    /// kept for the ghosts.
    #[cold]
    fn make_room(&self, store: &Store<Log>) {
        let mut pool = store.pool();
        let items = pool.limit() / self.mean_bytes().max(1);
        let bytes = self
            .ghosts
            .bytes_for(GHOSTS * items, pool.limit() / GHOSTS_SHARE);
        let more = bytes.saturating_sub(self.ghosts.bytes());
        // Checked again under the lock: another thread may have done it.
        if more < self.ghosts.bytes().max(1) {
            return;
        }
        if pool.charge(more) {
            self.ghosts.begin(bytes);
            self.follow(items);
        } else {
            pool.earmark(more);
        }
    }

    /// The memory holds about so many items: a sample of those that leave is followed.
    fn follow(&self, items: usize) {
        // Relaxed: a hint.
        self.items.store(items, Ordering::Relaxed);
        self.depths.begin(items);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::eviction::log::LogPolicyKind;
    use crate::memory::sizes::{CHUNK_MIN, PAGE, Sizes};

    fn store() -> Store<Log> {
        let sizes = Sizes::for_log(16 * PAGE, CHUNK_MIN, 1.25);
        let policy = LogPolicyKind::default_kind();
        Store::<Log>::new(16 * PAGE, 16 * PAGE, sizes, policy).unwrap()
    }

    #[test]
    fn there_are_more_ghosts_when_items_are_smaller() {
        let store = store();
        let history = History::new(1 << 20, 1 << 20, true).unwrap();
        let used = store.pool().used();
        history.note_sizes(&store, 1, 20_000);
        let before = history.ghosts.bytes();
        assert!(before < 6000, "{before}");
        (0..200).for_each(|_| history.note_sizes(&store, 10, 1000));
        assert_eq!(history.ghosts.bytes(), (1 << 20) / GHOSTS_SHARE);
        assert_eq!(store.pool().used() - used, history.ghosts.bytes());
        // The ghosts keep their room when items grow again: to shrink it would only give a few bytes back.
        (0..200).for_each(|_| history.note_sizes(&store, 1, 20_000));
        assert_eq!(history.ghosts.bytes(), (1 << 20) / GHOSTS_SHARE);
    }

    #[test]
    fn a_ghost_knows_the_queue_that_it_left() {
        let (store, hash) = (store(), 9 << 56 | 77);
        for keeps_ghosts in [true, false] {
            let history = History::new(1 << 20, 1 << 20, keeps_ghosts).unwrap();
            history.note_sizes(&store, 10, 1000);
            assert_eq!(history.take_ghost(hash), None);
            for queue in [Queue::Probation, Queue::Main] {
                history.add_ghost(queue, hash);
                let ghost = history.take_ghost(hash);
                assert_eq!(
                    ghost.map(|ghost| ghost.queue),
                    keeps_ghosts.then_some(queue)
                );
                assert_eq!(history.take_ghost(hash), None, "it is none any more");
            }
            assert_eq!(history.ghosts.bytes() > 0, keeps_ghosts);
            assert!(history.depths.weight() > 0 && history.depths.follows(0));
        }
    }
}
