//! What the kernel promises of a sealed file in memory, tried on the kernel at hand.
#![cfg(all(
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]

use std::fs::{File, OpenOptions, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapOptions;
use nuthatch_base::memory::shared::{SharedFile, SharedView};
use nuthatch_base::memory::{Mapped, Part, Source};

/// A sealed file with an array of `len` words, and what a reader gets.
fn shared(len: usize) -> (Arc<SharedFile>, Mapped<AtomicU64>, File) {
    let file = Arc::new(SharedFile::new("test").unwrap());
    let source = Source::Shared(Arc::clone(&file));
    let words = Mapped::reserve_to_grow_in(&source, len).unwrap();
    file.seal().unwrap();
    let reader = File::from(file.to_read().unwrap());
    (file, words, reader)
}

/// The same file, opened again to write: what its owner, and root, can always do.
fn reopened(reader: &File) -> File {
    reader
        .set_permissions(Permissions::from_mode(0o600))
        .unwrap();
    let name = format!("/proc/self/fd/{}", reader.as_raw_fd());
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(name)
        .unwrap()
}

#[test]
fn what_the_owner_stores_is_seen_by_readers() {
    let (_, words, reader) = shared(1000);
    let view = SharedView::map(&reader).unwrap();
    let seen = Mapped::<AtomicU64>::view(&view, words.part()).unwrap();
    assert_eq!(seen.len(), 1000);
    for number in 0..1000 {
        words[number].store(number as u64, Ordering::Relaxed);
        assert_eq!(seen[number].load(Ordering::Relaxed), number as u64);
    }
    // Released words are zero, though the memory stays.
    words.release(0..1000);
    assert_eq!(seen[100].load(Ordering::Relaxed), 0);
}

#[test]
fn nobody_maps_a_sealed_file_to_write_or_changes_its_size() {
    let (file, _words, reader) = shared(1 << 16);
    let len = reader.metadata().unwrap().len();
    assert_eq!(len, file.bytes());
    let again = reopened(&reader);
    for file in [&reader, &again] {
        // SAFETY: it fails.
        let mapped = unsafe { MmapOptions::new().map_mut(file) };
        assert!(mapped.is_err());
        assert!(file.write_at(b"x", 0).is_err());
        for len in [0, len - 1, len + 1] {
            assert!(file.set_len(len).is_err());
        }
    }
    // SAFETY: nothing is stored there, and the file keeps its length.
    let read_only = unsafe { MmapOptions::new().map(&again) }.unwrap();
    assert!(read_only.make_mut().is_err(), "and it stays read-only");
    assert_eq!(reader.metadata().unwrap().len(), len);
}

#[test]
fn a_reader_can_fill_the_file_and_no_more() {
    let (file, words, reader) = shared(1 << 20);
    let taken = || reader.metadata().unwrap().blocks() * 512;
    assert!(taken() < file.bytes() / 2);
    let view = SharedView::map(&reader).unwrap();
    let seen = Mapped::<AtomicU64>::view(&view, words.part()).unwrap();
    assert!(seen.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    assert!(taken() >= 8 << 20, "reading takes memory");
    assert!(taken() <= file.bytes());
}

#[test]
fn parts_that_are_not_there_are_no_arrays() {
    let (file, words, reader) = shared(1000);
    let view = SharedView::map(&reader).unwrap();
    let end = file.bytes();
    for (start, len) in [
        (0, end / 8 + 1),
        (8, end / 8),
        (end, 1),
        (4, 1),
        (u64::MAX - 7, 1),
        (0, u64::MAX / 8 + 1),
        (8, u64::MAX),
    ] {
        let part = Part { start, len };
        assert!(Mapped::<AtomicU64>::view(&view, part).is_none(), "{part:?}");
    }
    assert!(Mapped::<AtomicU64>::view(&view, words.part()).is_some());
}

#[test]
fn a_file_that_could_be_cut_is_not_mapped() {
    let file = Arc::new(SharedFile::new("test").unwrap());
    let source = Source::Shared(Arc::clone(&file));
    let _words = Mapped::<AtomicU64>::reserve_to_grow_in(&source, 1000).unwrap();
    assert!(SharedView::map(&file.to_read().unwrap()).is_err());
    assert!(SharedView::map(&File::open("/proc/self/exe").unwrap()).is_err());
    file.seal().unwrap();
    assert!(SharedView::map(&file.to_read().unwrap()).is_ok());
    assert!(Mapped::<AtomicU64>::reserve_to_grow_in(&source, 1000).is_err());
}
