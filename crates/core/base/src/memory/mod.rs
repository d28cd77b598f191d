//! Mapped memory: zeroed arrays that are reserved at once and backed with memory on first touch, on huge pages where an
//! array fills them.

use std::io;
use std::ops::{Deref, DerefMut, Range};
#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

mod array;
pub mod group;
pub mod reserve;

use crate::sync::shim::{AtomicU32, AtomicU64, Ordering};
pub use crate::sys::program;
pub use crate::sys::shared;
pub use array::MappedArray;
use shared::{SharedFile, SharedView};

/// A type whose zeroed bytes are its [`Default`].
///
/// # Safety
/// All-zero bytes are a valid value, and dropping one does nothing.
pub unsafe trait Zeroed: Default + 'static {}

/// A type of which another process may store any bytes, while this one loads them.
///
/// # Safety
/// It consists of atomic integers alone, without a gap.
pub unsafe trait AnyBytes: Zeroed {}

// SAFETY: an atomic integer; 0 is one of its values.
unsafe impl Zeroed for AtomicU64 {}

// SAFETY: the same.
unsafe impl Zeroed for AtomicU32 {}

// SAFETY: one atomic integer.
unsafe impl AnyBytes for AtomicU64 {}

// SAFETY: one atomic integer.
unsafe impl AnyBytes for AtomicU32 {}

// SAFETY: an integer; 0 is one of its values.
unsafe impl Zeroed for u8 {}

/// Where the memory of arrays comes from.
#[derive(Clone, Debug, Default)]
pub enum Source {
    /// From the system, for this process alone.
    #[default]
    Private,
    /// From a file in memory, which other processes can read: each array is a part of it.
    Shared(Arc<SharedFile>),
}

/// Where an array lies in a [`SharedFile`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Bytes in front of it.
    pub start: u64,
    /// How many values it has.
    pub len: u64,
}

/// A zeroed array that is never moved. Untouched values only cost address space.
pub struct Mapped<T> {
    storage: storage::Storage<T>,
}

impl<T: Zeroed> Mapped<T> {
    /// `len` zeroed values. The first lies at the start of a page of the system, or of a huge page if they fill one.
    /// Errors: the address space is too small.
    pub fn reserve(len: usize) -> io::Result<Self> {
        let reserved = Self::reserve_to_grow(len)?;
        reserved.expect(len);
        Ok(reserved)
    }

    /// The same, for an array whose used part is not known yet. It lies on the system's own pages, except for the part
    /// that [`Mapped::expect`] announces: a huge page that is used in part takes memory for all of it.
    pub fn reserve_to_grow(len: usize) -> io::Result<Self> {
        Self::reserve_to_grow_in(&Source::Private, len)
    }

    /// The same, with memory from `source`.
    pub fn reserve_to_grow_in(source: &Source, len: usize) -> io::Result<Self> {
        Ok(Self {
            storage: storage::Storage::reserve_to_grow(source, len)?,
        })
    }

    /// An array that another process made, to load from: a store to one of its values ends this process. `None` if the
    /// part is not all mapped, or begins where no value can.
    pub fn view(of: &Arc<SharedView>, part: Part) -> Option<Self>
    where
        T: AnyBytes,
    {
        let storage = storage::Storage::view(of, part)?;
        Some(Self { storage })
    }

    /// An array that another process writes as well, and the descriptor for that process. Errors: the system has no such
    /// memory.
    #[cfg(unix)]
    pub fn for_both(len: usize) -> io::Result<(Self, OwnedFd)>
    where
        T: AnyBytes,
    {
        let (storage, file) = storage::Storage::for_both(len)?;
        Ok((Self { storage }, file))
    }

    /// The same array in the other process. Errors: it is no such descriptor, or the array has another length.
    #[cfg(unix)]
    pub fn of_both(file: &impl AsFd, len: usize) -> io::Result<Self>
    where
        T: AnyBytes,
    {
        let storage = storage::Storage::of_both(file, len)?;
        Ok(Self { storage })
    }

    /// Where it lies in the file of its source; nowhere if that is none.
    pub fn part(&self) -> Part {
        self.storage.part()
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
    /// this is a store of zero. Shared memory stays, and becomes zero.
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

    use super::{Arc, AtomicU64, Part, SharedView, Source, Zeroed};
    #[cfg(unix)]
    use super::{AsFd, OwnedFd, SharedFile, shared};
    use crate::sys::pages;

    const HUGE_PAGE: usize = 2 << 20;

    pub struct Storage<T> {
        /// Only its range is used: all accesses to its content go through `values`.
        mapping: Mapping,
        /// Bytes of the mapping before the first value.
        skip: usize,
        values: NonNull<T>,
        len: usize,
    }

    enum Mapping {
        Private(MmapMut),
        /// A part of a file, which begins at this byte of it.
        Shared(MmapMut, u64),
        /// A part of another process' file.
        View(#[expect(dead_code, reason = "it keeps the mapping")] Arc<SharedView>),
    }

    impl Mapping {
        /// The mapping, if it is this process' own.
        fn own(&self) -> Option<&MmapMut> {
            match self {
                Self::Private(mapping) | Self::Shared(mapping, _) => Some(mapping),
                Self::View(_) => None,
            }
        }
    }

    // SAFETY: the mapping is owned by this value alone; its content may go to another thread.
    unsafe impl<T: Send> Send for Storage<T> {}
    // SAFETY: shared access gives out `&T` only.
    unsafe impl<T: Sync> Sync for Storage<T> {}

    impl<T: Zeroed> Storage<T> {
        pub fn reserve_to_grow(source: &Source, len: usize) -> io::Result<Self> {
            const { assert!(align_of::<T>() <= 4096) };
            let bytes = len
                .checked_mul(size_of::<T>())
                .filter(|&bytes| bytes <= isize::MAX as usize - 2 * HUGE_PAGE)
                .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?
                .max(1);
            // A small array is not worth a huge page: its first touch would take 2 MiB.
            let align = if bytes < HUGE_PAGE { 1 } else { HUGE_PAGE };
            match source {
                Source::Private => Self::private(bytes, align, len),
                Source::Shared(file) => {
                    // In whole pages, so that the next part begins with one. The kernel maps a part that begins with a
                    // huge page of the file at an address that does, if it uses huge pages for files.
                    let bytes = bytes.next_multiple_of(align.max(pages::page_bytes()));
                    let (start, mapping) = file.add(bytes, align.max(pages::page_bytes()))?;
                    Self::new(mapping, 0, len, |mapping| Mapping::Shared(mapping, start))
                }
            }
        }

        fn private(bytes: usize, align: usize, len: usize) -> io::Result<Self> {
            let mapped = bytes.next_multiple_of(align) + (align - 1);
            // Untouched memory is never charged.
            let mapping = MmapOptions::new()
                .len(mapped)
                .no_reserve_swap()
                .map_anon()?;
            // Below `align`, by which the mapping is longer than `bytes`.
            let skip = mapping.as_ptr().align_offset(align);
            Self::new(mapping, skip, len, Mapping::Private)
        }

        /// `len` values that begin `skip` bytes behind the start of a mapping, which has them.
        fn new(
            mut mapping: MmapMut,
            skip: usize,
            len: usize,
            kind: impl FnOnce(MmapMut) -> Mapping,
        ) -> io::Result<Self> {
            // SAFETY: inside of the mapping, as its maker says.
            let values = unsafe { mapping.as_mut_ptr().add(skip) };
            let values = NonNull::new(values.cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
            pages::use_small(&mapping);
            Ok(Self {
                mapping: kind(mapping),
                skip,
                values,
                len,
            })
        }

        pub fn view(of: &Arc<SharedView>, part: Part) -> Option<Self> {
            let (start, len) = (
                usize::try_from(part.start).ok()?,
                usize::try_from(part.len).ok()?,
            );
            let end = len.checked_mul(size_of::<T>())?.checked_add(start)?;
            if end > of.bytes() || !start.is_multiple_of(align_of::<T>()) {
                return None;
            }
            // SAFETY: inside of the mapping, as just asked.
            let values = unsafe { of.start().add(start) }.cast_mut().cast();
            Some(Self {
                mapping: Mapping::View(Arc::clone(of)),
                skip: start,
                values: NonNull::new(values)?,
                len,
            })
        }

        #[cfg(unix)]
        pub fn for_both(len: usize) -> io::Result<(Self, OwnedFd)> {
            let (file, mapping) = SharedFile::for_both("nuthatch", len * size_of::<T>())?;
            let storage = Self::new(mapping, 0, len, |mapping| Mapping::Shared(mapping, 0))?;
            Ok((storage, file))
        }

        #[cfg(unix)]
        pub fn of_both(file: &impl AsFd, len: usize) -> io::Result<Self> {
            let mapping = shared::map_both(file, len * size_of::<T>())?;
            Self::new(mapping, 0, len, |mapping| Mapping::Shared(mapping, 0))
        }

        pub fn part(&self) -> Part {
            match self.mapping {
                Mapping::Shared(_, start) => Part {
                    start,
                    len: self.len as u64,
                },
                _ => Part::default(),
            }
        }

        pub fn expect(&self, len: usize) {
            let bytes = self.bytes(0..len);
            let whole = bytes.len() / HUGE_PAGE * HUGE_PAGE;
            if whole > 0
                && let Some(mapping) = self.mapping.own()
            {
                pages::use_huge(mapping, bytes.start..bytes.start + whole);
            }
        }

        #[inline(always)]
        pub fn values(&self) -> &[T] {
            // SAFETY: `values` points to `len` values inside a mapping that lives as long as self: zeroed (valid, by
            // `Zeroed`), or whatever another process has stored, which is valid (by `AnyBytes`); they are aligned, being at the start of a page (`reserve` asserts that no type needs
            // more).
            unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.len) }
        }

        #[inline(always)]
        pub fn values_mut(&mut self) -> &mut [T] {
            assert!(self.mapping.own().is_some(), "a view is not written");
            // SAFETY: as above, and `&mut self` makes the access exclusive: of the other processes that read a shared
            // mapping, none has it before the arrays are handed out.
            unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
        }

        pub fn populate(&self, range: Range<usize>) {
            if let Some(mapping) = self.mapping.own() {
                pages::populate(mapping, self.bytes(range));
            }
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
            let Mapping::Private(_) = self.mapping else {
                // The system takes no part of a sealed file back.
                return zero();
            };
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

    use super::{Arc, Part, SharedView, Source, Zeroed};
    #[cfg(unix)]
    use super::{AsFd, OwnedFd};

    pub struct Storage<T>(Box<[T]>);

    impl<T: Zeroed> Storage<T> {
        pub fn reserve_to_grow(_source: &Source, len: usize) -> io::Result<Self> {
            Ok(Self((0..len).map(|_| T::default()).collect()))
        }

        pub fn view(_of: &Arc<SharedView>, _part: Part) -> Option<Self> {
            None
        }

        #[cfg(unix)]
        pub fn for_both(_len: usize) -> io::Result<(Self, OwnedFd)> {
            Err(io::ErrorKind::Unsupported.into())
        }

        #[cfg(unix)]
        pub fn of_both(_file: &impl AsFd, _len: usize) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn part(&self) -> Part {
            Part::default()
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
