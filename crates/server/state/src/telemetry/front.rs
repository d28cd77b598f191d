//! The front of a client's last request, from which CLIENT LIST tells its command.
//!
//! Its worker copies the bytes as they are, which costs a few instructions for each turn; who asks parses them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are kept: enough for the name of every command with its subcommand.
const LEN: usize = 48;

const WORD: usize = size_of::<u64>();

/// The first bytes of a request, with zeros behind a shorter one. One thread writes it.
#[derive(Default)]
pub struct Front([AtomicU64; LEN / WORD]);

impl Front {
    /// Notes a request.
    #[inline]
    pub fn note(&self, request: &[u8]) {
        match request.first_chunk::<LEN>() {
            Some(front) => self.set(front),
            None => self.note_short(request),
        }
    }

    fn note_short(&self, request: &[u8]) {
        let mut front = [0; LEN];
        front[..request.len()].copy_from_slice(request);
        self.set(&front);
    }

    #[inline]
    fn set(&self, front: &[u8; LEN]) {
        for (place, bytes) in self.0.iter().zip(front.as_chunks::<WORD>().0) {
            // Relaxed: a statistic. Who reads meanwhile may see parts of two requests, and finds another command or none.
            place.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
    }

    /// The request's first bytes.
    pub fn read(&self) -> [u8; LEN] {
        let mut front = [0; LEN];
        for (place, bytes) in self.0.iter().zip(front.as_chunks_mut::<WORD>().0) {
            // Relaxed: see `set`.
            *bytes = place.load(Ordering::Relaxed).to_ne_bytes();
        }
        front
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_of_the_last_request_is_kept() {
        let front = Front::default();
        front.note(&[b'x'; 100]);
        assert_eq!(front.read(), [b'x'; LEN]);
        front.note(b"*1\r\n$4\r\nPING\r\n");
        assert!(front.read().starts_with(b"*1\r\n$4\r\nPING\r\n\0"));
        assert!(
            front.read().ends_with(b"\0\0"),
            "nothing is left of the one before"
        );
    }
}
