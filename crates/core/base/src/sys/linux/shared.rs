//! A file in memory whose pages several processes map: one writes, the others only read.
//!
//! What the kernel promises of such a file once it is [sealed](SharedFile::seal), tried by the tests here:
//!
//! * Its size is fixed: nobody can cut it under a reader, or make it longer.
//! * Nobody can map it for writing any more, or write to it, whoever it is. Mappings made before go on.
//! * That includes this process: no part of it can be given back to the system (no hole can be punched).
//! * A page that nobody has touched takes memory once somebody reads it, whoever that is.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Mmap, MmapMut, MmapOptions};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

pub use super::fork::ForkMark;

/// What nobody can do to a sealed file: change its size, map it for writing, take these seals away.
const SEALS: SealFlag = SIZE_SEALS.union(SealFlag::F_SEAL_FUTURE_WRITE);

/// What nobody can do to a file that two processes write: the same but for writing.
const SIZE_SEALS: SealFlag = SealFlag::F_SEAL_SHRINK
    .union(SealFlag::F_SEAL_GROW)
    .union(SealFlag::F_SEAL_SEAL);

/// A file in memory that this process made. It grows part by part, until it is sealed.
#[derive(Debug)]
pub struct SharedFile {
    file: File,
    bytes: AtomicU64,
}

impl SharedFile {
    /// An empty file, which lasts as long as a process has it open or mapped. Errors: the system has no such files, or no
    /// more descriptors.
    pub fn new(name: &str) -> io::Result<Self> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create(name, flags)?);
        // Of another user's processes, who get a descriptor to read from, none can open it again to write.
        file.set_permissions(PermissionsExt::from_mode(0o400))?;
        Ok(Self {
            file,
            bytes: AtomicU64::new(0),
        })
    }

    /// Bytes of the file: the most memory that it can take.
    pub fn bytes(&self) -> u64 {
        // Relaxed: parts are added by the thread that makes them.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds a part of so many bytes, which begins at a multiple of `align`, and maps it. It is zero. Returns where it
    /// begins. Errors: the file is sealed, or the address space is too small.
    pub(crate) fn add(&self, bytes: usize, align: usize) -> io::Result<(u64, MmapMut)> {
        let start = self.bytes().next_multiple_of(align as u64);
        let end = start + bytes as u64;
        self.file.set_len(end)?;
        self.bytes.store(end, Ordering::Relaxed);
        let options = MmapOptions::new()
            .offset(start)
            .len(bytes)
            .no_reserve_swap()
            .clone();
        // SAFETY: only this process can write to the file, since nobody else has it before it is sealed; and it is never
        // cut, by this process before nor by anybody after. Its content is used as atomics and plain zeros: see `Mapped`.
        let mapping = unsafe { options.map_mut(&self.file) }?;
        Ok((start, mapping))
    }

    /// From now on nobody can change its size or map it for writing, this process included.
    pub fn seal(&self) -> io::Result<()> {
        fcntl(&self.file, FcntlArg::F_ADD_SEALS(SEALS))?;
        Ok(())
    }

    /// A descriptor for another process, to read from. Errors: there are no more descriptors, or no `/proc`.
    pub fn to_read(&self) -> io::Result<OwnedFd> {
        let name = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(name)?;
        Ok(opened.into())
    }
}

impl SharedFile {
    /// A file of one part, which is to be written by another process as well: its size alone is fixed.
    pub(crate) fn for_both(name: &str, bytes: usize) -> io::Result<(OwnedFd, MmapMut)> {
        let made = Self::new(name)?;
        let (_, mapping) = made.add(bytes, 1)?;
        fcntl(&made.file, FcntlArg::F_ADD_SEALS(SIZE_SEALS))?;
        Ok((made.file.into(), mapping))
    }
}

/// Maps such a file of another process, to write. Errors: its size is another, or not fixed.
pub(crate) fn map_both(file: &impl AsFd, bytes: usize) -> io::Result<MmapMut> {
    let seals = seals_of(file)?;
    let file = File::from(file.as_fd().try_clone_to_owned()?);
    if !seals.contains(SIZE_SEALS) || file.metadata()?.len() != bytes as u64 {
        return Err(not_shared());
    }
    // SAFETY: the file cannot be cut, and both processes use it as atomics: see `Mapped`.
    unsafe { MmapOptions::new().len(bytes).map_mut(&file) }
}

/// Such a file of another process, mapped for reading.
#[derive(Debug)]
pub struct SharedView {
    mapping: Mmap,
}

impl SharedView {
    /// Maps the file of a descriptor that another process has sent. Errors: it is no such file, or is not sealed: its owner
    /// could cut it, at which whoever reads it dies.
    pub fn map(file: &impl AsFd) -> io::Result<Arc<Self>> {
        if !seals_of(file)?.contains(SEALS) {
            return Err(not_shared());
        }
        // SAFETY: the file cannot be cut, and what its owner writes meanwhile is read by atomic loads only: see `Mapped`.
        let mapping = unsafe { MmapOptions::new().map(file.as_fd().as_raw_fd()) }?;
        Ok(Arc::new(Self { mapping }))
    }

    /// Bytes that are mapped.
    pub fn bytes(&self) -> usize {
        self.mapping.len()
    }

    pub(crate) fn start(&self) -> *const u8 {
        self.mapping.as_ptr()
    }
}

fn seals_of(file: &impl AsFd) -> io::Result<SealFlag> {
    let seals = fcntl(file, FcntlArg::F_GET_SEALS).map_err(|_| not_shared())?;
    Ok(SealFlag::from_bits_truncate(seals))
}

fn not_shared() -> io::Error {
    let words = "not a file of shared memory whose size is fixed";
    io::Error::new(io::ErrorKind::InvalidData, words)
}

/// What the kernel says of huge pages for files in memory: the word in use of those it offers; `None` if it has none.
pub fn huge_pages() -> Option<String> {
    let setting = std::fs::read_to_string(HUGE_PAGES).ok()?;
    let (_, rest) = setting.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// The file with the system's setting of huge pages for files in memory.
pub const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
