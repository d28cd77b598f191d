//! The counting of uses of whole items.
//!
//! The hand of CLOCK looks at chunks, each with its own bit. So a use of an item sets the bits of all its chunks: the
//! head's, and those of the pieces if its value lies in pieces. In a log only the head's bit counts.

use super::Header;
use super::fresh::Fresh;
use crate::memory::arena::Address;
use crate::store::{Placement, Store};

impl<P: Placement> Store<P> {
    /// A read or a change hit an item.
    #[inline]
    pub fn hit(&self, address: Address, header: &Header) {
        self.recency.hit(address);
        if P::MARKS_PIECES && header.is_large() {
            self.hit_pieces(address, header);
        }
    }

    #[cold]
    fn hit_pieces(&self, head: Address, header: &Header) {
        let shape = header.shape(self.cut());
        for index in 0..shape.pieces() {
            let piece = self.piece(head, &shape, index);
            // A read without a lock may find bytes of another item here: the memory may have been reused.
            if self.arena.contains(piece) {
                self.recency.hit(piece);
            }
        }
    }

    /// Notes a new item, which is not used yet.
    #[inline]
    pub fn start(&self, fresh: &Fresh) {
        self.recency.start(fresh.address);
        self.recency.grant(fresh.address, fresh.uses);
        if P::MARKS_PIECES && fresh.shape.piece.is_some() {
            self.start_pieces(fresh);
        }
    }

    #[cold]
    fn start_pieces(&self, fresh: &Fresh) {
        for index in 0..fresh.shape.pieces() {
            let piece = self.piece(fresh.address, &fresh.shape, index);
            self.recency.start(piece);
        }
    }

    /// A new item takes the uses of the locked one that it replaces and was made from.
    pub fn carry(&self, old: Address, header: &Header, fresh: &Fresh) {
        self.recency.carry(old, fresh.address);
        if P::MARKS_PIECES {
            self.carry_pieces(old, header, fresh);
        }
    }

    fn carry_pieces(&self, old: Address, header: &Header, fresh: &Fresh) {
        let shape = header.shape(self.cut());
        for index in 0..fresh.shape.pieces() {
            // A longer value has more pieces: they inherit from the last one.
            let from = match shape.pieces() {
                0 => old,
                pieces => self.piece(old, &shape, index.min(pieces - 1)),
            };
            let piece = self.piece(fresh.address, &fresh.shape, index);
            self.recency.carry(from, piece);
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
    fn item(store: &Store<Slab>, value_len: usize) -> (Fresh, Header, Vec<Address>) {
        let shape = Shape::new(5, value_len, false, store.cut());
        let memory_of = |bytes, _: Option<&Shape>| store.allocate(store.class_of(bytes)).ok();
        let address = store
            .allocate_item(&shape, memory_of)
            .expect("there is room");
        let fields = Fields {
            flags: 0,
            expiry: Expiry::Never,
            sequence: 1,
            cas: None,
            stale: false,
            won: false,
        };
        let pieces = (0..shape.pieces()).map(|index| store.piece(address, &shape, index));
        let chunks = std::iter::once(address).chain(pieces).collect();
        let fresh = Fresh {
            address,
            shape,
            uses: 0,
            run: None,
        };
        (fresh, Header::new(&shape, &fields), chunks)
    }

    #[test]
    fn a_use_of_a_large_value_counts_for_each_of_its_pieces() {
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
        let passed = |chunks: &[Address]| {
            let passed = chunks
                .iter()
                .filter(|&&address| store.recency.pass(address));
            passed.count()
        };
        store.hit(one.address, &header);
        assert_eq!((passed(&chunks), passed(&chunks)), (4, 0));
        store.hit(one.address, &header);
        store.carry(one.address, &header, &more);
        assert_eq!(passed(&more_chunks), more_chunks.len());
        store.start(&one);
        assert_eq!(passed(&chunks), 0);
    }
}
