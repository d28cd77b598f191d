//! The data of an element: key, then value without a gap, in all its pieces.
//!
//! The pieces are a chain, so a byte is found by way of all pieces before it. Whoever goes through a value in several
//! steps keeps a [`Place`]: else a value of n pieces would take n^2 of such steps.

use std::cell::Cell;
use std::mem::MaybeUninit;

use super::element::{Element, HEADER, MORE_HEADER, Piece};
use super::memory::{BlockMemory, LINE, address};
use nuthatch_store::memory::arena::WORD;

/// A byte of an element's data: that so far behind the beginning of a piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The piece's first line; 0 behind the last piece.
    line: u32,
    /// Bytes of the piece before its data.
    header: usize,
    /// Bytes of data from the piece's first on; they may reach into later pieces.
    ahead: usize,
}

impl Place {
    #[inline(always)]
    pub fn new(element: Element, offset: usize) -> Self {
        Self {
            line: element.line(),
            header: HEADER,
            ahead: offset,
        }
    }
}

/// The stretches of memory from a place on.
struct Stretches<'m> {
    memory: &'m BlockMemory,
    place: Place,
    /// Bytes still to return.
    len: usize,
}

impl Iterator for Stretches<'_> {
    /// Line, byte in it, and length.
    type Item = (u32, usize, usize);

    #[inline]
    fn next(&mut self) -> Option<(u32, usize, usize)> {
        while self.len > 0 && self.place.line != 0 {
            let Place {
                line,
                header,
                ahead,
            } = self.place;
            let piece = Piece::load(self.memory, line);
            let room = (piece.lines as usize * LINE).saturating_sub(header);
            if ahead >= room {
                self.place = Place {
                    line: piece.next,
                    header: MORE_HEADER,
                    ahead: ahead - room,
                };
                continue;
            }
            let len = self.len.min(room - ahead);
            self.place.ahead += len;
            self.len -= len;
            return Some((line, header + ahead, len));
        }
        None
    }
}

/// Access to the data. Offsets are from the key's first byte.
impl BlockMemory {
    #[inline(always)]
    fn stretches(&self, place: Place, len: usize) -> Stretches<'_> {
        Stretches {
            memory: self,
            place,
            len,
        }
    }

    /// Writes into the data of an element: the key at 0, the value behind it. The caller owns it: it is NOT READY and
    /// the caller's, or the caller is the partition's owner and the element has no reader. `offset + bytes.len()` is
    /// within the length that was allocated.
    pub fn write(&self, element: Element, offset: usize, bytes: &[u8]) {
        self.write_on(Place::new(element, offset), bytes);
    }

    /// The same from a place on; returns the place behind.
    pub(crate) fn write_on(&self, place: Place, mut bytes: &[u8]) -> Place {
        let mut stretches = self.stretches(place, bytes.len());
        for (line, at, len) in &mut stretches {
            let (now, later) = bytes.split_at(len);
            self.arena.write(address(line), at, now);
            bytes = later;
        }
        stretches.place
    }

    /// Reads from the data of an element that cannot be freed meanwhile.
    #[inline(always)]
    pub fn read(&self, element: Element, offset: usize, into: &mut [MaybeUninit<u8>]) {
        self.read_on(Place::new(element, offset), into);
    }

    /// The same from a place on; returns the place behind.
    #[inline(always)]
    fn read_on(&self, place: Place, into: &mut [MaybeUninit<u8>]) -> Place {
        let mut stretches = self.stretches(place, into.len());
        let mut rest = into;
        for (line, at, len) in &mut stretches {
            let (now, later) = rest.split_at_mut(len);
            self.arena.read(address(line), at, now);
            rest = later;
        }
        // Only a broken chain of pieces is too short.
        rest.fill(MaybeUninit::new(0));
        stretches.place
    }

    /// A copy of a part of an element's data.
    pub fn to_vec(&self, element: Element, offset: usize, len: usize) -> Vec<u8> {
        self.append_to(Vec::with_capacity(len), element, offset, len)
    }

    /// The same in memory that has room for it, behind what is there. Panics if it has not.
    pub fn append_to(
        &self,
        mut bytes: Vec<u8>,
        element: Element,
        offset: usize,
        len: usize,
    ) -> Vec<u8> {
        self.read(element, offset, &mut bytes.spare_capacity_mut()[..len]);
        let end = bytes.len() + len;
        // SAFETY: `read` fills all of the slice.
        unsafe { bytes.set_len(end) };
        bytes
    }

    /// Copies `len` bytes of data from one element to another that the caller owns, each with the byte at which it
    /// starts.
    pub fn copy(&self, from: (Element, usize), to: (Element, usize), len: usize) {
        const PIECE: usize = 1024;
        let mut buffer = [MaybeUninit::new(0); PIECE];
        let (mut from, mut to) = (Place::new(from.0, from.1), Place::new(to.0, to.1));
        for done in (0..len).step_by(PIECE) {
            let piece = &mut buffer[..(len - done).min(PIECE)];
            from = self.read_on(from, piece);
            // SAFETY: the buffer started initialised, and `read_on` only writes.
            to = self.write_on(to, unsafe { piece.assume_init_ref() });
        }
    }

    /// True if two elements have one key.
    #[inline]
    pub fn same_key(&self, one: Element, other: Element) -> bool {
        // Keys of the usual length take one turn.
        const PIECE: usize = 64;
        let key_len = self.key_len(one);
        if key_len != self.key_len(other) {
            return false;
        }
        let mut buffer = [MaybeUninit::new(0); PIECE];
        (0..key_len).step_by(PIECE).all(|done| {
            let piece = &mut buffer[..(key_len - done).min(PIECE)];
            self.read(one, done, piece);
            // SAFETY: the buffer started initialised, and `read` only writes.
            self.has_at(other, done, unsafe { piece.assume_init_ref() })
        })
    }

    /// True if the data of an element have these bytes at `offset`, which is a word's.
    #[inline(always)]
    pub fn has_at(&self, element: Element, offset: usize, mut bytes: &[u8]) -> bool {
        for (line, at, len) in self.stretches(Place::new(element, offset), bytes.len()) {
            let (now, later) = bytes.split_at(len);
            // Data begin at a word in each piece, and full pieces end at one.
            if !self.arena.equals(address(line), at / WORD, now) {
                return false;
            }
            bytes = later;
        }
        bytes.is_empty()
    }
}

/// The value of an element, read in place, from its beginning to its end.
pub struct ValueInPlace {
    element: Element,
    key_len: usize,
    len: usize,
    /// Where the stretch that was returned last ends: its byte in the value, and its place.
    reached: Cell<(usize, Place)>,
}

impl ValueInPlace {
    /// The value of an element to which the caller holds a reference.
    pub fn new(memory: &BlockMemory, element: Element) -> Self {
        let key_len = memory.key_len(element);
        Self {
            element,
            key_len,
            len: memory.value_len(element),
            reached: Cell::new((0, Place::new(element, key_len))),
        }
    }

    /// The element.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Bytes of the value.
    pub fn value_len(&self) -> usize {
        self.len
    }

    /// Reads the whole value, of as many bytes.
    pub fn read(&self, memory: &BlockMemory, into: &mut [MaybeUninit<u8>]) {
        memory.read(self.element, self.key_len, into);
    }

    /// The longest contiguous stretch from `offset` on: empty at the end. It takes one step if `offset` is where the one
    /// before ended.
    ///
    /// # Safety
    ///
    /// Until the returned slice is dropped nothing may write these bytes: the caller holds a reference to the element,
    /// which is READY. Such an element is neither changed nor freed.
    pub unsafe fn stretch<'m>(&self, memory: &'m BlockMemory, offset: usize) -> &'m [u8] {
        let (reached, mut place) = self.reached.get();
        if offset >= reached {
            place.ahead += offset - reached;
        } else {
            place = Place::new(self.element, self.key_len + offset);
        }
        let mut stretches = memory.stretches(place, self.len.saturating_sub(offset));
        let Some((line, at, len)) = stretches.next() else {
            return &[];
        };
        self.reached.set((offset + len, stretches.place));
        // SAFETY: the caller promises that nobody writes.
        #[cfg(not(loom))]
        let bytes = unsafe { memory.arena.bytes(address(line), at, len) };
        // Loom's atomics are not the bytes they stand for: a copy, leaked, since a model is short.
        #[cfg(loom)]
        let bytes = {
            let mut copy = Vec::with_capacity(len);
            memory
                .arena
                .read(address(line), at, &mut copy.spare_capacity_mut()[..len]);
            // SAFETY: `read` fills all of the slice.
            unsafe { copy.set_len(len) };
            copy.leak()
        };
        bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::{BLOCK, BLOCK_COST};
    use crate::{Eviction, Partition, PartitionConfig, ReservedElement};
    use nuthatch_base::sync::clock::Time;

    const KEY: &[u8] = b"key";
    /// Dozens of pieces.
    const LEN: usize = 30 * BLOCK;

    fn partition() -> (Arc<BlockMemory>, Partition) {
        let bytes = 100 * BLOCK_COST;
        let memory = Arc::new(BlockMemory::new(bytes, bytes).unwrap());
        let config = PartitionConfig {
            eviction: Eviction::Lru,
            evicts: true,
            item_size_max: bytes,
            capacity: usize::MAX,
            seed: 1,
        };
        (Arc::clone(&memory), Partition::new(memory, config))
    }

    /// The lines of an element's pieces, in order.
    fn pieces(memory: &BlockMemory, element: Element) -> Vec<u32> {
        let next = |&line: &u32| Some(Piece::load(memory, line).next).filter(|&next| next != 0);
        std::iter::successors(Some(element.line()), next).collect()
    }

    /// Runs a step with the chain cut between every two pieces before `line`, so that only what begins at that piece or
    /// behind it gets to the data there.
    fn cut_before<T>(
        memory: &BlockMemory,
        element: Element,
        line: u32,
        step: impl FnOnce() -> T,
    ) -> T {
        let before: Vec<_> = pieces(memory, element)
            .into_iter()
            .take_while(|&passed| passed != line)
            .map(|passed| (passed, Piece::load(memory, passed)))
            .collect();
        for &(passed, piece) in &before {
            Piece { next: 0, ..piece }.store(memory, passed);
        }
        let result = step();
        for (passed, piece) in before {
            piece.store(memory, passed);
        }
        result
    }

    /// Class of bug: each step through a value of n pieces began at the first one, so an append to a value of 128 MiB
    /// took 4 * 10^9 steps, and a client that sent such a value byte by byte made it more.
    #[test]
    fn a_step_begins_where_the_last_one_ended() {
        let (memory, mut partition) = partition();
        let value: Vec<u8> = (0..LEN).map(|byte| (byte % 251) as u8).collect();

        let element = partition.insert(Time(1), 7, KEY.len(), LEN).unwrap();
        assert!(pieces(&memory, element).len() > 20);
        let mut reserved = ReservedElement::new(&memory, element, KEY, LEN);
        for part in value.chunks(37) {
            let line = reserved.place.line;
            cut_before(&memory, element, line, || reserved.write(&memory, part));
        }
        assert!(memory.to_vec(element, KEY.len(), LEN) == value);

        let copy = partition.insert(Time(1), 8, KEY.len(), LEN).unwrap();
        memory.copy((element, 1), (copy, 1), KEY.len() - 1 + LEN);
        let read = ValueInPlace::new(&memory, copy);
        let mut got = Vec::new();
        while got.len() < LEN {
            let line = read.reached.get().1.line;
            // SAFETY: nothing writes to the value.
            let step = || unsafe { read.stretch(&memory, got.len()) };
            let stretch = cut_before(&memory, copy, line, step);
            assert!(!stretch.is_empty(), "nothing of byte {}", got.len());
            got.extend_from_slice(stretch);
        }
        assert!(got == value);
        // Before what was reached, behind it, and at the end.
        for offset in [0, LEN / 2, LEN / 3, LEN - 1] {
            // SAFETY: as above.
            let stretch = unsafe { read.stretch(&memory, offset) };
            assert!(!stretch.is_empty() && value[offset..].starts_with(stretch));
        }
        // SAFETY: as above.
        assert!(unsafe { read.stretch(&memory, LEN) }.is_empty());
        for element in [element, copy] {
            partition.decref(element);
        }
    }
}
