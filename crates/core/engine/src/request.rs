//! Requests to an engine. A request borrows its key and its value from the caller's buffer and carries its hash,
//! computed once. Each operation is atomic for its key in every engine; nothing above an engine reads, decides and
//! writes in two steps.

use nuthatch_base::hash::KeyHasher;
use nuthatch_base::sync::clock::Time;

/// Ticks by which an item's end may seem later than its client asked: the end was rounded up to a tick, and counted from
/// a present that may be a tick later than that of an iteration.
const LATER_BY: u32 = 2;

/// The longest key of memcached's clients and of the library, in bytes.
pub const KEY_LEN_MAX: usize = 250;

/// Bytes that a server may put in front of a client's key, to keep its databases apart.
pub const PREFIX_LEN_MAX: usize = 5;

/// The longest key that every engine takes.
pub const COMMON_KEY_LEN_MAX: usize = KEY_LEN_MAX + PREFIX_LEN_MAX;

/// The longest key that any engine takes: 64 KiB behind a prefix.
pub const LONG_KEY_LEN_MAX: usize = (64 << 10) + PREFIX_LEN_MAX;

/// A key and its hash.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
    hash: u64,
}

impl<'a> Key<'a> {
    /// Hashes `bytes` with the function of the engine that gets the request
    /// ([`Engine::hasher`](crate::Engine::hasher)).
    ///
    /// Panics if the key is empty or longer than [`LONG_KEY_LEN_MAX`]: callers check the keys that peers send. The engine
    /// may take no more than [`Engine::key_len_max`](crate::Engine::key_len_max) bytes.
    #[inline]
    pub fn new(bytes: &'a [u8], hasher: &KeyHasher) -> Self {
        assert!(
            !bytes.is_empty() && bytes.len() <= LONG_KEY_LEN_MAX,
            "a key has 1 to 65541 bytes"
        );
        Self {
            bytes,
            hash: hasher.hash(bytes),
        }
    }

    /// A key whose hash was computed before.
    pub fn hashed(bytes: &'a [u8], hash: u64) -> Self {
        Self { bytes, hash }
    }

    /// The key's bytes: 1 to as many as the engine takes, of any value.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// All bits of the key's hash.
    #[inline(always)]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// When an item stops being returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Expiry {
    /// Lives until evicted.
    #[default]
    Never,
    /// Is not returned at this moment or later. A moment in the past is allowed: the item is dead from the start.
    At(Time),
}

impl Expiry {
    /// True if an item with this expiry must not be returned at `now`.
    #[inline(always)]
    pub fn is_past(self, now: Time) -> bool {
        match self {
            Expiry::Never => false,
            Expiry::At(moment) => moment <= now,
        }
    }

    /// Seconds left to live, rounded up, and no more than the client asked for. `None` is for ever.
    pub fn seconds_left(self, now: Time) -> Option<u64> {
        let Expiry::At(end) = self else {
            return None;
        };
        if self.is_past(now) {
            return Some(0);
        }
        let left = Time(end.0.saturating_sub(LATER_BY)).since(now);
        Some((left.as_nanos().div_ceil(1_000_000_000) as u64).max(1))
    }
}

/// One request of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The key of the request.
    pub key: Key<'a>,
    /// The operation.
    pub op: Op<'a>,
}

/// The operations of a memcached, text and meta.
#[derive(Clone, Copy, Debug)]
pub enum Op<'a> {
    /// A plain get: nothing but the value. Answered by a value or [`Reply::Miss`](crate::Reply).
    Get,
    /// A get that also looks at or changes the item's metadata (gat, `mg`).
    Read(Read),
    /// set, add, replace, append, prepend, cas, `ms`.
    Store(Store<'a>),
    /// delete, and `md`'s ways of making an item stale or empty.
    Remove(Removal),
    /// incr, decr, `ma`.
    Delta(Delta),
}

/// Options of a read. All at their defaults, a read is a get that fetches the metadata too.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// False: the caller wants no value bytes (touch, `mg` without `v`); a hit is answered by
    /// [`Reply::Found`](crate::Reply).
    pub value: bool,
    /// On a hit, the item's new expiry (touch, gat, `mg T`).
    pub touch: Option<Expiry>,
    /// What the touch requires of the item. If it is not so, the read is answered by
    /// [`Reply::Exists`](crate::Reply), and changes nothing.
    pub touch_if: TouchIf,
    /// On a miss, create an empty item with this expiry and call the caller its winner (`mg N`):
    /// answered like a hit.
    pub vivify: Option<Expiry>,
    /// On a hit whose remaining life, before any touch, is under this many seconds, the first caller
    /// that may win wins the right to recache (`mg R`).
    pub recache_below: Option<u32>,
    /// On a hit with exactly this cas, the value is not returned, only the metadata (`mg C`).
    pub unless_cas: Option<u64>,
    /// The cas of an item that `vivify` creates (`mg E`).
    pub new_cas: Option<u64>,
    /// Whether the caller takes part in winning (any of `mg`'s reads; plain gets do not): the first
    /// such reader of a stale item wins, later ones learn that it was won.
    pub may_win: bool,
    /// False: the read leaves no trace in the item's recency and is no hit (debug commands).
    pub bump: bool,
    /// Whether the caller needs [`Item::idle`](crate::Item): some engines have to look it up.
    pub idle: bool,
    /// Whether the caller needs more of an item than its value and its flags. An engine that holds copies of others' items
    /// asks for them then.
    pub details: bool,
}

impl Default for Read {
    fn default() -> Self {
        Self {
            value: true,
            touch: None,
            touch_if: TouchIf::Always,
            vivify: None,
            recache_below: None,
            unless_cas: None,
            new_cas: None,
            may_win: false,
            bump: true,
            idle: false,
            details: true,
        }
    }
}

/// What a touch requires of the item that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TouchIf {
    /// Nothing.
    #[default]
    Always,
    /// Exactly this cas.
    Cas(u64),
    /// That it never expires.
    Lasting,
    /// That it expires.
    Expiring,
    /// That it would expire sooner than at the new moment.
    Prolonged,
    /// That it would expire later than at the new moment, or never.
    Shortened,
    /// That it expires, and later than at the new moment.
    ExpiringShortened,
}

/// How a store treats the present item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// Stores in any case.
    Set,
    /// Stores only if the key has no item.
    Add,
    /// Stores only if the key has an item.
    Replace,
    /// Puts the value behind the present one; flags and expiry stay.
    Append,
    /// Puts the value before the present one; flags and expiry stay.
    Prepend,
}

/// What a change requires of the item's cas. An add requires nothing, whatever its condition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Condition {
    /// Nothing.
    #[default]
    None,
    /// Exactly this cas, else [`Reply::Exists`](crate::Reply).
    Cas(u64),
    /// This cas; an older one (lower than the item's) stores too, but the item is marked stale and keeps its expiry and
    /// its winner (`ms` with `C` and `I`). This holds for set and replace; any other change treats it as
    /// [`Condition::Cas`].
    CasOrStale(u64),
}

/// A store. It makes a new item: neither stale nor won, unless said otherwise. A value over the item limit is refused
/// before anything else is checked.
#[derive(Clone, Copy, Debug)]
pub struct Store<'a> {
    /// How it treats the present item.
    pub mode: StoreMode,
    /// The value's bytes.
    pub value: &'a [u8],
    /// The client's flags, returned as they are.
    pub flags: u32,
    /// When it expires.
    pub expiry: Expiry,
    /// What it requires of the present item. With a condition, set and replace answer a missing item by
    /// [`Reply::NotFound`](crate::Reply).
    pub condition: Condition,
    /// The new item's cas (`ms E`). Otherwise the engine chooses a cas that is above that of the item it replaces, and
    /// that no store of this key had before.
    pub new_cas: Option<u64>,
    /// For append and prepend: on a miss, store as a new item with this expiry (`ms N`).
    pub vivify: Option<Expiry>,
}

impl<'a> Store<'a> {
    /// An unconditional set without flags that never expires.
    pub fn set(value: &'a [u8]) -> Self {
        Self {
            mode: StoreMode::Set,
            value,
            flags: 0,
            expiry: Expiry::Never,
            condition: Condition::None,
            new_cas: None,
            vivify: None,
        }
    }
}

/// A removal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Removal {
    /// What it requires of the item's cas.
    pub condition: Condition,
    /// What the removal leaves.
    pub leave: Leave,
}

/// What a removal leaves in the place of the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Leave {
    /// Nothing.
    #[default]
    Nothing,
    /// The item, marked stale: it can be won again (`md I`). Its cas changes.
    Stale {
        /// A new expiry (`md I T`).
        expiry: Option<Expiry>,
        /// The stale item's cas (`md I E`).
        new_cas: Option<u64>,
    },
    /// The item without its value and flags. It is not won, and stale only if `stale` is set (`md x I`; without it `md
    /// x`).
    Empty {
        /// Also mark it stale.
        stale: bool,
        /// A new expiry.
        expiry: Option<Expiry>,
        /// The emptied item's cas.
        new_cas: Option<u64>,
    },
}

/// A change of a decimal number: 64 bits unsigned, 1 to 20 ASCII digits and nothing else. The new
/// number is written without padding; the item's flags, expiry and marks stay.
#[derive(Clone, Copy, Debug)]
pub struct Delta {
    /// Down instead of up.
    pub down: bool,
    /// By how much. Up wraps at 2^64, down stops at 0.
    pub by: u64,
    /// What it requires of the item's cas; checked before the value.
    pub condition: Condition,
    /// On a hit, the item's new expiry (`ma T`).
    pub touch: Option<Expiry>,
    /// On a miss, whatever the condition, store this number with this expiry (`ma N J`).
    pub vivify: Option<(u64, Expiry)>,
    /// The changed item's cas (`ma E`).
    pub new_cas: Option<u64>,
}

impl Delta {
    /// A plain incr.
    pub fn up(by: u64) -> Self {
        Self {
            down: false,
            by,
            condition: Condition::None,
            touch: None,
            vivify: None,
            new_cas: None,
        }
    }

    /// A plain decr.
    pub fn down(by: u64) -> Self {
        Self {
            down: true,
            ..Self::up(by)
        }
    }
}
