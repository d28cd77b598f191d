//! The bytes that an incomplete request waits for.

use memchr::memchr;

/// The bytes that must arrive before a parser, which found the input incomplete, can return another result. A caller
/// that checks this first parses a request that arrives byte by byte a few times, not once per byte.
///
/// The default waits for nothing: any input is parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    /// Bytes of input, with those that have arrived.
    length: usize,
    /// True if the end of a line is enough too.
    line_end: bool,
}

impl Awaited {
    /// Waits for this many bytes of input, with those that have arrived.
    #[inline]
    pub fn bytes(length: usize) -> Self {
        Self {
            length,
            line_end: false,
        }
    }

    /// Waits for the end of a line, or for this many bytes of input without one.
    pub fn line(length: usize) -> Self {
        Self {
            length,
            line_end: true,
        }
    }

    /// True if the parser must parse again, now that `arrived` follows `waiting` bytes in which it found nothing
    /// complete. This looks at no byte twice.
    pub fn has_come(&self, waiting: usize, arrived: &[u8]) -> bool {
        waiting + arrived.len() >= self.length
            || (self.line_end && memchr(b'\n', arrived).is_some())
    }
}
