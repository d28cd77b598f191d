//! Whose a file is. Where others may write into a folder, they may have put anything under a name: a file of theirs, a
//! link, a pipe, another name of a file of ours.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, readlinkat, statfs};
use rustix::process::{getegid, geteuid, getgroups};

use crate::file::unfinished::folder_of;

const BY_GROUP: u32 = 0o020;
const BY_ALL: u32 = 0o002;

/// Errors: it is no file, or not this user's.
pub(crate) fn check_own(there: &Metadata) -> io::Result<()> {
    check_owner(there, false)
}

/// Errors: it is no file, or it belongs neither to this user nor, if that is let, to root.
fn check_owner(there: &Metadata, or_root: bool) -> io::Result<()> {
    if !there.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let (owner, me) = (there.uid(), geteuid().as_raw());
    match owner == me || or_root && owner == 0 {
        true => Ok(()),
        false => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!("it belongs to the user {owner}, and this process is the user {me}"),
        )),
    }
}

/// Errors: it is no file, or another user has chosen its content, or may: it belongs neither to this user nor to root,
/// or others may write to it. A group of this process may: Kubernetes gives the files of a volume to the group of the
/// pod, and OpenShift those of an image to the group of root.
fn check_trusted(there: &Metadata) -> io::Result<()> {
    check_owner(there, true)?;
    let (mode, group) = (there.mode(), there.gid());
    let is_in = || {
        getegid().as_raw() == group
            || getgroups().is_ok_and(|groups| groups.iter().any(|one| one.as_raw() == group))
    };
    match mode & BY_ALL != 0 || mode & BY_GROUP != 0 && !is_in() {
        true => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "other users may write to it: its mode is {:o}",
                mode & 0o7777
            ),
        )),
        false => Ok(()),
    }
}

/// Opens a file to be read, and waits for no writer if it is a pipe. Errors: another user has chosen its content, or
/// may: it is no file, or belongs neither to this user nor to root, or users may write to it who are not in a group of
/// this process; it is a link, unless links are followed.
pub fn open_trusted(path: &Path, follows_links: bool) -> io::Result<File> {
    let no_follow = if follows_links { 0 } else { libc::O_NOFOLLOW };
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(no_follow | libc::O_NONBLOCK)
        .open(path)?;
    check_trusted(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file that is written in place, or a device, and makes the file if it is missing. Nothing is truncated.
///
/// Errors: it is a link or a pipe, or belongs to another user than this one and root, or has other names: what is
/// written would go to a file that somebody else has chosen.
pub fn open_in_place(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let options = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options
        .open(path)
        .map_err(|error| match fs::symlink_metadata(path) {
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

/// Errors: it is no file, or it belongs to another user than this one and root, or it has other names.
fn check_single(there: &Metadata) -> io::Result<()> {
    check_owner(there, true)?;
    match there.nlink() {
        0 | 1 => Ok(()),
        links => Err(io::Error::other(format!("a file with {links} names"))),
    }
}

/// Opens a file that lines are appended to, a pipe or a device, and makes the file if it is missing. Waits for no reader
/// of a pipe; the options say that writes do not wait either.
///
/// Links are followed, because logs are often led elsewhere, but only those of this user and root. Errors: another user
/// has made one of the links, or owns the file, or the file has other names.
pub fn open_appended(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let at = followed(path)?;
    let no_follow = match is_kernels(&at) {
        true => 0,
        false => libc::O_NOFOLLOW,
    };
    let options = options.append(true).create(true);
    let file = options
        .custom_flags(no_follow | libc::O_NONBLOCK)
        .open(&at)?;
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
        if is_kernels(&at) {
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

/// The text of a link. `None` if there is none of that name. What belongs to whom is asked of the link itself, which the
/// name may lose meanwhile. Errors: it belongs neither to this user nor to root.
fn own_link(path: &Path) -> io::Result<Option<PathBuf>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let link = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(link) => File::from(link),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let there = link.metadata()?;
    if !there.is_symlink() {
        return Ok(None);
    }
    if ![geteuid().as_raw(), 0].contains(&there.uid()) {
        let (link, owner) = (path.display(), there.uid());
        let words = format!("{link} is a link that the user {owner} has made");
        return Err(io::Error::new(ErrorKind::PermissionDenied, words));
    }
    let to = readlinkat(&link, c"", Vec::new())?;
    Ok(Some(OsString::from_vec(to.into_bytes()).into()))
}

/// True if the kernel has made this name: it stands for a descriptor of a process (`/proc/1/fd/1`), say.
fn is_kernels(path: &Path) -> bool {
    statfs(folder_of(path)).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC)
}

/// True if this file has this name.
pub(crate) fn is_at(file: &File, name: &Path) -> io::Result<bool> {
    let file = file.metadata()?;
    match fs::symlink_metadata(name) {
        Ok(named) => Ok((named.dev(), named.ino()) == (file.dev(), file.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{PermissionsExt, chown, lchown};

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
        // What a descriptor stands for has no path.
        let (reader, writer) = io::pipe().unwrap();
        link(&format!("/proc/self/fd/{}", writer.as_raw_fd()), "pipe");
        check_appended(&at("pipe")).unwrap();
        let opened = open_appended(&at("pipe"), &mut OpenOptions::new()).unwrap();
        assert!(opened.metadata().unwrap().file_type().is_fifo());
        drop(reader);
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
