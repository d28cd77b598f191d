//! Redis' protocol, RESP2 and RESP3: bytes in, commands out; replies in, bytes out. No I/O, no engine.
//!
//! [`parse()`] parses the front of a connection's input. It keeps no state: it parses a request of a few arguments
//! again when the bytes of [`Parsed::Incomplete`] have arrived. Of a request of many keys the server takes the head
//! first ([`Parsed::Many`]) and then key by key ([`element`]), so that it never holds more of the request than a key. A
//! value that is still arriving is announced ([`Parsed::Body`]). [`Rest`] skips a refused request: it finds the end of
//! any request without keeping it.
//!
//! ```
//! use nuthatch_protocol::Limits;
//! use nuthatch_resp::{Parsed, ValueCommand, parse};
//!
//! let limits = Limits::of_values(1 << 20);
//! let parsed = parse(b"*2\r\n$3\r\nGET\r\n$4\r\nseed\r\n", &limits);
//! let command = ValueCommand::Get { key: b"seed" }.into();
//! assert_eq!(parsed, Parsed::Command { command, consumed: 23 });
//! ```

#![forbid(unsafe_code)]

mod arguments;
mod categories;
mod channels;
mod command;
mod conditions;
mod encode;
mod error;
mod glob;
mod info;
mod inline;
mod insight;
mod keyed;
mod kill;
mod management;
mod many;
mod names;
mod number;
mod parse;
mod pause;
mod queue;
mod range;
mod rest;
mod scripts;
mod sizes;
mod strings;
mod summary;
#[cfg(test)]
mod testing;
mod tracking;
mod words;

pub use arguments::{ARGUMENTS_LEN_MAX, Values, check_key_len};
pub use channels::{ChannelCommand, ChannelKind, Front, Publish, command_at, front};
pub use command::*;
pub use conditions::{Comparison, Pattern};
pub use encode::{NO_TLS, OUT_OF_MEMORY_READING, Version, Writer, too_many_connections};
pub use error::Error;
pub use glob::{Glob, PATTERN_LEN_MAX};
pub use info::{HumanBytes, InfoLines};
pub use inline::{LINE_MAX, rewrite, rewritten_max};
pub use keyed::DUMP_OVERHEAD_MAX;
pub use kill::{ClientKind, Kill};
pub use many::{Element, element, emptied};
pub use names::{Described, described, in_script};
pub use number::{Decimal, integer};
pub use parse::{Understood, parse, says_who};
pub use pause::{Pause, writes};
pub use queue::{Queued, parse_queued};
pub use range::range;
pub use rest::Rest;
pub use sizes::{bytes, hard_limit};
pub use summary::{Summary, announced_len, first_line};
pub use tracking::Tracking;
pub use words::parse_words;
