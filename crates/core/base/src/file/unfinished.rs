//! A file that gets its name when it is complete: a reader of that name sees the old file, or all of the new content.
//!
//! The file is written beside the one that it replaces, always under the same name, so that the next process removes
//! what a killed process left.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::file::replace::check_replaceable;
use crate::sys::files::{Identity, check_own, create_new, open_unfollowed, sync_folder};

/// Removes an unfinished file for `path` that a killed process left. True if there was one.
///
/// Errors: another process is writing it; it belongs to another user; it cannot be removed.
pub fn remove_unfinished(path: &Path) -> io::Result<bool> {
    let is_there = fs::symlink_metadata(beside(path)?.0).is_ok();
    if is_there {
        // `begin` replaces it, and the drop removes that.
        drop(Unfinished::begin(path, OWNER_ONLY)?);
    }
    Ok(is_there)
}

/// Checks the name of the file for `path` while it is written: nothing has it, or a file of this user, which a killed
/// process left or another one is writing.
pub(crate) fn check_name(path: &Path) -> io::Result<()> {
    let (name, _) = beside(path)?;
    let checked = match fs::symlink_metadata(&name) {
        Ok(there) => check_own(&there),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    checked.map_err(|error| named(&name, &error))
}

/// What is to be removed may have gone already.
pub(crate) fn gone_is_fine(error: io::Error) -> io::Result<()> {
    match error.kind() {
        ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

fn named(name: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", name.display()))
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The name of the file for `path` while it is written, and its folder.
fn beside(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let Some(file_name) = path.file_name() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a file's name"));
    };
    let folder = folder_of(path);
    let mut name = std::ffi::OsString::from(".");
    name.push(file_name);
    name.push(".unfinished");
    Ok((folder.join(name), folder.to_owned()))
}

/// Permissions of a file that only its owner reads and writes. (On Windows a file has those that its folder hands down.)
pub const OWNER_ONLY: u32 = 0o600;
/// Permissions of any program's files: the process's mask decides who may read.
pub const BY_MASK: u32 = 0o666;

/// A file that is being written. If it is dropped before it is [`finished`](Self::finish), it is removed.
pub struct Unfinished {
    file: File,
    identity: Identity,
    name: PathBuf,
    folder: PathBuf,
    /// It ends with a part of what was to be written as a whole.
    torn: bool,
}

/// How long a writer waits for another one, which may end at any moment.
const PATIENCE: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(5);

impl Unfinished {
    /// Begins a file that will be called `path`, with these permissions. A file of this user that a killed process left
    /// under the name until then is replaced.
    ///
    /// The file is always a new one. Whoever can write into the folder may have prepared a file of that name: it could
    /// be his, or be another name of a file of ours, or he could have opened it already.
    ///
    /// Errors: it cannot be made; another process is writing it; the path, or the name until then, belongs to something
    /// that is no file; the name until then belongs to another user's file.
    pub fn begin(path: &Path, permissions: u32) -> io::Result<Self> {
        let (name, folder) = beside(path)?;
        check_replaceable(path)?;
        let end = Instant::now() + PATIENCE;
        loop {
            let begun = match Self::create(&name, permissions) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    Self::remove_stale(&name).map(|()| None)
                }
                created => created,
            };
            match begun {
                Ok(Some((file, identity))) => {
                    return Ok(Self {
                        file,
                        identity,
                        name,
                        folder,
                        torn: false,
                    });
                }
                // What was in the way has gone.
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < end => {
                    thread::sleep(STEP);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A new file of this name, locked. `None` if it has lost the name meanwhile.
    ///
    /// Only who has locked a file takes its name away. So a file that has its name once it is locked keeps it, until
    /// its writer gives it another one.
    fn create(name: &Path, permissions: u32) -> io::Result<Option<(File, Identity)>> {
        let file = create_new(name, permissions)?;
        lock(&file)?;
        let identity = Identity::of(&file)?;
        Ok(identity.is_at(name)?.then_some((file, identity)))
    }

    /// Removes what a killed process left under this name. Nothing is read from it or written into it.
    ///
    /// Errors: it is no file of this user; another process is writing it; it cannot be removed.
    fn remove_stale(name: &Path) -> io::Result<()> {
        let opened = open_unfollowed(name, OpenOptions::new().write(true));
        let file = match (opened, fs::symlink_metadata(name)) {
            (Ok(file), _) => file,
            // The name tells better why it cannot be opened.
            (Err(_), Ok(there)) if check_own(&there).is_err() => {
                return check_own(&there).map_err(|error| named(name, &error));
            }
            (Err(error), _) => return gone_is_fine(error).map_err(|error| named(name, &error)),
        };
        check_own(&file.metadata()?).map_err(|error| named(name, &error))?;
        lock(&file)?;
        match Identity::of(&file)?.is_at(name)? {
            true => fs::remove_file(name).or_else(gone_is_fine),
            // Another process was quicker.
            false => Ok(()),
        }
    }

    /// Writes all of the bytes, or none: what was written before can be finished, even if the disk is full.
    ///
    /// Errors: the system's.
    pub fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.file.stream_position()?;
        self.file.write_all(bytes).inspect_err(|_| {
            let cut = self.file.set_len(before);
            let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(before)));
            self.torn |= cut.is_err();
        })
    }

    /// Gives the file its name, after all of it is on the disk.
    ///
    /// Errors: the system's; something else has got one of the two names meanwhile, as others can arrange who may write
    /// into the folder; a part of what was to be written as a whole could not be cut off.
    pub fn finish(self, path: &Path) -> io::Result<()> {
        if self.torn {
            return Err(io::Error::other("its end is torn"));
        }
        self.file.sync_all()?;
        check_replaceable(path)?;
        let is_ours = |name: &Path| match self.identity.is_at(name)? {
            true => Ok(()),
            false => Err(io::Error::new(
                ErrorKind::ResourceBusy,
                format!(
                    "{}: another process has put something else there",
                    name.display()
                ),
            )),
        };
        is_ours(&self.name)?;
        fs::rename(&self.name, path)?;
        is_ours(path)?;
        // The name is on the disk once its folder is.
        sync_folder(&self.folder)
    }
}

/// Errors: another process has locked it.
fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            io::Error::new(ErrorKind::ResourceBusy, "another process is writing it")
        }
        TryLockError::Error(error) => error,
    })
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
        if self.identity.is_at(&self.name).unwrap_or(false) {
            let _ = fs::remove_file(&self.name);
        }
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

    #[test]
    fn what_took_one_of_the_names_meanwhile_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let file = Unfinished::begin(&at("file"), OWNER_ONLY).unwrap();
        fs::rename(at(".file.unfinished"), at("taken")).unwrap();
        fs::write(at(".file.unfinished"), "theirs").unwrap();
        let error = file.finish(&at("file")).unwrap_err().to_string();
        assert!(error.contains("something else"), "{error}");
        assert!(!at("file").exists() && at(".file.unfinished").exists());
    }

    /// Processes that begin at once, and one that is killed now and then: no two of them have the name, and each file
    /// that is finished is whole. (Windows takes a name away only when the last handle of its file is closed. What writers at
    /// once make of that was not tried.)
    #[cfg(not(windows))]
    #[test]
    fn one_process_at_a_time_writes() {
        const ROUNDS: usize = 300;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let writing = std::sync::atomic::AtomicUsize::new(0);
        let seq = std::sync::atomic::Ordering::SeqCst;
        thread::scope(|scope| {
            for number in 0..4_u8 {
                let (path, writing) = (&path, &writing);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let mut file = match Unfinished::begin(path, OWNER_ONLY) {
                            Ok(file) => file,
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}");
                                continue;
                            }
                        };
                        assert_eq!(writing.fetch_add(1, seq), 0);
                        file.write_all(&[number; 9]).unwrap();
                        writing.fetch_sub(1, seq);
                        if round % 7 == 0 {
                            // As if killed: the name stays, and the lock goes.
                            let file = std::mem::ManuallyDrop::new(file);
                            file.file.unlock().unwrap();
                        } else if let Err(error) = file.finish(path) {
                            // The next one was quick, and has replaced it already.
                            assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}");
                        }
                    }
                });
            }
        });
        let last = fs::read(&path).unwrap();
        assert_eq!(last, [last[0]; 9]);
    }
}
