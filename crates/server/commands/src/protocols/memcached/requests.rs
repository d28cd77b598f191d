//! Commands about keys, as requests of the batch.

use nuthatch_engine::request::Leave;
use nuthatch_engine::{Condition, Delta, Expiry, Op, Read, Removal, TouchIf};
use nuthatch_protocol::{
    Command, Error, Exptime, Get, Meta, MetaFlags, MetaMode, MetaVerb, NextKey, Store, StoreVerb,
    Words, encode, next_key,
};

use super::immediate;
use super::key::key_bytes;
use super::phase::{Keys, Phase};
use super::store::{is_plain_set, store_op, store_style};
use crate::answers::Style;
use crate::answers::memcached::{self, Trailer, Verb};
use crate::answers::meta::{AnsweredVerb, MetaTicket};
use crate::expiry::memcached::seconds_left;
use crate::slice::{Flow, Slice};
use crate::stage::Stage;
use crate::work::Work;

/// Takes a complete command of `consumed` bytes: adds it to the batch, or executes it at once.
#[inline]
pub fn command<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
    command: Command<'a>,
    consumed: usize,
) -> Flow {
    match command {
        // The caller has done so already: taken as a part of `Command`, each get would move the whole of one.
        Command::Get(get) => return begin_get(stage, slice, phase, input, &get, consumed),
        Command::Store(command) if set_may_be_refused(stage, &command) => {
            if slice.in_batch > 0 {
                return Flow::Barrier;
            }
            store(stage, slice, &command);
            slice.position += consumed;
            slice.spend(Work::COMMAND);
            return Flow::Barrier;
        }
        Command::Store(command) => store(stage, slice, &command),
        Command::Delete { key, noreply } => {
            let op = Op::Remove(Removal::default());
            push(stage, slice, key, op, Verb::Delete, noreply);
        }
        Command::Delta {
            key,
            down,
            by,
            noreply,
        } => {
            let delta = if down { Delta::down(by) } else { Delta::up(by) };
            push(
                stage,
                slice,
                key,
                Op::Delta(delta),
                Verb::Delta { down },
                noreply,
            );
        }
        Command::Touch {
            key,
            exptime,
            noreply,
        } => {
            let read = Read {
                value: false,
                touch: Some(stage.expiry(exptime.0)),
                ..Read::default()
            };
            push(stage, slice, key, Op::Read(read), Verb::Touch, noreply);
        }
        Command::Meta(command) if command.verb != MetaVerb::Noop => meta(stage, slice, &command),
        Command::Meta(_) => {
            if !follow(stage, slice, Trailer::Noop, encode::MN) {
                return Flow::Barrier;
            }
            stage.counters.cmd_meta.bump();
        }
        _ if slice.in_batch > 0 => return Flow::Barrier,
        command => {
            let before = slice.output.end();
            immediate::command(stage, slice, phase, command);
            stage.charge(slice);
            slice.spend(Work::of_bytes(slice.output.end() - before));
        }
    }
    slice.position += consumed;
    slice.spend(Work::COMMAND);
    Flow::Next
}

/// Adds one request of the running slice.
#[inline]
fn push<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    bytes: &'a [u8],
    op: Op<'a>,
    verb: Verb,
    noreply: bool,
) {
    let style = memcached::Style {
        verb,
        noreply,
        after: Trailer::Nothing,
    };
    stage.push(slice, bytes, op, Style::Memcached(style));
}

/// The style of the last request in the batch, which belongs to the running slice.
#[inline]
fn last_style<'b>(stage: &'b mut Stage<'_, '_>) -> Option<&'b mut memcached::Style> {
    match &mut stage.batch.tickets.last_mut()?.style {
        Style::Memcached(style) => Some(style),
        _ => None,
    }
}

/// Writes `words` in order: behind the slice's last request, as its `trailer`, or at once if there is none. False if
/// something follows that request already.
fn follow(stage: &mut Stage<'_, '_>, slice: &mut Slice, trailer: Trailer, words: &[u8]) -> bool {
    if slice.in_batch == 0 {
        slice.output.text().extend_from_slice(words);
        return true;
    }
    match last_style(stage) {
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
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
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
    let (op, verb) = keys.request(stage);
    let before = slice.in_batch;
    for word in Words(text) {
        if stage.batch_is_full(slice) {
            slice.position = offset(input, word);
            *phase = Phase::Keys(keys);
            slice.spend(work_of_keys(stage, slice.in_batch - before));
            return Flow::Next;
        }
        push(stage, slice, word, op, verb, false);
    }
    if let Some(last) = last_style(stage) {
        last.after = Trailer::End;
    }
    slice.position += consumed;
    slice.spend(work_of_keys(stage, slice.in_batch - before));
    Flow::Next
}

impl Keys {
    /// The request for one of the keys, and how it is answered.
    #[inline(always)]
    fn request<'a>(self, stage: &Stage<'_, 'a>) -> (Op<'a>, Verb) {
        let op = match (self.touch, self.with_cas) {
            (None, false) => Op::Get,
            (touch, _) => Op::Read(Read {
                touch: touch.map(|exptime| stage.expiry(exptime.0)),
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
fn work_of_keys(stage: &Stage<'_, '_>, count: usize) -> Work {
    match stage.info.peer().is_udp() {
        true => Work::default(),
        false => Work::of_commands(count),
    }
}

/// Adds the keys of a get that have arrived to the batch, as many as the slice may, and answers its end. Keys before
/// one that is refused have been answered by then, so the rest of the line is dropped.
pub fn next_keys<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
    mut keys: Keys,
) -> Flow {
    let (op, verb) = keys.request(stage);
    while !stage.batch_is_full(slice) && slice.commands_left > 0 {
        let (next, consumed) = next_key(&input[slice.position..]);
        let error = match next {
            NextKey::Key(key) => {
                push(stage, slice, key, op, verb, false);
                slice.position += consumed;
                slice.spend(work_of_keys(stage, 1));
                keys.any = true;
                *phase = Phase::Keys(keys);
                continue;
            }
            NextKey::Incomplete => {
                slice.position += consumed;
                return Flow::Starved;
            }
            NextKey::End if keys.any => {
                if !follow(stage, slice, Trailer::End, encode::END) {
                    return Flow::Barrier;
                }
                slice.position += consumed;
                *phase = Phase::Commands;
                return Flow::Next;
            }
            NextKey::End => Error::BAD_FORMAT,
            NextKey::Refused(error) => error,
        };
        if slice.in_batch > 0 {
            return Flow::Barrier;
        }
        encode::error(slice.output.text(), error);
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
fn store<'a>(stage: &mut Stage<'_, 'a>, slice: &mut Slice, command: &Store<'a>) {
    if let Some(flags) = &command.meta {
        let verb = AnsweredVerb::Store {
            plain_set: is_plain_set(flags),
        };
        let op = Op::Store(store_op(stage, command));
        return push_meta(stage, slice, command.key, flags, verb, op);
    }
    let verb = Verb::Store(store_style(command.verb));
    let op = store_op(stage, command);
    stage.weigh(slice, command.key, &op);
    let op = Op::Store(op);
    push(stage, slice, command.key, op, verb, command.noreply);
}

/// True if the command replaces any existing value, and an engine could refuse the new one.
#[inline]
fn set_may_be_refused(stage: &Stage<'_, '_>, command: &Store<'_>) -> bool {
    stage.may_refuse(command.key, command.value)
        && match &command.meta {
            Some(flags) => is_plain_set(flags),
            None => command.verb == StoreVerb::Set,
        }
}

/// mg, md, ma, me.
fn meta<'a>(stage: &mut Stage<'_, 'a>, slice: &mut Slice, command: &Meta<'a>) {
    let flags = &command.flags;
    let expiry_of = |exptime: Option<Exptime>| exptime.map(|exptime| stage.expiry(exptime.0));
    let op = match command.verb {
        MetaVerb::Get => Op::Read(Read {
            value: flags.value,
            touch: expiry_of(flags.ttl),
            vivify: expiry_of(flags.vivify),
            // The number is read as an expiry. A negative number or a time in the past gives 0 seconds, and no item has
            // less left.
            recache_below: flags.recache.map(|exptime| {
                let left = seconds_left(stage.expiry(exptime.0), stage.now).unwrap_or(0);
                u32::try_from(left).unwrap_or(u32::MAX)
            }),
            unless_cas: flags.compare_cas,
            touch_if: TouchIf::Always,
            new_cas: flags.new_cas,
            may_win: true,
            bump: !flags.no_bump,
            idle: flags.raw.iter().any(|word| word.starts_with(b"l")),
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
    push_meta(stage, slice, command.key, flags, verb, op);
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
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    written: &'a [u8],
    flags: &MetaFlags<'a>,
    verb: AnsweredVerb,
    op: Op<'a>,
) {
    let meta = Verb::Meta(stage.batch.metas.len() as u32);
    stage.batch.metas.push(MetaTicket {
        verb,
        key: written,
        flags: *flags,
    });
    // The parser has checked the key, so the other branch is never taken. The first byte of the written form is a key
    // of a valid length in any case.
    let bytes = key_bytes(stage, written, flags.base64).unwrap_or(&written[..1]);
    if let Op::Store(store) = &op {
        stage.weigh(slice, bytes, store);
    }
    push(stage, slice, bytes, op, meta, flags.quiet);
}
