//! Meta commands of the caller's own, for a program that passes the commands of others on.

use std::time::Duration;

use crate::Error;
use crate::key::Key;
use crate::lifetime::seconds;
use crate::operation::Operation;
use crate::wire::{Code, Details, Request};
pub use crate::wire::{Command, Flags, Left, Verb};

/// A lifetime as the protocol's number: in whole seconds, rounded up; none is 0, and one that has ended -1. One of over 30 days is
/// a date.
pub fn lifetime(lifetime: Option<Duration>) -> i64 {
    seconds(lifetime)
}

/// The answer to a meta command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its kind.
    pub kind: Kind,
    /// What it says of the item, as far as the command has asked for it.
    pub item: About,
}

/// The kinds of answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A value.
    Value(Vec<u8>),
    /// It was done, or the item found.
    Done,
    /// A read found nothing.
    #[default]
    Miss,
    /// A change that needs an item found none.
    NotFound,
    /// The item was not stored.
    NotStored,
    /// The item has another number.
    Changed,
}

/// What an answer says of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// `f`: the flags with which it was stored.
    pub flags: u32,
    /// `c`: its number.
    pub cas: Option<u64>,
    /// `t`: the time that it has left.
    pub left: Option<Left>,
    /// `s`: bytes of its value.
    pub size: Option<usize>,
    /// `h`: it had been read before.
    pub is_read_before: bool,
    /// `l`: the time since its last use.
    pub idle: Option<Duration>,
    /// `W`: this command won the right to renew it.
    pub won: bool,
    /// `X`: it is stale.
    pub stale: bool,
    /// `Z`: another command won that right before.
    pub taken: bool,
}

pub(crate) fn operation<'a>(key: Key<'a>, command: &Command<'a>) -> Operation<'a, Answer> {
    Operation {
        request: Request::Meta(*command, key),
        read,
    }
}

fn read(code: Code, details: Details) -> Option<Result<Answer, Error>> {
    let kind = match code {
        Code::Value(value) => Kind::Value(value),
        Code::Done => Kind::Done,
        Code::Miss => Kind::Miss,
        Code::NotFound => Kind::NotFound,
        Code::NotStored => Kind::NotStored,
        Code::Changed => Kind::Changed,
        _ => return None,
    };
    let item = About {
        flags: details.flags,
        cas: details.cas,
        left: details.left,
        size: details.size,
        is_read_before: details.is_read_before,
        idle: details.idle,
        won: details.won,
        stale: details.stale,
        taken: details.taken,
    };
    Some(Ok(Answer { kind, item }))
}
