//! Parsers and encoders of memcached's protocols and the CPHash paper's: bytes in, commands out; replies in, bytes out. No
//! I/O, no engine. memcached's text and meta commands are here, its binary protocol is in [`binary`], the protocol of the
//! CPHash paper in [`cpserver`], and the frames of datagrams in [`datagram`]. (Redis' protocol is the crate
//! `nuthatch-resp`.)
//!
//! [`parse()`] parses the front of a connection's input. It keeps no state: the connection does (the bytes to drop, the
//! value that is still arriving, and in an [`Awaited`] when to parse an incomplete command again). [`encode`] appends
//! replies to a connection's output. Neither allocates on the path of a get or a set.
//!
//! ```
//! use nuthatch_protocol::{Command, Limits, Parsed, encode, parse};
//!
//! let limits = Limits::of_values(1 << 20);
//! let Parsed::Command { command: Command::Get(get), consumed } =
//!     parse(b"get seed nut\r\nquit\r\n", &limits)
//! else {
//!     panic!("a complete line is a command");
//! };
//! assert_eq!(consumed, 14);
//!
//! let mut out = Vec::new();
//! for key in get.keys.iter() {
//!     encode::value(&mut out, key, 0, 2, None);
//!     out.extend_from_slice(b"42\r\n");
//! }
//! out.extend_from_slice(encode::END);
//! assert_eq!(out, b"VALUE seed 0 2\r\n42\r\nVALUE nut 0 2\r\n42\r\nEND\r\n");
//! ```

#![forbid(unsafe_code)]

pub mod binary;
pub mod command;
pub mod cpserver;
pub mod datagram;
pub mod dump;
pub mod encode;
pub mod reply_line;

mod admin;
mod awaited;
mod delete;
mod delta;
mod error;
mod get;
mod key;
mod limits;
mod meta;
mod meta_flags;
mod number;
mod parse;
mod reject;
mod store;
#[cfg(test)]
mod testing;
mod touch;
mod words;

pub use awaited::Awaited;
pub use command::*;
pub use error::Error;
pub use get::{NextKey, next_key};
pub use key::{KEY_LEN_MAX, KEY_ROOM, decode_key, encode_key};
pub use limits::Limits;
pub use meta_flags::OPAQUE_MAX;
pub use parse::{LINE_MAX, awaited, awaited_block, parse};
pub use words::{WordIter, Words};
