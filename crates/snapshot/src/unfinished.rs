//! The file that is written before it gets its name: beside the one it replaces, and always of the same name, so that
//! what a killed process leaves is used again by the next save.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Whether a file may appear under this name: there is none, or a regular file, which is replaced then.
///
/// Errors: there is something else. A device or a pipe would be gone, and a file in its place that nobody reads; of a link
/// the name would be replaced, not the file it leads to.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(there) => there.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    match kind {
        _ if kind.is_file() => Ok(()),
        _ if kind.is_symlink() => Err(io::Error::other("a link, not a file: name the file itself")),
        _ => Err(io::Error::other("not a file: it would be replaced by one")),
    }
}

/// Begins a file that would be called `path`, and leaves it: whether it could be written.
pub fn try_begin(path: &Path) -> io::Result<()> {
    Unfinished::of(path).map(|_| ())
}

/// Removes what a process that was killed amid writing left of a file that would be called `path`; true if there was something.
///
/// Errors: another process is writing it; it cannot be removed.
pub fn remove_unfinished(path: &Path) -> io::Result<bool> {
    let is_there = fs::symlink_metadata(beside(path)?.0).is_ok();
    if is_there {
        // It is locked, and removed with the lock.
        drop(Unfinished::of(path)?);
    }
    Ok(is_there)
}

/// The name of a file that would be called `path` while it is written, and its folder.
fn beside(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let Some(file_name) = path.file_name() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a file's name"));
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut name = std::ffi::OsString::from(".");
    name.push(file_name);
    name.push(".unfinished");
    Ok((folder.join(name), folder.to_owned()))
}

/// A file under way. Dropped before it is [`finished`](Self::finish) it is removed.
pub(crate) struct Unfinished {
    file: File,
    name: PathBuf,
    folder: PathBuf,
}

impl Unfinished {
    /// Begins a file that will be called `path`.
    ///
    /// Errors: it cannot be made; another process is writing it; what has that name is no file.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (name, folder) = beside(path)?;
        check_replaceable(path)?;
        loop {
            // What is there may be another process's: it is not cut before it is locked.
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&name)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let words = "another process is writing it";
                    return Err(io::Error::new(ErrorKind::ResourceBusy, words));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Between the two it may have been finished: then this is what has the other name now.
            if is_at(&file, &name)? {
                file.set_len(0)?;
                return Ok(Self { file, name, folder });
            }
        }
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its name, once all of it is on the disk.
    pub(crate) fn finish(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        // Something else may have got the name since it was begun.
        check_replaceable(path)?;
        fs::rename(&self.name, path)?;
        // The name is on the disk when its folder is.
        File::open(&self.folder)?.sync_all()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It is locked until here: nobody else's is removed. A finished one is not there any more.
        if is_at(&self.file, &self.name).unwrap_or(false) {
            let _ = fs::remove_file(&self.name);
        }
    }
}

/// True if a name is this file's.
fn is_at(file: &File, name: &Path) -> io::Result<bool> {
    let file = file.metadata()?;
    match fs::symlink_metadata(name) {
        Ok(named) => Ok((named.dev(), named.ino()) == (file.dev(), file.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
