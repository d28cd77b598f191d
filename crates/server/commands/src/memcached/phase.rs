//! The state of a connection that speaks memcached's text protocol.

use nuthatch_protocol::Exptime;
use nuthatch_security::login::Login;
use nuthatch_state::refreshes::Waiting;
use nuthatch_state::telemetry::watch::Watching;

use super::dump::Dump;
use crate::partial::PartialValue;

/// What the next byte of input means.
pub enum Phase {
    /// It begins a command.
    Commands,
    /// It is dropped: this many bytes are left to drop.
    Swallow(u64),
    /// It is among the keys of a get that is longer than a batch, or than a line of another command may be.
    Keys(Keys),
    /// It is dropped, up to the end of the line.
    SkipLine,
    /// It belongs to a large value.
    Value(Box<Incoming>),
    /// It has to wait: a dump is in progress.
    Dump(Box<Dump>),
    /// It has to wait: certificates are being read.
    Refresh(Waiting),
    /// It is dropped: the client watches, and only receives events.
    Watch(Watching),
    /// It comes from a client that has not logged in.
    Login(Login),
}

/// A get whose keys are taken one by one, however long its line is.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub with_cas: bool,
    pub touch: Option<Exptime>,
    /// A key was taken.
    pub any: bool,
}

/// A large value that arrives piece by piece.
pub struct Incoming {
    pub value: PartialValue,
    /// Its command's line, parsed again when the value is complete.
    pub line: Box<[u8]>,
    /// Bytes of the `\r\n` behind the value that have arrived.
    pub end_seen: usize,
    /// True if these bytes were the right ones.
    pub end_good: bool,
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
            Self::Value(incoming) => incoming.line.len(),
            _ => 0,
        }
    }
}
