//! The log of commands and replies (`-vv`), in memcached's form, and of batches (`-vvv`):
//!
//! ```text
//!  <28 get a b
//!  >28 VALUE a 0 3
//!  >28 END
//! ```
//!
//! The number is the connection's file descriptor. Data blocks are left out, as in memcached. Requests pass
//! through here only while that level is logged, so it costs nothing otherwise.

use std::fmt::{self, Display, Write};

use tracing::Level;

/// The most bytes of a line that the log shows: a line of keys may have any length.
const SHOWN_MAX: usize = 1024;

/// True if commands are logged.
#[inline]
pub fn is_logged() -> bool {
    tracing::enabled!(Level::DEBUG)
}

/// Logs a batch.
#[cold]
pub fn executed(requests: usize, turns: usize) {
    tracing::trace!("a batch of {requests} requests from {turns} connections");
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
