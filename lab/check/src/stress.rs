//! Many threads at once, on values that check themselves.
//!
//! Every value carries its key, its length, a stamp and a checksum
//! ([`nuthatch_workload::value`]), so a reader needs no oracle: whatever it gets must check, and by its
//! stamp it must be the key's newest ([`zones`](crate::zones)). Sizes are a smoke test by default; a soak
//! raises them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nuthatch_engine::{
    AnyEngine, AnyHandle, Audit, Delta, Engine, Expiry, Handle, Key, Op, Read, Removal, Reply,
    Request, Store, StoreMode, Time,
};
use nuthatch_workload::{Distribution, KeyMaker, Popularity, Seed, value};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::answer::{Answer, ask};
use crate::zones::{Action, Log, Span};

/// The amount of a stress.
#[derive(Clone, Debug)]
pub struct Load {
    /// Threads, all of which read and write.
    pub threads: usize,
    /// Batches that each of them carries out.
    pub batches: usize,
    /// Requests in a batch, at most.
    pub batch_max: usize,
    /// Different keys.
    pub keys: u64,
    /// Lengths of values. The shorter ones come more often.
    pub value_len: Range<usize>,
    /// The seed of everything random except the order of threads.
    pub seed: Seed,
}

impl Load {
    /// A few seconds.
    pub const SMOKE: Self = Self {
        threads: 4,
        batches: 2500,
        batch_max: 32,
        keys: 20_000,
        value_len: 64..4096,
        seed: Seed(1),
    };

    /// A mixture of sizes, up to half a mebibyte.
    pub const MIXED: Self = Self {
        batches: 300,
        keys: 2000,
        value_len: 64..512 << 10,
        ..Self::SMOKE
    };
}

/// What a stress has seen. A test may demand that it is not nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Reads that returned a value.
    pub hits: usize,
    /// Reads that found nothing.
    pub misses: usize,
    /// Changes that took place.
    pub changes: usize,
}

/// Length of a key in bytes.
const KEY_SIZE: usize = 16;

/// Reads, stores, deletes, expiries and maintenance by all threads on all keys: each value read must check, and must
/// not have been overwritten or removed before. Misses are lawful. Ends with an audit.
pub fn everything(engine: &Arc<AnyEngine>, load: &Load) -> Seen {
    let ticks = AtomicUsize::new(1000);
    let clock = AtomicUsize::new(0);
    let workers = on_threads(load.threads, |thread| {
        let mut worker = Worker::new(engine, load, &clock, thread);
        for round in 0..load.batches {
            // A tick passes every now and then, so that items expire.
            let now = ticks.fetch_add(usize::from(round % 64 == 0), Ordering::Relaxed);
            worker.batch(Time(now as u32));
        }
        (worker.seen, worker.log)
    });
    audit(engine);
    let mut sum = Seen::default();
    let mut log = Log::default();
    for (seen, of_a_thread) in workers {
        sum.hits += seen.hits;
        sum.misses += seen.misses;
        sum.changes += seen.changes;
        log.merge(of_a_thread);
    }
    if let Err(stale) = log.judge() {
        panic!("{stale}");
    }
    sum
}

/// Keys that stay, in ample memory, while all others around them come and go and the table grows:
/// readers of those that stay must never miss. Returns how many reads there were.
pub fn residents(engine: &Arc<AnyEngine>, load: &Load) -> usize {
    let keys = KeyMaker::new(KEY_SIZE);
    let residents = load.keys / 10 + 1;
    let mut handle = engine.handle();
    let now = Time(1000);
    for number in 0..residents {
        let value = value::make(&keys.key(number), number, 100);
        let answer = one(
            engine,
            &mut handle,
            now,
            &keys.key(number),
            Op::Store(Store::set(&value)),
        );
        assert!(
            matches!(answer, Answer::Done(Reply::Stored(_))),
            "{answer:?}"
        );
    }

    let churning = AtomicUsize::new(load.threads / 2);
    let watched = AtomicBool::new(false);
    let reads = on_threads(load.threads, |thread| {
        let mut random = load.seed.thread(thread);
        if thread < load.threads / 2 {
            // On a busy machine a round of all batches may be over before the first reader runs.
            loop {
                churn(engine, load, thread, residents, &mut random);
                // Relaxed: the flag publishes no other memory.
                if watched.load(Ordering::Relaxed) {
                    break;
                }
            }
            // Release: readers that see the end have the churn behind them (Acquire in `watch`).
            churning.fetch_sub(1, Ordering::Release);
            return 0;
        }
        watch(engine, load, residents, random, &churning, &watched)
    });
    audit(engine);
    reads.into_iter().sum()
}

/// Stores ever new keys, of which some are deleted again, and lets the engine do its housekeeping.
fn churn(
    engine: &Arc<AnyEngine>,
    load: &Load,
    thread: usize,
    residents: u64,
    random: &mut SmallRng,
) {
    let keys = KeyMaker::new(KEY_SIZE);
    let mut handle = engine.handle();
    let first = residents + thread as u64 * (load.batches * load.batch_max) as u64;
    for batch in 0..load.batches as u64 {
        for number in 0..load.batch_max as u64 {
            let number = first + batch * load.batch_max as u64 + number;
            let key = keys.key(number);
            let value = value::make(&key, number, random.random_range(50..200));
            one(
                engine,
                &mut handle,
                Time(1000),
                &key,
                Op::Store(Store::set(&value)),
            );
            let gone = keys.key(random.random_range(first..=number));
            let op = match random.random_range(0..4) {
                0 => Op::Get,
                _ => Op::Remove(Removal::default()),
            };
            one(engine, &mut handle, Time(1000), &gone, op);
        }
        handle.maintain(Time(1000), 100);
    }
}

/// Reads residents in batches until the churn is over, and touches some.
fn watch(
    engine: &Arc<AnyEngine>,
    load: &Load,
    residents: u64,
    mut random: SmallRng,
    churning: &AtomicUsize,
    watched: &AtomicBool,
) -> usize {
    let keys = KeyMaker::new(KEY_SIZE);
    let mut handle = engine.handle();
    let mut reads = 0;
    // Acquire: see the Release in `residents`.
    while churning.load(Ordering::Acquire) > 0 {
        // Before the reads, so that the churn has an end should they panic.
        watched.store(true, Ordering::Relaxed);
        let count = random.random_range(1..=load.batch_max);
        let numbers: Vec<_> = (0..count)
            .map(|_| random.random_range(0..residents))
            .collect();
        let names: Vec<_> = numbers.iter().map(|&number| keys.key(number)).collect();
        let touch = Read {
            touch: Some(Expiry::Never),
            ..Read::default()
        };
        let batch = names.iter().map(|name| Request {
            key: Key::new(name, engine.hasher()),
            op: if random.random_bool(0.1) {
                Op::Read(touch)
            } else {
                Op::Get
            },
        });
        let batch: Vec<_> = batch.collect();
        let answers = ask(&mut handle, Time(1000), &batch);
        for ((name, number), answer) in names.iter().zip(numbers).zip(answers) {
            let Some(found) = answer.value() else {
                panic!("resident {number} was missed: {answer:?}");
            };
            assert_eq!(value::check(name, found), Ok(number), "resident {number}");
            reads += 1;
        }
    }
    reads
}

/// A number that all threads count up by ones: none may be lost. Returns how many there were.
pub fn counter(engine: &Arc<AnyEngine>, load: &Load) -> usize {
    let mut handle = engine.handle();
    let now = Time(1000);
    let key = b"the counter";
    one(engine, &mut handle, now, key, Op::Store(Store::set(b"0")));
    let counts = on_threads(load.threads, |thread| {
        let mut handle = engine.handle();
        let mut random = load.seed.thread(thread);
        let mut counted = 0;
        let mut last = 0;
        for _ in 0..load.batches {
            let up = Request {
                key: Key::new(key, engine.hasher()),
                op: Op::Delta(Delta::up(1)),
            };
            let batch = vec![up; random.random_range(1..=load.batch_max)];
            for answer in ask(&mut handle, now, &batch) {
                let Answer::Done(Reply::Number(number, _)) = answer else {
                    panic!("incr was answered {answer:?}");
                };
                assert!(number > last, "{number} follows {last}");
                last = number;
            }
            counted += batch.len();
        }
        counted
    });
    let total = counts.into_iter().sum::<usize>();
    let answer = one(engine, &mut handle, now, key, Op::Get);
    assert_eq!(answer.value(), Some(total.to_string().as_bytes()));
    audit(engine);
    total
}

/// Threads append to one long value, which engines copy beside their locks: none of what they append is lost, and each
/// reads its own in the same batch.
pub fn appends(engine: &Arc<AnyEngine>, load: &Load) {
    const LONG: usize = 10_000;
    let mut handle = engine.handle();
    let now = Time(1000);
    let key = b"the long one";
    let start = Op::Store(Store::set(&[b'.'; LONG]));
    one(engine, &mut handle, now, key, start);
    let letter = |thread: usize| [b'a' + thread as u8];
    let count = |value: &[u8], thread: usize| {
        let its = |byte: &&u8| **byte == letter(thread)[0];
        value[LONG..].iter().filter(its).count()
    };
    let appended = on_threads(load.threads, |thread| {
        let mut handle = engine.handle();
        let mut random = load.seed.thread(thread);
        let mut appended = 0;
        for _ in 0..load.batches {
            let value = &letter(thread)[..];
            let append = Store {
                mode: StoreMode::Append,
                ..Store::set(value)
            };
            let key = Key::new(key, engine.hasher());
            let op = Op::Store(append);
            let mut batch = vec![Request { key, op }; random.random_range(1..=4)];
            appended += batch.len();
            batch.push(Request { key, op: Op::Get });
            let answers = ask(&mut handle, now, &batch);
            let (read, stored) = answers.split_last().expect("as many as requests");
            for answer in stored {
                let Answer::Done(Reply::Stored(_)) = answer else {
                    panic!("append was answered {answer:?}");
                };
            }
            let value = read.value().expect("it is never removed");
            assert_eq!(count(value, thread), appended, "its own appends");
        }
        appended
    });
    let answer = one(engine, &mut handle, now, key, Op::Get);
    let value = answer.value().expect("it is never removed");
    assert_eq!(value[..LONG], [b'.'; LONG]);
    for (thread, appended) in appended.into_iter().enumerate() {
        assert_eq!(count(value, thread), appended, "of thread {thread}");
    }
    audit(engine);
}

/// One thread of [`everything`].
struct Worker<'a> {
    engine: &'a Arc<AnyEngine>,
    handle: AnyHandle,
    load: &'a Load,
    clock: &'a AtomicUsize,
    thread: usize,
    keys: KeyMaker,
    popularity: Popularity,
    random: SmallRng,
    stamp: u64,
    seen: Seen,
    log: Log,
}

/// A request for a key, and the stamp that distinguishes its value or its removal from all others.
struct Wish {
    number: u64,
    name: Vec<u8>,
    stamp: u64,
    value: Vec<u8>,
}

impl<'a> Worker<'a> {
    fn new(
        engine: &'a Arc<AnyEngine>,
        load: &'a Load,
        clock: &'a AtomicUsize,
        thread: usize,
    ) -> Self {
        Self {
            engine,
            handle: engine.handle(),
            load,
            clock,
            thread,
            keys: KeyMaker::new(KEY_SIZE),
            popularity: Popularity::new(Distribution::YCSB, load.keys),
            random: load.seed.thread(thread),
            stamp: (thread as u64) << 48,
            seen: Seen::default(),
            log: Log::default(),
        }
    }

    fn batch(&mut self, now: Time) {
        let count = self.random.random_range(1..=self.load.batch_max);
        let wishes: Vec<_> = (0..count).map(|_| self.wish()).collect();
        let batch: Vec<_> = wishes.iter().map(|wish| self.request(now, wish)).collect();
        // Sequentially consistent, both: the counts are real time.
        let began = self.clock.fetch_add(1, Ordering::SeqCst);
        let answers = ask(&mut self.handle, now, &batch);
        let ended = self.clock.fetch_add(1, Ordering::SeqCst);
        let done = wishes.iter().zip(&answers);
        let deeds = done.filter_map(|(wish, answer)| {
            let deed = self.seen.judge(now, wish, answer)?;
            Some((wish.number, deed))
        });
        let deeds: Vec<_> = deeds.collect();
        let span = Span {
            thread: self.thread,
            began,
            ended,
        };
        self.log.batch(span, &deeds);
        if self.random.random_bool(0.05) {
            self.handle.maintain(now, 64);
        }
    }

    /// A key, and a value for it; half of them are in the shortest sixteenth.
    fn wish(&mut self) -> Wish {
        let number = self.popularity.draw(&mut self.random);
        let name = self.keys.key(number);
        let Range { start, end } = self.load.value_len;
        let least = start.max(value::len_min(name.len()));
        let most = match self.random.random_bool(0.5) {
            true => least + (end - least) / 16,
            false => end,
        };
        self.stamp += 1;
        let len = self.random.random_range(least..most.max(least + 1));
        Wish {
            number,
            value: value::make(&name, self.stamp, len),
            name,
            stamp: self.stamp,
        }
    }

    fn request<'b>(&mut self, now: Time, wish: &'b Wish) -> Request<'b> {
        let op = match self.random.random_range(0..100) {
            0..60 => Op::Get,
            60..66 => Op::Read(Read {
                touch: Some(Expiry::At(now.after(Duration::from_secs(2)))),
                ..Read::default()
            }),
            66..90 => Op::Store(Store::set(&wish.value)),
            90..94 => Op::Store(Store {
                expiry: Expiry::At(now.after(Duration::from_millis(100))),
                ..Store::set(&wish.value)
            }),
            _ => Op::Remove(Removal::default()),
        };
        let key = Key::new(&wish.name, self.engine.hasher());
        Request { key, op }
    }
}

impl Seen {
    /// Judges an answer by itself, and returns the action on the key that it shows. (A miss shows nothing: an item that
    /// has expired for one thread has not yet for another, whose batch has an earlier moment.)
    fn judge(&mut self, now: Time, wish: &Wish, answer: &Answer) -> Option<Action> {
        match answer {
            Answer::Value(item, found) => {
                let name = String::from_utf8_lossy(&wish.name);
                let stamp = value::check(&wish.name, found).unwrap_or_else(|fault| {
                    panic!("{name} has {} bytes with a wrong {fault:?}", found.len())
                });
                assert!(!item.expiry.is_past(now), "{name} at {now:?}: {item:?}");
                self.hits += 1;
                Some(Action::Read(stamp))
            }
            Answer::Done(Reply::Stored(_) | Reply::Removed) => {
                self.changes += 1;
                Some(Action::Wrote(wish.stamp))
            }
            Answer::Done(Reply::Miss) => {
                self.misses += 1;
                None
            }
            Answer::Done(Reply::NotFound) => None,
            Answer::Done(other) => panic!("answered {other:?}"),
        }
    }
}

fn one(
    engine: &Arc<AnyEngine>,
    handle: &mut AnyHandle,
    now: Time,
    key: &[u8],
    op: Op<'_>,
) -> Answer {
    crate::answer::ask_one(handle, engine.hasher(), now, key, op)
}

/// Runs `work` on this many threads that start together, and returns their results.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let open = AtomicBool::new(false);
    let (open, work) = (&open, &work);
    std::thread::scope(|scope| {
        let spawn = |thread| {
            scope.spawn(move || {
                while !open.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                work(thread)
            })
        };
        let running: Vec<_> = (0..threads).map(spawn).collect();
        open.store(true, Ordering::Release);
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn audit(engine: &Arc<AnyEngine>) {
    if let Err(broken) = engine.audit() {
        panic!("audit: {broken}");
    }
}
