//! What a get reads, and how: the same for the engine and for another process that has mapped its memory.
//!
//! A reader takes a snapshot of the versions of the key's buckets, compares tags, follows the slot, compares the key,
//! copies the value, and believes all that only if the versions are the same at the end (the linearization point). Until
//! then each word may be torn, so each address and length is bounded by the arena before it is used.

use nuthatch_base::sync::shim::Ordering;
use nuthatch_base::sync::stripes::Snapshot;

use super::Found;
use super::handle::COPY_MAX;
use super::index::{Index, Position};
use super::layout::Variant;
use super::parts::{Own, Parts};
use nuthatch_engine::reply::{Item, Replies, Reply};
use nuthatch_engine::request::Key;
use nuthatch_store::item::{Cut, HEADER, Header, SHORT_KEY_LEN_MAX, plain_item};
use nuthatch_store::memory::arena::{Address, Arena, WORD};
use nuthatch_store::memory::bytes;

/// A window has room for the usual item with the longest short key and the longest value that is copied, and for the
/// word behind it that [`bytes`] may load.
#[cfg(not(loom))]
const _: () = {
    use nuthatch_store::memory::arena::WINDOW;
    assert!(WINDOW * WORD >= HEADER + SHORT_KEY_LEN_MAX + COPY_MAX + WORD);
};

/// How a plain get ended on the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// Answered with a value, at the first item looked at.
    Hit,
    /// Answered with a miss: no tag matched.
    Miss,
    /// An unusual case: nothing was answered.
    Not,
}

/// The same number, in a form whose origin the compiler cannot see.
#[inline(always)]
fn opaque(number: u64) -> u64 {
    let same;
    // SAFETY: an empty instruction: what goes in comes out.
    #[cfg(not(miri))]
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) number => same, options(pure, nomem, nostack, preserves_flags));
    }
    #[cfg(miri)]
    (same = number);
    same
}

/// The address of an item that was read through a [window](Arena::window): it begins in the arena, or at its end.
#[derive(Clone, Copy)]
pub struct InWindow(Address);

impl InWindow {
    /// The address.
    #[inline(always)]
    pub fn address(self) -> Address {
        self.0
    }
}

/// How an attempt to copy an item's value ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Copied {
    /// With the value; the item, and where it lies.
    Found(Item, Address),
    /// There is no such item.
    Absent,
    /// Something was changed meanwhile, or is being changed.
    Spoiled,
}

/// The parts of a table that a get reads.
pub struct Reading<'t, D, P = Own> {
    /// Buckets, versions and geometry.
    pub index: &'t Index<D, P>,
    /// Items.
    pub arena: &'t Arena,
}

// (A derive would ask that the parameters are `Copy`.)
impl<D, P> Clone for Reading<'_, D, P> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<D, P> Copy for Reading<'_, D, P> {}

impl<D: Variant, P: Parts> Reading<'_, D, P> {
    /// Looks for the key's item in two buckets, and counts the items that have its tag and are another key's. The result
    /// is valid only under a lock or after a version check.
    #[inline(always)]
    pub(super) fn find(self, tag: u64, buckets: [u64; 2], key: &Key<'_>) -> (Option<Found>, u64) {
        let mut mask = self.index.matches(buckets, tag);
        let mut false_tags = 0;
        while mask != 0 {
            let at = Position::matched::<D>(buckets, mask);
            mask &= mask - 1;
            let slot = self.index.load(at);
            if slot.is_empty() {
                continue;
            }
            let address = slot.address::<D>();
            let header = Header::load(self.arena, address);
            if self.is_key(address, &header, key) {
                let found = Found {
                    at,
                    address,
                    header,
                };
                return (Some(found), false_tags);
            }
            false_tags += 1;
        }
        (None, false_tags)
    }

    /// One attempt to copy a value of any length up to `len_max`, from a store that cuts values in this way, if the item is
    /// `live`: without a lock, and without a pin. Neither is needed: who moves or frees a piece changes the versions first,
    /// and makes a Release fence before it overwrites it (invariant 3 of the store). `into` is empty before.
    pub fn copy(
        self,
        key: &Key<'_>,
        (cut, len_max): (Cut, usize),
        live: impl FnOnce(&Header) -> bool,
        into: &mut Vec<u8>,
    ) -> Copied {
        let place = &self.index.place(key.hash());
        let Some((snapshot, buckets)) = self.index.try_begin(place) else {
            return Copied::Spoiled;
        };
        let (found, _) = self.find(place.tag, buckets, key);
        let unless_spoiled = |copied| match self.index.unchanged(&snapshot) {
            true => copied,
            false => Copied::Spoiled,
        };
        let Some(found) = found.filter(|found| live(&found.header)) else {
            return unless_spoiled(Copied::Absent);
        };
        let item = plain_item(&found.header);
        // Before memory is taken for it: a torn length may be any number.
        if item.value_len > len_max || !self.index.unchanged(&snapshot) {
            return Copied::Spoiled;
        }
        // The other process may say that it is more than there is.
        if into.try_reserve_exact(item.value_len).is_err() {
            return Copied::Spoiled;
        }
        let shape = found.header.shape(cut);
        let room = &mut into.spare_capacity_mut()[..item.value_len];
        if !self.arena.read_value(found.address, &shape, 0, room) {
            return Copied::Spoiled;
        }
        let copied = unless_spoiled(Copied::Found(item, found.address));
        if let Copied::Found(..) = copied {
            // SAFETY: there is room for so many bytes, and `read_value` has written all of them.
            unsafe { into.set_len(item.value_len) };
        }
        copied
    }

    /// True if there lies this key's item (under a lock, or as far as a reader can tell).
    #[inline(always)]
    pub fn is_key(self, address: Address, header: &Header, key: &Key<'_>) -> bool {
        header.key_len() == key.bytes().len()
            && self
                .arena
                .equals(address, header.key_start() / WORD, key.bytes())
    }

    /// A plain get alone, for the usual case; `live` says whether an item may be returned. It has no loops, and nearly
    /// all its branches always go the same way: the processor runs on into the next get while this one waits for
    /// memory.
    ///
    /// The number of instructions that the processor can hold decides how many gets it has begun by then. On a Zen 4
    /// (320) twenty instructions less, of some 155 a get, made gets alone of ten million items 1.35 to 1.45 times as
    /// fast: one more get fits. Spills to the stack count as well: look at the compiler's output after a change.
    #[inline(always)]
    pub fn get_fast<V>(
        self,
        key: &Key<'_>,
        live: impl FnOnce(&Header) -> bool,
        replies: &mut impl Replies<V>,
        hit: impl FnOnce(InWindow),
    ) -> FastPath {
        let place = &self.index.place(key.hash());
        let Some((snapshot, buckets)) = self.index.begin_at_rest(place) else {
            return FastPath::Not;
        };
        match self.index.first_match(buckets, place.tag) {
            Some(slot) => {
                let at = (0, slot.address::<D>(), &snapshot);
                self.answer_hit(key, at, live, replies, hit)
            }
            None => self.answer_miss(0, &snapshot, replies),
        }
    }

    /// Answers request `index` with a miss, if nothing has changed.
    #[inline(always)]
    pub fn answer_miss<V>(
        self,
        index: usize,
        snapshot: &Snapshot,
        replies: &mut impl Replies<V>,
    ) -> FastPath {
        if !self.index.unchanged(snapshot) {
            return FastPath::Not;
        }
        replies.done(index, Reply::Miss);
        FastPath::Miss
    }

    /// Answers request `index` with the item at an address if it is this key's, alive, with the usual header, not too large to copy,
    /// and was not moved meanwhile.
    #[inline(always)]
    pub fn answer_hit<V>(
        self,
        key: &Key<'_>,
        at: (usize, Address, &Snapshot),
        live: impl FnOnce(&Header) -> bool,
        replies: &mut impl Replies<V>,
        hit: impl FnOnce(InWindow),
    ) -> FastPath {
        let (index, address, snapshot) = at;
        // Otherwise the compiler would keep the slot's word as well, and spill values that the next get needs.
        let address = Address(opaque(address.0));
        let Some(words) = self.arena.window(address) else {
            return FastPath::Not;
        };
        let (head, body) = words.split_at(HEADER / WORD);
        let key = key.bytes();
        // A long key takes the slow path, and no key exceeds the window.
        if key.len() > SHORT_KEY_LEN_MAX {
            return FastPath::Not;
        }
        // In this order each word is used where it is loaded: none is kept meanwhile, or spilled.
        let word0 = head[0].load(Ordering::Relaxed);
        if !bytes::equal(body, key) {
            return FastPath::Not;
        }
        let word1 = head[1].load(Ordering::Relaxed);
        let Some(header) = Header::fast_path(word0, word1, key.len(), COPY_MAX) else {
            return FastPath::Not;
        };
        let item = plain_item(&header);
        if !live(&header) {
            return FastPath::Not;
        }
        let into = replies.begin(index, &item);
        bytes::copy_out(body, key.len(), into);
        if !self.index.unchanged(snapshot) {
            replies.retract(index);
            return FastPath::Not;
        }
        replies.commit(index);
        hit(InWindow(address));
        FastPath::Hit
    }
}
