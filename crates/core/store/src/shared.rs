//! The page by which processes that read an engine's memory find their way in it.
//!
//! ```text
//!  the file:  | page | stripes | index (room to double)        | arena                                  |
//!             begins with `Page`; the others where it says, in whole pages, or in huge ones if they fill them
//! ```
//!
//! All of it is written by the engine's process alone. The page is filled while nobody else has the file; later only its
//! first line changes: the state, the namespace that is read, and what the engine tells of itself
//! ([`geometry`](Page::geometry), [`flushes`](Page::flushes)).

use std::fmt;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use nuthatch_base::hash::KeyHasher;
use nuthatch_base::memory::shared::{SharedFile, SharedView};
use nuthatch_base::memory::{AnyBytes, MappedArray, Part, Source, Zeroed};
use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{Clock, Sharing, boot};

use crate::timestamps::Flushes;

/// What the file begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"nuthatch");

/// The version of all that lies in the file: this page, stripes, buckets, and items. Another one is not read.
pub const LAYOUT: u64 = 3;

/// The life of the engine's process, in [`Page::state`]. It serves items of its own, or copies of others': both have the bit of
/// the first.
const SERVING: u64 = 1;
const ENDED: u64 = 2;
const SERVING_COPIES: u64 = 3;

/// A key whose hash tells whether two processes hash alike.
const PROBE: &[u8] = b"a key that is longer than the short ones";

/// The first page of the file.
#[derive(Debug)]
#[repr(C)]
pub struct Page {
    magic: AtomicU64,
    layout: AtomicU64,
    state: AtomicU64,
    /// The number of the namespace of database 0.
    namespace: AtomicU64,
    /// The index's [`Geometry`](crate::geometry::Geometry), packed.
    pub geometry: AtomicU64,
    /// What readers must know of flushes.
    pub flushes: Flushes,
    clock: AtomicU64,
    /// Of which start of the machine, or of which time namespace, the clock counts from.
    boot: [AtomicU64; 2],
    seed: AtomicU64,
    probe: AtomicU64,
    stripes: [AtomicU64; 2],
    /// Stripes in use.
    stripe_count: AtomicU64,
    index: [AtomicU64; 2],
    arena: [AtomicU64; 2],
    /// Bytes of the largest piece of a value.
    piece_max: AtomicU64,
    item_size_max: AtomicU64,
    key_len_max: AtomicU64,
}

impl Default for Page {
    /// All zero.
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            magic: zero(),
            layout: zero(),
            state: zero(),
            namespace: zero(),
            geometry: zero(),
            flushes: Flushes::zeroed(),
            clock: zero(),
            boot: [zero(), zero()],
            seed: zero(),
            probe: zero(),
            stripes: [zero(), zero()],
            stripe_count: zero(),
            index: [zero(), zero()],
            arena: [zero(), zero()],
            piece_max: zero(),
            item_size_max: zero(),
            key_len_max: zero(),
        }
    }
}

// SAFETY: atomic integers, of which 0 is a value; the default is zero.
unsafe impl Zeroed for Page {}

// SAFETY: words, and the two halves of one, without a gap.
unsafe impl AnyBytes for Page {}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Page>() == 22 * size_of::<u64>());

/// What does not change while an engine lives, and its readers must know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Where the counters of the stripes lie.
    pub stripes: Part,
    /// How many are in use.
    pub stripe_count: u64,
    /// Where the buckets lie, in words.
    pub index: Part,
    /// Where the items lie, in words.
    pub arena: Part,
    /// Bytes of the largest piece of a value.
    pub piece_max: u64,
    /// Bytes of the largest item.
    pub item_size_max: u64,
    /// Bytes of the longest key.
    pub key_len_max: u64,
    /// The seed of the hash function.
    pub seed: u64,
}

/// The first page of an engine's file, mapped.
pub struct SharedPage(MappedArray<Page, 1>);

impl Deref for SharedPage {
    type Target = Page;

    #[inline(always)]
    fn deref(&self) -> &Page {
        &self.0[0]
    }
}

impl std::fmt::Debug for SharedPage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the seed: a log must not reveal how to flood a bucket.
        out.write_str("SharedPage")
    }
}

/// The memory of an engine that other processes read.
#[derive(Debug)]
pub struct Shared {
    file: Arc<SharedFile>,
    page: Arc<SharedPage>,
}

impl Shared {
    /// A file that has a page, which is not filled yet. Errors: the system has no such memory.
    pub fn new() -> io::Result<Self> {
        let file = Arc::new(SharedFile::new("nuthatch")?);
        let page = MappedArray::reserve_in(&Source::Shared(Arc::clone(&file)))?;
        let page = Arc::new(SharedPage(page));
        page.flushes.await_none();
        Ok(Self { file, page })
    }

    /// Where the engine's arrays are to lie.
    pub fn source(&self) -> Source {
        Source::Shared(Arc::clone(&self.file))
    }

    /// The page.
    pub fn page(&self) -> &Arc<SharedPage> {
        &self.page
    }

    /// Notes where everything lies, and seals the file: nothing can be added.
    pub fn complete(&self, plan: &Plan) -> io::Result<()> {
        let page = &self.page;
        // Relaxed, here and below: the file is sent to readers afterwards.
        let store = |word: &AtomicU64, value| word.store(value, Ordering::Relaxed);
        let store_part = |words: &[AtomicU64; 2], part: Part| {
            store(&words[0], part.start);
            store(&words[1], part.len);
        };
        store_part(&page.stripes, plan.stripes);
        store_part(&page.index, plan.index);
        store_part(&page.arena, plan.arena);
        store(&page.stripe_count, plan.stripe_count);
        store(&page.piece_max, plan.piece_max);
        store(&page.item_size_max, plan.item_size_max);
        store(&page.key_len_max, plan.key_len_max);
        store(&page.seed, plan.seed);
        store(&page.probe, KeyHasher::seeded(plan.seed).hash(PROBE));
        store(&page.layout, LAYOUT);
        for (word, half) in page.boot.iter().zip(boot_words()) {
            store(word, half);
        }
        store(&page.magic, MAGIC);
        self.file.seal()
    }
}

impl Sharing for Shared {
    fn file(&self) -> &Arc<SharedFile> {
        &self.file
    }

    fn begin(&self, clock: &Clock, holds_copies: bool) {
        self.page.clock.store(clock.started(), Ordering::Relaxed);
        let state = if holds_copies {
            SERVING_COPIES
        } else {
            SERVING
        };
        // Release: pairs with the Acquire in `SharedPage::is_serving`.
        self.page.state.store(state, Ordering::Release);
    }

    fn set_namespace(&self, namespace: Namespace) {
        // Release: pairs with the Acquire in `SharedPage::namespace`.
        let number = namespace.number().into();
        self.page.namespace.store(number, Ordering::Release);
    }

    fn end(&self) {
        // SeqCst: whoever is told that the process has ended, and reads then, sees it.
        self.page.state.store(ENDED, Ordering::SeqCst);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no engine's, or what it says of itself cannot be.
    Garbage,
    /// It has another layout, of this version.
    Layout(u64),
    /// Its process hashes keys in another way.
    Hash,
    /// Its process counts time from another start: it is in another time namespace.
    Time,
}

/// Whether clocks with these names of their starts count alike. Names that are not known may be those of two time namespaces.
fn count_alike(theirs: [u64; 2], ours: [u64; 2]) -> bool {
    theirs == ours && ours != [0; 2]
}

/// The name of the start from which clocks count, in two words: zeros if it is not known.
fn boot_words() -> [u64; 2] {
    let boot = u128::from_le_bytes(boot());
    [boot as u64, (boot >> 64) as u64]
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Garbage => out.write_str("this is not the memory of a Nuthatch server"),
            Self::Layout(other) => write!(
                out,
                "the server's memory has layout {other}, and this program reads layout {LAYOUT}: one of the two is older"
            ),
            Self::Time => out.write_str(
                "the server may count time from another start than this program: one of the two is in a time namespace, or \
                 has no /proc",
            ),
            Self::Hash => out.write_str("the server hashes keys in another way than this program"),
        }
    }
}

impl std::error::Error for Unreadable {}

impl SharedPage {
    /// The page of a file that another process has sent, and its plan.
    pub fn view(of: &Arc<SharedView>) -> Result<(Self, Plan), Unreadable> {
        let first = Part { start: 0, len: 1 };
        let page = MappedArray::view(of, first).ok_or(Unreadable::Garbage)?;
        let page = Self(page);
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        if load(&page.magic) != MAGIC {
            return Err(Unreadable::Garbage);
        }
        match load(&page.layout) {
            LAYOUT => {}
            other => return Err(Unreadable::Layout(other)),
        }
        let part = |words: &[AtomicU64; 2]| Part {
            start: load(&words[0]),
            len: load(&words[1]),
        };
        let plan = Plan {
            stripes: part(&page.stripes),
            stripe_count: load(&page.stripe_count),
            index: part(&page.index),
            arena: part(&page.arena),
            piece_max: load(&page.piece_max),
            item_size_max: load(&page.item_size_max),
            key_len_max: load(&page.key_len_max),
            seed: load(&page.seed),
        };
        if KeyHasher::seeded(plan.seed).hash(PROBE) != load(&page.probe) {
            return Err(Unreadable::Hash);
        }
        if !count_alike([0, 1].map(|half| load(&page.boot[half])), boot_words()) {
            return Err(Unreadable::Time);
        }
        Ok((page, plan))
    }

    /// True while the engine's process serves. It may have been killed: that is not seen here.
    #[inline(always)]
    pub fn is_serving(&self) -> bool {
        // Acquire: pairs with the Release in `begin`.
        self.state.load(Ordering::Acquire) & SERVING != 0
    }

    /// True if it serves copies of others' items.
    #[inline]
    pub fn holds_copies(&self) -> bool {
        // Relaxed: a process says the same all the time that it serves.
        self.state.load(Ordering::Relaxed) == SERVING_COPIES
    }

    /// The namespace whose keys a reader looks up. Who reads an item that was stored after a change of it, and looks here
    /// behind that, sees the change.
    #[inline(always)]
    pub fn namespace(&self) -> Namespace {
        // Acquire: pairs with the Release in `set_namespace`.
        Namespace::numbered(self.namespace.load(Ordering::Acquire) as u32)
    }

    /// The start of the engine's clock.
    pub fn clock(&self) -> Clock {
        Clock::started_at(self.clock.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class of fault: two that know nothing are taken for the same.
    #[test]
    fn clocks_count_alike_only_from_a_known_start() {
        assert!(count_alike([1, 2], [1, 2]) && count_alike([0, 2], [0, 2]));
        assert!(!count_alike([1, 2], [1, 3]) && !count_alike([0, 0], [1, 2]));
        assert!(!count_alike([0, 0], [0, 0]));
    }
}
