//! The walk over a directory tree. Entries that cannot be read are reported and counted, and cause an error at the end.

use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use walkdir::{DirEntry, DirEntryExt, IntoIter, WalkDir};

use nuthatch_program::Failure;

/// Unreadable places that are named one by one.
const NAMED_MAX: u64 = 10;
/// Bytes of the blocks that `st_blocks` counts.
const STAT_BLOCK: u64 = 512;

/// A walk.
pub struct Walk {
    entries: IntoIter,
    unreadable: u64,
    skip_unreadable: bool,
}

/// A name in the tree.
pub struct Visited(DirEntry);

impl Visited {
    /// Directories between it and the root; the root's is 0.
    pub fn depth(&self) -> usize {
        self.0.depth()
    }

    /// Its name, without its directory's.
    pub fn name(&self) -> &[u8] {
        self.0.file_name().as_bytes()
    }

    /// Its inode number.
    pub fn inode(&self) -> u64 {
        self.0.ino()
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// True for a directory.
    pub fn is_directory(&self) -> bool {
        self.0.file_type().is_dir()
    }

    /// True for files and directories, false for entries without blocks of their own.
    pub fn has_blocks(&self) -> bool {
        self.0.file_type().is_file() || self.0.file_type().is_dir()
    }
}

impl Walk {
    /// Begins. Errors: the root is no directory, or cannot be read.
    pub fn begin(root: &Path, skip_unreadable: bool) -> Result<Self, Failure> {
        let failed = |words: String| Failure::run(format!("{}: {words}", root.display()));
        // Read here, so that a wrong root is an error even if unreadable entries below it may be skipped.
        std::fs::read_dir(root).map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            entries: WalkDir::new(root).same_file_system(true).into_iter(),
            unreadable: 0,
            skip_unreadable,
        })
    }

    /// Bytes of a file that are stored somewhere; `None` for an entry that is no file, or cannot be examined.
    pub fn stored_bytes(&mut self, visited: &Visited) -> Option<u64> {
        if !visited.0.file_type().is_file() {
            return None;
        }
        let stored = |about: Metadata| about.len().min(about.blocks() * STAT_BLOCK);
        match visited.0.metadata() {
            Ok(about) => Some(stored(about)),
            Err(error) if is_gone(error.io_error()) => None,
            Err(error) => {
                self.left_out(&error.to_string());
                None
            }
        }
    }

    /// Reports that an entry is left out.
    pub fn left_out(&mut self, words: &str) {
        self.unreadable += 1;
        if self.unreadable <= NAMED_MAX {
            nuthatch_program::output::note(words);
        } else if self.unreadable == NAMED_MAX + 1 {
            nuthatch_program::output::note("and more");
        }
    }

    /// Ends the walk. Errors: something was left out that should not have been.
    pub fn finish(&self) -> Result<(), Failure> {
        match self.unreadable {
            0 => Ok(()),
            _ if self.skip_unreadable => Ok(()),
            count => Err(Failure::run(format!(
                "{count} could not be read; with --skip-unreadable the keys of the others do"
            ))),
        }
    }
}

/// The names, a directory's before those in it.
impl Iterator for Walk {
    type Item = Visited;

    fn next(&mut self) -> Option<Visited> {
        loop {
            match self.entries.next()? {
                Ok(entry) => return Some(Visited(entry)),
                Err(error) if is_gone(error.io_error()) => {}
                Err(error) => self.left_out(&error.to_string()),
            }
        }
    }
}

/// True for a file that was deleted during the walk.
fn is_gone(error: Option<&std::io::Error>) -> bool {
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}
