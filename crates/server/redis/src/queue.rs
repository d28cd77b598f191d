//! Queued requests: those of a transaction, and a line that was typed by hand.
//!
//! ```text
//!  chunks  |len|request|len|request|..   |len|request|..
//!              ^ used
//! ```
//!
//! Requests lie one behind the other in chunks, so a million short ones take hardly more memory than their bytes, and
//! neither their memory nor their end costs work for each.

use std::collections::{TryReserveError, VecDeque};

use nuthatch_base::memory::reserve::spare;

/// Bytes of a chunk, unless a single request is longer.
const CHUNK: usize = 64 << 10;

/// A chunk grows by this many bytes at most, unless a request needs more.
const GROWTH_MAX: usize = CHUNK / 8;

/// Bytes of the length in front of a request.
const LEN: usize = size_of::<u64>();

/// Requests in the order in which they are executed.
#[derive(Default)]
pub struct Queue {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of memory of all chunks.
    held: usize,
    /// Where the length of the first request begins, in the first chunk.
    at: usize,
    /// Bytes of the first request that are used up.
    used: usize,
    /// Requests.
    count: usize,
}

impl Queue {
    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.held + self.chunks.capacity() * size_of::<Vec<u8>>()
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends a request. Errors: there is no memory for it, and nothing has changed.
    pub fn push(&mut self, request: &[u8]) -> Result<(), TryReserveError> {
        let needed = LEN + request.len();
        let has_room = |chunk: &Vec<u8>| chunk.len() + needed <= CHUNK;
        if !self.chunks.back().is_some_and(has_room) {
            let mut chunk = Vec::new();
            spare(|| chunk.try_reserve_exact(needed))?;
            spare(|| self.chunks.try_reserve(1))?;
            self.held += chunk.capacity();
            self.chunks.push_back(chunk);
        }
        if let Some(chunk) = self.chunks.back_mut() {
            let before = chunk.capacity();
            // As `Vec` grows, but by a part of a chunk at most: what is reserved and not used counts, too.
            if chunk.capacity() - chunk.len() < needed {
                let growth = needed.max(chunk.capacity().min(GROWTH_MAX));
                spare(|| chunk.try_reserve_exact(growth))?;
            }
            chunk.extend_from_slice(&(request.len() as u64).to_le_bytes());
            chunk.extend_from_slice(request);
            self.held += chunk.capacity() - before;
            self.count += 1;
        }
        Ok(())
    }

    /// What is left of the first request.
    pub fn front(&self) -> Option<&[u8]> {
        let (len, behind) = self.chunks.front()?[self.at..].split_first_chunk::<LEN>()?;
        Some(&behind[self.used..u64::from_le_bytes(*len) as usize])
    }

    /// This many more bytes of the first request are used up.
    pub fn advance(&mut self, count: usize) {
        self.used += count;
    }

    /// Removes the first request.
    pub fn pop(&mut self) {
        let Some(left) = self.front().map(<[u8]>::len) else {
            return;
        };
        self.at += LEN + self.used + left;
        self.used = 0;
        self.count -= 1;
        if let Some(chunk) = self.chunks.pop_front_if(|chunk| chunk.len() == self.at) {
            self.held -= chunk.capacity();
            self.at = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_out_in_order_and_their_memory_goes_with_them() {
        let mut queue = Queue::default();
        let request = |number: usize| vec![number as u8; number * 7919 % 300 + number % 50 * 2000];
        for number in 0..500 {
            queue.push(&request(number)).unwrap();
        }
        let bytes: usize = (0..500).map(|number| request(number).len()).sum();
        assert!(queue.memory() >= bytes && queue.memory() < 3 * bytes);
        for number in 0..500 {
            assert_eq!(queue.len(), 500 - number);
            let (expected, used) = (request(number), number % 3);
            let used = used.min(expected.len());
            queue.advance(used);
            assert_eq!(queue.front(), Some(&expected[used..]));
            queue.pop();
        }
        assert!(queue.is_empty() && queue.front().is_none());
        assert_eq!(queue.held, 0);
    }

    #[test]
    fn many_short_requests_take_little_more_than_their_bytes() {
        let mut queue = Queue::default();
        let ping = b"*1\r\n$4\r\nPING\r\n";
        for _ in 0..100_000 {
            queue.push(ping).unwrap();
        }
        assert!(queue.memory() < 2 * 100_000 * (ping.len() + LEN));
        assert!(queue.chunks.len() < 100);
    }
}
