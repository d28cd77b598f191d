//! Requests to an engine as meta commands, and the answers as replies.

use std::sync::Arc;
use std::time::Duration;

use nuthatch_client::Error;
use nuthatch_client::meta::{About, Answer, Flags, Kind, Left, Verb, lifetime};
use nuthatch_engine::{
    Condition, Delta, Expiry, Item, Leave, Op, Read, Removal, Reply, Store, StoreMode, Time,
};

/// What a read found on a server.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its value, if that was asked for.
    pub value: Option<Arc<Vec<u8>>>,
    /// What else is known of it.
    pub item: Item,
}

/// A request as a command, but for its key.
pub struct Translated<'a> {
    pub verb: Verb,
    pub flags: Flags,
    pub value: &'a [u8],
    pub is_read: bool,
}

/// True if a copy answers the request.
pub fn is_plain(op: &Op<'_>) -> bool {
    match op {
        Op::Get => true,
        Op::Read(read) => read.value && !read.details && is_read(read) && read.unless_cas.is_none(),
        _ => false,
    }
}

/// True if a read may change the item.
fn is_change(read: &Read) -> bool {
    read.touch.is_some() || read.vivify.is_some()
}

/// True if a read surely leaves the item as it is.
pub fn is_read(read: &Read) -> bool {
    !is_change(read) && read.recache_below.is_none()
}

/// The command of a request. Reads whose touch has a condition have none ([`Read::touch_if`]).
pub fn command<'a>(op: &Op<'a>, now: Time) -> Translated<'a> {
    let plain = Read {
        details: false,
        ..Read::default()
    };
    match op {
        Op::Get => read(&plain, now),
        Op::Read(options) => read(options, now),
        Op::Store(store) => self::store(store, now),
        Op::Remove(removal) => remove(removal, now),
        Op::Delta(delta) => self::delta(delta, now),
    }
}

fn read(read: &Read, now: Time) -> Translated<'static> {
    let mut flags = Flags::default();
    // In the order of their effects.
    if let Some(seconds) = read.recache_below {
        flags.number('R', seconds);
    }
    for (letter, expiry) in [('T', read.touch), ('N', read.vivify)] {
        if let Some(expiry) = expiry {
            flags.number(letter, number_of(expiry, now));
        }
    }
    for (letter, cas) in [('C', read.unless_cas), ('E', read.new_cas)] {
        if let Some(cas) = cas {
            flags.number(letter, cas);
        }
    }
    // Behind the others, because the time that is left is told as of that place in the line. It and the number are for the copy.
    flags.bare("fct");
    // The size of a value that is not asked for.
    flags.bare(if read.value { "v" } else { "s" });
    if read.details {
        flags.bare("hl");
    }
    Translated {
        verb: Verb::Get,
        flags,
        value: &[],
        is_read: is_read(read),
    }
}

fn store<'a>(store: &Store<'a>, now: Time) -> Translated<'a> {
    let mut flags = Flags::default();
    flags.bare("c").number('F', store.flags);
    // An append answers with the size.
    if matches!(store.mode, StoreMode::Append | StoreMode::Prepend) {
        flags.bare("s");
    }
    flags.number('T', number_of(store.expiry, now));
    if let Some(mode) = match store.mode {
        StoreMode::Set => None,
        StoreMode::Add => Some('E'),
        StoreMode::Replace => Some('R'),
        StoreMode::Append => Some('A'),
        StoreMode::Prepend => Some('P'),
    } {
        flags.mode(mode);
    }
    condition(&mut flags, store.condition);
    if let Some(expiry) = store.vivify {
        flags.number('N', number_of(expiry, now));
    }
    new_cas(&mut flags, store.new_cas);
    Translated {
        verb: Verb::Set,
        flags,
        value: store.value,
        is_read: false,
    }
}

fn remove(removal: &Removal, now: Time) -> Translated<'static> {
    let mut flags = Flags::default();
    condition(&mut flags, removal.condition);
    let (expiry, cas) = match removal.leave {
        Leave::Nothing => (None, None),
        Leave::Stale { expiry, new_cas } => {
            flags.bare("I");
            (expiry, new_cas)
        }
        Leave::Empty {
            stale,
            expiry,
            new_cas,
        } => {
            flags.bare(if stale { "xI" } else { "x" });
            (expiry, new_cas)
        }
    };
    if let Some(expiry) = expiry {
        flags.number('T', number_of(expiry, now));
    }
    new_cas(&mut flags, cas);
    Translated {
        verb: Verb::Delete,
        flags,
        value: &[],
        is_read: false,
    }
}

fn delta(delta: &Delta, now: Time) -> Translated<'static> {
    let mut flags = Flags::default();
    flags.number('D', delta.by);
    flags.mode(if delta.down { 'D' } else { 'I' });
    condition(&mut flags, delta.condition);
    if let Some(expiry) = delta.touch {
        flags.number('T', number_of(expiry, now));
    }
    if let Some((first, expiry)) = delta.vivify {
        flags.number('N', number_of(expiry, now)).number('J', first);
    }
    new_cas(&mut flags, delta.new_cas);
    flags.bare("vct");
    Translated {
        verb: Verb::Arithmetic,
        flags,
        value: &[],
        is_read: false,
    }
}

fn condition(flags: &mut Flags, condition: Condition) {
    match condition {
        Condition::None => {}
        Condition::Cas(cas) => {
            flags.number('C', cas);
        }
        Condition::CasOrStale(cas) => {
            flags.number('C', cas).bare("I");
        }
    }
}

fn new_cas(flags: &mut Flags, cas: Option<u64>) {
    if let Some(cas) = cas {
        flags.number('E', cas);
    }
}

/// An end as the protocol's number: in whole seconds, rounded up.
pub fn number_of(expiry: Expiry, now: Time) -> i64 {
    lifetime(expiry.seconds_left(now).map(Duration::from_secs))
}

/// The item of an answer.
pub fn item(about: &About, now: Time) -> Item {
    Item {
        flags: about.flags,
        value_len: about.size.unwrap_or_default(),
        cas: about.cas.unwrap_or_default(),
        expiry: match about.left {
            None | Some(Left::Forever) => Expiry::Never,
            Some(Left::Time(left)) => Expiry::At(now.after(left)),
        },
        stale: about.stale,
        won: about.won,
        won_before: about.taken,
        fetched: about.is_read_before,
        idle: about.idle.unwrap_or_default(),
    }
}

/// What a read found: None for a miss. Errors: the answer is none to a read.
pub fn found(answer: Answer, now: Time) -> Result<Option<Found>, Reply> {
    let mut item = item(&answer.item, now);
    match answer.kind {
        Kind::Value(value) => {
            item.value_len = value.len();
            let value = Some(Arc::new(value));
            Ok(Some(Found { value, item }))
        }
        Kind::Done => Ok(Some(Found { value: None, item })),
        Kind::Miss => Ok(None),
        _ => Err(Reply::Unavailable),
    }
}

/// The reply to a change.
pub fn changed(op: &Op<'_>, answer: Answer, now: Time) -> Reply {
    let item = item(&answer.item, now);
    match (op, answer.kind) {
        (Op::Store(store), Kind::Done) => Reply::Stored(Item {
            flags: store.flags,
            value_len: answer.item.size.unwrap_or(store.value.len()),
            expiry: store.expiry,
            ..item
        }),
        (Op::Remove(_), Kind::Done) => Reply::Removed,
        (Op::Delta(_), Kind::Value(digits)) => number(&digits, item),
        (_, Kind::NotStored) => Reply::NotStored,
        (_, Kind::NotFound) => Reply::NotFound,
        (_, Kind::Changed) => Reply::Exists,
        _ => Reply::Unavailable,
    }
}

/// The reply to incr or decr. memcached leaves spaces behind a number that has become shorter.
fn number(digits: &[u8], item: Item) -> Reply {
    let text = std::str::from_utf8(digits).unwrap_or_default();
    match text.trim_end().parse() {
        Ok(number) => Reply::Number(
            number,
            Item {
                value_len: digits.len(),
                ..item
            },
        ),
        Err(_) => Reply::Unavailable,
    }
}

/// The reply to a request that failed. `Ok`: what is wrong is the request. `Err`: the server, or the way to it.
pub fn failed(op: &Op<'_>, error: &Error) -> Result<Reply, Reply> {
    let is_read = matches!(op, Op::Get)
        || matches!(op, Op::Read(read) if read.value && read.vivify.is_none());
    let is_look = matches!(op, Op::Read(read) if read.touch.is_none() && read.vivify.is_none());
    Ok(match error {
        // No item has such a key.
        Error::Key { .. } if is_read || is_look => Reply::Miss,
        Error::Key { .. } | Error::Value { .. } => Reply::TooLarge,
        Error::NotANumber => Reply::NotNumeric,
        Error::Refused(words) if words.contains("too large") => Reply::TooLarge,
        Error::Refused(words) if words.contains("out of memory") => Reply::OutOfMemory,
        // A cache that cannot be read has nothing.
        _ if is_read => return Err(Reply::Miss),
        _ => return Err(Reply::Unavailable),
    })
}
