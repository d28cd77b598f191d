//! The parsers of Redis' commands about one key and its value.

use nuthatch_protocol::Limits;

use crate::arguments::{Source, Stop};
use crate::command::{
    ExpireCondition, ExpiryForm, Lifetime, Moment, Set, SetAnswer, StoreCondition, ValueCommand,
};
use crate::conditions;
use crate::error::Error;
use crate::keyed;
use crate::names::{Entry, NAME_LEN_MAX, Verb, small};
use crate::number::{Decimal, integer};

/// The longest time from now, in milliseconds, whose moment does not overflow, whatever the present time is.
const SPAN_MAX: i64 = i64::MAX - (1 << 41);

/// The command of `entry`, whose key was taken.
#[inline]
pub(super) fn parse<'a>(
    entry: Entry,
    key: &'a [u8],
    arguments: &mut impl Source<'a>,
    limits: &Limits,
) -> Result<ValueCommand<'a>, Stop<'a>> {
    Ok(match entry.verb {
        Verb::Set => {
            let value = arguments.value(limits.value_max)?;
            ValueCommand::Set(set(entry.name, key, value, arguments)?)
        }
        Verb::SetEx | Verb::PsetEx => {
            let unit = if entry.verb == Verb::SetEx {
                Unit::Seconds
            } else {
                Unit::Millis
            };
            let written = arguments.next()?;
            let value = arguments.value(limits.value_max)?;
            let moment = lifetime(entry.name, unit, false, written)?;
            ValueCommand::Set(Set {
                lifetime: Lifetime::Until(moment),
                ..plain(key, value)
            })
        }
        Verb::SetNx => ValueCommand::Set(Set {
            when: StoreCondition::Absent,
            answer: SetAnswer::Number,
            ..plain(key, arguments.value(limits.value_max)?)
        }),
        Verb::GetSet => ValueCommand::Set(Set {
            answer: SetAnswer::Old,
            ..plain(key, arguments.value(limits.value_max)?)
        }),
        Verb::Append => ValueCommand::Append {
            key,
            value: arguments.value(limits.value_max)?,
        },
        Verb::SetRange => set_range(key, arguments, limits)?,
        Verb::GetEx => ValueCommand::GetEx {
            key,
            lifetime: options(entry.name, arguments, Options::of(Of::GetEx))?.lifetime,
        },
        Verb::GetDel => ValueCommand::GetDel { key },
        Verb::StrLen => ValueCommand::StrLen { key },
        Verb::GetRange => ValueCommand::GetRange {
            key,
            start: arguments.integer()?,
            end: arguments.integer()?,
        },
        Verb::Incr => ValueCommand::IncrBy { key, by: 1 },
        Verb::Decr => ValueCommand::IncrBy { key, by: -1 },
        Verb::IncrBy => ValueCommand::IncrBy {
            key,
            by: arguments.integer()?,
        },
        Verb::DecrBy => ValueCommand::IncrBy {
            key,
            by: arguments
                .integer()?
                .checked_neg()
                .ok_or(Error::DECREMENT_OVERFLOW)?,
        },
        Verb::IncrByFloat => ValueCommand::IncrByFloat {
            key,
            by: decimal(arguments.next()?)?,
        },
        Verb::Expire | Verb::Pexpire | Verb::ExpireAt | Verb::PexpireAt => {
            expire(entry, key, arguments)?
        }
        Verb::Ttl => ttl(key, false, false),
        Verb::Pttl => ttl(key, false, true),
        Verb::ExpireTime => ttl(key, true, false),
        Verb::PexpireTime => ttl(key, true, true),
        Verb::Persist => ValueCommand::Persist { key },
        Verb::Type => ValueCommand::Type { key },
        _ => keyed::parse(entry, key, arguments, limits)?,
    })
}

fn plain<'a>(key: &'a [u8], value: &'a [u8]) -> Set<'a> {
    Set {
        key,
        value,
        when: StoreCondition::Always,
        lifetime: Lifetime::Forever,
        answer: SetAnswer::Status,
    }
}

fn ttl(key: &[u8], absolute: bool, millis: bool) -> ValueCommand<'_> {
    let form = ExpiryForm { absolute, millis };
    ValueCommand::Ttl { key, form }
}

/// The number that INCRBYFLOAT adds. Infinity is a valid number, but gives no valid sum.
fn decimal(text: &[u8]) -> Result<Decimal, Error<'static>> {
    let magnitude = match text {
        [b'-' | b'+', magnitude @ ..] => magnitude,
        magnitude => magnitude,
    };
    let is_infinite = [&b"inf"[..], b"infinity"]
        .iter()
        .any(|word| magnitude.eq_ignore_ascii_case(word));
    match Decimal::parse(text) {
        Some(number) => Ok(number),
        None if is_infinite => Err(Error::NOT_FINITE),
        None => Err(Error::NOT_FLOAT),
    }
}

/// SET's options.
#[inline]
fn set<'a>(
    name: &'static str,
    key: &'a [u8],
    value: &'a [u8],
    arguments: &mut impl Source<'a>,
) -> Result<Set<'a>, Stop<'a>> {
    let mut set = plain(key, value);
    if arguments.left() > 0 {
        let options = options(name, arguments, Options::of(Of::Set))?;
        set.lifetime = options.lifetime;
        set.when = options.when;
        if options.old {
            set.answer = SetAnswer::Old;
        }
    }
    Ok(set)
}

fn set_range<'a>(
    key: &'a [u8],
    arguments: &mut impl Source<'a>,
    limits: &Limits,
) -> Result<ValueCommand<'a>, Stop<'a>> {
    let offset = arguments.integer()?;
    let value = arguments.piece(limits.value_max)?;
    let offset = u64::try_from(offset).map_err(|_| Error::OFFSET)?;
    Ok(ValueCommand::SetRange { key, offset, value })
}

/// The unit of an expiry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Millis,
}

impl Unit {
    fn millis(self, number: i64) -> Option<i64> {
        match self {
            Unit::Seconds => number.checked_mul(1000),
            Unit::Millis => Some(number),
        }
    }
}

/// The expiry of an item that a client stores or reads: it must be later than 1970, and later than now if it counts
/// from now.
fn lifetime<'a>(
    name: &'static str,
    unit: Unit,
    absolute: bool,
    written: &'a [u8],
) -> Result<Moment, Stop<'a>> {
    let number = integer(written).ok_or(Error::NOT_INTEGER)?;
    match unit.millis(number) {
        Some(millis @ 1..) if absolute => Ok(Moment::At(millis)),
        Some(millis @ 1..=SPAN_MAX) => Ok(Moment::In(millis)),
        _ => Err(Error::Expiry(name).into()),
    }
}

/// The command that has options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Set,
    GetEx,
    MsetEx,
}

/// The options of SET, GETEX and MSETEX.
struct Options<'a> {
    of: Of,
    when: StoreCondition<'a>,
    old: bool,
    lifetime: Lifetime,
}

impl<'a> Options<'a> {
    /// Those of a request that has none.
    fn of(of: Of) -> Self {
        Self {
            of,
            when: StoreCondition::Always,
            old: false,
            lifetime: match of {
                Of::GetEx => Lifetime::Keep,
                Of::Set | Of::MsetEx => Lifetime::Forever,
            },
        }
    }

    /// Takes another condition. False if it contradicts the one before it.
    fn require(&mut self, when: StoreCondition<'a>) -> bool {
        let before = std::mem::replace(&mut self.when, when);
        let is_same = std::mem::discriminant(&before) == std::mem::discriminant(&when);
        before == StoreCondition::Always || is_same && !matches!(when, StoreCondition::Compared(_))
    }
}

/// The options of MSETEX.
pub(super) fn options_of_many<'a>(
    name: &'static str,
    arguments: &mut impl Source<'a>,
) -> Result<(Lifetime, StoreCondition<'a>), Stop<'a>> {
    let options = options(name, arguments, Options::of(Of::MsetEx))?;
    Ok((options.lifetime, options.when))
}

/// Parses all options. As in Redis, the number of an expiry is parsed only after the options are known to fit together.
fn options<'a>(
    name: &'static str,
    arguments: &mut impl Source<'a>,
    mut options: Options<'a>,
) -> Result<Options<'a>, Stop<'a>> {
    let mut life: Option<&[u8]> = None;
    let mut expiry: Option<&[u8]> = None;
    let (mut syntax, mut wrong) = (false, None);
    // Take all arguments, so that a refused request is used up when its error is sent.
    while arguments.left() > 0 {
        let word = arguments.next()?;
        let mut room = [0; NAME_LEN_MAX];
        let option: &[u8] = match small(word, &mut room) {
            b"nx" if options.of != Of::GetEx => {
                syntax |= !options.require(StoreCondition::Absent);
                continue;
            }
            b"xx" if options.of != Of::GetEx => {
                syntax |= !options.require(StoreCondition::Present);
                continue;
            }
            b"get" if options.of == Of::Set => {
                options.old = true;
                continue;
            }
            b"keepttl" if options.of != Of::GetEx => b"keepttl",
            b"persist" if options.of == Of::GetEx => b"persist",
            b"ex" => b"ex",
            b"px" => b"px",
            b"exat" => b"exat",
            b"pxat" => b"pxat",
            word => {
                let kind = conditions::Kind::named(word).filter(|_| options.of == Of::Set);
                match kind {
                    Some(kind) if arguments.left() > 0 => match kind.with(arguments.next()?) {
                        Ok(when) => syntax |= !options.require(StoreCondition::Compared(when)),
                        Err(error) => wrong = Some(error),
                    },
                    _ => syntax = true,
                }
                continue;
            }
        };
        // The same option twice is allowed, a different one is not.
        syntax |= life.is_some_and(|before| before != option);
        life = Some(option);
        if !matches!(option, b"keepttl" | b"persist") {
            if arguments.left() == 0 {
                syntax = true;
            } else {
                expiry = Some(arguments.next()?);
            }
        }
    }
    if let Some(error) = syntax.then_some(Error::SYNTAX).or(wrong) {
        return Err(error.into());
    }
    let moment = |unit, absolute| lifetime(name, unit, absolute, expiry.unwrap_or_default());
    options.lifetime = match life {
        None => options.lifetime,
        Some(b"keepttl") => Lifetime::Keep,
        Some(b"persist") => Lifetime::Forever,
        Some(b"ex") => Lifetime::Until(moment(Unit::Seconds, false)?),
        Some(b"px") => Lifetime::Until(moment(Unit::Millis, false)?),
        Some(b"exat") => Lifetime::Until(moment(Unit::Seconds, true)?),
        Some(_) => Lifetime::Until(moment(Unit::Millis, true)?),
    };
    Ok(options)
}

/// EXPIRE and the like.
fn expire<'a>(
    entry: Entry,
    key: &'a [u8],
    arguments: &mut impl Source<'a>,
) -> Result<ValueCommand<'a>, Stop<'a>> {
    let written = arguments.next()?;
    let which = which(arguments)?;
    let absolute = matches!(entry.verb, Verb::ExpireAt | Verb::PexpireAt);
    let unit = if matches!(entry.verb, Verb::Expire | Verb::ExpireAt) {
        Unit::Seconds
    } else {
        Unit::Millis
    };
    let number = integer(written).ok_or(Error::NOT_INTEGER)?;
    let moment = match unit.millis(number) {
        Some(millis) if absolute => Moment::At(millis),
        Some(millis) if millis <= SPAN_MAX => Moment::In(millis),
        _ => return Err(Error::Expiry(entry.name).into()),
    };
    Ok(ValueCommand::Expire { key, moment, which })
}

/// EXPIRE's options.
fn which<'a>(arguments: &mut impl Source<'a>) -> Result<ExpireCondition, Stop<'a>> {
    let mut which = ExpireCondition::default();
    let mut unsupported = None;
    while arguments.left() > 0 {
        let word = arguments.next()?;
        let mut room = [0; NAME_LEN_MAX];
        match small(word, &mut room) {
            b"nx" => which.lasting = true,
            b"xx" => which.expiring = true,
            b"gt" => which.later = true,
            b"lt" => which.earlier = true,
            _ => {
                unsupported.get_or_insert(word);
            }
        }
    }
    if let Some(word) = unsupported {
        return Err(Error::Option(word).into());
    }
    if which.lasting && (which.expiring || which.later || which.earlier) {
        return Err(Error::EXPIRE_NX.into());
    }
    if which.later && which.earlier {
        return Err(Error::EXPIRE_GT_LT.into());
    }
    Ok(which)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{refused, value};

    fn set(line: &str) -> Set<'static> {
        match value(line) {
            ValueCommand::Set(set) => set,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sets_in_all_their_forms() {
        let plain = plain(b"k", b"v");
        let until = |moment| Lifetime::Until(moment);
        assert_eq!(set("SET k v"), plain);
        for (line, lifetime) in [
            ("set k v ex 10", until(Moment::In(10_000))),
            ("SET k v PX 10", until(Moment::In(10))),
            ("SET k v EXAT 10", until(Moment::At(10_000))),
            ("SET k v pxat 10", until(Moment::At(10))),
            ("SET k v EX 1 EX 2", until(Moment::In(2000))),
            ("SET k v KEEPTTL", Lifetime::Keep),
            ("SETEX k 10 v", until(Moment::In(10_000))),
            ("PSETEX k 10 v", until(Moment::In(10))),
        ] {
            assert_eq!(set(line), Set { lifetime, ..plain }, "{line}");
        }
        for (line, when, answer) in [
            ("SET k v NX", StoreCondition::Absent, SetAnswer::Status),
            ("SET k v XX GET", StoreCondition::Present, SetAnswer::Old),
            ("SETNX k v", StoreCondition::Absent, SetAnswer::Number),
            ("GETSET k v", StoreCondition::Always, SetAnswer::Old),
        ] {
            assert_eq!(
                set(line),
                Set {
                    when,
                    answer,
                    ..plain
                }
            );
        }
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        for line in [
            "SET k v NX XX",
            "SET k v EX 1 PX 1",
            "SET k v EX 1 KEEPTTL",
            "SET k v EX",
            "SET k v foo",
            "SET k v PERSIST",
            "SET k v EX abc foo",
            "GETEX k NX",
            "GETEX k KEEPTTL",
            "GETEX k EX 1 PERSIST",
        ] {
            assert_eq!(refused(line), "-ERR syntax error\r\n", "{line}");
        }
        for (line, name) in [
            ("SET k v EX 0", "set"),
            ("SET k v PX -1", "set"),
            ("SET k v EX 9223372036854775807", "set"),
            ("SET k v PX 9223372036854775807", "set"),
            ("SETEX k 0 v", "setex"),
            ("PSETEX k -5 v", "psetex"),
            ("GETEX k EXAT 0", "getex"),
            ("EXPIRE k 9223372036854775807", "expire"),
            ("PEXPIRE k 9223372036854775807", "pexpire"),
        ] {
            let words = format!("-ERR invalid expire time in '{name}' command\r\n");
            assert_eq!(refused(line), words, "{line}");
        }
    }

    #[test]
    fn numbers_are_integers() {
        for line in [
            "SET k v EX 1.5",
            "SETEX k x v",
            "INCRBY k 01",
            "DECRBY k x",
            "GETRANGE k 0 x",
            "SETRANGE k x v",
            "EXPIRE k x",
        ] {
            let words = "-ERR value is not an integer or out of range\r\n";
            assert_eq!(refused(line), words, "{line}");
        }
        let lowest = format!("DECRBY k {}", i64::MIN);
        assert_eq!(refused(&lowest), "-ERR decrement would overflow\r\n");
        assert_eq!(
            refused("SETRANGE k -1 v"),
            "-ERR offset is out of range\r\n"
        );
        assert_eq!(
            refused("INCRBYFLOAT k x"),
            "-ERR value is not a valid float\r\n"
        );
        let key = b"k";
        for (line, by) in [
            ("INCR k", 1),
            ("decr k", -1),
            ("INCRBY k -7", -7),
            ("DECRBY k 7", -7),
        ] {
            assert_eq!(value(line), ValueCommand::IncrBy { key, by });
        }
    }

    #[test]
    fn expire_says_which() {
        let ValueCommand::Expire { moment, which, .. } = value("PEXPIREAT k -5 xx GT") else {
            panic!();
        };
        assert_eq!(moment, Moment::At(-5));
        assert!(which.expiring && which.later && !which.earlier && !which.lasting);
        for (line, words) in [
            (
                "EXPIRE k 1 NX GT",
                "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n",
            ),
            (
                "EXPIRE k 1 LT GT",
                "-ERR GT and LT options at the same time are not compatible\r\n",
            ),
            ("EXPIRE k 1 foo", "-ERR Unsupported option foo\r\n"),
        ] {
            assert_eq!(refused(line), words);
        }
    }

    #[test]
    fn keys_have_1_to_250_bytes() {
        let long = format!("GET {}", "k".repeat(251));
        assert_eq!(refused(&long), "-ERR key is longer than 250 bytes\r\n");
        let longest = format!("STRLEN {}", "k".repeat(250));
        assert!(matches!(value(&longest), ValueCommand::StrLen { .. }));
        assert_eq!(refused("GET "), "-ERR key is empty\r\n");
    }
}
