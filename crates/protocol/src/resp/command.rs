//! What a client can ask for. Everything borrows from the input.

use crate::awaited::Awaited;

use super::arguments::Values;
use super::error::Error;
use super::number::Decimal;
use super::rest::Rest;

/// What stands at the front of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parsed<'a> {
    /// Nothing complete yet: ask again when this has come.
    Incomplete(Awaited),
    /// No request, and no answer: an empty line, or a request of no arguments.
    Nothing {
        /// Bytes to drop from the input.
        consumed: usize,
    },
    /// A line without RESP's marks, as typed by hand: see [`rewrite`](super::rewrite).
    Inline {
        /// The line without its end.
        line: &'a [u8],
        /// Its bytes, its end included.
        consumed: usize,
    },
    /// A complete command.
    Command {
        /// What the client wants.
        command: Command<'a>,
        /// Bytes to drop from the input.
        consumed: usize,
    },
    /// The head of a command whose arguments come one by one.
    Many {
        /// What is to be done with them.
        verb: Many,
        /// How many there are: one or more, and an even number if they are pairs.
        arguments: u32,
        /// Bytes of the head.
        consumed: usize,
    },
    /// A command with a value that is not all here. The server may wait for it, or take the value piece by piece.
    Body(Body<'a>),
    /// Not a command that can be carried out.
    Refused(Refusal<'a>),
}

/// A value that is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body<'a> {
    /// The key that it is for.
    pub key: &'a [u8],
    /// Where the line with its length begins.
    pub line: usize,
    /// Bytes before the value.
    pub head: usize,
    /// Bytes of the value, without the `\r\n` behind them.
    pub value_len: usize,
    /// It is all of an item's value: not so SETRANGE's.
    pub whole: bool,
    /// What comes behind it: that `\r\n`, and all other arguments.
    pub rest: Rest,
    /// What must come before the parser can say more.
    pub awaited: Awaited,
}

/// Why a request is refused, and how the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// What the client is told.
    pub error: Error<'a>,
    /// Bytes to drop from the input now.
    pub consumed: usize,
    /// What of the request is to be dropped after those.
    pub rest: Rest,
    /// Nothing that follows can be understood: reply, then close.
    pub close: bool,
}

/// Commands whose arguments come one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// MGET: a value for each key.
    Get,
    /// MSET: keys and values.
    Set,
    /// DEL, UNLINK: how many were there.
    Remove,
    /// EXISTS: how many are there.
    Exists,
    /// TOUCH: how many are there; they count as used.
    Touch,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command<'a> {
    /// GET.
    Get {
        /// The key.
        key: &'a [u8],
    },
    /// SET, SETEX, PSETEX, SETNX, GETSET.
    Set(Set<'a>),
    /// MSETNX.
    SetAllAbsent {
        /// Keys and values, an even number.
        pairs: Values<'a>,
    },
    /// GETDEL.
    GetRemove {
        /// The key.
        key: &'a [u8],
    },
    /// GETEX.
    GetExpire {
        /// The key.
        key: &'a [u8],
        /// What becomes of its expiry.
        lifetime: Lifetime,
    },
    /// APPEND.
    Append {
        /// The key.
        key: &'a [u8],
        /// What comes behind its value.
        value: &'a [u8],
    },
    /// STRLEN.
    Length {
        /// The key.
        key: &'a [u8],
    },
    /// GETRANGE, SUBSTR.
    GetRange {
        /// The key.
        key: &'a [u8],
        /// The first byte; negative ones count from the end.
        start: i64,
        /// The last byte.
        end: i64,
    },
    /// SETRANGE.
    SetRange {
        /// The key.
        key: &'a [u8],
        /// The first byte that changes.
        offset: u64,
        /// What comes there.
        value: &'a [u8],
    },
    /// INCR, DECR, INCRBY, DECRBY.
    Increment {
        /// The key.
        key: &'a [u8],
        /// By how much.
        by: i64,
    },
    /// INCRBY of a number that is there: django-redis' incr.
    IncrementPresent {
        /// The key.
        key: &'a [u8],
        /// By how much.
        by: i64,
    },
    /// What the owner of a lock does with it.
    Owned(Owned<'a>),
    /// INCRBYFLOAT.
    IncrementDecimal {
        /// The key.
        key: &'a [u8],
        /// By how much.
        by: Decimal,
    },
    /// TYPE.
    Type {
        /// The key.
        key: &'a [u8],
    },
    /// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT.
    Expire {
        /// The key.
        key: &'a [u8],
        /// Its new expiry.
        moment: Moment,
        /// Which items get it.
        which: ExpireCondition,
    },
    /// TTL, PTTL, EXPIRETIME, PEXPIRETIME.
    Expiry {
        /// The key.
        key: &'a [u8],
        /// How its expiry is told.
        told: ExpiryForm,
    },
    /// PERSIST.
    Persist {
        /// The key.
        key: &'a [u8],
    },
    /// KEYS.
    Keys {
        /// Which.
        pattern: &'a [u8],
    },
    /// SCAN.
    Scan(Scan<'a>),
    /// RANDOMKEY.
    RandomKey,
    /// DBSIZE.
    Size,
    /// FLUSHDB, FLUSHALL.
    Flush,
    /// PING, with what is to be repeated.
    Ping(Option<&'a [u8]>),
    /// ECHO.
    Echo(&'a [u8]),
    /// HELLO.
    Hello(Hello<'a>),
    /// AUTH.
    Auth(Login<'a>),
    /// SELECT.
    Select(i64),
    /// QUIT.
    Quit,
    /// RESET.
    Reset,
    /// CLIENT.
    Client(Client<'a>),
    /// HELP of a command that has subcommands.
    Help {
        /// The command, in capitals.
        command: &'static str,
        /// What there is.
        subcommands: &'static str,
    },
    /// COMMAND.
    Commands(Commands<'a>),
    /// CONFIG.
    Config(Config<'a>),
    /// INFO, with the sections that are asked for.
    Info(Values<'a>),
    /// MEMORY.
    Memory(Memory<'a>),
    /// OBJECT.
    Object(Object<'a>),
    /// SCRIPT.
    Scripts(Scripts<'a>),
    /// TIME.
    Time,
    /// MULTI.
    Multi,
    /// EXEC.
    Exec,
    /// DISCARD.
    Discard,
    /// WATCH.
    Watch(Values<'a>),
    /// UNWATCH.
    Unwatch,
}

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// What must be there for it to take place.
    pub when: StoreCondition,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// How it is answered.
    pub answer: SetAnswer,
}

/// What must be there for a store to take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreCondition {
    /// Anything or nothing.
    Always,
    /// No item (NX).
    Absent,
    /// An item (XX).
    Present,
}

/// How a store is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetAnswer {
    /// OK, or null.
    Status,
    /// 1, or 0 (SETNX).
    Number,
    /// The value before it, or null (GET, GETSET).
    Old,
}

/// What becomes of an item's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It has none from now on.
    Forever,
    /// It stays as it is.
    Keep,
    /// This.
    Until(Moment),
}

/// A moment, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long from now.
    In(i64),
    /// Since 1970.
    At(i64),
}

/// Which items EXPIRE changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireCondition {
    /// Those that never expire (NX).
    pub lasting: bool,
    /// Those that do (XX).
    pub expiring: bool,
    /// Those that would live longer (GT).
    pub later: bool,
    /// Those that would live less long (LT).
    pub earlier: bool,
}

impl ExpireCondition {
    /// True if an item whose expiry is `old`, none if it never expires, gets the expiry `new`.
    pub fn changes(self, old: Option<u64>, new: u64) -> bool {
        if old.is_some() && self.lasting || old.is_none() && self.expiring {
            return false;
        }
        // Never is later than any moment.
        let old = old.unwrap_or(u64::MAX);
        !(self.later && new <= old || self.earlier && new >= old)
    }
}

/// What the owner of a lock does with it. Nothing is done where the key has another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value that tells the owner.
    pub token: &'a [u8],
    /// How long it is held.
    pub then: LockChange,
}

/// How long a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockChange {
    /// It is released.
    NoMore,
    /// So many milliseconds longer, if its life has an end.
    Longer {
        /// How many.
        millis: i64,
    },
    /// Until then.
    Until(Moment),
}

/// How an expiry is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryForm {
    /// As a moment since 1970, not as the time that is left.
    pub absolute: bool,
    /// In milliseconds, not in seconds.
    pub millis: bool,
}

/// SCAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan<'a> {
    /// Where it goes on; 0 is the start.
    pub cursor: u64,
    /// Which keys, if not all.
    pub pattern: Option<&'a [u8]>,
    /// About so many items are looked at.
    pub count: u64,
    /// False: items of a type that there is not.
    pub of_values: bool,
}

/// HELLO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello<'a> {
    /// 2 or 3, if that is to change.
    pub version: Option<u8>,
    /// The client's name and password.
    pub login: Option<Login<'a>>,
    /// The connection's name.
    pub name: Option<&'a [u8]>,
}

/// A name and a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// Redis' default user if it is not said.
    pub user: Option<&'a [u8]>,
    /// The password.
    pub password: &'a [u8],
}

/// CLIENT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Client<'a> {
    /// ID.
    Id,
    /// GETNAME.
    Name,
    /// SETNAME.
    SetName(&'a [u8]),
    /// SETINFO, and what else is heard and changes nothing: NO-EVICT, NO-TOUCH, REPLY ON, UNPAUSE.
    Noted,
    /// INFO.
    Info,
    /// LIST of these.
    List(ClientFilter<'a>),
    /// GETREDIR: nobody's keys are tracked.
    Redirection,
}

/// SCRIPT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scripts<'a> {
    /// EXISTS: which of these names are those of scripts.
    Exist(Values<'a>),
    /// LOAD: a script's name, as its text tells it.
    Load(&'static str),
    /// FLUSH.
    Flush,
}

/// Which connections are listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClientFilter<'a> {
    /// All.
    All,
    /// Those of a kind that there is not.
    None,
    /// Those of these numbers.
    Of(Values<'a>),
}

/// COMMAND.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Commands<'a> {
    /// Without a subcommand, and INFO without names: all.
    All,
    /// COUNT.
    Count,
    /// LIST, of those whose name is like this if it is said.
    List(Option<&'a [u8]>),
    /// LIST of those of a module: there is none.
    Nothing,
    /// INFO of these.
    Info(Values<'a>),
    /// DOCS.
    Docs,
}

/// CONFIG.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Config<'a> {
    /// GET, with patterns.
    Get(Values<'a>),
    /// SET, with pairs.
    Set(Values<'a>),
    /// RESETSTAT.
    ResetStatistics,
}

/// MEMORY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory<'a> {
    /// USAGE.
    Usage(&'a [u8]),
    /// DOCTOR.
    Doctor,
    /// PURGE.
    Purge,
}

/// OBJECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What is asked of it.
    pub ask: Ask,
}

/// What OBJECT tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// ENCODING.
    Encoding,
    /// REFCOUNT.
    References,
    /// IDLETIME.
    Idle,
    /// FREQ.
    Frequency,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_options_decide_by_the_expiry_that_is_there() {
        let which = |text: &str| ExpireCondition {
            lasting: text.contains('N'),
            expiring: text.contains('X'),
            later: text.contains('G'),
            earlier: text.contains('L'),
        };
        for (options, never, sooner, same, later) in [
            ("", true, true, true, true),
            ("N", true, false, false, false),
            ("X", false, true, true, true),
            ("G", false, true, false, false),
            ("L", true, false, false, true),
            ("XL", false, false, false, true),
        ] {
            // The items that are there: never, and before, at and behind the new moment.
            let olds = [None, Some(9), Some(10), Some(11)];
            let changes = olds.map(|old| which(options).changes(old, 10));
            assert_eq!(changes, [never, sooner, same, later], "{options}");
        }
    }
}
