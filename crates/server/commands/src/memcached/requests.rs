//! Commands about keys, as requests of the batch.

use nuthatch_engine::request::Leave;
use nuthatch_engine::{Condition, Delta, Expiry, Op, Read, Removal, TouchIf};
use nuthatch_protocol::{
    Error, Exptime, Get, Meta, MetaFlags, MetaMode, MetaVerb, NextKey, Store, StoreVerb,
    ValueCommand, Words, encode, next_key,
};

use super::key::key_bytes;
use super::phase::{Keys, Phase};
use super::store::{is_plain_set, store_kind, store_op};
use crate::answers::ReplyFormat;
use crate::answers::memcached::{self, Trailer, Verb};
use crate::answers::meta::{AnsweredVerb, MetaFormat};
use crate::context::Context;
use crate::turn::{Flow, Turn};
use crate::work::Work;

/// Takes a complete command of `consumed` bytes: adds it to the batch.
#[inline]
pub fn command<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    command: ValueCommand<'a>,
    consumed: usize,
) -> Flow {
    match command {
        ValueCommand::Store(command) if set_may_be_refused(cx, &command) => {
            if turn.in_batch > 0 {
                return Flow::Barrier;
            }
            store(cx, turn, &command);
            turn.position += consumed;
            turn.spend(Work::COMMAND);
            return Flow::Barrier;
        }
        ValueCommand::Store(command) => store(cx, turn, &command),
        ValueCommand::Delete { key, noreply } => {
            let op = Op::Remove(Removal::default());
            push(cx, turn, key, op, Verb::Delete, noreply);
        }
        ValueCommand::Delta {
            key,
            down,
            by,
            noreply,
        } => {
            let delta = if down { Delta::down(by) } else { Delta::up(by) };
            push(
                cx,
                turn,
                key,
                Op::Delta(delta),
                Verb::Delta { down },
                noreply,
            );
        }
        ValueCommand::Touch {
            key,
            exptime,
            noreply,
        } => {
            let read = Read {
                value: false,
                touch: Some(cx.expiry(exptime.0)),
                ..Read::default()
            };
            push(cx, turn, key, Op::Read(read), Verb::Touch, noreply);
        }
        ValueCommand::Meta(command) if command.verb != MetaVerb::Noop => meta(cx, turn, &command),
        ValueCommand::Meta(_) => {
            if !follow(cx, turn, Trailer::Noop, encode::MN) {
                return Flow::Barrier;
            }
            cx.counters.cmd_meta.bump();
        }
    }
    turn.position += consumed;
    turn.spend(Work::COMMAND);
    Flow::Next
}

/// Adds one request of the running turn.
#[inline]
fn push<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    bytes: &'a [u8],
    op: Op<'a>,
    verb: Verb,
    noreply: bool,
) {
    let format = memcached::Format {
        verb,
        noreply,
        after: Trailer::Nothing,
    };
    cx.push(turn, bytes, op, ReplyFormat::Memcached(format));
}

/// The format of the last request in the batch, which belongs to the running turn.
#[inline]
fn last_format<'b>(cx: &'b mut Context<'_, '_>) -> Option<&'b mut memcached::Format> {
    match &mut cx.batch.pending.last_mut()?.format {
        ReplyFormat::Memcached(format) => Some(format),
        _ => None,
    }
}

/// Writes `words` in order: behind the turn's last request, as its `trailer`, or at once if there is none. False if
/// something follows that request already.
fn follow(cx: &mut Context<'_, '_>, turn: &mut Turn, trailer: Trailer, words: &[u8]) -> bool {
    if turn.in_batch == 0 {
        turn.output.text().extend_from_slice(words);
        return true;
    }
    match last_format(cx) {
        Some(last) if last.after == Trailer::Nothing => {
            last.after = trailer;
            true
        }
        _ => false,
    }
}

/// Takes a get of `consumed` bytes.
#[inline]
pub fn begin_get<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
    command: &Get<'a>,
    consumed: usize,
) -> Flow {
    let text = command.keys.0;
    let keys = Keys {
        with_cas: command.with_cas,
        touch: command.touch,
        any: true,
    };
    let (op, verb) = keys.request(cx);
    let before = turn.in_batch;
    for word in Words(text) {
        if cx.batch_is_full(turn) {
            turn.position = offset(input, word);
            *phase = Phase::Keys(keys);
            turn.spend(work_of_keys(cx, turn.in_batch - before));
            return Flow::Next;
        }
        push(cx, turn, word, op, verb, false);
    }
    if let Some(last) = last_format(cx) {
        last.after = Trailer::End;
    }
    turn.position += consumed;
    turn.spend(work_of_keys(cx, turn.in_batch - before));
    Flow::Next
}

impl Keys {
    /// The request for one of the keys, and how it is answered.
    #[inline(always)]
    fn request<'a>(self, cx: &Context<'_, 'a>) -> (Op<'a>, Verb) {
        let op = match (self.touch, self.with_cas) {
            (None, false) => Op::Get,
            (touch, _) => Op::Read(Read {
                touch: touch.map(|exptime| cx.expiry(exptime.0)),
                ..Read::default()
            }),
        };
        let verb = Verb::Value {
            with_cas: self.with_cas,
            touched: self.touch.is_some(),
        };
        (op, verb)
    }
}

/// The work of so many keys of a get. A datagram is not gone on with later, and its length bounds its keys: they are none.
#[inline(always)]
fn work_of_keys(cx: &Context<'_, '_>, count: usize) -> Work {
    match cx.info.peer().is_udp() {
        true => Work::default(),
        false => Work::of_commands(count),
    }
}

/// Adds the keys of a get that have arrived to the batch, as many as the turn may, and answers its end. Keys before
/// one that is refused have been answered by then, so the rest of the line is dropped.
pub fn next_keys<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
    mut keys: Keys,
) -> Flow {
    let (op, verb) = keys.request(cx);
    while !cx.batch_is_full(turn) && turn.commands_left > 0 {
        let (next, consumed) = next_key(&input[turn.position..]);
        let error = match next {
            NextKey::Key(key) => {
                push(cx, turn, key, op, verb, false);
                turn.position += consumed;
                turn.spend(work_of_keys(cx, 1));
                keys.any = true;
                *phase = Phase::Keys(keys);
                continue;
            }
            NextKey::Incomplete => {
                turn.position += consumed;
                return Flow::Starved;
            }
            NextKey::End if keys.any => {
                if !follow(cx, turn, Trailer::End, encode::END) {
                    return Flow::Barrier;
                }
                turn.position += consumed;
                *phase = Phase::Commands;
                return Flow::Next;
            }
            NextKey::End => Error::BAD_FORMAT,
            NextKey::Refused(error) => error,
        };
        if turn.in_batch > 0 {
            return Flow::Barrier;
        }
        encode::error(turn.output.text(), error);
        *phase = Phase::SkipLine;
        return Flow::Next;
    }
    Flow::Next
}

/// Where `part`, a piece of `input`, begins in it.
#[inline]
fn offset(input: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - input.as_ptr() as usize
}

/// A store with its whole value.
#[inline]
fn store<'a>(cx: &mut Context<'_, 'a>, turn: &mut Turn, command: &Store<'a>) {
    if let Some(flags) = &command.meta {
        let verb = AnsweredVerb::Store {
            plain_set: is_plain_set(flags),
        };
        let op = Op::Store(store_op(cx, command));
        return push_meta(cx, turn, command.key, flags, verb, op);
    }
    let verb = Verb::Store(store_kind(command.verb));
    let op = store_op(cx, command);
    cx.weigh(turn, command.key, &op);
    let op = Op::Store(op);
    push(cx, turn, command.key, op, verb, command.noreply);
}

/// True if the command replaces any existing value, and an engine could refuse the new one.
#[inline]
fn set_may_be_refused(cx: &Context<'_, '_>, command: &Store<'_>) -> bool {
    cx.may_refuse(command.key, command.value)
        && match &command.meta {
            Some(flags) => is_plain_set(flags),
            None => command.verb == StoreVerb::Set,
        }
}

/// mg, md, ma, me.
fn meta<'a>(cx: &mut Context<'_, 'a>, turn: &mut Turn, command: &Meta<'a>) {
    let flags = &command.flags;
    let expiry_of = |exptime: Option<Exptime>| exptime.map(|exptime| cx.expiry(exptime.0));
    let (idle, details) = asked(flags);
    let op = match command.verb {
        MetaVerb::Get => Op::Read(Read {
            value: flags.value,
            touch: expiry_of(flags.ttl),
            vivify: expiry_of(flags.vivify),
            // The number is read as an expiry. A negative number or a time in the past gives 0 seconds, and no item has
            // less left.
            recache_below: flags.recache.map(|exptime| {
                let left = cx.expiry(exptime.0).seconds_left(cx.now).unwrap_or(0);
                u32::try_from(left).unwrap_or(u32::MAX)
            }),
            unless_cas: flags.compare_cas,
            touch_if: TouchIf::Always,
            new_cas: flags.new_cas,
            may_win: true,
            bump: !flags.no_bump,
            idle,
            details,
        }),
        MetaVerb::Delete => Op::Remove(removal(flags, expiry_of(flags.ttl))),
        MetaVerb::Arithmetic => Op::Delta(Delta {
            down: flags.mode == Some(MetaMode::Decrement),
            by: flags.delta.unwrap_or(1),
            condition: match flags.compare_cas {
                // As for append, 0 sets no condition.
                None | Some(0) => Condition::None,
                Some(cas) => Condition::Cas(cas),
            },
            touch: expiry_of(flags.ttl),
            vivify: expiry_of(flags.vivify).map(|expiry| (flags.initial.unwrap_or(0), expiry)),
            new_cas: flags.new_cas,
        }),
        MetaVerb::Debug | MetaVerb::Noop => Op::Read(Read {
            value: false,
            bump: false,
            idle: true,
            ..Read::default()
        }),
    };
    let verb = AnsweredVerb::Other(command.verb);
    push_meta(cx, turn, command.key, flags, verb, op);
}

/// Whether an answer tells the time since the last use, and whether it tells of more than the value and its flags.
fn asked(flags: &MetaFlags<'_>) -> (bool, bool) {
    let (mut idle, mut details) = (false, false);
    for word in flags.raw.iter() {
        match word.first() {
            Some(b'l') => (idle, details) = (true, true),
            Some(b'c' | b'h' | b't') => details = true,
            _ => {}
        }
    }
    (idle, details)
}

fn removal(flags: &MetaFlags<'_>, expiry: Option<Expiry>) -> Removal {
    let new_cas = flags.new_cas;
    let leave = if flags.drop_value {
        Leave::Empty {
            stale: flags.invalidate,
            // In memcached this is a new item, which has only the expiry that this command gives.
            expiry: expiry.or(Some(Expiry::Never)),
            new_cas,
        }
    } else if flags.invalidate {
        Leave::Stale { expiry, new_cas }
    } else {
        Leave::Nothing
    };
    Removal {
        condition: flags.compare_cas.map_or(Condition::None, Condition::Cas),
        leave,
    }
}

fn push_meta<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    written: &'a [u8],
    flags: &MetaFlags<'a>,
    verb: AnsweredVerb,
    op: Op<'a>,
) {
    let meta = Verb::Meta(cx.batch.metas.len() as u32);
    cx.batch.metas.push(MetaFormat {
        verb,
        key: written,
        flags: *flags,
    });
    // The parser has checked the key, so the other branch is never taken. The first byte of the written form is a key
    // of a valid length in any case.
    let bytes = key_bytes(cx, written, flags.base64).unwrap_or(&written[..1]);
    if let Op::Store(store) = &op {
        cx.weigh(turn, bytes, store);
    }
    push(cx, turn, bytes, op, meta, flags.quiet);
}
