//! Large values that somebody is still sending.
//!
//! A value over the copy limit is not copied to its reader but held in place. It is pinned under
//! the lock of its buckets, while it is still in the index; whoever takes a pinned item out of the
//! index leaves its memory to the last reader.

use std::collections::HashMap;

use nuthatch_sync::shim::{AtomicUsize, Mutex, Ordering};

use super::arena::Chunk;

/// The pinned items of a store.
#[derive(Default)]
pub struct Pins {
    /// How many items are pinned, so that the usual case costs one load.
    count: AtomicUsize,
    pinned: Mutex<HashMap<Chunk, Pin>>,
}

#[derive(Default)]
struct Pin {
    readers: usize,
    /// Out of the index: the last reader frees it.
    orphan: bool,
}

impl Pins {
    /// Pins an item. The caller holds the lock of its buckets and found it in the index.
    pub fn pin(&self, chunk: Chunk) {
        let mut pinned = self.lock();
        pinned.entry(chunk).or_default().readers += 1;
        // Relaxed: ordered by the stripe lock that both pinning and unlinking take.
        self.count.store(pinned.len(), Ordering::Relaxed);
    }

    /// Drops one reader's pin. True if the caller must free the item now.
    pub fn unpin(&self, chunk: Chunk) -> bool {
        let mut pinned = self.lock();
        let Some(pin) = pinned.get_mut(&chunk) else {
            return false;
        };
        pin.readers -= 1;
        if pin.readers > 0 {
            return false;
        }
        let orphan = pin.orphan;
        pinned.remove(&chunk);
        // Release: pairs with the Acquire in `may_free`. Whoever reads that nothing is pinned writes after
        // all these readers have read; of those before this one, the lock tells.
        self.count.store(pinned.len(), Ordering::Release);
        orphan
    }

    /// The caller has taken the item out of the index. True if it may be freed at once.
    #[inline]
    pub fn may_free(&self, chunk: Chunk) -> bool {
        // Acquire: pairs with the Release in `unpin`. A pin of this item was made under the same stripe lock
        // before it left the index, so a 0 comes from an `unpin` of its last reader, or a later one.
        if self.count.load(Ordering::Acquire) == 0 {
            return true;
        }
        match self.lock().get_mut(&chunk) {
            Some(pin) => {
                pin.orphan = true;
                false
            }
            None => true,
        }
    }

    /// True if nothing is pinned.
    pub fn is_idle(&self) -> bool {
        // Relaxed: the number is all there is to see.
        self.count.load(Ordering::Relaxed) == 0
    }

    fn lock(&self) -> nuthatch_sync::shim::MutexGuard<'_, HashMap<Chunk, Pin>> {
        self.pinned
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_reader_frees_an_orphan() {
        let pins = Pins::default();
        let chunk = Chunk(8);
        assert!(pins.may_free(chunk));
        pins.pin(chunk);
        pins.pin(chunk);
        assert!(!pins.is_idle());
        assert!(!pins.may_free(chunk));
        assert!(!pins.unpin(chunk));
        assert!(pins.unpin(chunk));
        assert!(pins.is_idle());
        pins.pin(chunk);
        assert!(!pins.unpin(chunk));
    }
}
