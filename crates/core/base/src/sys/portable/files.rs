//! Files, whose permissions are the system's matter: on Windows those that their folder hands down.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use same_file::Handle;

/// Errors: it is no file. Nothing is known of its owner.
pub fn check_own(there: &Metadata) -> io::Result<()> {
    match there.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("not a file")),
    }
}

/// Whether the system would refuse to put another file in the place of this one shows when it is tried.
pub fn check_change(_path: &Path, _there: &Metadata, _folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Which file it is, whatever its name.
pub struct Identity(Handle);

impl Identity {
    /// That of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self(Handle::from_file(file.try_clone()?)?))
    }

    /// True if this file has this name.
    pub fn is_at(&self, name: &Path) -> io::Result<bool> {
        let named = fs::symlink_metadata(name).and_then(|there| match there.is_file() {
            true => Handle::from_path(name).map(Some),
            false => Ok(None),
        });
        match named {
            Ok(named) => Ok(named.is_some_and(|named| named == self.0)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// There are none that have names among files.
pub fn is_pipe(_there: &Metadata) -> bool {
    false
}

/// Makes a file; its permissions are the system's matter. Errors: something has the name.
pub fn create_new(path: &Path, _permissions: u32) -> io::Result<File> {
    File::create_new(path)
}

/// Opens what has this name itself. Errors: that is no file, such as a link. (A link that is made at this moment is
/// followed; [`Identity`] then tells.)
pub fn open_unfollowed(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    check_own(&fs::symlink_metadata(path)?)?;
    options.open(path)
}

/// The system sees to the names in a folder.
pub fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
