//! The store: the memory of all items, placed in it in one of two ways.
//!
//! A [`Placement`] says where items lie: in [size classes](crate::slab), as in memcached, or in a [log](crate::log),
//! one behind the other. It is a type, so that an engine has one of them or is generic over both, and no operation asks
//! which one it is.
//!
//! Invariants of both. Memory is given out as *chunks* of a size class, or as *records* of a log; for both:
//! 1. It is free, *private* to one thread, or *linked*: exactly one slot of the index (or the table of
//!    one linked large value) refers to it.
//! 2. Linked becomes private only by emptying the slot under the lock of its buckets. The thread that emptied the slot
//!    owns the memory: an [`Unlinked`] stands for this ownership. It goes to the last reader that has the item pinned,
//!    or the memory is given back at once.
//! 3. Its bytes are written only by its owner, or, if it is linked, under the lock of its buckets. Before an owner
//!    writes, it makes a Release fence: a late reader that sees the new bytes also sees the version that was bumped
//!    when
//!    the item left the index.
//! 4. Pages, recency bits, ghosts and the index together never pass the limit (after the limit was lowered: as soon as
//!    enough pages are emptied).
//!
//! Locks here (pool, pins) are leaves: none is taken under another. The index's locks are never taken under any of
//! them, and a listener is never called under one.

use std::io;
use std::sync::{Arc, OnceLock};

use nuthatch_base::memory::Source;
use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::shim::{AtomicUsize, Ordering, fence};
use nuthatch_engine::request::{COMMON_KEY_LEN_MAX, Expiry, LONG_KEY_LEN_MAX};
use nuthatch_engine::{AuditError, Cursor, Evictions, LimitError};

use crate::count::EvictedAges;
use crate::item::fresh::Fresh;
use crate::item::unlinked::Unlinked;
use crate::item::{Cut, HEADER_WIDE, Header, SHORT_KEY_LEN_MAX, Shape};
use crate::log::runs::RunNumber;
use crate::memory::arena::{Address, Arena, WORD};
use crate::memory::pins::Pins;
use crate::memory::pool::Pool;
use crate::memory::recency::Recency;
use crate::memory::sizes::Sizes;

/// The memory of all items, and what is the same wherever they lie in it.
pub struct Store<P: Placement> {
    /// The bytes.
    pub arena: Arena,
    /// The sizes of pages and classes. In a log, items are counted by these classes.
    pub sizes: Sizes,
    /// The page of an item is its address shifted right by this many bits.
    page_shift: u32,
    /// The bits of the items that were used lately.
    pub recency: Recency,
    /// Large values being read in place.
    pub pins: Pins<Unlinked>,
    /// Reservations under way, so that an audit can account for private memory.
    pub reserved: AtomicUsize,
    /// Words in front of each item that the engine uses for itself.
    front: usize,
    pool: Mutex<Pool>,
    /// The ages of the items that were evicted last.
    pub evicted_ages: EvictedAges,
    /// Is told of items that are evicted.
    pub evictions: OnceLock<Arc<dyn Evictions>>,
    placement: P,
}

/// An engine whose items lie in a store.
pub trait HasStore: Send + Sync + 'static {
    /// Where they lie in it.
    type Placement: Placement;

    /// The store.
    fn store(&self) -> &Store<Self::Placement>;
}

/// Where items lie: in size classes or in a log.
///
/// `store` is always the store that has this placement.
pub trait Placement: Send + Sync + Sized + 'static {
    /// Where in it a new item goes.
    type Destination: Copy;

    /// True if a second use of an item is distinguished from the first.
    const COUNTS_USES: bool;

    /// True if each piece of a large value has a bit of its own for its uses; else the head's counts for all.
    const MARKS_PIECES: bool;

    /// True if a value is written over the present one where it takes the same memory.
    const OVERWRITES: bool;

    /// See [`Cut::evenly`].
    const CUTS_EVENLY: bool;

    /// True if `one` bytes and `other` bytes take the same memory.
    fn is_same_room(store: &Store<Self>, one: usize, other: usize) -> bool;

    /// Takes memory back from its owner. `linked`: an index has referred to it.
    fn free(store: &Store<Self>, address: Address, linked: bool);

    /// Takes memory back that was cut from a run of a log, and that no index ever referred to.
    fn free_cut(store: &Store<Self>, address: Address, run: RunNumber);

    /// Bytes for header, key and value in memory that the caller owns. `None` if it is no memory of an item.
    fn room_of(store: &Store<Self>, address: Address) -> Option<usize>;

    /// The head of a large value is private from now on.
    fn head_enters(store: &Store<Self>, head: Address);

    /// The same head is about to be freed.
    fn head_leaves(store: &Store<Self>, head: Address);

    /// The index refers to an item now.
    fn note_linked(store: &Store<Self>, fresh: &Fresh, expiry: Expiry);

    /// An item in the index has got an expiry. It cannot leave meanwhile.
    fn note_expiry(store: &Store<Self>, address: Address, expiry: Expiry);

    /// A new item replaces a live one, by a store. To be called before the new item starts.
    fn note_replaced(store: &Store<Self>, old: Address, fresh: &mut Fresh);

    /// A new value was written over the present one.
    fn note_overwritten(store: &Store<Self>, address: Address);

    /// An item has lost its last pin. It has neither been moved yet nor freed.
    fn note_unpinned(store: &Store<Self>, address: Address, shape: &Shape);

    /// The limit has become `bytes` bytes. The pool is locked.
    fn note_limit(store: &Store<Self>, pool: &mut Pool, bytes: usize);

    /// Looks at about `budget` places from where the last call stopped. Returns how many there were.
    fn sweep(store: &Store<Self>, budget: usize, look: impl FnMut(Address)) -> usize;

    /// Shows about `budget` places, and returns where to go on, or `None` at the end. See
    /// [`Handle::visit`](nuthatch_engine::Handle::visit).
    fn walk(
        store: &Store<Self>,
        from: Cursor,
        budget: usize,
        show: impl FnMut(Address),
    ) -> Option<Cursor>;

    /// Recounts what can be recounted without the index.
    fn audit(store: &Store<Self>) -> Result<(), AuditError>;

    /// Pieces of memory given out.
    fn given_out(store: &Store<Self>) -> usize;

    /// Bytes of the ghosts of items that have left.
    fn ghost_bytes(store: &Store<Self>) -> usize;
}

/// Pages that are backed with memory ahead of the one in use.
const WARM_PAGES: u32 = 16;

/// What a store is made for.
pub(crate) struct Plan {
    /// Bytes that may be used.
    pub limit: usize,
    /// Bytes up to which that may be raised.
    pub limit_max: usize,
    /// The sizes of pages and classes.
    pub sizes: Sizes,
    /// Words in front of each item that the engine uses for itself.
    pub front: usize,
    /// Bytes that the placement takes for each page.
    pub page_state: usize,
    /// Pages that only a move of records may take.
    pub spare: usize,
    /// Where the memory of items comes from.
    pub source: Source,
}

impl Plan {
    /// How many pages there may be.
    pub fn pages(&self) -> usize {
        self.limit_max.max(self.limit) / self.sizes.page()
    }
}

impl<P: Placement> Store<P> {
    /// Bytes to which the limit may be raised.
    pub fn limit_max(&self) -> usize {
        self.pool().limit_max()
    }

    /// Reserves the address space.
    pub(crate) fn reserve(plan: Plan, placement: P) -> io::Result<Self> {
        let (page, page_words) = (plan.sizes.page(), plan.sizes.page_words());
        let (pages, limit) = (plan.pages(), plan.limit);
        let words = pages * page_words;
        let page_cost = page + Recency::bytes_for(page_words, P::COUNTS_USES) + plan.page_state;
        let mut pool = Pool::new(limit, plan.limit_max.max(limit), pages as u32, page_cost);
        pool.keep_spare(plan.spare);
        let recency = Recency::reserve(words, P::COUNTS_USES)?;
        recency.expect(limit / WORD);
        Ok(Self {
            arena: Arena::reserve_in(&plan.source, words, limit / WORD)?,
            recency,
            pins: Pins::default(),
            reserved: AtomicUsize::new(0),
            front: plan.front,
            pool: Mutex::new(pool),
            evicted_ages: EvictedAges::default(),
            evictions: OnceLock::new(),
            page_shift: page_words.ilog2(),
            sizes: plan.sizes,
            placement,
        })
    }

    /// What only this placement has.
    #[inline(always)]
    pub fn placement(&self) -> &P {
        &self.placement
    }

    /// Bytes of the largest piece of memory that header, key and value may take.
    #[inline(always)]
    pub fn piece_max(&self) -> usize {
        self.sizes.largest() - self.front_bytes()
    }

    /// The longest key whose item finds a place, in a store with items of up to `item_size_max` bytes: header, key, and
    /// the table of a value in pieces lie together in half a page at most.
    pub fn key_len_max(&self, item_size_max: usize) -> usize {
        let whole = Shape::new(SHORT_KEY_LEN_MAX, item_size_max, true, self.cut());
        // One piece more than the largest value has, and what rounds the key up.
        let table = (whole.pieces() + 2) * WORD;
        let half = self.sizes.page() / 2 - self.front_bytes();
        let room = half.saturating_sub(HEADER_WIDE + table);
        let item = item_size_max.saturating_sub(HEADER_WIDE);
        let most = room.min(item).min(LONG_KEY_LEN_MAX);
        most.max(COMMON_KEY_LEN_MAX)
    }

    /// How values are cut that are longer.
    #[inline(always)]
    pub fn cut(&self) -> Cut {
        Cut {
            max: self.piece_max(),
            evenly: P::CUTS_EVENLY,
        }
    }

    /// Bytes in front of each item that the engine uses for itself.
    #[inline(always)]
    pub(crate) fn front_bytes(&self) -> usize {
        self.front * WORD
    }

    /// Chunks of a class in a page.
    pub(crate) fn chunks_per_page(&self, class: usize) -> usize {
        self.sizes.page() / self.sizes.chunk(class)
    }

    /// The smallest class whose chunks hold `bytes` bytes of header, key and value.
    #[inline(always)]
    pub fn class_of(&self, bytes: usize) -> usize {
        self.sizes.class_of(bytes + self.front_bytes())
    }

    /// True if a piece of `one` bytes and a piece of `other` bytes fit the same memory.
    pub fn is_same_room(&self, one: usize, other: usize) -> bool {
        P::is_same_room(self, one, other)
    }

    /// The class whose chunks an item holds; for a large item, the largest class.
    pub fn class_of_item(&self, header: &Header) -> usize {
        if header.is_large() {
            return self.sizes.count() - 1;
        }
        self.class_of(header.shape(self.cut()).head_bytes())
    }

    /// To be called before an owner writes into its memory (invariant 3).
    #[inline(always)]
    pub fn begin_fill(&self) {
        // Release fence: pairs with the Acquire fence in `Stripes::unchanged`.
        fence(Ordering::Release);
    }

    /// Takes memory back from its owner.
    #[inline]
    pub fn free_linked(&self, address: Address) {
        self.begin_fill();
        P::free(self, address, true);
    }

    /// Takes memory back that no index ever referred to.
    pub fn free_private(&self, address: Address) {
        self.begin_fill();
        P::free(self, address, false);
    }

    /// Looks at about `budget` places from where the last call stopped. Returns how many there were.
    pub fn sweep(&self, budget: usize, look: impl FnMut(Address)) -> usize {
        P::sweep(self, budget, look)
    }

    /// Shows about `budget` places, and returns where to go on, or `None` at the end. See
    /// [`Handle::visit`](nuthatch_engine::Handle::visit).
    pub fn walk(&self, from: Cursor, budget: usize, show: impl FnMut(Address)) -> Option<Cursor> {
        P::walk(self, from, budget, show)
    }

    /// Backs up to `budget` of the pages that will be taken next with memory: a page fault that zeroes a huge page is
    /// the longest wait of a store. True if there are more.
    pub fn warm(&self, budget: usize) -> bool {
        for _ in 0..budget {
            let Some(page) = self.pool.lock().next_to_warm(WARM_PAGES) else {
                return false;
            };
            let words = self.sizes.page_words();
            self.arena.populate(page as usize * words, words);
        }
        true
    }

    /// Gives memory back to the system: up to `budget` pages that came back to the pool, and that the limit does not
    /// allow anybody to take. True if there are more.
    pub fn release(&self, budget: usize) -> bool {
        for _ in 0..budget {
            // Locked until it is released: nobody takes the page before.
            let mut pool = self.pool();
            let Some(page) = pool.next_to_release() else {
                return false;
            };
            self.release_page(page);
        }
        true
    }

    /// Gives an empty page to the pool, and its memory to the system if it is wanted for something else. Returns the
    /// locked pool.
    pub(crate) fn return_page(&self, page: u32) -> MutexGuard<'_, Pool> {
        let mut pool = self.pool();
        pool.give_back(page);
        if pool.is_over() {
            // Under the lock: no thread may take the page, and write to it, before it is released.
            self.release_page(page);
        }
        pool
    }

    fn release_page(&self, page: u32) {
        let words = self.sizes.page_words();
        self.arena.release(page as usize * words, words);
    }

    /// Changes the memory limit. It must hold two items of `item_size_max` bytes, the engine's largest.
    pub fn set_limit(&self, bytes: usize, item_size_max: usize) -> Result<(), LimitError> {
        let mut pool = self.pool();
        pool.set_limit(bytes, 2 * item_size_max)?;
        self.recency.expect(bytes / WORD);
        self.arena.expect(bytes / WORD);
        P::note_limit(self, &mut pool, bytes);
        Ok(())
    }

    /// The pool, which accounts for the memory.
    pub fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock()
    }

    /// How many pages were ever taken from the pool: those from the first on.
    pub fn pages_taken(&self) -> u32 {
        self.pool.lock().taken()
    }

    /// The page in which an item lies.
    #[inline(always)]
    pub(crate) fn page_of(&self, address: Address) -> u32 {
        (address.0 >> self.page_shift) as u32
    }

    /// Recounts all state that can be recounted without the index.
    pub fn audit(&self) -> Result<(), AuditError> {
        P::audit(self)?;
        let pool = self.pool.lock();
        if !pool.keeps_limit() {
            return Err(format!("store 4: {} bytes used of {}", pool.used(), pool.limit()).into());
        }
        Ok(())
    }

    /// Checks that the charge beside pages is that of an index of so many bytes and the ghosts.
    pub fn audit_charged(&self, index: usize) -> Result<(), AuditError> {
        let ghosts = P::ghost_bytes(self);
        let charged = self.pool().charged();
        if charged != index + ghosts {
            return Err(format!(
                "store: {charged} bytes are charged, for an index of {index} and ghosts of {ghosts}"
            )
            .into());
        }
        Ok(())
    }

    /// Checks that as much memory is given out as the index refers to, directly or by a large value's head.
    pub fn audit_linked(&self, linked: usize) -> Result<(), AuditError> {
        // Pieces that are neither free nor referred to are private: held by reservations or by
        // readers of removed large values. At rest there are none.
        let given_out = P::given_out(self);
        if given_out < linked {
            return Err(
                format!("store 1: {linked} pieces are linked, {given_out} given out").into(),
            );
        }
        if given_out > linked && self.pins.is_idle() && self.reserved.load(Ordering::Relaxed) == 0 {
            let lost = given_out - linked;
            return Err(format!("store 1: {lost} pieces are neither free nor linked").into());
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::eviction::log::LogPolicyKind;
    use crate::log::Log;

    /// The resident part of the arena, in bytes.
    #[cfg(all(target_os = "linux", not(any(miri, nuthatch_unix, nuthatch_portable))))]
    fn resident<P: Placement>(store: &Store<P>) -> usize {
        let start = store.arena.pointer(Address(0)) as usize;
        let end = store.arena.pointer(Address(store.arena.words())) as usize;
        let told = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut inside, mut bytes) = (false, 0);
        for line in told.lines() {
            let mut words = line.split_ascii_whitespace();
            let first = words.next().unwrap_or_default();
            if let Some((from, _)) = first.split_once('-') {
                let from = usize::from_str_radix(from, 16);
                inside = from.is_ok_and(|from| (start..end).contains(&from));
            } else if inside && first == "Rss:" {
                bytes += words.next().unwrap().parse::<usize>().unwrap() << 10;
            }
        }
        bytes
    }

    /// Class of bug: a huge page that the limit allows only in part takes memory beyond the limit.
    #[cfg(all(target_os = "linux", not(any(miri, nuthatch_unix, nuthatch_portable))))]
    #[test]
    fn a_full_arena_takes_no_memory_beyond_the_limit() {
        for (limit, raised) in [(3 << 20, 5 << 20), (7 << 20, 9 << 20)] {
            let sizes = Sizes::for_log(limit, 64, 1.25);
            let store =
                Store::<Log>::new(limit, 64 << 20, sizes, LogPolicyKind::default_kind()).unwrap();
            for limit in [limit, raised] {
                store.set_limit(limit, 1000).unwrap();
                for word in 0..limit / WORD {
                    store.arena.store(Address(word as u64), 0, 1);
                }
                assert!(resident(&store) <= limit, "{} of {limit}", resident(&store));
            }
        }
    }

    #[test]
    fn a_lower_limit_gives_the_memory_of_free_pages_back() {
        const LIMIT: usize = 16 << 20;
        let sizes = Sizes::for_log(LIMIT, 64, 1.25);
        let store = Store::<Log>::new(LIMIT, LIMIT, sizes, LogPolicyKind::default_kind()).unwrap();
        let (bytes, words) = (store.sizes.page(), store.sizes.page_words() as u64);
        let pages: Vec<u32> = (0..100).map(|_| store.pool().take().unwrap()).collect();
        let word = |page: u32| store.arena.word(Address(u64::from(page) * words), 100);
        for &page in &pages {
            word(page).store(7, Ordering::Relaxed);
        }
        pages.iter().for_each(|&page| store.pool().give_back(page));
        assert!(!store.release(pages.len()), "the limit allows all of them");
        store.set_limit(LIMIT / 4, 1 << 10).unwrap();
        while store.release(3) {}
        // Released memory reads as zero.
        let kept = pages
            .iter()
            .filter(|&&page| word(page).load(Ordering::Relaxed) == 7);
        let kept = kept.count() * bytes;
        assert!((LIMIT / 8..=LIMIT / 4).contains(&kept), "{kept} bytes");
    }
}
