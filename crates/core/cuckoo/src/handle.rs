//! A thread's handle to the engine, and the batch.
//!
//! A batch goes through three stages, each some requests behind the one before. The first prefetches the first bucket of
//! a request's key; the second compares the tags there and prefetches the item, or, if none matches, the second bucket,
//! which then is looked into before the request's turn; in the third the requests take effect, strictly in
//! order. The first two stages only load caches and remember versions: a get whose versions have changed by the third
//! stage (because a request before it in the batch, or another thread, changed the key) simply starts over. So misses
//! of different requests overlap, and order is kept without any bookkeeping.
//!
//! The first stage takes time, since memory delivers a limited number of lines at once. A caller that hints keys as it
//! meets them ([`Handle::prefetch`]) lets the first stage run while it meets the others; one that hints a batch before
//! it has the last one carried out lets the second stage, too, run beside the third of the last one ([`ahead`](super::ahead)).

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::shim::Ordering;

use super::Cuckoo;
use super::ahead::Ahead;
use super::get::FastPath;
use super::layout::{EightWay, Variant};
use super::local::Local;
use nuthatch_engine::reply::{Item, Replies, Reply};
use nuthatch_engine::request::{Expiry, Key, Op, Request, Store};
use nuthatch_engine::{Cursor, Handle, Visit};
use nuthatch_store::count::{Count, ThreadCounters};
use nuthatch_store::growth::Growing;
use nuthatch_store::item::Header;
use nuthatch_store::item::fresh::Reserved;
use nuthatch_store::item::pinned::Pinned;
use nuthatch_store::memory::pins::UNPINNED_MAX;
use nuthatch_store::prefetch::Level;
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::reclaim::removals::FOLLOW_UP;
#[cfg(not(loom))]
use nuthatch_store::reclaim::removals::Queue;
use nuthatch_store::table::{self, Lookup, Table};

/// Longer values are read in place instead of being copied.
pub const COPY_MAX: usize = UNPINNED_MAX;

/// How the second and the third stage of a batch take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pipeline {
    /// How many requests the second stage is ahead of the third.
    ahead: usize,
    /// How many requests a stage takes in its turn: at least 1, at most `ahead`.
    stride: usize,
}

impl Pipeline {
    /// The pipeline for this machine. For batches of 32 gets over 10 million items:
    ///
    /// * On a Sapphire Rapids, with turns of 1: 4 ahead took 1.3 times as long, 8 ahead 1.05 times, 24 ahead
    ///   as long as 16. (Longer turns were not measured there.)
    /// * On a Zen 4: turns of 1 and 16 ahead took 1.26 times as long as turns of 8 and 32 ahead; turns of 16
    ///   or 32 as long as turns of 8; 24 ahead 1.05 times. With batches of 4 it was 1.06 times, of 128 1.3.
    fn detect() -> Self {
        if Level::tuned().near {
            Self {
                ahead: 16,
                stride: 1,
            }
        } else {
            Self {
                ahead: 32,
                stride: 8,
            }
        }
    }
}

/// Buckets split in one call of `maintain`, for each item of its budget.
const SPLITS_A_BUDGET: usize = 8;

/// Pages backed with memory in one call of `maintain`.
const WARM_PAGES_A_CALL: usize = 8;

/// A large value, pinned in place.
pub type CuckooValue<D = EightWay> = Pinned<Cuckoo<D>>;

/// An item whose value is still on its way.
pub type CuckooReservation<D = EightWay> = Reserved<Cuckoo<D>>;

/// A thread's handle to a cuckoo engine.
pub struct CuckooHandle<D: Variant = EightWay> {
    engine: Arc<Cuckoo<D>>,
    local: Local,
    ahead: Ahead,
    pipeline: Pipeline,
    /// False: the handle's owner notifies the listener of what operations remove.
    notifies: bool,
}

impl<D: Variant> CuckooHandle<D> {
    pub(super) fn new(engine: &Arc<Cuckoo<D>>) -> Self {
        let counters = ThreadCounters::register(&engine.counters);
        // Relaxed: a number of its own.
        let number = engine.handles.fetch_add(1, Ordering::Relaxed);
        // Any seed that differs between threads is good enough.
        let seed = std::ptr::from_ref(&*counters) as u64;
        Self {
            engine: Arc::clone(engine),
            local: Local::new(number, counters, seed),
            ahead: Ahead::default(),
            pipeline: Pipeline::detect(),
            notifies: true,
        }
    }

    /// A handle whose owner notifies the listener of removals, at a moment when no thread uses the handle: see
    /// [`take_removed`](Self::take_removed).
    #[cfg(not(loom))]
    pub fn deferring(engine: &Arc<Cuckoo<D>>) -> Self {
        let mut handle = Self::new(engine);
        handle.notifies = false;
        handle
    }

    /// The removals by the operations of a deferring handle since the last call.
    #[cfg(not(loom))]
    pub fn take_removed(&mut self) -> Queue {
        self.local.removed.take()
    }

    /// Notifies the listener of what was removed, at the end of an operation: nothing is locked or half done.
    fn notify_listener(&self, follow_up: usize) {
        if self.notifies {
            self.engine.notify(&self.local, follow_up);
        }
    }

    /// Gives the key's item a new expiry if it still has this cas, in one atomic step. True if it did. So a caller that
    /// read an item prolongs the life of this very item, and never of another that replaced it.
    pub fn touch_if(&mut self, now: Time, key: Key<'_>, cas: u64, expiry: Expiry) -> bool {
        let lookup = Lookup { now, key, index: 0 };
        self.engine.timestamps.apply_flush(now);
        let _writer = self.engine.one_writer();
        self.engine.touch_if(&self.local, &lookup, cas, expiry)
    }

    /// Gives the key's item a new expiry and new flags, in one atomic step. Refuses as a store does.
    pub fn renew(
        &mut self,
        now: Time,
        key: Key<'_>,
        expiry: Expiry,
        flags: u32,
    ) -> Result<Item, Reply> {
        let Self { engine, local, .. } = self;
        let lookup = Lookup { now, key, index: 0 };
        engine.timestamps.apply_flush(now);
        let renewed = {
            let _writer = engine.one_writer();
            engine.renew(local, &lookup, expiry, flags)
        };
        self.notify_listener(FOLLOW_UP);
        renewed
    }

    /// Removes the key's item and answers with its value, in one atomic step.
    pub fn take(&mut self, now: Time, key: Key<'_>, replies: &mut dyn Replies<CuckooValue<D>>) {
        let Self { engine, local, .. } = self;
        let lookup = Lookup { now, key, index: 0 };
        engine.timestamps.apply_flush(now);
        {
            let _writer = engine.one_writer();
            engine.take(local, &lookup, replies);
        }
        self.notify_listener(FOLLOW_UP);
    }

    /// The engine behind the handle.
    pub fn engine(&self) -> &Arc<Cuckoo<D>> {
        &self.engine
    }

    /// One plain get alone, the shortest way: its misses only overlap if the processor runs ahead into the caller's
    /// next get.
    #[inline(always)]
    fn get_alone(&mut self, now: Time, key: &Key<'_>, replies: &mut impl Replies<CuckooValue<D>>) {
        // Loaded once, before the load of `apply_flush`, an Acquire: behind it the compiler would load it again.
        let engine: &Cuckoo<D> = &self.engine;
        engine.timestamps.apply_flush(now);
        let live = |header: &Header| engine.timestamps.is_live(header, now);
        match engine.get_fast(key, live, replies) {
            FastPath::Hit => self.local.counters.one(Count::FastHits),
            FastPath::Miss => self.local.counters.one(Count::FastMisses),
            FastPath::Not => {
                let lookup = Lookup {
                    now,
                    key: *key,
                    index: 0,
                };
                self.engine.get_slow(&self.local, lookup, replies);
            }
        }
    }

    /// Any batch.
    #[inline(never)]
    fn run<R: Replies<CuckooValue<D>>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        self.engine.timestamps.apply_flush(now);
        if let [request] = batch {
            let lookup = Lookup {
                now,
                key: request.key,
                index: 0,
            };
            self.ahead.forget();
            self.change(&lookup, &request.op, replies);
            return self.notify_listener(FOLLOW_UP);
        }
        self.ahead.begin(batch);
        let (mut hits, mut misses) = (0, 0);
        let Pipeline { ahead, stride } = self.pipeline;
        for start in (0..batch.len()).step_by(stride) {
            let coming = &batch[start..];
            let turn = stride.min(coming.len());
            self.ahead.advance(&self.engine, coming, turn, ahead);
            let mut others = false;
            for (offset, request) in coming[..turn].iter().enumerate() {
                let lookup = Lookup {
                    now,
                    key: request.key,
                    index: start + offset,
                };
                let Op::Get = request.op else {
                    self.change(&lookup, &request.op, replies);
                    continue;
                };
                let path = match self.ahead.probe(offset, request.key.hash()) {
                    Some(probe) => self.engine.get_probed(&lookup, probe, replies),
                    None => {
                        others = true;
                        FastPath::Not
                    }
                };
                match path {
                    FastPath::Hit => hits += 1,
                    FastPath::Miss => misses += 1,
                    FastPath::Not => self.engine.get_slow(&self.local, lookup, replies),
                }
            }
            self.ahead.pass(turn);
            if others {
                self.ahead.forget();
            }
        }
        self.local.count_fast(hits, misses);
        self.notify_listener(FOLLOW_UP);
    }

    /// Any request, on the slow path: compiled once, not for each receiver of replies.
    fn change(
        &mut self,
        lookup: &Lookup<'_>,
        op: &Op<'_>,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) {
        let Self { engine, local, .. } = self;
        let reply = match op {
            Op::Get => return engine.get_slow(local, *lookup, replies),
            Op::Read(read) => return engine.read(local, lookup, read, replies),
            Op::Store(store) => {
                let _writer = engine.one_writer();
                let reply = engine.write(local, lookup, store);
                engine.help_growth();
                reply
            }
            Op::Remove(removal) => {
                let _writer = engine.one_writer();
                engine.remove(local, lookup, removal)
            }
            Op::Delta(delta) => {
                let _writer = engine.one_writer();
                table::delta(&**engine, local, lookup, delta)
            }
        };
        replies.done(lookup.index, reply);
        // A batch may replace many values before its end.
        engine.notify_if_many(local);
    }
}

impl<D: Variant> Handle for CuckooHandle<D> {
    type Value = CuckooValue<D>;
    type Reservation = CuckooReservation<D>;
    const COPY_MAX: usize = COPY_MAX;

    #[inline]
    fn prefetch(&mut self, key: &Key<'_>) {
        self.ahead.hint(&self.engine, key.hash());
    }

    // Always inlined: one plain get needs no more, and its caller has the parts of the request in registers. Everything
    // else is a call.
    #[inline(always)]
    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        match batch {
            [Request { key, op: Op::Get }] => {
                if self.ahead.is_waiting() {
                    self.ahead.forget();
                }
                self.get_alone(now, key, replies);
            }
            _ => self.run(now, batch, replies),
        }
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<Self::Reservation, Reply> {
        let Self { engine, local, .. } = self;
        let fresh = {
            let _writer = engine.one_writer();
            engine.allocate_unfilled(local, now, &key, value_len)
        };
        let reserved = fresh.map(|fresh| Reserved::new(Arc::clone(engine), key.bytes(), fresh));
        self.notify_listener(FOLLOW_UP);
        reserved
    }

    fn commit(&mut self, now: Time, reservation: Self::Reservation, store: &Store<'_>) -> Reply {
        let Self { engine, local, .. } = self;
        engine.timestamps.apply_flush(now);
        let reply = {
            let _writer = engine.one_writer();
            let reply = engine.commit(local, now, reservation, store);
            engine.help_growth();
            reply
        };
        self.notify_listener(FOLLOW_UP);
        reply
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        let Self { engine, local, .. } = self;
        let warming = engine.store.warm(WARM_PAGES_A_CALL);
        engine.warm_growth();
        let more = {
            let _writer = engine.one_writer();
            engine.timestamps.apply_flush(now);
            let growing = engine.split_if_growing((budget / SPLITS_A_BUDGET).max(1));
            let shrinking = engine.shrink(local, now, budget);
            let sweeping = engine.sweep(local, now, budget);
            growing || shrinking || warming || sweeping
        };
        self.notify_listener(budget);
        more
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        self.engine.visit_from(now, from, budget, visit)
    }
}

impl<D: Variant> Drop for CuckooHandle<D> {
    fn drop(&mut self) {
        // The queue holds something only if the owner did not take it, or if an operation panicked.
        if let Some(removals) = &self.engine.removals {
            removals.defer(self.local.removed.take());
        }
        self.local.counters.unregister(&self.engine.counters);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::mem::{Discriminant, MaybeUninit, discriminant};

    use super::*;
    use crate::config::CuckooConfig;
    use nuthatch_engine::reply::Item;
    use nuthatch_engine::request::{Delta, Read, Removal};
    use nuthatch_engine::{Audit, Engine, KeyHasher};

    /// The answer to a request: a value, or a kind of reply.
    #[derive(Debug, PartialEq, Eq)]
    enum Answer {
        Value(Vec<u8>),
        Other(Discriminant<Reply>),
    }

    /// The answers of a batch, which must come in its order.
    #[derive(Default)]
    struct Answers {
        all: Vec<Answer>,
        room: Vec<MaybeUninit<u8>>,
    }

    impl<V> Replies<V> for Answers {
        fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
            assert_eq!(index, self.all.len());
            self.room = vec![MaybeUninit::new(0); item.value_len];
            &mut self.room
        }

        fn commit(&mut self, _index: usize) {
            // SAFETY: made initialised.
            let value = self.room.iter().map(|byte| unsafe { byte.assume_init() });
            self.all.push(Answer::Value(value.collect()));
        }

        fn retract(&mut self, _index: usize) {}

        fn large(&mut self, _index: usize, _item: &Item, _value: V) {
            panic!("no value is large");
        }

        fn done(&mut self, index: usize, reply: Reply) {
            assert_eq!(index, self.all.len());
            self.all.push(Answer::Other(discriminant(&reply)));
        }
    }

    fn engine() -> Arc<Cuckoo<EightWay>> {
        Arc::new(Cuckoo::new(CuckooConfig::default()).unwrap())
    }

    /// Whichever processor the tests run on: each pipeline answers as requests one at a time are answered.
    #[test]
    fn every_pace_keeps_the_order() {
        let paces = [(1, 1), (2, 2), (3, 2), (16, 1), (32, 1), (32, 8), (32, 32)];
        let now = Time::default();
        for (ahead, stride) in paces {
            let (batched, single) = (engine(), engine());
            let (mut handle, mut alone) = (batched.handle(), single.handle());
            handle.pipeline = Pipeline { ahead, stride };
            let mut state = 1_u64;
            for len in 0..=100 {
                let sketches: Vec<Sketch> = (0..len).map(|_| Sketch::random(&mut state)).collect();
                let batch = |hasher| -> Vec<Request<'_>> {
                    sketches
                        .iter()
                        .map(|sketch| sketch.request(hasher))
                        .collect()
                };
                let mut answers = Answers::default();
                handle.execute(now, &batch(batched.hasher()), &mut answers);
                let mut expected = Vec::new();
                for request in batch(single.hasher()) {
                    let mut one = Answers::default();
                    alone.execute(now, &[request], &mut one);
                    expected.append(&mut one.all);
                }
                assert_eq!(answers.all, expected, "{ahead} ahead, turns of {stride}");
            }
        }
    }

    /// Whatever is announced, in time, a batch early, in part, or of other keys: the answers are those without.
    #[test]
    fn announcements_change_no_answer() {
        let now = Time::default();
        let (hinted, plain) = (engine(), engine());
        let (mut handle, mut other) = (hinted.handle(), plain.handle());
        let mut state = 1_u64;
        let mut batches = Vec::new();
        for len in (2..90).chain(2..90) {
            let batch: Vec<Sketch> = (0..len).map(|_| Sketch::random(&mut state)).collect();
            batches.push(batch);
        }
        for (number, batch) in batches.iter().enumerate() {
            let early = batches.get(number + 1);
            let announced: Vec<&Sketch> = match number % 6 {
                // This one, the next, and the one after in the next turn.
                0 => batch.iter().chain(early.into_iter().flatten()).collect(),
                1 => early.into_iter().flatten().collect(),
                2 => Vec::new(),
                3 => batch.iter().step_by(2).collect(),
                4 => batch.iter().rev().collect(),
                _ => batch.iter().take(7).collect(),
            };
            for sketch in announced {
                handle.prefetch(&sketch.request(hinted.hasher()).key);
            }
            let mut answers = [Answers::default(), Answers::default()];
            let of = |hasher| -> Vec<Request<'_>> {
                batch.iter().map(|sketch| sketch.request(hasher)).collect()
            };
            handle.execute(now, &of(hinted.hasher()), &mut answers[0]);
            other.execute(now, &of(plain.hasher()), &mut answers[1]);
            assert_eq!(answers[0].all, answers[1].all, "batch {number}");
            if number % 7 == 0 {
                let key = Key::new(b"a", hinted.hasher());
                let alone = [Request { key, op: Op::Get }];
                handle.execute(now, &alone, &mut Answers::default());
            }
        }
    }

    /// What the stages saw of a batch that was announced early is out of date when its turn comes.
    #[test]
    fn an_early_announcement_shows_no_old_value() {
        let now = Time::default();
        let engine = engine();
        let (mut reader, mut writer) = (engine.handle(), engine.handle());
        let key = |name: &'static str| Key::new(name.as_bytes(), engine.hasher());
        let gets = |names: [&'static str; 3]| {
            names.map(|name| Request {
                key: key(name),
                op: Op::Get,
            })
        };
        let mut set = |name, value: &str| {
            let op = Op::Store(Store::set(value.as_bytes()));
            let request = Request { key: key(name), op };
            writer.execute(now, &[request], &mut Answers::default());
        };
        let (first, second) = (gets(["a", "b", "c"]), gets(["d", "e", "f"]));
        for name in ["a", "d", "f"] {
            set(name, "1");
        }
        for request in first.iter().chain(&second) {
            reader.prefetch(&request.key);
        }
        reader.execute(now, &first, &mut Answers::default());
        // One is replaced, one comes.
        set("d", "2");
        set("e", "2");
        let mut answers = Answers::default();
        reader.execute(now, &second, &mut answers);
        let expected = ["2", "2", "1"].map(|value| Answer::Value(value.into()));
        assert_eq!(answers.all, expected);
    }

    /// A get at once reads its clock only where the answer depends on it, and then it does.
    #[test]
    fn a_get_reads_the_clock_if_something_depends_on_it() {
        let engine = engine();
        let mut handle = engine.handle();
        let mut store = |key: &[u8], expiry| {
            let key = Key::new(key, engine.hasher());
            let op = Op::Store(Store {
                expiry,
                ..Store::set(b"v")
            });
            let mut answers = Answers::default();
            handle.execute(Time(10), &[Request { key, op }], &mut answers);
        };
        store(b"stays", Expiry::Never);
        store(b"ends", Expiry::At(Time(20)));
        let mut handle = engine.handle();
        let mut get = |key: &[u8], now| {
            let looks = std::cell::Cell::new(0);
            let clock = || {
                looks.set(looks.get() + 1);
                Time(now)
            };
            let mut answers = Answers::default();
            let key = Key::new(key, engine.hasher());
            let path = engine.get_at_once(clock, &key, &mut answers);
            if path == FastPath::Not {
                let op = Op::Get;
                handle.execute(Time(now), &[Request { key, op }], &mut answers);
            }
            (answers.all, looks.get() > 0)
        };
        let value = || vec![Answer::Value(b"v".to_vec())];
        let miss = || vec![Answer::Other(discriminant(&Reply::Miss))];
        assert_eq!(get(b"stays", 15), (value(), false));
        assert_eq!(get(b"nothing", 15), (miss(), false));
        assert_eq!(get(b"ends", 19), (value(), true));
        assert_eq!(get(b"ends", 20), (miss(), true));
        engine.flush(Time(21), Time(30));
        assert_eq!(get(b"stays", 29), (value(), true));
        assert_eq!(get(b"stays", 30), (miss(), true));
        // The flush has been carried out and is no longer awaited.
        assert_eq!(get(b"nothing", 31), (miss(), false));
    }

    /// A reader prolongs the life of the item that it read, and of no other that replaced it.
    #[test]
    fn a_touch_meets_only_the_item_with_its_cas() {
        /// The item that the last store made, or a read found.
        #[derive(Default)]
        struct Seen(Option<Item>);

        impl<V> Replies<V> for Seen {
            fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
                panic!("no value is asked for");
            }
            fn commit(&mut self, _: usize) {}
            fn retract(&mut self, _: usize) {}
            fn large(&mut self, _: usize, _: &Item, _: V) {}
            fn done(&mut self, _: usize, reply: Reply) {
                self.0 = match reply {
                    Reply::Stored(item) | Reply::Found(item) => Some(item),
                    _ => None,
                };
            }
        }

        let engine = engine();
        let mut handle = engine.handle();
        let key = Key::new(b"k", engine.hasher());
        let ask = |handle: &mut CuckooHandle, now, op| {
            let mut seen = Seen::default();
            handle.execute(now, &[Request { key, op }], &mut seen);
            seen.0
        };
        let store = |flags| {
            Op::Store(Store {
                expiry: Expiry::At(Time(100)),
                flags,
                ..Store::set(b"v")
            })
        };
        let look = Op::Read(Read {
            value: false,
            ..Read::default()
        });
        let late = Expiry::At(Time(200));
        assert!(!handle.touch_if(Time(1), key, 1, late));
        // Flags of more than 14 bits take the long header.
        for flags in [7, 1 << 20] {
            let old = ask(&mut handle, Time(1), store(flags)).unwrap();
            let new = ask(&mut handle, Time(1), store(flags)).unwrap();
            assert!(!handle.touch_if(Time(1), key, old.cas, late));
            assert_eq!(ask(&mut handle, Time(1), look).unwrap().expiry, new.expiry);
            assert!(handle.touch_if(Time(1), key, new.cas, late));
            let touched = ask(&mut handle, Time(150), look).unwrap();
            assert_eq!(
                (touched.expiry, touched.cas, touched.flags),
                (late, new.cas, flags)
            );
            assert!(!handle.touch_if(Time(200), key, new.cas, Expiry::Never));
        }
        engine.audit().unwrap();
    }

    /// A request without its hash, which is the engine's.
    struct Sketch {
        key: [u8; 1],
        op: u64,
        value: String,
    }

    impl Sketch {
        fn random(state: &mut u64) -> Self {
            *state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            Self {
                // Few keys, so that many requests of a batch meet on one.
                key: [b'a' + (*state >> 40) as u8 % 12],
                op: (*state >> 50) % 8,
                value: (*state >> 55).to_string(),
            }
        }

        fn request(&self, hasher: &KeyHasher) -> Request<'_> {
            Request {
                key: Key::new(&self.key, hasher),
                op: match self.op {
                    0 => Op::Remove(Removal::default()),
                    1 | 2 => Op::Store(Store::set(self.value.as_bytes())),
                    3 => Op::Delta(Delta::up(1)),
                    _ => Op::Get,
                },
            }
        }
    }
}
