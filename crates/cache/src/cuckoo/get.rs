//! Plain gets: MemC3's optimistic lookup.
//!
//! Three ways lead to an answer: the usual one, straight through; the second half of it, for a batch
//! that has looked at the tags before; and the one for everything out of the ordinary.

use std::sync::Arc;

use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::Ordering;
use nuthatch_sync::stripes::Snapshot;

use super::find::{Asked, position};
use super::handle::{COPY_MAX, CuckooValue};
use super::index::Place;
use super::layout::Design;
use super::local::Local;
use super::matching::Matcher;
use super::{Cuckoo, plain_item};
use crate::count::Count;
use crate::item::{HEADER, Header};
use crate::prefetch;
use crate::reply::{Replies, Reply};
use crate::request::Key;
use crate::slab::arena::{self, Chunk, WORD};

/// What the second stage of a batch leaves for the third: a lookup that has seen the tags and waits
/// for the item's line.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    snapshot: Snapshot,
    /// The first item whose tag matched.
    candidate: Option<Chunk>,
}

/// How an optimistic attempt ended.
pub(super) enum Attempt {
    Done,
    /// Something moved.
    Again,
    /// A hit on a value too large to copy: it must be pinned under the lock.
    Large,
}

impl<D: Design> Cuckoo<D> {
    /// Second stage: compares tags and starts loading the item.
    #[inline(always)]
    pub(super) fn probe<M: Matcher>(&self, matcher: M, place: &Place) -> Probe {
        let (snapshot, first, second) = self.index.begin(place);
        let mask = self.matches(matcher, place.tag, [first, second]);
        // The slot may have changed since its tag matched: then it is checked like any other.
        let candidate = (mask != 0).then(|| {
            let at = position::<D>([first, second], mask);
            let chunk = self.index.load(at).chunk::<D>();
            prefetch::read(self.store.arena.address(chunk));
            prefetch::read(self.store.recency.address(chunk));
            chunk
        });
        Probe {
            snapshot,
            candidate,
        }
    }

    /// Third stage of a plain get.
    #[inline(always)]
    pub(super) fn get_probed<M: Matcher>(
        self: &Arc<Self>,
        local: &Local,
        matcher: M,
        asked: &Asked<'_>,
        probe: &Probe,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let Asked {
            now, key, index, ..
        } = *asked;
        let answered = match probe.candidate {
            Some(chunk) => self.answer_usual(now, key, chunk, &probe.snapshot, index, replies),
            None => self.answer_miss(&probe.snapshot, index, replies),
        };
        if !answered {
            self.get_any(local, matcher, asked, replies);
        }
    }

    /// A plain get.
    #[inline(always)]
    pub(super) fn get<M: Matcher>(
        self: &Arc<Self>,
        local: &Local,
        matcher: M,
        asked: &Asked<'_>,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        if !self.get_usual(matcher, asked, replies) {
            self.get_any(local, matcher, asked, replies);
        }
    }

    /// A plain get for which nothing is out of the ordinary. False, with nothing answered, if
    /// something is. Without loops, and with no branch that is not nearly always taken the same
    /// way: the processor runs on into the next get while this one waits for memory.
    #[inline(always)]
    fn get_usual<M: Matcher>(
        &self,
        matcher: M,
        asked: &Asked<'_>,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> bool {
        let Asked {
            now,
            key,
            place,
            index,
        } = *asked;
        let Some((snapshot, first, second)) = self.index.begin_at_rest(place) else {
            return false;
        };
        let mask = self.matches(matcher, place.tag, [first, second]);
        if mask == 0 {
            return self.answer_miss(&snapshot, index, replies);
        }
        let at = position::<D>([first, second], mask);
        let chunk = self.index.load(at).chunk::<D>();
        self.answer_usual(now, key, chunk, &snapshot, index, replies)
    }

    #[inline(always)]
    fn answer_miss(
        &self,
        snapshot: &Snapshot,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> bool {
        let unchanged = self.index.unchanged(snapshot);
        if unchanged {
            replies.done(index, Reply::Miss);
        }
        unchanged
    }

    /// Answers with the item in a chunk if it is this key's, alive, with the usual header, not too
    /// large to copy, and not moved meanwhile. False, with nothing answered, otherwise.
    #[inline(always)]
    fn answer_usual(
        &self,
        now: Time,
        key: &Key<'_>,
        chunk: Chunk,
        snapshot: &Snapshot,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> bool {
        let arena = &self.store.arena;
        let Some([word0, word1]) = arena.words(chunk, 2) else {
            return false;
        };
        let (word0, word1) = (word0.load(Ordering::Relaxed), word1.load(Ordering::Relaxed));
        let key_len = key.bytes().len();
        let Some(header) = Header::usual(word0, word1, key_len) else {
            return false;
        };
        let item = plain_item(&header);
        let words = (HEADER + key_len + item.value_len).div_ceil(WORD);
        let Some(words) = arena.words(chunk, words) else {
            return false;
        };
        let same = arena::equal(&words[HEADER / WORD..], key.bytes());
        if !same || !self.is_live(&header, now) || item.value_len > COPY_MAX {
            return false;
        }
        let into = replies.begin(index, &item);
        arena::copy_out(&words[(HEADER + key_len) / WORD..], key_len % WORD, into);
        let unchanged = self.index.unchanged(snapshot);
        if unchanged {
            replies.commit(index);
            self.store.recency.hit(chunk);
        } else {
            replies.retract(index);
        }
        unchanged
    }

    /// A plain get, whatever may be in its way.
    #[cold]
    #[inline(never)]
    fn get_any<M: Matcher>(
        self: &Arc<Self>,
        local: &Local,
        matcher: M,
        asked: &Asked<'_>,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let Asked {
            now,
            key,
            place,
            index,
        } = *asked;
        // Each turn but the last means that a writer finished something meanwhile.
        loop {
            let (snapshot, first, second) = self.index.begin(place);
            let found = self.find(local, matcher, place.tag, [first, second], key);
            let found = found.map(|found| (found.chunk, found.header));
            match self.answer(now, found, &snapshot, index, replies) {
                Attempt::Done => return,
                Attempt::Large => return self.get_large(local, asked, replies),
                Attempt::Again => local.counters.one(Count::Retries),
            }
        }
    }

    /// Lays the value down, and keeps it if nothing moved.
    #[inline(always)]
    fn answer(
        &self,
        now: Time,
        found: Option<(Chunk, Header)>,
        snapshot: &Snapshot,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> Attempt {
        let Some((chunk, header)) = found.filter(|(_, header)| self.is_live(header, now)) else {
            return self.settle(snapshot, || replies.done(index, Reply::Miss));
        };
        let item = plain_item(&header);
        if item.value_len > COPY_MAX {
            return if self.index.unchanged(snapshot) {
                Attempt::Large
            } else {
                Attempt::Again
            };
        }
        let shape = header.shape(self.store.chunk_max());
        let into = replies.begin(index, &item);
        self.store.read_value(chunk, &shape, 0, into);
        if self.index.unchanged(snapshot) {
            replies.commit(index);
            self.store.recency.hit(chunk);
            Attempt::Done
        } else {
            replies.retract(index);
            Attempt::Again
        }
    }

    #[inline(always)]
    pub(super) fn settle(&self, snapshot: &Snapshot, done: impl FnOnce()) -> Attempt {
        if self.index.unchanged(snapshot) {
            done();
            Attempt::Done
        } else {
            Attempt::Again
        }
    }

    /// A get of a value too large to copy.
    #[cold]
    fn get_large(
        self: &Arc<Self>,
        local: &Local,
        asked: &Asked<'_>,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let Asked {
            now,
            key,
            place,
            index,
        } = *asked;
        let locked = self.index.lock(place);
        let found = self
            .find_locked(local, &locked, key)
            .filter(|found| self.is_live(&found.header, now));
        match found {
            None => {
                locked.release_unmodified();
                replies.done(index, Reply::Miss);
            }
            Some(found) => {
                let item = plain_item(&found.header);
                self.hand_out(locked, found.chunk, &found.header, item, index, replies);
            }
        }
    }
}
