//! What a lookup of typed keys and values allocates: what the value itself does, and nothing else.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use nuthatch::{Lifetime, TypedCache};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's, which counts what each thread takes.
struct Counting;

// SAFETY: each call goes on to the system's allocator as it is. The counter has no destructor and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of a call, once the thread has its session and its buffers.
fn allocations<T>(call: impl Fn() -> T) -> u64 {
    drop(call());
    let before = ALLOCATIONS.get();
    let result = call();
    let after = ALLOCATIONS.get();
    drop(result);
    after - before
}

#[test]
fn a_lookup_allocates_what_its_value_does() {
    let numbers: TypedCache<(String, u32), u64> = TypedCache::new(16 << 20).unwrap();
    let names: TypedCache<String, String> = TypedCache::new(16 << 20).unwrap();
    numbers.insert(("a", 1), 1).unwrap();
    names.insert("a", "Ada").unwrap();
    assert_eq!(allocations(|| numbers.get(("a", 1)).unwrap().unwrap()), 0);
    assert_eq!(allocations(|| numbers.get(("b", 1)).unwrap()), 0);
    assert_eq!(allocations(|| numbers.contains_key(("a", 1)).unwrap()), 0);
    assert_eq!(allocations(|| numbers.insert(("a", 1), 2).unwrap()), 0);
    assert_eq!(allocations(|| names.get("a").unwrap().unwrap()), 1);
    assert_eq!(
        allocations(|| names.get_with("a", str::len).unwrap().unwrap()),
        0
    );
    let found = || {
        names
            .get_or_insert_with("a", Lifetime::Default, || unreachable!())
            .unwrap()
    };
    assert_eq!(allocations(found), 1);
    let batch = || {
        let mut sum = 0;
        let keys = [("a", 1); 32];
        numbers
            .get_many_with(keys, |_, value| sum += value.unwrap().unwrap())
            .unwrap();
        sum
    };
    assert_eq!(allocations(batch), 3);
}
