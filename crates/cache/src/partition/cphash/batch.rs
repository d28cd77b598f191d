//! A batch on its way through the rings.
//!
//! The requests of each partition form a lane. A lane sends its requests' *effects* strictly in the
//! order of the batch: a lookup, a ready, or a call. A store needs room first, so a lane asks for room
//! ahead of its effects, a few stores in advance: an allocation nobody sees, so its place in the order
//! is of no consequence. When the room is there the client fills it and sends the effect.
//!
//! ```text
//!  lane    get a | set b | get b | set c | get d      effects go in this order
//!                  ^               ^
//!                  room: asked for ahead of everything
//!
//!  sent    room b, room c, lookup a    | ready b, lookup b, ready c, lookup d
//! ```
//!
//! A ring keeps the order of messages, and a key has one partition, so a get behind a set of the same
//! key finds the new value, in one batch as in one connection, and no bookkeeping of keys is needed.
//! No lane waits for another: all issue what they can before the first answer is awaited.
//!
//! Answers are delivered in the order of the batch, as they come. What was looked up stays pinned until
//! then. If an allocation is refused because everything in the partition is pinned, the lane waits until
//! all before it is delivered, copies out what this batch still has pinned, and tries again.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;

use nuthatch_sync::clock::Time;
use nuthatch_sync::ring::{Design, Word};

use super::call::{Call, Task};
use super::client::Client;
use super::count::Count;
use super::message::{Answer, Message, decode_cas};
use super::value::CpValue;
use crate::partition::element::Element;
use crate::partition::memory::Memory;
use crate::partition::operate::Outcome;
use crate::reply::{Item, Replies, Reply};
use crate::request::{Condition, Expiry, Op, Request, Store, StoreMode};

/// Longer values are read in place instead of being copied.
pub(super) const COPY_MAX: usize = 8192;

/// Stores of a lane that room is asked for ahead.
const AHEAD_MAX: usize = 16;

/// Bytes of such room, unless a single value is longer: small against any partition.
const AHEAD_BYTES: usize = 64 << 10;

/// Requests that may be under way at a time, answered or not.
const WINDOW: usize = 1024;

/// How often a refused allocation is tried while others may have pinned what is in the way.
const ATTEMPTS: u32 = 200;

/// How a request goes.
#[derive(Clone, Copy, Debug)]
enum Plan {
    /// A lookup.
    Get,
    /// Room, and a ready.
    Set,
    /// Room, and a call that publishes it.
    Publish,
    /// The call with this number.
    Execute(u32),
}

/// What is known of a request.
enum Slot {
    /// Nothing, or something is under way.
    Open,
    /// A store has room.
    Room(Element),
    /// Which is filled; the call that publishes it, if it needs one.
    Filled(Element),
    /// The room was refused.
    Refused,
    /// A lookup's element, pinned; its key is not compared yet.
    Hit(Element),
    /// All live elements with the same hash, pinned.
    Several(Vec<Element>),
    /// A hit that was copied out.
    Copied(Box<(Item, Vec<u8>)>),
    Miss,
    /// A set took effect, with this cas.
    Stored(u64),
    /// A call was answered.
    Called,
    TooLarge,
    OutOfMemory,
    /// Delivered.
    Gone,
}

/// What an answer is to.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    Lookup,
    Room,
    Ready,
    Call,
}

/// The requests of one partition.
#[derive(Default)]
struct Lane {
    /// Positions in `order`: the next effect, the next store to get room, the end.
    next: usize,
    ahead: usize,
    end: usize,
    /// Stores that have room, or asked for it, and took no effect yet.
    rooms: usize,
    room_bytes: usize,
    attempts: u32,
    /// What answers are to come to, in order.
    awaited: VecDeque<(Awaited, u32)>,
}

/// A batch's memory, kept from one to the next.
#[derive(Default)]
pub(super) struct Scratch {
    plans: Vec<Plan>,
    slots: Vec<Slot>,
    /// Requests by partition, in order.
    order: Vec<u32>,
    lanes: Vec<Lane>,
    /// The partitions that have any.
    active: Vec<usize>,
}

/// A batch under way.
pub(super) struct Batch<'b, 'c, D: Design, R> {
    client: &'c mut Client<D>,
    scratch: &'c mut Scratch,
    now: Time,
    requests: &'b [Request<'b>],
    /// In their place from the first message on.
    calls: Vec<Call<'b>>,
    replies: &'c mut R,
    delivered: usize,
}

/// The way of a request.
fn plan(op: &Op<'_>, evicts: bool) -> Option<Plan> {
    match op {
        Op::Get => Some(Plan::Get),
        // A full store without eviction must look at what is there before it asks for room.
        Op::Store(store) if evicts => match store.mode {
            StoreMode::Set if is_plain(store) => Some(Plan::Set),
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => Some(Plan::Publish),
            StoreMode::Append | StoreMode::Prepend => None,
        },
        _ => None,
    }
}

/// True if a ready says all there is to say.
fn is_plain(store: &Store<'_>) -> bool {
    store.condition == Condition::None
        && store.new_cas.is_none()
        && store.flags == 0
        && store.expiry == Expiry::Never
}
