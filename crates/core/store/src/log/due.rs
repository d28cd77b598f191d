//! The times at which the items of each page die, so that a page is swept when it pays, and only then.
//!
//! A page is *due* at the tick at which the first of its items expires. After a sweep that becomes the tick at which an
//! eighth of its words will be dead, or all of its expiring items if those are fewer. So each sweep but the first in a
//! page's life finds something, however expiries are spread. Items that never expire cost nothing.
//!
//! ```text
//!   a page swept now:   | dead | alive, 5 s | for ever | alive, 60 s | alive, 61 s | alive, 62 s | for ever |
//!                        gap                                         due in 61 s: an eighth of the page has died then
//! ```
//!
//! A flush makes all pages due.
//!
//! Invariants:
//! 1. A page's tick is not later than the moment at which an eighth of its words will be dead, but for the grain of
//!    [`Expiring`]: a thread that gives an item an expiry notes it in the page afterwards, and a thread that sweeps the
//!    page takes its tick before it looks at the items.
//! 2. The first tick is not later than that of any page.

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_engine::request::Expiry;

use super::Log;
use super::pages::NEVER;
use super::walk::PageWalk;
use crate::item::Header;
use crate::memory::arena::{Address, WORD};
use crate::store::Store;

/// A page is due when one part in so many of it is dead.
const DUE_SHARE: usize = 8;

/// The due pages, and the sweep under way.
pub struct Due {
    /// The first tick at which a page is due.
    first: AtomicU64,
    /// The flush bar of the last flush that made all pages due.
    bar: AtomicU64,
    sweep: Mutex<Option<Sweep>>,
}

impl Default for Due {
    fn default() -> Self {
        Self {
            first: AtomicU64::new(NEVER),
            bar: AtomicU64::new(0),
            sweep: Mutex::new(None),
        }
    }
}

/// A page that is being swept.
pub struct Sweep {
    page: u32,
    sequence: u64,
    /// The sweep's place: the word up to which the page was swept.
    at: usize,
    expiring: Expiring,
}

/// How a step of a sweep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// So many words were looked at.
    Looked(usize),
    /// Another thread sweeps.
    Elsewhere,
    /// No page is due.
    Nothing,
}

/// The items that a step of a sweep looks for.
#[derive(Clone, Copy)]
pub struct Dead {
    /// The moment.
    pub now: Time,
    /// Items with a lower sequence are flushed.
    pub bar: u64,
}

impl Dead {
    /// True if an item must not be returned.
    pub fn is_dead(&self, header: &Header) -> bool {
        header.is_expired(self.now) || header.sequence() < self.bar
    }
}

impl Log {
    /// Notes an expiry that an item at this place has got. The item cannot leave its page meanwhile.
    #[inline]
    pub fn note_expiry(&self, address: Address, expiry: Expiry) {
        if let Expiry::At(time) = expiry {
            self.note_due(self.page_of(address), time.0.into());
        }
    }

    fn note_due(&self, page: u32, tick: u64) {
        self.pages.note_due(page, tick);
        // SeqCst: with the page's tick, stored before, as in `next_due`: one of the two sees the other (due 2).
        if tick < self.due.first.load(Ordering::SeqCst) {
            self.due.first.fetch_min(tick, Ordering::SeqCst);
        }
    }

    /// True if a page is due.
    #[inline]
    pub fn is_due(&self, dead: &Dead) -> bool {
        // Relaxed: a hint.
        self.due.first.load(Ordering::Relaxed) <= dead.now.0.into()
            || self.due.bar.load(Ordering::Relaxed) != dead.bar
    }

    /// Sweeps up to `budget` records of the page that is due: shows each that is dead.
    pub fn sweep_due(
        &self,
        store: &Store<Log>,
        dead: &Dead,
        budget: usize,
        mut show: impl FnMut(Address, &Header),
    ) -> Swept {
        let Some(mut sweep) = self.due.sweep.try_lock() else {
            return Swept::Elsewhere;
        };
        self.note_flush(store, dead);
        if sweep.is_none() {
            *sweep = self.start_sweep(store, dead);
        }
        let Some(under_way) = sweep.as_mut() else {
            return Swept::Nothing;
        };
        let Sweep {
            page,
            sequence,
            at,
            ref mut expiring,
        } = *under_way;
        let walked = self.records(store, page, sequence, at, budget, |address, header| {
            if !header.is_item() {
                return;
            }
            if dead.is_dead(header) {
                show(address, header);
            } else if let Expiry::At(time) = header.expiry() {
                let bytes = header.shape(store.cut()).total_bytes();
                expiring.add(time, bytes.div_ceil(WORD));
            }
        });
        match walked {
            PageWalk::At(word) => {
                under_way.at = word;
                Swept::Looked(word - at)
            }
            PageWalk::End => {
                if let Some(tick) = expiring.dead_by(self.page_words() / DUE_SHARE) {
                    self.note_due(page, tick);
                }
                *sweep = None;
                Swept::Looked(self.pages.end(page).saturating_sub(at).max(1))
            }
        }
    }

    /// A flush has raised the bar: all pages are due. The sweep's lock is held.
    fn note_flush(&self, store: &Store<Log>, dead: &Dead) {
        if self.due.bar.load(Ordering::Relaxed) != dead.bar {
            self.due.bar.store(dead.bar, Ordering::Relaxed);
            for page in self.listed(store) {
                self.note_due(page, 0);
            }
        }
    }

    /// Begins a sweep of the page that has been due for longest. `None` if none is. The sweep's lock is held.
    fn start_sweep(&self, store: &Store<Log>, dead: &Dead) -> Option<Sweep> {
        let page = self.next_due(store, dead)?;
        let sequence = self.pages.sequence(page);
        self.pages.take_due(page);
        if self.pages.sequence(page) != sequence {
            // The page began a new life, and the tick that was taken may be one of that life.
            self.note_due(page, 0);
        }
        Some(Sweep {
            page,
            sequence,
            at: 0,
            expiring: Expiring::new(dead.now),
        })
    }

    /// The page that is due first, if it is due now. The first tick stays as it is until the next call: so it also
    /// shows that a page is being swept.
    fn next_due(&self, store: &Store<Log>, dead: &Dead) -> Option<u32> {
        // SeqCst: before the pages' ticks are read, which are stored before the first tick is looked at (due 2).
        self.due.first.swap(NEVER, Ordering::SeqCst);
        let due = self.listed(store).map(|page| (self.pages.due(page), page));
        let (tick, page) = due.min()?;
        self.due.first.fetch_min(tick, Ordering::SeqCst);
        (tick <= dead.now.0.into()).then_some(page)
    }

    /// The pages of the log.
    fn listed(&self, store: &Store<Log>) -> impl Iterator<Item = u32> {
        let pages = 0..store.pages_taken();
        pages.filter(|&page| self.pages.sequence(page) != 0)
    }
}

/// Parts into which [`Expiring`] divides a power of two of ticks.
const PARTS: u32 = 8;

const SLOTS: usize = ((u32::BITS - PARTS.ilog2() + 1) * PARTS) as usize;

/// Words of the expiring items of a page, by the time that they still live, to an eighth of it.
struct Expiring {
    from: Time,
    words: [u32; SLOTS],
    /// The last of all expiries.
    latest: Time,
}

impl Expiring {
    fn new(from: Time) -> Self {
        Self {
            from,
            words: [0; SLOTS],
            latest: from,
        }
    }

    fn add(&mut self, expiry: Time, words: usize) {
        self.words[slot(expiry.0.saturating_sub(self.from.0))] += words as u32;
        self.latest = self.latest.max(expiry);
    }

    /// The tick by which `words` words are dead, or all of them if they are fewer. `None` if there are none.
    fn dead_by(&self, words: usize) -> Option<u64> {
        let all: usize = self.words.iter().map(|&words| words as usize).sum();
        let wanted = words.clamp(1, all.max(1));
        let mut dead = 0;
        let reached = self.words.iter().position(|&words| {
            dead += words as usize;
            dead >= wanted
        });
        reached.map(|slot| {
            let tick = u64::from(self.from.0) + last_of(slot);
            tick.min(self.latest.0.into())
        })
    }
}

/// The counter of a life of `ticks` ticks: one for each tick below [`PARTS`], and from there on parts of powers of two.
fn slot(ticks: u32) -> usize {
    if ticks < PARTS {
        return ticks as usize;
    }
    let shift = ticks.ilog2() - PARTS.ilog2();
    (shift * PARTS + (ticks >> shift)) as usize
}

/// The most ticks that a slot counts.
fn last_of(slot: usize) -> u64 {
    let (slot, parts) = (slot as u64, u64::from(PARTS));
    if slot < parts {
        return slot;
    }
    let shift = slot / parts - 1;
    ((slot % parts + parts + 1) << shift) - 1
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_counted_to_an_eighth() {
        for ticks in (0..2000).chain([u32::MAX / 3, u32::MAX - 1, u32::MAX]) {
            let slot = slot(ticks);
            assert!(slot < SLOTS, "{ticks}");
            let last = last_of(slot);
            let ticks = u64::from(ticks);
            assert!(
                ticks <= last && last <= ticks + ticks / 8,
                "{ticks}: {last}"
            );
        }
    }

    #[test]
    fn a_page_is_due_when_a_share_of_it_is_dead() {
        let from = Time(1000);
        let mut expiring = Expiring::new(from);
        assert_eq!(expiring.dead_by(100), None);
        expiring.add(Time(1005), 60);
        assert_eq!(expiring.dead_by(100), Some(1005), "there is no more");
        expiring.add(Time(1006), 60);
        expiring.add(Time(9000), 500);
        assert_eq!(expiring.dead_by(60), Some(1005));
        assert_eq!(expiring.dead_by(100), Some(1006));
        assert_eq!(expiring.dead_by(1000), Some(9000));
    }
}
