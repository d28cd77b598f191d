//! The semantics of requests: how each changes the present item. Every engine shares these rules; they need no table.

use nuthatch_base::sync::clock::Time;

use crate::reply::{Item, Reply};
use crate::request::{Condition, Delta, Expiry, Leave, Read, Removal, Store, StoreMode, TouchIf};

/// The parts of the present item that the rules read.
pub trait Existing {
    /// The cas that clients see.
    fn cas(&self) -> u64;
    /// The client's flags.
    fn flags(&self) -> u32;
    /// When it expires.
    fn expiry(&self) -> Expiry;
    /// Bytes of the value.
    fn value_len(&self) -> usize;
}

impl Existing for Item {
    fn cas(&self) -> u64 {
        self.cas
    }

    fn flags(&self) -> u32 {
        self.flags
    }

    fn expiry(&self) -> Expiry {
        self.expiry
    }

    fn value_len(&self) -> usize {
        self.value_len
    }
}

/// The new content of an item, relative to the present one.
pub struct Rewrite<'v> {
    /// Bytes before the kept value.
    pub before: &'v [u8],
    /// Whether the value is kept.
    pub keep: bool,
    /// Bytes behind the kept value.
    pub after: &'v [u8],
    /// The client's flags.
    pub flags: u32,
    /// When it expires.
    pub expiry: Expiry,
    /// A cas that the client chose.
    pub new_cas: Option<u64>,
    /// Marked stale.
    pub stale: bool,
    /// Won by a reader.
    pub won: bool,
}

impl<'v> Rewrite<'v> {
    /// Another value, with the same flags and expiry.
    pub fn of(old: &impl Existing, before: &'v [u8], keep: bool, after: &'v [u8]) -> Self {
        Self {
            before,
            keep,
            after,
            flags: old.flags(),
            expiry: old.expiry(),
            new_cas: None,
            stale: false,
            won: false,
        }
    }

    /// Bytes of the resulting value.
    pub fn value_len(&self, old: &impl Existing) -> usize {
        self.before.len() + if self.keep { old.value_len() } else { 0 } + self.after.len()
    }
}

/// A condition's verdict on an item.
enum Verdict {
    Met,
    /// Met by an older cas: the new item is stale.
    Older,
    Refused,
}

fn judge(condition: Condition, item: &impl Existing) -> Verdict {
    match condition {
        Condition::None => Verdict::Met,
        Condition::Cas(cas) | Condition::CasOrStale(cas) if cas == item.cas() => Verdict::Met,
        Condition::CasOrStale(cas) if cas < item.cas() => Verdict::Older,
        _ => Verdict::Refused,
    }
}

/// Applies a store's mode and condition to the present live item: returns whether the new item is stale, or the
/// refusal.
pub fn allows(store: &Store<'_>, live: Option<&impl Existing>) -> Result<bool, Reply> {
    match (store.mode, live) {
        (StoreMode::Add, Some(_)) => Err(Reply::NotStored),
        (StoreMode::Replace, None) if store.condition == Condition::None => Err(Reply::NotStored),
        (StoreMode::Add, None) => Ok(false),
        (_, None) if store.condition != Condition::None => Err(Reply::NotFound),
        (_, None) => Ok(false),
        (_, Some(item)) => match judge(store.condition, item) {
            Verdict::Met => Ok(false),
            Verdict::Older => Ok(true),
            Verdict::Refused => Err(Reply::Exists),
        },
    }
}

/// Checks a condition that can only be met or refused.
pub fn permit(condition: Condition, item: &impl Existing) -> Result<(), Reply> {
    match judge(condition, item) {
        Verdict::Met => Ok(()),
        Verdict::Older | Verdict::Refused => Err(Reply::Exists),
    }
}

/// The number after incr or decr.
pub fn apply(number: u64, delta: &Delta) -> u64 {
    if delta.down {
        number.saturating_sub(delta.by)
    } else {
        number.wrapping_add(delta.by)
    }
}

/// The item that remains after a removal that leaves something, or the refusal. (Where nothing is to be left, an engine
/// takes the item out instead of emptying it.)
pub fn left(removal: &Removal, old: &impl Existing) -> Result<Rewrite<'static>, Reply> {
    permit(removal.condition, old)?;
    let (keep, stale, expiry, new_cas) = match removal.leave {
        Leave::Nothing => (false, false, None, None),
        Leave::Stale { expiry, new_cas } => (true, true, expiry, new_cas),
        Leave::Empty {
            stale,
            expiry,
            new_cas,
        } => (false, stale, expiry, new_cas),
    };
    Ok(Rewrite {
        flags: if keep { old.flags() } else { 0 },
        expiry: expiry.unwrap_or(old.expiry()),
        new_cas,
        stale,
        ..Rewrite::of(old, b"", keep, b"")
    })
}

/// The result of an append or prepend.
pub enum Concatenated<'a> {
    /// Done; the new item.
    Stored(Item),
    /// There is no item, but this store may make one.
    AddInstead(Store<'a>),
    /// Not done; the answer.
    Refused(Reply),
}

/// The result of an append or prepend whose rewrite ended like this.
pub fn concatenated<'a>(rewritten: Result<Item, Reply>, store: &Store<'a>) -> Concatenated<'a> {
    match (rewritten, store.vivify) {
        (Ok(item), _) => Concatenated::Stored(item),
        (Err(Reply::NotFound), Some(expiry)) => Concatenated::AddInstead(Store {
            mode: StoreMode::Add,
            expiry,
            condition: Condition::None,
            ..*store
        }),
        (Err(Reply::NotFound), None) => Concatenated::Refused(Reply::NotStored),
        (Err(refusal), _) => Concatenated::Refused(refusal),
    }
}

/// True if a read that hits this item is answered with its value.
pub fn wants_value(read: &Read, item: &Item) -> bool {
    read.value && read.unless_cas != Some(item.cas)
}

/// True if an item with this cas and this expiry may get the new one.
pub fn may_touch(condition: TouchIf, cas: u64, old: Expiry, new: Expiry) -> bool {
    // Never is later than any moment.
    let end = |expiry| match expiry {
        Expiry::Never => u64::MAX,
        Expiry::At(end) => end.0.into(),
    };
    let expires = old != Expiry::Never;
    match condition {
        TouchIf::Always => true,
        TouchIf::Cas(wanted) => cas == wanted,
        TouchIf::Lasting => !expires,
        TouchIf::Expiring => expires,
        TouchIf::Prolonged => end(new) > end(old),
        TouchIf::Shortened => end(new) < end(old),
        TouchIf::ExpiringShortened => expires && end(new) < end(old),
    }
}

/// The refusal of a read that hits this item, if its touch requires something else.
#[inline]
pub fn permit_touch(read: &Read, item: &Item) -> Result<(), Reply> {
    match read.touch {
        Some(new) if !may_touch(read.touch_if, item.cas, item.expiry, new) => Err(Reply::Exists),
        _ => Ok(()),
    }
}

/// True if a reader wins the right to refresh the item.
pub fn wins(read: &Read, item: &Item, now: Time) -> bool {
    read.may_win && !item.won_before && (item.stale || needs_recache(item, read, now))
}

/// True if the item's remaining life is shorter than the reader accepts.
fn needs_recache(item: &Item, read: &Read, now: Time) -> bool {
    match (read.recache_below, item.expiry) {
        (Some(below), Expiry::At(at)) => at.since(now).as_secs() < u64::from(below),
        _ => false,
    }
}
