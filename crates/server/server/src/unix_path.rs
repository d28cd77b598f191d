//! The file of a unix socket. Only the process that made it, or took it over, removes it.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::sys::bound;

/// Error text for a file that is in the way.
const NO_SOCKET: &str = "something is there that is no socket";

/// Error text for a socket that is in use.
const IS_SERVED: &str = "another server listens there";

/// The file of a socket that this process listens at.
#[derive(Debug)]
pub(crate) struct UnixPath {
    path: PathBuf,
    /// Device and inode, to recognise the file: another server may have put a socket of its own there since.
    identity: Option<(u64, u64)>,
    /// False while the file still belongs to the other process, which goes on if this one fails.
    is_ours: Arc<AtomicBool>,
}

impl UnixPath {
    /// Listens at `path`, with these permission bits. A socket that exists there is replaced, as memcached does: it is
    /// left over from a server that was killed. Whether a process still listens there, the caller has found out
    /// ([`Replaced::make_room`]). Errors: the socket cannot be made; the path has a file that is no socket.
    pub(crate) fn listen(path: &Path, mode: u32, backlog: i32) -> io::Result<(Socket, Self)> {
        match fs::symlink_metadata(path) {
            Ok(there) if there.file_type().is_socket() => fs::remove_file(path)?,
            // The system's error would be that the address is in use.
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, NO_SOCKET)),
            Err(_) => {}
        }
        let socket = unconnected()?;
        bound::bind(&socket, path, mode & 0o777)?;
        let made = Self::of(path, Arc::new(true.into()));
        socket.listen(backlog)?;
        Ok((socket, made))
    }

    /// The file of a socket that another process made, and that belongs to this one when `is_ours` becomes true.
    pub(crate) fn of(path: &Path, is_ours: Arc<AtomicBool>) -> Self {
        let identity = identity(path);
        Self {
            path: path.to_owned(),
            identity,
            is_ours,
        }
    }

    /// Removes the file if it is still the same file, and belongs to this process. The socket must be open: until it is
    /// closed, the system does not reuse its inode.
    pub(crate) fn remove(&self) {
        // Acquire: pairs with the Release in Successor::take_over(): what the other process did with the file comes
        // before.
        let is_ours = self.is_ours.load(Ordering::Acquire);
        if is_ours && self.identity.is_some() && identity(&self.path) == self.identity {
            // No client can connect to it any more, and a leftover file would only confuse.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A socket at which the server listens whose place this one takes. It has another name until this one serves, so that a
/// start that fails can put it back.
pub(crate) struct Replaced {
    path: PathBuf,
    aside: PathBuf,
}

impl Replaced {
    /// Moves the socket at `path` aside, if there is one and a process listens there, and this one `takes_over`. Errors:
    /// a process listens there that goes on.
    pub(crate) fn make_room(path: &Path, takes_over: bool) -> io::Result<Option<Self>> {
        let there = fs::symlink_metadata(path);
        if !there.is_ok_and(|there| there.file_type().is_socket()) || !is_served(path) {
            return Ok(None);
        }
        if !takes_over {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, IS_SERVED));
        }
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".{}", std::process::id()));
        let aside = PathBuf::from(aside);
        fs::rename(path, &aside)?;
        let path = path.to_owned();
        Ok(Some(Self { path, aside }))
    }

    /// Gives the old socket up: clients do not find its server any more.
    pub(crate) fn give_up(self) {
        // A file that cannot be removed is in no one's way.
        let _ = fs::remove_file(&self.aside);
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        // After give_up() the file does not exist any more, and this fails.
        let _ = fs::rename(&self.aside, &self.path);
    }
}

/// A socket that blocks no call.
pub(crate) fn unconnected() -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// True if a process listens there: the connect succeeds, or the listener's queue is full, or it takes other connections.
fn is_served(path: &Path) -> bool {
    let connected = unconnected().and_then(|socket| socket.connect(&SockAddr::unix(path)?));
    match connected.map_err(|error| error.kind()) {
        // No one listens; the socket has gone; it is for other users.
        Err(
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied,
        ) => false,
        Ok(()) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path where nothing is yet.
    fn free(name: &str) -> PathBuf {
        let name = format!("nuthatch-path-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn permissions_are_those_asked_for() {
        let path = free("mode");
        // The usual mask, 022, takes some of the last ones away.
        for mode in [0o600, 0o700, 0o750, 0o777] {
            let (_socket, made) = UnixPath::listen(&path, mode, 4).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
            made.remove();
        }
    }

    #[test]
    fn who_lost_its_path_to_another_leaves_it_there() {
        let path = free("lost");
        let (_first, of_first) = UnixPath::listen(&path, 0o700, 4).unwrap();
        assert!(is_served(&path));
        let (_second, of_second) = UnixPath::listen(&path, 0o700, 4).unwrap();
        of_first.remove();
        assert!(is_served(&path), "the second one's");
        of_second.remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_is_served_is_replaced_in_a_handover_alone_and_comes_back_unless_it_is_given_up() {
        let path = free("aside");
        let (first, of_first) = UnixPath::listen(&path, 0o700, 4).unwrap();
        let refused = Replaced::make_room(&path, false).err().unwrap();
        assert_eq!(refused.to_string(), IS_SERVED);
        assert_eq!(identity(&path), of_first.identity);
        let replaced = Replaced::make_room(&path, true).unwrap().unwrap();
        let (_second, of_second) = UnixPath::listen(&path, 0o700, 4).unwrap();
        // Both orders work.
        drop(replaced);
        of_second.remove();
        assert_eq!(identity(&path), of_first.identity);
        let replaced = Replaced::make_room(&path, true).unwrap().unwrap();
        let aside = replaced.aside.clone();
        let (_third, of_third) = UnixPath::listen(&path, 0o700, 4).unwrap();
        replaced.give_up();
        assert_eq!(identity(&path), of_third.identity);
        assert!(!aside.exists());
        of_third.remove();
        drop(first);
        assert!(Replaced::make_room(&path, false).unwrap().is_none());
    }

    #[test]
    fn who_has_not_taken_over_leaves_the_path() {
        let path = free("other");
        let (_socket, _made) = UnixPath::listen(&path, 0o700, 4).unwrap();
        let is_ours = Arc::new(AtomicBool::new(false));
        let taken = UnixPath::of(&path, Arc::clone(&is_ours));
        taken.remove();
        assert!(path.exists());
        is_ours.store(true, Ordering::Release);
        taken.remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_server_left_is_no_server() {
        let path = free("left");
        drop(UnixPath::listen(&path, 0o700, 4).unwrap());
        assert!(path.exists() && !is_served(&path));
        let (_socket, made) = UnixPath::listen(&path, 0o700, 4).unwrap();
        made.remove();
        assert!(!path.exists());
        // A file that is no socket stays.
        fs::write(&path, "x").unwrap();
        let error = UnixPath::listen(&path, 0o700, 4).unwrap_err();
        assert_eq!(error.to_string(), NO_SOCKET);
        assert_eq!(fs::read(&path).unwrap(), b"x");
        fs::remove_file(&path).unwrap();
    }
}
