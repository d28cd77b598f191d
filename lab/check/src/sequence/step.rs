//! The steps of a sequence. They consist of small numbers that are interpreted late, so that a sequence shrinks well
//! and any bytes encode one.

use arbitrary::Arbitrary;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{Expiry, Time};
use proptest_derive::Arbitrary as Generate;

use crate::values::bytes;

/// A step of a sequence.
#[derive(Clone, Debug, Arbitrary, Generate)]
pub enum Step {
    /// Requests carried out together.
    #[proptest(weight = 20)]
    Batch(
        #[proptest(strategy = "proptest::collection::vec(proptest::prelude::any::<Ask>(), 0..40)")]
        Vec<Ask>,
    ),
    /// Time passes: this many ticks.
    #[proptest(weight = 3)]
    Later(u8),
    /// A store whose value arrives in pieces.
    #[proptest(weight = 4)]
    Reserve {
        /// The key that it is about.
        key: KeyNumber,
        /// The store that is committed.
        store: StoreSpec,
        /// Bytes of a piece, less one, in units of 64.
        piece: u8,
        /// Dropped instead of committed.
        dropped: bool,
        /// What happens before it is committed.
        meanwhile: Option<Ask>,
    },
    /// Background work.
    #[proptest(weight = 2)]
    Maintain(u8),
    /// A walk over all items, this many at a time.
    #[proptest(weight = 2)]
    Visit(u8),
    /// A flush after this many ticks; `None` is one tick ago.
    #[proptest(weight = 1)]
    Flush(Option<u8>),
}

/// One request.
#[derive(Clone, Debug, Arbitrary, Generate)]
pub struct Ask {
    /// The key that it is about.
    pub key: KeyNumber,
    /// What to do.
    pub op: OpSpec,
}

/// One of a few keys.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
pub struct KeyNumber(pub u8);

/// How many keys there are: few, so that requests meet.
pub const KEYS: usize = 24;

impl KeyNumber {
    /// Which key it is, below [`KEYS`].
    pub fn index(self) -> usize {
        usize::from(self.0) % KEYS
    }

    /// Its bytes: some short, some long, some binary, some prefixes of others, some the same in several databases.
    pub fn bytes(self) -> Vec<u8> {
        let index = self.index() as u8;
        match index % 6 {
            0 => vec![index],
            1 => format!("key {index}").into_bytes(),
            // One of them as long as every engine takes.
            2 => vec![b'k'; 257 - usize::from(index)],
            3 => [&[0; 20][..], &[index]].concat(),
            4 => [&[b'k'; 8][..], &[index, b'\r', b'\n', 0xFF]].concat(),
            _ => Namespace::of(usize::from(index / 6), 0).stored(b"0123456789abcdef"),
        }
    }
}

/// An operation.
#[derive(Clone, Debug, Arbitrary, Generate)]
pub enum OpSpec {
    /// A plain get.
    #[proptest(weight = 5)]
    Get,
    /// A read.
    #[proptest(weight = 4)]
    Read(ReadSpec),
    /// A plain set.
    #[proptest(weight = 3)]
    Set(ValueSpec),
    /// Any store.
    #[proptest(weight = 5)]
    Store(StoreSpec),
    /// A removal.
    #[proptest(weight = 2)]
    Remove {
        /// Its condition.
        condition: ConditionSpec,
        /// What it leaves.
        leave: LeaveSpec,
    },
    /// An incr or decr.
    #[proptest(weight = 3)]
    Delta {
        /// Down instead of up.
        down: bool,
        /// By how much.
        by: NumberSpec,
        /// Its condition.
        condition: ConditionSpec,
        /// On a hit, the new expiry.
        touch: Option<ExpirySpec>,
        /// On a miss, the number and its expiry.
        vivify: Option<(NumberSpec, ExpirySpec)>,
        /// A cas of its own.
        new_cas: Option<OwnCas>,
    },
}

/// Options of a read.
#[derive(Clone, Debug, Arbitrary, Generate)]
pub struct ReadSpec {
    /// See [`nuthatch_engine::Read`], as for all of them.
    pub value: bool,
    /// A new expiry.
    pub touch: Option<ExpirySpec>,
    /// What that requires.
    pub touch_if: TouchIfSpec,
    /// Create on a miss.
    pub vivify: Option<ExpirySpec>,
    /// Recache below this many seconds.
    pub recache_below: Option<u8>,
    /// No value at this cas.
    pub unless_cas: Option<CasSpec>,
    /// The cas of the item created.
    pub new_cas: Option<OwnCas>,
    /// Takes part in winning.
    pub may_win: bool,
    /// Leaves a trace.
    pub bump: bool,
}

/// What a touch requires.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
pub enum TouchIfSpec {
    /// Nothing.
    #[proptest(weight = 3)]
    Always,
    /// This cas.
    #[proptest(weight = 2)]
    Cas(CasSpec),
    /// See [`nuthatch_engine::TouchIf`], as for all of them.
    Lasting,
    /// An expiry.
    Expiring,
    /// An earlier expiry.
    Prolonged,
    /// A later expiry.
    Shortened,
    /// A later expiry that is not never.
    ExpiringShortened,
}

/// A store.
#[derive(Clone, Debug, Arbitrary, Generate)]
pub struct StoreSpec {
    /// How it treats an existing item.
    pub mode: ModeSpec,
    /// The value.
    pub value: ValueSpec,
    /// The flags.
    pub flags: u8,
    /// The expiry.
    pub expiry: ExpirySpec,
    /// The condition.
    pub condition: ConditionSpec,
    /// A cas of its own.
    pub new_cas: Option<OwnCas>,
    /// Create on a miss.
    pub vivify: Option<ExpirySpec>,
}

/// A store's mode.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
#[expect(missing_docs, reason = "they are those of nuthatch_engine::StoreMode")]
pub enum ModeSpec {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
}

/// What a removal leaves.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
pub enum LeaveSpec {
    /// Nothing.
    Nothing,
    /// The item, marked stale.
    Stale {
        /// A new expiry.
        expiry: Option<ExpirySpec>,
        /// A cas of its own.
        new_cas: Option<OwnCas>,
    },
    /// The item, emptied.
    Empty {
        /// And marked stale.
        stale: bool,
        /// A new expiry.
        expiry: Option<ExpirySpec>,
        /// A cas of its own.
        new_cas: Option<OwnCas>,
    },
}

/// A condition.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
pub enum ConditionSpec {
    /// None.
    #[proptest(weight = 3)]
    None,
    /// This cas.
    Cas(CasSpec),
    /// This, or an older one.
    CasOrStale(CasSpec),
}

/// A cas to be demanded.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
pub enum CasSpec {
    /// The one that was seen for the key this many sights ago.
    #[proptest(weight = 4)]
    Seen(#[proptest(strategy = "0..4_u8")] u8),
    /// One that some request may have brought.
    Own(OwnCas),
    /// One that no item ever has.
    Never,
}

/// A cas that a request brings: far above those that an engine gives.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
pub struct OwnCas(#[proptest(strategy = "0..4_u8")] pub u8);

/// The lowest cas that a request brings.
pub const OWN_CAS_MIN: u64 = u64::MAX - 255;

/// The cas that no item ever has: above an engine's, below those that requests bring.
pub const NEVER_CAS: u64 = OWN_CAS_MIN - 1;

impl OwnCas {
    /// The cas.
    pub fn cas(self) -> u64 {
        OWN_CAS_MIN + u64::from(self.0)
    }
}

/// An expiry.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
pub enum ExpirySpec {
    /// Never.
    #[proptest(weight = 3)]
    Never,
    /// This many ticks from now; 0 is dead on arrival.
    After(u8),
    /// Long ago.
    Past,
}

impl ExpirySpec {
    /// The expiry, at `now`.
    pub fn at(self, now: Time) -> Expiry {
        match self {
            ExpirySpec::Never => Expiry::Never,
            ExpirySpec::After(ticks) => Expiry::At(Time(now.0 + u32::from(ticks))),
            ExpirySpec::Past => Expiry::At(Time(1)),
        }
    }
}

/// A number.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
pub enum NumberSpec {
    /// A small one.
    Small(u8),
    /// One this far from the largest.
    Huge(u8),
}

impl NumberSpec {
    /// The number.
    pub fn number(self) -> u64 {
        match self {
            NumberSpec::Small(number) => number.into(),
            NumberSpec::Huge(less) => u64::MAX - u64::from(less),
        }
    }
}

/// A value.
#[derive(Clone, Copy, Debug, Arbitrary, Generate)]
pub enum ValueSpec {
    /// Digits.
    #[proptest(weight = 3)]
    Number(NumberSpec),
    /// Up to 255 bytes.
    #[proptest(weight = 5)]
    Short {
        /// How many.
        len: u8,
        /// Which.
        seed: u8,
    },
    /// Up to 64 KiB.
    #[proptest(weight = 2)]
    Long {
        /// How many.
        len: u16,
        /// Which.
        seed: u8,
    },
    /// Up to 1.25 MiB, in steps of 16 KiB: from 1 MiB on, more than fits.
    #[proptest(weight = 1)]
    Huge {
        /// How many.
        steps: u8,
        /// Which.
        seed: u8,
    },
}

impl ValueSpec {
    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        let (len, seed) = match self {
            ValueSpec::Number(number) => return number.number().to_string().into_bytes(),
            ValueSpec::Short { len, seed } => (usize::from(len), seed),
            ValueSpec::Long { len, seed } => (usize::from(len), seed),
            ValueSpec::Huge { steps, seed } => (usize::from(steps % 80) << 14, seed),
        };
        bytes(usize::from(seed), len)
    }
}
