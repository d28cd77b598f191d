//! Only Linux tells a process where its program's files are mapped.

/// None.
#[derive(Debug, Default)]
pub struct ProgramFiles;

impl ProgramFiles {
    /// There are none to find.
    pub fn find() -> Self {
        Self
    }

    /// Nothing is unmapped.
    pub fn unmap_read_pages(&self) {}
}
