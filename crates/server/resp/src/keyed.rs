//! The parsers of commands about keys that Redis got late, and of those that take a value from one key to another:
//! DELIFEQ, DELEX, DIGEST, MSETEX, RENAME, COPY, DUMP, RESTORE.

use nuthatch_protocol::Limits;

use crate::arguments::{Arguments, Source, Stop};
use crate::command::{Copying, Lifetime, Moment, Restore, SetAll, StoreCondition, ValueCommand};
use crate::conditions::{Comparison, Kind, Pattern};
use crate::error::Error;
use crate::names::{Entry, NAME_LEN_MAX, Verb, small};
use crate::number::integer;
use crate::strings::options_of_many;

/// Bytes of a DUMP beside the value's: its type, the length, the footer.
pub const DUMP_OVERHEAD_MAX: usize = 32;

/// The command of `entry`, whose key was taken.
pub(super) fn parse<'a>(
    entry: Entry,
    key: &'a [u8],
    arguments: &mut impl Source<'a>,
    limits: &Limits,
) -> Result<ValueCommand<'a>, Stop<'a>> {
    Ok(match entry.verb {
        Verb::DelIfEq => ValueCommand::DelIf {
            key,
            when: Some(Comparison {
                with: Pattern::Value(arguments.next()?),
                equal: true,
            }),
        },
        Verb::DelEx => ValueCommand::DelIf {
            key,
            when: condition(entry.name, arguments)?,
        },
        Verb::Digest => ValueCommand::Digest { key },
        Verb::Rename | Verb::RenameNx => ValueCommand::Rename {
            key,
            to: arguments.key()?,
            only_absent: entry.verb == Verb::RenameNx,
        },
        Verb::Copy => ValueCommand::Copy(copying(key, arguments)?),
        Verb::Dump => ValueCommand::Dump { key },
        Verb::Restore => ValueCommand::Restore(restore(key, arguments, limits)?),
        // All others of a request were understood before.
        _ => return Err(Error::NotHere(entry.name).into()),
    })
}

/// DELEX's condition, if it has one.
fn condition<'a>(
    name: &'static str,
    arguments: &mut impl Source<'a>,
) -> Result<Option<Comparison<'a>>, Stop<'a>> {
    match arguments.left() {
        0 => return Ok(None),
        2 => {}
        _ => return Err(Error::Arity(name).into()),
    }
    let mut room = [0; NAME_LEN_MAX];
    let kind = Kind::named(small(arguments.next()?, &mut room));
    let argument = arguments.next()?;
    let kind = kind.ok_or(Error::CONDITION)?;
    Ok(Some(kind.with(argument)?))
}

/// COPY behind its first key.
fn copying<'a>(key: &'a [u8], arguments: &mut impl Source<'a>) -> Result<Copying<'a>, Stop<'a>> {
    let mut copying = Copying {
        key,
        to: arguments.key()?,
        database: None,
        replace: false,
    };
    while arguments.left() > 0 {
        let mut room = [0; NAME_LEN_MAX];
        match small(arguments.next()?, &mut room) {
            b"replace" => copying.replace = true,
            b"db" if arguments.left() > 0 => match arguments.integer()? {
                number if i32::try_from(number).is_err() => return Err(Error::INT_RANGE.into()),
                number => copying.database = Some(number),
            },
            _ => return Err(Error::SYNTAX.into()),
        }
    }
    Ok(copying)
}

/// RESTORE behind its key. How long the item was idle, and how often it was used, is checked and not kept.
fn restore<'a>(
    key: &'a [u8],
    arguments: &mut impl Source<'a>,
    limits: &Limits,
) -> Result<Restore<'a>, Stop<'a>> {
    let written = arguments.next()?;
    let dump = arguments.piece(limits.value_max + DUMP_OVERHEAD_MAX)?;
    let (mut replace, mut absolute) = (false, false);
    let (mut idle, mut frequency) = (false, false);
    while arguments.left() > 0 {
        let mut room = [0; NAME_LEN_MAX];
        match small(arguments.next()?, &mut room) {
            b"replace" => replace = true,
            b"absttl" => absolute = true,
            b"idletime" if arguments.left() > 0 && !frequency => {
                idle = true;
                if arguments.integer()? < 0 {
                    return Err(Error::IDLETIME.into());
                }
            }
            b"freq" if arguments.left() > 0 && !idle => {
                frequency = true;
                if !(0..=255).contains(&arguments.integer()?) {
                    return Err(Error::FREQ.into());
                }
            }
            _ => return Err(Error::SYNTAX.into()),
        }
    }
    let lifetime = match integer(written).ok_or(Error::NOT_INTEGER)? {
        ..0 => return Err(Error::TTL_NEGATIVE.into()),
        0 => Lifetime::Forever,
        millis if absolute => Lifetime::Until(Moment::At(millis)),
        millis => Lifetime::Until(Moment::In(millis)),
    };
    Ok(Restore {
        key,
        dump,
        lifetime,
        replace,
    })
}

/// MSETEX.
pub(super) fn set_all<'a>(arguments: &mut Arguments<'a>) -> Result<ValueCommand<'a>, Stop<'a>> {
    let count = integer(arguments.next()?).and_then(|count| u32::try_from(count).ok());
    let count = count.filter(|count| (1..=i32::MAX as u32 / 2).contains(count));
    let words = 2 * count.ok_or(Error::NUMKEYS)?;
    if words > arguments.left {
        return Err(Error::SYNTAX.into());
    }
    let pairs = arguments.some(words)?;
    let (lifetime, when) = options_of_many("msetex", arguments)?;
    Ok(ValueCommand::SetAll(SetAll {
        pairs,
        lifetime,
        when,
    }))
}

/// MSETNX: the same with one of MSETEX's options.
pub(super) fn set_all_absent<'a>(
    arguments: &mut Arguments<'a>,
) -> Result<ValueCommand<'a>, Stop<'a>> {
    Ok(ValueCommand::SetAll(SetAll {
        pairs: arguments.values()?,
        lifetime: Lifetime::Forever,
        when: StoreCondition::Absent,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{refused, value};

    #[test]
    fn a_removal_may_have_a_condition() {
        let condition = |line| match value(line) {
            ValueCommand::DelIf { when, .. } => when.map(|when| (when.with, when.equal)),
            other => panic!("{other:?}"),
        };
        let written = Pattern::Value(b"v");
        assert_eq!(condition("DELIFEQ k v"), Some((written, true)));
        assert_eq!(condition("DELEX k"), None);
        assert_eq!(condition("delex k ifne v"), Some((written, false)));
        let digest = Pattern::Digest(0xab);
        assert_eq!(
            condition("DELEX k IFDEQ 00000000000000AB"),
            Some((digest, true))
        );
        for (line, words) in [
            (
                "DELEX k IFEQ",
                "ERR wrong number of arguments for 'delex' command",
            ),
            (
                "DELEX k IF v",
                "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
            ),
            (
                "DELEX k IFDNE ab",
                "ERR digest must be exactly 16 hexadecimal characters",
            ),
        ] {
            assert_eq!(refused(line), format!("-{words}\r\n"));
        }
    }

    #[test]
    fn several_keys_have_options_behind_their_number_of_pairs() {
        let ValueCommand::SetAll(set) = value("MSETEX 2 a 1 nx 2 XX PX 5") else {
            panic!();
        };
        let words: Vec<_> = set.pairs.collect();
        assert_eq!(words, [&b"a"[..], b"1", b"nx", b"2"]);
        assert_eq!(set.when, StoreCondition::Present);
        assert_eq!(set.lifetime, Lifetime::Until(Moment::In(5)));
        for (line, words) in [
            ("MSETEX 0 a 1", "invalid numkeys value or out of range"),
            ("MSETEX x a 1", "invalid numkeys value or out of range"),
            ("MSETEX 2 a 1", "syntax error"),
            ("MSETEX 1 a 1 GET", "syntax error"),
            ("MSETEX 1 a 1 IFEQ 1", "syntax error"),
            (
                "MSETEX 1 a 1 EX 0",
                "invalid expire time in 'msetex' command",
            ),
        ] {
            assert_eq!(refused(line), format!("-ERR {words}\r\n"));
        }
    }

    #[test]
    fn a_dump_has_a_lifetime_and_options() {
        let ValueCommand::Restore(restore) = value("RESTORE k 0 bytes REPLACE IDLETIME 5") else {
            panic!();
        };
        assert_eq!((restore.dump, restore.replace), (&b"bytes"[..], true));
        assert_eq!(restore.lifetime, Lifetime::Forever);
        for (line, words) in [
            ("RESTORE k -1 x", "Invalid TTL value, must be >= 0"),
            ("RESTORE k 0 x IDLETIME 1 FREQ 1", "syntax error"),
            (
                "RESTORE k 0 x FREQ 256",
                "Invalid FREQ value, must be >= 0 and <= 255",
            ),
            ("COPY a b DB", "syntax error"),
        ] {
            assert_eq!(refused(line), format!("-ERR {words}\r\n"));
        }
    }
}
