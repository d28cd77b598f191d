//! Files of secrets and certificates, read whole, up to a size that no such file has: a server that reads another one by
//! mistake must not fill its memory with it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

/// Reads a file of so many bytes at most.
pub(crate) fn read(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    check_no_fifo(path)?;
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > max {
        true => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("longer than {max} bytes"),
        )),
        false => Ok(bytes),
    }
}

/// Errors: it is a pipe with a name, which waits for somebody who writes: for ever, by mistake. Files are read again by threads
/// that have other things to do. A pipe that a process was given (`/dev/fd/63`) has no name, and a writer.
pub fn check_no_fifo(path: &Path) -> io::Result<()> {
    let real = fs::canonicalize(path).and_then(fs::symlink_metadata);
    match real.is_ok_and(|real| real.file_type().is_fifo()) {
        true => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "a pipe, not a file",
        )),
        false => Ok(()),
    }
}

/// The same of a secret. Says so if everybody can read it, or write it.
pub(crate) fn read_secret(path: &Path, max: usize, what: &str) -> io::Result<Vec<u8>> {
    let bytes = read(path, max)?;
    if path.metadata()?.permissions().mode() & 0o007 != 0 {
        tracing::warn!("{}: everybody can read the {what}", path.display());
    }
    Ok(bytes)
}
