//! Fresh items, which only their owner knows: their memory is allocated, their bytes are still to come.

use std::mem::MaybeUninit;
use std::sync::Arc;

use nuthatch_base::sync::shim::Ordering;

use super::{Header, Shape};
use crate::log::runs::RunNumber;
use crate::memory::arena::{Address, WORD};
use crate::memory::bytes;
use crate::memory::limits::ITEM_SIZE_LIMIT;
use crate::store::{HasStore, Placement, Store};
use nuthatch_engine::Reservation;
use nuthatch_engine::request::Expiry;

/// An item that no index refers to yet: all its memory is allocated, its key is written, its value is to come.
#[derive(Debug)]
pub struct Fresh {
    /// Its head.
    pub address: Address,
    /// Its bytes.
    pub shape: Shape,
    /// Uses that count for it from the start.
    pub uses: u8,
    /// The run that it was cut from.
    pub run: Option<RunNumber>,
}

/// The memory of an item so far. It is freed if there is not enough.
struct Gathered<'a, P: Placement> {
    store: &'a Store<P>,
    shape: &'a Shape,
    head: Address,
    pieces: usize,
}

impl<P: Placement> Drop for Gathered<'_, P> {
    fn drop(&mut self) {
        let Self {
            store, shape, head, ..
        } = *self;
        for taken in 0..self.pieces {
            store.free_private(store.piece(head, shape, taken));
        }
        store.free_private(head);
    }
}

impl<P: Placement> Store<P> {
    /// Allocates memory for an item of this shape, in memory that `memory_of` finds for so many bytes. For the memory
    /// with the header `memory_of` also gets the shape. The error is the number of bytes for which there was none;
    /// then nothing stays allocated.
    pub fn allocate_item(
        &self,
        shape: &Shape,
        mut memory_of: impl FnMut(usize, Option<&Shape>) -> Option<Address>,
    ) -> Result<Address, usize> {
        let bytes = shape.head_bytes();
        let head = memory_of(bytes, Some(shape)).ok_or(bytes)?;
        let mut gathered = Gathered {
            store: self,
            shape,
            head,
            pieces: 0,
        };
        for index in 0..shape.pieces() {
            let bytes = shape.piece_bytes(index);
            let piece = memory_of(bytes, None).ok_or(bytes)?;
            self.begin_fill();
            Header::store_piece(&self.arena, piece, head, index, bytes);
            let at = shape.pieces_start() / WORD + index;
            self.arena.store(head, at, piece.0);
            gathered.pieces += 1;
        }
        std::mem::forget(gathered);
        if shape.piece.is_some() {
            P::head_enters(self, head);
        }
        Ok(head)
    }

    /// True if all memory of an item that was never linked is as large as its shape says.
    fn has_room(&self, fresh: &Fresh) -> bool {
        let Fresh { address, shape, .. } = fresh;
        let fits = |address, bytes| P::room_of(self, address).is_some_and(|room| bytes <= room);
        shape.value_len <= ITEM_SIZE_LIMIT
            && fits(*address, shape.head_bytes())
            && (0..shape.pieces())
                .all(|index| fits(self.piece(*address, shape, index), shape.piece_bytes(index)))
    }

    /// Frees an item that was never linked.
    pub fn discard(&self, fresh: Fresh) {
        if fresh.shape.piece.is_some() {
            self.each_piece(fresh.address, &fresh.shape, |piece| {
                self.free_private(piece)
            });
            P::head_leaves(self, fresh.address);
        }
        match fresh.run {
            Some(run) => {
                self.begin_fill();
                P::free_cut(self, fresh.address, run);
            }
            None => self.free_private(fresh.address),
        }
    }

    /// Notes that the index refers to the item now, which has this expiry.
    #[inline]
    pub fn note_linked(&self, fresh: &Fresh, expiry: Expiry) {
        P::note_linked(self, fresh, expiry);
    }

    /// Frees the pieces of an item that no index refers to, before its head.
    #[cold]
    pub(crate) fn free_pieces(&self, head: Address, shape: &Shape) {
        self.each_piece(head, shape, |piece| self.free_linked(piece));
        P::head_leaves(self, head);
    }

    /// Visits all pieces of an item that no other thread may move meanwhile, before the head is given back.
    #[cold]
    pub(crate) fn each_piece(&self, head: Address, shape: &Shape, mut each: impl FnMut(Address)) {
        for index in 0..shape.pieces() {
            each(self.piece(head, shape, index));
        }
    }

    /// Visits the value of an item that no other thread may change meanwhile, piece by piece.
    pub fn read_in_runs(&self, address: Address, shape: &Shape, put: &mut impl FnMut(&[u8])) {
        const RUN: usize = 1024;
        let mut buffer = [MaybeUninit::new(0); RUN];
        let mut offset = 0;
        while offset < shape.value_len {
            let piece = &mut buffer[..(shape.value_len - offset).min(RUN)];
            self.read_value(address, shape, offset, piece);
            // SAFETY: the buffer started initialised, and `read_value` only writes.
            put(unsafe { bytes::assume_init(piece) });
            offset += piece.len();
        }
    }
}

/// An item whose value is still on its way. Dropping it frees it.
pub struct Reserved<E: HasStore> {
    engine: Arc<E>,
    key: Box<[u8]>,
    shape: Shape,
    fresh: Option<Fresh>,
    written: usize,
}

impl<E: HasStore> Reserved<E> {
    /// Takes over the memory for an item of this key. Panics if it is too little for its shape, because the shape alone
    /// bounds what is written later.
    pub fn new(engine: Arc<E>, key: &[u8], fresh: Fresh) -> Self {
        assert!(
            engine.store().has_room(&fresh),
            "an item's chunks have room for its shape"
        );
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

    /// True if this engine made the reservation.
    pub fn belongs_to(&self, engine: &E) -> bool {
        std::ptr::eq(&*self.engine, engine)
    }

    /// Its key. To be called once.
    pub fn take_key(&mut self) -> Box<[u8]> {
        std::mem::take(&mut self.key)
    }

    /// The item itself. Only the first call returns it.
    pub fn take(&mut self) -> Option<Fresh> {
        self.fresh.take()
    }

    /// A copy of the bytes written. `None` if there is no memory for it: a client chose its length.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        value.try_reserve_exact(self.shape.value_len).ok()?;
        if let Some(fresh) = &self.fresh {
            let store = self.engine.store();
            store.read_in_runs(fresh.address, &fresh.shape, &mut |piece: &[u8]| {
                value.extend_from_slice(piece);
            });
        }
        Some(value)
    }
}

impl<E: HasStore> Reservation for Reserved<E> {
    fn write(&mut self, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.missing(),
            "more bytes than were reserved"
        );
        if let Some(fresh) = &self.fresh {
            let store = self.engine.store();
            // Again, because this may be another thread than the one that reserved.
            store.begin_fill();
            store.write_value(fresh.address, &fresh.shape, self.written, bytes);
        }
        self.written += bytes.len();
    }

    fn missing(&self) -> usize {
        self.shape.value_len - self.written
    }
}

impl<E: HasStore> Drop for Reserved<E> {
    fn drop(&mut self) {
        let store = self.engine.store();
        store.reserved.fetch_sub(1, Ordering::Relaxed);
        if let Some(fresh) = self.fresh.take() {
            store.discard(fresh);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::eviction::slab::clock;
    use crate::memory::sizes::{CHUNK_MIN, PAGE, Sizes};
    use crate::slab::Slab;

    struct TestStore(Store<Slab>);

    impl HasStore for TestStore {
        type Placement = Slab;

        fn store(&self) -> &Store<Slab> {
            &self.0
        }
    }

    fn test_store() -> Arc<TestStore> {
        let sizes = Sizes::new(16 * PAGE, CHUNK_MIN, 1.25);
        let store = Store::<Slab>::new(16 * PAGE, 16 * PAGE, sizes, 0, &clock::KIND);
        Arc::new(TestStore(store.unwrap()))
    }

    fn fresh(owner: &TestStore, shape: Shape) -> Fresh {
        let store = owner.store();
        let memory_of = |bytes, _: Option<&Shape>| store.allocate(store.class_of(bytes)).ok();
        let address = store.allocate_item(&shape, memory_of);
        Fresh {
            address: address.unwrap(),
            shape,
            uses: 0,
            run: None,
        }
    }

    #[test]
    fn what_fits_its_chunks_is_reserved_and_given_back() {
        let owner = test_store();
        let (max, cut) = (owner.store().piece_max(), owner.store().cut());
        for value_len in [0, 20, 5000, max - 100, max, 2 * max + 7] {
            let fresh = fresh(&owner, Shape::new(3, value_len, true, cut));
            let mut reserved = Reserved::new(Arc::clone(&owner), b"key", fresh);
            reserved.write(&vec![7; value_len]);
            assert_eq!(reserved.missing(), 0);
            assert!(reserved.to_bytes().unwrap().iter().all(|&byte| byte == 7));
        }
        owner.store().audit().unwrap();
        owner.store().audit_linked(0).unwrap();
    }

    /// Otherwise a write would go on into the next items.
    #[test]
    fn what_does_not_fit_its_chunks_is_not_reserved() {
        let owner = test_store();
        let (max, cut) = (owner.store().piece_max(), owner.store().cut());
        let small = Shape::new(3, 100, true, cut);
        let large = Shape::new(3, 2 * max, true, cut);
        for (made, shape) in [
            (small, Shape::new(3, 200, true, cut)),
            (small, large),
            (
                small,
                Shape {
                    value_len: usize::MAX,
                    ..small
                },
            ),
            (large, Shape::new(3, 3 * max, true, cut)),
            (
                large,
                Shape {
                    value_len: usize::MAX,
                    ..large
                },
            ),
        ] {
            let address = fresh(&owner, made).address;
            let claimed = Fresh {
                address,
                shape,
                uses: 0,
                run: None,
            };
            let reserve = || Reserved::new(Arc::clone(&owner), b"key", claimed);
            let reserve = std::panic::AssertUnwindSafe(reserve);
            assert!(std::panic::catch_unwind(reserve).is_err(), "{shape:?}");
        }
    }
}
