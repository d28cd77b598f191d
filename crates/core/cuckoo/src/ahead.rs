//! The requests that have been through the first stage of a batch, or the second, and not through the third.
//!
//! They wait in a ring of their thread, in the order in which they will be carried out. It outlives a batch: a caller
//! that announces the next batch before it has this one carried out ([`Handle::prefetch`](nuthatch_engine::Handle)) lets
//! the stages of both overlap.
//!
//! What waits is a hint. The third stage uses it only for a request with the same hash, and validates what the second
//! stage saw by its versions, however long ago that was.
//!
//! Both stages look at a key's first bucket alone, which holds nearly every key that is there: 99 % of them at a load of
//! a half, 92 at 0.8, 83 at 0.95. The others and the misses are *strays*: their second buckets are prefetched then, and
//! looked into later. Only where strays are the rule, because gets miss, both buckets are taken at once for a while.

use super::Cuckoo;
use super::get::Probe;
use super::layout::Variant;
use nuthatch_engine::request::Request;

/// How many requests wait at most: two batches of the usual size. A power of two, and as many as a word has bits.
const ROOM: usize = 64;

/// How long before their turn both buckets of strays are looked into: late enough for the second bucket to have come, and
/// early enough for the item.
const STRAYS_AHEAD: usize = 8;

/// Requests after which their strays are counted.
const COUNTED: usize = 256;

/// Requests that take both buckets at once, when more than half of those counted before were strays.
const BOTH_FOR: usize = 8192;

/// The requests that wait. Places are counted from the first request on; a place modulo [`ROOM`] is one in the ring.
pub(super) struct Ahead {
    waiting: [Waiting; ROOM],
    /// The place of the request that is carried out next.
    next: usize,
    /// Those before this place have been through the first stage: `next` to `next + ROOM`.
    hinted: usize,
    /// Those before this place have been through the second: `next` to `hinted`.
    probed: usize,
    /// Those that are strays, and whose second bucket was not looked into yet: a bit for each place in the ring.
    strays: u64,
    habit: Habit,
}

/// A request that waits.
#[derive(Clone, Copy, Default)]
struct Waiting {
    hash: u64,
    /// The second stage's result; before that, the one of an earlier request.
    probe: Probe,
}

/// Whether strays are the rule.
#[derive(Default)]
struct Habit {
    /// Requests since strays were counted last.
    requests: usize,
    /// Of these, strays.
    strays: usize,
    /// How many more requests take both buckets at once.
    both_for: usize,
}

impl Habit {
    /// Notes that so many requests were carried out.
    #[inline(always)]
    fn note(&mut self, requests: usize) {
        self.requests += requests;
        if self.requests >= COUNTED {
            self.judge();
        }
    }

    #[inline(never)]
    fn judge(&mut self) {
        let both_for = match 2 * self.strays > self.requests {
            true => BOTH_FOR,
            false => self.both_for.saturating_sub(self.requests),
        };
        *self = Self {
            both_for,
            ..Self::default()
        };
    }
}

impl Default for Ahead {
    fn default() -> Self {
        Self {
            waiting: [Waiting::default(); ROOM],
            next: 0,
            hinted: 0,
            probed: 0,
            strays: 0,
            habit: Habit::default(),
        }
    }
}

impl Ahead {
    /// First stage of a request that comes behind those that wait: prefetches its bucket. If too many wait, nothing is
    /// done.
    #[inline(always)]
    pub fn hint<D: Variant>(&mut self, engine: &Cuckoo<D>, hash: u64) {
        if self.hinted < self.next + ROOM {
            self.waiting[self.hinted % ROOM].hash = hash;
            self.hinted += 1;
            if self.habit.both_for == 0 {
                engine.index.prefetch_first(hash);
            } else {
                engine.index.prefetch(&engine.index.place(hash));
            }
        }
    }

    /// Begins a batch: if it does not begin with the request that was announced first, all that waits is forgotten.
    #[inline(always)]
    pub fn begin(&mut self, batch: &[Request<'_>]) {
        let announced = self.waiting[self.next % ROOM].hash;
        if batch
            .first()
            .is_some_and(|first| first.key.hash() != announced)
        {
            self.forget();
        }
    }

    /// Lets requests through the first two stages before the next `turn` are carried out: as many through the second as
    /// are there, up to `depth`, which is at least `turn`. `coming` are those of the batch that have not been carried
    /// out.
    #[inline(always)]
    pub fn advance<D: Variant>(
        &mut self,
        engine: &Cuckoo<D>,
        coming: &[Request<'_>],
        turn: usize,
        depth: usize,
    ) {
        let end = self.next + coming.len().min(ROOM);
        while self.hinted < end {
            self.hint(engine, coming[self.hinted - self.next].key.hash());
        }
        let end = self.hinted.min(self.next + depth);
        while self.probed < end {
            let waiting = &mut self.waiting[self.probed % ROOM];
            if self.habit.both_for == 0 {
                waiting.probe = engine.probe_first(waiting.hash);
                if waiting.probe.is_stray() {
                    self.strays |= 1 << (self.probed % ROOM);
                }
            } else {
                waiting.probe = engine.probe(&engine.index.place(waiting.hash));
            }
            self.probed += 1;
        }
        if self.strays != 0 {
            self.probe_strays(engine, turn + STRAYS_AHEAD);
        }
    }

    /// Looks into both buckets of the strays that are carried out soon: less than `depth` behind the next request.
    #[cold]
    #[inline(never)]
    fn probe_strays<D: Variant>(&mut self, engine: &Cuckoo<D>, depth: usize) {
        let soon = ((1_u64 << depth) - 1).rotate_left((self.next % ROOM) as u32);
        let mut strays = self.strays & soon;
        self.strays &= !soon;
        while strays != 0 {
            let waiting = &mut self.waiting[strays.trailing_zeros() as usize];
            waiting.probe = engine.probe(&engine.index.place(waiting.hash));
            strays &= strays - 1;
            self.habit.strays += 1;
        }
    }

    /// The second stage's result for the request that is `offset` behind the next one, if it has this hash. Only of
    /// requests that have been through it.
    #[inline(always)]
    pub fn probe(&self, offset: usize, hash: u64) -> Option<&Probe> {
        debug_assert!(self.next + offset < self.probed);
        let waiting = &self.waiting[(self.next + offset) % ROOM];
        (waiting.hash == hash).then_some(&waiting.probe)
    }

    /// So many have been carried out.
    #[inline(always)]
    pub fn pass(&mut self, count: usize) {
        self.next += count;
        self.habit.note(count);
    }

    /// True if requests were announced that have not been carried out.
    #[inline(always)]
    pub fn is_waiting(&self) -> bool {
        self.hinted != self.next
    }

    /// Nothing waits any more: other requests came than were announced.
    #[inline(always)]
    pub fn forget(&mut self) {
        self.hinted = self.next;
        self.probed = self.next;
        self.strays = 0;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn both_buckets_are_taken_where_strays_are_the_rule() {
        let mut habit = Habit::default();
        let mut turn = |strays, requests| {
            habit.strays += strays;
            habit.note(requests);
            habit.both_for > 0
        };
        for _ in 0..1000 {
            assert!(!turn(4, 8));
        }
        while !turn(6, 8) {}
        for _ in 0..BOTH_FOR / 8 - 1 {
            assert!(turn(0, 8));
        }
        // The first bucket alone is tried again.
        while turn(0, 8) {}
    }
}
