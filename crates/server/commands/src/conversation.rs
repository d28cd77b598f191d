//! The log of commands and replies (`-vv`), in memcached's form, and of batches (`-vvv`):
//!
//! ```text
//!  <28 get a b
//!  >28 VALUE a 0 3
//!  >28 END
//! ```
//!
//! The number is the connection's file descriptor. Data blocks are left out, as in memcached. Slices run through this
//! module only while that level is logged, so it costs nothing otherwise.

use std::fmt::{self, Display, Write};
use std::os::fd::RawFd;

use nuthatch_engine::AnyValue;
use tracing::Level;

use crate::output::Output;
use crate::protocols::Phase;
use crate::slice::{self, Slice, Stop};
use crate::stage::Stage;

/// The most bytes of a line that the log shows: a line of keys may have any length.
const SHOWN_MAX: usize = 1024;

/// True if commands are logged.
#[inline]
pub fn is_logged() -> bool {
    tracing::enabled!(Level::DEBUG)
}

/// [`slice::run`], with a line in the log for each request.
#[cold]
pub fn run<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
    fd: RawFd,
) -> Stop {
    tracing::trace!("{fd}: {} bytes of input", input.len() - slice.position);
    loop {
        let from = slice.position;
        let begins = phase.is_at_request();
        let stop = slice::step(stage, slice, phase, input);
        // A request that waits for a batch or for more input is not consumed: it is parsed again, and logged then.
        if begins && slice.position > from {
            phase.log_request(&input[from..], fd);
        }
        if let Some(stop) = stop {
            return stop;
        }
    }
}

/// Logs the replies in a slice's output from `from` on.
#[cold]
pub fn answered(phase: &Phase, output: &Output<AnyValue>, from: usize, fd: RawFd) {
    let end = output.end();
    if end > from {
        tracing::trace!("{fd}: {} bytes of replies, large values apart", end - from);
    }
    phase.log_answers(output, from, fd);
}

/// Logs a batch.
#[cold]
pub fn executed(requests: usize, slices: usize) {
    tracing::trace!("a batch of {requests} requests from {slices} connections");
}

/// Bytes as text for a log line, cut to [`SHOWN_MAX`]. Every invisible character is escaped: it could move a terminal's
/// cursor, change the direction of text, or end a line.
pub struct Shown<'a>(pub &'a [u8]);

impl Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_MAX)];
        for chunk in shown.utf8_chunks() {
            for char in chunk.valid().chars() {
                match is_visible(char) {
                    true => out.write_char(char)?,
                    false => write!(out, "{}", char.escape_default())?,
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

/// True if the character is visible by the Unicode tables of the standard library: `escape_debug` leaves it as it is.
/// Printable ASCII is visible too.
fn is_visible(char: char) -> bool {
    char == ' ' || char.is_ascii_graphic() || char.escape_debug().eq([char])
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
            (b"\"it's\" \\", "\"it's\" \\"),
            // A line separator; a terminal's control sequence in one character; text from right to left.
            ("a\u{2028}b\u{85}c".as_bytes(), r"a\u{2028}b\u{85}c"),
            ("\u{9b}2J".as_bytes(), r"\u{9b}2J"),
            ("\u{202e}txt".as_bytes(), r"\u{202e}txt"),
        ] {
            assert_eq!(Shown(line).to_string(), shown);
        }
        let long = Shown(&[b'k'; SHOWN_MAX + 7]).to_string();
        assert!(long.ends_with("kkk... and 7 bytes"), "{long}");
    }
}
