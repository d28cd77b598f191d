//! The state of a connection that speaks memcached's binary protocol.

use nuthatch_protocol::Limits;
use nuthatch_protocol::binary::Head;
use nuthatch_security::login::Login;

use crate::partial::PartialValue;

/// What the next byte of input means.
pub enum Phase {
    /// It begins a request.
    Requests,
    /// It is dropped: this many bytes are left to drop.
    Swallow(u64),
    /// It belongs to a large value.
    Value(Box<Incoming>),
    /// It begins a request of a client that has not logged in.
    Login(Login),
}

/// A large value that arrives piece by piece.
pub struct Incoming {
    pub value: PartialValue,
    pub head: Head,
    /// The request without its value, parsed again when the value is complete.
    pub request: Box<[u8]>,
}

impl Phase {
    /// Bytes still to come of a value that goes straight to the engine.
    #[inline]
    pub fn missing(&self) -> usize {
        match self {
            Self::Value(incoming) => incoming.value.missing(),
            _ => 0,
        }
    }

    /// The value under way that goes straight to the engine, if there is one.
    pub fn partial(&mut self) -> Option<&mut PartialValue> {
        match self {
            Self::Value(incoming) => Some(&mut incoming.value),
            _ => None,
        }
    }

    /// Bytes of memory that it holds, without those of the value, which are the engine's.
    #[inline]
    pub fn memory(&self) -> usize {
        match self {
            Self::Value(incoming) => incoming.request.len(),
            _ => 0,
        }
    }
}

/// No limit, to parse a request that was refused as too large.
pub const NO_LIMITS: Limits = Limits::of_values(usize::MAX);
