//! The file with the process id (`-P`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nuthatch_base::file::open_in_place;

use crate::sys::lock;

/// Whoever may send the process a signal may know its id; the user's mask takes rights away.
const MODE: u32 = 0o644;

/// A file with the process id, removed at the end if it still has this one.
///
/// A server that hands over ends while the next one, with the same file, begins. So the file is locked from the look at
/// it to its removal, and while it is written.
pub struct PidFile {
    path: PathBuf,
    /// What it contains once it is written.
    id: String,
    written: bool,
}

impl PidFile {
    /// Creates the file, or checks whether it could be written: it may belong to another process until this one has
    /// taken over from that.
    pub fn reserve(path: &Path) -> Result<Self, String> {
        Self::reserve_for(path, std::process::id())
    }

    fn reserve_for(path: &Path, id: u32) -> Result<Self, String> {
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(MODE);
        open_in_place(path, options).map_err(|error| named(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            id: format!("{id}\n"),
            written: false,
        })
    }

    /// Writes the process id.
    pub fn write(&mut self) -> Result<(), String> {
        self.written = true;
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).mode(MODE);
        let mut write = || {
            let mut file = locked(&self.path, options)?;
            // A device has no length.
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            file.write_all(self.id.as_bytes())
        };
        write().map_err(|error| named(&self.path, &error))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A file that was only created is still empty.
        let own = if self.written { &self.id[..] } else { "" };
        let mut options = OpenOptions::new();
        let Ok(mut file) = locked(&self.path, options.read(true).write(true)) else {
            return;
        };
        let mut text = String::new();
        let is_file = file.metadata().is_ok_and(|file| file.is_file());
        if is_file && file.read_to_string(&mut text).is_ok() && text == own {
            // This user may not remove files of the directory: nothing can be done.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens a file and locks it until it is closed. What comes back still has the path: if it was removed before it was
/// locked, the path is opened once more.
fn locked(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    loop {
        let file = open_in_place(path, options)?;
        lock::wait(&file);
        let here = file.metadata()?;
        if fs::symlink_metadata(path)
            .is_ok_and(|at| (at.dev(), at.ino()) == (here.dev(), here.ino()))
        {
            return Ok(file);
        }
    }
}

fn named(path: &Path, error: &io::Error) -> String {
    format!("-P {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class of bug: what was there was truncated and written to, wherever it led, and removed at the end.
    #[test]
    fn only_a_file_of_ones_own_with_one_name_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "keep").unwrap();
        std::os::unix::fs::symlink(at("victim"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("none"), at("dangling")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for name in ["link", "dangling", "pipe"] {
            assert!(PidFile::reserve(&at(name)).is_err(), "{name}");
        }
        fs::hard_link(at("victim"), at("second name")).unwrap();
        let error = PidFile::reserve(&at("second name")).err().unwrap();
        assert!(error.ends_with("a file with 2 names"), "{error}");
        // They came after the start had looked.
        for name in ["link", "dangling", "second name"] {
            let mut late = PidFile {
                path: at(name),
                id: "1\n".to_owned(),
                written: false,
            };
            assert!(late.write().is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "keep");
        assert!(at("link").is_symlink() && !at("none").exists());
        // Devices are written to, and stay. This one is like /dev/null, and root alone can make it.
        let (kind, mode) = (
            nix::sys::stat::SFlag::S_IFCHR,
            nix::sys::stat::Mode::S_IRWXU,
        );
        let null = nix::sys::stat::makedev(1, 3);
        let made = nix::sys::stat::mknod(&at("null"), kind, mode, null);
        if made.is_ok() && File::open(at("null")).is_ok() {
            drop(PidFile::reserve(&at("null")).unwrap());
            PidFile::reserve(&at("null")).unwrap().write().unwrap();
            assert!(at("null").exists());
        }
    }

    /// Class of bug: the old server looked at its own id, the new one wrote, and the old one removed that.
    #[test]
    fn who_ends_does_not_remove_what_another_writes() {
        const ROUNDS: usize = 2000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        for _ in 0..ROUNDS {
            let mut old = PidFile::reserve_for(&path, 1).unwrap();
            old.write().unwrap();
            let mut new = PidFile::reserve_for(&path, 2).unwrap();
            // Has not got so far as to write.
            let failed = PidFile::reserve_for(&path, 3).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| drop(old));
                scope.spawn(|| drop(failed));
                new.write().unwrap();
            });
            assert_eq!(fs::read_to_string(&path).unwrap(), "2\n");
            drop(new);
            assert!(!path.exists());
        }
    }
}
