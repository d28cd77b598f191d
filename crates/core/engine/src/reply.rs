//! Replies: an engine's answers, in request order, written straight into the caller's output.

use std::mem::MaybeUninit;
use std::time::Duration;

use crate::request::Expiry;

/// The metadata of an item at the moment at which a request took effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The client's flags.
    pub flags: u32,
    /// Bytes of the value.
    pub value_len: usize,
    /// Changes with every change of the item.
    pub cas: u64,
    /// When it expires.
    pub expiry: Expiry,
    /// Marked stale: usable, but a reader should refresh it (`X`).
    pub stale: bool,
    /// This very request won the right to refresh it (`W`).
    pub won: bool,
    /// Another reader won that right before (`Z`).
    pub won_before: bool,
    /// A get had hit it before this request (`h`). A hint: requests of one batch may not see each other's hits, and
    /// replies to changes do not set it.
    pub fetched: bool,
    /// Time since it was stored, or, where the engine keeps no such time, an upper bound of the time since its last
    /// access (`l`). Set in visits, and in reads that ask for it ([`Read::idle`](crate::Read)); zero in other reads.
    pub idle: Duration,
}

/// An answer without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A read found nothing.
    Miss,
    /// A read that wanted no value found this. Also: a read with `unless_cas` whose cas is current.
    Found(Item),
    /// Stored; the new item.
    Stored(Item),
    /// Not stored: add found an item, or replace, append, prepend found none.
    NotStored,
    /// The item's cas is not the one demanded, or a touch demands something else of it
    /// ([`Read::touch_if`](crate::Read)).
    Exists,
    /// A change that demands an item found none.
    NotFound,
    /// Removed, or marked stale.
    Removed,
    /// The number after incr or decr, and its item.
    Number(u64, Item),
    /// incr or decr found no item and has stored its first number, as it was to ([`Delta::vivify`](crate::Delta)): the
    /// number, and the new item.
    Created(u64, Item),
    /// incr or decr of a value that is not a 64-bit decimal number.
    NotNumeric,
    /// The item can never fit: over the item limit. Nothing changed.
    TooLarge,
    /// No memory, even after all evictions that are allowed. Nothing changed.
    OutOfMemory,
    /// Who has the item does not answer, in an engine that asks others. A change may have been made, or may still be.
    Unavailable,
}

impl Reply {
    /// True if the request failed, for whatever reason that is not in the item: the client is told of an error.
    #[inline(always)]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::TooLarge | Self::OutOfMemory | Self::Unavailable)
    }
}

/// The receiver of a batch's replies. The engine calls it in request order: for each request either `done`, or `begin`
/// followed by `commit`, or `begin` and `retract` as often as the item changed under the reader, or `large`.
pub trait Replies<V> {
    /// Request `index` hit `item`: returns room for exactly `item.value_len` bytes, contiguous. The engine writes all
    /// of it before `commit`. Until then the bytes, and `item`, may be garbage: the receiver must only store them, not
    /// act on them.
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>];

    /// The bytes written since `begin` are valid.
    fn commit(&mut self, index: usize);

    /// Drop the last `begin`: the item changed while it was read.
    fn retract(&mut self, index: usize);

    /// Request `index` hit a value too large to copy (see [`Handle::COPY_MAX`](crate::Handle)).
    fn large(&mut self, index: usize, item: &Item, value: V);

    /// Any answer without a value.
    fn done(&mut self, index: usize, reply: Reply);
}

/// The last answer without a value: for one request that wants none.
#[derive(Debug)]
pub struct LastReply(pub Reply);

impl<V> Replies<V> for LastReply {
    // Only asked of reads that want a value.
    fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
        &mut []
    }
    fn commit(&mut self, _: usize) {}
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, _: V) {}
    fn done(&mut self, _: usize, reply: Reply) {
        self.0 = reply;
    }
}
