//! Pins: they keep a large value in place while a reader still sends it.
//!
//! A value over the copy limit is not copied for its reader but held in place. The reader pins it under the lock of its
//! buckets, while it is still in the index. A thread that takes a pinned item out of the index leaves the right to free
//! its memory to the last reader.
//!
//! Shorter values are copied, and never pinned: whoever meets one need not ask for its pins.

use std::collections::HashMap;

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::shim::{AtomicUsize, Ordering};

use super::arena::Address;

/// A value of no more bytes is never pinned: its readers copy it. So who frees, moves or overwrites such an item does not
/// look at the pins, which one lock guards.
pub const UNPINNED_MAX: usize = if cfg!(loom) { 32 } else { 8192 };

/// The pinned items of a store. A `T` is the right to free one item.
pub struct Pins<T> {
    /// How many items are pinned, so that the common case costs one load.
    count: AtomicUsize,
    pinned: Mutex<HashMap<Address, Pin<T>>>,
}

struct Pin<T> {
    readers: usize,
    /// Out of the index: for the last reader.
    orphan: Option<T>,
}

impl<T> Default for Pins<T> {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            pinned: Mutex::default(),
        }
    }
}

impl<T> Pins<T> {
    /// Pins an item. The caller holds the lock of its buckets and found it in the index.
    pub fn pin(&self, address: Address) {
        let mut pinned = self.lock();
        let unread = Pin {
            readers: 0,
            orphan: None,
        };
        pinned.entry(address).or_insert(unread).readers += 1;
        // Relaxed: ordered by the stripe lock that both pinning and unlinking take.
        self.count.store(pinned.len(), Ordering::Relaxed);
    }

    /// Drops one reader's pin. Returns the item if the caller is to free it now. If it was the last pin, `last` is
    /// called, while nobody moves the item yet.
    pub fn unpin(&self, address: Address, last: impl FnOnce()) -> Option<T> {
        let mut pinned = self.lock();
        let pin = pinned.get_mut(&address)?;
        pin.readers -= 1;
        if pin.readers > 0 {
            return None;
        }
        // Under the lock, and before the count: until then `is_pinned` is true for other threads.
        last();
        let orphan = pinned.remove(&address).and_then(|pin| pin.orphan);
        // Release: pairs with the Acquire in `release`. A thread that reads that nothing is pinned writes after all
        // these readers have read; for the readers before this one, the lock orders it.
        self.count.store(pinned.len(), Ordering::Release);
        orphan
    }

    /// The caller has taken the item out of the index. Returns it if it may be freed at once; otherwise its
    /// last reader gets it.
    #[inline]
    pub fn release(&self, address: Address, item: T) -> Option<T> {
        // Acquire: pairs with the Release in `unpin`. A pin of this item was made under the same stripe lock
        // before it left the index, so a 0 comes from an `unpin` of its last reader, or a later one.
        if self.count.load(Ordering::Acquire) == 0 {
            return Some(item);
        }
        match self.lock().get_mut(&address) {
            Some(pin) => {
                pin.orphan = Some(item);
                None
            }
            None => Some(item),
        }
    }

    /// True if a reader has the item pinned. The answer is reliable if the caller holds the lock of the item's buckets.
    pub fn is_pinned(&self, address: Address) -> bool {
        // Acquire: as in `release`. A 0 is true for this item as long as the lock is held.
        self.count.load(Ordering::Acquire) != 0 && self.lock().contains_key(&address)
    }

    /// True if nothing is pinned.
    pub fn is_idle(&self) -> bool {
        // Relaxed: the caller reads nothing but the number.
        self.count.load(Ordering::Relaxed) == 0
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Pin<T>>> {
        self.pinned.lock()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_reader_frees_an_orphan() {
        let pins = Pins::default();
        let address = Address(8);
        assert_eq!(pins.release(address, "first"), Some("first"));
        pins.pin(address);
        pins.pin(address);
        assert!(!pins.is_idle());
        assert_eq!(pins.release(address, "second"), None);
        let last = std::cell::Cell::new(0);
        let unpin = || pins.unpin(address, || last.set(last.get() + 1));
        assert_eq!((unpin(), last.get()), (None, 0));
        assert_eq!((unpin(), last.get()), (Some("second"), 1));
        assert!(pins.is_idle());
        pins.pin(address);
        assert_eq!((unpin(), last.get()), (None, 2));
    }
}
