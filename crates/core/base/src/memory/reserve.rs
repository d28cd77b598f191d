//! Memory in reserve, for a machine that gives no more: an allocator ([`Allocator`]) that gives up a piece of address
//! space when the system refuses an allocation, and asks again.
//!
//! Rust ends the process when an allocation fails whose caller cannot do without, and most callers cannot: the libraries,
//! a line of the log, an answer that is being written. So a caller that can, because it answers to somebody who asks for
//! much, says so ([`spare`]) and gets the failure; all others live on the reserve. Whoever caused the want then has to
//! give memory back: [`openings`] tells a program that it should see to that, and [`refill`] takes the reserve back.
//!
//! ```text
//!      a process' limit (RLIMIT_AS, RLIMIT_DATA, the system's overcommit)
//!      |  engine  |  allocator's heaps        | reserve: pieces |
//!      |  engine  |  allocator's heaps -------------->|  pieces |     an opening
//!      |  engine  |  heaps          |         | reserve: pieces |     memory was given back, and a refill
//! ```
//!
//! The reserve is never touched, so it is address space and no memory. A control group that runs out of memory refuses
//! nothing; its kernel kills. Against that there is no reserve.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::MmapMut;

/// Bytes of a piece, which is given up at once.
pub const PIECE: usize = 2 << 20;

/// The pieces. Whoever holds this lock allocates nothing: the allocator takes it.
static RESERVE: Mutex<Reserve> = Mutex::new(Reserve {
    pieces: Vec::new(),
    wanted: 0,
});

/// How many pieces have been given up.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The running thread can do without what it allocates now. Constant and without a destructor, so that reading it
    /// allocates nothing.
    static SPARES: Cell<bool> = const { Cell::new(false) };
}

struct Reserve {
    /// Those that are there. Its capacity is at least `wanted`, so that it never grows under the lock.
    pieces: Vec<MmapMut>,
    wanted: usize,
}

impl Reserve {
    /// True if all pieces are there, or now came back.
    fn refill(&mut self) -> bool {
        while self.pieces.len() < self.wanted {
            match MmapMut::map_anon(PIECE) {
                Ok(piece) => self.pieces.push(piece),
                Err(_) => return false,
            }
        }
        true
    }
}

fn reserve() -> MutexGuard<'static, Reserve> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the reserve has so many bytes, rounded up to pieces. False: the system gives fewer.
pub fn fill(bytes: usize) -> bool {
    let wanted = bytes.div_ceil(PIECE);
    let mut pieces = Vec::with_capacity(wanted);
    let mut reserve = reserve();
    while let Some(piece) = reserve.pieces.pop() {
        // Not more than fit, as nothing may be allocated now.
        if pieces.len() < wanted {
            pieces.push(piece);
        }
    }
    reserve.wanted = wanted;
    let before = std::mem::replace(&mut reserve.pieces, pieces);
    let is_full = reserve.refill();
    drop(reserve);
    drop(before);
    is_full
}

/// Tries to take back what was given up. True if the reserve is whole.
pub fn refill() -> bool {
    reserve().refill()
}

/// How often a piece was given up since the process began.
pub fn openings() -> u64 {
    // Relaxed: a hint for those who have memory to give back.
    OPENINGS.load(Ordering::Relaxed)
}

/// Runs what can do without the memory that it allocates, by `try_reserve` and the like: it gets the system's refusal,
/// and leaves the reserve to those who cannot.
pub fn spare<T>(allocates: impl FnOnce() -> T) -> T {
    /// Undoes it, also when `allocates` panics.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            SPARES.set(self.0);
        }
    }
    let _restore = Restore(SPARES.replace(true));
    allocates()
}

/// The system's allocator, with the reserve behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

// SAFETY: all memory is the system's allocator's, which gets each call with the arguments that it came with. What happens
// between two calls does not unwind: it locks, and unmaps a mapping of which nobody has a reference.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, as in the three functions below.
        insist(layout.size(), || unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        insist(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above. A realloc that failed has left the block as it was.
        insist(size, || unsafe { System.realloc(block, layout, size) })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn insist(size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let block = allocate();
    match block.is_null() {
        true => insist_on_reserve(size, &allocate),
        false => block,
    }
}

/// Gives up pieces until the allocation succeeds. Null if it is longer than all of them, or may fail.
#[cold]
fn insist_on_reserve(size: usize, allocate: &dyn Fn() -> *mut u8) -> *mut u8 {
    if SPARES.get() {
        return ptr::null_mut();
    }
    loop {
        let mut reserve = reserve();
        if size > reserve.pieces.len() * PIECE {
            drop(reserve);
            // Another thread may have opened the last piece for less, meanwhile.
            return allocate();
        }
        let piece = reserve.pieces.pop();
        // Before the lock is released: who waits for it finds the memory.
        drop(piece);
        // Relaxed: as in openings().
        OPENINGS.fetch_add(1, Ordering::Relaxed);
        drop(reserve);
        let block = allocate();
        if !block.is_null() {
            return block;
        }
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_do_without_gets_the_reserve_and_who_can_does_not() {
        assert!(fill(4 * PIECE - 1));
        let before = openings();
        // The system refuses until so many pieces have been given up.
        let refusing = |number: u64| {
            move || match openings() - before < number {
                true => ptr::null_mut(),
                false => ptr::dangling_mut::<u8>(),
            }
        };
        assert!(!insist(100, refusing(0)).is_null());
        assert_eq!(openings(), before, "nothing was refused");
        assert!(spare(|| insist(100, refusing(1))).is_null());
        assert!(insist(4 * PIECE + 1, refusing(1)).is_null(), "hopeless");
        assert_eq!(openings(), before, "neither opens the reserve");
        assert!(!insist(100, refusing(2)).is_null());
        assert_eq!(openings(), before + 2);
        assert_eq!(reserve().pieces.len(), 2);
        assert!(insist(100, refusing(9)).is_null());
        assert_eq!(openings(), before + 4, "all of it");
        assert!(refill());
        assert_eq!(reserve().pieces.len(), 4);
        assert!(fill(PIECE) && reserve().pieces.len() == 1);
        assert!(fill(0) && reserve().pieces.is_empty());
    }

    #[test]
    fn the_allocator_gives_memory_that_can_grow() {
        let layout = Layout::from_size_align(1000, 64).unwrap();
        // SAFETY: the layouts match their blocks, and what is read was written or is zeroed.
        unsafe {
            let block = Allocator.alloc_zeroed(layout);
            assert!(!block.is_null() && *block == 0 && (block as usize).is_multiple_of(64));
            *block = 7;
            let block = Allocator.realloc(block, layout, 1 << 20);
            assert_eq!(*block, 7);
            Allocator.dealloc(block, Layout::from_size_align(1 << 20, 64).unwrap());
            let block = Allocator.alloc(layout);
            assert!(!block.is_null());
            Allocator.dealloc(block, layout);
        }
    }
}
