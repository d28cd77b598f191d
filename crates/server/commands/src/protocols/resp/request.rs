//! Takes the request at the front of the input. Commands about one key become requests of the batch.

use nuthatch_base::memory::reserve::spare;
use nuthatch_engine::{Expiry, Op, Read, Store, StoreMode, TouchIf};
use nuthatch_protocol::resp::{
    Command, Error, ExpiryForm, Lifetime, Parsed, Refusal, Set, SetAnswer, StoreCondition, parse,
    rewrite, rewritten_max,
};

use super::answers::Verb;
use super::{
    Phase, RequestReader, State, edit, expiry, manage, many, refused_tls, spot, transaction,
    upload, values,
};
use crate::slice::Slice;
use crate::stage::{Flow, Stage};
use crate::work::Work;

/// Takes the request at the front.
#[inline]
pub fn take<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    let input = reader.left();
    if input.is_empty() {
        return Flow::Starved;
    }
    if transaction::is_open(phase) {
        return transaction::take(stage, slice, phase, reader);
    }
    understand(stage, slice, phase, reader)
}

/// Takes the request at the front and executes it now, also during a transaction.
#[inline]
pub fn understand<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    let consumed = match parse(reader.left(), &stage.limits) {
        Parsed::Command { command, consumed } => {
            if !joins(stage, slice, phase, command) {
                if slice.in_batch > 0 {
                    return Flow::Barrier;
                }
                let before = slice.output.end();
                on_the_spot(stage, slice, phase, command);
                stage.charge(slice);
                // CLIENT REPLY ON cuts off what was before it.
                let written = slice.output.end().saturating_sub(before);
                slice.spend(Work::of_bytes(written));
            }
            stage.counters.redis_commands.bump();
            consumed
        }
        Parsed::Incomplete(_) if slice.in_batch == 0 && refused_tls(slice, reader) => {
            return Flow::Next;
        }
        Parsed::Incomplete(awaited) => {
            slice.awaited = awaited;
            return Flow::Starved;
        }
        Parsed::Many {
            verb,
            arguments,
            consumed,
        } => {
            phase.state = State::Many(many::Run::new(verb, arguments));
            stage.counters.redis_commands.bump();
            consumed
        }
        Parsed::Body(body) if body.value_len <= slice.terms.awaited_max => {
            slice.awaited = body.awaited;
            return Flow::Starved;
        }
        Parsed::Nothing { consumed } => consumed,
        _ if slice.in_batch > 0 => return Flow::Barrier,
        Parsed::Body(body) => {
            stage.counters.redis_commands.bump();
            let consumed = upload::begin(stage, slice, phase, reader.left(), &body);
            stage.charge(slice);
            consumed
        }
        Parsed::Inline { .. } if refused_tls(slice, reader) => return Flow::Next,
        Parsed::Inline { line, consumed } => {
            if !typed(slice, phase, line) {
                reader.used = reader.input.len();
                return Flow::Next;
            }
            consumed
        }
        Parsed::Refused(refusal) => refuse(stage, slice, phase, &refusal),
    };
    reader.used += consumed;
    slice.spend(Work::COMMAND);
    Flow::Next
}

/// Refuses a request, and returns how many bytes of it are used up.
#[cold]
pub fn refuse(
    stage: &Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    refusal: &Refusal<'_>,
) -> usize {
    count_refusal(stage, refusal.error);
    // A browser that another site's page directs to this port sends these: nothing that it sends is executed.
    if let Error::Unknown { name, .. } = refusal.error
        && (name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:"))
    {
        slice.closing = true;
        return refusal.consumed;
    }
    if refusal.error == Error::Arity("exec") {
        transaction::forget(phase);
    }
    phase.writer(slice).error(&refusal.error);
    slice.closing |= refusal.close;
    if !refusal.rest.is_over() {
        phase.state = State::Drop(refusal.rest);
    }
    refusal.consumed
}

/// Counts a request that no item can fulfil. Frameworks swallow such an error: then this count alone shows it.
pub fn count_refusal(stage: &Stage<'_, '_>, error: Error<'_>) {
    if error == Error::KEY_TOO_LONG {
        stage.counters.key_too_long.bump();
    } else if error == Error::TOO_LARGE {
        stage.counters.store_too_large.bump();
    }
}

/// Queues a line that was typed by hand as a request. False if it is no request.
#[cold]
pub fn typed(slice: &mut Slice, phase: &mut Phase, line: &[u8]) -> bool {
    match queue_line(phase, line) {
        Ok(()) => true,
        Err(error) => {
            phase.writer(slice).error(&error);
            slice.closing = true;
            false
        }
    }
}

fn queue_line(phase: &mut Phase, line: &[u8]) -> Result<(), Error<'static>> {
    let no_memory = |_| Error::OUT_OF_MEMORY;
    let mut request = Vec::new();
    spare(|| request.try_reserve(rewritten_max(line.len()))).map_err(no_memory)?;
    rewrite(line, &mut request)?;
    let replay = &mut phase.session().replay;
    replay.push(&request).map_err(no_memory)
}

/// Adds a command to the batch, if one request of the batch can execute it.
#[inline]
fn joins<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &Phase,
    command: Command<'a>,
) -> bool {
    let (key, op, verb) = match command {
        Command::Get { key } => (key, Op::Get, Verb::Value),
        Command::Set(set) => match store(stage, &set) {
            Some((store, verb)) => (set.key, Op::Store(store), verb),
            None => return false,
        },
        Command::Append { key, value } => {
            let store = Store {
                mode: StoreMode::Append,
                vivify: Some(Expiry::Never),
                ..Store::set(value)
            };
            let old_len = stage.old_len(key);
            if old_len > edit::LONG {
                return false;
            }
            slice.spend(Work::of_bytes(old_len));
            (key, Op::Store(store), Verb::Length)
        }
        Command::Length { key } => (key, look(true), Verb::Length),
        Command::Type { key } => (key, look(false), Verb::Type),
        Command::Expiry {
            key,
            told:
                ExpiryForm {
                    absolute: false,
                    millis,
                },
        } => (key, look(false), Verb::Life { millis }),
        Command::Expire { key, moment, which } => {
            let expiry = expiry::expiry(moment, stage.present(), &stage.shared.clock);
            (
                key,
                spot::touch(expiry, expiry::condition(which)),
                Verb::Number,
            )
        }
        Command::Persist { key } => {
            let touch = spot::touch(Expiry::Never, TouchIf::Expiring);
            (key, touch, Verb::Number)
        }
        Command::GetExpire { key, lifetime } => {
            let read = Read {
                touch: match lifetime {
                    Lifetime::Keep => None,
                    Lifetime::Forever => Some(Expiry::Never),
                    Lifetime::Until(moment) => {
                        Some(expiry::expiry(moment, stage.present(), &stage.shared.clock))
                    }
                },
                ..Read::default()
            };
            (key, Op::Read(read), Verb::Value)
        }
        _ => return false,
    };
    stage.push(slice, key, op, verb.of(phase.version));
    true
}

/// A read without the value.
fn look<'a>(bump: bool) -> Op<'a> {
    Op::Read(Read {
        value: false,
        bump,
        ..Read::default()
    })
}

/// The engine's operation for a SET, if one request is enough.
#[inline]
pub fn store<'a>(stage: &Stage<'_, '_>, set: &Set<'a>) -> Option<(Store<'a>, Verb)> {
    let mut store = Store::set(set.value);
    match set.lifetime {
        Lifetime::Forever => {}
        Lifetime::Until(moment) => {
            store.expiry = expiry::expiry(moment, stage.present(), &stage.shared.clock);
        }
        Lifetime::Keep => return None,
    }
    store.mode = match set.when {
        StoreCondition::Always => StoreMode::Set,
        StoreCondition::Absent => StoreMode::Add,
        StoreCondition::Present => StoreMode::Replace,
    };
    let verb = match set.answer {
        SetAnswer::Status => Verb::Status,
        SetAnswer::Number => Verb::Number,
        SetAnswer::Old => return None,
    };
    Some((store, verb))
}

/// Executes a command that is not for the batch. All earlier requests of its connection have been answered.
fn on_the_spot(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    command: Command<'_>,
) {
    if !values::command(stage, slice, phase, &command)
        && !transaction::command(stage, slice, phase, &command)
    {
        manage::command(stage, slice, phase, command);
    }
}
