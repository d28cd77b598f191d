//! The rest of a request: how to get to its end without keeping it.

use super::arguments::{ARGUMENTS_LEN_MAX, Arguments, END, Stop};
use super::error::Error;

/// What is still to come of a request, however long it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Arguments whose length was not read.
    arguments: u32,
    /// Bytes of the one whose length was, its end included.
    bytes: usize,
}

impl Rest {
    pub(super) fn new(arguments: u32, bytes: usize) -> Self {
        Self { arguments, bytes }
    }

    /// So many arguments.
    pub fn of(arguments: u32) -> Self {
        Self::new(arguments, 0)
    }

    /// This, behind so many bytes.
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

    /// True if a request of which `passed` bytes have come, its value not counted, is longer than arguments may be with
    /// what it has announced. One that comes at once is refused at the same byte.
    pub fn is_too_long(&self, passed: usize) -> bool {
        passed + self.bytes > ARGUMENTS_LEN_MAX + END
    }

    /// Goes on over what is here of the request, and returns how many bytes of `input` are behind it then: all
    /// that are here, unless the line of a length is cut off, or the end is reached.
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
