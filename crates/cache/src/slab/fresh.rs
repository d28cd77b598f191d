//! Items that nobody else knows of yet: memory taken, bytes on their way.

use std::mem::MaybeUninit;
use std::sync::Arc;

use nuthatch_sync::shim::Ordering;

use super::arena::{Chunk, WORD};
use super::{Housed, Store};
use crate::engine::Reservation;
use crate::item::{Header, Shape};

/// An item that no index refers to yet: all its memory, its key written, its value to come.
#[derive(Debug)]
pub struct Fresh {
    /// Its head.
    pub chunk: Chunk,
    /// Its bytes.
    pub shape: Shape,
}

impl Store {
    /// Memory for an item of this shape, by chunks that `chunk_of` finds in a class. The error is
    /// the class in which there was none; nothing is held then.
    pub fn allocate_item(
        &self,
        shape: &Shape,
        mut chunk_of: impl FnMut(usize) -> Option<Chunk>,
    ) -> Result<Chunk, usize> {
        let class = self.class_of(shape.head_bytes());
        let head = chunk_of(class).ok_or(class)?;
        for index in 0..shape.segments() {
            let class = self.class_of(shape.segment_bytes(index));
            let Some(segment) = chunk_of(class) else {
                for taken in 0..index {
                    self.free_chunk(self.segment(head, shape, taken));
                }
                self.free_chunk(head);
                return Err(class);
            };
            self.begin_fill();
            Header::store_segment(&self.arena, segment, head);
            let at = shape.segments_start() / WORD + index;
            self.arena.store(head, at, segment.0);
        }
        Ok(head)
    }

    /// Frees an item that was never linked.
    pub fn discard(&self, fresh: Fresh) {
        for index in 0..fresh.shape.segments() {
            self.free_chunk(self.segment(fresh.chunk, &fresh.shape, index));
        }
        self.free_chunk(fresh.chunk);
    }

    /// The value of an item that nobody may change meanwhile, piece by piece.
    pub fn each_piece(&self, chunk: Chunk, shape: &Shape, put: &mut impl FnMut(&[u8])) {
        const PIECE: usize = 1024;
        let mut buffer = [MaybeUninit::new(0); PIECE];
        let mut offset = 0;
        while offset < shape.value_len {
            let piece = &mut buffer[..(shape.value_len - offset).min(PIECE)];
            self.read_value(chunk, shape, offset, piece);
            // SAFETY: the buffer started initialised, and `read_value` only writes.
            put(unsafe { piece.assume_init_ref() });
            offset += piece.len();
        }
    }
}

/// An item whose value is still on its way. Dropping it frees it.
pub struct Reserved<E: Housed> {
    engine: Arc<E>,
    key: Box<[u8]>,
    shape: Shape,
    fresh: Option<Fresh>,
    written: usize,
}

impl<E: Housed> Reserved<E> {
    /// Takes over memory for an item of this key.
    pub fn new(engine: Arc<E>, key: &[u8], fresh: Fresh) -> Self {
        // Relaxed: a statistic.
        engine.store().reserved.fetch_add(1, Ordering::Relaxed);
        Self {
            engine,
            key: key.into(),
            shape: fresh.shape,
            fresh: Some(fresh),
            written: 0,
        }
    }

    /// Its key, once.
    pub fn take_key(&mut self) -> Box<[u8]> {
        std::mem::take(&mut self.key)
    }

    /// The item itself, once.
    pub fn take(&mut self) -> Option<Fresh> {
        self.fresh.take()
    }

    /// A copy of the bytes written.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(self.shape.value_len);
        if let Some(fresh) = &self.fresh {
            let store = self.engine.store();
            store.each_piece(fresh.chunk, &fresh.shape, &mut |piece: &[u8]| {
                value.extend_from_slice(piece);
            });
        }
        value
    }
}

impl<E: Housed> Reservation for Reserved<E> {
    fn write(&mut self, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.missing(),
            "more bytes than were reserved"
        );
        if let Some(fresh) = &self.fresh {
            let store = self.engine.store();
            // Again: this may be another thread than the one that reserved.
            store.begin_fill();
            store.write_value(fresh.chunk, &fresh.shape, self.written, bytes);
        }
        self.written += bytes.len();
    }

    fn missing(&self) -> usize {
        self.shape.value_len - self.written
    }
}

impl<E: Housed> Drop for Reserved<E> {
    fn drop(&mut self) {
        let store = self.engine.store();
        store.reserved.fetch_sub(1, Ordering::Relaxed);
        if let Some(fresh) = self.fresh.take() {
            store.discard(fresh);
        }
    }
}
