//! Mapped memory: zeroed arrays that are reserved at once and backed with memory on first touch, on huge pages where an
//! array fills them.

use std::io;
use std::ops::{Deref, DerefMut, Range};

pub mod group;
pub mod reserve;

use crate::sync::shim::{AtomicU64, Ordering};
pub use crate::sys::program;

/// A type whose zeroed bytes are its [`Default`].
///
/// # Safety
/// All-zero bytes are a valid value, and dropping one does nothing.
pub unsafe trait Zeroed: Default + 'static {}

// SAFETY: an atomic integer; 0 is one of its values.
unsafe impl Zeroed for AtomicU64 {}

// SAFETY: an integer; 0 is one of its values.
unsafe impl Zeroed for u8 {}

/// A zeroed array that is never moved. Untouched values only cost address space.
pub struct Mapped<T> {
    storage: storage::Storage<T>,
}

impl<T: Zeroed> Mapped<T> {
    /// `len` zeroed values. The first lies at the start of a page of the system, or of a huge page if they fill one.
    /// Errors: the address space is too small.
    pub fn reserve(len: usize) -> io::Result<Self> {
        Ok(Self {
            storage: storage::Storage::reserve(len)?,
        })
    }

    /// The same, for an array whose used part is not known yet. It lies on the system's own pages, except for the part
    /// that [`Mapped::expect`] announces: a huge page that is used in part takes memory for all of it.
    pub fn reserve_to_grow(len: usize) -> io::Result<Self> {
        Ok(Self {
            storage: storage::Storage::reserve_to_grow(len)?,
        })
    }

    /// The first `len` values are going to be used: from now on they may lie on huge pages, where they fill them.
    ///
    /// # Panics
    ///
    /// If the array has fewer values.
    pub fn expect(&self, len: usize) {
        self.storage.expect(len);
    }

    /// Asks the system to back these values with memory now, so that the thread that stores there first need not wait
    /// for it. Changes no content; has no effect where the system cannot do it. (Linux 5.14)
    pub fn populate(&self, range: Range<usize>) {
        self.storage.populate(range);
    }
}

impl Mapped<AtomicU64> {
    /// Gives the memory of these words back to the system, as far as that takes any. Only whole pages of the system inside
    /// the range are given back, and read as zero from then on; all other words keep their content. For other threads
    /// this is a store of zero.
    pub fn release(&self, words: Range<usize>) {
        self.storage.release(words, |words| {
            for word in &self[words] {
                // Relaxed: nobody waits for it.
                word.store(0, Ordering::Relaxed);
            }
        });
    }
}

impl<T: Zeroed> Deref for Mapped<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.storage.values()
    }
}

impl<T: Zeroed> DerefMut for Mapped<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        self.storage.values_mut()
    }
}

#[cfg(not(any(loom, miri)))]
mod storage {
    use std::io;
    use std::ops::Range;
    use std::ptr::NonNull;

    use memmap2::{MmapMut, MmapOptions};

    use super::{AtomicU64, Zeroed};
    use crate::sys::pages;

    const HUGE_PAGE: usize = 2 << 20;

    pub struct Storage<T> {
        /// Only its range is used: all accesses to its content go through `values`.
        mapping: MmapMut,
        /// Bytes of the mapping before the first value.
        skip: usize,
        values: NonNull<T>,
        len: usize,
    }

    // SAFETY: the mapping is owned by this value alone; its content may go to another thread.
    unsafe impl<T: Send> Send for Storage<T> {}
    // SAFETY: shared access gives out `&T` only.
    unsafe impl<T: Sync> Sync for Storage<T> {}

    impl<T: Zeroed> Storage<T> {
        pub fn reserve(len: usize) -> io::Result<Self> {
            let storage = Self::reserve_to_grow(len)?;
            storage.expect(len);
            Ok(storage)
        }

        pub fn reserve_to_grow(len: usize) -> io::Result<Self> {
            const { assert!(align_of::<T>() <= 4096) };
            let bytes = len
                .checked_mul(size_of::<T>())
                .filter(|&bytes| bytes <= isize::MAX as usize - 2 * HUGE_PAGE)
                .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?
                .max(1);
            // A small array is not worth a huge page: its first touch would take 2 MiB.
            let align = if bytes < HUGE_PAGE { 1 } else { HUGE_PAGE };
            let mapped = bytes.next_multiple_of(align) + (align - 1);
            // Untouched memory is never charged.
            let mut mapping = MmapOptions::new()
                .len(mapped)
                .no_reserve_swap()
                .map_anon()?;
            let start = mapping.as_mut_ptr();
            let skip = start.align_offset(align);
            // SAFETY: `skip` is below `align`, by which the mapping is longer than `bytes`.
            let values = unsafe { start.add(skip) };
            let values = NonNull::new(values.cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
            pages::use_small(&mapping);
            Ok(Self {
                mapping,
                skip,
                values,
                len,
            })
        }

        pub fn expect(&self, len: usize) {
            let bytes = self.bytes(0..len);
            let whole = bytes.len() / HUGE_PAGE * HUGE_PAGE;
            if whole > 0 {
                pages::use_huge(&self.mapping, bytes.start..bytes.start + whole);
            }
        }

        #[inline(always)]
        pub fn values(&self) -> &[T] {
            // SAFETY: `values` points to `len` zeroed values (valid, by `Zeroed`) inside a mapping that lives as
            // long as self; they are aligned, being at the start of a page (`reserve` asserts that no type needs
            // more).
            unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.len) }
        }

        #[inline(always)]
        pub fn values_mut(&mut self) -> &mut [T] {
            // SAFETY: as above, and `&mut self` makes the access exclusive.
            unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
        }

        pub fn populate(&self, range: Range<usize>) {
            pages::populate(&self.mapping, self.bytes(range));
        }

        /// The place of these values in the mapping.
        fn bytes(&self, range: Range<usize>) -> Range<usize> {
            let values = &self.values()[range.clone()];
            let start = self.skip + range.start * size_of::<T>();
            start..start + size_of_val(values)
        }
    }

    impl Storage<AtomicU64> {
        /// Gives whole pages in the range back; `zero` is for words that the system does not make zero.
        pub fn release(&self, words: Range<usize>, zero: impl FnOnce(Range<usize>)) {
            const WORD: usize = size_of::<AtomicU64>();
            let values = &self.values()[words.clone()];
            // The kernel refuses a start inside of a page, but rounds an end inside of a page up. The first value lies at
            // the start of a page.
            let bytes = words.start * WORD..words.start * WORD + size_of_val(values);
            let whole = whole_pages(bytes, pages::page_bytes());
            if whole.is_empty() {
                return;
            }
            let zero = || zero(whole.start / WORD..whole.end / WORD);
            // SAFETY: as in `values`: the pages are inside of the mapping, which is this value's own. The words are
            // atomic.
            unsafe {
                let first = self.values.cast::<u8>().add(whole.start);
                pages::release(first, whole.len(), zero);
            }
        }
    }

    /// The whole pages in a range; an empty one if there are none.
    pub(super) fn whole_pages(range: Range<usize>, page: usize) -> Range<usize> {
        let end = range.end / page * page;
        range.start.next_multiple_of(page).min(end)..end
    }
}

/// Loom's atomics must be made one by one, and Miri does not support madvise. Nothing is given back.
#[cfg(any(loom, miri))]
mod storage {
    use std::io;
    use std::ops::Range;

    use super::Zeroed;

    pub struct Storage<T>(Box<[T]>);

    impl<T: Zeroed> Storage<T> {
        pub fn reserve(len: usize) -> io::Result<Self> {
            Ok(Self((0..len).map(|_| T::default()).collect()))
        }

        pub fn reserve_to_grow(len: usize) -> io::Result<Self> {
            Self::reserve(len)
        }

        pub fn expect(&self, len: usize) {
            assert!(len <= self.0.len());
        }

        #[inline(always)]
        pub fn values(&self) -> &[T] {
            &self.0
        }

        #[inline(always)]
        pub fn values_mut(&mut self) -> &mut [T] {
            &mut self.0
        }

        pub fn populate(&self, _range: Range<usize>) {}

        pub fn release(&self, values: Range<usize>, zero: impl FnOnce(Range<usize>)) {
            zero(values);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    type Words = Mapped<AtomicU64>;

    #[test]
    fn memory_is_zeroed_and_aligned() {
        for len in [0, 1, 1000, 600_000, 1_500_000] {
            let words = Words::reserve(len).unwrap();
            assert_eq!(words.len(), len);
            assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
            let align = if cfg!(miri) { 8 } else { 4096 };
            assert_eq!(words.as_ptr() as usize % align, 0);
        }
    }

    /// A line of the system's account of the mapping in which these words begin.
    #[cfg(all(target_os = "linux", not(any(miri, nuthatch_unix, nuthatch_portable))))]
    fn account(words: &Words, line: &str) -> String {
        let address = words.as_ptr() as usize;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let holds = |head: &str| {
            let range = head.split(' ').next()?.split_once('-')?;
            let [start, end] =
                [range.0, range.1].map(|text| usize::from_str_radix(text, 16).unwrap_or(0));
            (start..end).contains(&address).then_some(())
        };
        let mapping = maps.lines().skip_while(|head| holds(head).is_none());
        let found = mapping.filter_map(|told| told.strip_prefix(line)).next();
        found.expect("the mapping").trim().to_owned()
    }

    #[cfg(all(target_os = "linux", not(any(miri, nuthatch_unix, nuthatch_portable))))]
    #[test]
    fn what_begins_to_be_used_takes_no_huge_page() {
        let words = Words::reserve_to_grow(1 << 20).unwrap();
        words.expect(1 << 17);
        words[0].store(7, Ordering::Relaxed);
        words[1 << 18].store(7, Ordering::Relaxed);
        assert_eq!(account(&words, "AnonHugePages:"), "0 kB");
    }

    #[cfg(not(miri))]
    #[test]
    fn released_words_are_zero() {
        let words = Words::reserve(1 << 20).unwrap();
        words[1000].store(7, Ordering::Relaxed);
        words[700_000].store(9, Ordering::Relaxed);
        words.release(0..1 << 19);
        assert_eq!(words[1000].load(Ordering::Relaxed), 0);
        assert_eq!(words[700_000].load(Ordering::Relaxed), 9);
    }

    #[cfg(not(miri))]
    #[test]
    fn words_beside_released_pages_stay() {
        let page = crate::sys::pages::page_bytes() / size_of::<u64>();
        let words = Words::reserve(4 * page).unwrap();
        for word in words.iter() {
            word.store(7, Ordering::Relaxed);
        }
        for range in [
            0..page / 2,
            page / 2..3 * page / 2,
            page..2 * page + 1,
            3 * page - 1..3 * page,
        ] {
            words.release(range);
        }
        for (at, word) in words.iter().enumerate() {
            let released = at / page == 1;
            assert_eq!(word.load(Ordering::Relaxed) == 0, released, "word {at}");
        }
    }

    #[cfg(not(miri))]
    #[test]
    fn pages_count_only_if_they_are_whole() {
        use storage::whole_pages;
        assert_eq!(whole_pages(4096..8192, 4096), 4096..8192);
        assert_eq!(whole_pages(4095..8193, 4096), 4096..8192);
        // A block of 4 KiB where pages are larger, at any place in a page.
        for block in 0..16 {
            let bytes = 4096 * block..4096 * (block + 1);
            assert!(whole_pages(bytes.clone(), 64 << 10).is_empty(), "{block}");
            assert!(whole_pages(bytes, 16 << 10).is_empty(), "{block}");
        }
        assert_eq!(whole_pages(1..(3 << 16) - 1, 1 << 16), 1 << 16..2 << 16);
    }

    #[test]
    fn impossible_reservations_are_errors() {
        for len in [
            usize::MAX / 4,
            usize::MAX / 16,
            usize::MAX / 8,
            usize::MAX / 8 - (1 << 18),
            usize::MAX,
        ] {
            assert!(Words::reserve(len).is_err(), "{len}");
        }
    }
}
