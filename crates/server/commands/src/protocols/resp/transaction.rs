//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH. Requests are queued as they arrive. EXEC executes them one after
//! the other, like a pipeline, and their answers are one array. Other clients' requests may come in between, unless
//! keys are watched: then the worker has the engine to itself from the check of these keys on (see
//! [`super::isolated`]). There is no rollback.

use nuthatch_base::memory::reserve::spare;
use nuthatch_engine::Expiry;
use nuthatch_protocol::resp::{Command, Error, Queued, Rest, Values, parse_queued};
use nuthatch_state::isolation::Isolation;

use super::queue::Queue;
use super::spot::look;
use super::{Phase, RequestReader, State, isolated, request};
use crate::slice::Slice;
use crate::stage::{Flow, Stage};
use crate::work::Work;

/// A transaction may hold one part in this many of the bound on all connections' buffers. A connection that holds more
/// than its share is closed when the buffers fill, like any other.
const PART_OF_BUFFERS: usize = 2;

/// Keys that a connection may watch.
const WATCHED_MAX: usize = 1024;

/// The requests since MULTI.
#[derive(Default)]
pub struct Transaction {
    requests: Queue,
    /// True if one of the requests was refused.
    refused: bool,
}

impl Transaction {
    pub fn memory(&self) -> usize {
        self.requests.memory()
    }
}

/// A watched key, and the state of its item when WATCH looked at it.
pub struct Watched {
    key: Box<[u8]>,
    seen: Option<Seen>,
}

/// The state by which a change of an item is detected. The cas changes with the value only, so the expiry is compared
/// too.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    cas: u64,
    expiry: Expiry,
}

fn seen(stage: &mut Stage<'_, '_>, key: &[u8]) -> Option<Seen> {
    look(stage, key).map(|item| Seen {
        cas: item.cas,
        expiry: item.expiry,
    })
}

impl Watched {
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.key.len()
    }
}

/// A request that arrives and is to be queued.
pub struct Collected {
    request: Vec<u8>,
    rest: Rest,
}

impl Collected {
    pub fn memory(&self) -> usize {
        self.request.capacity()
    }
}

/// True between MULTI and EXEC.
#[inline]
pub fn is_open(phase: &Phase) -> bool {
    let session = phase.session.as_ref();
    session.is_some_and(|session| session.transaction.is_some())
}

/// Adds the request at the front to the transaction.
#[cold]
pub fn take<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    if slice.in_batch > 0 {
        return Flow::Barrier;
    }
    let input = reader.left();
    match parse_queued(input) {
        Queued::AtOnce => return request::understand(stage, slice, phase, reader),
        Queued::Incomplete(awaited) => {
            slice.awaited = awaited;
            return Flow::Starved;
        }
        Queued::Nothing { consumed } => reader.used += consumed,
        Queued::Inline { line, consumed } => {
            reader.used += consumed;
            request::typed(slice, phase, line);
        }
        Queued::Queue { head, rest } => {
            reader.used += head;
            phase.state = State::Collect(Box::new(Collected {
                request: input[..head].to_vec(),
                rest,
            }));
        }
        Queued::Refused(refusal) => {
            refuse(phase);
            reader.used += request::refuse(stage, slice, phase, &refusal);
        }
    }
    slice.spend(Work::COMMAND);
    Flow::Next
}

/// Refuses a request of which this rest is still to come, and with it the transaction.
#[cold]
fn refuse_rest(slice: &mut Slice, phase: &mut Phase, rest: Rest, error: &Error<'_>) -> Flow {
    refuse(phase);
    phase.writer(slice).error(error);
    phase.state = State::Drop(rest);
    Flow::Next
}

fn refuse(phase: &mut Phase) {
    if let Some(transaction) = &mut phase.session().transaction {
        transaction.refused = true;
    }
}

/// Collects more bytes of a request.
pub fn collect(
    stage: &Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'_>,
) -> Flow {
    let State::Collect(collected) = &mut phase.state else {
        return Flow::Next;
    };
    let here = reader.left();
    let passed = match collected.rest.pass(here) {
        Ok(passed) => passed,
        Err(error) => {
            phase.writer(slice).error(&error);
            slice.closing = true;
            return Flow::Next;
        }
    };
    reader.used += passed;
    let rest = collected.rest;
    if spare(|| collected.request.try_reserve(passed)).is_err() {
        return refuse_rest(slice, phase, rest, &Error::OUT_OF_MEMORY);
    }
    collected.request.extend_from_slice(&here[..passed]);
    let len = collected.request.len();
    let before = match phase.session.as_ref().map(|session| &session.transaction) {
        Some(Some(transaction)) => transaction.memory(),
        _ => 0,
    };
    if before + len > stage.shared.account.bound() / PART_OF_BUFFERS {
        return refuse_rest(slice, phase, rest, &Error::TRANSACTION_TOO_LONG);
    }
    if !rest.is_over() {
        return Flow::Starved;
    }
    if let State::Collect(collected) = std::mem::take(&mut phase.state)
        && let Some(transaction) = &mut phase.session().transaction
    {
        if transaction.requests.push(&collected.request).is_err() {
            return refuse_rest(slice, phase, rest, &Error::OUT_OF_MEMORY);
        }
        slice.spend(Work::of_bytes(len));
        phase.writer(slice).status("QUEUED");
    }
    Flow::Next
}

/// Executes `command`, if it is one of these. False if it is not.
pub fn command(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    command: &Command<'_>,
) -> bool {
    let outcome = match command {
        Command::Multi if is_open(phase) => Err(Error::NESTED),
        Command::Multi => {
            phase.session().transaction = Some(Transaction::default());
            Ok(())
        }
        Command::Discard if is_open(phase) => {
            forget(phase);
            Ok(())
        }
        Command::Discard => Err(Error::DISCARD_WITHOUT_MULTI),
        Command::Watch(_) if is_open(phase) => Err(Error::WATCH_INSIDE),
        Command::Watch(keys) => watch(stage, phase, *keys),
        Command::Unwatch => {
            if let Some(session) = &mut phase.session {
                session.watched.clear();
            }
            Ok(())
        }
        Command::Exec => {
            exec(stage, slice, phase);
            return true;
        }
        _ => return false,
    };
    let mut writer = phase.writer(slice);
    match outcome {
        Ok(()) => writer.ok(),
        Err(error) => writer.error(&error),
    }
    true
}

/// Ends a transaction, and forgets its watched keys.
pub fn forget(phase: &mut Phase) {
    if let Some(session) = &mut phase.session {
        session.transaction = None;
        session.watched = Vec::new();
    }
}

fn watch(
    stage: &mut Stage<'_, '_>,
    phase: &mut Phase,
    keys: Values<'_>,
) -> Result<(), Error<'static>> {
    if phase.session().watched.len() + keys.len() > WATCHED_MAX {
        return Err(Error::WATCHES_TOO_MANY);
    }
    stage.work.add(Work::of_commands(keys.len()));
    for key in keys {
        match key.len() {
            0 => return Err(Error::KEY_EMPTY),
            1..=nuthatch_engine::request::KEY_LEN_MAX => {}
            _ => {
                request::count_refusal(stage, Error::KEY_TOO_LONG);
                return Err(Error::KEY_TOO_LONG);
            }
        }
        let seen = seen(stage, key);
        let watched = &mut phase.session().watched;
        // The first state seen of a key counts.
        if watched.iter().all(|watched| *watched.key != *key) {
            watched.push(Watched {
                key: key.into(),
                seen,
            });
        }
    }
    Ok(())
}

fn exec(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase) {
    let Some(transaction) = phase.session().transaction.take() else {
        return phase.writer(slice).error(&Error::EXEC_WITHOUT_MULTI);
    };
    let watched = std::mem::take(&mut phase.session().watched);
    if transaction.refused {
        return phase.writer(slice).error(&Error::ABORTED);
    }
    // The client bases its writes on what it has read: no other client's write may come between this check and the
    // writes.
    let isolation =
        (!watched.is_empty()).then(|| Isolation::wait(&stage.shared.workers, &stage.worker.lock));
    let changed = watched
        .iter()
        .any(|watched| seen(stage, &watched.key) != watched.seen);
    if changed {
        return phase.writer(slice).null_array();
    }
    phase.writer(slice).array(transaction.requests.len());
    // No other request is queued: one that was typed by hand is taken out of the queue while it is executed.
    debug_assert!(!phase.session().has_replay());
    phase.session().replay = transaction.requests;
    if isolation.is_some() {
        isolated::carry_out(stage, slice, phase);
    }
}
