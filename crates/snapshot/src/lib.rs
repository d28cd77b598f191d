//! All items of an engine in a file with checksums, and back into an engine.
//!
//! A file is written under another name and appears when it is whole and on the disk; so a process that is killed leaves
//! no half file. It is verified as a whole before the first item is stored: what is damaged, cut off or of a later
//! version is refused with the reason, and nothing of it is used.
//!
//! * [`mod@format`] has the bytes.
//! * [`save()`] writes from an engine. If nobody stores or maintains it meanwhile, each item is in the file once. It may be in use: then a
//!   file is of no one moment, and an item that the engine moves to make room may be in it twice or, where it moves them
//!   faster than the file is written, be missed (see [`Handle::visit`](nuthatch_engine::Handle::visit)).
//! * [`load()`] reads into an engine. What has expired since is left out.
//! * [`write()`] and [`receive()`] do the same by a stream: from one process to another.
//!
//! Each of them calls `progress` after every block, which has a megabyte or one item: a caller can see that it goes on,
//! and the answer says whether it shall.
//!
//! Items keep their flags, their cas and the end of their life, as far as a flush that is to come does not end it. Items
//! that are marked stale are left out: a file has no word for the mark, and without it they would be taken for fresh.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

mod error;
pub mod format;
mod load;
mod save;

pub use error::Error;
pub use load::{load, load_file, receive, verify, verify_head};
pub use save::{save, write};

/// Told of each block that is taken, and says whether to go on.
pub type Progress<'p> = dyn FnMut() -> ControlFlow<()> + 'p;

/// What was saved or loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Items in the file, or taken from it.
    pub items: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Items left out.
    pub left_out: LeftOut,
    /// Items that left the engine while others were taken, for want of memory: mostly some of those.
    pub evicted: u64,
    /// Of items that were taken: all of them are to die so long from now, for a flush had been asked for.
    pub flush: Option<Duration>,
}

/// Items left out, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Marked stale.
    pub stale: u64,
    /// Expired since.
    pub expired: u64,
    /// Their key had an item already.
    pub there: u64,
    /// Larger than an item may be.
    pub too_large: u64,
    /// No memory was found for them.
    pub no_memory: u64,
}

impl LeftOut {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self {
            stale,
            expired,
            there,
            too_large,
            no_memory,
        } = self;
        stale + expired + there + too_large + no_memory
    }
}

/// `3 left out (2 expired, 1 without memory)`.
impl fmt::Display for LeftOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} left out", self.total())?;
        let reasons = [
            (self.stale, "stale"),
            (self.expired, "expired"),
            (self.there, "there already"),
            (self.too_large, "larger than an item may be"),
            (self.no_memory, "without memory"),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        for (number, (count, reason)) in reasons.enumerate() {
            let before = if number == 0 { " (" } else { ", " };
            write!(out, "{before}{count} {reason}")?;
        }
        if self.total() > 0 {
            write!(out, ")")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_said_as_far_as_there_are_any() {
        assert_eq!(LeftOut::default().to_string(), "0 left out");
        let some = LeftOut {
            expired: 2,
            no_memory: 1,
            ..LeftOut::default()
        };
        let said = "3 left out (2 expired, 1 without memory)";
        assert_eq!(some.to_string(), said);
    }
}
