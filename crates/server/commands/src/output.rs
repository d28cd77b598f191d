//! A connection's output: replies that are not on the wire yet.
//!
//! ```text
//!  bytes  |.. sent ..|VALUE a 0 3\r\nabc\r\nVALUE big 0 90000\r\n|\r\nEND\r\n|
//!                                                                ^ at
//!  pins                                       the value of "big", where it lies in the engine
//! ```
//!
//! The engine copies small values into `bytes`. Large values stay where they are, pinned, and are written to the socket
//! from there.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::mem::MaybeUninit;
use std::ops::Range;

use nuthatch_engine::Value;

/// Pieces handed to one vectored write.
const PIECES_MAX: usize = 32;

/// Unsent replies of one connection.
pub struct Output<V> {
    bytes: Vec<u8>,
    /// `bytes[..sent]` is on the wire.
    sent: usize,
    pins: VecDeque<Pin<V>>,
    /// Unsent bytes of all pins.
    pinned: usize,
    /// Bytes of memory that belong to pinned values alone.
    pinned_memory: usize,
    /// Where the header of a value under construction starts.
    header: usize,
    /// Bytes that the engine will write behind `bytes`.
    promised: usize,
}

/// A value that is sent from its place in the engine, before `bytes[at]`.
struct Pin<V> {
    at: usize,
    value: V,
    /// Its bytes before this one are on the wire, or are not sent.
    sent: usize,
    /// Its bytes from here on are not sent.
    end: usize,
}

impl<V> Pin<V> {
    /// Unsent bytes.
    fn left(&self) -> usize {
        self.end - self.sent
    }
}

/// The end of an output at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    bytes: usize,
    pins: usize,
}

/// How far a write got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// All is on the wire.
    All,
    /// The socket takes no more for now.
    Blocked,
}

impl<V> Default for Output<V> {
    fn default() -> Self {
        Self::with_buffer(Vec::new())
    }
}

impl<V> Output<V> {
    /// An empty output that uses this empty buffer.
    pub fn with_buffer(bytes: Vec<u8>) -> Self {
        debug_assert!(bytes.is_empty());
        Self {
            bytes,
            sent: 0,
            pins: VecDeque::new(),
            pinned: 0,
            pinned_memory: 0,
            header: 0,
            promised: 0,
        }
    }

    /// Returns the buffer for reuse. Call this only when all is sent.
    pub fn into_buffer(self) -> Vec<u8> {
        debug_assert!(self.is_empty());
        let mut bytes = self.bytes;
        bytes.clear();
        bytes
    }

    /// Unsent bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.pinned
    }

    /// Unsent bytes that take memory here, in contrast to values that stay in the engine.
    #[inline]
    pub fn copied(&self) -> usize {
        self.bytes.len() - self.sent + self.pinned_memory
    }

    /// Unsent bytes of values that stay in the engine.
    #[inline]
    pub fn pinned(&self) -> usize {
        self.pinned
    }

    /// Bytes of memory that it holds, without those of values that stay in the engine.
    #[inline]
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.pins.capacity() * size_of::<Pin<V>>() + self.pinned_memory
    }

    /// The position of the next byte of text.
    pub fn end(&self) -> usize {
        self.bytes.len()
    }

    /// The text from this position on, which must not be on the wire yet.
    pub fn since(&self, from: usize) -> &[u8] {
        &self.bytes[from.min(self.bytes.len())..]
    }

    /// True if a pinned value comes before this byte of text.
    pub fn is_pinned_at(&self, at: usize) -> bool {
        self.pins.binary_search_by_key(&at, |pin| pin.at).is_ok()
    }

    /// True if nothing waits to be sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where text replies are appended.
    #[inline]
    pub fn text(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Begins a value: `header` writes the bytes that precede it. Returns the room for its `len` bytes.
    #[inline]
    pub fn begin(
        &mut self,
        len: usize,
        header: impl FnOnce(&mut Vec<u8>),
    ) -> &mut [MaybeUninit<u8>] {
        self.header = self.bytes.len();
        self.promised = len;
        header(&mut self.bytes);
        // Room for a line end and for "END\r\n" too, so that neither grows the buffer.
        self.bytes.reserve(len + 8);
        &mut self.bytes.spare_capacity_mut()[..len]
    }

    /// The value begun last is complete.
    ///
    /// # Safety
    /// All bytes of the room that the last `begin` returned have been written, and nothing else
    /// was called on this output since.
    #[inline]
    pub unsafe fn commit(&mut self) {
        let len = self.bytes.len() + self.promised;
        self.promised = 0;
        // SAFETY: `begin` reserved the room behind the length, and the caller wrote all of it.
        unsafe { self.bytes.set_len(len) };
    }

    /// Drops the value begun last, with its header.
    pub fn retract(&mut self) {
        self.promised = 0;
        self.bytes.truncate(self.header);
    }
}

impl<V: Value> Output<V> {
    /// Appends a value that stays in the engine, without anything before or after it.
    pub fn pin(&mut self, value: V) {
        let all = 0..value.len();
        self.pin_part(value, all);
    }

    /// The same with some bytes of a value only.
    pub fn pin_part(&mut self, value: V, part: Range<usize>) {
        self.insert(self.bytes.len(), value, part);
    }

    /// Inserts a value that stays in the engine before a byte of text that is not on the wire. All values that are
    /// pinned are before it.
    pub fn pin_at(&mut self, at: usize, value: V) {
        let all = 0..value.len();
        self.insert(at, value, all);
    }

    fn insert(&mut self, at: usize, value: V, part: Range<usize>) {
        debug_assert!(at >= self.sent && self.pins.back().is_none_or(|last| last.at <= at));
        if !part.is_empty() {
            self.pinned += part.len();
            self.pinned_memory += value.memory();
            self.pins.push_back(Pin {
                at,
                value,
                sent: part.start,
                end: part.end,
            });
        }
    }

    /// The present end, for [`cut`](Self::cut).
    pub fn mark(&self) -> Mark {
        Mark {
            bytes: self.bytes.len(),
            pins: self.pins.len(),
        }
    }

    /// Drops what was appended since the mark, of which nothing has been written.
    pub fn cut(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        for pin in self.pins.drain(mark.pins..) {
            self.pinned -= pin.left();
            self.pinned_memory -= pin.value.memory();
        }
    }

    /// Writes as much as the socket takes, and adds the bytes written to `count`.
    pub fn write_to(&mut self, stream: &mut impl Write, count: &mut u64) -> io::Result<Written> {
        while !self.is_empty() {
            let wanted;
            let result = if self.pins.is_empty() {
                wanted = self.bytes.len() - self.sent;
                stream.write(&self.bytes[self.sent..])
            } else {
                let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
                let used = self.gather(&mut pieces);
                wanted = pieces[..used].iter().map(|piece| piece.len()).sum();
                stream.write_vectored(&pieces[..used])
            };
            match result {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    *count += written as u64;
                    self.advance(written);
                    if written < wanted {
                        return Ok(Written::Blocked);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Written::Blocked),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Written::All)
    }

    /// Collects the next unsent pieces in order and returns their number.
    fn gather<'a>(&'a self, pieces: &mut [IoSlice<'a>; PIECES_MAX]) -> usize {
        let mut used = 0;
        let mut from = self.sent;
        for pin in &self.pins {
            if from < pin.at && used < PIECES_MAX {
                pieces[used] = IoSlice::new(&self.bytes[from..pin.at]);
                used += 1;
            }
            from = pin.at;
            let mut offset = pin.sent;
            while offset < pin.end && used < PIECES_MAX {
                let chunk = pin.value.chunk(offset);
                let chunk = &chunk[..chunk.len().min(pin.end - offset)];
                pieces[used] = IoSlice::new(chunk);
                used += 1;
                offset += chunk.len();
            }
            if used == PIECES_MAX {
                return used;
            }
        }
        if from < self.bytes.len() {
            pieces[used] = IoSlice::new(&self.bytes[from..]);
            used += 1;
        }
        used
    }

    /// `count` more bytes are on the wire.
    fn advance(&mut self, mut count: usize) {
        while let Some(pin) = self.pins.front_mut() {
            let before = (pin.at - self.sent).min(count);
            self.sent += before;
            count -= before;
            if self.sent < pin.at {
                return;
            }
            let of_value = pin.left().min(count);
            pin.sent += of_value;
            self.pinned -= of_value;
            count -= of_value;
            if pin.left() > 0 {
                return;
            }
            // All its bytes are in the kernel: unpin it, so that the engine can reuse its memory.
            self.pinned_memory -= pin.value.memory();
            self.pins.pop_front();
        }
        self.sent += count;
        debug_assert!(self.sent <= self.bytes.len());
    }

    /// Frees the memory that a waiting connection does not need: sent bytes and spare room.
    pub fn shrink(&mut self) {
        self.bytes.drain(..self.sent);
        for pin in &mut self.pins {
            pin.at -= self.sent;
        }
        self.sent = 0;
        if self.bytes.capacity() > 2 * self.bytes.len() + 1024 {
            self.bytes.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value in pieces of up to 3 bytes.
    struct Pieces(Vec<u8>);

    impl Value for Pieces {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn chunk(&self, offset: usize) -> &[u8] {
            let end = (offset / 3 * 3 + 3).min(self.0.len());
            &self.0[offset..end]
        }

        fn memory(&self) -> usize {
            self.0.len()
        }
    }

    /// A socket that takes this many bytes per call, and after each call takes none once.
    struct Slow {
        a_call: usize,
        taken: Vec<u8>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.a_call);
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            let mut left = self.a_call;
            for piece in pieces {
                let count = piece.len().min(left);
                self.taken.extend_from_slice(&piece[..count]);
                left -= count;
            }
            Ok(self.a_call - left)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn filled() -> (Output<Pieces>, Vec<u8>) {
        let mut output = Output::default();
        let mut expected = Vec::new();
        for round in 0..40 {
            let text = format!("head {round} ");
            output.text().extend_from_slice(text.as_bytes());
            expected.extend_from_slice(text.as_bytes());
            if round % 3 != 0 {
                let value: Vec<u8> = (0..round).collect();
                expected.extend_from_slice(&value);
                output.pin(Pieces(value.clone()));
                let part = value.len() / 4..value.len() / 2;
                expected.extend_from_slice(&value[part.clone()]);
                output.pin_part(Pieces(value), part);
                let hole = output.end();
                output.text().extend_from_slice(b" behind ");
                output.pin_at(hole, Pieces(vec![7; 5]));
                expected.extend_from_slice(&[7; 5]);
                expected.extend_from_slice(b" behind ");
            }
        }
        (output, expected)
    }

    #[test]
    fn all_bytes_arrive_in_order_however_the_socket_cuts_them() {
        for a_call in [1, 2, 3, 7, 64, 1000, 100_000] {
            let (mut output, expected) = filled();
            assert_eq!(output.len(), expected.len());
            let mut socket = Slow {
                a_call,
                taken: Vec::new(),
            };
            let mut count = 0;
            while output.write_to(&mut socket, &mut count).unwrap() == Written::Blocked {
                output.shrink();
                assert_eq!(output.len(), expected.len() - count as usize);
            }
            assert_eq!(socket.taken, expected);
            assert_eq!(count as usize, expected.len());
            assert!(output.is_empty() && output.pins.is_empty());
            assert_eq!(output.pinned_memory, 0);
        }
    }

    #[test]
    fn values_with_memory_of_their_own_count_until_they_are_sent() {
        let mut output: Output<Pieces> = Output::default();
        output.pin(Pieces(vec![7; 1000]));
        output.pin(Pieces(vec![7; 500]));
        assert!(output.memory() >= 1500);
        assert_eq!(output.copied(), 1500);
        let mut socket = Slow {
            a_call: 50,
            taken: Vec::new(),
        };
        let mut count = 0;
        while output.write_to(&mut socket, &mut count).unwrap() == Written::Blocked {
            assert_eq!(output.copied(), if count < 1000 { 1500 } else { 500 });
        }
        assert_eq!((count, output.copied()), (1500, 0));
    }

    #[test]
    fn what_is_cut_is_not_sent() {
        let (mut output, expected) = filled();
        let memory = output.pinned_memory;
        let mark = output.mark();
        output.text().extend_from_slice(b"unwanted ");
        output.pin(Pieces(vec![7; 100]));
        output.text().extend_from_slice(b"too");
        output.cut(mark);
        assert_eq!(
            (output.len(), output.pinned_memory),
            (expected.len(), memory)
        );
        let mut socket = Slow {
            a_call: 1 << 20,
            taken: Vec::new(),
        };
        let mut count = 0;
        assert_eq!(
            output.write_to(&mut socket, &mut count).unwrap(),
            Written::All
        );
        assert_eq!(socket.taken, expected);
    }

    #[test]
    fn a_retracted_value_leaves_nothing() {
        let mut output: Output<Pieces> = Output::default();
        output.text().extend_from_slice(b"before ");
        output.begin(100, |bytes| bytes.extend_from_slice(b"VALUE k 0 100\r\n"));
        output.retract();
        let room = output.begin(3, |bytes| bytes.extend_from_slice(b"VALUE k 0 3\r\n"));
        for (place, byte) in room.iter_mut().zip(b"abc") {
            place.write(*byte);
        }
        // SAFETY: the three bytes asked for were written just above.
        unsafe { output.commit() };
        assert_eq!(output.text(), b"before VALUE k 0 3\r\nabc");
    }
}
