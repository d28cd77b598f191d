//! Requests about keys, as requests of the batch, and requests that are executed at once.

use nuthatch_engine::{Condition, Delta, Op, Read, Removal, Store as StoreOp, StoreMode};
use nuthatch_protocol::binary::{
    Command, Head, Request, Sasl, ServerCommand, Status, Store, StoreVerb, ValueCommand, encode,
};
use nuthatch_settings::administration::Action;
use nuthatch_settings::config::MEMCACHED_VERSION;
use nuthatch_state::reports::{self as reports, Outcome};

use super::login;
use crate::answers::{ReplyFormat, binary};
use crate::context::Context;
use crate::expiry::memcached::flush_time;
use crate::turn::{Flow, Turn};
use crate::work::Work;

/// Takes a complete request of `consumed` bytes: adds it to the batch, or executes it at once.
#[inline]
pub fn request<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    request: &Request<'a>,
    consumed: usize,
) -> Flow {
    let head = request.head;
    match &request.command {
        Command::Value(command) => return value(cx, turn, head, command, consumed),
        Command::Server(ServerCommand::Noop) if follows_last(cx, turn, head) => {}
        Command::Server(_) if turn.in_batch > 0 => return Flow::Barrier,
        Command::Server(command) => {
            let before = turn.output.end();
            at_once(cx, turn, head, command);
            turn.spend(Work::of_bytes(turn.output.end() - before));
        }
    }
    turn.position += consumed;
    turn.spend(Work::COMMAND);
    Flow::Next
}

/// Adds a request about a key to the batch.
#[inline(always)]
fn value<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    head: Head,
    command: &ValueCommand<'a>,
    consumed: usize,
) -> Flow {
    let mut flow = Flow::Next;
    match command {
        ValueCommand::Get { key, touch, value } => {
            let op = match touch {
                None => Op::Get,
                Some(seconds) => Op::Read(Read {
                    value: *value,
                    touch: Some(cx.expiry(*seconds)),
                    ..Read::default()
                }),
            };
            push(cx, turn, key, op, head);
        }
        ValueCommand::Store(store) => {
            let replaces = store.verb == StoreVerb::Set && store.cas == 0;
            if replaces && cx.may_refuse(store.key, store.value) {
                if turn.in_batch > 0 {
                    return Flow::Barrier;
                }
                flow = Flow::Barrier;
            }
            let op = store_op(cx, store);
            cx.weigh(turn, store.key, &op);
            push(cx, turn, store.key, Op::Store(op), head);
        }
        ValueCommand::Delete { key, cas } => {
            let op = Op::Remove(Removal {
                condition: condition(*cas),
                ..Removal::default()
            });
            push(cx, turn, key, op, head);
        }
        ValueCommand::Delta {
            key,
            down,
            by,
            make,
            cas,
        } => {
            let delta = match down {
                true => Delta::down(*by),
                false => Delta::up(*by),
            };
            let made = |(number, seconds)| (number, cx.expiry(seconds));
            let op = Op::Delta(Delta {
                condition: condition(*cas),
                vivify: make.map(made),
                ..delta
            });
            push(cx, turn, key, op, head);
        }
    }
    turn.position += consumed;
    turn.spend(Work::COMMAND);
    flow
}

#[inline]
fn push<'a>(cx: &mut Context<'_, 'a>, turn: &mut Turn, key: &'a [u8], op: Op<'a>, head: Head) {
    let format = binary::Format {
        head,
        is_cas: matches!(&op, Op::Store(store) if is_cas(store)),
        noop: None,
    };
    cx.push(turn, key, op, ReplyFormat::Binary(format));
}

/// Attaches a noop to the turn's last request in the batch, to be answered behind it: a noop ends most pipelines of
/// quiet gets. False if there is no such request, or another noop follows it already.
fn follows_last(cx: &mut Context<'_, '_>, turn: &Turn, head: Head) -> bool {
    if turn.in_batch == 0 {
        return false;
    }
    match cx.batch.pending.last_mut().map(|last| &mut last.format) {
        Some(ReplyFormat::Binary(last)) if last.noop.is_none() => {
            last.noop = Some(head.opaque);
            true
        }
        _ => false,
    }
}

/// The condition that a cas sets. 0 sets none.
fn condition(cas: u64) -> Condition {
    match cas {
        0 => Condition::None,
        cas => Condition::Cas(cas),
    }
}

/// True if a store is counted as a compare-and-swap. As in memcached, an append with a cas is not.
#[inline]
pub fn is_cas(store: &StoreOp<'_>) -> bool {
    store.mode == StoreMode::Set && store.condition != Condition::None
}

/// The engine's operation for a storage request.
#[inline]
pub fn store_op<'v>(cx: &Context<'_, '_>, store: &Store<'v>) -> StoreOp<'v> {
    let mut op = StoreOp::set(store.value);
    op.flags = store.flags;
    op.expiry = cx.expiry(store.exptime);
    op.condition = condition(store.cas);
    op.mode = match store.verb {
        StoreVerb::Append => StoreMode::Append,
        StoreVerb::Prepend => StoreMode::Prepend,
        // As in memcached, a set, add or replace with a cas is a compare-and-swap.
        _ if store.cas != 0 => StoreMode::Set,
        StoreVerb::Set => StoreMode::Set,
        StoreVerb::Add => StoreMode::Add,
        StoreVerb::Replace => StoreMode::Replace,
    };
    op
}

/// Executes a request that is not about a key. All requests before it have been answered.
#[cold]
fn at_once(cx: &mut Context<'_, '_>, turn: &mut Turn, head: Head, command: &ServerCommand<'_>) {
    let (_, quiet) = head.opcode.loud();
    match command {
        ServerCommand::Noop => encode::done(turn.output.text(), head, 0),
        ServerCommand::Version => version(turn, head),
        ServerCommand::Quit => {
            turn.quit();
            if !quiet {
                encode::done(turn.output.text(), head, 0);
            }
        }
        ServerCommand::Flush { delay } => flush(cx, turn, head, *delay, quiet),
        ServerCommand::Stat(topic) => stat(cx, turn, head, topic),
        ServerCommand::Sasl(sasl) => {
            let admitted = login::answer(cx, turn, head, sasl);
            // A client that has logged in must not try other users' passwords: a failure closes its connection.
            let failed = *sasl != Sasl::List && !admitted;
            turn.closing |= failed && cx.shared.security.has_passwords();
        }
    }
}

pub fn version(turn: &mut Turn, head: Head) {
    let version = MEMCACHED_VERSION.as_bytes();
    encode::text(turn.output.text(), head, &[], version);
}

fn flush(cx: &mut Context<'_, '_>, turn: &mut Turn, head: Head, delay: u32, quiet: bool) {
    let out = turn.output.text();
    // A datagram's sender can be forged.
    if !cx.may(Action::Flush) || cx.info.peer().is_udp() {
        return encode::error(out, head, Status::Unauthenticated);
    }
    cx.counters.cmd_flush.bump();
    let at = flush_time(delay.into(), cx.now, &cx.shared.clock);
    match cx.flush(at) {
        Err(_) => encode::error(out, head, Status::Unavailable),
        Ok(()) if quiet => {}
        Ok(()) => encode::done(out, head, 0),
    }
}

/// Statistics: an answer for each, and one without a key behind the last.
fn stat(cx: &mut Context<'_, '_>, turn: &mut Turn, head: Head, topic: &[u8]) {
    let out = turn.output.text();
    let outcome = match topic {
        topic if cx.info.peer().is_udp() && !reports::is_for_datagrams(topic) => Outcome::Forbidden,
        b"reset" if !cx.may(Action::ResetStats) => Outcome::Forbidden,
        b"reset" => {
            cx.shared.reset_stats();
            Outcome::All
        }
        topic if topic.starts_with(b"detail") => {
            let word = topic.strip_prefix(b"detail ").unwrap_or_default();
            reports::detail(cx.shared, word, &mut |text| {
                encode::text(out, head, b"detailed", text);
            })
        }
        topic => cx.report_stats(topic, &mut |name, value| {
            encode::text(out, head, name.as_bytes(), value.as_bytes());
        }),
    };
    match outcome {
        Outcome::All => encode::text(out, head, &[], &[]),
        Outcome::Unknown => encode::error(out, head, Status::NotFound),
        Outcome::NoMemory => encode::error(out, head, Status::OutOfMemory),
        Outcome::Forbidden => encode::error(out, head, Status::Unauthenticated),
    }
}
