//! A table of another process, to read: plain gets on memory that this process has mapped and cannot change.
//!
//! The code of the reads is the engine's own ([`reading`](super::reading)). What is different:
//!
//! * Nothing waits for a lock, for its owner may be stopped or dead: a reader tries again, and gives up ([`NotRead`]).
//! * Values of any length are copied ([`Reading::copy`]): this process cannot pin any.
//! * Numbers that lead elsewhere in the memory are bounded by what is mapped, as always; here that includes the geometry.
//! * A delayed flush that is due has to be put into effect by the engine. Until then readers find nothing.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuthatch_base::memory::shared::SharedView;
use nuthatch_base::sync::shim::spin;

use super::index::Index;
use super::layout::EightWay;
use super::parts::Viewed;
use super::reading::{Copied, FastPath, InWindow, Reading};
use nuthatch_engine::hints::Hints;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{Clock, Item, Key, KeyHasher, Replies, Reply, Time};
use nuthatch_store::item::{Cut, Header, PIECE_HEADER};
use nuthatch_store::log::Log;
use nuthatch_store::memory::arena::{Arena, WORD};
use nuthatch_store::shared::{Plan, SharedPage, Unreadable};
use nuthatch_store::store::Placement;

/// How long a reader tries, if all its attempts are spoiled, or a lock is held all the time.
const PATIENCE: Duration = Duration::from_millis(200);

/// Attempts before a reader looks at the time.
const ATTEMPTS: u32 = 64;

/// A table of the default engine in another process.
pub struct ForeignTable {
    page: Arc<SharedPage>,
    index: Index<EightWay, Viewed>,
    arena: Arena,
    hasher: KeyHasher,
    cut: Cut,
    item_size_max: usize,
    key_len_max: usize,
    clock: Clock,
    hints: Hints,
}

/// Why a key was not looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// The engine's process has ended, or another has taken its place.
    Ended,
    /// The buckets of the key were changed, or locked, for as long as the reader tried: their process may have stopped
    /// in the middle of a change.
    Spoiled,
}

impl fmt::Display for NotRead {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Ended => "the server has ended, or another has taken its place",
            Self::Spoiled => "the server changes this key all the time, or has stopped in a change",
        })
    }
}

impl std::error::Error for NotRead {}

impl ForeignTable {
    /// The table in a file that its process has sent, to which uses are told by `hints`. Errors: it is none, or of another
    /// version.
    pub fn of(view: &Arc<SharedView>, hints: Hints) -> io::Result<Self> {
        let invalid = |cause| io::Error::new(io::ErrorKind::InvalidData, cause);
        let (page, plan) = SharedPage::view(view).map_err(invalid)?;
        Self::with(view, Arc::new(page), &plan, hints).ok_or_else(|| invalid(Unreadable::Garbage))
    }

    fn with(
        view: &Arc<SharedView>,
        page: Arc<SharedPage>,
        plan: &Plan,
        hints: Hints,
    ) -> Option<Self> {
        let parts = Viewed::view(view, Arc::clone(&page), plan)?;
        let arena = Arena::view(view, plan.arena)?;
        let piece_max = usize::try_from(plan.piece_max).ok()?;
        // A piece has room for a word at least, and no item is longer than all the memory.
        let bytes = view.bytes();
        let is_possible = (PIECE_HEADER + WORD..bytes).contains(&piece_max);
        let cut = Cut {
            max: piece_max,
            evenly: Log::CUTS_EVENLY,
        };
        let table = Self {
            index: Index::view(parts)?,
            arena,
            hasher: KeyHasher::seeded(plan.seed),
            cut,
            item_size_max: usize::try_from(plan.item_size_max).ok()?.min(bytes),
            key_len_max: usize::try_from(plan.key_len_max).ok()?,
            clock: page.clock(),
            page,
            hints,
        };
        is_possible.then_some(table)
    }

    /// A key, to be looked up here. `None` if no item can have it: it is empty, or too long.
    #[inline]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Option<Key<'k>> {
        let is_possible = (1..=self.key_len_max).contains(&bytes.len());
        is_possible.then(|| Key::new(bytes, &self.hasher))
    }

    /// Starts loading the buckets of a key that is looked up soon.
    #[inline]
    pub fn prefetch(&self, key: &Key<'_>) {
        self.index.prefetch(&self.index.place(key.hash()));
    }

    /// True while the engine's process serves. It may have been killed: that is not seen here.
    #[inline]
    pub fn is_serving(&self) -> bool {
        self.page.is_serving()
    }

    /// True if the items are copies of others': one that is not here may be elsewhere, and one that is here ends there later.
    #[inline]
    pub fn holds_copies(&self) -> bool {
        self.page.holds_copies()
    }

    /// The namespace whose keys are looked up now. What was found is of it if it is the same behind the get as before.
    #[inline]
    pub fn namespace(&self) -> Namespace {
        self.page.namespace()
    }

    /// The present, as items' lifetimes count it.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Puts the key's value in the place of what `into` holds. `None` if there is no such item; then `into` is empty.
    /// Makes no system call, unless it has to wait or to enlarge `into`.
    #[inline]
    pub fn get(&self, key: &Key<'_>, into: &mut Vec<u8>) -> Result<Option<Item>, NotRead> {
        into.clear();
        if !self.is_serving() {
            return Err(NotRead::Ended);
        }
        let flushes = &self.page.flushes;
        let clock = || self.clock.now();
        if flushes.is_due_by(clock) {
            return Ok(None);
        }
        let live = |header: &Header| flushes.is_live_by(header, clock);
        let mut copy = Copy {
            into,
            item: Item::default(),
        };
        let hit = |at: InWindow| self.hints.note(at.address().0);
        match self.reading().get_fast(key, live, &mut copy, hit) {
            FastPath::Hit => Ok(Some(copy.item)),
            FastPath::Miss => Ok(None),
            FastPath::Not => self.get_slow(key, into),
        }
    }

    /// A get in every case.
    #[cold]
    #[inline(never)]
    fn get_slow(&self, key: &Key<'_>, into: &mut Vec<u8>) -> Result<Option<Item>, NotRead> {
        let flushes = &self.page.flushes;
        let live = |header: &Header| flushes.is_live_by(header, || self.clock.now());
        let limits = (self.cut, self.item_size_max);
        let mut began = None;
        for turn in 0_u32.. {
            into.clear();
            match self.reading().copy(key, limits, live, into) {
                Copied::Found(item, address) => {
                    self.hints.note(address.0);
                    return Ok(Some(item));
                }
                Copied::Absent => return Ok(None),
                Copied::Spoiled => {}
            }
            if !self.is_serving() {
                return Err(NotRead::Ended);
            }
            let turn = turn.min(2 * ATTEMPTS);
            if turn >= ATTEMPTS && began.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                break;
            }
            spin(turn);
        }
        into.clear();
        Err(NotRead::Spoiled)
    }

    #[inline(always)]
    fn reading(&self) -> Reading<'_, EightWay, Viewed> {
        Reading {
            index: &self.index,
            arena: &self.arena,
        }
    }
}

/// Receives the one reply.
struct Copy<'v> {
    into: &'v mut Vec<u8>,
    item: Item,
}

impl Replies<Infallible> for Copy<'_> {
    #[inline(always)]
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.item = *item;
        // The length is below `COPY_MAX` even if it is torn.
        self.into.reserve(item.value_len);
        &mut self.into.spare_capacity_mut()[..item.value_len]
    }

    #[inline(always)]
    fn commit(&mut self, _: usize) {
        // SAFETY: `begin` has given room for so many bytes, and the reader has written all of them.
        unsafe { self.into.set_len(self.item.value_len) };
    }

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, value: Infallible) {
        match value {}
    }

    fn done(&mut self, _: usize, _: Reply) {}
}
