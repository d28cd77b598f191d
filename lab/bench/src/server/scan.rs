//! Parsing of replies, whatever the protocol, and the counts of their keys.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::engine::Items;
use crate::server::binary::Replies as BinaryReplies;
use crate::server::cpserver::{Dialect, Replies as CpserverReplies};
use crate::server::replies::Replies as TextReplies;
use crate::server::resp::Replies as RedisReplies;
use crate::server::script::{Request, Script};

/// The protocol of the server under load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// memcached's text protocol
    #[default]
    Memcached,
    /// memcached's binary protocol; all gets of a block but the last are quiet
    Binary,
    /// Redis' GET and SET, in RESP2
    Redis,
    /// CPServer's LOOKUP and INSERT; an INSERT has no answer
    Cpserver,
    /// CPServer's FIND and STORE, which both have an answer
    CpserverExtended,
}

impl Protocol {
    /// The program that is known for it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Memcached | Self::Binary => "memcached",
            Self::Redis => "redis-server",
            Self::Cpserver | Self::CpserverExtended => "cpserver",
        }
    }

    /// CPServer's dialect, if it is CPServer's.
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Memcached | Self::Binary | Self::Redis => None,
            Self::Cpserver => Some(Dialect::Paper),
            Self::CpserverExtended => Some(Dialect::Extended),
        }
    }
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// The reply is complete: its bytes (none, if the request has no answer), and its hits and misses.
    Complete(usize, Counts),
    /// More bytes are needed; this many need not be parsed again.
    Partial(usize),
}

/// The outcomes of a request's keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys with a value.
    pub hits: u64,
    /// Keys without.
    pub misses: u64,
    /// Values stored.
    pub stored: u64,
}

impl Counts {
    /// One value stored.
    pub const STORED: Counts = Counts {
        hits: 0,
        misses: 0,
        stored: 1,
    };

    /// Counts the keys of both.
    pub fn add(&mut self, other: &Counts) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.stored += other.stored;
    }

    /// Keys in all.
    pub fn operations(&self) -> u64 {
        self.hits + self.misses + self.stored
    }
}

/// How far the reply to one request was parsed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Values seen.
    pub hits: u64,
    /// Keys of the request that have been answered or passed over.
    pub passed: usize,
}

/// The error of a set that the server refuses: often its value is larger than the server's largest item.
pub fn refused(value_size: usize, reply: &str) -> String {
    format!("a set was refused: {reply} (--value-size {value_size})")
}

/// Looks through replies of one protocol.
pub enum Scanner {
    /// memcached's.
    Text(TextReplies),
    /// CPServer's.
    Cpserver(CpserverReplies),
    /// memcached's binary ones.
    Binary(BinaryReplies),
    /// Redis'.
    Redis(RedisReplies),
}

impl Scanner {
    /// For items of these sizes, stored without flags.
    pub fn new(protocol: Protocol, items: &Items) -> Self {
        let value_size = items.value_size;
        match (protocol, protocol.dialect()) {
            (_, Some(dialect)) => Self::Cpserver(CpserverReplies::new(dialect, value_size)),
            (Protocol::Binary, _) => Self::Binary(BinaryReplies::new(value_size)),
            (Protocol::Redis, _) => Self::Redis(RedisReplies::new(value_size)),
            _ => Self::Text(TextReplies::new(items.key_size, value_size)),
        }
    }

    /// Bytes of one value's record: the least that a buffer must hold.
    pub fn record(&self) -> usize {
        match self {
            Self::Text(replies) => replies.record(),
            Self::Cpserver(replies) => replies.record(),
            Self::Binary(replies) => replies.record(),
            Self::Redis(replies) => replies.record(),
        }
    }

    /// Looks through the reply to `request` at the front of `bytes`.
    #[inline]
    pub fn scan(
        &self,
        script: &Script,
        request: Request,
        progress: &mut Progress,
        bytes: &[u8],
    ) -> Result<Scan, String> {
        match self {
            Self::Text(replies) => replies.scan(script, request, progress, bytes),
            Self::Cpserver(replies) => replies.scan(script, request, bytes),
            Self::Binary(replies) => replies.scan(script, request, bytes),
            Self::Redis(replies) => replies.scan(script, request, bytes),
        }
    }
}
