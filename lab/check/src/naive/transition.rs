//! The transition of one operation on one key: a pure function, and the definition that engines obey.

use std::sync::Arc;
use std::time::Duration;

use nuthatch_engine::request::Leave;
use nuthatch_engine::{
    Condition, Delta, Expiry, Item, Op, Read, Removal, Reply, Store, StoreMode, Time, TouchIf,
};

/// Bytes that an item takes beside its key and its value.
pub const HEADER: usize = 16;

/// All that is kept of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// The value.
    pub value: Arc<[u8]>,
    /// The client's flags.
    pub flags: u32,
    /// When it stops being returned.
    pub expiry: Expiry,
    /// Changes with every change.
    pub cas: u64,
    /// Usable, but some client should refresh it.
    pub stale: bool,
    /// Some client holds the right to refresh it.
    pub token_sent: bool,
    /// A read has hit it.
    pub fetched: bool,
    /// When it was stored.
    pub stored: Time,
    /// When it was stored or last hit.
    pub accessed: Time,
}

impl StoredItem {
    fn new(now: Time, value: Arc<[u8]>, flags: u32, expiry: Expiry, cas: u64) -> Self {
        Self {
            value,
            flags,
            expiry,
            cas,
            stale: false,
            token_sent: false,
            fetched: false,
            stored: now,
            accessed: now,
        }
    }

    /// The item's metadata in a reply.
    pub fn describe(&self, now: Time) -> Item {
        Item {
            flags: self.flags,
            value_len: self.value.len(),
            cas: self.cas,
            expiry: self.expiry,
            stale: self.stale,
            won: false,
            won_before: self.token_sent,
            fetched: self.fetched,
            idle: now.since(self.accessed),
        }
    }
}

/// The inputs of an operation beside the item itself.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// The moment of the operation.
    pub now: Time,
    /// The cas that a change gives the item, unless the operation brings its own.
    pub next_cas: u64,
    /// Bytes that the key's value may have.
    pub value_max: usize,
}

/// The answer of an operation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A read that returns the value.
    Value(Item, Arc<[u8]>),
    /// Any other answer.
    Done(Reply),
}

/// Carries out `op` on the key whose item is in `slot`. An expired item is no item.
pub fn apply(slot: &mut Option<StoredItem>, op: &Op<'_>, around: Circumstances) -> Outcome {
    if let Some(item) = slot
        && item.expiry.is_past(around.now)
    {
        *slot = None;
    }
    match op {
        Op::Get => read(slot, &Read::default(), around),
        Op::Read(options) => read(slot, options, around),
        Op::Store(request) => Outcome::Done(store(slot, request, around)),
        Op::Remove(removal) => Outcome::Done(remove(slot, removal, around)),
        Op::Delta(change) => Outcome::Done(delta(slot, change, around)),
    }
}

/// True if a touch with this condition may give the item this expiry.
fn is_meant(item: &StoredItem, condition: TouchIf, new: Expiry) -> bool {
    let ticks = |expiry| match expiry {
        Expiry::At(end) => Some(end.0),
        Expiry::Never => None,
    };
    match (condition, ticks(item.expiry), ticks(new)) {
        (TouchIf::Always, ..) => true,
        (TouchIf::Cas(cas), ..) => item.cas == cas,
        (TouchIf::Lasting, old, _) => old.is_none(),
        (TouchIf::Expiring, old, _) => old.is_some(),
        (TouchIf::Prolonged, Some(old), Some(new)) => old < new,
        (TouchIf::Prolonged, old, new) => old.is_some() && new.is_none(),
        (TouchIf::Shortened, None, new) => new.is_some(),
        (TouchIf::Shortened | TouchIf::ExpiringShortened, Some(old), Some(new)) => new < old,
        (TouchIf::Shortened | TouchIf::ExpiringShortened, ..) => false,
    }
}

fn read(slot: &mut Option<StoredItem>, options: &Read, around: Circumstances) -> Outcome {
    let now = around.now;
    let Some(item) = slot else {
        let Some(expiry) = options.vivify else {
            return Outcome::Done(Reply::Miss);
        };
        let cas = options.new_cas.unwrap_or(around.next_cas);
        let created = slot.insert(StoredItem::new(now, Arc::from([]), 0, expiry, cas));
        let won = Item {
            won: true,
            ..created.describe(now)
        };
        created.token_sent = true;
        created.fetched = options.bump;
        return found(won, created, options.value);
    };

    let wins = options.may_win && !item.token_sent && (item.stale || is_due(item, options, now));
    if let Some(expiry) = options.touch {
        if !is_meant(item, options.touch_if, expiry) {
            return Outcome::Done(Reply::Exists);
        }
        item.expiry = expiry;
    }
    let seen = Item {
        won: wins,
        idle: if options.idle {
            now.since(item.accessed)
        } else {
            Duration::ZERO
        },
        ..item.describe(now)
    };
    item.token_sent |= wins;
    if options.bump {
        item.fetched = true;
        item.accessed = now;
    }
    found(
        seen,
        item,
        options.value && options.unless_cas != Some(item.cas),
    )
}

fn found(seen: Item, item: &StoredItem, with_value: bool) -> Outcome {
    if with_value {
        Outcome::Value(seen, Arc::clone(&item.value))
    } else {
        Outcome::Done(Reply::Found(seen))
    }
}

/// True if the item's remaining life is below the limit at which the reader asked to recache it.
fn is_due(item: &StoredItem, options: &Read, now: Time) -> bool {
    match (options.recache_below, item.expiry) {
        (Some(seconds), Expiry::At(moment)) => {
            moment < now.after(Duration::from_secs(seconds.into()))
        }
        _ => false,
    }
}

fn store(slot: &mut Option<StoredItem>, request: &Store<'_>, around: Circumstances) -> Reply {
    use StoreMode::{Add, Append, Prepend, Replace, Set};
    if request.value.len() > around.value_max {
        return Reply::TooLarge;
    }
    let cas = request.new_cas.unwrap_or(around.next_cas);
    let fresh =
        |expiry| StoredItem::new(around.now, request.value.into(), request.flags, expiry, cas);
    let stored = match (&*slot, request.mode) {
        (None, Add) => fresh(request.expiry),
        (None, Set) if request.condition == Condition::None => fresh(request.expiry),
        (None, mode) => match (mode, request.vivify) {
            (Append | Prepend, Some(expiry)) => fresh(expiry),
            (Append | Prepend, None) => return Reply::NotStored,
            _ if request.condition != Condition::None => return Reply::NotFound,
            _ => return Reply::NotStored,
        },
        (Some(_), Add) => return Reply::NotStored,
        (Some(old), Set | Replace) => match verdict(request.condition, old.cas) {
            Verdict::Current => fresh(request.expiry),
            Verdict::Older => StoredItem {
                stale: true,
                token_sent: old.token_sent,
                ..fresh(old.expiry)
            },
            Verdict::Wrong => return Reply::Exists,
        },
        (Some(old), Append | Prepend) => {
            if verdict(request.condition, old.cas) != Verdict::Current {
                return Reply::Exists;
            }
            let value = match request.mode {
                Append => [&old.value, request.value].concat(),
                _ => [request.value, &old.value].concat(),
            };
            if value.len() > around.value_max {
                return Reply::TooLarge;
            }
            StoredItem {
                fetched: old.fetched,
                ..StoredItem::new(around.now, value.into(), old.flags, old.expiry, cas)
            }
        }
    };
    Reply::Stored(slot.insert(stored).describe(around.now))
}

/// How a condition judges an item's cas.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is the demanded one, or no cas is demanded.
    Current,
    /// The demanded one is older, and the operation allows that.
    Older,
    /// Neither.
    Wrong,
}

fn verdict(condition: Condition, cas: u64) -> Verdict {
    match condition {
        Condition::None => Verdict::Current,
        Condition::Cas(demanded) | Condition::CasOrStale(demanded) if demanded == cas => {
            Verdict::Current
        }
        Condition::CasOrStale(demanded) if demanded < cas => Verdict::Older,
        Condition::Cas(_) | Condition::CasOrStale(_) => Verdict::Wrong,
    }
}

fn remove(slot: &mut Option<StoredItem>, removal: &Removal, around: Circumstances) -> Reply {
    let Some(item) = slot else {
        return Reply::NotFound;
    };
    if verdict(removal.condition, item.cas) != Verdict::Current {
        return Reply::Exists;
    }
    match removal.leave {
        Leave::Nothing => *slot = None,
        Leave::Stale { expiry, new_cas } => {
            item.stale = true;
            item.token_sent = false;
            item.expiry = expiry.unwrap_or(item.expiry);
            item.cas = new_cas.unwrap_or(around.next_cas);
        }
        Leave::Empty {
            stale,
            expiry,
            new_cas,
        } => {
            let expiry = expiry.unwrap_or(item.expiry);
            let cas = new_cas.unwrap_or(around.next_cas);
            *item = StoredItem {
                stale,
                fetched: item.fetched,
                ..StoredItem::new(around.now, Arc::from([]), 0, expiry, cas)
            };
        }
    }
    Reply::Removed
}

fn delta(slot: &mut Option<StoredItem>, change: &Delta, around: Circumstances) -> Reply {
    let now = around.now;
    let cas = change.new_cas.unwrap_or(around.next_cas);
    let Some(item) = slot else {
        let Some((number, expiry)) = change.vivify else {
            return Reply::NotFound;
        };
        let value = decimal(number);
        let created = slot.insert(StoredItem::new(now, value, 0, expiry, cas));
        return Reply::Created(number, created.describe(now));
    };
    if verdict(change.condition, item.cas) != Verdict::Current {
        return Reply::Exists;
    }
    let Some(before) = number(&item.value) else {
        return Reply::NotNumeric;
    };
    let after = if change.down {
        before.saturating_sub(change.by)
    } else {
        before.wrapping_add(change.by)
    };
    item.value = decimal(after);
    item.cas = cas;
    item.expiry = change.touch.unwrap_or(item.expiry);
    Reply::Number(after, item.describe(now))
}

fn decimal(number: u64) -> Arc<[u8]> {
    number.to_string().into_bytes().into()
}

/// Parses decimal digits, with or without a sign before them and white space around both, if they have at most 256
/// bytes and the number is zero or above and fits 64 bits.
fn number(value: &[u8]) -> Option<u64> {
    let is_space = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
    let text = str::from_utf8(value).ok()?.trim_matches(is_space);
    if value.len() > 256 || text.starts_with("-+") {
        return None;
    }
    match text.strip_prefix('-') {
        Some(digits) => digits.parse().ok().filter(|&number: &u64| number == 0),
        // Takes one "+".
        None => text.parse().ok(),
    }
}
