//! The parser of the binary protocol: it parses the front of a connection's input. As in the text protocol it keeps no
//! state. It checks lengths as memcached does: lengths that an operation cannot have end the connection, because the
//! start of the next request is unknown.

use super::{HEADER, Head, MAGIC, Opcode, Status};
use crate::awaited::Awaited;
use crate::key::KEY_LEN_MAX;
use crate::limits::Limits;

/// The longest body. A longer one is refused before it arrives.
const BODY_MAX: u32 = 1 << 30;

/// The expiry that forbids to make a counter that does not exist.
const MAKE_NONE: u32 = u32::MAX;

/// The request at the front of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// Nothing complete yet; ask again with more bytes.
    Incomplete,
    /// A complete request.
    Request {
        /// The request.
        request: Request<'a>,
        /// Its bytes.
        consumed: usize,
    },
    /// The head of a storage request whose value has not arrived completely. The server may wait for it, or take the
    /// head and receive the value piece by piece.
    Body {
        /// What its answer repeats.
        head: Head,
        /// The request, with an empty value.
        store: Store<'a>,
        /// Bytes before the value.
        start: usize,
        /// Bytes of the value.
        value_len: usize,
    },
    /// A request that cannot be executed.
    Refused(Refusal<'a>),
    /// It does not begin with [`MAGIC`]: the start of the next request is unknown.
    Foreign,
}

/// A complete request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What its answer repeats.
    pub head: Head,
    /// The operation and its arguments.
    pub command: Command<'a>,
}

/// The operation of a request, and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// About a key and its value.
    Value(ValueCommand<'a>),
    /// About the server, the connection, or all items.
    Server(ServerCommand<'a>),
}

/// A command about a key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueCommand<'a> {
    /// Get, GetK, GAT, GATK, Touch.
    Get {
        /// 1 to 250 bytes of any kind, as every key here.
        key: &'a [u8],
        /// The item's new expiry, in memcached's sense: from now, or in unix time.
        touch: Option<u32>,
        /// The answer has the value.
        value: bool,
    },
    /// Set, Add, Replace, Append, Prepend.
    Store(Store<'a>),
    /// Delete.
    Delete {
        /// The item's key.
        key: &'a [u8],
        /// 0 demands nothing.
        cas: u64,
    },
    /// Increment, Decrement.
    Delta {
        /// The number's key.
        key: &'a [u8],
        /// True to subtract, down to 0.
        down: bool,
        /// The amount.
        by: u64,
        /// The number and the expiry to make it with if it does not exist.
        make: Option<(u64, u32)>,
        /// 0 demands nothing.
        cas: u64,
    },
}

/// A command about the server, the connection, or all items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCommand<'a> {
    /// Flush.
    Flush {
        /// Seconds until then, in memcached's sense.
        delay: u32,
    },
    /// No-op: its answer means that all requests before it are answered.
    Noop,
    /// Version.
    Version,
    /// Statistics of a topic. All if it is empty.
    Stat(&'a [u8]),
    /// Quit.
    Quit,
    /// About a login by SASL.
    Sasl(Sasl<'a>),
}

/// A request of SASL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sasl<'a> {
    /// Asks for the list of mechanisms.
    List,
    /// Begins or continues a login.
    Auth {
        /// The mechanism.
        mechanism: &'a [u8],
        /// The client's data.
        data: &'a [u8],
    },
}

/// A storage request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// How.
    pub verb: StoreVerb,
    /// The key.
    pub key: &'a [u8],
    /// What.
    pub value: &'a [u8],
    /// What the client keeps beside the value.
    pub flags: u32,
    /// The expiry, in memcached's sense.
    pub exptime: u32,
    /// 0 demands nothing.
    pub cas: u64,
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerb {
    /// Stores in any case.
    Set,
    /// Stores if there is no item.
    Add,
    /// Stores if there is an item.
    Replace,
    /// Appends to the value.
    Append,
    /// Prepends to the value.
    Prepend,
}

/// A request that is answered with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// What its answer repeats.
    pub head: Head,
    /// The error.
    pub status: Status,
    /// Bytes that are used up now.
    pub consumed: usize,
    /// Bytes behind these that are to be dropped, whether they have arrived already or not.
    pub swallow: u64,
    /// The connection must close.
    pub close: bool,
    /// The key whose old value must not survive.
    pub forget: Option<&'a [u8]>,
}

/// A parsed header.
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) head: Head,
    key: usize,
    extras: usize,
    pub(super) body: u32,
    cas: u64,
}

/// The header at the front of `input`, if it is complete and one of the binary protocol.
#[inline]
pub(super) fn header(input: &[u8]) -> Option<Header> {
    let header = input.first_chunk::<HEADER>()?;
    let [MAGIC, opcode, key_high, key_low, extras, ..] = *header else {
        return None;
    };
    let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    let (cas_high, cas_low) = (word(16), word(20));
    Some(Header {
        head: Head {
            opcode: Opcode(opcode),
            opaque: word(12),
        },
        key: usize::from(u16::from_be_bytes([key_high, key_low])),
        extras: usize::from(extras),
        body: u32::from_be_bytes(word(8)),
        cas: u64::from(u32::from_be_bytes(cas_high)) << 32 | u64::from(u32::from_be_bytes(cas_low)),
    })
}

/// Parses the front of `input`. More input never changes a result other than [`Parsed::Incomplete`] and
/// [`Parsed::Body`].
#[inline]
pub fn parse<'a>(input: &'a [u8], limits: &Limits) -> Parsed<'a> {
    let Some(header) = header(input) else {
        return match input.first() {
            None | Some(&MAGIC) => Parsed::Incomplete,
            Some(_) => Parsed::Foreign,
        };
    };
    if let Some(refusal) = header.refusal() {
        return Parsed::Refused(refusal);
    }
    match header.head.opcode.loud().0 {
        Opcode::SET | Opcode::ADD | Opcode::REPLACE | Opcode::APPEND | Opcode::PREPEND => {
            parse_store(&header, input, limits)
        }
        loud => match input.get(HEADER..HEADER + header.body as usize) {
            None => Parsed::Incomplete,
            Some(body) => Parsed::Request {
                request: Request {
                    head: header.head,
                    command: command(&header, loud, body),
                },
                consumed: HEADER + body.len(),
            },
        },
    }
}

/// The bytes that must arrive before [`parse()`], which returned [`Parsed::Incomplete`] for `input`, can return more.
pub fn awaited(input: &[u8]) -> Awaited {
    Awaited::bytes(match header(input) {
        // The first byte tells whether it is a request at all.
        None if input.is_empty() => 1,
        None => HEADER,
        // A store waits for its key only, and others have bodies that their limits bound.
        Some(header) if header.is_store() => HEADER + header.extras + header.key,
        Some(header) => HEADER + header.body as usize,
    })
}

impl Header {
    fn is_store(&self) -> bool {
        let (loud, _) = self.head.opcode.loud();
        matches!(
            loud,
            Opcode::SET | Opcode::ADD | Opcode::REPLACE | Opcode::APPEND | Opcode::PREPEND
        )
    }

    /// The refusal of the request, if its lengths or its opcode forbid it.
    #[inline]
    fn refusal(&self) -> Option<Refusal<'static>> {
        let refuse = |status, swallow, close| {
            Some(Refusal {
                head: self.head,
                status,
                consumed: HEADER,
                swallow,
                close,
                forget: None,
            })
        };
        let (key, extras, body) = (self.key, self.extras, self.body as usize);
        if key + extras > body {
            return refuse(Status::Unknown, 0, true);
        }
        if key > KEY_LEN_MAX || self.body > BODY_MAX {
            return refuse(Status::Invalid, 0, true);
        }
        let whole = body == key + extras;
        let fits = match self.head.opcode.loud().0 {
            Opcode::VERSION | Opcode::NOOP | Opcode::QUIT | Opcode::SASL_LIST => body == 0,
            Opcode::FLUSH => key == 0 && whole && (extras == 0 || extras == 4),
            Opcode::SET | Opcode::ADD | Opcode::REPLACE => extras == 8 && key > 0,
            Opcode::APPEND | Opcode::PREPEND => extras == 0 && key > 0,
            Opcode::GET | Opcode::GETK | Opcode::DELETE => extras == 0 && key > 0 && whole,
            Opcode::INCREMENT | Opcode::DECREMENT => extras == 20 && key > 0 && whole,
            Opcode::STAT => extras == 0 && whole,
            Opcode::SASL_AUTH | Opcode::SASL_STEP => {
                extras == 0 && key > 0 && body - key <= SASL_DATA_MAX
            }
            Opcode::TOUCH | Opcode::GAT | Opcode::GATK => extras == 4 && key > 0 && whole,
            _ => return refuse(Status::Unknown, self.body.into(), false),
        };
        match fits {
            true => None,
            false => refuse(Status::Invalid, 0, true),
        }
    }
}

/// The longest data of a login: name and password, with the bytes between them.
const SASL_DATA_MAX: usize = 1024;

/// The big-endian number at the front of some extras.
#[inline]
fn number(extras: &[u8]) -> u32 {
    let bytes = extras.first_chunk().copied();
    u32::from_be_bytes(bytes.unwrap_or_default())
}

/// A long number, likewise.
fn long(extras: &[u8]) -> u64 {
    let bytes = extras.first_chunk().copied();
    u64::from_be_bytes(bytes.unwrap_or_default())
}

#[inline]
fn parse_store<'a>(header: &Header, input: &'a [u8], limits: &Limits) -> Parsed<'a> {
    let start = HEADER + header.extras + header.key;
    let Some(known) = input.get(HEADER..start) else {
        return Parsed::Incomplete;
    };
    let (extras, key) = known.split_at(header.extras);
    let value_len = header.body as usize - header.extras - header.key;
    let (verb, exptime) = match header.head.opcode.loud().0 {
        Opcode::SET => (StoreVerb::Set, number(&extras[4..])),
        Opcode::ADD => (StoreVerb::Add, number(&extras[4..])),
        Opcode::REPLACE => (StoreVerb::Replace, number(&extras[4..])),
        Opcode::APPEND => (StoreVerb::Append, 0),
        _ => (StoreVerb::Prepend, 0),
    };
    let mut store = Store {
        verb,
        key,
        value: &[],
        flags: number(extras),
        exptime,
        cas: header.cas,
    };
    if value_len > limits.value_max {
        return Parsed::Refused(Refusal {
            head: header.head,
            status: Status::TooLarge,
            consumed: start,
            swallow: value_len as u64,
            close: false,
            forget: (verb == StoreVerb::Set).then_some(key),
        });
    }
    match input.get(start..start + value_len) {
        Some(value) => {
            store.value = value;
            Parsed::Request {
                request: Request {
                    head: header.head,
                    command: Command::Value(ValueCommand::Store(store)),
                },
                consumed: start + value_len,
            }
        }
        None => Parsed::Body {
            head: header.head,
            store,
            start,
            value_len,
        },
    }
}

/// The command of a request with this body. Its lengths have been checked.
#[inline]
fn command<'a>(header: &Header, loud: Opcode, body: &'a [u8]) -> Command<'a> {
    let (extras, rest) = body.split_at(header.extras);
    let (key, data) = rest.split_at(header.key);
    let get = |touch, value| Command::Value(ValueCommand::Get { key, touch, value });
    match loud {
        Opcode::GET | Opcode::GETK => get(None, true),
        Opcode::GAT | Opcode::GATK => get(Some(number(extras)), true),
        Opcode::TOUCH => get(Some(number(extras)), false),
        Opcode::DELETE => Command::Value(ValueCommand::Delete {
            key,
            cas: header.cas,
        }),
        Opcode::INCREMENT | Opcode::DECREMENT => {
            let (initial, exptime) = (long(&extras[8..]), number(&extras[16..]));
            Command::Value(ValueCommand::Delta {
                key,
                down: loud == Opcode::DECREMENT,
                by: long(extras),
                make: (exptime != MAKE_NONE).then_some((initial, exptime)),
                cas: header.cas,
            })
        }
        Opcode::FLUSH => Command::Server(ServerCommand::Flush {
            delay: number(extras),
        }),
        Opcode::NOOP => Command::Server(ServerCommand::Noop),
        Opcode::VERSION => Command::Server(ServerCommand::Version),
        Opcode::STAT => Command::Server(ServerCommand::Stat(key)),
        Opcode::QUIT => Command::Server(ServerCommand::Quit),
        Opcode::SASL_LIST => Command::Server(ServerCommand::Sasl(Sasl::List)),
        _ => Command::Server(ServerCommand::Sasl(Sasl::Auth {
            mechanism: key,
            data,
        })),
    }
}
