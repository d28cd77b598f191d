//! Counts the bytes that a thread has allocated, so that a target can tell how much an input makes it hold.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Bytes that are held, less those that another thread allocated.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The most that were held.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn change(by: isize) {
    let held = HELD.get() + by;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: every call goes to the system's allocator as it is, and the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        change(-(layout.size() as isize));
        // SAFETY: the caller's.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        change(size as isize - layout.size() as isize);
        // SAFETY: the caller's.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Carries out `call`, which must not hold more than so many bytes at any moment, and must give all of them back.
pub fn at_most(most: usize, call: impl FnOnce()) {
    let before = HELD.get();
    PEAK.set(before);
    call();
    let (peak, left) = (PEAK.get() - before, HELD.get() - before);
    assert!(peak <= most as isize, "it held {peak} bytes");
    assert!(left <= LEFT_MAX, "{left} bytes were not given back");
}

/// What a first call may keep for all later ones: tables, and memory of a thread.
const LEFT_MAX: isize = 64 << 10;
