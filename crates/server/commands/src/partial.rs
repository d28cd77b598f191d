//! A large value that arrives piece by piece: the engine has reserved an item for it, and each piece goes there.

use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{AnyReservation, Reservation, Time};
use nuthatch_state::uploads::{PARTS, PATIENCE, Share};

/// A value of which a part has arrived. Dropping it frees the item.
pub struct PartialValue {
    pub(crate) reservation: AnyReservation,
    len: usize,
    /// Its bytes in the account of such values. Declared behind the item: it is dropped later.
    pub(crate) share: Share,
    pub(crate) namespace: Namespace,
    /// When its progress was last looked at, and the bytes that were missing then.
    since: Time,
    missing_then: usize,
}

impl PartialValue {
    pub(crate) fn new(
        reservation: AnyReservation,
        share: Share,
        namespace: Namespace,
        now: Time,
    ) -> Self {
        let missing_then = reservation.missing();
        Self {
            len: missing_then,
            reservation,
            share,
            namespace,
            since: now,
            missing_then,
        }
    }

    /// Its bytes.
    pub fn value_len(&self) -> usize {
        self.len
    }

    /// The namespace of its key.
    pub fn namespace(&self) -> Namespace {
        self.namespace
    }

    /// Bytes still to come.
    #[inline]
    pub fn missing(&self) -> usize {
        self.reservation.missing()
    }

    /// Passes a piece of it to the engine.
    pub fn write(&mut self, piece: &[u8]) {
        self.reservation.write(piece);
    }

    /// True if it has made hardly any progress for [`PATIENCE`]. A part of the value counts and not a number of bytes,
    /// so that a client is done after a time that has a bound.
    pub fn is_stuck(&mut self, now: Time) -> bool {
        if now.since(self.since) < PATIENCE {
            return false;
        }
        let brought = self.missing_then - self.missing();
        if brought < self.share.bytes() / PARTS {
            return true;
        }
        (self.since, self.missing_then) = (now, self.missing());
        false
    }
}
