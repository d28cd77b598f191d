//! What an incomplete request waits for.

use memchr::memchr;

/// What must come before a parser, which found the input incomplete, can say anything else. A caller that asks
/// this first parses a request that arrives byte by byte a few times, not once a byte.
///
/// The default waits for nothing: any input is worth a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    /// Bytes of input, those included that are here.
    length: usize,
    /// The end of a line will do as well.
    line_end: bool,
}

impl Awaited {
    /// So many bytes of input, those included that are here.
    #[inline]
    pub fn bytes(length: usize) -> Self {
        Self {
            length,
            line_end: false,
        }
    }

    /// The end of a line, or so many bytes of input without one.
    pub(crate) fn line(length: usize) -> Self {
        Self {
            length,
            line_end: true,
        }
    }

    /// True if the parser must look again now that `arrived` stands behind `waiting` bytes, in which it
    /// found nothing complete. This looks at no byte twice.
    pub fn has_come(&self, waiting: usize, arrived: &[u8]) -> bool {
        waiting + arrived.len() >= self.length
            || (self.line_end && memchr(b'\n', arrived).is_some())
    }
}
