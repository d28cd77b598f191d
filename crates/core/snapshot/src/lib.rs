//! Snapshots: all items of an engine into a file with checksums, and from the file back into an engine.
//!
//! A file is written under another name and gets its name when it is complete and on the disk. So a process that is
//! killed leaves no partial file. A file is verified as a whole before the first item is stored: a file that is
//! damaged, cut off or of a later version is refused with the reason, and none of its items is used.
//!
//! * [`mod@format`] has the format.
//! * [`save()`] writes from an engine. If no thread stores into the engine or maintains it meanwhile, each item is in
//!   the file once. The engine may be in use: then the file does not show a single moment, and an item that the engine
//!   moves to make room may be in it twice. An item may be missed if the engine moves items faster than the file is
//!   written (see [`Handle::visit`](nuthatch_engine::Handle::visit)).
//! * [`load()`] reads into an engine. Items that have expired since are left out.
//! * [`write()`] and [`receive()`] do the same over a stream, from one process to another.
//!
//! Each of them calls `progress` for every block, which has a megabyte or one item, so that the caller can see that the
//! work goes on. When items are read, its result tells whether to go on.
//!
//! Items keep their flags, their cas and what is left of their lives, less the time from one process to the other,
//! whatever the wall clock does meanwhile ([`Written`]); a flush that is still to come removes them as it would have.
//! Items that are marked stale are left out: the format has no such mark, and without it they would be taken for fresh.
//! So are empty items that a reader has won (`mg N`): without that mark they would be hits on an empty value.
//! The numbers of later stores are above all that were given out before.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

mod error;
pub mod format;
mod load;
mod numbers;
mod save;
mod written;

pub use error::Error;
pub use load::{load, load_file, load_last, receive, verify, verify_head};
pub use save::{Circumstances, save, write};
pub use written::Written;

/// Called for each block that is read. Its result tells whether to go on.
pub type Progress<'p> = dyn FnMut() -> ControlFlow<()> + 'p;

/// The summary of a save or a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Items in the file, or loaded from it.
    pub items: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Items left out.
    pub left_out: LeftOut,
    /// Items that the engine evicted during the load, for want of memory: most of them are loaded items.
    pub evicted: u64,
    /// After a load: the databases with items, a bit each.
    pub databases: u32,
    /// After a load: the time from now to a flush of all items that is still to come, if there is one.
    pub flush: Option<Duration>,
}

/// Items left out, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Marked stale, or empty and won by a reader who has not stored a value yet.
    pub stale: u64,
    /// Expired since.
    pub expired: u64,
    /// The engine had an item with their key already.
    pub there: u64,
    /// Larger than the limit of an item.
    pub too_large: u64,
    /// The engine found no memory for them.
    pub no_memory: u64,
}

impl LeftOut {
    /// The sum of all.
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
            (self.stale, "stale or not yet filled"),
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
