//! memcached's protocols: bytes in, commands out; replies in, bytes out. No I/O, no engine.
//!
//! [`parse`] looks at the front of a connection's input and says what stands there. It keeps no
//! state: the connection does (what to swallow, which value is still arriving).

#![forbid(unsafe_code)]

pub mod command;

pub use command::*;
