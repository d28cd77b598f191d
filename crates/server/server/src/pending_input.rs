//! Input of a connection that was read and not used up: an incomplete request, or requests that wait for their turn.
//!
//! An incomplete request may arrive in any number of pieces. Each byte is moved and searched a bounded number of times.
//! A piece that completes nothing is appended to the waiting bytes, and no parser looks at the whole. Waiting bytes are
//! copied only to stand before a piece that is at least as long.

use std::mem;

use nuthatch_base::memory::reserve::spare;
use nuthatch_protocol::Awaited;

/// Unused input.
#[derive(Default)]
pub(crate) struct PendingInput {
    bytes: Vec<u8>,
    /// `bytes[..start]` is used up.
    start: usize,
    /// The bytes that must arrive before the parser looks at the input again.
    awaited: Awaited,
}

/// Where the input is, now that more of it has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// All of it goes on waiting.
    Incomplete,
    /// The waiting bytes were copied to the place before the bytes that arrived. Their buffer is empty now.
    Before(Vec<u8>),
    /// There is no memory for the bytes that arrived.
    NoMemory,
    /// The bytes that arrived were appended to this buffer. The unused input begins at this index.
    Behind(Vec<u8>, usize),
}

impl PendingInput {
    /// The unused input is `bytes[start..]`.
    pub(crate) fn new(bytes: Vec<u8>, start: usize, awaited: Awaited) -> Self {
        Self {
            bytes,
            start,
            awaited,
        }
    }

    /// The same with a copy of the unused input. `None`: there is no memory for it.
    pub(crate) fn copy_of(rest: &[u8], awaited: Awaited) -> Option<Self> {
        let mut bytes = Vec::new();
        spare(|| bytes.try_reserve_exact(rest.len())).ok()?;
        bytes.extend_from_slice(rest);
        Some(Self::new(bytes, 0, awaited))
    }

    /// Number of bytes that wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Bytes of memory.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// The buffer, and where in it the unused input begins.
    pub(crate) fn take(&mut self) -> (Vec<u8>, usize) {
        let Self { bytes, start, .. } = mem::take(self);
        (bytes, start)
    }

    /// Takes the bytes that arrived. `place` is as long as the waiting bytes, and lies in memory just before `arrived`.
    pub(crate) fn join(&mut self, place: &mut [u8], arrived: &[u8]) -> Joined {
        let is_complete = self.awaited.has_come(self.len(), arrived);
        let is_appended = !is_complete || arrived.len() < place.len();
        if is_appended && spare(|| self.bytes.try_reserve(arrived.len())).is_err() {
            return Joined::NoMemory;
        }
        if !is_complete {
            self.bytes.extend_from_slice(arrived);
            return Joined::Incomplete;
        }
        let (mut bytes, start) = self.take();
        if is_appended {
            bytes.extend_from_slice(arrived);
            return Joined::Behind(bytes, start);
        }
        place.copy_from_slice(&bytes[start..]);
        bytes.clear();
        Joined::Before(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_protocol::{Limits, Parsed, awaited, awaited_block, parse};

    /// Gives `request` in pieces of this size to a connection, and returns how many bytes were copied
    /// and how many were searched until it was complete.
    fn work(request: &[u8], piece: usize) -> (usize, usize) {
        let limits = Limits::of_values(1 << 20);
        let mut waiting = PendingInput::default();
        let mut buffer = vec![0; 2 * request.len()];
        let (mut copied, mut searched) = (0, 0);
        for arrived in request.chunks(piece) {
            searched += arrived.len();
            let (place, behind) = buffer.split_at_mut(waiting.len());
            behind[..arrived.len()].copy_from_slice(arrived);
            let length = place.len() + arrived.len();
            let input = match waiting.join(place, arrived) {
                Joined::Incomplete => {
                    copied += arrived.len();
                    continue;
                }
                Joined::NoMemory => unreachable!("there is memory"),
                Joined::Before(_) => {
                    copied += length - arrived.len();
                    &buffer[..length]
                }
                Joined::Behind(bytes, start) => {
                    copied += arrived.len();
                    buffer[..length].copy_from_slice(&bytes[start..]);
                    &buffer[..length]
                }
            };
            searched += length;
            let awaited = match parse(input, &limits) {
                Parsed::Incomplete => awaited(input),
                Parsed::Body {
                    line, value_len, ..
                } => awaited_block(line, value_len),
                _ => {
                    assert_eq!(input, request);
                    return (copied, searched);
                }
            };
            copied += length;
            waiting = PendingInput::new(input.to_vec(), 0, awaited);
        }
        panic!("the request is complete");
    }

    #[test]
    fn the_work_for_a_request_grows_with_its_length_whatever_its_pieces() {
        let get = [&b"get"[..], &b" some:key"[..].repeat(200), b"\r\n"].concat();
        let set = [b"set k 0 0 16384\r\n", &[b'v'; 16_384][..], b"\r\n"].concat();
        for request in [get, set] {
            for piece in [1, 2, 3, 100, 1448, 9000, 65_536, request.len()] {
                let (copied, searched) = work(&request, piece);
                assert!(copied <= 3 * request.len(), "{piece}: {copied}");
                assert!(searched <= 5 * request.len(), "{piece}: {searched}");
            }
        }
    }

    #[test]
    fn what_waits_stands_before_what_arrives() {
        let any = |bytes: &[u8]| PendingInput::new(bytes.to_vec(), 2, Awaited::default());
        let mut waiting = any(b"--get");
        let mut place = [0; 3];
        let joined = waiting.join(&mut place, b" a\r\n");
        assert!(matches!(joined, Joined::Before(buffer) if buffer.is_empty()));
        assert_eq!((&place, waiting.len()), (b"get", 0));
        let joined = any(b"--get a\r").join(&mut [0; 6], b"\n");
        assert_eq!(joined, Joined::Behind(b"--get a\r\n".to_vec(), 2));
    }
}
