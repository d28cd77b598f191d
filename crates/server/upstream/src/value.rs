//! Large values, and values that arrive piece by piece.

use std::sync::Arc;

use nuthatch_engine::{Reservation, Value};

/// A value too large to copy.
#[derive(Debug)]
pub enum UpstreamValue<V> {
    /// That of a copy, in its place.
    Near(V),
    /// One that was read just now, for this reader and those who have joined it.
    Read(Arc<Vec<u8>>),
}

impl<V: Value> Value for UpstreamValue<V> {
    fn len(&self) -> usize {
        match self {
            Self::Near(value) => value.len(),
            Self::Read(bytes) => bytes.len(),
        }
    }

    fn chunk(&self, offset: usize) -> &[u8] {
        match self {
            Self::Near(value) => value.chunk(offset),
            Self::Read(bytes) => &bytes[offset..],
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Near(value) => value.memory(),
            Self::Read(bytes) => bytes.len(),
        }
    }
}

/// An item whose value is still on its way here. It is sent when it is complete.
#[derive(Debug)]
pub struct UpstreamReservation {
    pub(crate) engine: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) hash: u64,
    pub(crate) value: Vec<u8>,
    pub(crate) missing: usize,
}

impl Reservation for UpstreamReservation {
    fn write(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.missing, "more bytes than were reserved");
        self.missing -= bytes.len();
        self.value.extend_from_slice(bytes);
    }

    fn missing(&self) -> usize {
        self.missing
    }
}
