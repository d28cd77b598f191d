//! MULTI, EXEC, DISCARD, WATCH, UNWATCH. Requests are kept as they came; EXEC carries them out one behind the other,
//! as a pipeline whose answers are one array. What other clients do may come in between, unless keys are watched: then
//! its worker has the engine to itself from the look at them on (see [`super::isolated`]). Nothing is taken back.

use nuthatch_context::isolation::Isolation;
use nuthatch_engine::Expiry;
use nuthatch_protocol::resp::{Command, Error, Queued, Rest, Values, parse_queued};

use super::spot::look;
use super::{Phase, RequestReader, State, isolated, request};
use crate::slice::Slice;
use crate::stage::{Flow, Stage};

/// The part of what all connections' buffers may hold that a transaction may: who sends more than its share is closed when
/// they fill, as anybody is.
const PART_OF_BUFFERS: usize = 2;

/// Keys that a connection may watch.
const WATCHED_MAX: usize = 1024;

/// The requests since MULTI.
#[derive(Default)]
pub struct Transaction {
    requests: Vec<Box<[u8]>>,
    /// Bytes of all of them.
    len: usize,
    /// One of them was refused.
    refused: bool,
}

impl Transaction {
    pub fn memory(&self) -> usize {
        self.len + self.requests.capacity() * size_of::<Box<[u8]>>()
    }
}

/// A key, and what its item was when it was looked at.
pub struct Watched {
    key: Box<[u8]>,
    seen: Option<Seen>,
}

/// What tells that an item is not as it was: its cas follows its value, and only that.
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

/// A request that is being kept.
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

/// Takes the request at the front into the transaction.
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
            reader.used += request::refuse(slice, phase, &refusal);
        }
    }
    slice.commands_left -= 1;
    Flow::Next
}

fn refuse(phase: &mut Phase) {
    if let Some(transaction) = &mut phase.session().transaction {
        transaction.refused = true;
    }
}

/// Keeps more of a request.
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
    collected.request.extend_from_slice(&here[..passed]);
    let (len, rest) = (collected.request.len(), collected.rest);
    let before = match phase.session.as_ref().map(|session| &session.transaction) {
        Some(Some(transaction)) => transaction.memory(),
        _ => 0,
    };
    if before + len > stage.shared.account.bound() / PART_OF_BUFFERS {
        refuse(phase);
        phase.writer(slice).error(&Error::TRANSACTION_TOO_LONG);
        phase.state = State::Drop(rest);
        return Flow::Next;
    }
    if !rest.is_over() {
        return Flow::Starved;
    }
    if let State::Collect(collected) = std::mem::take(&mut phase.state)
        && let Some(transaction) = &mut phase.session().transaction
    {
        transaction.len += len;
        transaction.requests.push(collected.request.into());
        phase.writer(slice).status("QUEUED");
    }
    Flow::Next
}

/// Carries out `command`, if it is one of these.
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

/// Ends a transaction, and forgets what was watched for it.
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
    for key in keys {
        match key.len() {
            0 => return Err(Error::KEY_EMPTY),
            1..=nuthatch_engine::request::KEY_LEN_MAX => {}
            _ => return Err(Error::KEY_TOO_LONG),
        }
        let seen = seen(stage, key);
        let watched = &mut phase.session().watched;
        // What was seen first counts.
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
    // What is written was read before: between this look and the writing nobody else's may come.
    let isolation =
        (!watched.is_empty()).then(|| Isolation::wait(&stage.shared.inboxes, &stage.inbox.lock));
    let changed = watched
        .iter()
        .any(|watched| seen(stage, &watched.key) != watched.seen);
    if changed {
        return phase.writer(slice).null_array();
    }
    phase.writer(slice).array(transaction.requests.len());
    let session = phase.session();
    for request in transaction.requests {
        session.keep(request);
    }
    if isolation.is_some() {
        isolated::carry_out(stage, slice, phase);
    }
}
