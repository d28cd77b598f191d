//! Requests in the log.

use std::os::fd::RawFd;

use crate::conversation::Shown;

/// Bytes shown of a request: what a person has to see of it.
const SHOWN_MAX: usize = 200;

/// Logs the request that `input` begins with: its front, as it came, unless a password may be in it.
pub(crate) fn request(input: &[u8], fd: RawFd) {
    let front = &input[..input.len().min(SHOWN_MAX)];
    match has_password(front) {
        true => tracing::debug!("<{fd} AUTH"),
        false => tracing::debug!("<{fd} {}", Shown(front)),
    }
}

/// True if AUTH stands anywhere.
fn has_password(front: &[u8]) -> bool {
    front
        .windows(b"auth".len())
        .any(|word| word.eq_ignore_ascii_case(b"auth"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_logged() {
        assert!(has_password(b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"));
        assert!(has_password(b"hello 3 auth me secret\r\n"));
        assert!(!has_password(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"));
    }
}
