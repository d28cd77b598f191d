//! Scripts. There is no Lua here: the server knows the scripts of a few clients by the SHA-1 of their text, and
//! executes each as one operation on one key. The known scripts always exist, loaded or not: EVALSHA answers as Redis
//! would after any client had loaded the script, and loading takes no memory.

use sha1_smol::Sha1;

use crate::command::Limits;

use super::arguments::{Arguments, Stop};
use super::command::{
    Command, Lifetime, LockChange, Moment, Owned, Scripts, SetAnswer, StoreCondition,
};
use super::error::Error;
use super::names::Verb;
use super::number::integer;
use super::strings::{Unit, lifetime, plain, span};

/// A known script.
struct KnownScript {
    /// The SHA-1 of its exact text.
    name: &'static str,
    /// Bytes of its text.
    len: usize,
    action: ScriptAction,
}

/// The effect of a script on its key.
#[derive(Clone, Copy)]
enum ScriptAction {
    /// Adds the 1st argument to a number, if there is one.
    IncrementPresent,
    /// Adds the 1st argument to a number.
    Increment,
    /// Stores the 1st argument for as many seconds as the 2nd says, if there is no item.
    Add,
    /// Removes a value that is the 1st argument.
    Release,
    /// Extends the expiry of a value that is the 1st argument by as many milliseconds as the 2nd says. Unless the 3rd
    /// is 0, they count from now.
    Extend,
    /// Sets the expiry of a value that is the 1st argument to as many milliseconds from now as the 2nd says.
    Reacquire,
}

/// All of them. To add one, let it touch one key only.
const KNOWN: [KnownScript; 9] = [
    // django-redis: incr and decr, without ignore_key_check and with it.
    known(
        "f4a7da3e5d8ea3b46642af08427151cae0190400",
        240,
        ScriptAction::IncrementPresent,
    ),
    known(
        "4d15273b16b10c15e1d9202cbe93c959ab7d250b",
        87,
        ScriptAction::Increment,
    ),
    // redis-py: Lock's release, extend and reacquire.
    known(
        "c3f8721cbb97f72bc19e972846bd7aaf91901658",
        185,
        ScriptAction::Release,
    ),
    known(
        "a4e8783852e6b949f9ef3a97212805108459a890",
        503,
        ScriptAction::Extend,
    ),
    known(
        "1cac51482acf5858da00f6d685d68f886cd6b6b2",
        198,
        ScriptAction::Reacquire,
    ),
    // Laravel: the cache's add, and its locks' release.
    known(
        "a08c9c69b7c07ae2485190873b90d128a23e502d",
        85,
        ScriptAction::Add,
    ),
    known(
        "647c65a442733a1aa440f99908d249d13b4d6c4a",
        103,
        ScriptAction::Release,
    ),
    // The same release in one line, with either kind of quotes, as many programs use it.
    known(
        "b70c2384248f88e6b75b9f89241a180f856ad852",
        95,
        ScriptAction::Release,
    ),
    known(
        "e9f69f2beb755be68b5e456ee2ce9aadfbc4ebf4",
        97,
        ScriptAction::Release,
    ),
];

const fn known(name: &'static str, len: usize, action: ScriptAction) -> KnownScript {
    KnownScript { name, len, action }
}

fn of_text(text: &[u8]) -> Result<&'static KnownScript, Error<'static>> {
    // A text of another length is not hashed: no client can make the server compute a digest of 64 KiB.
    let is_candidate = KNOWN.iter().any(|known| known.len == text.len());
    is_candidate
        .then(|| named(sha1(text).as_bytes()))
        .flatten()
        .ok_or(Error::SCRIPT_UNKNOWN)
}

fn of_name(name: &[u8]) -> Result<&'static KnownScript, Error<'static>> {
    named(name).ok_or(Error::NO_SCRIPT)
}

/// The script of this name, its digits in either case.
fn named(name: &[u8]) -> Option<&'static KnownScript> {
    let mut known = KNOWN.iter();
    known.find(|known| known.name.as_bytes().eq_ignore_ascii_case(name))
}

/// The SHA-1 of a text, as Redis names scripts.
fn sha1(text: &[u8]) -> String {
    Sha1::from(text).digest().to_string()
}

/// True if a script of this name can be run.
pub fn is_script(name: &[u8]) -> bool {
    of_name(name).is_ok()
}

/// EVAL and EVALSHA: the command that is the script's effect.
pub(super) fn parse<'a>(
    verb: Verb,
    key: &mut &'a [u8],
    arguments: &mut Arguments<'a>,
    limits: &Limits,
) -> Result<Command<'a>, Stop<'a>> {
    let script = arguments.next()?;
    let script = match verb {
        Verb::Eval => of_text(script)?,
        _ => of_name(script)?,
    };
    let keys = arguments.integer()?;
    if keys > i64::from(arguments.left) {
        return Err(Error::SCRIPT_KEYS_TOO_MANY.into());
    }
    if keys < 0 {
        return Err(Error::SCRIPT_KEYS_NEGATIVE.into());
    }
    if keys != 1 || arguments.left - 1 < least(script.action) {
        return Err(Error::SCRIPT_ARGUMENTS.into());
    }
    *key = arguments.key()?;
    let command = command(script.action, key, arguments, limits)?;
    // As in Redis, further arguments are ignored.
    arguments.values()?;
    Ok(command)
}

/// Arguments behind the key without which a script fails.
fn least(action: ScriptAction) -> u32 {
    match action {
        ScriptAction::IncrementPresent | ScriptAction::Increment | ScriptAction::Release => 1,
        ScriptAction::Add | ScriptAction::Reacquire => 2,
        ScriptAction::Extend => 3,
    }
}

fn command<'a>(
    action: ScriptAction,
    key: &'a [u8],
    arguments: &mut Arguments<'a>,
    limits: &Limits,
) -> Result<Command<'a>, Stop<'a>> {
    match action {
        ScriptAction::IncrementPresent => {
            let by = arguments.integer()?;
            return Ok(Command::IncrementPresent { key, by });
        }
        ScriptAction::Increment => {
            let by = arguments.integer()?;
            return Ok(Command::Increment { key, by });
        }
        ScriptAction::Add => {
            let mut set = plain(key, arguments.value(limits.value_max)?);
            let moment = lifetime("setex", Unit::Seconds, false, arguments.next()?)?;
            (set.when, set.answer) = (StoreCondition::Absent, SetAnswer::Status);
            set.lifetime = Lifetime::Until(moment);
            return Ok(Command::Set(set));
        }
        ScriptAction::Release | ScriptAction::Extend | ScriptAction::Reacquire => {}
    }
    let token = arguments.next()?;
    let then = match action {
        ScriptAction::Extend => {
            let millis = millis(arguments)?;
            match arguments.next()? {
                b"0" => LockChange::Longer { millis },
                _ => LockChange::Until(Moment::In(millis)),
            }
        }
        ScriptAction::Reacquire => LockChange::Until(Moment::In(millis(arguments)?)),
        _ => LockChange::NoMore,
    };
    Ok(Command::Owned(Owned { key, token, then }))
}

/// A time as PEXPIRE takes it.
fn millis<'a>(arguments: &mut Arguments<'a>) -> Result<i64, Stop<'a>> {
    let millis = integer(arguments.next()?).ok_or(Error::NOT_INTEGER)?;
    Ok(span(millis).ok_or(Error::Expiry("pexpire"))?)
}

/// SCRIPT LOAD: the name of a known script's text.
pub(super) fn load(text: &[u8]) -> Result<Scripts<'_>, Error<'static>> {
    Ok(Scripts::Load(of_text(text)?.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::testing::{accept, refused};

    fn eval(action: &str, rest: &str) -> String {
        let name = match action {
            "incr" => KNOWN[0].name,
            "extend" => KNOWN[3].name,
            "add" => KNOWN[5].name,
            _ => KNOWN[6].name,
        };
        format!("EVALSHA {name} {rest}")
    }

    #[test]
    fn scripts_are_what_they_do() {
        let (key, by) = (&b"k"[..], -3);
        let expected = Command::IncrementPresent { key, by };
        assert_eq!(accept(&eval("incr", "1 k -3")), expected);
        assert_eq!(accept(&eval("incr", "1 k -3 more")), expected);
        let added = Command::Set(super::super::command::Set {
            when: StoreCondition::Absent,
            lifetime: Lifetime::Until(Moment::In(9000)),
            ..plain(b"k", b"v")
        });
        assert_eq!(accept(&eval("add", "1 k v 9")), added);
        let owned = |then| {
            Command::Owned(Owned {
                key,
                token: b"me",
                then,
            })
        };
        assert_eq!(
            accept(&eval("release", "1 k me")),
            owned(LockChange::NoMore)
        );
        let millis = 50;
        let longer = LockChange::Longer { millis };
        assert_eq!(accept(&eval("extend", "1 k me 50 0")), owned(longer));
        let until = LockChange::Until(Moment::In(50));
        assert_eq!(accept(&eval("extend", "1 k me 50 1")), owned(until));
    }

    #[test]
    fn what_is_no_script_is_refused() {
        for (line, words) in [
            (
                eval("incr", "2 k"),
                "ERR Number of keys can't be greater than number of args",
            ),
            (eval("incr", "-1 k"), "ERR Number of keys can't be negative"),
            (
                eval("incr", "x k"),
                "ERR value is not an integer or out of range",
            ),
            (
                eval("add", "1 k v 0"),
                "ERR invalid expire time in 'setex' command",
            ),
            (
                String::from("EVALSHA abc 1 k"),
                "NOSCRIPT No matching script. Please use EVAL.",
            ),
        ] {
            assert_eq!(refused(&line), format!("-{words}\r\n"), "{line}");
        }
        for line in [
            eval("incr", "1 k"),
            eval("incr", "0 k"),
            eval("extend", "1 k me 5"),
        ] {
            let words = "-ERR this script takes one key and its own arguments\r\n";
            assert_eq!(refused(&line), words, "{line}");
        }
        let words = refused("EVAL return 0");
        assert!(
            words.starts_with("-ERR this script is not known"),
            "{words}"
        );
        assert!(refused("SCRIPT LOAD return").starts_with("-ERR this script is not known"));
    }

    #[test]
    fn a_text_is_known_by_its_digest_alone() {
        assert_eq!(sha1(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert!(is_script(KNOWN[0].name.to_uppercase().as_bytes()));
        assert!(!is_script(b"") && !is_script(&[b'g'; 40]) && !is_script(&[b'0'; 42]));
        for known in &KNOWN {
            assert!(is_script(known.name.as_bytes()) && known.name.len() == 40);
            assert!(of_text(&vec![b' '; known.len]).is_err());
        }
    }
}
