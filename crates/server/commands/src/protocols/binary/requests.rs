//! Requests about keys, as requests of the batch, and requests that are executed at once.

use nuthatch_engine::{Condition, Delta, Op, Read, Removal, Store as StoreOp, StoreMode};
use nuthatch_protocol::binary::{Command, Head, Request, Status, Store, StoreVerb, encode};
use nuthatch_state::administration::Action;
use nuthatch_state::config::MEMCACHED_VERSION;
use nuthatch_state::reports::{self as reports, Outcome};

use super::login;
use crate::answers::{Style, binary};
use crate::expiry::memcached::flush_time;
use crate::slice::{Flow, Slice};
use crate::stage::Stage;
use crate::work::Work;

/// Takes a complete request of `consumed` bytes: adds it to the batch, or executes it at once.
#[inline]
pub fn request<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    request: &Request<'a>,
    consumed: usize,
) -> Flow {
    let head = request.head;
    let mut flow = Flow::Next;
    match &request.command {
        Command::Get { key, touch, value } => {
            let op = match touch {
                None => Op::Get,
                Some(seconds) => Op::Read(Read {
                    value: *value,
                    touch: Some(stage.expiry(*seconds)),
                    ..Read::default()
                }),
            };
            push(stage, slice, key, op, head);
        }
        Command::Store(store) => {
            let replaces = store.verb == StoreVerb::Set && store.cas == 0;
            if replaces && stage.may_refuse(store.key, store.value) {
                if slice.in_batch > 0 {
                    return Flow::Barrier;
                }
                flow = Flow::Barrier;
            }
            let op = store_op(stage, store);
            stage.weigh(slice, store.key, &op);
            push(stage, slice, store.key, Op::Store(op), head);
        }
        Command::Delete { key, cas } => {
            let op = Op::Remove(Removal {
                condition: condition(*cas),
                ..Removal::default()
            });
            push(stage, slice, key, op, head);
        }
        Command::Delta {
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
            let made = |(number, seconds)| (number, stage.expiry(seconds));
            let op = Op::Delta(Delta {
                condition: condition(*cas),
                vivify: make.map(made),
                ..delta
            });
            push(stage, slice, key, op, head);
        }
        Command::Noop if follows_last(stage, slice, head) => {}
        _ if slice.in_batch > 0 => return Flow::Barrier,
        command => {
            let before = slice.output.end();
            at_once(stage, slice, head, command);
            slice.spend(Work::of_bytes(slice.output.end() - before));
        }
    }
    slice.position += consumed;
    slice.spend(Work::COMMAND);
    flow
}

#[inline]
fn push<'a>(stage: &mut Stage<'_, 'a>, slice: &mut Slice, key: &'a [u8], op: Op<'a>, head: Head) {
    let style = binary::Style { head, noop: None };
    stage.push(slice, key, op, Style::Binary(style));
}

/// Attaches a noop to the slice's last request in the batch, to be answered behind it: a noop ends most pipelines of
/// quiet gets. False if there is no such request, or another noop follows it already.
fn follows_last(stage: &mut Stage<'_, '_>, slice: &Slice, head: Head) -> bool {
    if slice.in_batch == 0 {
        return false;
    }
    match stage.batch.tickets.last_mut().map(|last| &mut last.style) {
        Some(Style::Binary(last)) if last.noop.is_none() => {
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

/// The engine's operation for a storage request.
#[inline]
pub fn store_op<'v>(stage: &Stage<'_, '_>, store: &Store<'v>) -> StoreOp<'v> {
    let mut op = StoreOp::set(store.value);
    op.flags = store.flags;
    op.expiry = stage.expiry(store.exptime);
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
fn at_once(stage: &mut Stage<'_, '_>, slice: &mut Slice, head: Head, command: &Command<'_>) {
    let (_, quiet) = head.opcode.loud();
    match command {
        Command::Noop => encode::done(slice.output.text(), head, 0),
        Command::Version => version(slice, head),
        Command::Quit => {
            slice.quit();
            if !quiet {
                encode::done(slice.output.text(), head, 0);
            }
        }
        Command::Flush { delay } => flush(stage, slice, head, *delay, quiet),
        Command::Stat(topic) => stat(stage, slice, head, topic),
        Command::SaslList => {
            login::answer(stage, slice, head, command);
        }
        // A client that has logged in must not try other users' passwords: a failure closes its connection.
        Command::SaslAuth { .. } => {
            let admitted = login::answer(stage, slice, head, command);
            slice.closing |= !admitted && stage.shared.has_passwords();
        }
        Command::Get { .. }
        | Command::Store(_)
        | Command::Delete { .. }
        | Command::Delta { .. } => unreachable!("requests about keys go to the batch"),
    }
}

pub fn version(slice: &mut Slice, head: Head) {
    let version = MEMCACHED_VERSION.as_bytes();
    encode::text(slice.output.text(), head, &[], version);
}

fn flush(stage: &mut Stage<'_, '_>, slice: &mut Slice, head: Head, delay: u32, quiet: bool) {
    let out = slice.output.text();
    // A datagram's sender can be forged.
    if !stage.may(Action::Flush) || stage.info.peer().is_udp() {
        return encode::error(out, head, Status::Unauthenticated);
    }
    stage.counters.cmd_flush.bump();
    let at = flush_time(delay.into(), stage.now, &stage.shared.clock);
    stage.flush(at);
    if !quiet {
        encode::done(out, head, 0);
    }
}

/// Statistics: an answer for each, and one without a key behind the last.
fn stat(stage: &mut Stage<'_, '_>, slice: &mut Slice, head: Head, topic: &[u8]) {
    let out = slice.output.text();
    let told = match topic {
        topic if stage.info.peer().is_udp() && !reports::is_for_datagrams(topic) => {
            Outcome::Forbidden
        }
        b"reset" if !stage.may(Action::ResetStats) => Outcome::Forbidden,
        b"reset" => {
            stage.shared.reset_stats();
            Outcome::All
        }
        topic if topic.starts_with(b"detail") => {
            let word = topic.strip_prefix(b"detail ").unwrap_or_default();
            reports::detail(stage.shared, word, &mut |text| {
                encode::text(out, head, b"detailed", text);
            })
        }
        topic => stage.tell_stats(topic, &mut |name, value| {
            encode::text(out, head, name.as_bytes(), value.as_bytes());
        }),
    };
    match told {
        Outcome::All => encode::text(out, head, &[], &[]),
        Outcome::Unknown => encode::error(out, head, Status::NotFound),
        Outcome::NoMemory => encode::error(out, head, Status::OutOfMemory),
        Outcome::Forbidden => encode::error(out, head, Status::Unauthenticated),
    }
}
