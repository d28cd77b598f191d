//! Reads files of secrets and certificates, up to a size that no such file has: a server that reads a wrong file by
//! mistake must not fill its memory with it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nuthatch_file::check_no_fifo;

/// Reads a file of at most `max` bytes.
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

/// Reads a secret. Logs a warning if every user can read or write it.
pub(crate) fn read_secret(path: &Path, max: usize, what: &str) -> io::Result<Vec<u8>> {
    let bytes = read(path, max)?;
    if path.metadata()?.permissions().mode() & 0o007 != 0 {
        tracing::warn!("{}: everybody can read the {what}", path.display());
    }
    Ok(bytes)
}
