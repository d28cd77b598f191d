//! Concurrent histories of one key, judged for linearizability.
//!
//! Threads carry out a few operations each on one key, and note when each began and ended by the
//! count of a shared clock. The history then goes to a library's tester, with the oracle's
//! transition as the sequential specification: is there an order of all operations, in keeping
//! with when they began and ended, in which every answer is right?
//!
//! Histories are short, since judging takes exponential time, and many, since races are rare.

use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use nuthatch::{Condition, Delta, Engine, Op, Read, Removal, Reply, Store, StoreMode, Time};
use nuthatch_workload::Seed;
use rand::Rng;
use rand::rngs::SmallRng;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

use crate::answer::{Answer, ask_one};
use crate::naive::transition::{Circumstances, Outcome, StoredItem, apply};

/// How many histories, of what size.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Histories.
    pub rounds: usize,
    /// Threads of each.
    pub threads: usize,
    /// Operations of each thread.
    pub operations: usize,
    /// What the choice of operations follows from.
    pub seed: Seed,
}

impl Plan {
    /// A few seconds.
    pub const SMOKE: Self = Self {
        rounds: 2000,
        threads: 3,
        operations: 5,
        seed: Seed(1),
    };
}

/// One operation on the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Get the value.
    Get,
    /// Look at the item without its value.
    Look,
    /// Store in one of the modes.
    Store(StoreMode, u8),
    /// Store on the condition that the item has the cas this thread saw last.
    Cas(u8, u64),
    /// Delete.
    Delete,
    /// Delete on the condition of a cas.
    DeleteCas(u64),
    /// Count up.
    Up(u8),
    /// Create an empty item, or look at the one that is there.
    Vivify,
}

/// What was answered, as far as a history can be judged by it: every change has a new cas, which
/// only the engine chooses, so the cas of a changed item is told and that of others is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A value, and its cas.
    Value(Vec<u8>, u64),
    /// An item without its value: length, cas, whether this request won it.
    Item(usize, u64, bool),
    /// The item is new, with this length and cas.
    New(usize, u64),
    /// A number, and the new cas.
    Number(u64, u64),
    /// Anything else.
    Plain(Reply),
}

/// An operation with its answer and its time.
#[derive(Clone, Debug)]
pub struct Event {
    /// The thread.
    pub thread: usize,
    /// What was asked.
    pub act: Act,
    /// What was answered.
    pub told: Told,
    /// The clock's count before.
    pub began: usize,
    /// And after.
    pub ended: usize,
}

/// The sequential specification: one key's item.
#[derive(Clone, Debug, Default)]
struct Register(Option<StoredItem>);

const NOW: Time = Time(1000);

impl SequentialSpec for Register {
    type Op = Act;
    type Ret = Told;

    /// Not used by the tester when `is_valid_step` is given, but for operations that never
    /// returned; histories have none.
    fn invoke(&mut self, act: &Act) -> Told {
        self.step(act, 0)
    }

    fn is_valid_step(&mut self, act: &Act, told: &Told) -> bool {
        let next_cas = match told {
            Told::New(_, cas) | Told::Number(_, cas) => *cas,
            Told::Item(_, cas, true) => *cas,
            _ => 0,
        };
        self.step(act, next_cas) == *told
    }
}

impl Register {
    fn step(&mut self, act: &Act, next_cas: u64) -> Told {
        let around = Circumstances {
            now: NOW,
            next_cas,
            value_max: usize::MAX,
        };
        let value = act.value();
        match apply(&mut self.0, &act.op(&value), around) {
            Outcome::Value(item, value) => Told::Value(value.to_vec(), item.cas),
            Outcome::Done(reply) => tell(&Answer::Done(reply)),
        }
    }
}

fn tell(answer: &Answer) -> Told {
    match answer {
        Answer::Value(item, value) => Told::Value(value.clone(), item.cas),
        Answer::Done(Reply::Found(item)) => Told::Item(item.value_len, item.cas, item.won),
        Answer::Done(Reply::Stored(item)) => Told::New(item.value_len, item.cas),
        Answer::Done(Reply::Number(number, item)) => Told::Number(*number, item.cas),
        Answer::Done(reply) => Told::Plain(*reply),
    }
}

impl Act {
    fn random(random: &mut SmallRng, cas: u64) -> Self {
        let digit = random.random_range(0..10);
        match random.random_range(0..16) {
            0..4 => Act::Get,
            4 => Act::Look,
            5..7 => Act::Store(StoreMode::Set, digit),
            7 => Act::Store(StoreMode::Add, digit),
            8 => Act::Store(StoreMode::Replace, digit),
            9 => Act::Store(StoreMode::Append, digit),
            10 => Act::Store(StoreMode::Prepend, digit),
            11 => Act::Cas(digit, cas),
            12 => Act::Delete,
            13 => Act::DeleteCas(cas),
            14 => Act::Up(digit),
            _ => Act::Vivify,
        }
    }

    fn value(&self) -> Vec<u8> {
        match self {
            Act::Store(_, digit) | Act::Cas(digit, _) => vec![b'0' + digit],
            _ => Vec::new(),
        }
    }

    fn op<'a>(&self, value: &'a [u8]) -> Op<'a> {
        let look = Read {
            value: false,
            ..Read::default()
        };
        match *self {
            Act::Get => Op::Get,
            Act::Look => Op::Read(look),
            Act::Store(mode, _) => Op::Store(Store {
                mode,
                ..Store::set(value)
            }),
            Act::Cas(_, cas) => Op::Store(Store {
                condition: Condition::Cas(cas),
                ..Store::set(value)
            }),
            Act::Delete => Op::Remove(Removal::default()),
            Act::DeleteCas(cas) => Op::Remove(Removal {
                condition: Condition::Cas(cas),
                ..Removal::default()
            }),
            Act::Up(by) => Op::Delta(Delta::up(by.into())),
            Act::Vivify => Op::Read(Read {
                vivify: Some(nuthatch::Expiry::Never),
                may_win: true,
                ..look
            }),
        }
    }
}

/// Records histories of an engine with ample memory, and judges each; panics with the first that
/// is not linearizable, then audits.
pub fn linearizable<E: Engine>(engine: &Arc<E>, plan: &Plan) {
    let record = |round: usize| {
        let key = format!("key {round}").into_bytes();
        move |handle: &mut E::Handle, op: Op<'_>| ask_one(handle, engine.hasher(), NOW, &key, op)
    };
    let histories = histories(plan, || engine.handle(), record);
    for (round, history) in histories.iter().enumerate() {
        if let Err(history) = judge(history) {
            panic!(
                "round {round} of {:?} is not linearizable:\n{history}",
                plan.seed
            );
        }
    }
    if let Err(broken) = engine.audit() {
        panic!("audit: {broken}");
    }
}

/// Records a history a round: the same threads with the same doors, which meet before each round.
fn histories<H, F>(
    plan: &Plan,
    door: impl Fn() -> H + Sync,
    round: impl Fn(usize) -> F + Sync,
) -> Vec<Vec<Event>>
where
    F: Fn(&mut H, Op<'_>) -> Answer,
{
    let clock = AtomicUsize::new(0);
    let barrier = Barrier::new(plan.threads);
    let work = |thread: usize| {
        let mut door = door();
        let mut random = plan.seed.thread(thread);
        let mut rounds = Vec::with_capacity(plan.rounds);
        for number in 0..plan.rounds {
            let ask = round(number);
            let mut events = Vec::with_capacity(plan.operations);
            let mut cas = 0;
            barrier.wait();
            for _ in 0..plan.operations {
                let act = Act::random(&mut random, cas);
                let value = act.value();
                // Sequentially consistent, both: the counts are the history's real time, and the
                // operation must not be taken for earlier or later than it was.
                let began = clock.fetch_add(1, Ordering::SeqCst);
                let answer = ask(&mut door, act.op(&value));
                let ended = clock.fetch_add(1, Ordering::SeqCst);
                cas = answer.item().map_or(cas, |item| item.cas);
                let told = tell(&answer);
                events.push(Event {
                    thread,
                    act,
                    told,
                    began,
                    ended,
                });
            }
            rounds.push(events);
        }
        rounds
    };
    let work = &work;
    let by_thread: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..plan.threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    (0..plan.rounds)
        .map(|round| {
            by_thread
                .iter()
                .flat_map(|rounds| rounds[round].clone())
                .collect()
        })
        .collect()
}

/// Judges one history; an error is the history in words, in the order in which operations began.
pub fn judge(history: &[Event]) -> Result<(), String> {
    let mut moments: Vec<(usize, &Event, bool)> = Vec::new();
    for event in history {
        moments.push((event.began, event, true));
        moments.push((event.ended, event, false));
    }
    moments.sort_by_key(|(moment, ..)| *moment);
    let mut tester = LinearizabilityTester::new(Register::default());
    for (_, event, begins) in moments {
        if begins {
            tester.on_invoke(event.thread, event.act)?;
        } else {
            tester.on_return(event.thread, event.told.clone())?;
        }
    }
    if tester.is_consistent() {
        return Ok(());
    }
    let mut lines: Vec<_> = history.iter().collect();
    lines.sort_by_key(|event| event.began);
    let line = |event: &&Event| {
        let Event {
            thread,
            act,
            told,
            began,
            ended,
        } = event;
        format!("  {began}..{ended} thread {thread}: {act:?} -> {told:?}\n")
    };
    Err(lines.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A register that reads, decides and writes in two steps.
    #[derive(Default)]
    struct Broken(Mutex<(Option<StoredItem>, u64)>);

    impl Broken {
        fn ask(&self, op: &Op<'_>) -> Answer {
            let (mut item, next_cas) = {
                let mut state = self.0.lock().expect("nobody panics in here");
                state.1 += 1;
                state.clone()
            };
            let around = Circumstances {
                now: NOW,
                next_cas,
                value_max: usize::MAX,
            };
            let outcome = apply(&mut item, op, around);
            std::thread::yield_now();
            self.0.lock().expect("nobody panics in here").0 = item;
            match outcome {
                Outcome::Value(item, value) => Answer::Value(item, value.to_vec()),
                Outcome::Done(reply) => Answer::Done(reply),
            }
        }
    }

    #[test]
    fn canary_a_register_in_two_steps_is_convicted() {
        let plan = Plan {
            rounds: 500,
            ..Plan::SMOKE
        };
        let registers: Vec<_> = (0..plan.rounds).map(|_| Broken::default()).collect();
        let record = |round: usize| {
            let register = &registers[round];
            move |_: &mut (), op: Op<'_>| register.ask(&op)
        };
        let histories = histories(&plan, || (), record);
        let convicted = histories.iter().filter(|history| judge(history).is_err());
        assert!(convicted.count() > 0, "none of {} histories", plan.rounds);
    }

    /// A history of two threads, written down by hand.
    fn history(events: &[(usize, Act, Told, usize, usize)]) -> Vec<Event> {
        let event = |(thread, act, told, began, ended): &(usize, Act, Told, usize, usize)| Event {
            thread: *thread,
            act: *act,
            told: told.clone(),
            began: *began,
            ended: *ended,
        };
        events.iter().map(event).collect()
    }

    #[test]
    fn a_stale_read_is_convicted_and_an_overlapping_one_is_not() {
        let set = (0, Act::Store(StoreMode::Set, 1), Told::New(1, 9), 0, 3);
        let miss = |began, ended| (1, Act::Get, Told::Plain(Reply::Miss), began, ended);
        assert!(judge(&history(&[set.clone(), miss(1, 2)])).is_ok());
        assert!(judge(&history(&[set, miss(4, 5)])).is_err());
    }
}
