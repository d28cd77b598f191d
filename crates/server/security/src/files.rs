//! Reads files of secrets and certificates, up to a size that no such file has: a server that reads a wrong file by
//! mistake must not fill its memory with it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::unistd::{User, geteuid};
use nuthatch_base::file::check_no_fifo;

/// Reads a file of at most `max` bytes. The error of a file that this user may not read names the user.
pub(crate) fn read(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    check_no_fifo(path)?;
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => {
            let words = format!("the user {} may not read it: {error}", user());
            io::Error::new(ErrorKind::PermissionDenied, words)
        }
        _ => error,
    })?;
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > max {
        true => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("longer than {max} bytes"),
        )),
        false => Ok(bytes),
    }
}

/// Reads a secret, and makes a warning if every user can read or write it.
pub(crate) fn read_secret(
    path: &Path,
    max: usize,
    what: &str,
) -> io::Result<(Vec<u8>, Option<String>)> {
    let bytes = read(path, max)?;
    let is_open = path.metadata()?.permissions().mode() & 0o007 != 0;
    let warning = is_open.then(|| format!("{}: everybody can read the {what}", path.display()));
    Ok((bytes, warning))
}

/// The name of the process' user, or else its number.
fn user() -> String {
    let number = geteuid();
    let user = User::from_uid(number).ok().flatten();
    user.map_or_else(|| number.to_string(), |user| user.name)
}
