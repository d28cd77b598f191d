//! Settings for items that outlive the process.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nuthatch_base::file::{check_no_fifo, check_replaceable, open_trusted, try_replace};
use nuthatch_snapshot::{Error, verify_head};

/// The files that keep items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Persistence {
    /// The file of a restart (`-e`).
    pub restart: Option<PathBuf>,
    /// A copy to load at the start (`--load`), which stays.
    pub load: Option<PathBuf>,
    /// A file that gets a copy of all items (`--save`), and how often (`--save-every`).
    pub save: Option<(PathBuf, Duration)>,
}

impl Persistence {
    /// True if a start loads the copy that the previous server saved.
    pub fn loads_what_it_saves(&self) -> bool {
        let save = self.save.as_ref().map(|(path, _)| path);
        self.load.is_some() && self.load.as_ref() == save
    }

    /// The files that are written, by their flags.
    fn written(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let save = self.save.as_ref().map(|(path, _)| path.as_path());
        let both = [("-e", self.restart.as_deref()), ("--save", save)];
        both.into_iter()
            .filter_map(|(flag, path)| Some((flag, path?)))
    }

    /// Checks the paths, and makes nothing. A file to write can be put in its place, and one to read is a file that no
    /// other user has written, or may.
    ///
    /// Errors: they name the flag and the path.
    pub fn check(&self) -> io::Result<()> {
        for (flag, path) in self.written() {
            check_replaceable(path).map_err(|error| named(flag, path, &error))?;
        }
        let read = [("-e", &self.restart, false), ("--load", &self.load, true)];
        for (flag, path, follows_links) in read {
            let Some(path) = path else { continue };
            let checked =
                check_no_fifo(path).and_then(|()| match open_trusted(path, follows_links) {
                    // A start says what that means.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    opened => opened.map(drop),
                });
            checked.map_err(|error| named(flag, path, &error))?;
        }
        Ok(())
    }

    /// Tries in their folders what the end of a server needs, so that a server that could not keep its items fails at
    /// its start. Errors: as with [`check`](Self::check).
    pub fn try_to_write(&self) -> io::Result<()> {
        let mut files = self.written();
        files.try_for_each(|(flag, path)| {
            try_replace(path).map_err(|error| named(flag, path, &error))
        })
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

fn named(flag: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{flag} {}: {error}", path.display()))
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
