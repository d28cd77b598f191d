//! Descriptors that the process was given, as destinations. They are used as they are: to open the path of one anew
//! (`/dev/stdout`) would need rights to what is behind it, which the user of `-u` may not have, and would begin a file
//! anew that others append to.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, RawFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc::{STDERR_FILENO, STDOUT_FILENO};

/// Folders whose entries are this process' descriptors.
const FOLDERS: [&str; 3] = ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"];

/// The descriptor that a text names, if it names one.
pub fn named(text: &str) -> Option<RawFd> {
    match text {
        "-" | "stdout" | "/dev/stdout" => Some(STDOUT_FILENO),
        "stderr" | "/dev/stderr" => Some(STDERR_FILENO),
        path => {
            let number = FOLDERS
                .iter()
                .find_map(|folder| path.strip_prefix(folder))?;
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            number.parse().ok().filter(|_| is_number)
        }
    }
}

/// A copy of a descriptor, which stays when a daemon closes its standard streams. Errors: it is not open, or not for
/// writing.
pub fn copy(number: RawFd) -> Result<File, String> {
    let descriptor = borrow(number);
    let named = |error: &dyn std::fmt::Display| format!("--log: descriptor {number}: {error}");
    let flags = fcntl(descriptor, FcntlArg::F_GETFL).map_err(|error| named(&error))?;
    if OFlag::from_bits_retain(flags) & OFlag::O_ACCMODE == OFlag::O_RDONLY {
        return Err(named(&"not open for writing"));
    }
    let copied = descriptor.as_fd().try_clone_to_owned();
    copied.map(File::from).map_err(|error| named(&error))
}

#[allow(unsafe_code)]
fn borrow<'f>(number: RawFd) -> BorrowedFd<'f> {
    // SAFETY: it is used for two calls, of which the first fails if there is no such descriptor. It is one that the
    // process was given: no code here closes it. (It is not -1: a name has no sign.)
    unsafe { BorrowedFd::borrow_raw(number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn descriptors_have_many_names() {
        for (text, number) in [
            ("-", Some(1)),
            ("stdout", Some(1)),
            ("/dev/stdout", Some(1)),
            ("/dev/stderr", Some(2)),
            ("/dev/fd/7", Some(7)),
            ("/proc/self/fd/1", Some(1)),
            ("/proc/thread-self/fd/2", Some(2)),
            ("./stdout", None),
            ("/dev/fd/", None),
            ("/dev/fd/+1", None),
            ("/dev/fd/-1", None),
            ("/dev/fd/1x", None),
            ("/dev/fd/99999999999", None),
            ("/dev/null", None),
        ] {
            assert_eq!(named(text), number, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_no_destination() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(copy(writer.as_raw_fd()).is_ok());
        let error = copy(reader.as_raw_fd()).unwrap_err();
        assert!(error.ends_with("not open for writing"), "{error}");
        let error = copy(RawFd::MAX).unwrap_err();
        assert!(error.contains("EBADF"), "{error}");
    }
}
