//! The rest of a request: finds the end of a request without keeping it.

use crate::arguments::{ARGUMENTS_LEN_MAX, Arguments, END, Stop};
use crate::error::Error;

/// The part of a request that is still to come, of any length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Arguments whose length is not read yet.
    arguments: u32,
    /// Bytes left of the argument whose length was read, with its end.
    bytes: usize,
}

impl Rest {
    pub(super) fn new(arguments: u32, bytes: usize) -> Self {
        Self { arguments, bytes }
    }

    /// A rest of this many arguments.
    pub fn of(arguments: u32) -> Self {
        Self::new(arguments, 0)
    }

    /// This rest, with this many bytes before it.
    pub fn behind(self, bytes: usize) -> Self {
        Self {
            bytes: self.bytes + bytes,
            ..self
        }
    }

    /// True at the request's end.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.arguments == 0 && self.bytes == 0
    }

    /// True if a request exceeds the limit on arguments: `passed` bytes of it have arrived, without its key and its value,
    /// and the length that it has announced is added. A request that arrives at once is refused at the same byte.
    pub fn is_too_long(&self, passed: usize) -> bool {
        passed + self.bytes > ARGUMENTS_LEN_MAX + END
    }

    /// Skips the bytes of the request that have arrived, and returns their number: all of `input`, unless the line of a
    /// length is cut off, or the end is reached.
    pub fn pass<'a>(&mut self, input: &'a [u8]) -> Result<usize, Error<'a>> {
        let mut at = 0;
        loop {
            let here = self.bytes.min(input.len() - at);
            at += here;
            self.bytes -= here;
            if self.bytes > 0 || self.arguments == 0 {
                return Ok(at);
            }
            let mut arguments = Arguments::at(input, at, self.arguments);
            match arguments.front(0) {
                Ok(_) | Err(Stop::More(_)) if arguments.left < self.arguments => {
                    *self = arguments.rest();
                    at = arguments.at;
                }
                Err(Stop::Broken(error)) => return Err(error),
                _ => return Ok(at),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_however_the_request_is_cut() {
        let whole = b"$3\r\nSET\r\n$0\r\n\r\n$12\r\n$1\r\n$2\r\n\r\n\r\n\r\nbehind";
        let end = whole.len() - b"behind".len();
        for first in 0..whole.len() {
            for second in first..whole.len() {
                let mut rest = Rest::new(3, 0);
                let mut at = 0;
                for cut in [first, second, whole.len()] {
                    at += rest.pass(&whole[at..cut]).unwrap();
                }
                assert!(rest.is_over());
                assert_eq!(at, end, "{first} {second}");
            }
        }
    }

    #[test]
    fn what_is_no_argument_has_no_end() {
        let mut rest = Rest::new(2, 1);
        assert_eq!(rest.pass(b"x$1\r\na\r\n!"), Err(Error::Expected(b'!')));
    }
}
