//! Memory for slots and records: zeroed, aligned to huge pages where there are enough of them, never moved.

use std::ops::{Deref, DerefMut};

/// A type whose zeroed bytes are its [`Default`].
///
/// # Safety
/// All-zero bytes are a valid value, and dropping one does nothing.
pub unsafe trait Zeroed: Default + 'static {}

// SAFETY: atomic integers; 0 is one of their values.
unsafe impl Zeroed for crate::entry::Tag16 {}
// SAFETY: as above.
unsafe impl Zeroed for crate::entry::Tag32 {}
// SAFETY: as above.
unsafe impl Zeroed for crate::entry::Hash64 {}

/// A zeroed array. What is never touched costs no memory.
pub struct Memory<T> {
    storage: storage::Storage<T>,
}

impl<T: Zeroed> Memory<T> {
    /// `len` zeroed values, the first at the start of a cache line.
    pub fn reserve(len: usize) -> std::io::Result<Self> {
        Ok(Self {
            storage: storage::Storage::reserve(len)?,
        })
    }
}

impl<T: Zeroed> Deref for Memory<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.storage.values()
    }
}

impl<T: Zeroed> DerefMut for Memory<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        self.storage.values_mut()
    }
}

#[cfg(not(any(loom, miri)))]
mod storage {
    use std::io;
    use std::ptr::NonNull;

    use super::Zeroed;

    const HUGE_PAGE: usize = 2 << 20;

    pub struct Storage<T> {
        mapping: NonNull<libc::c_void>,
        mapped: usize,
        values: NonNull<T>,
        len: usize,
    }

    // SAFETY: the mapping is owned by this value alone; what it holds may go to another thread.
    unsafe impl<T: Send> Send for Storage<T> {}
    // SAFETY: shared access gives out `&T` only.
    unsafe impl<T: Sync> Sync for Storage<T> {}

    impl<T: Zeroed> Storage<T> {
        pub fn reserve(len: usize) -> io::Result<Self> {
            const { assert!(align_of::<T>() <= 4096) };
            let bytes = len
                .checked_mul(size_of::<T>())
                .filter(|&bytes| bytes <= isize::MAX as usize - 2 * HUGE_PAGE)
                .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?
                .max(1);
            // A small table is not worth a huge page.
            let align = if bytes < HUGE_PAGE { 1 } else { HUGE_PAGE };
            let mapped = bytes.next_multiple_of(align) + (align - 1);
            // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no
            // memory of ours.
            let mapping = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    mapped,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if mapping == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let mapping = NonNull::new(mapping).ok_or_else(io::Error::last_os_error)?;
            let skip = mapping.as_ptr().align_offset(align);
            // SAFETY: `skip` is below `align`, by which the mapping is longer than `bytes`.
            let values = unsafe { mapping.byte_add(skip) }.cast::<T>();
            if align == HUGE_PAGE {
                // Huge pages are worth 1.8x on random reads; where the kernel refuses, small pages
                // serve as well, only slower: the result is of no consequence.
                // SAFETY: the range lies inside our mapping; the advice changes no content.
                unsafe { libc::madvise(values.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
            }
            Ok(Self {
                mapping,
                mapped,
                values,
                len,
            })
        }

        #[inline(always)]
        pub fn values(&self) -> &[T] {
            // SAFETY: `values` points to `len` zeroed values (valid, by `Zeroed`) inside a mapping
            // that lives as long as self; they are aligned, being at the start of a
            // page (`reserve` asserts that no type needs more).
            unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.len) }
        }

        #[inline(always)]
        pub fn values_mut(&mut self) -> &mut [T] {
            // SAFETY: as above, and `&mut self` makes the access exclusive.
            unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
        }
    }

    impl<T> Drop for Storage<T> {
        fn drop(&mut self) {
            // SAFETY: unmaps exactly what `reserve` mapped; no reference outlives self.
            unsafe { libc::munmap(self.mapping.as_ptr(), self.mapped) };
        }
    }
}

/// Loom's atomics must be made one by one, and Miri does not know madvise.
#[cfg(any(loom, miri))]
mod storage {
    use std::io;

    use super::Zeroed;

    pub struct Storage<T>(Box<[T]>);

    impl<T: Zeroed> Storage<T> {
        pub fn reserve(len: usize) -> io::Result<Self> {
            Ok(Self((0..len).map(|_| T::default()).collect()))
        }

        #[inline(always)]
        pub fn values(&self) -> &[T] {
            &self.0
        }

        #[inline(always)]
        pub fn values_mut(&mut self) -> &mut [T] {
            &mut self.0
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::entry::{Content, Hash64, Slot, Tag16};

    #[test]
    fn memory_is_zeroed_and_aligned() {
        for len in [0, 1, 1000, 600_000, 1_500_000] {
            let slots = Memory::<Tag16>::reserve(len).unwrap();
            assert_eq!(slots.len(), len);
            assert!(slots.iter().all(|slot| slot.load() == Content::EMPTY));
            assert_eq!(slots.as_ptr() as usize % if cfg!(miri) { 4 } else { 64 }, 0);
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(Memory::<Hash64>::reserve(usize::MAX / 2).is_err());
        assert!(Memory::<Hash64>::reserve(usize::MAX / 40).is_err());
    }
}
