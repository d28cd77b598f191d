//! The extents of a file on its device, by the ioctl FIEMAP (linux/fiemap.h).
//!
//! The only unsafe code of this crate: one system call on memory that is ours.

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc::Ioctl;

/// Extents requested at a time.
const BATCH: usize = 64;

/// `struct fiemap` without its extents.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved_64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// What the kernel reads and writes: the header, and extents behind it.
#[repr(C)]
struct Request {
    header: Header,
    extents: [RawExtent; BATCH],
}

const _: () = assert!(size_of::<Header>() == 32 && size_of::<RawExtent>() == 56);
const _: () = assert!(std::mem::offset_of!(Request, extents) == 32);

/// FS_IOC_FIEMAP: the size in its number is the header's.
const FIEMAP: Ioctl = nix::request_code_readwrite!(b'f', 11, size_of::<Header>());
nix::ioctl_readwrite_bad!(fiemap, FIEMAP, Request);

/// The last extent of the file.
const LAST: u32 = 0x1;
/// Its place is not known, or not yet decided, or it has none of its own: UNKNOWN, DELALLOC, ENCODED,
/// NOT_ALIGNED, DATA_INLINE, DATA_TAIL.
const NO_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x400;

/// A stretch of a file that lies in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from the device's start.
    pub physical: u64,
    /// Bytes.
    pub length: u64,
}

/// Why there are no extents.
#[derive(Debug)]
pub enum ExtentsError {
    /// The file system does not support it.
    Unsupported,
    /// The system's answer.
    Failed(Errno),
}

/// The extents of a file that have a place on the device, in the order of the file.
pub struct Extents<'a> {
    file: &'a File,
    request: Box<Request>,
    next: usize,
    from: u64,
    ended: bool,
}

impl<'a> Extents<'a> {
    /// Those of an open file or directory.
    pub fn of(file: &'a File) -> Self {
        Self {
            file,
            request: Box::new(Request {
                header: Header::default(),
                extents: [RawExtent::default(); BATCH],
            }),
            next: 0,
            from: 0,
            ended: false,
        }
    }

    /// Requests the next batch.
    fn ask(&mut self) -> Result<(), ExtentsError> {
        self.request.header = Header {
            start: self.from,
            length: u64::MAX - self.from,
            extent_count: BATCH as u32,
            ..Header::default()
        };
        // SAFETY: FS_IOC_FIEMAP reads the header, and writes the header and at most `extent_count` extents behind it, all
        // inside the `Request` that the pointer is to and that lives, mutably borrowed, until the call returns.
        let result = unsafe { fiemap(self.file.as_raw_fd(), &raw mut *self.request) };
        self.next = 0;
        result.map(drop).map_err(|error| match error {
            Errno::EOPNOTSUPP | Errno::ENOTTY | Errno::EINVAL => ExtentsError::Unsupported,
            error => ExtentsError::Failed(error),
        })
    }

    /// Extents of the batch.
    fn mapped(&self) -> &[RawExtent] {
        let mapped = (self.request.header.mapped_extents as usize).min(BATCH);
        &self.request.extents[..mapped]
    }
}

impl Iterator for Extents<'_> {
    type Item = Result<Extent, ExtentsError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(&raw) = self.mapped().get(self.next) {
                self.next += 1;
                // Each batch begins behind the last, so the walk over a file ends.
                self.from = raw.logical.saturating_add(raw.length.max(1));
                self.ended |= raw.flags & LAST != 0;
                if raw.flags & NO_PLACE == 0 {
                    let (physical, length) = (raw.physical, raw.length);
                    return Some(Ok(Extent { physical, length }));
                }
                continue;
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.ask() {
                self.ended = true;
                self.request.header.mapped_extents = 0;
                return Some(Err(error));
            }
            if self.mapped().is_empty() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_number_is_linuxs() {
        assert_eq!(FIEMAP, 0xc020_660b);
    }

    /// The extents of a file of several blocks cover its bytes; a file system without support returns that error.
    #[test]
    fn a_file_lies_somewhere() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 300_000]).unwrap();
        file.sync_all().unwrap();
        let extents: Result<Vec<Extent>, _> = Extents::of(&file).collect();
        match extents {
            Ok(extents) => {
                let bytes: u64 = extents.iter().map(|extent| extent.length).sum();
                assert!(bytes >= 300_000, "{extents:?}");
                assert!(extents.iter().all(|extent| extent.physical > 0));
            }
            Err(error) => assert!(matches!(error, ExtentsError::Unsupported), "{error:?}"),
        }
    }
}
