//! Whose a file is. Where others may write into a folder, they may have put anything under a name: a file of theirs, a
//! link, a pipe, another name of a file of ours.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::process::{getegid, geteuid, getgroups};

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
    if there.file_type().is_char_device() {
        return Ok(file);
    }
    check_owner(&there, true)?;
    match there.nlink() {
        0 | 1 => Ok(file),
        links => Err(io::Error::other(format!("a file with {links} names"))),
    }
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
    use std::os::unix::fs::{PermissionsExt, chown};

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
}
