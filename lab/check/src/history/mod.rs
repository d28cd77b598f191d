//! Concurrent histories of batches, judged for linearizability key by key.
//!
//! Threads carry out batches of a few operations on a few keys, and note when each batch began and
//! ended by the count of a shared clock. All operations of a batch have its interval, and those on
//! one key its order. Keys do not depend on each other, so each has a history of its own, for which
//! an order is sought in which the oracle's transition gives every answer ([`judge()`]). Of the
//! histories that cannot be explained, the least is printed ([`least()`]).
//!
//! Beside them, batches store ballast that is never read: it makes the index grow, or items be evicted. A flush is an
//! operation on every key, and is in the history of each.

mod act;
mod judge;
mod least;
mod wire;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nuthatch_engine::namespace::{DATABASES, Namespace};
use nuthatch_engine::{
    AnyEngine, AnyHandle, Audit, Engine, Handle, Key, Op, Reply, Request, Reservation, Store, Time,
};
use nuthatch_workload::Seed;
use rand::Rng;
use rand::rngs::SmallRng;

use crate::answer::{Answer, ask};
use crate::sequence::Misses;
use crate::stress::on_threads;
use crate::values::bytes;
pub use act::{Act, Observed, Text, Traits};
pub use judge::{Event, Order, PENDING, judge};
pub use least::{least, listing};
pub use wire::{from_words, to_words};

/// The number and size of histories.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Times that the threads meet and start together.
    pub rounds: usize,
    /// Threads of each round.
    pub threads: usize,
    /// Batches of each thread in a round.
    pub batches: usize,
    /// Operations of a batch, at most.
    pub batch_max: usize,
    /// Keys of a round: few, so that threads meet.
    pub keys: usize,
    /// Rounds after which the same keys come again.
    pub generations: usize,
    /// Ballast of a batch, at most.
    pub ballast_max: usize,
    /// Lengths of its values.
    pub ballast_len: Range<usize>,
    /// Whether items may be forgotten.
    pub misses: Misses,
    /// One batch in this many is replaced by a flush; 0: none is.
    pub flushes: u32,
    /// Counts of the clock in a tick, so that items expire and delayed flushes begin. 0: time stands still, as it must
    /// where nothing may be forgotten, because an item may expire during a request for it.
    pub counts_in_tick: usize,
    /// The seed of the choice of operations.
    pub seed: Seed,
}

impl Plan {
    /// Ever new keys, in memory for all of them, while the index grows.
    pub const GROWTH: Self = Self {
        rounds: 800,
        threads: 3,
        batches: 4,
        batch_max: 6,
        keys: 2,
        generations: usize::MAX,
        ballast_max: 10,
        ballast_len: 0..20,
        misses: Misses::Never,
        flushes: 0,
        counts_in_tick: 0,
        seed: Seed(1),
    };

    /// Few keys, which are flushed again and again.
    pub const FLUSHES: Self = Self {
        rounds: 300,
        ballast_max: 2,
        flushes: 6,
        ..Self::GROWTH
    };

    /// Keys that come again after the memory has been filled with others.
    pub const EVICTION: Self = Self {
        rounds: 300,
        generations: 10,
        ballast_max: 4,
        ballast_len: 0..150_000,
        misses: Misses::Lawful,
        counts_in_tick: 16,
        ..Self::GROWTH
    };
}

/// When histories begin.
const START: Time = Time(1000);

/// The furthest that a flush at a later moment is ahead, in ticks.
const FLUSH_AHEAD: u32 = 4;

/// In place of a key: all of them.
const EVERY_KEY: (usize, usize) = (usize::MAX, usize::MAX);

/// What the histories contained. A test may demand that it is not nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Operations on the keys.
    pub operations: usize,
    /// Reads that returned a value.
    pub hits: usize,
    /// Reads that found nothing.
    pub misses: usize,
    /// Times that an item must have been forgotten.
    pub forgotten: usize,
    /// Flushes, each counted once for each key that it met.
    pub flushes: usize,
}

/// Rounds that are judged together: a soak's histories would take much memory. Few enough that each run has several parts.
const ROUNDS_AT_ONCE: usize = 200;

/// Records histories of an engine and judges them; panics with the least one that cannot be explained; then audits the
/// engine.
pub fn linearizable(engine: &Arc<AnyEngine>, plan: &Plan) -> Seen {
    let mut seen = Seen::default();
    // One for all parts: no engine's time goes back.
    let clock = AtomicUsize::new(0);
    for first in (0..plan.rounds).step_by(ROUNDS_AT_ONCE) {
        let part = Plan {
            rounds: ROUNDS_AT_ONCE.min(plan.rounds - first),
            seed: Seed(plan.seed.0 + first as u64),
            ..plan.clone()
        };
        let histories = record(engine, &part, first, &clock);
        // The last flushes are over before the next part stores items, which they must not remove.
        clock.fetch_add(
            plan.counts_in_tick * (FLUSH_AHEAD as usize + 1),
            Ordering::SeqCst,
        );
        explain(&histories, plan.misses, &mut seen).unwrap_or_else(|fault| panic!("{fault}"));
    }
    if let Err(broken) = engine.audit() {
        panic!("audit: {broken}");
    }
    seen
}

/// The same for threads that each have an engine of their own, a part of one store. Each thread calls `enter` first,
/// and keeps the result until its end; no thread waits for another in between. An error is the least history that
/// cannot be explained.
pub fn apart<G>(
    engines: &[Arc<AnyEngine>],
    plan: &Plan,
    enter: impl Fn(usize) -> G + Sync,
) -> Result<Seen, String> {
    let clock = AtomicUsize::new(0);
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let recorded = on_threads(engines.len(), |thread| {
        let _entered = enter(thread);
        part(&engines[thread], plan, &tick, thread)
    });
    judge_parts(recorded.into_iter().flatten(), plan.misses)
}

/// An event, and its key: a generation, and which key of the round.
pub type Recorded = ((usize, usize), Event);

/// Records one thread's part of a history. Other parts may be recorded in other processes: `tick` is the common clock,
/// sequentially consistent, and [`judge_parts`] gets all parts.
pub fn part(
    engine: &Arc<AnyEngine>,
    plan: &Plan,
    tick: &dyn Fn() -> usize,
    thread: usize,
) -> Vec<Recorded> {
    let mut recorder = Recorder::new(engine, plan, tick, thread);
    for round in 0..plan.rounds {
        recorder.round(round % plan.generations);
    }
    recorder.events
}

/// Judges what all threads have recorded. An error is the least history that cannot be explained.
pub fn judge_parts(
    recorded: impl IntoIterator<Item = Recorded>,
    misses: Misses,
) -> Result<Seen, String> {
    let mut seen = Seen::default();
    explain(&by_key(recorded), misses, &mut seen)?;
    Ok(seen)
}

/// The history of each key: its generation, and which key of the round it is.
type Histories = HashMap<(usize, usize), Vec<Event>>;

/// The events of each key, flushes included.
fn by_key(recorded: impl IntoIterator<Item = Recorded>) -> Histories {
    let mut histories = Histories::new();
    for (key, event) in recorded {
        histories.entry(key).or_default().push(event);
    }
    let flushes = histories.remove(&EVERY_KEY).unwrap_or_default();
    for history in histories.values_mut() {
        let met = flushes.iter().filter(|flush| is_met(flush, history));
        let met: Vec<_> = met.cloned().collect();
        history.extend(met);
        // Stable: operations of a batch keep their order.
        history.sort_by_key(|event| event.began);
    }
    histories
}

/// True if a flush may change the answers of a history. Other flushes came before its first event, or after its last,
/// while time stood still.
fn is_met(flush: &Event, history: &[Event]) -> bool {
    let first = history.iter().min_by_key(|event| event.began);
    let last = history.iter().max_by_key(|event| event.ended);
    let (Some(first), Some(last)) = (first, last) else {
        return false;
    };
    let stands = first.now == last.now && first.now == flush.now;
    !stands || (flush.ended >= first.began && flush.began <= last.ended)
}

/// How many of the histories that cannot be explained are shrunk.
const SHORTENED: usize = 30;

fn explain(histories: &Histories, misses: Misses, seen: &mut Seen) -> Result<(), String> {
    let mut broken = Vec::new();
    for (key, history) in histories {
        match judge(history, misses) {
            Some(order) => seen.forgotten += order.forgotten,
            None => broken.push((key, history)),
        }
        let told = |wanted: fn(&Observed) -> bool| {
            let events = history.iter().filter(|event| wanted(&event.told));
            events.count()
        };
        seen.operations += history.len();
        seen.hits += told(|told| matches!(told, Observed::Value(..)));
        seen.misses += told(|told| matches!(told, Observed::Plain(Reply::Miss)));
        seen.flushes += told(|told| *told == Observed::Nothing);
    }
    broken.sort_by_key(|(_, history)| history.len());
    let parts = broken.iter().take(SHORTENED);
    let parts = parts.map(|(key, history)| (key, least(history, misses)));
    let Some((key, part)) = parts.min_by_key(|(_, part)| part.len()) else {
        return Ok(());
    };
    Err(format!(
        "{} of {} histories are not linearizable; the least of them, of key {key:?}:\n{}",
        broken.len(),
        histories.len(),
        listing(&part)
    ))
}

/// All threads' rounds on one engine. Later rounds have other keys than earlier ones.
fn record(engine: &Arc<AnyEngine>, plan: &Plan, first: usize, clock: &AtomicUsize) -> Histories {
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let meeting = Meeting::default();
    let recorded = on_threads(plan.threads, |thread| {
        let _gone = meeting.leave_on_panic();
        let mut recorder = Recorder::new(engine, plan, &tick, thread);
        for round in 0..plan.rounds {
            if !meeting.wait((round + 1) * plan.threads) {
                break;
            }
            recorder.round(first + round % plan.generations);
        }
        recorder.events
    });
    by_key(recorded.into_iter().flatten())
}

/// The barrier before a round. No thread waits for one that has panicked.
#[derive(Default)]
struct Meeting {
    arrived: AtomicUsize,
}

/// Marks that a thread will not come again.
struct Gone<'a>(&'a Meeting);

impl Meeting {
    /// True when this many have arrived in all; false if one never will.
    fn wait(&self, all: usize) -> bool {
        // Relaxed, both: they publish no other memory; the order of events is the clock's.
        self.arrived.fetch_add(1, Ordering::Relaxed);
        loop {
            match self.arrived.load(Ordering::Relaxed) {
                arrived if arrived >= usize::MAX / 2 => return false,
                arrived if arrived >= all => return true,
                _ => std::thread::yield_now(),
            }
        }
    }

    fn leave_on_panic(&self) -> Gone<'_> {
        Gone(self)
    }
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.arrived.store(usize::MAX / 2, Ordering::Relaxed);
        }
    }
}

/// One thread.
struct Recorder<'a> {
    engine: &'a Arc<AnyEngine>,
    handle: AnyHandle,
    plan: &'a Plan,
    /// Sequentially consistent: the counts are the history's real time, and an operation must not appear earlier or
    /// later than it was.
    tick: &'a dyn Fn() -> usize,
    thread: usize,
    random: SmallRng,
    /// The cas that was seen last of each key of the round.
    cas: Vec<u64>,
    /// The clock's count when the batch began.
    began: usize,
    batches: usize,
    ballast: usize,
    events: Vec<Recorded>,
}

/// A key of the round, and what is done to it.
struct Action {
    key: usize,
    name: Vec<u8>,
    act: Act,
    value: Vec<u8>,
}

impl<'a> Recorder<'a> {
    fn new(
        engine: &'a Arc<AnyEngine>,
        plan: &'a Plan,
        tick: &'a dyn Fn() -> usize,
        thread: usize,
    ) -> Self {
        Self {
            engine,
            handle: engine.handle(),
            plan,
            tick,
            thread,
            random: plan.seed.thread(thread),
            cas: vec![0; plan.keys],
            began: 0,
            batches: 0,
            ballast: 0,
            events: Vec::new(),
        }
    }

    fn round(&mut self, generation: usize) {
        self.cas.fill(0);
        for _ in 0..self.plan.batches {
            self.began = (self.tick)();
            if self.plan.flushes > 0 && self.random.random_ratio(1, self.plan.flushes) {
                self.flush();
                continue;
            }
            let count = self.random.random_range(1..=self.plan.batch_max);
            let deeds: Vec<_> = (0..count).map(|_| self.deed(generation)).collect();
            match &deeds[..] {
                [deed] if deed.act.is_blind() => self.in_pieces(generation, deed),
                deeds => self.batch(generation, deeds),
            }
            self.batches += 1;
        }
        if self.random.random_bool(0.2) {
            self.handle.maintain(self.now(), 64);
        }
    }

    /// The moment of the batch.
    fn now(&self) -> Time {
        self.moment(self.began)
    }

    /// The moment at a count of the clock. So if one batch begins after another has ended, its moment is not earlier.
    fn moment(&self, count: usize) -> Time {
        let ticks = count.checked_div(self.plan.counts_in_tick).unwrap_or(0);
        Time(START.0 + ticks as u32)
    }

    fn flush(&mut self) {
        let now = self.now();
        let ahead = self.random.random_range(0..=2 * FLUSH_AHEAD);
        // Most flushes are immediate.
        let at = Time(now.0 + ahead.saturating_sub(FLUSH_AHEAD));
        self.engine.flush(now, at);
        let ended = (self.tick)();
        let event = self.event(Act::Flush(at), Observed::Nothing, ended);
        self.events.push((EVERY_KEY, event));
        self.batches += 1;
    }

    fn deed(&mut self, generation: usize) -> Action {
        let key = self.random.random_range(0..self.plan.keys);
        // A cas that no engine chooses, and that differs for each act.
        let new_cas = ((self.thread as u64 + 1) << 40) + self.events.len() as u64 * 8;
        let new_cas = new_cas + self.random.random_range(0..8);
        let now = self.now();
        let act = Act::random(&mut self.random, now, self.cas[key], new_cas);
        // The keys of a round are one key of a client's, each in another database of a server.
        let name = format!("key {generation} {}", key / DATABASES);
        Action {
            key,
            name: Namespace::of(key % DATABASES, 0).stored(name.as_bytes()),
            act,
            value: act.value(),
        }
    }

    /// A batch of all these actions, with ballast before, between and behind.
    fn batch(&mut self, generation: usize, deeds: &[Action]) {
        let ballast = self.ballast(generation);
        let hasher = self.engine.hasher();
        let request = |name, op| Request {
            key: Key::new(name, hasher),
            op,
        };
        let mut batch: Vec<_> = deeds
            .iter()
            .map(|deed| request(&deed.name, deed.act.op(&deed.value)))
            .collect();
        // The places of the deeds, in their order.
        let mut places: Vec<_> = (0..deeds.len()).collect();
        for (name, value) in &ballast {
            let at = self.random.random_range(0..=batch.len());
            batch.insert(at, request(name, Op::Store(Store::set(value))));
            places
                .iter_mut()
                .for_each(|place| *place += usize::from(*place >= at));
        }
        let now = self.now();
        let answers = ask(&mut self.handle, now, &batch);
        let ended = (self.tick)();
        for (deed, place) in deeds.iter().zip(places) {
            self.note(generation, deed, &answers[place], ended);
        }
    }

    /// A set alone, whose value arrives before it takes effect.
    fn in_pieces(&mut self, generation: usize, deed: &Action) {
        let Act::Store(_, _, expiry) = deed.act else {
            unreachable!("only sets arrive in pieces");
        };
        let (now, key) = (self.now(), Key::new(&deed.name, self.engine.hasher()));
        let reserved = self.handle.reserve(now, key, deed.value.len());
        let reply = match reserved {
            Ok(mut reservation) => {
                for piece in deed.value.chunks(1500) {
                    reservation.write(piece);
                }
                let store = Store {
                    expiry,
                    ..Store::set(b"")
                };
                self.handle.commit(now, reservation, &store)
            }
            Err(refusal) => refusal,
        };
        let ended = (self.tick)();
        self.note(generation, deed, &Answer::Done(reply), ended);
    }

    fn note(&mut self, generation: usize, deed: &Action, answer: &Answer, ended: usize) {
        if let Some(item) = answer.item() {
            self.cas[deed.key] = item.cas;
        }
        let event = self.event(deed.act, Observed::of(answer), ended);
        self.events.push(((generation, deed.key), event));
    }

    fn event(&self, act: Act, told: Observed, ended: usize) -> Event {
        Event {
            thread: self.thread,
            batch: self.batches,
            now: self.now(),
            until: self.moment(ended),
            act,
            told,
            began: self.began,
            ended,
        }
    }

    /// Keys that are never read, and their values.
    fn ballast(&mut self, generation: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let count = self.random.random_range(0..=self.plan.ballast_max);
        let one = |_| {
            self.ballast += 1;
            let name = format!("ballast {generation} {} {}", self.thread, self.ballast);
            let len = self.random.random_range(self.plan.ballast_len.clone());
            (name.into_bytes(), bytes(self.ballast, len))
        };
        (0..count).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use nuthatch_engine::{Expiry, StoreMode};

    use super::*;

    /// A history of two threads, written down by hand.
    fn history(events: &[(usize, Act, Observed, usize, usize)]) -> Vec<Event> {
        let event =
            |(thread, act, told, began, ended): &(usize, Act, Observed, usize, usize)| Event {
                thread: *thread,
                batch: 0,
                now: Time(*began as u32),
                until: Time(*ended as u32),
                act: *act,
                told: told.clone(),
                began: *began,
                ended: *ended,
            };
        events.iter().map(event).collect()
    }

    fn set(digit: u8) -> Act {
        let digit = b'0' + digit;
        Act::Store(StoreMode::Set, Text { digit, len: 1 }, Expiry::Never)
    }

    fn plain(cas: u64) -> Traits {
        Traits {
            cas,
            expiry: Expiry::Never,
            stale: false,
            won: false,
            won_before: false,
        }
    }

    fn value(digit: u8, cas: u64) -> Observed {
        Observed::Value(vec![b'0' + digit], plain(cas))
    }

    const MISS: Observed = Observed::Plain(Reply::Miss);

    fn explained(events: &[(usize, Act, Observed, usize, usize)], misses: Misses) -> bool {
        judge(&history(events), misses).is_some()
    }

    #[test]
    fn a_stale_read_is_convicted_and_an_overlapping_one_is_not() {
        for misses in [Misses::Never, Misses::Lawful] {
            let first = (0, set(1), Observed::New(1, 8), 0, 1);
            let second = (0, set(2), Observed::New(1, 9), 2, 5);
            let get = |began, ended| (1, Act::Get, value(1, 8), began, ended);
            for (began, ended) in [(3, 4), (3, 7), (1, 3)] {
                let events = [first.clone(), second.clone(), get(began, ended)];
                assert!(explained(&events, misses), "{began}..{ended}");
            }
            assert!(!explained(&[first, second, get(6, 7)], misses));
        }
    }

    #[test]
    fn under_pressure_an_item_may_go_and_does_not_come_back() {
        let stored = (0, set(1), Observed::New(1, 8), 0, 1);
        let get = |told, began| (1, Act::Get, told, began, began + 1);
        let gone = [stored.clone(), get(MISS, 2)];
        assert!(!explained(&gone, Misses::Never));
        let order = judge(&history(&gone), Misses::Lawful);
        assert_eq!(order, Some(Order { forgotten: 1 }));
        let back = [stored, get(MISS, 2), get(value(1, 8), 4)];
        assert!(!explained(&back, Misses::Lawful));
    }

    #[test]
    fn what_was_flushed_does_not_come_back() {
        let stored = (0, set(1), Observed::New(1, 8), 0, 1);
        let flush = |at, began| {
            let act = Act::Flush(Time(at));
            (0, act, Observed::Nothing, began, began + 3)
        };
        let get = |told, began| (1, Act::Get, told, began, began + 1);
        for misses in [Misses::Never, Misses::Lawful] {
            // While the flush is under way a hit or a miss is lawful, but not a hit behind a miss.
            let during = [stored.clone(), flush(2, 2), get(value(1, 8), 3)];
            assert!(explained(&during, misses));
            let behind = [stored.clone(), flush(2, 2), get(value(1, 8), 6)];
            assert!(!explained(&behind, misses));
            let back = [
                stored.clone(),
                flush(2, 2),
                get(MISS, 2),
                get(value(1, 8), 4),
            ];
            assert!(!explained(&back, misses));
            // At a later moment.
            let before = [stored.clone(), flush(8, 2), get(value(1, 8), 7)];
            assert!(explained(&before, misses));
            let since = [stored.clone(), flush(8, 2), get(value(1, 8), 8)];
            assert!(!explained(&since, misses));
        }
    }

    #[test]
    fn under_pressure_a_store_may_be_refused_and_changes_nothing_then() {
        let refused = (0, set(1), Observed::Plain(Reply::OutOfMemory), 0, 1);
        assert!(explained(std::slice::from_ref(&refused), Misses::Lawful));
        assert!(!explained(std::slice::from_ref(&refused), Misses::Never));
        let get = (1, Act::Get, value(1, 8), 2, 3);
        assert!(!explained(&[refused, get], Misses::Lawful));
    }

    #[test]
    fn a_touch_that_is_lost_is_convicted() {
        let stored = (0, set(1), Observed::New(1, 8), 0, 1);
        let end = Expiry::At(Time(99));
        let touched = Traits {
            expiry: end,
            ..plain(8)
        };
        let touch = (0, Act::Touch(end), Observed::Item(1, touched), 2, 3);
        let look = |traits| (1, Act::Look, Observed::Item(1, traits), 4, 5);
        let told = [stored.clone(), touch.clone(), look(touched)];
        assert!(explained(&told, Misses::Never));
        assert!(!explained(&[stored, touch, look(plain(8))], Misses::Lawful));
    }

    #[test]
    fn requests_of_a_batch_keep_their_order() {
        let batch = |acts: [(Act, Observed); 2]| acts.map(|(act, told)| (0, act, told, 0, 9));
        let right = batch([(set(1), Observed::New(1, 8)), (Act::Get, value(1, 8))]);
        let wrong = batch([(Act::Get, value(1, 8)), (set(1), Observed::New(1, 8))]);
        assert!(explained(&right, Misses::Never));
        assert!(!explained(&wrong, Misses::Lawful));
        // Operations of other threads may come between them.
        let other = (1, Act::Delete, Observed::Plain(Reply::Removed), 3, 4);
        let between = batch([(set(1), Observed::New(1, 8)), (Act::Get, MISS)]);
        assert!(explained(&[&between[..], &[other]].concat(), Misses::Never));
        assert!(!explained(&between, Misses::Never));
    }

    #[test]
    fn the_least_part_is_what_convicts() {
        let mut events = Vec::new();
        for digit in 1..9 {
            let at = 10 * usize::from(digit);
            let cas = u64::from(digit);
            events.push((0, set(digit), Observed::New(1, cas), at, at + 1));
            events.push((1, Act::Get, value(digit, cas), at + 2, at + 3));
            events.push((0, Act::Look, Observed::Item(1, plain(cas)), at + 2, at + 3));
        }
        let stale = (1, Act::Get, value(6, 6), 84, 85);
        let mut whole = events.clone();
        whole.push(stale.clone());
        whole.push((0, Act::Delete, Observed::Plain(Reply::Removed), 86, 87));
        let part = least(&history(&whole), Misses::Lawful);
        let acts: Vec<_> = part.iter().map(|event| event.act).collect();
        // The last set, and a read of the value that it replaced; which set wrote that does not matter.
        assert_eq!(acts, [set(8), Act::Get]);
        let listing = listing(&part);
        assert_eq!(listing.lines().count(), 2, "{listing}");
    }
}
