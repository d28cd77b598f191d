//! Settings for items that outlive the process, and statistics of the copies.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use nuthatch_file::{check_no_fifo, check_replaceable};
use nuthatch_snapshot::{Error, Summary, verify_head};

use crate::shared::Shared;

/// The files that keep items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeping {
    /// The file of a restart (`-e`).
    pub restart: Option<PathBuf>,
    /// A copy to load at the start (`--load`), which stays.
    pub load: Option<PathBuf>,
    /// A file that gets a copy of all items (`--save`), and how often (`--save-every`).
    pub save: Option<(PathBuf, Duration)>,
}

impl Keeping {
    /// True if a start loads the copy that the previous server saved.
    pub fn loads_what_it_saves(&self) -> bool {
        let save = self.save.as_ref().map(|(path, _)| path);
        self.load.is_some() && self.load.as_ref() == save
    }

    /// Checks the paths of the files to write: each must be a file, or must not exist.
    ///
    /// Errors: a path is something else, which a file would replace; the copy to load is a pipe.
    pub fn check(&self) -> io::Result<()> {
        let save = self.save.as_ref().map(|(path, _)| path);
        for (flag, path) in [("-e", self.restart.as_ref()), ("--save", save)] {
            let Some(path) = path else { continue };
            check_replaceable(path).map_err(|error| {
                io::Error::new(error.kind(), format!("{flag} {}: {error}", path.display()))
            })?;
        }
        if let Some(path) = &self.load {
            check_no_fifo(path).map_err(|error| {
                io::Error::new(error.kind(), format!("--load {}: {error}", path.display()))
            })?;
        }
        Ok(())
    }

    /// Checks the head of the copy to load, unless the file of a restart has items: a start takes those.
    ///
    /// Errors: it is no copy, or does not exist, and is not the file of `--save` either. A start with that file begins
    /// without items, and writes a new one later.
    pub fn check_copy(&self) -> io::Result<()> {
        let Some(path) = &self.load else {
            return Ok(());
        };
        if let Some(newer) = &self.restart
            && verify_head(newer).is_ok()
        {
            return Ok(());
        }
        match verify_head(path) {
            Err(error) if self.loads_what_it_saves() && begins_empty(&error) => Ok(()),
            looked => looked.map_err(|error| io::Error::other(format!("--load: {error}"))),
        }
    }
}

/// True if a start with the file that it saves to begins without items after this error: there is none yet, or it is
/// put aside, because a later start could not read it either.
fn begins_empty(error: &Error) -> bool {
    match error {
        Error::Io(_, error) => error.kind() == io::ErrorKind::NotFound,
        Error::Damaged(..) | Error::NotASnapshot(_) | Error::Version(..) => true,
        _ => false,
    }
}

/// Statistics of copies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saves {
    /// Copies that were written.
    pub done: u64,
    /// Copies that failed.
    pub failed: u64,
    /// True if the last one failed.
    pub last_failed: bool,
    /// When the last successful one was done, in unix time.
    pub last_done: u64,
    /// Items in the last successful one.
    pub last_items: u64,
    /// How long the last one took.
    pub last_took: Duration,
}

impl Saves {
    /// Records the outcome of a copy, and tells watchers.
    pub fn note(&mut self, shared: &Shared, saved: &Result<Summary, Error>, took: Duration) {
        self.last_failed = saved.is_err();
        self.last_took = took;
        let millis = took.as_millis();
        match saved {
            Ok(summary) => {
                self.done += 1;
                self.last_done = shared.clock.wall().unix().as_secs();
                self.last_items = summary.items;
                shared.tell_watchers(format_args!(
                    "type=save state=done items={} bytes={} elapsed_ms={millis}",
                    summary.items, summary.bytes
                ));
            }
            Err(_) => {
                self.failed += 1;
                shared.tell_watchers(format_args!("type=save state=failed elapsed_ms={millis}"));
            }
        }
    }
}
