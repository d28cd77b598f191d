//! One direction: a ring of bytes. Two counters say how many bytes were ever written (tail) and read (head); their
//! difference is what waits. They run for ever, so a full ring and an empty one differ.
//!
//! Invariants:
//!
//! 1. Bytes below the tail are whole: who has loaded a tail sees the bytes below it.
//! 2. Bytes are overwritten only below the head: the reader has copied them.
//! 3. A side uses its own counter out of its own memory, and the other's only between its own counter and the ring's size
//!    away from it, never below what it has seen before. So whatever the other side stores, every access is in the ring.
//!
//! All bytes of a call are published by one store, as many as there are. So a cache line that holds several small messages
//! goes to the other core once, which is why CPHash packs messages into lines before it publishes them.
//!
//! Bytes are moved in words, by relaxed accesses: the other process may write anything at any time, and a torn value is
//! no more than bytes that it could have sent anyway. A writer changes words of which the reader reads other bytes at this
//! moment, and leaves these as they are.

use std::sync::Arc;

use nuthatch_base::memory::Mapped;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use crate::{APART, Broken, HEAD, Side};

const WORD: usize = size_of::<u64>();

/// Memory of both directions.
pub type Memory = Arc<Mapped<AtomicU64>>;

/// Words for two rings of so many bytes each.
pub const fn words(bytes: usize) -> usize {
    HEAD + 2 * bytes / WORD
}

/// What both ends of a direction know of it.
struct Ring {
    memory: Memory,
    tail: usize,
    head: usize,
    /// The first word of its bytes.
    start: usize,
    bytes: usize,
}

impl Ring {
    /// Number `number` of two in the memory.
    ///
    /// # Panics
    ///
    /// If the rings' size is no power of two, or smaller than a word.
    fn of(memory: Memory, number: usize) -> Self {
        let bytes = (memory.len() - HEAD) / 2 * WORD;
        assert!(bytes.is_power_of_two() && bytes >= WORD);
        Self {
            memory,
            tail: 2 * number * APART,
            head: (2 * number + 1) * APART,
            start: HEAD + number * bytes / WORD,
            bytes,
        }
    }

    /// The word that has the byte of this number, and the byte's place in it.
    #[inline]
    fn place(&self, byte: u64) -> (&AtomicU64, usize) {
        let at = byte as usize & (self.bytes - 1);
        (&self.memory[self.start + at / WORD], at % WORD)
    }
}

/// Checks a counter of the other side: it is at most `max` beyond `from`, and not below `seen`, which was checked before.
#[inline]
fn checked(claimed: u64, from: u64, seen: u64, max: usize) -> Result<u64, Broken> {
    let (ahead, before) = (claimed.wrapping_sub(from), seen.wrapping_sub(from));
    match ahead <= max as u64 && ahead >= before {
        true => Ok(claimed),
        false => Err(Broken),
    }
}

/// The end that reads.
pub struct Consumer {
    ring: Ring,
    /// Bytes read.
    head: u64,
    /// The other side's tail, when it was last looked at.
    tail: u64,
}

impl Consumer {
    /// That of a side of fresh memory.
    pub fn new(memory: Memory, side: Side) -> Self {
        Self {
            ring: Ring::of(memory, side.other().writes()),
            head: 0,
            tail: 0,
        }
    }

    /// True if bytes wait, or the other side claims nonsense, which the next read says.
    #[inline]
    pub fn is_ready(&self) -> bool {
        // Relaxed: a read looks again.
        self.ring.memory[self.ring.tail].load(Ordering::Relaxed) != self.head
    }

    /// Moves bytes into `room`, as many as wait and fit. 0 if there are none, or no room.
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize, Broken> {
        let ring = &self.ring;
        // Acquire: pairs with the Release store of `Producer::write` (invariant 1).
        let claimed = ring.memory[ring.tail].load(Ordering::Acquire);
        self.tail = checked(claimed, self.head, self.tail, ring.bytes)?;
        let waiting = self.tail.wrapping_sub(self.head) as usize;
        let len = waiting.min(room.len());
        if len == 0 {
            return Ok(0);
        }
        let mut rest = &mut room[..len];
        while !rest.is_empty() {
            let (word, from) = ring.place(self.head);
            let value = word.load(Ordering::Relaxed).to_le_bytes();
            let count = rest.len().min(WORD - from);
            let (part, behind) = rest.split_at_mut(count);
            match part.first_chunk_mut() {
                Some(whole) => *whole = value,
                None => part.copy_from_slice(&value[from..from + count]),
            }
            self.head = self.head.wrapping_add(count as u64);
            rest = behind;
        }
        // Release: pairs with the Acquire load of `Producer::room` (invariant 2).
        ring.memory[ring.head].store(self.head, Ordering::Release);
        Ok(len)
    }
}

/// The end that writes.
pub struct Producer {
    ring: Ring,
    /// Bytes written.
    tail: u64,
    /// The other side's head, when it was last looked at.
    head: u64,
}

impl Producer {
    /// That of a side of fresh memory.
    pub fn new(memory: Memory, side: Side) -> Self {
        Self {
            ring: Ring::of(memory, side.writes()),
            tail: 0,
            head: 0,
        }
    }

    /// Bytes that the ring has room for.
    pub fn room(&mut self) -> Result<usize, Broken> {
        let ring = &self.ring;
        // Acquire: pairs with the Release store of `Consumer::read` (invariant 2).
        let claimed = ring.memory[ring.head].load(Ordering::Acquire);
        // The head lies between the tail less the ring's size, and the tail.
        let lowest = self.tail.wrapping_sub(ring.bytes as u64);
        self.head = checked(claimed, lowest, self.head, ring.bytes)?;
        Ok(ring.bytes - self.tail.wrapping_sub(self.head) as usize)
    }

    /// True if there may be room, or the other side claims nonsense, which the next write says.
    #[inline]
    pub fn is_ready(&self) -> bool {
        // Relaxed: a write looks again.
        let head = self.ring.memory[self.ring.head].load(Ordering::Relaxed);
        self.tail.wrapping_sub(head) != self.ring.bytes as u64
    }

    /// Writes the first of these bytes, as many as there is room for, and publishes them at once. 0 if there is no room.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        self.write_all_of(&[bytes])
    }

    /// The same of several pieces, as if they were one.
    pub fn write_all_of<B: AsRef<[u8]>>(&mut self, pieces: &[B]) -> Result<usize, Broken> {
        let mut room = self.room()?;
        let before = self.tail;
        for piece in pieces {
            let piece = piece.as_ref();
            let len = piece.len().min(room);
            self.put(&piece[..len]);
            room -= len;
            if room == 0 {
                break;
            }
        }
        let written = self.tail.wrapping_sub(before) as usize;
        if written > 0 {
            // Release: pairs with the Acquire load of `Consumer::read` (invariant 1).
            self.ring.memory[self.ring.tail].store(self.tail, Ordering::Release);
        }
        Ok(written)
    }

    /// Lays bytes behind the tail, where there is room for them.
    fn put(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (word, from) = self.ring.place(self.tail);
            let count = rest.len().min(WORD - from);
            let (part, behind) = rest.split_at(count);
            let value = match part.first_chunk() {
                Some(whole) => *whole,
                None => {
                    let mut value = word.load(Ordering::Relaxed).to_le_bytes();
                    value[from..from + count].copy_from_slice(part);
                    value
                }
            };
            word.store(u64::from_le_bytes(value), Ordering::Relaxed);
            self.tail = self.tail.wrapping_add(count as u64);
            rest = behind;
        }
    }
}
