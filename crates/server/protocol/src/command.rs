//! The commands of the text protocol, as the parser returns them. Everything borrows from the input.

use crate::binary;
use crate::error::Error;
use crate::words::Words;

/// The command at the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// Nothing complete yet; ask again with more bytes.
    Incomplete,
    /// A complete command, and how many bytes of input it took (data block included).
    Command {
        /// The command.
        command: Command<'a>,
        /// Bytes to drop from the input.
        consumed: usize,
    },
    /// The line of a storage command whose data block has not arrived completely. The server may wait for it, or take
    /// the line and receive the block piece by piece.
    Body {
        /// The command, with an empty value.
        store: Store<'a>,
        /// Bytes of the line, line end included.
        line: usize,
        /// Bytes of the data block without its `\r\n`.
        value_len: usize,
    },
    /// The front of a get's line of more than [`LINE_MAX`](crate::LINE_MAX) bytes. Its keys follow: the caller takes
    /// them one by one with [`next_key`](crate::next_key), so the length of the line has no limit.
    LongGet {
        /// The command, without keys.
        get: Get<'a>,
        /// Bytes to drop from the input.
        consumed: usize,
    },
    /// A line that cannot be executed.
    Refused(Refusal),
    /// The header of a request of the binary protocol.
    Binary(binary::Foreign),
}

/// Why a line is refused and how the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The error for the client.
    pub error: Error,
    /// True if the client gets no answer: it sent noreply, or it is no client of memcached's.
    pub quiet: bool,
    /// Bytes to drop from the input now.
    pub consumed: usize,
    /// Bytes to drop after those (the data block of a refused storage command), whether they have arrived already or
    /// not.
    pub swallow: u64,
    /// The error is final: reply, then close.
    pub close: bool,
    /// The key whose old value must not survive (a refused set).
    pub forget: Option<Forget>,
}

/// The place of a refused set's key in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forget {
    /// Its first byte.
    pub start: usize,
    /// Its bytes.
    pub len: usize,
    /// True if it is written in base64 (`ms` with `b`).
    pub base64: bool,
}

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// get, gets, gat, gats: about one key or more. Apart from the others, which are larger: a get costs least if none
    /// of these is moved with it.
    Get(Get<'a>),
    /// About one key and its value, or mn, which is answered in the order of these.
    Value(ValueCommand<'a>),
    /// About the server, the connection, or all items.
    Server(ServerCommand<'a>),
}

/// A command about one key and its value, or mn.
#[derive(Debug, PartialEq, Eq)]
pub enum ValueCommand<'a> {
    /// set, add, replace, append, prepend, cas.
    Store(Store<'a>),
    /// delete.
    Delete {
        /// The key.
        key: &'a [u8],
        /// Do not answer.
        noreply: bool,
    },
    /// incr, decr.
    Delta {
        /// The key.
        key: &'a [u8],
        /// Down instead of up.
        down: bool,
        /// By how much.
        by: u64,
        /// Do not answer.
        noreply: bool,
    },
    /// touch.
    Touch {
        /// The key.
        key: &'a [u8],
        /// The new expiry, as the client wrote it.
        exptime: Exptime,
        /// Do not answer.
        noreply: bool,
    },
    /// mg ms md ma me mn.
    Meta(Meta<'a>),
}

/// A command about the server, the connection, or all items.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerCommand<'a> {
    /// flush_all.
    FlushAll {
        /// As the client wrote it; 0 is at once.
        delay: Exptime,
        /// Do not answer.
        noreply: bool,
    },
    /// version.
    Version,
    /// verbosity.
    Verbosity {
        /// The level.
        level: u32,
        /// Do not answer.
        noreply: bool,
    },
    /// stats, with its words.
    Stats(Words<'a>),
    /// cache_memlimit, in megabytes.
    MemoryLimit {
        /// Mebibytes.
        megabytes: u64,
        /// Do not answer.
        noreply: bool,
    },
    /// slabs, with its words.
    Slabs(Words<'a>),
    /// lru, with its words.
    Lru(Words<'a>),
    /// lru_crawler, with its words.
    LruCrawler(Words<'a>),
    /// watch, with its words.
    Watch(Words<'a>),
    /// shutdown, with its words.
    Shutdown(Words<'a>),
    /// refresh_certs: TLS certificates are read again.
    RefreshCerts,
    /// quit.
    Quit,
}

/// An expiry as clients write it, in seconds: 0 never, negative expired at once, up to 30 days relative, above that
/// since 1970. It has 32 bits, as in memcached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Exptime(pub i32);

/// get, gets, gat, gats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// One key or more. Each is already checked to have 1 to 250 bytes.
    pub keys: Words<'a>,
    /// Reply with the cas (gets, gats).
    pub with_cas: bool,
    /// The new expiry (gat, gats).
    pub touch: Option<Exptime>,
}

/// How a storage command treats an existing item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerb {
    /// set.
    Set,
    /// add.
    Add,
    /// replace.
    Replace,
    /// append.
    Append,
    /// prepend.
    Prepend,
    /// cas, with the cas it demands.
    Cas(u64),
    /// ms: everything else is in its flags.
    Meta,
}

/// A storage command.
#[derive(Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// How it treats an existing item.
    pub verb: StoreVerb,
    /// The key; its base64 form if this is an `ms` with `b`.
    pub key: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// When it expires.
    pub exptime: Exptime,
    /// The value; empty in [`Parsed::Body`].
    pub value: &'a [u8],
    /// Do not answer.
    pub noreply: bool,
    /// The flags of `ms`, for [`StoreVerb::Meta`].
    pub meta: Option<MetaFlags<'a>>,
}

/// A meta command other than `ms` (which is a [`Store`]).
#[derive(Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// Which.
    pub verb: MetaVerb,
    /// The key as sent; empty for `mn`. With `flags.base64` it is the base64 form of the item's
    /// key, already checked: see [`decode_key`](crate::decode_key).
    pub key: &'a [u8],
    /// Its flags, checked.
    pub flags: MetaFlags<'a>,
}

/// The meta commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVerb {
    /// mg
    Get,
    /// md
    Delete,
    /// ma
    Arithmetic,
    /// me
    Debug,
    /// mn
    Noop,
}

/// Mode of `ms` and `ma` (flag `M`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaMode {
    /// `ms`: set (also the default).
    Set,
    /// `ms`: add.
    Add,
    /// `ms`: append.
    Append,
    /// `ms`: prepend.
    Prepend,
    /// `ms`: replace.
    Replace,
    /// `ma`: increment (also the default).
    Increment,
    /// `ma`: decrement.
    Decrement,
}

/// The flags of a meta command, each meaning what memcached's protocol says for its command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaFlags<'a> {
    /// The flags as they stood in the request, for replies that must return them in its order.
    pub raw: Words<'a>,
    /// `b`: the key is base64, and the reply has it in base64.
    pub base64: bool,
    /// `q`: leave out the uninteresting reply.
    pub quiet: bool,
    /// `u`: do not change the item's recency.
    pub no_bump: bool,
    /// `v`: return the value.
    pub value: bool,
    /// `x` of md: drop the value, keep the item.
    pub drop_value: bool,
    /// `I`.
    pub invalidate: bool,
    /// `C`.
    pub compare_cas: Option<u64>,
    /// `E`.
    pub new_cas: Option<u64>,
    /// `F`.
    pub client_flags: Option<u32>,
    /// `T`.
    pub ttl: Option<Exptime>,
    /// `N`.
    pub vivify: Option<Exptime>,
    /// `R`.
    pub recache: Option<Exptime>,
    /// `J`.
    pub initial: Option<u64>,
    /// `D`.
    pub delta: Option<u64>,
    /// `M`.
    pub mode: Option<MetaMode>,
    /// `O`: the opaque, at most [`OPAQUE_MAX`](crate::OPAQUE_MAX) bytes.
    pub opaque: Option<&'a [u8]>,
}
