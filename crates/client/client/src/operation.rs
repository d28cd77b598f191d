//! Operations: a request, and what its reply means.

use std::time::Duration;

use crate::key::Key;
use crate::lifetime::{delay, seconds, whole_seconds};
use crate::wire::{Code, Details, Left, Mode, Reply, Request, Want};
use crate::{Error, Keep, Options};

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a change may have had no effect"]
pub enum Outcome {
    /// It was made.
    Done,
    /// There is no such item.
    NotFound,
    /// The item was not stored: `add` found one, or `replace`, `append` or `prepend` found none.
    NotStored,
    /// Somebody else has changed the item since its number was read.
    Changed,
}

/// An item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its value.
    pub value: Vec<u8>,
    /// The flags with which it was stored.
    pub flags: u32,
    /// A number that changes with the item, for `cas`.
    pub cas: u64,
    /// The time that is left, in whole seconds. None: it has no end.
    pub left: Option<Duration>,
}

/// What is known of a key without asking its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// Its value.
    Value(Vec<u8>),
    /// There is no such item.
    Missing,
    /// Nothing: only the server can say.
    Unknown,
}

/// A value, and the flags with which it was stored.
pub(crate) type Flagged = (Vec<u8>, u32);

/// What a get with a lease found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lease {
    /// A value.
    Hit(Flagged),
    /// This client is to compute the value, and to store it under this number. There may be an old one.
    Won { cas: u64, old: Option<Flagged> },
    /// Another client is to; and there is an old one, unless it is the first.
    Taken { old: Option<Flagged> },
}

/// An operation on one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation<'a, T> {
    pub request: Request<'a>,
    /// What the reply means. None: it is no reply to this.
    pub read: fn(Code, Details) -> Option<Result<T, Error>>,
}

impl<T> Operation<'_, T> {
    /// The operation, if its value may be sent.
    pub fn checked(self, options: &Options) -> Result<Self, Error> {
        let (length, limit) = (self.request.value_length(), options.value_max);
        match length > limit {
            true => Err(Error::Value { length, limit }),
            false => Ok(self),
        }
    }

    /// What the replies to the request mean, of which there is one.
    pub fn read(&self, replies: Vec<Reply>) -> Result<T, Error> {
        let Some(reply) = replies.into_iter().next() else {
            return Err(Error::Unexpected("nothing".to_owned()));
        };
        if let Code::Refused(words) = reply.code {
            return Err(refused(words));
        }
        let what = reply.code.in_words();
        (self.read)(reply.code, reply.details).unwrap_or(Err(Error::Unexpected(what)))
    }
}

fn refused(words: String) -> Error {
    if words.contains("non-numeric") {
        Error::NotANumber
    } else {
        Error::Refused(words)
    }
}

pub(crate) fn get(key: Key<'_>) -> Operation<'_, Option<Vec<u8>>> {
    value(key, Want::default())
}

pub(crate) fn get_with_flags(key: Key<'_>) -> Operation<'_, Option<Flagged>> {
    Operation {
        request: get(key).request,
        read: |code, details| match code {
            Code::Value(value) => Some(Ok(Some((value, details.flags)))),
            Code::Miss => Some(Ok(None)),
            _ => None,
        },
    }
}

pub(crate) fn get_and_touch(
    key: Key<'_>,
    lifetime: Option<Duration>,
) -> Operation<'_, Option<Vec<u8>>> {
    value(
        key,
        Want {
            touch: Some(seconds(lifetime)),
            ..Want::default()
        },
    )
}

fn value(key: Key<'_>, want: Want) -> Operation<'_, Option<Vec<u8>>> {
    Operation {
        request: Request::Get { key, want },
        read: |code, _| match code {
            Code::Value(value) => Some(Ok(Some(value))),
            Code::Miss => Some(Ok(None)),
            _ => None,
        },
    }
}

pub(crate) fn get_item(key: Key<'_>) -> Operation<'_, Option<Item>> {
    item(key, None)
}

pub(crate) fn get_item_and_touch(
    key: Key<'_>,
    lifetime: Option<Duration>,
) -> Operation<'_, Option<Item>> {
    item(key, Some(seconds(lifetime)))
}

fn item(key: Key<'_>, touch: Option<i64>) -> Operation<'_, Option<Item>> {
    let want = Want {
        cas: true,
        left: true,
        touch,
        ..Want::default()
    };
    Operation {
        request: Request::Get { key, want },
        read: |code, details| match code {
            Code::Value(value) => Some(Ok(Some(Item {
                value,
                flags: details.flags,
                cas: details.cas?,
                left: match details.left? {
                    Left::Forever => None,
                    Left::Time(left) => Some(left),
                },
            }))),
            Code::Miss => Some(Ok(None)),
            _ => None,
        },
    }
}

pub(crate) fn store<'a>(
    key: Key<'a>,
    value: &'a [u8],
    mode: Mode,
    keep: Keep,
    cas: Option<u64>,
) -> Operation<'a, Outcome> {
    Operation {
        request: Request::Store {
            key,
            value,
            mode,
            flags: keep.flags,
            lifetime: seconds(keep.lifetime),
            cas,
        },
        read: outcome,
    }
}

/// Stores whatever there is.
pub(crate) fn set<'a>(key: Key<'a>, value: &'a [u8], keep: Keep) -> Operation<'a, ()> {
    let Operation { request, .. } = store(key, value, Mode::Set, keep, None);
    Operation {
        request,
        read: |code, _| matches!(code, Code::Done).then_some(Ok(())),
    }
}

pub(crate) fn delete(key: Key<'_>, cas: Option<u64>) -> Operation<'_, Outcome> {
    Operation {
        request: Request::Delete { key, cas },
        read: outcome,
    }
}

/// Deletes whatever there is, and says whether there was something.
pub(crate) fn remove(key: Key<'_>) -> Operation<'_, bool> {
    Operation {
        request: Request::Delete { key, cas: None },
        read: |code, _| match code {
            Code::Done => Some(Ok(true)),
            Code::NotFound => Some(Ok(false)),
            _ => None,
        },
    }
}

pub(crate) fn make_stale(key: Key<'_>, lifetime: Duration) -> Operation<'_, Outcome> {
    let lifetime = seconds(Some(lifetime));
    Operation {
        request: Request::MakeStale { key, lifetime },
        read: outcome,
    }
}

pub(crate) fn touch(key: Key<'_>, lifetime: Option<Duration>) -> Operation<'_, Outcome> {
    let want = Want {
        no_value: true,
        touch: Some(seconds(lifetime)),
        ..Want::default()
    };
    Operation {
        request: Request::Get { key, want },
        read: outcome,
    }
}

pub(crate) fn count(key: Key<'_>, delta: u64, is_down: bool) -> Operation<'_, Option<u64>> {
    Operation {
        request: Request::Count {
            key,
            delta,
            is_down,
        },
        read: |code, _| match code {
            // memcached leaves spaces behind a number that has become shorter.
            Code::Value(digits) => {
                let digits = String::from_utf8(digits).ok()?;
                Some(Ok(Some(digits.trim_end().parse().ok()?)))
            }
            Code::NotFound => Some(Ok(None)),
            _ => None,
        },
    }
}

pub(crate) fn lease(
    key: Key<'_>,
    lease: Duration,
    recompute: Option<Duration>,
) -> Operation<'_, Lease> {
    let want = Want {
        cas: true,
        vivify: Some(delay(lease).max(1)),
        recache: recompute.map(whole_seconds),
        ..Want::default()
    };
    Operation {
        request: Request::Get { key, want },
        read: |code, details| {
            let Code::Value(value) = code else {
                return None;
            };
            let is_won = details.won;
            // The item that the first miss makes has no bytes.
            let is_old = details.stale || !value.is_empty();
            let found = (value, details.flags);
            if !is_won && !details.taken {
                return Some(Ok(Lease::Hit(found)));
            }
            let old = is_old.then_some(found);
            Some(Ok(match is_won {
                true => Lease::Won {
                    cas: details.cas?,
                    old,
                },
                false => Lease::Taken { old },
            }))
        },
    }
}

pub(crate) fn flush(after: Duration) -> Operation<'static, ()> {
    let delay = delay(after);
    Operation {
        request: Request::Flush { delay },
        read: |code, _| matches!(code, Code::Line(line) if line == "OK").then_some(Ok(())),
    }
}

pub(crate) fn version() -> Operation<'static, String> {
    Operation {
        request: Request::Version,
        read: |code, _| match code {
            Code::Line(line) => Some(Ok(line.strip_prefix("VERSION ")?.to_owned())),
            _ => None,
        },
    }
}

/// The server's statistics: all, or those of one kind.
pub(crate) fn stats(kind: &str) -> Operation<'_, Vec<(String, String)>> {
    Operation {
        request: Request::Stats { kind },
        read: |code, _| match code {
            Code::Stats(stats) => Some(Ok(stats)),
            code if code.is_unknown() => {
                Some(Err(Error::Refused("ERROR: no such statistics".to_owned())))
            }
            // Of a kind that does something: it was done.
            Code::Line(_) => Some(Ok(Vec::new())),
            _ => None,
        },
    }
}

fn outcome(code: Code, _: Details) -> Option<Result<Outcome, Error>> {
    Some(Ok(match code {
        Code::Done => Outcome::Done,
        Code::NotFound | Code::Miss => Outcome::NotFound,
        Code::NotStored => Outcome::NotStored,
        Code::Changed => Outcome::Changed,
        _ => return None,
    }))
}
