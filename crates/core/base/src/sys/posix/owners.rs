//! Whose a file is, and who may write to it.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::process::{getegid, geteuid, getgroups};

const BY_GROUP: u32 = 0o020;
const BY_ALL: u32 = 0o002;

/// Errors: it is no file, or not this user's.
pub fn check_own(there: &Metadata) -> io::Result<()> {
    check_owner(there, false)
}

/// Errors: it is no file, or it belongs neither to this user nor, if that is let, to root.
pub fn check_owner(there: &Metadata, or_root: bool) -> io::Result<()> {
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
pub fn check_trusted(there: &Metadata) -> io::Result<()> {
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

/// Errors: it is no file, or it belongs to another user than this one and root, or it has other names.
pub fn check_single(there: &Metadata) -> io::Result<()> {
    check_owner(there, true)?;
    match there.nlink() {
        0 | 1 => Ok(()),
        links => Err(io::Error::other(format!("a file with {links} names"))),
    }
}

/// Errors: neither this user nor root has made this link.
pub fn check_link(path: &Path, link: &Metadata) -> io::Result<()> {
    let owner = link.uid();
    match [geteuid().as_raw(), 0].contains(&owner) {
        true => Ok(()),
        false => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "{} is a link that the user {owner} has made",
                path.display()
            ),
        )),
    }
}

/// Errors: in a folder with the sticky bit, as /tmp has, only the owner of a file or of the folder replaces a file.
pub fn check_sticky(there: &Metadata, folder: &Metadata) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let me = geteuid();
    let may = me.is_root() || [there.uid(), folder.uid()].contains(&me.as_raw());
    match may || folder.mode() & STICKY == 0 {
        true => Ok(()),
        false => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "it belongs to the user {}, who alone may replace it: the folder has the sticky bit",
                there.uid()
            ),
        )),
    }
}

/// Which file it is, whatever its name.
#[derive(PartialEq, Eq)]
pub struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    /// That of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::told(&file.metadata()?))
    }

    fn told(there: &Metadata) -> Self {
        Self {
            device: there.dev(),
            number: there.ino(),
        }
    }

    /// True if this file has this name.
    pub fn is_at(&self, name: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(name) {
            Ok(named) => Ok(*self == Self::told(&named)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// True if it is a named pipe, whose reader waits for a writer.
pub fn is_pipe(there: &Metadata) -> bool {
    there.file_type().is_fifo()
}
