//! The parsers of EVAL, EVALSHA and SCRIPT. What scripts are is not this crate's subject.

use nuthatch_protocol::Limits;

use crate::arguments::{Arguments, Source, Stop};
use crate::command::{Eval, ScriptName, ValueCommand};
use crate::error::Error;
use crate::names::Verb;

/// EVAL and EVALSHA, and the same for scripts that only read.
pub(super) fn parse<'a>(
    verb: Verb,
    key: &mut &'a [u8],
    arguments: &mut Arguments<'a>,
    limits: &Limits,
) -> Result<ValueCommand<'a>, Stop<'a>> {
    let script = arguments.next()?;
    let script = match verb {
        Verb::Eval | Verb::EvalRo => ScriptName::Text(script),
        _ => ScriptName::Sha1(script),
    };
    let keys = arguments.integer()?;
    if keys > i64::from(arguments.left) {
        return Err(Error::SCRIPT_KEYS_TOO_MANY.into());
    }
    if keys < 0 {
        return Err(Error::SCRIPT_KEYS_NEGATIVE.into());
    }
    let has_key = keys == 1;
    if has_key {
        *key = arguments.key()?;
    }
    Ok(ValueCommand::Eval(Eval {
        script,
        key: has_key.then_some(*key),
        keys: keys as usize,
        read_only: matches!(verb, Verb::EvalRo | Verb::EvalShaRo),
        arguments: arguments.values_of_script(limits.value_max)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::testing::{refused, value};
    use crate::{Command, Parsed, emptied};

    #[test]
    fn a_script_has_a_key_and_arguments() {
        let ValueCommand::Eval(eval) = value("EVAL return 1 k a b") else {
            panic!();
        };
        let words: Vec<_> = eval.arguments.collect();
        assert_eq!(
            (eval.script, eval.key),
            (ScriptName::Text(b"return"), Some(&b"k"[..]))
        );
        assert_eq!(words, [b"a", b"b"]);
        let ValueCommand::Eval(eval) = value("evalsha abc 2 k l a") else {
            panic!();
        };
        assert_eq!((eval.script, eval.key), (ScriptName::Sha1(b"abc"), None));
    }

    #[test]
    fn the_number_of_keys_is_checked() {
        for (line, words) in [
            (
                "EVAL x 2 k",
                "ERR Number of keys can't be greater than number of args",
            ),
            ("EVAL x -1 k", "ERR Number of keys can't be negative"),
            ("EVAL x x k", "ERR value is not an integer or out of range"),
        ] {
            assert_eq!(refused(line), format!("-{words}\r\n"), "{line}");
        }
        let long = format!("EVAL x 1 {}", "k".repeat(251));
        assert_eq!(refused(&long), "-ERR key is longer than 250 bytes\r\n");
    }

    /// A value that a script stores is one of its arguments.
    #[test]
    fn one_argument_may_be_as_long_as_a_value() {
        let limits = Limits::of_values(1 << 20);
        let head = b"*6\r\n$4\r\nEVAL\r\n$1\r\nx\r\n$1\r\n1\r\n$1\r\nk\r\n$2\r\nab\r\n";
        let long = [&b"$100000\r\n"[..], &[b'v'; 100_000], b"\r\n"].concat();
        let whole = [&head[..], &long].concat();
        let Parsed::Command {
            command: Command::Value(ValueCommand::Eval(eval)),
            consumed,
        } = parse(&whole, &limits)
        else {
            panic!();
        };
        assert_eq!(consumed, whole.len());
        let lengths: Vec<_> = eval.arguments.map(<[u8]>::len).collect();
        assert_eq!(lengths, [2, 100_000]);
        // It may be taken piece by piece.
        let front = &whole[..head.len() + 50];
        let Parsed::Body(body) = parse(front, &limits) else {
            panic!();
        };
        assert_eq!(
            (body.value_len, body.whole, body.key),
            (100_000, false, &b"k"[..])
        );
        let complete = [&emptied(front, &body)[..], b"\r\n"].concat();
        let Parsed::Command {
            command: Command::Value(ValueCommand::Eval(eval)),
            ..
        } = parse(&complete, &limits)
        else {
            panic!();
        };
        assert_eq!(eval.arguments.position(body.line), Some(1));
        // A second one is not.
        let two = [&head[..head.len() - 8], &long, &long].concat();
        let Parsed::Refused(refusal) = parse(&two, &limits) else {
            panic!();
        };
        assert_eq!(refusal.error, Error::ARGUMENTS_TOO_LONG);
        let too_large = format!("${}\r\n", limits.value_max + 1);
        let too_large = [&head[..], too_large.as_bytes()].concat();
        assert!(
            matches!(parse(&too_large, &limits), Parsed::Refused(it) if it.error == Error::TOO_LARGE)
        );
    }
}
