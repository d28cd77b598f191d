//! The cleaning of a log's pages: it empties a page. Records that are to stay are moved, the others leave.
//!
//! ```text
//!  a page being cleaned, a run of records at a time:
//!   1. read the keys of the run that comes next, and start loading its buckets ([`ahead`](super::ahead))
//!   2. of each of this run: dead or a gap? -> gone.   to stay? -> append a copy, and change the slot under the lock.
//!      else -> take it out of the index.
//! ```
//!
//! The thread that appends cleans, in proportion to the words that it appended, as soon as pages are short, and at such a
//! [pace](super::pace) that a page is free when the next one is needed. So no store waits for more than the cleaning of a
//! few pages, and nearly all stores wait for that of two or three records.
//!
//! The bytes of a linked record do not change, except for its header, a number's digits, and a large value's table of
//! pieces. So a copy is made without a lock, and what may have changed is copied again under the lock.

use std::cell::Cell;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::shim::{Ordering, fence, spin};

use super::sweep;
use crate::count::{ClassCount, Count};
use crate::eviction::log::{Candidate, Evicted};
use crate::fault::{self, Fault};
use crate::item::unlinked::Unlinked;
use crate::item::{HEADER_WIDE, Header, SHORT_KEY_LEN_MAX, Shape};
use crate::log::pace::Budget;
use crate::log::runs::RunNumber;
use crate::log::walk::PageWalk;
use crate::log::{Appended, Cleaning, Full, Idle, Log, Need, Plan, Purpose, Queue, Stream};
use crate::memory::arena::{Address, WORD};
use crate::reclaim::{ItemState, MakeRoom, PerThread, Reclaim};
use crate::store::{HasStore, Store};
use nuthatch_engine::number::DIGITS_MAX;

/// Words cleaned for each word appended while memory is not short: then cleaning only moves together what stays.
const CLEANED_PER_APPENDED_AT_EASE: usize = 3;

/// A thread that needs a page cleans at least this many pages in the usual way, before it evicts all items of the next
/// ones; and at least this many times the largest item, whose pages are all moved if it stays.
const PATIENCE: usize = 4;
const PATIENCE_ITEMS: usize = 2;

/// Pages of which all items may be evicted, at most, for one piece of memory.
const PAGES_MAX: usize = 64;

/// A thread that finds no page to clean closes the open ones. The second time it lets all items leave that can, and the
/// third time it gives up.
const IN_VAIN_MAX: usize = 2;

/// In a store that evicts nothing, this many pages' worth of gaps stay.
const PAGES_UNUSED: usize = 2;

/// A page that is stuck, because something in it is being read in place, counts as one part in `STUCK_COST` of an
/// emptied page: a thread may meet many stuck pages before one that can be emptied. Each is met once: it is passed over
/// until something in it has lost its last reader, or was freed.
const STUCK_COST: usize = if cfg!(loom) { 1 } else { 16 };

/// Records whose buckets are loaded side by side.
pub(super) const RUN: usize = if cfg!(loom) { 2 } else { 16 };

/// The fewest records of a run.
pub(super) const RUN_MIN: usize = 2;

/// An item over which values are written is judged so often at most. Then it stays where it is, and its page is tried
/// again later.
const JUDGED_MAX: usize = 4;

/// Records in which a store that evicts nothing looks for expired items.
const SWEPT_MAX: usize = if cfg!(loom) { 8 } else { 1 << 14 };

/// Words at the start of the record of an item with a short key that may change although the sequence stays: the header,
/// and the digits behind the key. The words behind them change only with the sequence. (Models have keys of 8 bytes, and
/// change numbers of up to 8 digits behind a narrow header.)
const CHANGED_MAX: usize = if cfg!(loom) {
    HEADER_WIDE / WORD
} else {
    (HEADER_WIDE + SHORT_KEY_LEN_MAX + DIGITS_MAX).div_ceil(WORD) + 1
};

/// Words of a page for each record that the background may look at: as many as most records have at most.
const WORDS_A_LOOK: usize = if cfg!(loom) { 4 } else { 39 };

/// How strict a cleaning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CleaningMode {
    /// The policy decides.
    Normal,
    /// Nothing stays: the thread that needs a page has cleaned several in vain.
    EvictAll,
}

/// How a step of cleaning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// So many words were looked at, and a page became free.
    Freed(usize),
    /// So many words were looked at.
    Looked(usize),
    /// A page was cleaned to its end, and something in it could not be moved. `again`: nor could it before.
    Stuck { again: bool },
    /// Other threads clean.
    Elsewhere,
    /// There is no page to clean.
    Nothing,
}

/// A record met in a page.
#[derive(Clone, Copy)]
pub(super) struct PageRecord {
    pub(super) address: Address,
    pub(super) header: Header,
    /// The hash of its key; of a piece, unused.
    pub(super) hash: u64,
}

impl PageRecord {
    /// What the policy judges the item by. The random number is the same for a large value's head and for all its
    /// pieces, until the head is moved.
    fn judged(&self, store: &Store<Log>) -> Candidate {
        // Multiplied by the golden ratio (Knuth), so that the upper bits depend on all of them.
        let mixed = (self.hash ^ self.address.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Candidate {
            uses: store.recency.uses(self.address),
            bytes: self.header.shape(store.cut()).total_bytes(),
            random: (mixed >> u32::BITS) as u32,
        }
    }
}

/// An engine whose index can refer to an item's copy: items of a log move.
pub trait Relocate: Reclaim + HasStore<Placement = Log> {
    /// Starts loading what a search for a key with this hash needs.
    fn prefetch_hash(&self, hash: u64);

    /// As [`Reclaim::remove_from_index`], for an item whose key has this hash.
    fn remove_hashed(
        &self,
        hash: u64,
        address: Address,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Unlinked>;

    /// Lets the index refer to an item's copy: the engine calls [`Store::finish_move`] under the item's lock, with the
    /// sequence that was copied. False if the index no longer refers to the item, or a reader has it pinned.
    fn relocate(&self, hash: u64, from: Address, to: Address, copied: u64) -> bool;

    /// The same for a piece of the item at `head`, whose key has this hash: [`Store::finish_piece_move`].
    fn relocate_piece(&self, hash: u64, head: Address, from: Address, to: Address) -> bool;
}

impl<E: Relocate> MakeRoom<E> for Log {
    /// An item that left a short time ago is appended where the used items are.
    #[inline]
    fn admit(engine: &E, local: &E::Local, hash: u64, arriving: bool) -> (Stream, u8) {
        // Without eviction there is one queue, and one stream, so that each gap that is cleaned can be filled.
        if !engine.evicts() {
            return (Stream::Kept, 0);
        }
        let log = engine.store().log();
        let ghost = log.history.take_ghost(hash);
        let to = ghost.map(|ghost| log.policy.admit(&ghost, &log.memory()));
        let missed = to == Some(Queue::Main);
        if missed {
            local.counters().one(Count::GhostHits);
        }
        let depths = &log.history.depths;
        if depths.follows(hash)
            && let Some(step) = depths.come_back(hash)
        {
            local.counters().more_hits(step, depths.weight());
        }
        match (arriving, missed) {
            (true, _) => (Stream::Arriving, u8::from(missed)),
            (false, true) => (Stream::Kept, 0),
            (false, false) => (Stream::New, 0),
        }
    }

    /// A record of a run, where threads store side by side.
    #[inline]
    fn cut(
        engine: &E,
        local: &mut E::Local,
        now: Time,
        to: Stream,
        shape: &Shape,
    ) -> Option<(Address, RunNumber)> {
        if to != Stream::New || !engine.evicts() {
            return None;
        }
        let log = engine.store().log();
        let (address, run) = log.cut(engine.store(), local.number(), shape)?;
        // Others may have appended behind the run: what is left of the page is what they have left.
        let due = log.due_by(address, shape);
        clean_for(engine, local, now, due, || log.pace.new_room());
        Some((address, run))
    }

    /// A record. Cleans pages if there is no room, and, if pages are short, in proportion to its length. It goes to the new
    /// items if a cleaning needs the room among those that are kept.
    #[inline]
    fn obtain(
        engine: &E,
        local: &mut E::Local,
        now: Time,
        to: Stream,
        bytes: usize,
        whole: Option<&Shape>,
    ) -> Option<Address> {
        let purpose = match engine.evicts() {
            true => Purpose::New,
            false => Purpose::Sparing,
        };
        let log = engine.store().log();
        let to = match to {
            Stream::Kept if engine.evicts() && !log.leaves_room_to_move(bytes) => Stream::New,
            _ => to,
        };
        let appended = match log.append(engine.store(), to, bytes, whole, purpose) {
            Ok(appended) => appended,
            Err(Full) => Cleaner::new(engine, local, now).append(to, bytes, whole, purpose)?,
        };
        clean_for(engine, local, now, appended.due, || appended.room);
        Some(appended.address)
    }

    /// Cleans about `budget` records.
    fn shrink(engine: &E, local: &mut E::Local, now: Time, budget: usize) -> bool {
        if !engine.store().pool().is_over() {
            return false;
        }
        Cleaner::new(engine, local, now).shrink(budget) && engine.store().pool().is_over()
    }

    /// Sweeps pages in which items have died.
    fn sweep_dead(engine: &E, local: &mut E::Local, now: Time, budget: usize) -> bool {
        let more = Cleaner::new(engine, local, now).sweep_words(budget * WORDS_A_LOOK);
        engine.notify_if_many(local);
        more
    }

    /// Moves records together, while there are gaps and patience.
    fn reclaim_unused(engine: &E, local: &mut E::Local, now: Time, bytes: usize) {
        let (pages, log) = (engine.store().pool().used_pages(), engine.store().log());
        let gaps = (pages * log.page_words()).saturating_sub(log.held_words());
        // The unused end of a page may be too short for a record that is moved.
        if gaps * WORD > bytes + PAGES_UNUSED * log.page_bytes() {
            Cleaner::new(engine, local, now).compact(bytes);
        }
    }
}

/// Cleans in proportion to `due` words that were appended, if there is need. Before the next page is needed, `room`
/// words can be appended.
#[inline]
fn clean_for<E: Relocate>(
    engine: &E,
    local: &mut E::Local,
    now: Time,
    due: usize,
    room: impl FnOnce() -> usize,
) {
    let log = engine.store().log();
    if due == 0 {
        return;
    }
    if log.is_short() && engine.evicts() {
        Cleaner::new(engine, local, now).keep_pace(due, room());
    } else if log.is_gappy() {
        Cleaner::new(engine, local, now).close_gaps(due);
    }
}

/// A thread that cleans.
pub(super) struct Cleaner<'a, E: Relocate> {
    pub(super) engine: &'a E,
    pub(super) log: &'a Log,
    pub(super) local: &'a mut E::Local,
    pub(super) now: Time,
    pub(super) plan: Plan,
    mode: CleaningMode,
    /// Words that were kept in this step.
    kept: usize,
}

impl<'a, E: Relocate> Cleaner<'a, E> {
    fn new(engine: &'a E, local: &'a mut E::Local, now: Time) -> Self {
        let log = engine.store().log();
        let need = match engine.evicts() {
            true => Need::Room,
            false => Need::EveryGap,
        };
        Self {
            engine,
            log,
            local,
            now,
            plan: Plan {
                need,
                evicts: engine.evicts(),
            },
            mode: CleaningMode::Normal,
            kept: 0,
        }
    }

    /// Moves items together, in proportion to what was appended, while memory is not short.
    #[cold]
    fn close_gaps(&mut self, appended: usize) {
        self.plan.need = Need::Order;
        self.clean(Budget::Words(CLEANED_PER_APPENDED_AT_EASE * appended));
        self.engine.notify_if_many(self.local);
    }

    /// Cleans in proportion to what was appended.
    #[cold]
    fn keep_pace(&mut self, appended: usize, room: usize) {
        self.sweep_for(appended);
        if let Step::Elsewhere = self.clean(Budget::Paced { appended, room }) {
            self.log.pace.note_missed(appended);
        }
        self.engine.notify_if_many(self.local);
    }

    /// Obtains a record of a log that has no page free.
    #[cold]
    fn append(
        &mut self,
        stream: Stream,
        bytes: usize,
        whole: Option<&Shape>,
        purpose: Purpose,
    ) -> Option<Appended> {
        let mut words = 0;
        let mut swept = 0;
        let mut in_vain = 0;
        let mut waited = 0;
        let largest = self.engine.item_size_max() / WORD;
        let patience = (PATIENCE * self.log.page_words()).max(PATIENCE_ITEMS * largest);
        while words < patience + PAGES_MAX * self.log.page_words() {
            self.engine.notify_if_many(self.local);
            if let Ok(appended) =
                self.log
                    .append(self.engine.store(), stream, bytes, whole, purpose)
            {
                return Some(appended);
            }
            // To move items into the few pages that can be emptied at all may gain nothing.
            let desperate = in_vain == IN_VAIN_MAX;
            self.mode = if words < patience && !desperate {
                CleaningMode::Normal
            } else {
                CleaningMode::EvictAll
            };
            let due = swept < sweep::SWEPT_PAGES_MAX && self.sweep_words(self.log.page_words());
            swept += usize::from(due);
            self.spare_the_living(due, if desperate { Need::AnyRoom } else { Need::Room });
            match self.clean(Budget::Words(self.log.page_words())) {
                // There may be more in the next page that is due, or in the one that another thread sweeps.
                Step::Nothing if due => {
                    spin(waited);
                    waited += 1;
                }
                // The rest of the page is looked at in the next step.
                Step::Looked(_) => {}
                // The index or the ghosts wait for this page, and for a bounded number of others, which are many where
                // pages are small: that is no failure to find room.
                Step::Freed(_) if self.engine.store().pool().keeps_for_others() => {}
                Step::Freed(_) => words += self.log.page_words(),
                Step::Stuck { again: false } => words += self.log.page_words() / STUCK_COST,
                Step::Elsewhere => {
                    spin(waited);
                    waited += 1;
                }
                // A page that is stuck again is the only page left to clean.
                Step::Stuck { again: true } | Step::Nothing => {
                    if in_vain < IN_VAIN_MAX {
                        in_vain += 1;
                    } else if !self.log.give_up_waiting(self.engine.store()) {
                        // The last step may have made room: the ghosts, for which some was kept, took what they need.
                        let store = self.engine.store();
                        return self.log.append(store, stream, bytes, whole, purpose).ok();
                    }
                    if self.engine.evicts() {
                        // All records lie in open pages.
                        self.log.close_open();
                    } else {
                        // The thread that took the item out may be about to free it.
                        spin(waited);
                        waited += 1;
                        self.remove_all_expired();
                        self.log.close_gappy();
                    }
                }
            }
        }
        None
    }

    /// Without eviction, only expired items make room.
    fn remove_all_expired(&mut self) {
        if self.engine.timestamps().may_have_dead() {
            self.engine.sweep_in_turn(self.local, self.now, SWEPT_MAX);
        }
    }

    /// Cleans a page, or a part of it.
    fn clean(&mut self, budget: Budget) -> Step {
        let mut work = match self.log.start_cleaning(self.engine.store(), &self.plan) {
            Ok(work) => work,
            Err(Idle::Elsewhere) => return Step::Elsewhere,
            Err(Idle::Nothing) => return Step::Nothing,
        };
        let Some(cleaning) = &mut *work else {
            return Step::Nothing;
        };
        let budget = budget.take(self.engine.store(), cleaning);
        let from = cleaning.at;
        let more = self.may_clean(cleaning) && self.clean_page(cleaning, budget);
        let looked = cleaning.at - from;
        cleaning.kept += std::mem::take(&mut self.kept);
        self.log.pace.note_moving(more.then_some(cleaning.page));
        if more {
            return Step::Looked(looked);
        }
        let cleaning = *cleaning;
        *work = None;
        self.log.pace.note_kept(cleaning.kept);
        if self.log.finish_cleaning(self.engine.store(), &cleaning) {
            self.local.counters().one(Count::PagesCleaned);
            Step::Freed(looked)
        } else {
            Step::Stuck {
                again: cleaning.again,
            }
        }
    }

    /// False if the page cannot be emptied: in a store that evicts nothing, something in the page is read in place. To
    /// move the rest would only take room.
    fn may_clean(&self, cleaning: &mut Cleaning) -> bool {
        let store = self.engine.store();
        if self.engine.evicts() || cleaning.at > 0 {
            return true;
        }
        let mut pinned = false;
        if !store.pins.is_idle() {
            let sequence = self.log.pages.sequence(cleaning.page);
            let records = self.log.page_words();
            self.log.records(
                store,
                cleaning.page,
                sequence,
                0,
                records,
                |address, header| {
                    let head = match header.is_item() {
                        true => Some(address),
                        false => header.piece_of(),
                    };
                    pinned |= head.is_some_and(|head| store.pins.is_pinned(head));
                },
            );
        }
        cleaning.begun |= !pinned;
        !pinned
    }

    /// Cleans a page from where the last step stopped, about `budget` words of it. True if there is more to do.
    fn clean_page(&mut self, cleaning: &mut Cleaning, budget: usize) -> bool {
        let store = self.engine.store();
        let sequence = self.log.pages.sequence(cleaning.page);
        let end = cleaning.at + budget;
        while cleaning.at < end {
            let mut run = [None; RUN];
            // About as many records as fit the budget: a store waits for all of them.
            let record = self.log.mean_words(store);
            let count = (end - cleaning.at).div_ceil(record).clamp(RUN_MIN, RUN);
            let (mut records, mut met) = (0, 0);
            let (mut items, mut bytes) = (0, 0);
            let walked = self.log.records(
                store,
                cleaning.page,
                sequence,
                cleaning.at,
                count,
                |address, header| {
                    let known = cleaning.ahead.hash(records);
                    records += 1;
                    let hash = if header.is_item() {
                        items += 1;
                        bytes += header.shape(store.cut()).total_bytes();
                        known.or_else(|| self.hash_of(address))
                    } else {
                        header.piece_of().map(|_| 0)
                    };
                    if let Some(hash) = hash {
                        run[met] = Some(PageRecord {
                            address,
                            header: *header,
                            hash,
                        });
                        met += 1;
                    }
                },
            );
            // Not in models: their time would be a multiple, and all they would meet are hashes of keys that stay.
            if let PageWalk::At(word) = walked
                && !cfg!(loom)
            {
                cleaning.ahead = self.look_ahead(cleaning.page, sequence, word, count);
            }
            if self.engine.evicts() {
                cleaning.met.note(items, bytes);
                // The first items are judged by their own mean.
                let first = self.log.history.mean_bytes() == 0;
                if first || cleaning.met.are_many() || walked == PageWalk::End {
                    let (items, bytes) = cleaning.met.take();
                    self.log.history.note_sizes(store, items, bytes);
                }
            }
            for record in run.iter().flatten() {
                self.clean_record(cleaning, record);
            }
            match walked {
                PageWalk::At(word) => cleaning.at = word,
                PageWalk::End => {
                    cleaning.at = self.log.pages.end(cleaning.page);
                    return false;
                }
            }
        }
        true
    }

    /// The hash of an item's key. Its buckets are in a cache soon.
    fn hash_of(&self, address: Address) -> Option<u64> {
        let key = self.engine.store().copy_key(address)?;
        let hash = self.engine.hasher().hash(key.bytes());
        self.engine.prefetch_hash(hash);
        Some(hash)
    }

    /// Keeps a record or lets it leave.
    #[inline]
    fn clean_record(&mut self, cleaning: &Cleaning, met: &PageRecord) {
        if !met.header.is_item() {
            return self.clean_piece(cleaning, met);
        }
        let mut met = *met;
        for _ in 0..JUDGED_MAX {
            match self.clean_item(cleaning, &met) {
                Some(present) => met.header = present,
                None => return,
            }
        }
    }

    /// The same for an item. Returns its present header if another value was written over the one that was judged.
    #[inline]
    fn clean_item(&mut self, cleaning: &Cleaning, met: &PageRecord) -> Option<Header> {
        // A look without the lock, here and below, spares a copy; the same is checked again under the lock.
        if self.engine.store().is_pinned(met.address, &met.header) {
            return None;
        }
        if !self.engine.is_live(&met.header, self.now) {
            self.remove_dead(met);
            return None;
        }
        let left = if cleaning.compacts {
            Some(self.engine.store().recency.uses(met.address))
        } else {
            self.judge(cleaning.queue, met)
        };
        if let Some(left) = left
            && self.keep(cleaning, met, left)
        {
            return None;
        }
        if !self.engine.evicts() {
            return None;
        }
        self.evict_met(cleaning.queue, met)
    }

    /// Evicts an item that has to leave its queue. Returns its present header if another value was written over the one
    /// that was judged: such an item is not evicted, since its writer was told that it is stored.
    fn evict_met(&mut self, queue: Queue, met: &PageRecord) -> Option<Header> {
        let store = self.engine.store();
        let (fetched, bytes) = (
            store.recency.was_fetched(met.address),
            met.header.shape(store.cut()).total_bytes(),
        );
        let overwritten = Cell::new(None);
        let doomed = |present: &Header| {
            let same =
                present.sequence() == met.header.sequence() || fault::is(Fault::JudgesTheOneBefore);
            overwritten.set((!same).then_some(*present));
            same
        };
        if self.remove_met(met, doomed) != Some(ItemState::Live) {
            return overwritten.get();
        }
        let reason = match queue {
            Queue::Probation => Count::EvictedProbation,
            Queue::Main => Count::EvictedMain,
        };
        self.local.counters().one(reason);
        if queue == Queue::Main {
            self.count(met, ClassCount::EvictedMain);
        }
        let Log {
            history, policy, ..
        } = self.log;
        history.add_ghost(queue, met.hash);
        policy.note_eviction(queue, &Evicted { bytes, fetched });
        if history.depths.follows(met.hash) {
            history.depths.leave(met.hash, bytes);
        }
        None
    }

    /// The uses that are left to an item if it stays.
    fn judge(&self, queue: Queue, met: &PageRecord) -> Option<u8> {
        if self.mode == CleaningMode::EvictAll {
            return None;
        }
        let item = met.judged(self.engine.store());
        self.log.policy.judge(queue, &item, &self.log.memory())
    }

    /// Counts what happens to an item.
    fn count(&self, met: &PageRecord, count: ClassCount) {
        let store = self.engine.store();
        self.local.counters().one_of(store, &met.header, count);
    }

    /// Takes an item out of the index that has expired or was flushed, unless that has changed.
    pub(super) fn remove_dead(&mut self, met: &PageRecord) {
        let (engine, now) = (self.engine, self.now);
        self.remove_met(met, |header| !engine.is_live(header, now));
    }

    /// Takes an item out of the index, and frees its memory. `None` if the index no longer had it.
    fn remove_met(
        &mut self,
        met: &PageRecord,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<ItemState> {
        let item = self.engine.remove_hashed(met.hash, met.address, doomed)?;
        let left = self.engine.note_removal(self.local, self.now, &item);
        self.engine.store().retire(item);
        Some(left)
    }

    /// Moves an item to the items that stay. True if it was moved, or has left meanwhile, or is being read in place;
    /// false if there is no room for it.
    fn keep(&mut self, cleaning: &Cleaning, met: &PageRecord, uses: u8) -> bool {
        let store = self.engine.store();
        let shape = met.header.shape(store.cut());
        let Some(to) = self.room_for_kept(cleaning, met.address, shape.head_bytes(), Some(&shape))
        else {
            return false;
        };
        let words = met.header.record_words(store.cut());
        let copied = store.copy_constant(met.address, to, words);
        store.recency.relocate(met.address, to, uses);
        let moved = self.engine.relocate(met.hash, met.address, to, copied);
        if moved {
            // The present expiry: it may have been touched meanwhile. If the item has left, the page is swept too
            // early, once.
            let expiry = Header::load(&store.arena, to).expiry();
            self.log.note_expiry(to, expiry);
            match (cleaning.queue, self.log.queue_of(to)) {
                _ if cleaning.compacts => {}
                (Queue::Probation, Queue::Main) => self.count(met, ClassCount::MovedToMain),
                (Queue::Main, Queue::Main) => self.count(met, ClassCount::MovedWithinMain),
                // Only the other queue had room.
                (_, Queue::Probation) => {}
            }
        }
        self.finish_move(met.address, to, words, moved);
        true
    }

    /// A record was copied: frees the old place, or the new one if the index did not take the copy.
    fn finish_move(&mut self, from: Address, to: Address, words: usize, moved: bool) {
        let arena = &self.engine.store().arena;
        if moved {
            self.log.link(to);
            self.log.free(arena, from, words, false);
            self.kept += words;
            let bytes = (words * WORD) as u64;
            self.local.counters().add(Count::BytesMoved as usize, bytes);
        } else {
            self.log.free(arena, to, words, true);
        }
    }

    /// A record for an item that stays. An item that is moved only to close gaps stays in its queue.
    fn room_for_kept(
        &self,
        cleaning: &Cleaning,
        from: Address,
        bytes: usize,
        whole: Option<&Shape>,
    ) -> Option<Address> {
        let store = self.engine.store();
        let stream = match cleaning.queue {
            Queue::Probation if cleaning.compacts => Stream::New,
            _ => Stream::Kept,
        };
        let evicts = self.engine.evicts();
        let moved = Purpose::Moved { from, evicts };
        let append = |stream| self.log.append(store, stream, bytes, whole, moved);
        // Another cleaning, or a new item that was missed, may have taken the room of records that a cleaning under way still
        // meets there. It is better to move such a record to the other queue than to lose it.
        let other = match stream {
            Stream::Kept => Stream::New,
            Stream::New | Stream::Arriving => Stream::Kept,
        };
        let appended =
            append(stream).or_else(|full| if evicts { append(other) } else { Err(full) });
        appended.ok().map(|appended| appended.address)
    }

    /// A piece goes where its item goes: after its head, if the head was moved before, or as the policy decides for
    /// the head.
    #[cold]
    fn clean_piece(&mut self, cleaning: &Cleaning, met: &PageRecord) {
        let store = self.engine.store();
        let Some(head) = self.head_of(met) else {
            return;
        };
        if store.is_pinned(head.address, &head.header) {
            return;
        }
        if !self.engine.is_live(&head.header, self.now) {
            return self.remove_dead(&head);
        }
        let queue = self.log.queue_of(head.address);
        // A moved head that is on probation was moved to close the gaps of its page: where uses do not count yet, or
        // were forgotten. The policy decides on the item when the cleaning meets the head. (The main queue's open page
        // may be older than a page on probation.)
        let moved_before = (queue == Queue::Main && cleaning.queue == Queue::Probation)
            || self.log.is_newer(head.address, met.address);
        let stays = cleaning.compacts
            || (moved_before && self.mode == CleaningMode::Normal)
            || self.judge(queue, &head).is_some();
        let words = met.header.record_words(store.cut());
        if stays && let Some(to) = self.room_for_kept(cleaning, met.address, words * WORD, None) {
            store.copy_constant(met.address, to, words);
            let moved = self
                .engine
                .relocate_piece(head.hash, head.address, met.address, to);
            self.finish_move(met.address, to, words, moved);
            return;
        }
        if self.engine.evicts() {
            // A value in pieces is not written over. One that has left meanwhile has taken its pieces along.
            let _ = self.evict_met(queue, &head);
        }
    }

    /// The head of a piece's item, as far as a thread can tell without the item's lock.
    fn head_of(&self, piece: &PageRecord) -> Option<PageRecord> {
        let store = self.engine.store();
        // Read again: since the run was read, the head may have been moved.
        let address = Header::load(&store.arena, piece.address).piece_of()?;
        let header = Header::load(&store.arena, address);
        let is_head = store.arena.contains(address) && header.is_item() && header.is_large();
        let key = store.copy_key(address).filter(|_| is_head)?;
        Some(PageRecord {
            address,
            header,
            hash: self.engine.hasher().hash(key.bytes()),
        })
    }

    /// Cleans pages, but no more than `PAGES_MAX`, until `bytes` bytes could be charged.
    fn compact(&mut self, bytes: usize) {
        let mut words = 0;
        while words < PAGES_MAX * self.log.page_words()
            && !self.engine.store().pool().has_room_for(bytes)
        {
            match self.clean(Budget::Words(self.log.page_words())) {
                Step::Freed(looked) | Step::Looked(looked) => words += looked.max(1),
                Step::Stuck { again: false } => words += self.log.page_words(),
                Step::Stuck { .. } | Step::Elsewhere | Step::Nothing => return,
            }
        }
    }

    /// Cleans about `budget` records, as long as the limit is exceeded. False if nothing can be cleaned now.
    fn shrink(&mut self, budget: usize) -> bool {
        let mut left = budget * WORDS_A_LOOK;
        let mut pages = 0;
        let mut in_vain = false;
        while left > 0 && self.engine.store().pool().is_over() {
            if pages >= PATIENCE {
                self.mode = CleaningMode::EvictAll;
            }
            let due = self.sweep_words(left);
            self.spare_the_living(due, if in_vain { Need::AnyRoom } else { Need::Room });
            match self.clean(Budget::Words(left)) {
                // There is more to clean after the sweep.
                Step::Nothing if due => return true,
                Step::Looked(looked) => left = left.saturating_sub(looked.max(1)),
                // A page with nothing but gaps is given back to the system like any other: that is not for nothing.
                Step::Freed(looked) => {
                    left = left.saturating_sub(looked.max(self.log.page_words() / STUCK_COST));
                }
                // No page was cleaned in vain: the readers will finish.
                Step::Stuck { again: false } if self.engine.evicts() => {
                    left = left.saturating_sub(self.log.page_words() / STUCK_COST);
                    continue;
                }
                Step::Nothing if self.engine.evicts() && !in_vain => {
                    if self.log.close_open() {
                        left = left.saturating_sub(self.log.page_words());
                    } else {
                        // It costs nothing, so this call goes on: the next one would begin here again.
                        in_vain = true;
                    }
                }
                Step::Stuck { .. } | Step::Elsewhere | Step::Nothing => return false,
            }
            pages += 1;
            self.engine.notify_if_many(self.local);
        }
        true
    }
}

impl Store<Log> {
    /// Copies the words of a linked record that change only with its sequence, if at all. Returns that sequence: of a
    /// piece, a meaningless one.
    pub fn copy_constant(&self, from: Address, to: Address, words: usize) -> u64 {
        let sequence = Header::load(&self.arena, from).sequence();
        // Acquire fence: pairs with the Release fence in `overwrite`.
        fence(Ordering::Acquire);
        self.begin_fill();
        if words > CHANGED_MAX {
            self.arena.copy(from, to, CHANGED_MAX..words);
        }
        sequence
    }

    /// Copies the rest of an item's record, whose buckets are locked; or all of it, if the item no longer has the
    /// sequence under which its constant part was copied. Writes the head's new place into a large value's pieces.
    /// Returns the item's header.
    pub fn finish_move(&self, from: Address, to: Address, copied: u64) -> Header {
        let header = Header::load(&self.arena, from);
        let words = header.record_words(self.cut());
        // A large value's head is a table, and its entries change when pieces move. Digits behind a long key are further
        // away.
        let anywhere = header.is_large() || header.has_long_key();
        let changed = if anywhere || header.sequence() != copied {
            words
        } else {
            words.min(CHANGED_MAX)
        };
        self.arena.copy(from, to, 0..changed);
        if header.is_large() {
            let shape = header.shape(self.cut());
            for index in 0..shape.pieces() {
                self.arena.store(self.piece(to, &shape, index), 1, to.0);
            }
        }
        header
    }

    /// Copies the rest of a piece's record, and puts it into the table of its head, whose buckets are locked. False
    /// if the table has another piece in its place.
    pub fn finish_piece_move(&self, head: Address, from: Address, to: Address) -> bool {
        let header = Header::load(&self.arena, head);
        let piece = Header::load(&self.arena, from);
        let shape = header.shape(self.cut());
        let index = piece.piece_index();
        if !header.is_large()
            || piece.piece_of() != Some(head)
            || index >= shape.pieces()
            || self.piece(head, &shape, index) != from
        {
            return false;
        }
        let words = piece.record_words(self.cut());
        self.arena.copy(from, to, 0..words.min(CHANGED_MAX));
        self.arena
            .store(head, shape.pieces_start() / WORD + index, to.0);
        true
    }
}
