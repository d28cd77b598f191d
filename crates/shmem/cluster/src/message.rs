//! The messages between sessions and servers (active operations), and their encoding.
//!
//! ```text
//!  request  0  63..32 words  31..24 options of the kind  23..8 more of them  7..0 kind
//!           1  63..32 value's bytes  31..0 tick at which it happens
//!           2  hash
//!           3  63..56 key's bytes
//!           4 ...  five parameters; the key, in whole words; the value, in whole words
//!
//!  reply    0  63..32 words  15..8 status  7..0 kind
//!           1  flags, expiry      2  cas      3  63..32 value's bytes  31..0 idle ticks
//!           4  pointer      5  generation of its page      6  tail      7  number
//!           8 ...  the value, in whole words
//! ```
//!
//! Every request is answered, in order; an invalid one with [`ServerReply::Refused`]. A value over [`INLINE_MAX`] does
//! not travel in a message: the session writes it into a block that the server reserved, or reads it from the block
//! that the reply points to.

use std::time::Duration;

use nuthatch_base::sync::clock::TICKS_PER_SECOND;
use nuthatch_engine::request::COMMON_KEY_LEN_MAX as KEY_MAX;
use nuthatch_engine::{
    Condition, Delta, Expiry, Item, Key, Leave, Op, Read, Removal, Reply, Request, Store,
    StoreMode, Time, TouchIf,
};

use crate::block::{expiry_of_tick, expiry_to_tick, push_bytes, words_of};
use crate::bucket::Pointer;
use crate::ring::{MESSAGE_MAX, first_word};

/// The longest value in a message, in bytes.
pub const INLINE_MAX: usize = 3 << 10;

const PARAMETERS: usize = 5;
const KEY_AT: usize = 4 + PARAMETERS;
const REPLY_VALUE_AT: usize = 8;

/// The longest reply, in words.
pub const REPLY_MAX: usize = REPLY_VALUE_AT + words_of(INLINE_MAX);

const _: () = assert!(cfg!(loom) || KEY_AT + words_of(255) + words_of(INLINE_MAX) <= MESSAGE_MAX);
const _: () = assert!(cfg!(loom) || REPLY_MAX <= MESSAGE_MAX);

/// A request to a server.
#[derive(Clone, Copy, Debug)]
pub enum ServerRequest<'a> {
    /// An operation of the engine's seam.
    Op(Request<'a>),
    /// A read whose value no writer can take away, if it is too long for a message: the server keeps a copy until the
    /// session has taken its pieces.
    Copy(Key<'a>, Read),
    /// A piece of that copy, of [`INLINE_MAX`] bytes; the last one may be shorter.
    Piece(usize),
    /// Reserve a block for a key and a value of this many bytes.
    Reserve(Key<'a>, usize),
    /// Store the pair that was written into a reserved block; `value` is ignored.
    Commit(Key<'a>, Store<'a>, usize, Pointer),
    /// Blocks that were read: for each its pointer, its recency, and its new recency, as words.
    Used(&'a [u8]),
    /// Search this many buckets for pairs that have expired.
    Maintain(usize),
    /// Flush everything stored before this moment.
    Flush(Time),
    /// Another memory limit, in bytes.
    Limit(usize),
    /// Tell the statistics.
    Stats,
    /// Tell for each class its pages, its blocks, and its free blocks.
    Classes,
    /// Reset the counters.
    Reset,
    /// Check every invariant.
    Audit,
    /// The entries of a bucket that only the server knows, from this tag on.
    Overflow(usize, u64),
}

/// A request as a server reads it.
#[derive(Clone, Copy, Debug)]
pub struct TimedRequest<'a> {
    /// The moment at which it happens.
    pub now: Time,
    /// The request.
    pub request: ServerRequest<'a>,
}

const GET: u32 = 1;
const READ: u32 = 2;
const STORE: u32 = 3;
const REMOVE: u32 = 4;
const DELTA: u32 = 5;
const COPY: u32 = 6;
const RESERVE: u32 = 7;
const COMMIT: u32 = 8;
const PIECE: u32 = 9;
const MAINTAIN: u32 = 10;
const FLUSH: u32 = 11;
const LIMIT: u32 = 12;
const RESET: u32 = 13;
const AUDIT: u32 = 14;
const OVERFLOW: u32 = 15;
const STATS: u32 = 16;
const CLASSES: u32 = 17;
const USED: u32 = 18;

/// Bytes of a block that was read, in [`ServerRequest::Used`].
const USED_BYTES: usize = 24;

/// Options and parameters of a request, packed and unpacked in the same order.
#[derive(Default)]
struct Packed {
    options: u32,
    bit: u32,
    parameters: [u64; PARAMETERS],
    parameter: usize,
}

impl Packed {
    fn put_bits(&mut self, value: u32, bits: u32) {
        debug_assert!(value < 1 << bits);
        self.options |= value << self.bit;
        self.bit += bits;
    }

    fn put_flag(&mut self, flag: bool) {
        self.put_bits(flag.into(), 1);
    }

    fn put(&mut self, word: u64) {
        self.parameters[self.parameter] = word;
        self.parameter += 1;
    }

    fn put_option(&mut self, word: Option<u64>) {
        self.put_flag(word.is_some());
        self.put(word.unwrap_or(0));
    }

    fn put_condition(&mut self, condition: Condition) {
        let (kind, cas) = match condition {
            Condition::None => (0, 0),
            Condition::Cas(cas) => (1, cas),
            Condition::CasOrStale(cas) => (2, cas),
        };
        self.put_bits(kind, 2);
        self.put(cas);
    }

    fn put_touch_if(&mut self, condition: TouchIf) {
        let (kind, cas) = match condition {
            TouchIf::Always => (0, 0),
            TouchIf::Cas(cas) => (1, cas),
            TouchIf::Lasting => (2, 0),
            TouchIf::Expiring => (3, 0),
            TouchIf::Prolonged => (4, 0),
            TouchIf::Shortened => (5, 0),
            TouchIf::ExpiringShortened => (6, 0),
        };
        self.put_bits(kind, 3);
        self.put(cas);
    }

    fn bits(&mut self, bits: u32) -> u32 {
        let value = self.options >> self.bit & ((1 << bits) - 1);
        self.bit += bits;
        value
    }

    fn flag(&mut self) -> bool {
        self.bits(1) != 0
    }

    fn word(&mut self) -> u64 {
        self.parameter += 1;
        self.parameters[self.parameter - 1]
    }

    /// A word that is a length or a position: values have 32 bits for these.
    fn length(&mut self) -> Option<usize> {
        u32::try_from(self.word())
            .ok()
            .map(|length| length as usize)
    }

    fn option(&mut self) -> Option<u64> {
        let is_some = self.flag();
        let word = self.word();
        is_some.then_some(word)
    }

    fn condition(&mut self) -> Condition {
        let kind = self.bits(2);
        match (kind, self.word()) {
            (0, _) => Condition::None,
            (1, cas) => Condition::Cas(cas),
            (_, cas) => Condition::CasOrStale(cas),
        }
    }

    fn touch_if(&mut self) -> TouchIf {
        let kind = self.bits(3);
        match (kind, self.word()) {
            (0, _) => TouchIf::Always,
            (1, cas) => TouchIf::Cas(cas),
            (2, _) => TouchIf::Lasting,
            (3, _) => TouchIf::Expiring,
            (4, _) => TouchIf::Prolonged,
            (5, _) => TouchIf::Shortened,
            _ => TouchIf::ExpiringShortened,
        }
    }
}

/// Two ticks in a word.
fn expiries(one: Option<Expiry>, other: Option<Expiry>) -> u64 {
    let tick = |expiry: Option<Expiry>| u64::from(expiry.map_or(0, expiry_to_tick));
    tick(one) << 32 | tick(other)
}

fn pack_read(packed: &mut Packed, read: &Read) {
    for flag in [read.value, read.may_win, read.bump, read.idle] {
        packed.put_flag(flag);
    }
    packed.put_flag(read.touch.is_some());
    packed.put_flag(read.vivify.is_some());
    packed.put(expiries(read.touch, read.vivify));
    packed.put_option(read.recache_below.map(u64::from));
    packed.put_option(read.unless_cas);
    packed.put_touch_if(read.touch_if);
    packed.put_option(read.new_cas);
}

fn unpack_read(packed: &mut Packed) -> Read {
    let [value, may_win, bump, idle, touch, vivify] = std::array::from_fn(|_| packed.flag());
    let ticks = packed.word();
    Read {
        value,
        may_win,
        bump,
        idle,
        details: true,
        touch: touch.then(|| expiry_of_tick((ticks >> 32) as u32)),
        vivify: vivify.then(|| expiry_of_tick(ticks as u32)),
        recache_below: packed.option().map(|below| below as u32),
        unless_cas: packed.option(),
        touch_if: packed.touch_if(),
        new_cas: packed.option(),
    }
}

const MODES: [StoreMode; 5] = [
    StoreMode::Set,
    StoreMode::Add,
    StoreMode::Replace,
    StoreMode::Append,
    StoreMode::Prepend,
];

fn pack_store(packed: &mut Packed, store: &Store<'_>) {
    let mode = MODES.iter().position(|&mode| mode == store.mode);
    packed.put_bits(mode.unwrap_or(0) as u32, 3);
    packed.put(u64::from(store.flags) << 32 | u64::from(expiry_to_tick(store.expiry)));
    packed.put_condition(store.condition);
    packed.put_option(store.new_cas);
    packed.put_option(store.vivify.map(|expiry| expiry_to_tick(expiry).into()));
}

fn unpack_store<'a>(packed: &mut Packed, value: &'a [u8]) -> Store<'a> {
    let mode = MODES[packed.bits(3) as usize % MODES.len()];
    let life = packed.word();
    Store {
        mode,
        value,
        flags: (life >> 32) as u32,
        expiry: expiry_of_tick(life as u32),
        condition: packed.condition(),
        new_cas: packed.option(),
        vivify: packed.option().map(|tick| expiry_of_tick(tick as u32)),
    }
}

fn pack_removal(packed: &mut Packed, removal: &Removal) {
    packed.put_condition(removal.condition);
    let (kind, stale, expiry, new_cas) = match removal.leave {
        Leave::Nothing => (0, false, None, None),
        Leave::Stale { expiry, new_cas } => (1, true, expiry, new_cas),
        Leave::Empty {
            stale,
            expiry,
            new_cas,
        } => (2, stale, expiry, new_cas),
    };
    packed.put_bits(kind, 2);
    packed.put_flag(stale);
    packed.put_option(expiry.map(|expiry| expiry_to_tick(expiry).into()));
    packed.put_option(new_cas);
}

fn unpack_removal(packed: &mut Packed) -> Removal {
    let condition = packed.condition();
    let (kind, stale) = (packed.bits(2), packed.flag());
    let expiry = packed.option().map(|tick| expiry_of_tick(tick as u32));
    let new_cas = packed.option();
    let leave = match kind {
        0 => Leave::Nothing,
        1 => Leave::Stale { expiry, new_cas },
        _ => Leave::Empty {
            stale,
            expiry,
            new_cas,
        },
    };
    Removal { condition, leave }
}

fn pack_delta(packed: &mut Packed, delta: &Delta) {
    packed.put_flag(delta.down);
    packed.put(delta.by);
    packed.put_condition(delta.condition);
    packed.put_option(delta.new_cas);
    packed.put_flag(delta.touch.is_some());
    packed.put(expiries(
        delta.touch,
        delta.vivify.map(|(_, expiry)| expiry),
    ));
    packed.put_option(delta.vivify.map(|(number, _)| number));
}

fn unpack_delta(packed: &mut Packed) -> Delta {
    let (down, by) = (packed.flag(), packed.word());
    let (condition, new_cas) = (packed.condition(), packed.option());
    let (touch, ticks, vivify) = (packed.flag(), packed.word(), packed.option());
    Delta {
        down,
        by,
        condition,
        touch: touch.then(|| expiry_of_tick((ticks >> 32) as u32)),
        vivify: vivify.map(|number| (number, expiry_of_tick(ticks as u32))),
        new_cas,
    }
}

impl<'a> TimedRequest<'a> {
    /// Encodes the message.
    pub fn encode(&self, into: &mut Vec<u64>) {
        let mut packed = Packed::default();
        let (kind, key, value): (u32, Option<&Key<'_>>, &[u8]) = match &self.request {
            ServerRequest::Op(Request { key, op }) => match op {
                Op::Get => (GET, Some(key), b""),
                Op::Read(read) => {
                    pack_read(&mut packed, read);
                    (READ, Some(key), b"")
                }
                Op::Store(store) => {
                    pack_store(&mut packed, store);
                    (STORE, Some(key), store.value)
                }
                Op::Remove(removal) => {
                    pack_removal(&mut packed, removal);
                    (REMOVE, Some(key), b"")
                }
                Op::Delta(delta) => {
                    pack_delta(&mut packed, delta);
                    (DELTA, Some(key), b"")
                }
            },
            ServerRequest::Copy(key, read) => {
                pack_read(&mut packed, read);
                (COPY, Some(key), b"")
            }
            ServerRequest::Piece(number) => {
                packed.put(*number as u64);
                (PIECE, None, b"")
            }
            ServerRequest::Reserve(key, value_len) => {
                packed.put(*value_len as u64);
                (RESERVE, Some(key), b"")
            }
            ServerRequest::Commit(key, store, value_len, pointer) => {
                pack_store(&mut packed, store);
                packed.put(pointer.word());
                // The value is elsewhere, so its length stands for no bytes here.
                return self.finish(into, COMMIT, &packed, Some(key), b"", *value_len);
            }
            ServerRequest::Used(words) => (USED, None, *words),
            ServerRequest::Maintain(budget) => {
                packed.put(*budget as u64);
                (MAINTAIN, None, b"")
            }
            ServerRequest::Flush(at) => {
                packed.put(at.0.into());
                (FLUSH, None, b"")
            }
            ServerRequest::Limit(bytes) => {
                packed.put(*bytes as u64);
                (LIMIT, None, b"")
            }
            ServerRequest::Stats => (STATS, None, b""),
            ServerRequest::Classes => (CLASSES, None, b""),
            ServerRequest::Reset => (RESET, None, b""),
            ServerRequest::Audit => (AUDIT, None, b""),
            ServerRequest::Overflow(bucket, from) => {
                packed.put(*bucket as u64);
                packed.put(*from);
                (OVERFLOW, None, b"")
            }
        };
        self.finish(into, kind, &packed, key, value, value.len());
    }

    fn finish(
        &self,
        into: &mut Vec<u64>,
        kind: u32,
        packed: &Packed,
        key: Option<&Key<'_>>,
        value: &[u8],
        value_len: usize,
    ) {
        let key_bytes = key.map_or(&b""[..], |key| key.bytes());
        into.clear();
        let words = KEY_AT + words_of(key_bytes.len()) + words_of(value.len());
        into.push(first_word(words, packed.options << 8 | kind));
        into.push((value_len as u64) << 32 | u64::from(self.now.0));
        into.push(key.map_or(0, Key::hash));
        into.push((key_bytes.len() as u64) << 56);
        into.extend(packed.parameters);
        push_bytes(into, &[key_bytes]);
        push_bytes(into, &[value]);
    }

    /// Decodes a message. `None` if it is invalid.
    pub fn decode(words: &'a [u64]) -> Option<Self> {
        let mut packed = Packed {
            options: words[0] as u32 >> 8,
            parameters: words.get(4..KEY_AT)?.try_into().ok()?,
            ..Packed::default()
        };
        let (value_len, now) = ((words[1] >> 32) as usize, Time(words[1] as u32));
        let key_len = (words[3] >> 56) as usize;
        let bytes: &[u8] = bytemuck::cast_slice(words.get(KEY_AT..)?);
        let key = || {
            let key = bytes.get(..key_len)?;
            (1..=KEY_MAX)
                .contains(&key_len)
                .then(|| Key::hashed(key, words[2]))
        };
        let value = || bytes.get(8 * words_of(key_len)..)?.get(..value_len);
        let op = |op| key().map(|key| ServerRequest::Op(Request { key, op }));
        let request = match words[0] as u32 & 0xff {
            GET => op(Op::Get)?,
            READ => op(Op::Read(unpack_read(&mut packed)))?,
            STORE => op(Op::Store(unpack_store(&mut packed, value()?)))?,
            REMOVE => op(Op::Remove(unpack_removal(&mut packed)))?,
            DELTA => op(Op::Delta(unpack_delta(&mut packed)))?,
            COPY => ServerRequest::Copy(key()?, unpack_read(&mut packed)),
            PIECE => ServerRequest::Piece(packed.length()?),
            RESERVE => ServerRequest::Reserve(key()?, packed.length()?),
            COMMIT => {
                let store = unpack_store(&mut packed, b"");
                ServerRequest::Commit(key()?, store, value_len, Pointer::of_word(packed.word()))
            }
            USED => {
                ServerRequest::Used(value().filter(|words| words.len().is_multiple_of(USED_BYTES))?)
            }
            MAINTAIN => ServerRequest::Maintain(packed.word() as usize),
            FLUSH => ServerRequest::Flush(Time(packed.word() as u32)),
            LIMIT => ServerRequest::Limit(packed.word() as usize),
            STATS => ServerRequest::Stats,
            CLASSES => ServerRequest::Classes,
            RESET => ServerRequest::Reset,
            AUDIT => ServerRequest::Audit,
            OVERFLOW => ServerRequest::Overflow(packed.word() as usize, packed.word()),
            _ => return None,
        };
        Some(Self { now, request })
    }
}

/// Where a pair's block is, and in which state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockState {
    /// The block.
    pub pointer: Pointer,
    /// How often its page had changed its class.
    pub generation: u64,
    /// Its tail while it is not locked.
    pub tail: u64,
}

/// A server's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerReply<'a> {
    /// An answer without a value; where the pair is, if there is one.
    Reply(Reply, Option<BlockState>),
    /// A read hit, with its value.
    Value(Item, BlockState, &'a [u8]),
    /// A read hit; the value is to be read from the block.
    At(Item, BlockState),
    /// A read that changes the pair, whose value is too long for a message: it was not carried out, and
    /// [`ServerRequest::Copy`] is to ask for it.
    Long,
    /// A read hit; the value is kept for the session, which is to ask for its pieces.
    Copied(Item, BlockState),
    /// A block was reserved.
    Reserved(Pointer),
    /// Done; true if there is more to do.
    Done(bool),
    /// A text: what is wrong, or nothing.
    Text(&'a [u8]),
    /// Words: pointers, or statistics.
    Words(&'a [u8]),
    /// The message was invalid, and nothing was done: a PE has written over it.
    Refused,
    /// The same, and it is unknown where the next message begins: the server reads nothing more from this session.
    Closed,
}

const MISS: u32 = 1;
const FOUND: u32 = 2;
const STORED: u32 = 3;
const NOT_STORED: u32 = 4;
const EXISTS: u32 = 5;
const NOT_FOUND: u32 = 6;
const REMOVED: u32 = 7;
const NUMBER: u32 = 8;
const NOT_NUMERIC: u32 = 9;
const TOO_LARGE: u32 = 10;
const OUT_OF_MEMORY: u32 = 11;
const VALUE: u32 = 12;
const AT: u32 = 13;
const RESERVED: u32 = 14;
const DONE: u32 = 15;
const MORE: u32 = 16;
const TEXT: u32 = 17;
const WORDS: u32 = 18;
const LONG: u32 = 19;
const COPIED: u32 = 20;
const REFUSED: u32 = 21;
const CLOSED: u32 = 22;
const CREATED: u32 = 23;

const MARK_STALE: u32 = 1;
const MARK_WON: u32 = 2;
const MARK_WON_BEFORE: u32 = 4;
const MARK_FETCHED: u32 = 8;

fn idle_ticks(idle: Duration) -> u64 {
    let ticks = idle.as_nanos() * u128::from(TICKS_PER_SECOND) / 1_000_000_000;
    ticks.min(u32::MAX.into()) as u64
}

impl<'a> ServerReply<'a> {
    /// Encodes the message.
    pub fn encode(&self, into: &mut Vec<u64>) {
        let none = Item::default();
        let (kind, item, known, number, value): (_, _, _, _, &[u8]) = match self {
            ServerReply::Reply(reply, known) => {
                let (kind, item, number) = match reply {
                    Reply::Miss => (MISS, &none, 0),
                    Reply::Found(item) => (FOUND, item, 0),
                    Reply::Stored(item) => (STORED, item, 0),
                    Reply::NotStored => (NOT_STORED, &none, 0),
                    Reply::Exists => (EXISTS, &none, 0),
                    Reply::NotFound => (NOT_FOUND, &none, 0),
                    Reply::Removed => (REMOVED, &none, 0),
                    Reply::Number(number, item) => (NUMBER, item, *number),
                    Reply::Created(number, item) => (CREATED, item, *number),
                    Reply::NotNumeric => (NOT_NUMERIC, &none, 0),
                    Reply::TooLarge => (TOO_LARGE, &none, 0),
                    // No server of the store says the latter.
                    Reply::OutOfMemory | Reply::Unavailable => (OUT_OF_MEMORY, &none, 0),
                };
                (kind, item, *known, number, b"")
            }
            ServerReply::Value(item, known, value) => (VALUE, item, Some(*known), 0, value),
            ServerReply::At(item, known) => (AT, item, Some(*known), 0, b""),
            ServerReply::Long => (LONG, &none, None, 0, b""),
            ServerReply::Copied(item, known) => (COPIED, item, Some(*known), 0, b""),
            ServerReply::Reserved(pointer) => (RESERVED, &none, None, pointer.word(), b""),
            ServerReply::Done(more) => (if *more { MORE } else { DONE }, &none, None, 0, b""),
            ServerReply::Text(text) => (TEXT, &none, None, text.len() as u64, text),
            ServerReply::Words(words) => (WORDS, &none, None, words.len() as u64, words),
            ServerReply::Refused => (REFUSED, &none, None, 0, b""),
            ServerReply::Closed => (CLOSED, &none, None, 0, b""),
        };
        let status = [
            (item.stale, MARK_STALE),
            (item.won, MARK_WON),
            (item.won_before, MARK_WON_BEFORE),
            (item.fetched, MARK_FETCHED),
        ];
        let status = status
            .iter()
            .map(|&(is, bit)| u32::from(is) * bit)
            .sum::<u32>();
        let words = REPLY_VALUE_AT + words_of(value.len());
        into.clear();
        into.push(first_word(words, status << 8 | kind));
        into.push(u64::from(item.flags) << 32 | u64::from(expiry_to_tick(item.expiry)));
        into.push(item.cas);
        into.push((item.value_len as u64) << 32 | idle_ticks(item.idle));
        into.push(known.map_or(0, |known| known.pointer.word()));
        into.push(known.map_or(0, |known| known.generation));
        into.push(known.map_or(0, |known| known.tail));
        into.push(number);
        push_bytes(into, &[value]);
    }

    /// True if a message is [`ServerReply::Closed`].
    pub fn is_closing(words: &[u64]) -> bool {
        words
            .first()
            .is_some_and(|&first| first as u32 & 0xff == CLOSED)
    }

    /// Decodes a message. `None` if it is invalid.
    pub fn decode(words: &'a [u64]) -> Option<Self> {
        let head: [u64; REPLY_VALUE_AT] = words.get(..REPLY_VALUE_AT)?.try_into().ok()?;
        let [first, life, cas, lengths, pointer, generation, tail, number] = head;
        let has = |bit| first as u32 >> 8 & bit != 0;
        let item = Item {
            flags: (life >> 32) as u32,
            value_len: (lengths >> 32) as usize,
            cas,
            expiry: expiry_of_tick(life as u32),
            stale: has(MARK_STALE),
            won: has(MARK_WON),
            won_before: has(MARK_WON_BEFORE),
            fetched: has(MARK_FETCHED),
            idle: Time(lengths as u32).since(Time(0)),
        };
        let at = BlockState {
            pointer: Pointer::of_word(pointer),
            generation,
            tail,
        };
        let known = (tail != 0).then_some(at);
        let bytes: &[u8] = bytemuck::cast_slice(&words[REPLY_VALUE_AT..]);
        let reply = |reply| ServerReply::Reply(reply, known);
        Some(match first as u32 & 0xff {
            MISS => reply(Reply::Miss),
            FOUND => reply(Reply::Found(item)),
            STORED => reply(Reply::Stored(item)),
            NOT_STORED => reply(Reply::NotStored),
            EXISTS => reply(Reply::Exists),
            NOT_FOUND => reply(Reply::NotFound),
            REMOVED => reply(Reply::Removed),
            NUMBER => reply(Reply::Number(number, item)),
            CREATED => reply(Reply::Created(number, item)),
            NOT_NUMERIC => reply(Reply::NotNumeric),
            TOO_LARGE => reply(Reply::TooLarge),
            OUT_OF_MEMORY => reply(Reply::OutOfMemory),
            VALUE => ServerReply::Value(item, at, bytes.get(..item.value_len)?),
            AT => ServerReply::At(item, at),
            RESERVED => ServerReply::Reserved(Pointer::of_word(number)),
            DONE => ServerReply::Done(false),
            MORE => ServerReply::Done(true),
            TEXT => ServerReply::Text(bytes.get(..number as usize)?),
            LONG => ServerReply::Long,
            COPIED => ServerReply::Copied(item, at),
            WORDS => ServerReply::Words(bytes.get(..number as usize)?),
            REFUSED => ServerReply::Refused,
            CLOSED => ServerReply::Closed,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use nuthatch_engine::KeyHasher;

    use super::*;

    fn key(bytes: &[u8]) -> Key<'_> {
        Key::new(bytes, &KeyHasher::seeded(1))
    }

    fn there_and_back(request: ServerRequest<'_>) {
        let timed = TimedRequest {
            now: Time(77),
            request,
        };
        let mut words = Vec::new();
        timed.encode(&mut words);
        assert_eq!(words.len() as u64, words[0] >> 32);
        let back = TimedRequest::decode(&words).expect("it is a message");
        assert_eq!(format!("{back:?}"), format!("{timed:?}"));
    }

    #[test]
    fn requests_come_back() {
        let long = [b'k'; 250];
        let value = vec![9; INLINE_MAX];
        let expiry = Some(Expiry::At(Time(5)));
        let mut ops = vec![Op::Get, Op::Read(Read::default())];
        ops.push(Op::Read(Read {
            value: false,
            touch: expiry,
            vivify: Some(Expiry::Never),
            recache_below: Some(30),
            unless_cas: Some(u64::MAX),
            touch_if: TouchIf::Cas(7),
            new_cas: Some(3),
            may_win: true,
            bump: false,
            idle: true,
            details: true,
        }));
        for mode in MODES {
            ops.push(Op::Store(Store {
                mode,
                value: &value,
                flags: u32::MAX,
                expiry: Expiry::At(Time(9)),
                condition: Condition::CasOrStale(8),
                new_cas: Some(1 << 63),
                vivify: expiry,
            }));
        }
        ops.push(Op::Store(Store::set(b"")));
        for leave in [
            Leave::Nothing,
            Leave::Stale {
                expiry,
                new_cas: None,
            },
            Leave::Empty {
                stale: true,
                expiry: None,
                new_cas: Some(4),
            },
        ] {
            ops.push(Op::Remove(Removal {
                condition: Condition::Cas(6),
                leave,
            }));
        }
        ops.push(Op::Delta(Delta::up(u64::MAX)));
        ops.push(Op::Delta(Delta {
            touch: expiry,
            vivify: Some((7, Expiry::Never)),
            new_cas: Some(2),
            ..Delta::down(1)
        }));
        for op in ops {
            there_and_back(ServerRequest::Op(Request { key: key(b"k"), op }));
            there_and_back(ServerRequest::Op(Request {
                key: key(&long),
                op,
            }));
        }
        there_and_back(ServerRequest::Copy(key(b"key"), Read::default()));
        there_and_back(ServerRequest::Piece(7));
        there_and_back(ServerRequest::Reserve(key(b"key"), 1 << 20));
        let store = Store {
            value: b"",
            new_cas: Some(1),
            vivify: expiry,
            condition: Condition::Cas(1 << 40),
            ..Store::set(b"")
        };
        let pointer = Pointer::new(200, (1 << 40) - 1);
        there_and_back(ServerRequest::Commit(key(&long), store, 1 << 20, pointer));
        for request in [
            ServerRequest::Used(&[7; 48]),
            ServerRequest::Maintain(usize::MAX),
            ServerRequest::Flush(Time(u32::MAX)),
            ServerRequest::Limit(1 << 40),
            ServerRequest::Stats,
            ServerRequest::Classes,
            ServerRequest::Reset,
            ServerRequest::Audit,
            ServerRequest::Overflow(9, 8),
        ] {
            there_and_back(request);
        }
    }

    #[test]
    fn replies_come_back() {
        let item = Item {
            flags: 1 << 31,
            value_len: 5,
            cas: 1 << 60,
            expiry: Expiry::At(Time(4)),
            stale: true,
            won: true,
            won_before: true,
            fetched: true,
            idle: Duration::from_secs(3),
        };
        let known = BlockState {
            pointer: Pointer::new(4, 99),
            generation: u64::MAX,
            tail: 3 << 16,
        };
        let all = [
            ServerReply::Reply(Reply::Miss, None),
            ServerReply::Reply(Reply::Found(item), Some(known)),
            ServerReply::Reply(Reply::Stored(item), Some(known)),
            ServerReply::Reply(Reply::NotStored, None),
            ServerReply::Reply(Reply::Exists, None),
            ServerReply::Reply(Reply::NotFound, None),
            ServerReply::Reply(Reply::Removed, None),
            ServerReply::Reply(Reply::Number(u64::MAX, item), Some(known)),
            ServerReply::Reply(Reply::Created(7, item), Some(known)),
            ServerReply::Reply(Reply::NotNumeric, None),
            ServerReply::Reply(Reply::TooLarge, None),
            ServerReply::Reply(Reply::OutOfMemory, None),
            ServerReply::Value(item, known, b"value"),
            ServerReply::At(item, known),
            ServerReply::Long,
            ServerReply::Copied(item, known),
            ServerReply::Reserved(known.pointer),
            ServerReply::Done(false),
            ServerReply::Done(true),
            ServerReply::Text(b"what is wrong"),
            ServerReply::Words(&[1; 16]),
            ServerReply::Refused,
            ServerReply::Closed,
        ];
        for told in all {
            let mut words = Vec::new();
            told.encode(&mut words);
            assert_eq!(words.len() as u64, words[0] >> 32);
            assert_eq!(ServerReply::decode(&words), Some(told));
            assert_eq!(ServerReply::is_closing(&words), told == ServerReply::Closed);
        }
    }

    #[test]
    fn other_words_are_no_messages() {
        assert!(TimedRequest::decode(&[first_word(3, GET), 0, 0]).is_none());
        assert!(TimedRequest::decode(&[0; 12]).is_none());
        assert!(ServerReply::decode(&[0; 12]).is_none());
        let mut cut = Vec::new();
        ServerReply::Text(b"text").encode(&mut cut);
        cut.truncate(REPLY_VALUE_AT);
        assert!(ServerReply::decode(&cut).is_none());
    }

    #[test]
    fn messages_of_impossible_lengths_are_none() {
        let change = |request: ServerRequest<'_>, at: usize, word: u64| {
            let mut words = Vec::new();
            TimedRequest {
                now: Time(77),
                request,
            }
            .encode(&mut words);
            assert!(TimedRequest::decode(&words).is_some());
            words[at] = word;
            TimedRequest::decode(&words).is_none()
        };
        let get = ServerRequest::Op(Request {
            key: key(b"key"),
            op: Op::Get,
        });
        let set = ServerRequest::Op(Request {
            key: key(b"key"),
            op: Op::Store(Store::set(b"value")),
        });
        // No key, or one that is longer than the message; a value that is longer; no kind.
        for long in [0, 9, KEY_MAX as u64] {
            assert!(change(get, 3, long << 56));
        }
        assert!(change(set, 1, 9 << 32) && change(set, 1, u64::MAX));
        assert!(change(get, 0, first_word(10, 0)) && change(get, 0, u64::MAX));
        // A block and a half; a piece and a value of more bytes than there are.
        assert!(
            change(ServerRequest::Used(&[7; 48]), 1, 47 << 32)
                && change(ServerRequest::Used(&[7; 48]), 1, 32 << 32)
        );
        assert!(
            change(ServerRequest::Piece(1), 4, u64::MAX)
                && change(ServerRequest::Reserve(key(b"k"), 9), 4, 1 << 61)
        );
    }
}
