//! An item's value: in one piece behind its key, or in segments.

use std::mem::MaybeUninit;

use super::{SEGMENT_HEADER, Shape};
use crate::memory::arena::{Chunk, WORD};
use crate::store::{Placement, Store};

impl<P: Placement> Store<P> {
    /// The chunk of segment `index` of a large item.
    pub fn segment(&self, head: Chunk, shape: &Shape, index: usize) -> Chunk {
        Chunk(self.arena.load(head, shape.segments_start() / WORD + index))
    }

    /// Writes into the value of an item that the caller owns.
    #[inline(always)]
    pub fn write_value(&self, chunk: Chunk, shape: &Shape, offset: usize, bytes: &[u8]) {
        match shape.segment {
            None => self.arena.write(chunk, shape.value_start() + offset, bytes),
            Some(segment) => self.write_segments(chunk, shape, segment, offset, bytes),
        }
    }

    fn write_segments(
        &self,
        head: Chunk,
        shape: &Shape,
        segment: usize,
        mut offset: usize,
        mut bytes: &[u8],
    ) {
        while !bytes.is_empty() {
            let within = offset % segment;
            let (now, later) = bytes.split_at(bytes.len().min(segment - within));
            let chunk = self.segment(head, shape, offset / segment);
            self.arena.write(chunk, SEGMENT_HEADER + within, now);
            offset += now.len();
            bytes = later;
        }
    }

    /// Reads from the value of an item. False if a length led beyond the arena.
    #[inline(always)]
    pub fn read_value(
        &self,
        chunk: Chunk,
        shape: &Shape,
        offset: usize,
        into: &mut [MaybeUninit<u8>],
    ) -> bool {
        #[cfg(all(debug_assertions, not(loom)))]
        super::read_hook::reading();
        match shape.segment {
            None => self.arena.read(chunk, shape.value_start() + offset, into),
            Some(segment) => self.read_segments(chunk, shape, segment, offset, into),
        }
    }

    fn read_segments(
        &self,
        head: Chunk,
        shape: &Shape,
        segment: usize,
        mut offset: usize,
        into: &mut [MaybeUninit<u8>],
    ) -> bool {
        let mut whole = true;
        let mut rest = into;
        while !rest.is_empty() {
            let within = offset % segment;
            let (now, later) = rest.split_at_mut(rest.len().min(segment - within));
            let chunk = self.segment(head, shape, offset / segment);
            whole &= self.arena.read(chunk, SEGMENT_HEADER + within, now);
            offset += now.len();
            rest = later;
        }
        whole
    }
}
