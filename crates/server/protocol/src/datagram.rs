//! The frames of memcached's UDP: a request is one datagram, its answer one or more.
//!
//! ```text
//!   0        2         4        6         8
//!  | request | number  | of so  | 0       | text
//!  | id      | (from 0)| many   |         |
//! ```
//!
//! All numbers are big endian. A client matches answers to requests by the id, and puts the datagrams of an answer in
//! order by the numbers.

use crate::binary;

/// Bytes of the frame's header.
pub const HEADER: usize = 8;

/// The most bytes of a datagram that is sent, with its header: it fits into one Ethernet frame, as memcached's does.
pub const FRAME: usize = 1400;

/// The id of a datagram's request, and where its text begins. `None` if the datagram is cut, empty, an answer, or a
/// part of a longer request, which is not supported.
pub fn parse(datagram: &[u8]) -> Option<(u16, usize)> {
    let (header, text) = datagram.split_at_checked(HEADER)?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    // The last two bytes are reserved for later versions.
    let is_whole = number(2) == 0 && number(4) == 1 && may_ask(text);
    is_whole.then_some((number(0), HEADER))
}

/// False for every answer that a server of memcached's protocols sends: an answer begins with a capital, a digit, or
/// the magic byte of the binary protocol's responses. Otherwise a server would answer an answer, and that would be
/// answered as well: a datagram with the forged address of another server would make the two answer each other for
/// ever.
fn may_ask(text: &[u8]) -> bool {
    text.first()
        .is_some_and(|first| first.is_ascii_lowercase() || *first == binary::MAGIC)
}

/// Cuts an answer into frames.
pub struct Frames {
    request: u16,
    number: u16,
    of: u16,
    frame: Vec<u8>,
}

impl Frames {
    /// For an answer of `len` bytes to that request. It must fit into fewer than 65,535 frames.
    pub fn new(request: u16, len: usize) -> Self {
        let count = len.div_ceil(FRAME - HEADER);
        let mut frames = Self {
            request,
            number: 0,
            of: u16::try_from(count).unwrap_or(u16::MAX),
            frame: Vec::with_capacity(FRAME),
        };
        frames.begin();
        frames
    }

    fn begin(&mut self) {
        self.frame.clear();
        for number in [self.request, self.number, self.of, 0] {
            self.frame.extend_from_slice(&number.to_be_bytes());
        }
    }

    /// Takes the next bytes of the answer, and sends each frame that is full.
    pub fn take<E>(
        &mut self,
        mut bytes: &[u8],
        mut send: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            let room = FRAME - self.frame.len();
            let (here, later) = bytes.split_at(bytes.len().min(room));
            self.frame.extend_from_slice(here);
            bytes = later;
            if self.frame.len() == FRAME {
                self.end(&mut send)?;
            }
        }
        Ok(())
    }

    /// Sends the rest: the last frame, which may be shorter.
    pub fn end<E>(&mut self, send: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.frame.len() > HEADER {
            send(&self.frame)?;
            self.number = self.number.wrapping_add(1);
            self.begin();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_requests_are_taken() {
        assert_eq!(parse(b"\x12\x34\0\0\0\x01\0\0get a\r\n"), Some((0x1234, 8)));
        assert_eq!(parse(b"\x12\x34\0\0\0\x01\0\x09x"), Some((0x1234, 8)));
        for other in [
            &b""[..],
            b"\0\x01\0\0\0\x01\0",
            b"\0\x01\0\0\0\x01\0\0",
            b"\0\x01\0\x01\0\x01\0\0get a\r\n",
            b"\0\x01\0\0\0\0\0\0get a\r\n",
            b"\0\x01\0\0\0\x02\0\0get a\r\n",
            b"get a\r\n",
            // Answers.
            b"\0\x01\0\0\0\x01\0\0ERROR\r\n",
            b"\0\x01\0\0\0\x01\0\0VALUE a 0 5\r\nget b\r\nEND\r\n",
            b"\0\x01\0\0\0\x01\0\x0012\r\n",
            b"\0\x01\0\0\0\x01\0\0\x81\0",
        ] {
            assert_eq!(parse(other), None, "{other:?}");
        }
    }
}
