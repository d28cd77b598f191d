//! Requests to the engine outside of the batch, for commands that need the engine's reply before they can answer.

use std::mem::MaybeUninit;
use std::ops::Range;

use nuthatch_base::memory::reserve::spare;
use nuthatch_commands::answers::resp::{STORE, failure};
use nuthatch_commands::context::Context;
use nuthatch_commands::counting::{self, Kind};
use nuthatch_commands::output::Output;
use nuthatch_commands::turn::Turn;
use nuthatch_commands::work::Work;
use nuthatch_engine::{
    AnyValue, Condition, Delta, Expiry, Item, Op, Read, Replies, Reply, Request, Store, StoreMode,
    TouchIf, Value,
};
use nuthatch_resp::{Error, Version, Writer};

/// A part of a large value that is no longer than this is copied, and the value is free at once.
const PIECE_COPIED: usize = 8 << 10;

/// How often a change is tried if other clients are faster.
pub const ATTEMPTS: usize = 1000;

/// The answer to one request, with the value if there is one.
#[derive(Default)]
struct CollectedReply {
    value: Output<AnyValue>,
    large: Option<AnyValue>,
    item: Option<Item>,
    reply: Option<Reply>,
}

impl Replies<AnyValue> for CollectedReply {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.item = Some(*item);
        self.value.begin(item.value_len, |_| {})
    }

    fn commit(&mut self, _: usize) {
        // SAFETY: the engine calls this after it wrote all of the room that it got from the last `begin`: that is its
        // side of `Replies`.
        unsafe { self.value.commit() };
    }

    fn retract(&mut self, _: usize) {
        self.item = None;
        self.value.retract();
    }

    fn large(&mut self, _: usize, item: &Item, value: AnyValue) {
        self.item = Some(*item);
        self.large = Some(value);
    }

    fn done(&mut self, _: usize, reply: Reply) {
        self.reply = Some(reply);
    }
}

fn collect(cx: &mut Context<'_, '_>, key: &[u8], op: Op<'_>) -> CollectedReply {
    let request = Request {
        key: cx.key(key),
        op,
    };
    let mut collected = CollectedReply::default();
    cx.execute(&[request], &mut collected);
    collected
}

/// The reply to a request that gets no value. It is counted.
pub fn ask(cx: &mut Context<'_, '_>, key: &[u8], op: Op<'_>, kind: Kind) -> Reply {
    let value_len = match &op {
        Op::Store(store) => store.value.len(),
        _ => 0,
    };
    let reply = collect(cx, key, op).reply.unwrap_or(Reply::Miss);
    let request = counting::Request::replied(key, value_len, &reply);
    cx.count(kind, request);
    reply
}

/// An item and its value.
pub struct Found {
    pub item: Item,
    pub value: Content,
}

/// A value that was read. A large one stays in the engine, pinned: a copy of it would be memory that no limit counts.
pub enum Content {
    Copied(Vec<u8>),
    Pinned(AnyValue),
}

impl Content {
    pub fn len(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.len(),
            Self::Pinned(value) => value.len(),
        }
    }

    /// Bytes of memory that are not the engine's.
    pub fn memory(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.capacity(),
            Self::Pinned(value) => value.memory(),
        }
    }

    /// A contiguous piece of this part, from its start on. Empty only if the part is.
    pub fn chunk(&self, part: Range<usize>) -> &[u8] {
        match self {
            Self::Copied(bytes) => &bytes[part],
            Self::Pinned(value) => {
                let chunk = value.chunk(part.start);
                &chunk[..chunk.len().min(part.len())]
            }
        }
    }

    /// A part of it, piece by piece as it lies in the engine.
    pub fn pieces(&self, part: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let mut at = part.start;
        std::iter::from_fn(move || {
            let piece = (at < part.end).then(|| self.chunk(at..part.end))?;
            at += piece.len();
            Some(piece)
        })
    }

    /// Its bytes in memory of the caller, which has room for `len` bytes. The client chooses how many these are, so that
    /// may fail.
    pub fn copy(self, len: usize) -> Result<Vec<u8>, Error<'static>> {
        let room = len.max(self.len());
        match self {
            Self::Copied(mut bytes) => {
                reserve(&mut bytes, room)?;
                Ok(bytes)
            }
            pinned => {
                let mut bytes = Vec::new();
                reserve(&mut bytes, room)?;
                let pieces = pinned.pieces(0..pinned.len());
                pieces.for_each(|piece| bytes.extend_from_slice(piece));
                Ok(bytes)
            }
        }
    }

    /// Its bytes in one piece: where they lie, or in `copy` if they lie in several. To copy them is work beside that of
    /// reading them.
    pub fn whole<'b>(
        &'b self,
        copy: &'b mut Vec<u8>,
        work: &mut Work,
    ) -> Result<&'b [u8], Error<'static>> {
        let all = 0..self.len();
        let first = self.chunk(all.clone());
        if first.len() == all.len() {
            return Ok(first);
        }
        reserve(copy, all.len())?;
        work.add(Work::of_bytes(all.len()));
        self.pieces(all)
            .for_each(|piece| copy.extend_from_slice(piece));
        Ok(copy)
    }

    /// How many of these bytes the answer copies.
    pub fn copied_of(&self, part: &Range<usize>) -> usize {
        match self {
            Self::Pinned(_) if part.len() > PIECE_COPIED => 0,
            Self::Copied(_) | Self::Pinned(_) => part.len(),
        }
    }

    /// Writes these of its bytes to the client.
    pub fn answer(
        self,
        turn: &mut Turn,
        version: Version,
        part: impl FnOnce(usize) -> Range<usize>,
    ) {
        let part = part(self.len());
        if !turn.makes_room(self.copied_of(&part)) {
            return Writer::new(turn.output.text(), version).error(&Error::OUT_OF_MEMORY);
        }
        Writer::new(turn.output.text(), version).bulk_header(part.len());
        self.put(turn, part);
        turn.output.text().extend_from_slice(b"\r\n");
    }

    /// Puts these of its bytes into the output, which has room for those that are copied.
    pub fn put(self, turn: &mut Turn, part: Range<usize>) {
        match self {
            Self::Pinned(value) if part.len() > PIECE_COPIED => {
                turn.output.pin_part(value, part);
            }
            short => {
                let text = turn.output.text();
                let pieces = short.pieces(part);
                pieces.for_each(|piece| text.extend_from_slice(piece));
            }
        }
    }
}

/// Makes room for this many bytes in all.
fn reserve(bytes: &mut Vec<u8>, room: usize) -> Result<(), Error<'static>> {
    let more = room.saturating_sub(bytes.len());
    spare(|| bytes.try_reserve_exact(more)).map_err(|_| Error::OUT_OF_MEMORY)
}

/// Reads an item.
pub fn read(cx: &mut Context<'_, '_>, key: &[u8]) -> Option<Found> {
    let found = find(cx, key)?;
    // Also for a pinned value: most commands that read one copy it, or compare it.
    cx.work.add(Work::of_bytes(found.item.value_len));
    Some(found)
}

/// Reads an item, whose value is copied later.
pub fn find(cx: &mut Context<'_, '_>, key: &[u8]) -> Option<Found> {
    let mut collected = collect(cx, key, Op::Read(Read::default()));
    let item = collected.item?;
    Some(Found {
        item,
        value: match collected.large {
            Some(value) => Content::Pinned(value),
            None => Content::Copied(std::mem::take(collected.value.text())),
        },
    })
}

/// Counts a command that read a value, or found none, as a get.
pub fn count_get(cx: &Context<'_, '_>, key: &[u8], found: Option<&Found>) {
    let request = match found {
        Some(found) => counting::Request::found(key, found.item.value_len),
        None => counting::Request::replied(key, 0, &Reply::Miss),
    };
    cx.count(Kind::Get, request);
}

fn a_look<'v>() -> Op<'v> {
    Op::Read(Read {
        value: false,
        bump: false,
        idle: true,
        ..Read::default()
    })
}

/// Looks at an item without using it, for a command that relies on what it sees: an error if nobody can say what
/// there is.
pub fn look_surely(cx: &mut Context<'_, '_>, key: &[u8]) -> Result<Option<Item>, Error<'static>> {
    match ask(cx, key, a_look(), Kind::Nothing) {
        Reply::Found(item) => Ok(Some(item)),
        reply if reply.is_failure() => Err(failure(&reply)),
        _ => Ok(None),
    }
}

/// Looks at an item without using it, for a command that is counted as a whole.
pub fn look(cx: &mut Context<'_, '_>, key: &[u8]) -> Option<Item> {
    look_as(cx, key, Kind::Nothing)
}

/// Looks at an item without using it.
pub fn look_as(cx: &mut Context<'_, '_>, key: &[u8], kind: Kind) -> Option<Item> {
    match ask(cx, key, a_look(), kind) {
        Reply::Found(item) => Some(item),
        _ => None,
    }
}

/// Gives an item another expiry, under a condition. [`Reply::Found`] if it did.
pub fn touch<'v>(expiry: Expiry, condition: TouchIf) -> Op<'v> {
    Op::Read(Read {
        value: false,
        bump: false,
        touch: Some(expiry),
        touch_if: condition,
        ..Read::default()
    })
}

/// The new state of an item.
pub struct Change<'v, T> {
    pub value: std::borrow::Cow<'v, [u8]>,
    pub expiry: Expiry,
    pub flags: u32,
    /// The same as a change of the number that is there: it is changed where it lies, and no item is stored.
    pub delta: Option<Delta>,
    /// The answer if the change succeeds.
    pub answer: T,
}

/// The decision about an item.
pub enum Decision<'v, T> {
    /// It stays as it is.
    Stay(T),
    /// It becomes this.
    Become(Change<'v, T>),
}

/// What a change is in the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountAs {
    Store,
    Delta { is_down: bool },
}

/// Changes an item depending on its state. Calls `decide` again if another client changed the item meanwhile.
pub fn change<'v, T>(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    as_what: CountAs,
    mut decide: impl FnMut(Option<Found>) -> Result<Decision<'v, T>, Error<'static>>,
) -> Result<T, Error<'static>> {
    for _ in 0..ATTEMPTS {
        let found = read(cx, key);
        let cas = found.as_ref().map(|found| found.item.cas);
        let change = match decide(found)? {
            Decision::Stay(answer) => return Ok(answer),
            Decision::Become(change) => change,
        };
        let mut store = Store::set(&change.value);
        store.flags = change.flags;
        store.expiry = change.expiry;
        match cas {
            Some(cas) => store.condition = Condition::Cas(cas),
            None => store.mode = StoreMode::Add,
        }
        let is_hit = cas.is_some();
        let kind = Kind::Change(match as_what {
            CountAs::Store => counting::Change::Store,
            CountAs::Delta { is_down } => counting::Change::Delta { is_down, is_hit },
        });
        let op = match change.delta {
            Some(delta) if is_hit => Op::Delta(Delta {
                condition: store.condition,
                ..delta
            }),
            _ => Op::Store(store),
        };
        let reply = ask(cx, key, op, kind);
        match reply {
            Reply::Stored(_) | Reply::Number(..) => return Ok(change.answer),
            reply if reply.is_failure() => return Err(failure(&reply)),
            // Another client changed it, added it, or removed it.
            _ => {}
        }
        if cas.is_none() {
            // Or it could not be read.
            look_surely(cx, key)?;
        }
    }
    Err(Error::BUSY)
}

/// Removes an item if `is_meant` accepts it, and returns it.
pub fn take_if(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    is_meant: impl Fn(&Found) -> bool,
) -> Result<Option<Found>, Error<'static>> {
    for _ in 0..ATTEMPTS {
        let Some(found) = read(cx, key).filter(&is_meant) else {
            return Ok(None);
        };
        let removal = nuthatch_engine::Removal {
            condition: Condition::Cas(found.item.cas),
            ..Default::default()
        };
        if ask(cx, key, Op::Remove(removal), Kind::Nothing) == Reply::Removed {
            return Ok(Some(found));
        }
    }
    Err(Error::BUSY)
}

/// Counts a store that its condition refused, as an add of a key that is there.
pub fn count_refused(cx: &Context<'_, '_>, key: &[u8], value_len: usize) {
    let request = counting::Request::replied(key, value_len, &Reply::NotStored);
    cx.count(STORE, request);
}
