//! Takes the request at the front of the input. Commands about one key become requests of the batch.

use nuthatch_commands::answers::ReplyFormat;
use nuthatch_commands::answers::resp::Verb;
use nuthatch_commands::context::Context;
use nuthatch_commands::expiry::resp as expiry;
use nuthatch_commands::turn::{Flow, Turn};
use nuthatch_commands::work::Work;
use nuthatch_engine::{Expiry, Op, Read, Store, StoreMode, TouchIf};
use nuthatch_resp::{
    Command, Error, ExpiryForm, Lifetime, Parsed, Rest, ServerCommand, TransactionCommand,
    ValueCommand, parse,
};

use crate::phase::{Phase, State};
use crate::progress::Progress;
use crate::reader::{RequestReader, refused_tls};
use crate::refusal::{refuse, typed};
use crate::upload::Upload;
use crate::{edit, manage, multi, set, spot, values};

/// Takes the request at the front. During a transaction, only those come here that are executed at once.
#[inline]
pub fn take<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    let consumed = match parse(reader.left(), &cx.limits) {
        Parsed::Command { command, consumed } => {
            match plan(cx, turn, command) {
                Plan::Batch(key, op, verb) => {
                    cx.push(turn, key, op, ReplyFormat::Resp(verb.of(phase.version)));
                }
                Plan::AtOnce(_) if turn.in_batch > 0 => return Flow::Barrier,
                Plan::AtOnce(command) => execute(cx, turn, phase, reader.left(), command),
            }
            cx.counters.redis_commands.bump();
            consumed
        }
        Parsed::Incomplete(_) if turn.in_batch == 0 && refused_tls(turn, reader) => {
            return Flow::Next;
        }
        Parsed::Incomplete(awaited) => {
            turn.awaited = awaited;
            return Flow::Starved;
        }
        Parsed::Many {
            verb,
            arguments,
            consumed,
        } => {
            if !begins_many(cx, turn, phase, Progress::new(verb, arguments), arguments) {
                return Flow::Barrier;
            }
            cx.counters.redis_commands.bump();
            consumed
        }
        Parsed::Body(body) if body.value_len <= turn.limits.awaited_max => {
            turn.awaited = body.awaited;
            return Flow::Starved;
        }
        Parsed::Nothing { consumed } => reader.pass_nothing(consumed),
        _ if turn.in_batch > 0 => return Flow::Barrier,
        Parsed::Body(body) => {
            cx.counters.redis_commands.bump();
            match Upload::reserve(cx, reader.left(), &body) {
                Ok(upload) => phase.state = State::Upload(Box::new(upload)),
                Err(error) => {
                    phase.writer(turn).error(&error);
                    phase.state = State::Drop(body.rest.behind(body.value_len));
                }
            }
            cx.charge(turn);
            body.head
        }
        Parsed::Inline { .. } if refused_tls(turn, reader) => return Flow::Next,
        Parsed::Inline { line, consumed } => {
            if !typed(turn, phase, line) {
                reader.used = reader.input.len();
                return Flow::Next;
            }
            consumed
        }
        Parsed::Refused(refusal) => refuse(cx, turn, phase, &refusal),
    };
    turn.last_request = Some(turn.position);
    reader.used += consumed;
    turn.spend(Work::COMMAND);
    Flow::Next
}

/// Begins a command of many keys, or answers it BUSY: once begun it waits. False if the batch is to be executed first.
#[inline]
fn begins_many(
    cx: &Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    progress: Progress,
    arguments: u32,
) -> bool {
    let may_wait = cx.shared.config.lua && cx.shared.scripting.running.is_there();
    if may_wait && turn.in_batch > 0 {
        return false;
    }
    phase.state = match may_wait && cx.is_script_in_the_way() {
        false => State::Many(progress),
        true => {
            phase.writer(turn).error(&Error::SCRIPT_BUSY);
            State::Drop(Rest::of(arguments))
        }
    };
    true
}

/// How a command is executed.
enum Plan<'a> {
    /// By a request of the batch, which is answered like this.
    Batch(&'a [u8], Op<'a>, Verb),
    /// At once.
    AtOnce(AtOnce<'a>),
}

/// A command that is executed at once.
enum AtOnce<'a> {
    Value(values::AtOnce<'a>),
    Transaction(TransactionCommand<'a>),
    Server(ServerCommand<'a>),
}

#[inline]
fn plan<'a>(cx: &mut Context<'_, 'a>, turn: &mut Turn, command: Command<'a>) -> Plan<'a> {
    match command {
        Command::Value(command) => plan_of_value(cx, turn, command),
        Command::Transaction(command) => Plan::AtOnce(AtOnce::Transaction(command)),
        Command::Server(command) => Plan::AtOnce(AtOnce::Server(command)),
    }
}

/// One request of the batch is enough for many commands about values.
#[inline]
fn plan_of_value<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    command: ValueCommand<'a>,
) -> Plan<'a> {
    let at_once = |command| Plan::AtOnce(AtOnce::Value(command));
    match command {
        ValueCommand::Get { key } => Plan::Batch(key, Op::Get, Verb::Value),
        ValueCommand::Set(set) => match set::store(cx, &set) {
            Some((store, verb)) => Plan::Batch(set.key, Op::Store(store), verb),
            None => at_once(values::AtOnce::Set(set)),
        },
        ValueCommand::Append { key, value } => match append(cx, turn, key, value) {
            Some(store) => Plan::Batch(key, Op::Store(store), Verb::Length),
            None => at_once(values::AtOnce::Append { key, value }),
        },
        ValueCommand::StrLen { key } => Plan::Batch(key, look(true), Verb::Length),
        ValueCommand::Type { key } => Plan::Batch(key, look(false), Verb::Type),
        ValueCommand::Ttl {
            key,
            form:
                ExpiryForm {
                    absolute: false,
                    millis,
                },
        } => Plan::Batch(key, look(false), Verb::Life { millis }),
        ValueCommand::Ttl { key, form } => at_once(values::AtOnce::ExpireTime { key, form }),
        command @ (ValueCommand::SetAll(_)
        | ValueCommand::DelIf { .. }
        | ValueCommand::Digest { .. }
        | ValueCommand::Rename { .. }
        | ValueCommand::Copy(_)
        | ValueCommand::Dump { .. }
        | ValueCommand::Restore(_)
        | ValueCommand::Move { .. }) => at_once(values::AtOnce::Keyed(command)),
        ValueCommand::GetDel { key } => at_once(values::AtOnce::GetDel { key }),
        ValueCommand::GetRange { key, start, end } => {
            at_once(values::AtOnce::GetRange { key, start, end })
        }
        ValueCommand::SetRange { key, offset, value } => {
            at_once(values::AtOnce::SetRange { key, offset, value })
        }
        ValueCommand::IncrBy { key, by } => at_once(values::AtOnce::IncrBy { key, by }),
        ValueCommand::IncrByFloat { key, by } => at_once(values::AtOnce::IncrByFloat { key, by }),
        ValueCommand::Eval(eval) => at_once(values::AtOnce::Eval(eval)),
        ValueCommand::Expire { key, moment, which } => {
            let touch = spot::touch(cx.expiry_at(moment), expiry::condition(which));
            Plan::Batch(key, touch, Verb::Number)
        }
        ValueCommand::Persist { key } => {
            let touch = spot::touch(Expiry::Never, TouchIf::Expiring);
            Plan::Batch(key, touch, Verb::Number)
        }
        ValueCommand::GetEx { key, lifetime } => {
            let read = Read {
                touch: match lifetime {
                    Lifetime::Keep => None,
                    Lifetime::Forever => Some(Expiry::Never),
                    Lifetime::Until(moment) => Some(cx.expiry_at(moment)),
                },
                ..Read::default()
            };
            Plan::Batch(key, Op::Read(read), Verb::Value)
        }
    }
}

/// The store of an APPEND, unless the value is long: then it is copied piece by piece.
fn append<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    key: &[u8],
    value: &'a [u8],
) -> Option<Store<'a>> {
    let old_len = cx.old_len(key);
    if old_len > edit::LONG {
        return None;
    }
    turn.spend(Work::of_bytes(old_len));
    Some(Store {
        mode: StoreMode::Append,
        vivify: Some(Expiry::Never),
        ..Store::set(value)
    })
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
/// `input` begins with it.
fn execute(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &[u8],
    command: AtOnce<'_>,
) {
    // CLIENT LIST and CLIENT INFO show themselves.
    if !cx.in_script {
        cx.info.request().note(input);
    }
    let before = turn.output.end();
    match command {
        AtOnce::Value(_) if cx.is_script_in_the_way() => {
            phase.writer(turn).error(&Error::SCRIPT_BUSY);
        }
        AtOnce::Value(command) => values::command(cx, turn, phase, command),
        AtOnce::Transaction(command) => multi::command(cx, turn, phase, command),
        AtOnce::Server(command) => manage::command(cx, turn, phase, command),
    }
    cx.charge(turn);
    // CLIENT REPLY ON cuts off what was before it.
    let written = turn.output.end().saturating_sub(before);
    turn.spend(Work::of_bytes(written));
}
