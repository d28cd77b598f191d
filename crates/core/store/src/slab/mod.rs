//! Size classes (memcached's slabs): chunks of a few sizes, each size with pages of its own.
//!
//! One arena is reserved at the start and cut into pages of 1 MiB, or of a 64th of a smaller limit. A page belongs to a
//! size class, which cuts it into chunks, or to the pool. Pages move between classes when sizes drift: the page whose
//! items have gone longest without a visit of the clock hand is emptied, whichever class has it, unless many of its
//! items were used meanwhile. So all classes together evict about the same items as one global clock.
//!
//! ```text
//!  arena  | page 0: class 4 | page 1: class 11 | page 2: class 4 | page 3: pool | ...
//!              |
//!              +-> | chunk 0 | chunk 1 | ... | chunk 16383 |      64 bytes each
//! ```
//!
//! A free chunk is chained in its page, or was never used. The other invariants are the [store's](crate::store).
//!
//! Locks here (class, drain) are leaves: none is taken under another, except that a class may be looked at under the
//! drain lock.

pub mod class;
pub mod drain;
pub(crate) mod reclaim;
mod statistics;
pub mod walk;

use std::io;

use nuthatch_base::memory::Source;
use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_engine::request::Expiry;
use nuthatch_engine::{AuditError, Cursor};

use crate::eviction::slab::{Policy, PolicyKind};
use crate::item::Shape;
use crate::item::fresh::Fresh;
use crate::item::unlinked::Unlinked;
use crate::log::runs::RunNumber;
use crate::memory::arena::Address;
use crate::memory::pool::Pool;
use crate::memory::sizes::Sizes;
use crate::store::{Placement, Plan, Store};
use class::{Class, PageState, Pages};

/// Size classes, and the policy that decides which items of a class leave.
pub struct Slab {
    classes: Box<[Mutex<Class>]>,
    pages: Pages,
    /// Which item leaves.
    pub policy: Box<dyn Policy>,
    /// Bytes evicted so far: the clock by which pages of different classes are compared.
    eviction_clock: AtomicU64,
    drain: Mutex<drain::Draining>,
    pages_moved: AtomicU64,
    sweep: walk::Sweep,
}

/// No chunk is free, and none can be allocated without evicting.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl Store<Slab> {
    /// A store of `limit` bytes, which can be raised to `limit_max` while it runs. `front` words of each chunk are left
    /// to the engine, and others to the policy: a [`Address`] refers to the place where these words end and the header
    /// begins, and holds that much less.
    pub fn new(
        limit: usize,
        limit_max: usize,
        sizes: Sizes,
        front: usize,
        eviction: &PolicyKind,
    ) -> io::Result<Self> {
        let plan = Plan {
            source: Source::Private,
            limit,
            limit_max,
            front: front + eviction.words,
            page_state: size_of::<PageState>(),
            spare: 0,
            sizes,
        };
        let sizes = &plan.sizes;
        let class = |class| {
            Mutex::new(Class::new(
                sizes.page_words(),
                sizes.chunk(class),
                plan.front,
            ))
        };
        let slab = Slab {
            classes: (0..sizes.count()).map(class).collect(),
            pages: Pages::reserve(plan.pages())?,
            policy: (eviction.build)(sizes.count(), front),
            eviction_clock: AtomicU64::new(0),
            drain: Mutex::default(),
            pages_moved: AtomicU64::new(0),
            sweep: walk::Sweep::default(),
        };
        Self::reserve(plan, slab)
    }

    #[inline(always)]
    fn slab(&self) -> &Slab {
        self.placement()
    }

    /// A chunk of a class: a free one, or one of a new page if the pool has one.
    #[inline]
    pub fn allocate(&self, class: usize) -> Result<Address, Full> {
        let mut inner = self.slab().classes[class].lock();
        if let Some(chunk) = inner.allocate(&self.slab().pages, &self.arena) {
            return Ok(chunk);
        }
        drop(inner);
        let page = self.pool().take().ok_or(Full)?;
        let visited = self.slab().eviction_clock.load(Ordering::Relaxed);
        let mut inner = self.slab().classes[class].lock();
        inner.add_page(&self.slab().pages, page, class as u32, visited);
        inner.allocate(&self.slab().pages, &self.arena).ok_or(Full)
    }

    /// The chunk that CLOCK would evict next in a class.
    pub fn victim(&self, class: usize) -> Option<Address> {
        let bytes = self.sizes.chunk(class) as u64;
        // Relaxed: a statistic by which pages are compared roughly.
        let now = self
            .slab()
            .eviction_clock
            .fetch_add(bytes, Ordering::Relaxed);
        let mut inner = self.slab().classes[class].lock();
        inner.evicted_since_move += 1;
        let victim = inner.victim(&self.slab().pages, &self.recency, now)?;
        if let Some(ahead) = inner.ahead(&self.slab().pages, 2) {
            crate::prefetch::soon(self.arena.pointer(ahead));
        }
        Some(victim)
    }

    /// Notes a victim for the sake of a class, taken by an engine with its own order, which still owns the victim's
    /// memory: the same notes as [`Store::victim`] makes when the hand chooses.
    pub fn note_victim(&self, class: usize, victim: &Unlinked) {
        let bytes = self.sizes.chunk(class) as u64;
        // Relaxed: statistics by which pages are compared roughly.
        let now = self
            .slab()
            .eviction_clock
            .fetch_add(bytes, Ordering::Relaxed);
        let visit = |chunk| self.slab().pages.visit(self.page_of(chunk), now);
        visit(victim.address());
        let shape = victim.header().shape(self.cut());
        for index in 0..shape.pieces() {
            visit(self.piece(victim.address(), &shape, index));
        }
        self.slab().classes[class].lock().evicted_since_move += 1;
    }

    /// Looks at a class under its lock.
    pub fn class(&self, class: usize) -> MutexGuard<'_, Class> {
        self.slab().classes[class].lock()
    }

    /// Address `number` of a page, and the class, if a class has the page and ever used the chunk.
    pub fn chunk_of_page(&self, page: u32, number: u32) -> Option<(usize, Address)> {
        let class = self.slab().pages.class_of(page)?;
        let inner = self.slab().classes[class].lock();
        // Again under the lock: the page may have moved.
        let same = self.slab().pages.class_of(page) == Some(class);
        (same && number < inner.drain_end(&self.slab().pages, page))
            .then(|| (class, inner.chunk(page, number)))
    }

    fn audit_classes(&self) -> Result<(), AuditError> {
        let mut pages = 0;
        for (number, class) in self.slab().classes.iter().enumerate() {
            let class = class.lock();
            pages += class.pages.len();
            class.audit(&self.slab().pages, &self.arena, number as u32)?;
        }
        let pool = self.pool();
        if pages != pool.used_pages() {
            let counted = pool.used_pages();
            return Err(
                format!("store: classes have {pages} pages, the pool counts {counted}").into(),
            );
        }
        Ok(())
    }
}

impl Placement for Slab {
    /// It has no runs.
    fn free_cut(store: &Store<Self>, address: Address, _: RunNumber) {
        Self::free(store, address, false);
    }

    type Destination = ();

    const COUNTS_USES: bool = false;
    const MARKS_PIECES: bool = true;
    const OVERWRITES: bool = false;
    const CUTS_EVENLY: bool = false;

    fn is_same_room(store: &Store<Self>, one: usize, other: usize) -> bool {
        store.class_of(one) == store.class_of(other)
    }

    #[inline]
    fn free(store: &Store<Self>, chunk: Address, _linked: bool) {
        let (slab, page) = (store.slab(), store.page_of(chunk));
        // The page cannot change its class while one of its chunks is in use.
        let class = slab.pages.class_of(page);
        let class = class.expect("store 1: a chunk in use lies in a page of a class");
        slab.classes[class]
            .lock()
            .free(&slab.pages, &store.arena, page, chunk);
    }

    fn room_of(store: &Store<Self>, chunk: Address) -> Option<usize> {
        // The page cannot change its class while one of its chunks is in use.
        let class = store.slab().pages.class_of(store.page_of(chunk))?;
        Some(store.sizes.chunk(class) - store.front_bytes())
    }

    fn head_enters(store: &Store<Self>, head: Address) {
        store.slab().pages.head_in(store.page_of(head));
    }

    fn head_leaves(store: &Store<Self>, head: Address) {
        store.slab().pages.head_out(store.page_of(head));
    }

    fn note_linked(_: &Store<Self>, _: &Fresh, _: Expiry) {}

    fn note_expiry(_: &Store<Self>, _: Address, _: Expiry) {}

    fn note_replaced(_: &Store<Self>, _: Address, _: &mut Fresh) {}

    fn note_overwritten(_: &Store<Self>, _: Address) {}

    fn note_unpinned(_: &Store<Self>, _: Address, _: &Shape) {}

    fn note_limit(_: &Store<Self>, _: &mut Pool, _: usize) {}

    fn sweep(store: &Store<Self>, budget: usize, look: impl FnMut(Address)) -> usize {
        store.sweep_classes(budget, look)
    }

    fn walk(
        store: &Store<Self>,
        from: Cursor,
        budget: usize,
        show: impl FnMut(Address),
    ) -> Option<Cursor> {
        store.walk_classes(from, budget, show)
    }

    fn audit(store: &Store<Self>) -> Result<(), AuditError> {
        store.audit_classes()
    }

    fn given_out(store: &Store<Self>) -> usize {
        let classes = 0..store.sizes.count();
        classes.map(|class| store.class(class).used).sum()
    }

    fn ghost_bytes(_: &Store<Self>) -> usize {
        0
    }
}
