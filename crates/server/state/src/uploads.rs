//! The account of the engine's memory that is reserved for values which have not arrived completely, one for all
//! workers. A client announces a value by its length and may then be silent for ever, and a reserved item cannot be
//! evicted. So the account has a bound, and the rest of the engine's memory is left to values that are complete.
//!
//! ```text
//!      0 .. 1/2 of the bound     1/2 .. 1                           above the bound
//!      every client has          clients that do not bring          no value is begun
//!      all the time it wants     their values are disconnected
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The bound's part of the engine's memory: one part in this many.
const BOUND_OF_MEMORY: usize = 2;

/// While many bytes are reserved, a client has this long to bring one part in [`PARTS`] of its value.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// See [`PATIENCE`].
pub const PARTS: usize = 8;

/// Bytes reserved for values that have not arrived completely.
pub struct Uploads {
    reserved: AtomicUsize,
    /// The most that may be reserved.
    bound: AtomicUsize,
}

/// The most bytes that may be reserved in an engine with this much memory: at least one largest item.
pub fn bound(engine_memory: u64, item_size_max: usize) -> usize {
    usize::try_from(engine_memory)
        .map_or(usize::MAX, |memory| memory / BOUND_OF_MEMORY)
        .max(item_size_max)
}

impl Uploads {
    /// An account with a bound of `bound` bytes, of which none are reserved yet.
    pub fn new(bound: usize) -> Self {
        Self {
            reserved: AtomicUsize::new(0),
            bound: AtomicUsize::new(bound),
        }
    }

    /// Changes the bound. Values under way stay.
    pub fn set_bound(&self, bound: usize) {
        // Relaxed: a limit on a sum on which no other memory depends.
        self.bound.store(bound, Ordering::Relaxed);
    }

    /// Enters a value of `len` bytes, before the engine reserves its item. `None` if that is above the bound.
    pub fn begin(self: &Arc<Self>, len: usize) -> Option<Begun> {
        let bound = self.bound();
        // Relaxed: a sum on which no other memory depends. As one operation it never exceeds the bound.
        let entered =
            self.reserved
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |reserved| {
                    reserved.checked_add(len).filter(|sum| *sum <= bound)
                });
        let before = entered.ok()?;
        Some(Begun {
            share: Share {
                uploads: Arc::clone(self),
                len,
            },
            turns_many: !is_many(before, bound) && is_many(before + len, bound),
        })
    }

    /// The same for a value that is made from another, of which the engine keeps `pinned` bytes meanwhile. One that is
    /// longer than half of the bound is made alone.
    pub fn begin_beside(self: &Arc<Self>, len: usize, pinned: usize) -> Option<Begun> {
        self.begin(len.max((len + pinned).min(self.bound())))
    }

    /// Bytes reserved now.
    pub fn reserved(&self) -> usize {
        // Relaxed: as in begin().
        self.reserved.load(Ordering::Relaxed)
    }

    /// True if clients that do not bring their values must give the memory back.
    #[inline]
    pub fn are_many(&self) -> bool {
        is_many(self.reserved(), self.bound())
    }

    #[inline]
    fn bound(&self) -> usize {
        // Relaxed: as in set_bound().
        self.bound.load(Ordering::Relaxed)
    }
}

fn is_many(reserved: usize, bound: usize) -> bool {
    reserved > bound / 2
}

/// A value that was entered.
pub struct Begun {
    /// Its bytes.
    pub share: Share,
    /// From this value on, workers have to look for clients that do not bring theirs.
    pub turns_many: bool,
}

/// The bytes of a value under way. Dropping it gives them back to the account, so it lives as long as the reservation.
pub struct Share {
    uploads: Arc<Uploads>,
    len: usize,
}

impl Share {
    /// Bytes of the whole value.
    pub fn bytes(&self) -> usize {
        self.len
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // Relaxed: as in begin(). The share was entered before, so the sum has its bytes.
        self.uploads.reserved.fetch_sub(self.len, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    fn begin(uploads: &Arc<Uploads>, len: usize) -> Option<Share> {
        uploads.begin(len).map(|begun| begun.share)
    }

    #[test]
    fn the_bound_is_half_of_the_memory_and_never_below_an_item() {
        assert_eq!(bound(64 << 20, MB), 32 * MB);
        assert_eq!(bound(32 << 20, 16 * MB), 16 * MB);
        assert_eq!(bound(8 << 20, 6 * MB), 6 * MB);
    }

    #[test]
    fn above_the_bound_no_value_is_begun_and_what_ends_makes_room() {
        let uploads = Arc::new(Uploads::new(4 * MB));
        let mut shares: Vec<Share> = (0..4).map_while(|_| begin(&uploads, MB)).collect();
        assert_eq!((shares.len(), uploads.reserved()), (4, 4 * MB));
        assert!(begin(&uploads, 1).is_none() && begin(&uploads, usize::MAX).is_none());
        assert_eq!(uploads.reserved(), 4 * MB);
        shares.pop();
        let rest = begin(&uploads, MB - 1);
        assert!(rest.is_some() && begin(&uploads, 2).is_none());
        drop((shares, rest));
        assert_eq!(uploads.reserved(), 0);
    }

    #[test]
    fn a_value_that_is_made_from_another_counts_for_both() {
        let uploads = Arc::new(Uploads::new(4 * MB));
        let beside = |len, pinned| uploads.begin_beside(len, pinned).map(|begun| begun.share);
        let one = beside(MB, MB);
        assert_eq!(uploads.reserved(), 2 * MB);
        assert!(beside(2 * MB, MB).is_none(), "not beside the other");
        drop(one);
        let alone = beside(3 * MB, 3 * MB);
        assert_eq!((alone.is_some(), uploads.reserved()), (true, 4 * MB));
        assert!(beside(1, 0).is_none());
        drop(alone);
        assert!(beside(4 * MB + 1, 0).is_none());
    }

    #[test]
    fn they_are_many_above_half_of_the_bound_and_that_is_told_each_time() {
        let uploads = Arc::new(Uploads::new(4 * MB));
        let half = uploads.begin(2 * MB).unwrap();
        assert!(!half.turns_many && !uploads.are_many());
        for _ in 0..2 {
            let more = uploads.begin(1).unwrap();
            assert!(more.turns_many && uploads.are_many());
            assert!(!uploads.begin(1).unwrap().turns_many, "they were already");
            drop(more);
            assert!(!uploads.are_many());
        }
    }

    #[test]
    fn a_lower_bound_leaves_what_is_under_way() {
        let uploads = Arc::new(Uploads::new(4 * MB));
        let share = begin(&uploads, 2 * MB);
        uploads.set_bound(MB);
        assert!(uploads.are_many() && begin(&uploads, 1).is_none());
        drop(share);
        assert!(begin(&uploads, MB).is_some());
    }

    #[test]
    fn threads_together_stay_within_the_bound() {
        let uploads = Arc::new(Uploads::new(100));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let share = begin(&uploads, 40);
                        assert!(uploads.reserved() <= 100);
                        drop(share);
                    }
                });
            }
        });
        assert_eq!(uploads.reserved(), 0);
    }
}
