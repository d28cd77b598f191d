//! Takes the request at the front of the input. Commands about one key become requests of the batch.

use nuthatch_engine::{Expiry, Op, Read, Store, StoreMode, TouchIf};
use nuthatch_protocol::resp::{Command, ExpiryForm, Lifetime, Parsed, parse};

use super::phase::{Phase, State};
use super::progress::Progress;
use super::reader::{RequestReader, refused_tls};
use super::refusal::{refuse, typed};
use super::upload::Upload;
use super::{edit, manage, multi, set, spot, values};
use crate::answers::Style;
use crate::answers::resp::Verb;
use crate::expiry::resp as expiry;
use crate::slice::{Flow, Slice};
use crate::stage::Stage;
use crate::work::Work;

/// Takes the request at the front. During a transaction, only those come here that are executed at once.
#[inline]
pub fn take<'a>(
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
            phase.state = State::Many(Progress::new(verb, arguments));
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
            match Upload::reserve(stage, reader.left(), &body) {
                Ok(upload) => phase.state = State::Upload(Box::new(upload)),
                Err(error) => {
                    phase.writer(slice).error(&error);
                    phase.state = State::Drop(body.rest.behind(body.value_len));
                }
            }
            stage.charge(slice);
            body.head
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
        Command::Set(set) => match set::store(stage, &set) {
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
        Command::StrLen { key } => (key, look(true), Verb::Length),
        Command::Type { key } => (key, look(false), Verb::Type),
        Command::Ttl {
            key,
            form:
                ExpiryForm {
                    absolute: false,
                    millis,
                },
        } => (key, look(false), Verb::Life { millis }),
        Command::Expire { key, moment, which } => {
            let expiry = stage.expiry_at(moment);
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
        Command::GetEx { key, lifetime } => {
            let read = Read {
                touch: match lifetime {
                    Lifetime::Keep => None,
                    Lifetime::Forever => Some(Expiry::Never),
                    Lifetime::Until(moment) => Some(stage.expiry_at(moment)),
                },
                ..Read::default()
            };
            (key, Op::Read(read), Verb::Value)
        }
        _ => return false,
    };
    stage.push(slice, key, op, Style::Resp(verb.of(phase.version)));
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

/// Executes a command that is not for the batch. All earlier requests of its connection have been answered.
fn on_the_spot(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    command: Command<'_>,
) {
    if !values::command(stage, slice, phase, &command)
        && !multi::command(stage, slice, phase, &command)
    {
        manage::command(stage, slice, phase, command);
    }
}
