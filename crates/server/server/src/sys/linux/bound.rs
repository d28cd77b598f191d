//! The permissions of a unix socket's file.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fchmod};
use socket2::{SockAddr, Socket};

/// Binds the socket to a file with these permission bits. At no moment has the file more.
pub fn bind(socket: &Socket, path: &Path, mode: u32) -> io::Result<()> {
    // The file gets the permissions of the socket, less the process's mask.
    fchmod(socket, Mode::from_bits_truncate(mode))?;
    socket.bind(&SockAddr::unix(path)?)?;
    set_mode(path, mode)
}

/// Gives the file of a socket these permissions, if the mask has taken some away.
///
/// Whoever may write into the folder can put a link there at any moment, or another name of somebody else's socket. So
/// the file is opened first, without following a link and without any right to it, and what is looked at and changed
/// from then on is that file, whatever its name leads to.
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    // Not by std, which takes O_PATH for a right to the file where musl is the C library, and drops it.
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let there = file.metadata()?;
    if !there.file_type().is_socket() || there.nlink() != 1 {
        let words = "another process has put something else there";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, words));
    }
    if there.mode() & 0o777 == mode {
        return Ok(());
    }
    // No call changes the permissions of such a descriptor before Linux 6.6, except by this name of it.
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(name, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};

    #[test]
    fn what_somebody_put_in_the_place_of_the_socket_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "").unwrap();
        fs::set_permissions(at("victim"), Permissions::from_mode(0o600)).unwrap();
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        bind(&socket, &at("socket"), 0o600).unwrap();
        std::os::unix::fs::symlink(at("victim"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("socket"), at("link to a socket")).unwrap();
        fs::hard_link(at("socket"), at("second name")).unwrap();
        for name in ["victim", "link", "link to a socket", "second name"] {
            assert!(set_mode(&at(name), 0o777).is_err(), "{name}");
        }
        for name in ["victim", "socket"] {
            assert_eq!(fs::metadata(at(name)).unwrap().mode() & 0o777, 0o600);
        }
    }
}
