//! The arguments of a request, one after the other:
//!
//! ```text
//!  *3\r\n $3\r\nSET\r\n $1\r\nk\r\n $5\r\nacorn\r\n
//!  count  length        |
//!         argument      at: what comes next
//! ```
//!
//! As in Redis, the bytes at the places of a `\n`, or of the `\r\n` behind an argument, are not checked.

use memchr::memchr;

use crate::error::Error;
use crate::number::integer;
use crate::rest::Rest;
use nuthatch_protocol::KEY_LEN_MAX;
use nuthatch_protocol::Limits;

/// The longest argument, and the longest request without its values.
pub const ARGUMENTS_LEN_MAX: usize = 64 << 10;

/// The most bytes of a valid line with a number: a mark, a sign, 19 digits, its end. Redis refuses a longer line too,
/// but only after 64 KB.
const NUMBER_LINE_MAX: usize = 32;

/// Redis' `proto-max-bulk-len`.
const LENGTH_MAX: i64 = 512 << 20;

/// The most bytes of further arguments that the parser waits for before it parses again.
const AWAITED_AHEAD: usize = 4 << 10;

/// `\r\n`.
pub(super) const END: usize = 2;

/// The shortest argument with its length: `$0\r\n\r\n`.
const ARGUMENT_LEAST: usize = 6;

/// Why the parser stops at the arguments that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop<'a> {
    /// The parser needs this many bytes of the request, counted from its first byte.
    More(usize),
    /// The request is not executed.
    Refused(Error<'a>),
    /// The end of its arguments cannot be found.
    Broken(Error<'a>),
    /// The next argument is a value that has not arrived completely.
    Body {
        /// Where the line with its length begins, counted from the request's first byte.
        line: usize,
        /// Bytes of the value.
        value_len: usize,
        /// True if it is the whole value of an item.
        whole: bool,
    },
}

impl<'a> From<Error<'a>> for Stop<'a> {
    fn from(error: Error<'a>) -> Self {
        Stop::Refused(error)
    }
}

/// Where the arguments of a command about one key come from: from a request, or from words that are apart already.
pub(super) trait Source<'a> {
    /// How many are left.
    fn left(&self) -> u32;

    /// The next argument.
    fn next(&mut self) -> Result<&'a [u8], Stop<'a>>;

    /// The next argument, which is a key.
    fn key(&mut self) -> Result<&'a [u8], Stop<'a>>;

    /// The next argument, which is a value.
    fn value(&mut self, value_max: usize) -> Result<&'a [u8], Stop<'a>>;

    /// The next argument, which is as long as a value and not the whole value of an item.
    fn piece(&mut self, len_max: usize) -> Result<&'a [u8], Stop<'a>> {
        self.value(len_max).map_err(|stop| match stop {
            Stop::Body {
                line, value_len, ..
            } => Stop::Body {
                line,
                value_len,
                whole: false,
            },
            other => other,
        })
    }

    /// The next argument as an integer.
    #[inline]
    fn integer(&mut self) -> Result<i64, Stop<'a>> {
        Ok(integer(self.next()?).ok_or(Error::NOT_INTEGER)?)
    }
}

/// The arguments that are not taken yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments<'a> {
    pub(super) input: &'a [u8],
    /// Where the next one begins.
    pub(super) at: usize,
    /// How many are left.
    pub(super) left: u32,
    /// Bytes of the argument whose length was read last, with its end.
    pending: usize,
    /// The limit for the end of the arguments.
    reach: usize,
    /// The longest key.
    key_max: usize,
}

impl<'a> Arguments<'a> {
    /// The arguments of the request at the front of `input`, whose first byte is `*`.
    #[inline]
    pub(super) fn of(input: &'a [u8]) -> Result<Self, Stop<'a>> {
        // Most counts have one digit.
        if let [b'*', digit @ b'1'..=b'9', b'\r', _, ..] = input {
            return Ok(Self::at(input, 4, u32::from(digit - b'0')));
        }
        let (count, at) = line(input, 0, Error::MULTIBULK_LENGTH)?;
        match integer(count) {
            Some(count) if count <= i64::from(i32::MAX) => {
                Ok(Self::at(input, at, count.max(0) as u32))
            }
            _ => Err(Stop::Broken(Error::MULTIBULK_LENGTH)),
        }
    }

    /// `left` arguments from index `at` on.
    #[inline]
    pub(super) fn at(input: &'a [u8], at: usize, left: u32) -> Self {
        Self {
            input,
            at,
            left,
            pending: 0,
            reach: ARGUMENTS_LEN_MAX,
            key_max: KEY_LEN_MAX,
        }
    }

    /// The same, with keys within the server's limit.
    #[inline]
    pub(super) fn within(self, limits: &Limits) -> Self {
        Self {
            key_max: limits.key_max,
            ..self
        }
    }

    /// Reads the next argument's length.
    #[inline]
    fn length(&mut self) -> Result<usize, Stop<'a>> {
        debug_assert!(self.left > 0 && self.pending == 0);
        let (len, at) = match &self.input[self.at.min(self.input.len())..] {
            [b'$', digit @ b'0'..=b'9', b'\r', _, ..] => (usize::from(digit - b'0'), self.at + 4),
            [b'$', tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', _, ..] => {
                let len = (tens - b'0') * 10 + (ones - b'0');
                (usize::from(len), self.at + 5)
            }
            [b'$', ..] | [] => {
                let (len, at) = line(self.input, self.at, Error::BULK_LENGTH)?;
                match integer(len) {
                    Some(len @ 0..=LENGTH_MAX) => (len as usize, at),
                    _ => return Err(Stop::Broken(Error::BULK_LENGTH)),
                }
            }
            [other, ..] => return Err(Stop::Broken(Error::Expected(*other))),
        };
        self.at = at;
        self.left -= 1;
        self.pending = len + END;
        Ok(len)
    }

    /// Takes the argument whose length was read.
    #[inline]
    fn pass(&mut self, len: usize) -> Result<&'a [u8], Stop<'a>> {
        let end = self.at + len + END;
        let Some(bytes) = self.input.get(self.at..end) else {
            return Err(Stop::More(end + self.least()));
        };
        self.at = end;
        self.pending = 0;
        Ok(&bytes[..len])
    }

    /// The next argument.
    #[inline]
    pub(super) fn next(&mut self) -> Result<&'a [u8], Stop<'a>> {
        let len = self.length()?;
        if self.at + len > self.reach {
            return Err(Error::ARGUMENTS_TOO_LONG.into());
        }
        self.pass(len)
    }

    /// The next argument, or its first `max` bytes if it is longer.
    pub(super) fn front(&mut self, max: usize) -> Result<&'a [u8], Stop<'a>> {
        let len = self.length()?;
        if len <= max {
            return self.pass(len);
        }
        match self.input.get(self.at..self.at + max) {
            Some(front) => Ok(front),
            None => Err(Stop::More(self.at + max)),
        }
    }

    /// The next argument, which is a key. It has a limit of its own, and does not count among the others.
    #[inline]
    pub(super) fn key(&mut self) -> Result<&'a [u8], Stop<'a>> {
        let len = self.length()?;
        check_key_len(len, self.key_max)?;
        self.reach += len;
        self.pass(len)
    }

    /// The next argument, which is a value that the server may take piece by piece.
    #[inline]
    pub(super) fn value(&mut self, value_max: usize) -> Result<&'a [u8], Stop<'a>> {
        let line = self.at;
        let len = self.length()?;
        if len > value_max {
            return Err(Error::TOO_LARGE.into());
        }
        self.reach += len;
        match self.pass(len) {
            Err(Stop::More(_)) => Err(Stop::Body {
                line,
                value_len: len,
                whole: true,
            }),
            taken => taken,
        }
    }

    /// This many arguments, of those that are left.
    pub(super) fn some(&mut self, count: u32) -> Result<Values<'a>, Stop<'a>> {
        debug_assert!(count <= self.left);
        let mut arguments = *self;
        arguments.left = count;
        for _ in 0..count {
            self.next()?;
        }
        Ok(Values { arguments })
    }

    /// All arguments that are left.
    pub(super) fn values(&mut self) -> Result<Values<'a>, Stop<'a>> {
        let values = Values { arguments: *self };
        while self.left > 0 {
            self.next()?;
        }
        Ok(values)
    }

    /// All arguments that are left. One of them may be as long as a value, beyond the limit of all others: the server may
    /// take it piece by piece.
    pub(super) fn values_of_script(&mut self, value_max: usize) -> Result<Values<'a>, Stop<'a>> {
        let mut values = Values { arguments: *self };
        let reach = self.reach;
        while self.left > 0 {
            let line = self.at;
            let len = self.length()?;
            if self.at + len > self.reach {
                if self.reach > reach {
                    return Err(Error::ARGUMENTS_TOO_LONG.into());
                }
                if len > value_max {
                    return Err(Error::TOO_LARGE.into());
                }
                self.reach += len;
            }
            let is_long = self.reach > reach;
            self.pass(len).map_err(|stop| match stop {
                Stop::More(_) if is_long && values.arguments.reach == reach => Stop::Body {
                    line,
                    value_len: len,
                    whole: false,
                },
                other => other,
            })?;
            values.arguments.reach = self.reach;
        }
        Ok(values)
    }

    /// The least number of bytes of the arguments that are not begun yet. It is bounded: a client that announces many
    /// arguments and never sends them must not make the server keep more input than for any other client.
    pub(super) fn least(&self) -> usize {
        (self.left as usize * ARGUMENT_LEAST).min(AWAITED_AHEAD)
    }

    /// The rest of the request from [`Arguments::at`] on.
    pub(super) fn rest(&self) -> Rest {
        Rest::new(self.left, self.pending)
    }
}

impl<'a> Source<'a> for Arguments<'a> {
    #[inline]
    fn left(&self) -> u32 {
        self.left
    }

    #[inline]
    fn next(&mut self) -> Result<&'a [u8], Stop<'a>> {
        Arguments::next(self)
    }

    #[inline]
    fn key(&mut self) -> Result<&'a [u8], Stop<'a>> {
        Arguments::key(self)
    }

    #[inline]
    fn value(&mut self, value_max: usize) -> Result<&'a [u8], Stop<'a>> {
        Arguments::value(self, value_max)
    }
}

/// A key has at least one byte, and `max` at most.
#[inline]
pub fn check_key_len(len: usize, max: usize) -> Result<(), Error<'static>> {
    match len {
        0 => Err(Error::KEY_EMPTY),
        len if len <= max => Ok(()),
        _ => Err(Error::KeyTooLong(max)),
    }
}

/// The text between the mark at `at` and the line's end, and the index of the next line.
fn line<'a>(input: &'a [u8], at: usize, error: Error<'a>) -> Result<(&'a [u8], usize), Stop<'a>> {
    let here = input.get(at..).unwrap_or_default();
    let window = &here[..here.len().min(NUMBER_LINE_MAX)];
    match memchr(b'\r', window) {
        Some(end) if end + END <= here.len() => {
            Ok((window.get(1..end).unwrap_or_default(), at + end + END))
        }
        Some(end) => Err(Stop::More(at + end + END)),
        None if window.len() < NUMBER_LINE_MAX => Err(Stop::More(at + here.len() + 1)),
        None => Err(Stop::Broken(error)),
    }
}

/// Arguments that have all arrived.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    arguments: Arguments<'a>,
}

impl Values<'_> {
    /// Which of them has its length at index `line` of the input.
    pub fn position(mut self, line: usize) -> Option<usize> {
        let count = self.len();
        while self.len() > 0 {
            if self.arguments.at == line {
                return Some(count - self.len());
            }
            self.next()?;
        }
        None
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.arguments.left == 0 {
            return None;
        }
        self.arguments.next().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.arguments.left as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Values<'_> {}

impl PartialEq for Values<'_> {
    fn eq(&self, other: &Self) -> bool {
        (*self).eq(*other)
    }
}

impl Eq for Values<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> Result<Vec<&[u8]>, Stop<'_>> {
        let mut arguments = Arguments::of(input)?;
        let mut taken = Vec::new();
        while arguments.left > 0 {
            taken.push(arguments.next()?);
        }
        Ok(taken)
    }

    #[test]
    fn arguments_come_in_order() {
        let input = b"*3\r\n$3\r\nGET\r\n$0\r\n\r\n$12\r\nabc\r\ndef\0ghi\r\n";
        let expected = [&b"GET"[..], b"", b"abc\r\ndef\0ghi"];
        assert_eq!(all(input), Ok(expected.to_vec()));
        let long = [b"*1\r\n$300\r\n", &[b'x'; 300][..], b"\r\n"].concat();
        assert_eq!(all(&long), Ok(vec![&[b'x'; 300][..]]));
        let many = [&b"*11\r\n"[..], &b"$1\r\na\r\n".repeat(11)].concat();
        assert_eq!(all(&many).map(|all| all.len()), Ok(11));
    }

    #[test]
    fn a_count_below_one_is_no_request() {
        for input in [&b"*0\r\n"[..], b"*-1\r\n", b"*-9223372036854775808\r\n"] {
            let arguments = Arguments::of(input).unwrap();
            assert_eq!((arguments.left, arguments.at), (0, input.len()));
        }
    }

    #[test]
    fn what_is_no_number_breaks_the_protocol() {
        for (input, error) in [
            (&b"*a\r\n"[..], Error::MULTIBULK_LENGTH),
            (b"*\r\n", Error::MULTIBULK_LENGTH),
            (b"*2147483648\r\n", Error::MULTIBULK_LENGTH),
            (b"*01\r\n", Error::MULTIBULK_LENGTH),
            (b"*+1\r\n", Error::MULTIBULK_LENGTH),
            (
                b"*11111111111111111111111111111111",
                Error::MULTIBULK_LENGTH,
            ),
            (b"*1\r\n$-1\r\n", Error::BULK_LENGTH),
            (b"*1\r\n$\r\n", Error::BULK_LENGTH),
            (b"*1\r\n$00\r\n", Error::BULK_LENGTH),
            (b"*1\r\n$ 1\r\n", Error::BULK_LENGTH),
            (b"*1\r\n$536870913\r\n", Error::BULK_LENGTH),
            (b"*1\r\nGET\r\n", Error::Expected(b'G')),
            (b"*2\r\n$1\r\na\r\n:1\r\n", Error::Expected(b':')),
        ] {
            assert_eq!(all(input), Err(Stop::Broken(error)), "{input:?}");
        }
    }

    #[test]
    fn what_is_cut_off_says_what_it_waits_for() {
        let whole = b"*3\r\n$3\r\nSET\r\n$10\r\n0123456789\r\n$0\r\n\r\n";
        for cut in 1..whole.len() {
            let Err(Stop::More(needed)) = all(&whole[..cut]) else {
                panic!("cut at {cut}");
            };
            assert!(cut < needed && needed <= whole.len(), "{cut} {needed}");
        }
    }

    #[test]
    fn arguments_have_a_limit() {
        let longest = ARGUMENTS_LEN_MAX - b"*1\r\n$65526\r\n".len();
        for (len, fits) in [(longest, true), (longest + 1, false)] {
            let head = format!("*1\r\n${len}\r\n");
            let input = [head.as_bytes(), &vec![b'x'; len], b"\r\n"].concat();
            assert_eq!(all(&input).is_ok(), fits, "{len}");
        }
        let announced = b"*1\r\n$500000000\r\n";
        assert_eq!(
            all(announced),
            Err(Stop::Refused(Error::ARGUMENTS_TOO_LONG))
        );
    }
}
