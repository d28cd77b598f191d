//! The parser of commands whose words are apart already, as a script passes them. It copies none of them.

use nuthatch_protocol::Limits;

use crate::arguments::{ARGUMENTS_LEN_MAX, Source, Stop, check_key_len};
use crate::command::{Command, ValueCommand};
use crate::error::Error;
use crate::names::{Named, Verb, named};
use crate::parse::{Understood, counted};
use crate::{many, strings};

/// Parses a command about plain values. `None` if these words are none.
pub fn parse_words<'a>(
    words: &[&'a [u8]],
    limits: &Limits,
) -> Result<Option<Understood<'a>>, Error<'a>> {
    match understood(words, limits) {
        Ok(understood) => Ok(Some(understood)),
        Err(Stop::Refused(Error::NotHere(_))) => Ok(None),
        Err(Stop::Refused(error) | Stop::Broken(error)) => Err(error),
        // All words are here.
        Err(Stop::More(_) | Stop::Body { .. }) => Ok(None),
    }
}

fn understood<'a>(words: &[&'a [u8]], limits: &Limits) -> Result<Understood<'a>, Stop<'a>> {
    let Some((name, behind)) = words.split_first() else {
        return Err(Error::NotHere("").into());
    };
    let entry = match named(name) {
        Named::Known(entry) => counted(entry, words.len() as i64)?,
        Named::NotHere(name) => return Err(Error::NotHere(name).into()),
        Named::Unknown => return Err(Error::NotHere("").into()),
    };
    if let Some(many) = many::verb(entry.verb) {
        return Ok(Understood::Many(many));
    }
    if behind.is_empty() {
        // It needs no key.
        return Err(Error::NotHere(entry.name).into());
    }
    let mut words = Words {
        left: behind,
        key_max: limits.key_max,
    };
    let key = words.key()?;
    Ok(Understood::Command(Command::Value(match entry.verb {
        Verb::Get => ValueCommand::Get { key },
        _ => strings::parse(entry, key, &mut words, limits)?,
    })))
}

/// The words that are not taken yet.
struct Words<'w, 'a> {
    left: &'w [&'a [u8]],
    /// The longest key.
    key_max: usize,
}

impl<'a> Words<'_, 'a> {
    fn take(&mut self, len_max: usize, error: Error<'a>) -> Result<&'a [u8], Stop<'a>> {
        match self.left.split_first() {
            Some((word, left)) if word.len() <= len_max => {
                self.left = left;
                Ok(word)
            }
            Some(_) => Err(error.into()),
            // No command takes more than it was counted to have.
            None => Err(Error::SYNTAX.into()),
        }
    }
}

impl<'a> Source<'a> for Words<'_, 'a> {
    fn left(&self) -> u32 {
        self.left.len() as u32
    }

    fn next(&mut self) -> Result<&'a [u8], Stop<'a>> {
        self.take(ARGUMENTS_LEN_MAX, Error::ARGUMENTS_TOO_LONG)
    }

    fn key(&mut self) -> Result<&'a [u8], Stop<'a>> {
        let key = self.take(usize::MAX, Error::KeyTooLong(self.key_max))?;
        check_key_len(key.len(), self.key_max)?;
        Ok(key)
    }

    fn value(&mut self, value_max: usize) -> Result<&'a [u8], Stop<'a>> {
        self.take(value_max, Error::TOO_LARGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parsed, parse};

    const LIMITS: Limits = Limits::of_values(8);

    /// Words mean what the request of these words means.
    #[test]
    fn words_are_understood_as_requests_are() {
        for line in [
            "get k",
            "GET",
            "get k l",
            "set k v",
            "set k v px 5 nx",
            "set k v ex",
            "set k v ex x",
            "set k v y",
            "set k 123456789",
            "setex k 5 v",
            "setex k 0 v",
            "incrby k x",
            "incrbyfloat k 1.5",
            "expire k 5 gt",
            "expire k 5 gt lt",
            "expire k 5 z",
            "getex k persist",
            "del k",
            "exists k l",
            "ttl k",
            "type k",
            "persist k",
            "setrange k 0 v",
        ] {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let mut request = format!("*{}\r\n", words.len());
            for word in line.split(' ') {
                request += &format!("${}\r\n{word}\r\n", word.len());
            }
            let expected = match parse(request.as_bytes(), &LIMITS) {
                Parsed::Command { command, .. } => Ok(Some(Understood::Command(command))),
                Parsed::Many { verb, .. } => Ok(Some(Understood::Many(verb))),
                Parsed::Refused(refusal) => Err(refusal.error),
                other => panic!("{line}: {other:?}"),
            };
            assert_eq!(parse_words(&words, &LIMITS), expected, "{line}");
        }
    }

    #[test]
    fn other_words_are_no_command_about_values() {
        for line in [
            "nothing k",
            "lpush k v",
            "config get k",
            "eval x 0",
            "keys *",
        ] {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            assert_eq!(parse_words(&words, &LIMITS), Ok(None), "{line}");
        }
        assert_eq!(parse_words(&[], &LIMITS), Ok(None));
        let long = vec![b'n'; ARGUMENTS_LEN_MAX + 1];
        let error = parse_words(&[b"expire", b"k", &long], &LIMITS);
        assert_eq!(error, Err(Error::ARGUMENTS_TOO_LONG));
    }
}
