//! Whose a file is. Where others may write into a folder, they may have put anything under a name: a file of theirs, a
//! link, a pipe, another name of a file of ours.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::file::unfinished::folder_of;
use crate::sys::links::{is_kernels, own_link};
use crate::sys::posix::open::{open_followed, open_unfollowed};
use crate::sys::posix::owners::{check_single, check_trusted};

/// Opens a file to be read, and waits for no writer if it is a pipe. Errors: another user has chosen its content, or
/// may: it is no file, or belongs neither to this user nor to root, or users may write to it who are not in a group of
/// this process; it is a link, unless links are followed.
pub fn open_trusted(path: &Path, follows_links: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    let file = match follows_links {
        true => open_followed(path, &mut options)?,
        false => open_unfollowed(path, &mut options)?,
    };
    check_trusted(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file that is written in place, or a device, and makes the file if it is missing. Nothing is truncated.
///
/// Errors: it is a link or a pipe, or belongs to another user than this one and root, or has other names: what is
/// written would go to a file that somebody else has chosen.
pub fn open_in_place(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file =
        open_unfollowed(path, options).map_err(|error| match fs::symlink_metadata(path) {
            Ok(there) if there.is_symlink() => {
                io::Error::other("a link, not a file: name the file itself")
            }
            _ => error,
        })?;
    let there = file.metadata()?;
    if !there.file_type().is_char_device() {
        check_single(&there)?;
    }
    Ok(file)
}

/// Opens a file that lines are appended to, a pipe or a device, and makes the file if it is missing. Waits for no reader
/// of a pipe; the options say that writes do not wait either.
///
/// Links are followed, because logs are often led elsewhere, but only those of this user and root. Errors: another user
/// has made one of the links, or owns the file, or the file has other names.
pub fn open_appended(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let at = followed(path)?;
    let options = options.append(true).create(true);
    let file = match is_kernels(folder_of(&at)) {
        true => open_followed(&at, options)?,
        false => open_unfollowed(&at, options)?,
    };
    check_appended_to(&file.metadata()?)?;
    Ok(file)
}

/// Where [`open_appended`] would open or make a file. Errors: it would refuse what is there.
pub fn check_appended(path: &Path) -> io::Result<PathBuf> {
    let at = followed(path)?;
    match fs::metadata(&at) {
        Ok(there) => check_appended_to(&there).map(|()| at),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(at),
        Err(error) => Err(error),
    }
}

/// A pipe may belong to its reader, who is often another user.
fn check_appended_to(there: &Metadata) -> io::Result<()> {
    let kind = there.file_type();
    match kind.is_char_device() || kind.is_fifo() {
        true => Ok(()),
        false => check_single(there),
    }
}

/// Links that the system follows, at most.
const LINKS_MAX: usize = 40;

/// Where a path's links lead, whether or not there is a file yet. The kernel's own links are left to it: what they lead
/// to may have no path.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        if is_kernels(folder_of(&at)) {
            return Ok(at);
        }
        let Some(to) = own_link(&at)? else {
            return Ok(at);
        };
        at.pop();
        at.push(to);
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{PermissionsExt, chown, lchown};

    use rustix::process::geteuid;

    use super::*;

    #[test]
    fn what_others_may_have_written_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        let with = |mode: u32| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            open_trusted(&path, false).map(drop)
        };
        for mode in [0o600, 0o640, 0o644, 0o400] {
            with(mode).unwrap();
        }
        for mode in [0o602, 0o646, 0o666, 0o777] {
            let error = with(mode).unwrap_err().to_string();
            assert!(error.contains(&format!("its mode is {mode:o}")), "{error}");
        }
        // A group that this process is in, and one that it is not in.
        with(0o660).unwrap();
        if geteuid().is_root() {
            chown(&path, None, Some(54_321)).unwrap();
            with(0o640).unwrap();
            assert!(with(0o660).is_err());
            chown(&path, Some(54_321), Some(0)).unwrap();
            let error = with(0o600).unwrap_err().to_string();
            assert!(error.starts_with("it belongs to the user 54321"), "{error}");
        }
        let link = folder.path().join("link");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "x").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(open_trusted(&link, false).is_err());
        open_trusted(&link, true).unwrap();
    }

    #[test]
    fn what_is_appended_goes_where_nobody_else_has_led_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).unwrap();
        link("inner/second", "first");
        link("../log", "inner/second");
        // By own links, before the file is there and after.
        for text in ["a", "b"] {
            assert_eq!(
                check_appended(&at("first")).unwrap(),
                at("inner").join("../log")
            );
            let mut log = open_appended(&at("first"), &mut OpenOptions::new()).unwrap();
            log.write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(fs::read(at("log")).unwrap(), b"ab");
        let refused = |name: &str, words: &str| {
            for error in [
                check_appended(&at(name)).unwrap_err(),
                open_appended(&at(name), &mut OpenOptions::new()).unwrap_err(),
            ] {
                assert!(error.to_string().contains(words), "{name}: {error}");
            }
        };
        link("round", "round");
        refused("round", "Too many levels");
        fs::hard_link(at("log"), at("other")).unwrap();
        refused("other", "a file with 2 names");
        fs::remove_file(at("other")).unwrap();
        refused("inner", "");
        let descriptors = Path::new("/proc/self/fd");
        if is_kernels(descriptors) {
            // What a descriptor stands for has no path.
            let (reader, writer) = io::pipe().unwrap();
            let number = writer.as_raw_fd().to_string();
            link(descriptors.join(number).to_str().unwrap(), "pipe");
            check_appended(&at("pipe")).unwrap();
            let opened = open_appended(&at("pipe"), &mut OpenOptions::new()).unwrap();
            assert!(opened.metadata().unwrap().file_type().is_fifo());
            drop(reader);
        }
        if geteuid().is_root() {
            lchown(at("inner/second"), Some(54_321), None).unwrap();
            refused("first", "a link that the user 54321 has made");
            link("none", "dangling");
            lchown(at("dangling"), Some(54_321), None).unwrap();
            refused("dangling", "a link that the user 54321 has made");
            assert!(!at("none").exists());
            chown(at("log"), Some(54_321), None).unwrap();
            refused("log", "it belongs to the user 54321");
        }
        assert_eq!(fs::read(at("log")).unwrap(), b"ab");
    }
}
