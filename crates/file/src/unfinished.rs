//! A file that gets its name when it is whole: a reader of that name sees what was there before, or all of the new content.
//!
//! It is written beside the one it replaces, always under the same name, so that what a killed process leaves is used
//! again by the next one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::check_replaceable;

/// Begins a file that would be called `path`, and leaves it: whether it could be written.
pub fn try_begin(path: &Path) -> io::Result<()> {
    Unfinished::begin(path, OWNER_ONLY).map(|_| ())
}

/// Removes what a process that was killed amid writing left of a file that would be called `path`; true if there was something.
///
/// Errors: another process is writing it; it cannot be removed.
pub fn remove_unfinished(path: &Path) -> io::Result<bool> {
    let is_there = fs::symlink_metadata(beside(path)?.0).is_ok();
    if is_there {
        // It is locked, and removed with the lock.
        drop(Unfinished::begin(path, OWNER_ONLY)?);
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

/// Permissions of a file that only its owner reads and writes.
pub const OWNER_ONLY: u32 = 0o600;
/// Permissions of any program's files: the process's mask decides who may read.
pub const BY_MASK: u32 = 0o666;

/// A file under way. Dropped before it is [`finished`](Self::finish) it is removed.
pub struct Unfinished {
    file: File,
    name: PathBuf,
    folder: PathBuf,
}

impl Unfinished {
    /// Begins a file that will be called `path`, with these permissions.
    ///
    /// Errors: it cannot be made; another process is writing it; what has that name, or the name until then, is no file.
    pub fn begin(path: &Path, permissions: u32) -> io::Result<Self> {
        let (name, folder) = beside(path)?;
        check_replaceable(path)?;
        loop {
            // What is there may be another process's: it is not cut before it is locked.
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(permissions)
                // A pipe of that name would make it wait for a reader.
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(&name)?;
            if !file.metadata()?.is_file() {
                return Err(io::Error::other(format!("{}: not a file", name.display())));
            }
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

    /// Gives it its name, once all of it is on the disk.
    pub fn finish(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        // Something else may have got the name since it was begun.
        check_replaceable(path)?;
        fs::rename(&self.name, path)?;
        // The name is on the disk when its folder is.
        File::open(&self.folder)?.sync_all()
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_until_the_file_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"old and longer").unwrap();
        let mut file = Unfinished::begin(&path, BY_MASK).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old and longer");
        let second = Unfinished::begin(&path, BY_MASK).err().unwrap();
        assert_eq!(second.kind(), ErrorKind::ResourceBusy);
        file.finish(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        drop(Unfinished::begin(&path, BY_MASK).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(!remove_unfinished(&path).unwrap());
    }

    /// Opened as usual, a pipe waits for its other end.
    #[test]
    fn a_pipe_is_neither_waited_for_nor_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for pipe in ["file", ".file.unfinished"] {
            let pipe = folder.path().join(pipe);
            let made = std::process::Command::new("mkfifo").arg(&pipe).status();
            assert!(made.unwrap().success());
            let path = folder.path().join("file");
            assert!(Unfinished::begin(&path, BY_MASK).is_err());
            // With a reader it can be opened.
            let reader = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(&pipe)
                .unwrap();
            assert!(Unfinished::begin(&path, BY_MASK).is_err());
            drop(reader);
            fs::remove_file(&pipe).unwrap();
        }
    }
}
