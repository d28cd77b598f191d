//! Commands of many keys. The keys of MGET join the iteration's batch one by one. The other commands execute in batches
//! of their own, because all their keys have one answer.

use std::mem::MaybeUninit;

use nuthatch_engine::{AnyValue, Item, Op, Read, Removal, Replies, Reply, Request, Store};
use nuthatch_protocol::resp::{Body, Element, Error, Many, element};

use super::phase::{Phase, State};
use super::progress::Progress;
use super::reader::RequestReader;
use super::upload::Upload;
use crate::answers::Style;
use crate::answers::resp::{STORE, Verb, failure};
use crate::counting::{self, Counted, Counts, Kind};
use crate::slice::{Flow, Slice};
use crate::stage::Stage;
use crate::work::Work;

/// Requests of such a batch.
const BATCH: usize = 64;

/// Goes on with the elements that have arrived.
#[inline]
pub fn go_on<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    let State::Many(run) = phase.state else {
        return Flow::Next;
    };
    let mut run = run;
    let flow = if run.verb == Many::Mget {
        get(stage, slice, phase, reader, &mut run)
    } else if run.announced == 1
        && run.verb != Many::Mset
        && let Some(flow) = one(stage, slice, phase, reader, &run)
    {
        flow
    } else {
        several(stage, slice, phase, reader, &mut run)
    };
    match &mut phase.state {
        // In any other state the command is over, waits for a value, or the connection ends.
        State::Many(kept) => *kept = run,
        State::Upload(upload) => upload.belongs_to(run),
        _ => {}
    }
    flow
}

/// MGET: each key is a request of the batch.
#[inline]
fn get<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
    run: &mut Progress,
) -> Flow {
    while run.left > 0 || !run.rest.is_over() {
        if stage.batch_is_full(slice) {
            return Flow::Barrier;
        }
        if !run.rest.is_over() {
            if let Some(flow) = pass(slice, phase, reader, run) {
                return flow;
            }
            continue;
        }
        match element(run.verb, reader.left(), &stage.limits) {
            Element::Item { key, consumed, .. } => {
                let array = std::mem::take(&mut run.announced);
                let style = Verb::Value.behind_array(array, phase.version);
                stage.push(slice, key, Op::Get, Style::Resp(style));
                reader.used += consumed;
            }
            Element::Incomplete(awaited) => {
                slice.awaited = awaited;
                return Flow::Starved;
            }
            _ if slice.in_batch > 0 => return Flow::Barrier,
            // No item can have this key.
            Element::Refused {
                error,
                consumed,
                rest,
            } => {
                stage.count_refusal(&error);
                let mut writer = phase.writer(slice);
                match std::mem::take(&mut run.announced) {
                    0 => {}
                    count => writer.array(count as usize),
                }
                writer.null();
                reader.used += consumed;
                run.rest = rest;
            }
            Element::Broken(error) => return broken(slice, phase, reader, &error),
            Element::Body(_) => unreachable!("keys are not announced"),
        }
        run.left -= 1;
        slice.spend(Work::COMMAND);
    }
    phase.state = State::Requests;
    Flow::Next
}

/// Adds a single key to the iteration's batch, if it is a valid one.
#[inline]
fn one<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
    run: &Progress,
) -> Option<Flow> {
    let Element::Item { key, consumed, .. } = element(run.verb, reader.left(), &stage.limits)
    else {
        return None;
    };
    let verb = match run.verb {
        Many::Del => Verb::Removed,
        _ => Verb::Number,
    };
    let style = Style::Resp(verb.of(phase.version));
    stage.push(slice, key, op(run.verb, b""), style);
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
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
    run: &mut Progress,
) -> Flow {
    if slice.in_batch > 0 {
        return Flow::Barrier;
    }
    if !run.rest.is_over()
        && let Some(flow) = pass(slice, phase, reader, run)
    {
        return flow;
    }
    let mut requests: Vec<Request<'a>> = Vec::with_capacity(BATCH.min(run.left as usize));
    let mut flow = Flow::Next;
    let mut upload = None;
    while run.left > 0 && requests.len() < BATCH {
        match element(run.verb, reader.left(), &stage.limits) {
            Element::Item {
                key,
                value,
                consumed,
            } => {
                requests.push(Request {
                    key: stage.key(key),
                    op: op(run.verb, value),
                });
                reader.used += consumed;
                run.left -= 1;
            }
            Element::Incomplete(awaited) => {
                slice.awaited = awaited;
                flow = Flow::Starved;
                break;
            }
            Element::Body(body) if body.value_len <= slice.terms.awaited_max => {
                slice.awaited = body.awaited;
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
                stage.count_refusal(&error);
                run.failed.get_or_insert(unborrowed(error));
                reader.used += consumed;
                run.rest = rest;
                run.left -= 1;
                break;
            }
            Element::Broken(error) => return broken(slice, phase, reader, &error),
        }
    }
    let count = requests.len();
    slice.spend(Work::of_commands(count));
    execute(stage, run, &requests);
    stage.charge(slice);
    if let Some(body) = upload {
        begin_upload(stage, phase, reader, run, &body);
        return Flow::Next;
    }
    if run.left == 0 && run.rest.is_over() {
        answer(slice, phase, run);
    }
    flow
}

/// Begins with a pair whose value is long.
fn begin_upload(
    stage: &mut Stage<'_, '_>,
    phase: &mut Phase,
    reader: &mut RequestReader<'_>,
    run: &mut Progress,
    body: &Body<'_>,
) {
    match Upload::reserve(stage, reader.left(), body) {
        Ok(upload) => phase.state = State::Upload(Box::new(upload)),
        Err(error) => run.has_refused(error, body.rest.behind(body.value_len)),
    }
    reader.used += body.head;
}

/// The error that refuses an element. None of these errors borrows from the input.
fn unborrowed(error: Error<'_>) -> Error<'static> {
    match error {
        Error::Words(words) => Error::Words(words),
        _ => Error::SYNTAX,
    }
}

fn execute(stage: &mut Stage<'_, '_>, run: &mut Progress, requests: &[Request<'_>]) {
    if requests.is_empty() {
        return;
    }
    let mut tally = Tally {
        run,
        counts: Counts {
            counters: stage.counters,
            prefixes: None,
        },
        requests,
    };
    stage.execute(requests, &mut tally);
}

/// Answers a command whose elements are all done.
fn answer(slice: &mut Slice, phase: &mut Phase, run: &Progress) {
    let mut writer = phase.writer(slice);
    match (run.failed, run.verb) {
        (Some(error), _) => writer.error(&error),
        (None, Many::Mset) => writer.ok(),
        (None, _) => writer.integer(run.tally),
    }
    phase.state = State::Requests;
}

/// Skips the rest of a refused element. `Some` tells how the slice goes on if not all of the rest has arrived.
fn pass(
    slice: &mut Slice,
    phase: &Phase,
    reader: &mut RequestReader<'_>,
    run: &mut Progress,
) -> Option<Flow> {
    match run.rest.pass(reader.left()) {
        Ok(passed) => {
            reader.used += passed;
            (!run.rest.is_over()).then_some(Flow::Starved)
        }
        Err(_) if slice.in_batch > 0 => Some(Flow::Barrier),
        Err(error) => Some(broken(slice, phase, reader, &error)),
    }
}

#[cold]
fn broken(
    slice: &mut Slice,
    phase: &Phase,
    reader: &mut RequestReader<'_>,
    error: &Error<'_>,
) -> Flow {
    phase.writer(slice).error(error);
    slice.closing = true;
    reader.used = reader.input.len();
    Flow::Next
}

/// Takes the outcomes of the requests.
struct Tally<'r> {
    run: &'r mut Progress,
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
        let request = counting::Request::replied(key.bytes(), value_len, &reply);
        self.counts.count(counted(self.run.verb), request);
        match reply {
            Reply::TooLarge | Reply::OutOfMemory => {
                self.run.failed.get_or_insert(failure(&reply));
            }
            Reply::Removed | Reply::Found(_) => self.run.tally += 1,
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
