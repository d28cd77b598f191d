//! The log of commands and replies (`-vv`), in memcached's form, and of batches (`-vvv`):
//!
//! ```text
//!  <28 get a b
//!  >28 VALUE a 0 3
//!  >28 END
//! ```
//!
//! The number is the connection's file descriptor. Data blocks are left out, as in memcached. Turns are run
//! by this module only while that level is logged, so it costs nothing otherwise.

use std::fmt::{self, Display, Write};
use std::os::fd::RawFd;

use nuthatch_engine::Value;
use nuthatch_protocol::cpserver::HEADER;
use tracing::Level;

use crate::commands::Stage;
use crate::connection::Phase;
use crate::listen::Protocol;
use crate::output::Output;
use crate::slice::{self, Slice, Stop};

/// Bytes shown of a line: a client may send 255 KB of keys in one.
const SHOWN_MAX: usize = 1024;

/// True if commands are logged.
#[inline]
pub(crate) fn is_logged() -> bool {
    tracing::enabled!(Level::DEBUG)
}

/// [`slice::run`], with a line in the log for each command.
#[cold]
pub(crate) fn run<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
    fd: RawFd,
) -> Stop {
    tracing::trace!("{fd}: {} bytes of input", input.len() - slice.position);
    loop {
        let from = slice.position;
        let begins = matches!(phase, Phase::Commands);
        let stop = slice::step(stage, slice, phase, input);
        // A command that waits for a batch or for more input is not consumed, and comes again.
        if begins && slice.position > from {
            match slice.protocol {
                Protocol::Memcached => {
                    let line = first_line(&input[from..]).0;
                    tracing::debug!("<{fd} {}", Shown(line));
                }
                Protocol::CpServer => {
                    let request = &input[from..];
                    let header = &request[..request.len().min(HEADER)];
                    tracing::debug!("<{fd} {}", Numbers(header));
                }
            }
        }
        if let Some(stop) = stop {
            return stop;
        }
    }
}

/// Logs what a slice's output holds from `from` on.
#[cold]
pub(crate) fn answered<V: Value>(output: &Output<V>, from: usize, protocol: Protocol, fd: RawFd) {
    let end = output.end();
    if end > from {
        tracing::trace!("{fd}: {} bytes of replies, large values apart", end - from);
    }
    if protocol == Protocol::CpServer {
        return;
    }
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
            // A large value is not here: it is sent from where it lies.
            let here = if output.is_pinned_at(at) {
                0
            } else {
                value_len
            };
            at += here + b"\r\n".len();
        }
    }
}

/// Logs a batch.
#[cold]
pub(crate) fn executed(requests: usize, slices: usize) {
    tracing::trace!("a batch of {requests} requests from {slices} connections");
}

/// The first line without its end, and its length with it.
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

/// Bytes as text for a log line: control characters escaped, and cut to [`SHOWN_MAX`].
struct Shown<'a>(&'a [u8]);

impl Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_MAX)];
        for chunk in shown.utf8_chunks() {
            for char in chunk.valid().chars() {
                if char.is_control() {
                    write!(out, "{}", char.escape_default())?;
                } else {
                    out.write_char(char)?;
                }
            }
            write!(out, "{}", chunk.invalid().escape_ascii())?;
        }
        match self.0.len() - shown.len() {
            0 => Ok(()),
            more => write!(out, "... and {more} bytes"),
        }
    }
}

/// The header of a request of CPServer's.
struct Numbers<'a>(&'a [u8]);

impl Display for Numbers<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (op, rest) = self.0.split_at_checked(4).unwrap_or_default();
        let (size, key) = rest.split_at_checked(4).unwrap_or_default();
        let number = |bytes: &[u8]| {
            let digits = bytes.iter().rev();
            digits.fold(0, |number: u64, &byte| number << 8 | u64::from(byte))
        };
        let (size, key) = (number(size), number(key));
        match number(op) {
            0 => write!(out, "LOOKUP {key}"),
            1 => write!(out, "INSERT {key} {size}"),
            2 => write!(out, "FIND {key}"),
            3 => write!(out, "STORE {key} {size}"),
            op => write!(out, "operation {op}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cannot_break_out_of_the_log() {
        for (line, shown) in [
            (&b"get k\xc3\xb6y"[..], "get k\u{f6}y"),
            (b"set \x1b[31m \xff\r", r"set \u{1b}[31m \xff\r"),
            (b"\0", r"\u{0}"),
        ] {
            assert_eq!(Shown(line).to_string(), shown);
        }
        let long = Shown(&[b'k'; SHOWN_MAX + 7]).to_string();
        assert!(long.ends_with("kkk... and 7 bytes"), "{long}");
    }

    #[test]
    fn replies_tell_what_data_follows() {
        assert_eq!(announced(b"VALUE key 0 12"), Some(12));
        assert_eq!(announced(b"VALUE key 0 12 7"), Some(12));
        assert_eq!(announced(b"VA 3 f0"), Some(3));
        for line in [&b"STORED"[..], b"END", b"HD", b"VALUE", b"12"] {
            assert_eq!(announced(line), None);
        }
    }

    #[test]
    fn cpservers_requests_have_names() {
        let header = |op: u32, size: u32| [&op.to_le_bytes()[..], &size.to_le_bytes()].concat();
        let key = 9_u64.to_le_bytes();
        let shown = |op, size| Numbers(&[header(op, size), key.to_vec()].concat()).to_string();
        assert_eq!(shown(0, 0), "LOOKUP 9");
        assert_eq!(shown(3, 5), "STORE 9 5");
        assert_eq!(shown(77, 0), "operation 77");
        assert_eq!(Numbers(b"\x01").to_string(), "LOOKUP 0");
    }
}
