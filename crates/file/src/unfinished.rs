//! A file that gets its name when it is complete: a reader of that name sees the old file, or all of the new content.
//!
//! The file is written beside the one that it replaces, always under the same name, so that the next process uses a
//! file again that a killed process left.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::check_replaceable;

/// Checks that a file `path` can be written: begins it, and discards it.
pub fn try_begin(path: &Path) -> io::Result<()> {
    Unfinished::begin(path, OWNER_ONLY).map(|_| ())
}

/// Removes an unfinished file for `path` that a killed process left. True if there was one.
///
/// Errors: another process is writing it; it cannot be removed.
pub fn remove_unfinished(path: &Path) -> io::Result<bool> {
    let is_there = fs::symlink_metadata(beside(path)?.0).is_ok();
    if is_there {
        // `begin` locks the file, and the drop removes it under the lock.
        drop(Unfinished::begin(path, OWNER_ONLY)?);
    }
    Ok(is_there)
}

/// The name of the file for `path` while it is written, and its folder.
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

/// A file that is being written. If it is dropped before it is [`finished`](Self::finish), it is removed.
pub struct Unfinished {
    file: File,
    name: PathBuf,
    folder: PathBuf,
}

impl Unfinished {
    /// Begins a file that will be called `path`, with these permissions.
    ///
    /// Errors: it cannot be made; another process is writing it; the path, or the name until then, belongs to something
    /// that is no file.
    pub fn begin(path: &Path, permissions: u32) -> io::Result<Self> {
        let (name, folder) = beside(path)?;
        check_replaceable(path)?;
        loop {
            // An existing file may be another process's, so it is not truncated before it is locked.
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(permissions)
                // Without O_NONBLOCK, the open of a pipe with that name would wait for a reader.
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
            // Between open and lock, another process may have finished the file: then this handle is the file under its
            // final name.
            if is_at(&file, &name)? {
                file.set_len(0)?;
                return Ok(Self { file, name, folder });
            }
        }
    }

    /// Gives the file its name, after all of it is on the disk.
    pub fn finish(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        // Something else may have got the name meanwhile.
        check_replaceable(path)?;
        fs::rename(&self.name, path)?;
        // The name is on the disk once its folder is.
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
        // The file is locked until here, so no other process's file is removed. A finished file does not have this name
        // any more.
        if is_at(&self.file, &self.name).unwrap_or(false) {
            let _ = fs::remove_file(&self.name);
        }
    }
}

/// True if this file has this name.
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

    /// A usual open of a pipe waits for its other end.
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
