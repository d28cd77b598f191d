//! All items of an engine in a file with checksums, and back into an engine.
//!
//! A file is written under another name and appears when it is whole and on the disk; so a process that is killed leaves
//! no half file. It is verified as a whole before the first item is stored: what is damaged, cut off or of a later
//! version is refused with the reason, and nothing of it is used.
//!
//! * [`mod@format`] has the bytes.
//! * [`save()`] writes from an engine, which may be in use meanwhile: an item that is neither changed nor evicted while it runs
//!   is in the file once.
//! * [`load()`] reads into an engine. What has expired since is left out.
//! * [`write()`] and [`receive()`] do the same by a stream: from one process to another.
//!
//! Each of them calls `progress` after every block, which has a megabyte or one item: who waits for it can tell that it
//! goes on.
//!
//! Items keep their flags, their cas and the end of their life. Items that are marked stale are left out: a file has no
//! word for the mark, and without it they would be taken for fresh.

mod error;
pub mod format;
mod load;
mod save;
mod unfinished;

pub use error::Error;
pub use load::{load, load_file, receive, verify};
pub use save::{save, write};

/// What was saved or loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Items in the file, or taken from it.
    pub items: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Items left out: stale, expired since, or without memory for them.
    pub left_out: u64,
}
