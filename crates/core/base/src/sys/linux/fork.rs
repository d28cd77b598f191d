//! Whether a process is still the one that it was.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::MmapMut;
use nix::sys::mman::{MmapAdvise, madvise};

use crate::sys::posix::page_bytes;

/// Tells the process that made it from its children, by a load of a word: the kernel gives a child a page of zeros in its
/// place.
#[derive(Debug)]
pub struct ForkMark {
    page: MmapMut,
}

impl ForkMark {
    /// A mark of this process. Errors: the kernel has none (before 4.14).
    pub fn new() -> io::Result<Self> {
        let mut page = MmapMut::map_anon(page_bytes())?;
        let first = NonNull::new(page.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: one page, which is this mapping. In this process nothing changes.
        unsafe { madvise(first.cast(), page.len(), MmapAdvise::MADV_WIPEONFORK) }?;
        let mark = Self { page };
        // Relaxed: whoever shares the mark with another thread orders it.
        mark.word().store(1, Ordering::Relaxed);
        Ok(mark)
    }

    /// True in a child of the process that made the mark.
    #[inline(always)]
    pub fn is_child(&self) -> bool {
        // Relaxed: a child begins with one thread.
        self.word().load(Ordering::Relaxed) == 0
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the mapping begins with a page, and has room for the word, which is used as this atomic alone.
        unsafe { AtomicU32::from_ptr(self.page.as_ptr().cast_mut().cast()) }
    }
}
