//! Log lines for commands and replies, in memcached's form. Data blocks are left out.

use std::os::fd::RawFd;

use nuthatch_engine::Value;

use crate::conversation::Shown;
use crate::output::Output;

/// Logs the command that `input` begins with.
pub fn request(input: &[u8], fd: RawFd) {
    tracing::debug!("<{fd} {}", Shown(first_line(input).0));
}

/// Logs the replies in an output from position `from` on.
pub fn answers<V: Value>(output: &Output<V>, from: usize, fd: RawFd) {
    let end = output.end();
    let mut at = from;
    while at < end {
        let (line, len) = first_line(output.since(at));
        at += len;
        if is_one_of_many(line) {
            tracing::trace!(">{fd} {}", Shown(line));
        } else {
            tracing::debug!(">{fd} {}", Shown(line));
        }
        if let Some(value_len) = announced(line) {
            // A pinned value is not in the text.
            let here = if output.is_pinned_at(at) {
                0
            } else {
                value_len
            };
            at += here + b"\r\n".len();
        }
    }
}

/// The first line without its line end, and its length with the line end.
fn first_line(text: &[u8]) -> (&[u8], usize) {
    match text.iter().position(|&byte| byte == b'\n') {
        Some(end) => {
            let line = &text[..end];
            (line.strip_suffix(b"\r").unwrap_or(line), end + 1)
        }
        None => (text, text.len()),
    }
}

/// The length of the data block behind a reply's line, if there is one.
fn announced(line: &[u8]) -> Option<usize> {
    let mut words = line.split(|&byte| byte == b' ');
    let len = match words.next()? {
        b"VALUE" => words.nth(2)?,
        b"VA" => words.next()?,
        _ => return None,
    };
    std::str::from_utf8(len).ok()?.parse().ok()
}

/// True for a line of statistics or of a dump: memcached does not show those either.
fn is_one_of_many(line: &[u8]) -> bool {
    [&b"STAT "[..], b"ITEM ", b"PREFIX ", b"key=", b"mg "]
        .iter()
        .any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_tell_what_data_follows() {
        assert_eq!(announced(b"VALUE key 0 12"), Some(12));
        assert_eq!(announced(b"VALUE key 0 12 7"), Some(12));
        assert_eq!(announced(b"VA 3 f0"), Some(3));
        for line in [&b"STORED"[..], b"END", b"HD", b"VALUE", b"12"] {
            assert_eq!(announced(line), None);
        }
    }
}
