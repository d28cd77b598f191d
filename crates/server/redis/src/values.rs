//! Commands about a value that read, decide and write.

use std::borrow::Cow;
use std::ops::Range;

use nuthatch_commands::context::Context;
use nuthatch_commands::counting::Kind;
use nuthatch_commands::expiry::resp as expiry;
use nuthatch_commands::turn::Turn;
use nuthatch_engine::{Delta, Expiry, Item};
use nuthatch_resp::{
    Decimal, Error, Eval, ExpiryForm, Lifetime, Set, SetAnswer, StoreCondition, ValueCommand,
    integer, range,
};
use nuthatch_state::changes::Naming;
use nuthatch_state::key_events::Event;

use crate::edit::{self, Edit, Place};
use crate::phase::Phase;
use crate::spot::{
    Change, Content, CountAs, Decision, Found, change, count_get, count_refused, look, look_as,
    read, take_if,
};
use crate::{compare, keyed, scripts, set};

/// Redis' longest string.
const STRING_LEN_MAX: u64 = 512 << 20;

/// A command about values that is executed at once.
pub enum AtOnce<'a> {
    /// SET with GET, KEEPTTL or a comparison; GETSET.
    Set(Set<'a>),
    /// One that compares a value, or takes one to another key.
    Keyed(ValueCommand<'a>),
    GetDel {
        key: &'a [u8],
    },
    GetRange {
        key: &'a [u8],
        start: i64,
        end: i64,
    },
    SetRange {
        key: &'a [u8],
        offset: u64,
        value: &'a [u8],
    },
    /// To a long value.
    Append {
        key: &'a [u8],
        value: &'a [u8],
    },
    IncrBy {
        key: &'a [u8],
        by: i64,
    },
    IncrByFloat {
        key: &'a [u8],
        by: Decimal,
    },
    /// EXPIRETIME and PEXPIRETIME.
    ExpireTime {
        key: &'a [u8],
        form: ExpiryForm,
    },
    Eval(Eval<'a>),
}

/// Executes `command`.
pub fn command(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, command: AtOnce<'_>) {
    match command {
        AtOnce::Set(set) => match changed(cx, &set) {
            Ok(outcome) => answer_set(turn, phase, &set, outcome),
            Err(error) => phase.writer(turn).error(&error),
        },
        AtOnce::Keyed(command) => keyed::command(cx, turn, phase, command),
        AtOnce::GetDel { key } => match take_if(cx, key, |_| true) {
            Ok(found) => {
                count_get(cx, key, found.as_ref());
                bulk(turn, phase, found);
            }
            Err(error) => phase.writer(turn).error(&error),
        },
        AtOnce::GetRange { key, start, end } => {
            let found = read(cx, key);
            count_get(cx, key, found.as_ref());
            match found {
                Some(found) => found
                    .value
                    .answer(turn, phase.version, |len| range(len, start, end)),
                None => phase.writer(turn).bulk(b""),
            }
        }
        AtOnce::SetRange { key, offset, value } => {
            set_range(cx, turn, phase, key, offset, Cow::Borrowed(value));
        }
        AtOnce::Append { key, value } => {
            phase.begin_edit(Edit::new(key, Place::End, value.to_vec()));
        }
        AtOnce::IncrBy { key, by } => {
            let outcome = add(cx, key, by);
            number(turn, phase, outcome);
        }
        AtOnce::Eval(eval) => scripts::eval(cx, turn, phase, &eval, None),
        AtOnce::IncrByFloat { key, by } => match increment_decimal(cx, key, by) {
            Ok(text) => phase.writer(turn).bulk(&text),
            Err(error) => phase.writer(turn).error(&error),
        },
        AtOnce::ExpireTime { key, form } => {
            let found = look_as(cx, key, Kind::Look);
            let left = ttl(cx, found, form);
            phase.writer(turn).integer(left);
        }
    }
}

fn number(turn: &mut Turn, phase: &Phase, outcome: Result<i64, Error<'static>>) {
    let mut writer = phase.writer(turn);
    match outcome {
        Ok(number) => writer.integer(number),
        Err(error) => writer.error(&error),
    }
}

fn bulk(turn: &mut Turn, phase: &Phase, found: Option<Found>) {
    match found {
        Some(found) => found.value.answer(turn, phase.version, |len| 0..len),
        None => phase.writer(turn).null(),
    }
}

/// The outcome of a SET that depends on the old value: whether it stored, and the old value.
type Outcome = (bool, Option<Content>);

/// SET with GET, KEEPTTL or a comparison.
fn changed(cx: &mut Context<'_, '_>, set: &Set<'_>) -> Result<Outcome, Error<'static>> {
    let new = match set.lifetime {
        Lifetime::Until(moment) => cx.expiry_at(moment),
        Lifetime::Forever | Lifetime::Keep => Expiry::Never,
    };
    let decide = |found: Option<Found>| {
        let stays = match set.when {
            StoreCondition::Always => false,
            StoreCondition::Absent => found.is_some(),
            StoreCondition::Present => found.is_none(),
            StoreCondition::Compared(when) => {
                !compare::holds(&when, found.as_ref().map(|found| &found.value))
            }
        };
        let expiry = match (&found, set.lifetime) {
            (Some(found), Lifetime::Keep) => found.item.expiry,
            _ => new,
        };
        let old = found.map(|found| found.value);
        Ok(match stays {
            true => Decision::Stay((false, old)),
            false => Decision::Become(Change {
                value: Cow::Borrowed(set.value),
                expiry,
                flags: 0,
                delta: None,
                answer: (true, old),
            }),
        })
    };
    let outcome = cx.named(set::naming(set.lifetime), |cx| {
        change(cx, set.key, CountAs::Store, decide)
    });
    if let Ok((false, _)) = outcome {
        count_refused(cx, set.key, set.value.len());
    }
    outcome
}

fn answer_set(turn: &mut Turn, phase: &Phase, set: &Set<'_>, (stored, old): Outcome) {
    let mut writer = phase.writer(turn);
    match (set.answer, old) {
        (SetAnswer::Old, Some(old)) => old.answer(turn, phase.version, |len| 0..len),
        (SetAnswer::Old, None) => writer.null(),
        (SetAnswer::Number, _) => writer.flag(stored),
        (SetAnswer::Status, _) if stored => writer.ok(),
        (SetAnswer::Status, _) => writer.null(),
    }
}

/// SETRANGE.
pub fn set_range(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    key: &[u8],
    offset: u64,
    piece: Cow<'_, [u8]>,
) {
    let old_len = look(cx, key).map_or(0, |item| item.value_len);
    let outcome = match range_end(cx, offset, &piece) {
        Ok(_) if piece.is_empty() => Ok(old_len as i64),
        Ok(end) if old_len.max(end) > edit::LONG => {
            let place = Place::At(offset as usize);
            return phase.begin_edit(Edit::new(key, place, piece.into_owned()));
        }
        Ok(end) => replace_range(cx, key, offset as usize..end, &piece),
        Err(error) => Err(error),
    };
    number(turn, phase, outcome);
}

/// Where SETRANGE's piece ends in the new value.
fn range_end(cx: &Context<'_, '_>, offset: u64, piece: &[u8]) -> Result<usize, Error<'static>> {
    if piece.is_empty() {
        return Ok(0);
    }
    let end = offset.saturating_add(piece.len() as u64);
    if end > STRING_LEN_MAX {
        return Err(Error::STRING_TOO_LONG);
    }
    if end > cx.limits.value_max as u64 {
        cx.count_refusal(&Error::TOO_LARGE);
        return Err(Error::TOO_LARGE);
    }
    Ok(end as usize)
}

fn replace_range(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    range: Range<usize>,
    piece: &[u8],
) -> Result<i64, Error<'static>> {
    let decide = |found| {
        let (mut value, expiry, flags) = parts(found, range.end)?;
        value.resize(value.len().max(range.end), 0);
        value[range.clone()].copy_from_slice(piece);
        Ok(Decision::Become(Change {
            answer: value.len() as i64,
            value: Cow::Owned(value),
            expiry,
            flags,
            delta: None,
        }))
    };
    cx.named(Naming::As(Event::SetRange), |cx| {
        change(cx, key, CountAs::Store, decide)
    })
}

/// Value, expiry and flags of the item, or of a new one if there is none. The value has room for `len` bytes.
fn parts(found: Option<Found>, len: usize) -> Result<(Vec<u8>, Expiry, u32), Error<'static>> {
    let (value, expiry, flags) = match found {
        Some(Found { item, value }) => (value, item.expiry, item.flags),
        None => (Content::Copied(Vec::new()), Expiry::Never, 0),
    };
    Ok((value.copy(len)?, expiry, flags))
}

/// True for a value that is far too long for a number: it is not copied.
fn is_long(found: &Option<Found>) -> bool {
    matches!(found, Some(found) if matches!(found.value, Content::Pinned(_)))
}

/// Adds to a number, or to 0 if there is none.
fn add(cx: &mut Context<'_, '_>, key: &[u8], by: i64) -> Result<i64, Error<'static>> {
    let as_what = CountAs::Delta { is_down: by < 0 };
    let decide = |found: Option<Found>| {
        let absent = found.is_none();
        if is_long(&found) {
            return Err(Error::NOT_INTEGER);
        }
        let (value, expiry, flags) = parts(found, 0)?;
        let number = match absent {
            true => 0,
            false => integer(&value).ok_or(Error::NOT_INTEGER)?,
        };
        let sum = number.checked_add(by).ok_or(Error::OVERFLOW)?;
        Ok(Decision::Become(Change {
            value: Cow::Owned(sum.to_string().into_bytes()),
            expiry,
            flags,
            delta: delta(number, by),
            answer: sum,
        }))
    };
    cx.named(Naming::As(Event::IncrBy), |cx| {
        change(cx, key, as_what, decide)
    })
}

/// The change as the engine's own, which knows no numbers below 0.
fn delta(number: i64, by: i64) -> Option<Delta> {
    let is_known = number >= 0 && number.checked_add(by)? >= 0;
    is_known.then(|| Delta {
        down: by < 0,
        ..Delta::up(by.unsigned_abs())
    })
}

fn increment_decimal(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    by: Decimal,
) -> Result<Vec<u8>, Error<'static>> {
    let is_down = by.is_negative();
    let decide = |found: Option<Found>| {
        let absent = found.is_none();
        if is_long(&found) {
            return Err(Error::NOT_FLOAT);
        }
        let (value, expiry, flags) = parts(found, 0)?;
        let number = match absent {
            true => by,
            false => Decimal::parse(&value)
                .ok_or(Error::NOT_FLOAT)?
                .checked_add(by)
                .ok_or(Error::NOT_FINITE)?,
        };
        let mut text = Vec::new();
        number.write(&mut text);
        Ok(Decision::Become(Change {
            value: Cow::Owned(text.clone()),
            expiry,
            flags,
            delta: None,
            answer: text,
        }))
    };
    cx.named(Naming::As(Event::IncrByFloat), |cx| {
        change(cx, key, CountAs::Delta { is_down }, decide)
    })
}

fn ttl(cx: &Context<'_, '_>, found: Option<Item>, form: ExpiryForm) -> i64 {
    match found {
        Some(item) => expiry::shown(item.expiry, form, &cx.shared.clock),
        None => -2,
    }
}
