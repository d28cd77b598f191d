//! Sequences of operations, compared with the oracle answer by answer.
//!
//! A sequence is data ([`Step`]), so it can be generated, shrunk, and read from a fuzzer's bytes. [`run`] carries it
//! out on an engine and judges each answer by the oracle's own transition. An engine has cas values of its own:
//! requests name them by when they were seen, and the check demands that they rise when the model's do.
//!
//! Without memory pressure all answers must be equal. Under pressure an engine may have forgotten any item at any time,
//! but only once; its answer must be right for the item or for no item.

mod model;
pub mod step;

use std::cell::Cell;
use std::sync::Arc;

use arbitrary::Unstructured;
use nuthatch_engine::request::Leave;
use nuthatch_engine::{
    AnyEngine, AnyHandle, Audit, Condition, Cursor, Delta, Engine, Handle, Key, Op, Read, Removal,
    Reply, Request, Reservation, Store, StoreMode, Time, TouchIf,
};
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRunner};

use crate::answer::{Answer, ask};
use model::Model;
pub use model::{Misses, Tally};
use step::{
    Ask, CasSpec, ConditionSpec, KeyNumber, LeaveSpec, ModeSpec, NEVER_CAS, OpSpec, Step,
    StoreSpec, TouchIfSpec,
};

/// Carries out `cases` random sequences, each on a new engine, and panics with the least sequence that convicts it. An
/// engine that may forget must not forget every second item.
pub fn property(cases: usize, misses: Misses, make: impl Fn() -> Arc<AnyEngine>) {
    let config = Config {
        cases: cases as u32,
        max_shrink_iters: 20_000,
        // The failing sequence is printed in full; no file beside the sources is needed.
        failure_persistence: None,
        // The default generator takes a tenth of the checks' time.
        rng_algorithm: RngAlgorithm::XorShift,
        ..Config::default()
    };
    let sequences = proptest::collection::vec(any::<Step>(), 1..60);
    let sum = Cell::new(Tally::default());
    let judged = TestRunner::new(config).run(&sequences, |steps| {
        let tally = run(&make(), &steps, misses).map_err(TestCaseError::fail)?;
        sum.set(Tally {
            kept: sum.get().kept + tally.kept,
            forgotten: sum.get().forgotten + tally.forgotten,
        });
        Ok(())
    });
    match judged {
        Ok(()) => {
            let Tally { kept, forgotten } = sum.get();
            assert!(kept > forgotten, "{forgotten} items forgotten, {kept} kept");
        }
        Err(TestError::Fail(wrong, least)) => panic!("{wrong}\n{}", listing(&least)),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// How much memory a fuzz target gives its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Two dozen keys of at most a mebibyte: nothing has to be evicted.
    Ample,
    /// Some of the largest values.
    Tight,
}

impl Room {
    /// Chooses one of them by a bit of the fuzzer's byte.
    pub fn of(byte: u8) -> Self {
        match byte & 1 {
            0 => Room::Ample,
            _ => Room::Tight,
        }
    }

    /// The memory limit.
    pub fn bytes(self) -> usize {
        match self {
            Room::Ample => 128 << 20,
            Room::Tight => 8 << 20,
        }
    }

    /// Whether the engine may forget.
    pub fn misses(self) -> Misses {
        match self {
            Room::Ample => Misses::Never,
            Room::Tight => Misses::Lawful,
        }
    }
}

/// Carries out the sequence that `bytes` encode, and panics if an answer is wrong. Fuzz targets call it. The engine is
/// new.
pub fn run_bytes(engine: &Arc<AnyEngine>, bytes: &[u8], misses: Misses) {
    let mut source = Unstructured::new(bytes);
    let steps = source.arbitrary_iter::<Step>().into_iter().flatten();
    let steps: Vec<_> = steps.map_while(Result::ok).collect();
    if let Err(wrong) = run(engine, &steps, misses) {
        panic!("{wrong}\n{}", listing(&steps));
    }
}

/// A sequence, a line for each request.
fn listing(steps: &[Step]) -> String {
    let mut lines = String::from("in this sequence:\n");
    for (index, step) in steps.iter().enumerate() {
        if let Step::Batch(asks) = step {
            lines += &format!("{index}: a batch of {}\n", asks.len());
            for Ask { key, op } in asks {
                lines += &format!("    key {}: {op:?}\n", key.index());
            }
        } else {
            lines += &format!("{index}: {step:?}\n");
        }
    }
    lines
}

/// Carries out a sequence on an engine that is new, or under memory pressure has been filled with other keys; an error
/// names the wrong answer, or the invariant that does not hold at the end.
pub fn run(engine: &Arc<AnyEngine>, steps: &[Step], misses: Misses) -> Result<Tally, String> {
    let mut driver = Driver {
        handle: engine.handle(),
        engine: Arc::clone(engine),
        model: Model::new(misses, engine.item_size_max()),
        misses,
        now: Time(1000),
    };
    for (index, step) in steps.iter().enumerate() {
        let done = driver.step(step);
        done.map_err(|wrong| format!("step {index}, {wrong}"))?;
    }
    let audited = engine.audit();
    audited.map_err(|broken| format!("audit: {broken}"))?;
    Ok(driver.model.tally)
}

struct Driver {
    engine: Arc<AnyEngine>,
    handle: AnyHandle,
    model: Model,
    misses: Misses,
    now: Time,
}

/// An operation whose names are resolved: the same for the model and the engine except for cas values.
struct ResolvedOp {
    key: Vec<u8>,
    index: usize,
    value: Vec<u8>,
    spec: OpSpec,
    /// The cas that it demands: the model's and the engine's.
    cas: (u64, u64),
}

impl Driver {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Batch(asks) => self.batch(asks),
            Step::Later(ticks) => {
                self.now.0 += u32::from(*ticks);
                Ok(())
            }
            Step::Reserve {
                key,
                store,
                piece,
                dropped,
                meanwhile,
            } => self.reserve(*key, store, *piece, *dropped, meanwhile.as_ref()),
            Step::Maintain(budget) => {
                self.handle.maintain(self.now, usize::from(*budget));
                Ok(())
            }
            Step::Visit(budget) => self.visit(usize::from(*budget) + 1),
            Step::Flush(after) => {
                let at = match after {
                    Some(ticks) => Time(self.now.0 + u32::from(*ticks)),
                    None => Time(self.now.0 - 1),
                };
                self.engine.flush(self.now, at);
                self.model.flush(self.now, at);
                Ok(())
            }
        }
    }

    fn batch(&mut self, asks: &[Ask]) -> Result<(), String> {
        let asked: Vec<_> = asks.iter().map(|ask| self.resolve(ask)).collect();
        let hasher = self.engine.hasher();
        let requests = asked.iter().map(|asked| Request {
            key: Key::new(&asked.key, hasher),
            op: asked.op(self.now, asked.cas.1),
        });
        let requests: Vec<_> = requests.collect();
        let answers = ask(&mut self.handle, self.now, &requests);
        for (number, (asked, answer)) in asked.iter().zip(&answers).enumerate() {
            self.judge(asked, answer)
                .map_err(|wrong| format!("request {number}: {wrong}"))?;
        }
        Ok(())
    }

    fn judge(&mut self, asked: &ResolvedOp, answer: &Answer) -> Result<(), String> {
        let op = asked.op(self.now, asked.cas.0);
        let key_len = asked.key.len();
        self.model
            .judge(self.now, asked.index, key_len, &op, answer)
    }

    fn resolve(&self, ask: &Ask) -> ResolvedOp {
        let index = ask.key.index();
        let cas = match named_cas(&ask.op) {
            Some(CasSpec::Seen(ago)) => self.model.seen_cas(index, ago),
            Some(CasSpec::Own(own)) => Some((own.cas(), own.cas())),
            Some(CasSpec::Never) | None => None,
        };
        ResolvedOp {
            key: ask.key.bytes(),
            index,
            value: match &ask.op {
                OpSpec::Set(value) | OpSpec::Store(StoreSpec { value, .. }) => value.bytes(),
                _ => Vec::new(),
            },
            spec: ask.op.clone(),
            cas: cas.unwrap_or((NEVER_CAS, NEVER_CAS)),
        }
    }

    fn reserve(
        &mut self,
        key: KeyNumber,
        store: &StoreSpec,
        piece: u8,
        dropped: bool,
        meanwhile: Option<&Ask>,
    ) -> Result<(), String> {
        let op = OpSpec::Store(store.clone());
        let asked = self.resolve(&Ask { key, op });
        let reserved = {
            let key = Key::new(&asked.key, self.engine.hasher());
            self.handle.reserve(self.now, key, asked.value.len())
        };
        let mut reservation = match reserved {
            Ok(reservation) => reservation,
            Err(Reply::TooLarge) => return self.judge(&asked, &Answer::Done(Reply::TooLarge)),
            Err(other) => return Err(format!("a reservation was answered {other:?}")),
        };
        for piece in asked.value.chunks((usize::from(piece) + 1) * 64) {
            reservation.write(piece);
        }
        if reservation.missing() > 0 {
            return Err(format!("{} bytes are missing", reservation.missing()));
        }
        if let Some(ask) = meanwhile {
            self.batch(std::slice::from_ref(ask))?;
        }
        if dropped {
            return Ok(());
        }
        let Op::Store(store) = asked.op(self.now, asked.cas.1) else {
            return Err("a store is a store".into());
        };
        let store = Store {
            value: b"ignored",
            ..store
        };
        let reply = self.handle.commit(self.now, reservation, &store);
        self.judge(&asked, &Answer::Done(reply))
    }

    fn visit(&mut self, budget: usize) -> Result<(), String> {
        let mut met = Vec::new();
        let mut cursor = Some(Cursor::default());
        let names: Vec<_> = (0..step::KEYS)
            .map(|key| KeyNumber(key as u8).bytes())
            .collect();
        while let Some(from) = cursor {
            let mut note = |visit: nuthatch_engine::Visit<'_>| {
                let key = names.iter().position(|name| name == visit.key);
                met.push((key, visit.item, visit.value.to_vec()));
            };
            cursor = self.handle.visit(self.now, from, budget, &mut note);
        }
        if self.misses == Misses::Never && met.iter().any(|(key, ..)| key.is_none()) {
            return Err("a key was visited that nobody stored".into());
        }
        let known = met.into_iter();
        let known = known.filter_map(|(key, item, value)| Some((key?, item, value)));
        let known: Vec<_> = known.collect();
        self.model.judge_walk(self.now, AnyHandle::COPY_MAX, &known)
    }
}

/// The cas that an operation demands, if it does.
fn named_cas(op: &OpSpec) -> Option<CasSpec> {
    let condition = match op {
        OpSpec::Get | OpSpec::Set(_) => return None,
        OpSpec::Read(read) => {
            let demanded = match read.touch_if {
                TouchIfSpec::Cas(cas) => Some(cas),
                _ => None,
            };
            return read.unless_cas.or(demanded);
        }
        OpSpec::Store(store) => store.condition,
        OpSpec::Remove { condition, .. } | OpSpec::Delta { condition, .. } => *condition,
    };
    match condition {
        ConditionSpec::None => None,
        ConditionSpec::Cas(cas) | ConditionSpec::CasOrStale(cas) => Some(cas),
    }
}

impl ResolvedOp {
    /// The operation, with the cas that it demands in one of the dialects.
    fn op(&self, now: Time, cas: u64) -> Op<'_> {
        let at = |expiry: step::ExpirySpec| expiry.at(now);
        let demand = |condition| match condition {
            ConditionSpec::None => Condition::None,
            ConditionSpec::Cas(_) => Condition::Cas(cas),
            ConditionSpec::CasOrStale(_) => Condition::CasOrStale(cas),
        };
        match &self.spec {
            OpSpec::Get => Op::Get,
            OpSpec::Set(_) => Op::Store(Store::set(&self.value)),
            OpSpec::Read(read) => Op::Read(Read {
                value: read.value,
                details: true,
                touch: read.touch.map(at),
                vivify: read.vivify.map(at),
                recache_below: read.recache_below.map(u32::from),
                unless_cas: read.unless_cas.map(|_| cas),
                touch_if: match read.touch_if {
                    TouchIfSpec::Always => TouchIf::Always,
                    TouchIfSpec::Cas(_) => TouchIf::Cas(cas),
                    TouchIfSpec::Lasting => TouchIf::Lasting,
                    TouchIfSpec::Expiring => TouchIf::Expiring,
                    TouchIfSpec::Prolonged => TouchIf::Prolonged,
                    TouchIfSpec::Shortened => TouchIf::Shortened,
                    TouchIfSpec::ExpiringShortened => TouchIf::ExpiringShortened,
                },
                new_cas: read.new_cas.map(|own| own.cas()),
                may_win: read.may_win,
                bump: read.bump,
                idle: false,
            }),
            OpSpec::Store(store) => Op::Store(Store {
                mode: mode(store.mode),
                value: &self.value,
                flags: store.flags.into(),
                expiry: at(store.expiry),
                condition: demand(store.condition),
                new_cas: store.new_cas.map(|own| own.cas()),
                vivify: store.vivify.map(at),
            }),
            OpSpec::Remove { condition, leave } => Op::Remove(Removal {
                condition: demand(*condition),
                leave: left(*leave, now),
            }),
            OpSpec::Delta {
                down,
                by,
                condition,
                touch,
                vivify,
                new_cas,
            } => Op::Delta(Delta {
                down: *down,
                by: by.number(),
                condition: demand(*condition),
                touch: touch.map(at),
                vivify: vivify.map(|(number, expiry)| (number.number(), at(expiry))),
                new_cas: new_cas.map(|own| own.cas()),
            }),
        }
    }
}

fn mode(mode: ModeSpec) -> StoreMode {
    match mode {
        ModeSpec::Set => StoreMode::Set,
        ModeSpec::Add => StoreMode::Add,
        ModeSpec::Replace => StoreMode::Replace,
        ModeSpec::Append => StoreMode::Append,
        ModeSpec::Prepend => StoreMode::Prepend,
    }
}

fn left(leave: LeaveSpec, now: Time) -> Leave {
    match leave {
        LeaveSpec::Nothing => Leave::Nothing,
        LeaveSpec::Stale { expiry, new_cas } => Leave::Stale {
            expiry: expiry.map(|expiry| expiry.at(now)),
            new_cas: new_cas.map(|own| own.cas()),
        },
        LeaveSpec::Empty {
            stale,
            expiry,
            new_cas,
        } => Leave::Empty {
            stale,
            expiry: expiry.map(|expiry| expiry.at(now)),
            new_cas: new_cas.map(|own| own.cas()),
        },
    }
}
