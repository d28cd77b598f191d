//! Memory as atomic words: reserved at once, touched by need, on huge pages where possible.
//!
//! Everything that optimistic readers look at lives in [`Words`]. Because each access is an atomic
//! one, a reader that is late sees old or new words, never undefined behaviour.

use std::ops::Deref;

use nuthatch_sync::shim::AtomicU64;

/// A zeroed array of atomic words. Words never touched cost no memory.
pub struct Words {
    memory: memory::Memory,
}

impl Words {
    /// Reserves address space for `len` words.
    pub fn reserve(len: usize) -> std::io::Result<Self> {
        Ok(Self {
            memory: memory::Memory::reserve(len)?,
        })
    }

    /// Asks the system to back these words with memory now, so that whoever stores there first need
    /// not wait for it. Changes no content; where the system cannot, nothing happens.
    pub fn populate(&self, start: usize, len: usize) {
        self.memory.populate(start, len);
    }

    /// Gives the memory of these words back to the system. Only whole pages of the system inside the
    /// range are given back, and read as zero from then on; all other words keep what they hold.
    pub fn release(&self, start: usize, len: usize) {
        self.memory.release(start, len);
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        self.memory.words()
    }
}

/// Bytes of a page of this system: 4 KiB on x86-64, and 4, 16 or 64 KiB on aarch64.
#[cfg(not(any(loom, miri)))]
fn page_bytes() -> usize {
    // SAFETY: sysconf reads a number of the system and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

#[cfg(not(any(loom, miri)))]
mod memory {
    use std::io;
    use std::ops::Range;
    use std::ptr::NonNull;

    use nuthatch_sync::shim::AtomicU64;

    /// The words begin at a multiple of this, and so at the start of a page of any size that
    /// [`page_bytes`](super::page_bytes) may tell.
    const HUGE_PAGE: usize = 2 << 20;

    pub struct Memory {
        mapping: NonNull<libc::c_void>,
        mapped: usize,
        words: NonNull<AtomicU64>,
        len: usize,
    }

    // SAFETY: the mapping is owned by this value alone and is only ever accessed through
    // `&[AtomicU64]`, which is Sync.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    impl Memory {
        pub fn reserve(len: usize) -> io::Result<Self> {
            let (bytes, mapped) = sizes(len).ok_or(io::ErrorKind::OutOfMemory)?;
            // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no
            // memory of ours. NORESERVE: what is never touched is never charged.
            let mapping = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    mapped,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if mapping == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let mapping = NonNull::new(mapping).ok_or_else(io::Error::last_os_error)?;
            let skip = mapping.as_ptr().align_offset(HUGE_PAGE);
            // SAFETY: `skip` is under HUGE_PAGE and the mapping is at least that much longer than
            // `bytes`, so start and end of the aligned part lie inside it.
            let words = unsafe { mapping.byte_add(skip) }.cast::<AtomicU64>();
            // Huge pages are worth 1.8x on random reads. Where the kernel refuses, small pages
            // serve as well, only slower: the result is of no consequence. Only for words that fill
            // them: the first touch of a short array would take 2 MiB.
            let whole = bytes / HUGE_PAGE * HUGE_PAGE;
            // SAFETY: the range lies inside our mapping; the advice changes no content.
            unsafe { libc::madvise(words.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
            Ok(Self {
                mapping,
                mapped,
                words,
                len,
            })
        }

        #[inline(always)]
        pub fn words(&self) -> &[AtomicU64] {
            // SAFETY: `words` points to `len` zeroed, aligned words inside a mapping that lives as
            // long as self; AtomicU64 has the layout of u64 and every bit pattern is valid.
            unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len) }
        }

        pub fn populate(&self, start: usize, len: usize) {
            let range = &self.words()[start..start + len];
            // SAFETY: the range is inside our mapping. The kernel faults pages in as if each were
            // written with what it holds: no word changes. (Linux 5.14; before that an error, which
            // is as good as not asking.)
            unsafe {
                libc::madvise(
                    range.as_ptr().cast_mut().cast(),
                    size_of_val(range),
                    libc::MADV_POPULATE_WRITE,
                )
            };
        }

        pub fn release(&self, start: usize, len: usize) {
            // The kernel refuses a start inside of a page, but an end there it takes for the page's.
            let whole = whole_pages(start..start + len, super::page_bytes() / size_of::<u64>());
            let range = &self.words()[whole];
            // SAFETY: the range is inside our mapping. The kernel replaces whole pages by zeros:
            // to concurrent atomic readers that is a store of zero to each word.
            unsafe {
                libc::madvise(
                    range.as_ptr().cast_mut().cast(),
                    size_of_val(range),
                    libc::MADV_DONTNEED,
                )
            };
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: unmaps exactly what `reserve` mapped; no reference outlives self.
            unsafe { libc::munmap(self.mapping.as_ptr(), self.mapped) };
        }
    }

    /// Bytes of so many words, and bytes to map so that they can begin at a huge page. `None` for more than a
    /// slice may have.
    fn sizes(len: usize) -> Option<(usize, usize)> {
        let bytes = len.checked_mul(size_of::<u64>())?;
        let mapped = bytes
            .checked_next_multiple_of(HUGE_PAGE)?
            .checked_add(HUGE_PAGE)?;
        (mapped <= isize::MAX as usize).then_some((bytes, mapped))
    }

    /// The whole pages in a range; an empty one if there are none. Both count in the same unit.
    pub(super) fn whole_pages(range: Range<usize>, page: usize) -> Range<usize> {
        let end = range.end / page * page;
        range.start.next_multiple_of(page).min(end)..end
    }
}

/// Loom's atomics must be made one by one, and Miri does not know madvise.
#[cfg(any(loom, miri))]
mod memory {
    use std::io;

    use nuthatch_sync::shim::{AtomicU64, Ordering};

    pub struct Memory(Box<[AtomicU64]>);

    impl Memory {
        pub fn reserve(len: usize) -> io::Result<Self> {
            Ok(Self((0..len).map(|_| AtomicU64::new(0)).collect()))
        }

        pub fn words(&self) -> &[AtomicU64] {
            &self.0
        }

        pub fn populate(&self, _start: usize, _len: usize) {}

        pub fn release(&self, start: usize, len: usize) {
            for word in &self.0[start..start + len] {
                word.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use nuthatch_sync::shim::Ordering;

    use super::*;

    #[test]
    fn released_words_are_zero() {
        let words = Words::reserve(1 << 20).unwrap();
        words[1000].store(7, Ordering::Relaxed);
        words[700_000].store(9, Ordering::Relaxed);
        words.release(0, 1 << 19);
        assert_eq!(words[1000].load(Ordering::Relaxed), 0);
        assert_eq!(words[700_000].load(Ordering::Relaxed), 9);
    }

    #[cfg(not(miri))]
    #[test]
    fn words_beside_released_pages_stay() {
        let page = page_bytes() / size_of::<u64>();
        let words = Words::reserve(4 * page).unwrap();
        for word in words.iter() {
            word.store(7, Ordering::Relaxed);
        }
        words.release(0, page / 2);
        words.release(page / 2, page);
        words.release(page, page + 1);
        words.release(3 * page - 1, 1);
        for (at, word) in words.iter().enumerate() {
            let released = at / page == 1;
            assert_eq!(word.load(Ordering::Relaxed) == 0, released, "word {at}");
        }
    }

    #[cfg(not(miri))]
    #[test]
    fn pages_count_only_if_they_are_whole() {
        use super::memory::whole_pages;
        assert_eq!(whole_pages(4096..8192, 4096), 4096..8192);
        assert_eq!(whole_pages(4095..8193, 4096), 4096..8192);
        // A block of a partition where pages are larger, wherever in a page it lies.
        for block in 0..16 {
            let bytes = 4096 * block..4096 * (block + 1);
            assert!(whole_pages(bytes.clone(), 64 << 10).is_empty(), "{block}");
            assert!(whole_pages(bytes, 16 << 10).is_empty(), "{block}");
        }
        assert_eq!(whole_pages(1..(3 << 16) - 1, 1 << 16), 1 << 16..2 << 16);
    }

    #[test]
    fn impossible_reservations_are_errors() {
        assert!(Words::reserve(usize::MAX / 4).is_err());
        assert!(Words::reserve(usize::MAX / 16).is_err());
        // Their bytes can be counted, but not rounded up to a page.
        assert!(Words::reserve(usize::MAX / 8).is_err());
        assert!(Words::reserve(usize::MAX / 8 - (1 << 18)).is_err());
        assert!(Words::reserve(usize::MAX).is_err());
    }
}
