//! Commands of many keys. The keys of MGET join the iteration's batch one by one. The other commands execute in batches
//! of their own, because all their keys have one answer.

use std::mem::MaybeUninit;

use nuthatch_commands::answers::ReplyFormat;
use nuthatch_commands::answers::resp::{STORE, Verb, failure};
use nuthatch_commands::context::Context;
use nuthatch_commands::counting::{self, Counted, Counts, Kind};
use nuthatch_commands::turn::{Flow, Turn};
use nuthatch_commands::work::Work;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{AnyValue, Item, Op, Read, Removal, Replies, Reply, Request, Store};
use nuthatch_resp::{Body, Element, Error, Many, element};

use crate::phase::{Phase, State};
use crate::progress::Progress;
use crate::reader::RequestReader;
use crate::upload::Upload;

/// Requests of such a batch.
const BATCH: usize = 64;

/// Goes on with the elements that have arrived.
#[inline]
pub fn go_on<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    let State::Many(progress) = phase.state else {
        return Flow::Next;
    };
    let mut progress = progress;
    let flow = if progress.verb == Many::Mget {
        get(cx, turn, phase, reader, &mut progress)
    } else if progress.announced == 1
        && progress.verb != Many::Mset
        && let Some(flow) = one(cx, turn, phase, reader, &progress)
    {
        flow
    } else {
        several(cx, turn, phase, reader, &mut progress)
    };
    match &mut phase.state {
        // In any other state the command is over, waits for a value, or the connection ends.
        State::Many(kept) => *kept = progress,
        State::Upload(upload) => upload.belongs_to(progress),
        _ => {}
    }
    flow
}

/// MGET: each key is a request of the batch.
#[inline]
fn get<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
    progress: &mut Progress,
) -> Flow {
    while progress.left > 0 || !progress.rest.is_over() {
        if cx.batch_is_full(turn) {
            return Flow::Barrier;
        }
        if !progress.rest.is_over() {
            if let Some(flow) = pass(turn, phase, reader, progress) {
                return flow;
            }
            continue;
        }
        match element(progress.verb, reader.left(), &cx.limits) {
            Element::Item { key, consumed, .. } => {
                let array = std::mem::take(&mut progress.announced);
                let format = Verb::Value.behind_array(array, phase.version);
                cx.push(turn, key, Op::Get, ReplyFormat::Resp(format));
                reader.used += consumed;
            }
            Element::Incomplete(awaited) => {
                turn.awaited = awaited;
                return Flow::Starved;
            }
            _ if turn.in_batch > 0 => return Flow::Barrier,
            // No item can have this key.
            Element::Refused {
                error,
                consumed,
                rest,
            } => {
                cx.count_refusal(&error);
                let mut writer = phase.writer(turn);
                match std::mem::take(&mut progress.announced) {
                    0 => {}
                    count => writer.array(count as usize),
                }
                writer.null();
                reader.used += consumed;
                progress.rest = rest;
            }
            Element::Broken(error) => return broken(turn, phase, reader, &error),
            Element::Body(_) => unreachable!("keys are not announced"),
        }
        progress.left -= 1;
        turn.spend(Work::COMMAND);
    }
    phase.state = State::Requests;
    Flow::Next
}

/// Adds a single key to the iteration's batch, if it is a valid one.
#[inline]
fn one<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
    progress: &Progress,
) -> Option<Flow> {
    let Element::Item { key, consumed, .. } = element(progress.verb, reader.left(), &cx.limits)
    else {
        return None;
    };
    let verb = match progress.verb {
        Many::Del => Verb::Removed,
        _ => Verb::Number,
    };
    let format = ReplyFormat::Resp(verb.of(phase.version));
    cx.push(turn, key, op(progress.verb, b""), format);
    reader.used += consumed;
    phase.state = State::Requests;
    Some(Flow::Next)
}

fn op(verb: Many, value: &[u8]) -> Op<'_> {
    match verb {
        Many::Mset => Op::Store(Store::set(value)),
        Many::Del => Op::Remove(Removal::default()),
        verb => Op::Read(Read {
            value: false,
            bump: verb == Many::Touch,
            ..Read::default()
        }),
    }
}

/// All other commands: all elements that have arrived go to the engine together.
fn several<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
    progress: &mut Progress,
) -> Flow {
    if turn.in_batch > 0 {
        return Flow::Barrier;
    }
    if !progress.rest.is_over()
        && let Some(flow) = pass(turn, phase, reader, progress)
    {
        return flow;
    }
    let mut requests: Vec<Request<'a>> = Vec::with_capacity(BATCH.min(progress.left as usize));
    let mut flow = Flow::Next;
    let mut upload = None;
    while progress.left > 0 && requests.len() < BATCH {
        match element(progress.verb, reader.left(), &cx.limits) {
            Element::Item {
                key,
                value,
                consumed,
            } => {
                requests.push(Request {
                    key: cx.key(key),
                    op: op(progress.verb, value),
                });
                reader.used += consumed;
                progress.left -= 1;
            }
            Element::Incomplete(awaited) => {
                turn.awaited = awaited;
                flow = Flow::Starved;
                break;
            }
            Element::Body(body) if body.value_len <= turn.limits.awaited_max => {
                turn.awaited = body.awaited;
                flow = Flow::Starved;
                break;
            }
            Element::Body(body) => {
                upload = Some(body);
                break;
            }
            Element::Refused {
                error,
                consumed,
                rest,
            } => {
                cx.count_refusal(&error);
                progress.failed.get_or_insert(unborrowed(error));
                reader.used += consumed;
                progress.rest = rest;
                progress.left -= 1;
                break;
            }
            Element::Broken(error) => return broken(turn, phase, reader, &error),
        }
    }
    let count = requests.len();
    turn.spend(Work::of_commands(count));
    execute(cx, progress, &requests);
    cx.charge(turn);
    if let Some(body) = upload {
        begin_upload(cx, phase, reader, progress, &body);
        return Flow::Next;
    }
    if progress.left == 0 && progress.rest.is_over() {
        answer(turn, phase, progress);
    }
    flow
}

/// Begins with a pair whose value is long.
fn begin_upload(
    cx: &mut Context<'_, '_>,
    phase: &mut Phase,
    reader: &mut RequestReader<'_>,
    progress: &mut Progress,
    body: &Body<'_>,
) {
    match Upload::reserve(cx, reader.left(), body) {
        Ok(upload) => phase.state = State::Upload(Box::new(upload)),
        Err(error) => progress.has_refused(error, body.rest.behind(body.value_len)),
    }
    reader.used += body.head;
}

/// The error that refuses an element. None of these errors borrows from the input.
fn unborrowed(error: Error<'_>) -> Error<'static> {
    match error {
        Error::Words(words) => Error::Words(words),
        Error::KeyTooLong(max) => Error::KeyTooLong(max),
        _ => Error::SYNTAX,
    }
}

fn execute(cx: &mut Context<'_, '_>, progress: &mut Progress, requests: &[Request<'_>]) {
    if requests.is_empty() {
        return;
    }
    let mut tally = Tally {
        progress,
        counts: Counts {
            counters: cx.counters,
            prefixes: None,
        },
        requests,
    };
    cx.execute(requests, &mut tally);
}

/// Answers a command whose elements are all done.
fn answer(turn: &mut Turn, phase: &mut Phase, progress: &Progress) {
    let mut writer = phase.writer(turn);
    match (progress.failed, progress.verb) {
        (Some(error), _) => writer.error(&error),
        (None, Many::Mset) => writer.ok(),
        (None, _) => writer.integer(progress.tally),
    }
    phase.state = State::Requests;
}

/// Skips the rest of a refused element. `Some` tells how the turn goes on if not all of the rest has arrived.
fn pass(
    turn: &mut Turn,
    phase: &Phase,
    reader: &mut RequestReader<'_>,
    progress: &mut Progress,
) -> Option<Flow> {
    match progress.rest.pass(reader.left()) {
        Ok(passed) => {
            reader.used += passed;
            (!progress.rest.is_over()).then_some(Flow::Starved)
        }
        Err(_) if turn.in_batch > 0 => Some(Flow::Barrier),
        Err(error) => Some(broken(turn, phase, reader, &error)),
    }
}

#[cold]
fn broken(
    turn: &mut Turn,
    phase: &Phase,
    reader: &mut RequestReader<'_>,
    error: &Error<'_>,
) -> Flow {
    phase.writer(turn).error(error);
    turn.closing = true;
    reader.used = reader.input.len();
    Flow::Next
}

/// Takes the outcomes of the requests.
struct Tally<'r> {
    progress: &'r mut Progress,
    counts: Counts<'r>,
    requests: &'r [Request<'r>],
}

impl Replies<AnyValue> for Tally<'_> {
    fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
        unreachable!("no value was asked for")
    }

    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, _: AnyValue) {}

    fn done(&mut self, index: usize, reply: Reply) {
        let Request { key, op } = &self.requests[index];
        let value_len = match op {
            Op::Store(store) => store.value.len(),
            _ => 0,
        };
        let (_, name) = Namespace::split(key.bytes());
        let request = counting::Request::replied(name, value_len, &reply);
        self.counts.count(counted(self.progress.verb), request);
        match reply {
            reply if reply.is_failure() => {
                self.progress.failed.get_or_insert(failure(&reply));
            }
            Reply::Removed | Reply::Found(_) => self.progress.tally += 1,
            _ => {}
        }
    }
}

/// What each request of a command is in the statistics.
fn counted(verb: Many) -> Counted {
    Counted::only(match verb {
        Many::Mget => Kind::Get,
        Many::Mset => STORE,
        Many::Del => Kind::Delete,
        Many::Exists => Kind::Look,
        Many::Touch => Kind::Touch,
    })
}
