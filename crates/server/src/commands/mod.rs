//! From commands to requests and effects.
//!
//! * [`requests`]: commands about keys, which join the batch.
//! * [`large`]: stores whose value arrives piece by piece.
//! * [`cpserver`]: CPServer's requests, small and large.
//! * [`immediate`]: everything done on the spot: flush_all, version, stats, refusals...
//! * [`admin`]: commands about memcached's inside: slabs, lru, lru_crawler, watch.
//! * [`dump`]: metadump, mgdump, cachedump: replies longer than a slice.
//! * [`expiry`]: how clients write the end of an item's life.

pub(crate) mod admin;
pub(crate) mod cpserver;
pub(crate) mod dump;
pub(crate) mod expiry;
pub(crate) mod immediate;
pub(crate) mod large;
pub(crate) mod requests;

use bumpalo::Bump;
use nuthatch_engine::{AnyHandle, Expiry, KeyHasher, Time};
use nuthatch_protocol::{Exptime, KEY_ROOM, Limits, decode_key};

use crate::batch::Batch;
use crate::shared::Shared;
use crate::stats::connections::Info;
use crate::stats::counters::WorkerCounters;

/// What a command can reach. `'a` is how long the inputs of the iteration live.
pub(crate) struct Stage<'w, 'a> {
    pub(crate) shared: &'w Shared,
    pub(crate) handle: &'w mut AnyHandle,
    pub(crate) batch: &'w mut Batch<'a>,
    /// Keys that came in base64, decoded.
    pub(crate) decoded: &'a Bump,
    pub(crate) hasher: &'w KeyHasher,
    pub(crate) counters: &'w WorkerCounters,
    pub(crate) limits: Limits,
    pub(crate) now: Time,
    /// The slice that is running, and whose it is.
    pub(crate) slice: u32,
    pub(crate) info: &'w Info,
}

/// How a slice goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// With what stands next in the input.
    Next,
    /// With the same input, when the batch has been executed.
    Barrier,
    /// When more input has come.
    Starved,
}

impl<'a> Stage<'_, 'a> {
    pub(crate) fn expiry(&self, exptime: Exptime) -> Expiry {
        expiry::expiry(exptime, self.now, &self.shared.clock)
    }

    /// The bytes of a key that may be written in base64. The parser has checked that it is one, so
    /// `None` does not happen; who gets it anyway answers as if there were no such item.
    pub(crate) fn key_bytes(&self, written: &'a [u8], base64: bool) -> Option<&'a [u8]> {
        if !base64 {
            return Some(written);
        }
        let mut room = [0; KEY_ROOM];
        let key: &[u8] = self
            .decoded
            .alloc_slice_copy(decode_key(written, &mut room)?);
        Some(key)
    }
}
