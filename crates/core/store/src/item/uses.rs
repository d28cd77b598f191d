//! The counting of uses of whole items.
//!
//! The hand of CLOCK looks at chunks, each with its own bit. So a use of an item sets the bits of all its chunks: the
//! head's, and those of the segments if its value lies in segments. In a log only the head's bit counts.

use super::Header;
use super::fresh::Fresh;
use crate::memory::arena::Chunk;
use crate::store::{Placement, Store};

impl<P: Placement> Store<P> {
    /// A read or a change hit an item.
    #[inline]
    pub fn hit(&self, chunk: Chunk, header: &Header) {
        self.recency.hit(chunk);
        if P::MARKS_PIECES && header.is_large() {
            self.hit_segments(chunk, header);
        }
    }

    #[cold]
    fn hit_segments(&self, head: Chunk, header: &Header) {
        let shape = header.shape(self.chunk_max());
        for index in 0..shape.segments() {
            let segment = self.segment(head, &shape, index);
            // A read without a lock may find bytes of another item here: the chunk may have been reused.
            if self.arena.contains(segment) {
                self.recency.hit(segment);
            }
        }
    }

    /// Notes a new item, which is not used yet.
    #[inline]
    pub fn start(&self, fresh: &Fresh) {
        self.recency.start(fresh.chunk);
        self.recency.grant(fresh.chunk, fresh.uses);
        if P::MARKS_PIECES && fresh.shape.segment.is_some() {
            self.start_segments(fresh);
        }
    }

    #[cold]
    fn start_segments(&self, fresh: &Fresh) {
        for index in 0..fresh.shape.segments() {
            let segment = self.segment(fresh.chunk, &fresh.shape, index);
            self.recency.start(segment);
        }
    }

    /// A new item takes the uses of the locked one that it replaces and was made from.
    pub fn carry(&self, old: Chunk, header: &Header, fresh: &Fresh) {
        self.recency.carry(old, fresh.chunk);
        if P::MARKS_PIECES {
            self.carry_segments(old, header, fresh);
        }
    }

    fn carry_segments(&self, old: Chunk, header: &Header, fresh: &Fresh) {
        let shape = header.shape(self.chunk_max());
        for index in 0..fresh.shape.segments() {
            // A longer value has more segments: they inherit from the last one.
            let from = match shape.segments() {
                0 => old,
                pieces => self.segment(old, &shape, index.min(pieces - 1)),
            };
            let segment = self.segment(fresh.chunk, &fresh.shape, index);
            self.recency.carry(from, segment);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::eviction::slab::clock;
    use crate::item::{Fields, Shape};
    use crate::memory::sizes::{PAGE, Sizes};
    use crate::slab::Slab;
    use nuthatch_engine::request::Expiry;

    /// An item of a value of so many bytes, and all its chunks.
    fn item(store: &Store<Slab>, value_len: usize) -> (Fresh, Header, Vec<Chunk>) {
        let shape = Shape::new(5, value_len, false, store.chunk_max());
        let chunk_of = |bytes, _: Option<&Shape>| store.allocate(store.class_of(bytes)).ok();
        let chunk = store
            .allocate_item(&shape, chunk_of)
            .expect("there is room");
        let fields = Fields {
            flags: 0,
            expiry: Expiry::Never,
            sequence: 1,
            cas: None,
            stale: false,
            won: false,
        };
        let segments = (0..shape.segments()).map(|index| store.segment(chunk, &shape, index));
        let chunks = std::iter::once(chunk).chain(segments).collect();
        let fresh = Fresh {
            chunk,
            shape,
            uses: 0,
        };
        (fresh, Header::new(&shape, &fields), chunks)
    }

    #[test]
    fn a_use_of_a_large_value_counts_for_each_of_its_segments() {
        let store = Store::<Slab>::new(
            16 * PAGE,
            16 * PAGE,
            Sizes::new(64 * PAGE, 64, 1.25),
            0,
            &clock::KIND,
        )
        .expect("there is room");
        let (one, header, chunks) = item(&store, PAGE);
        assert_eq!(chunks.len(), 4);
        let (more, _, more_chunks) = item(&store, 2 * PAGE);
        let passed = |chunks: &[Chunk]| {
            let passed = chunks.iter().filter(|&&chunk| store.recency.pass(chunk));
            passed.count()
        };
        store.hit(one.chunk, &header);
        assert_eq!((passed(&chunks), passed(&chunks)), (4, 0));
        store.hit(one.chunk, &header);
        store.carry(one.chunk, &header, &more);
        assert_eq!(passed(&more_chunks), more_chunks.len());
        store.start(&one);
        assert_eq!(passed(&chunks), 0);
    }
}
