//! Where processes share no memory: there are no values of these types.

use std::convert::Infallible;
use std::io;

use memmap2::MmapMut;

/// A file in memory that this process made.
#[derive(Debug)]
pub struct SharedFile(Infallible);

impl SharedFile {
    /// An error: this system has none.
    pub fn new(_name: &str) -> io::Result<Self> {
        let words = "this system has no memory that other processes can read and not change";
        Err(io::Error::new(io::ErrorKind::Unsupported, words))
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn add(&self, _bytes: usize, _align: usize) -> io::Result<(u64, MmapMut)> {
        match self.0 {}
    }

    #[cfg(unix)]
    pub(crate) fn for_both(
        name: &str,
        _bytes: usize,
    ) -> io::Result<(std::os::fd::OwnedFd, MmapMut)> {
        Err(Self::new(name).expect_err("there are none"))
    }

    /// A descriptor for another process, to read from.
    #[cfg(unix)]
    pub fn to_read(&self) -> io::Result<std::os::fd::OwnedFd> {
        match self.0 {}
    }

    /// Fixes what it is.
    pub fn seal(&self) -> io::Result<()> {
        match self.0 {}
    }
}

#[cfg(unix)]
pub(crate) fn map_both(_file: &impl std::os::fd::AsFd, _bytes: usize) -> io::Result<MmapMut> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Such a file of another process, mapped for reading.
#[derive(Debug)]
pub struct SharedView(Infallible);

impl SharedView {
    /// Bytes that are mapped.
    pub fn bytes(&self) -> usize {
        match self.0 {}
    }

    pub(crate) fn start(&self) -> *const u8 {
        match self.0 {}
    }
}

/// The system's setting of huge pages for such memory: there is none.
pub fn huge_pages() -> Option<String> {
    None
}

/// The file with that setting.
pub const HUGE_PAGES: &str = "";
