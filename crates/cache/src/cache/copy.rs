//! Where replies become values of the caller's own.

use std::mem::MaybeUninit;

use crate::engine::Value;
use crate::reply::{Item, Replies, Reply};

/// Makes `room` bytes of spare capacity behind the vector's contents.
#[inline(always)]
fn spare(into: &mut Vec<u8>, room: usize) -> &mut [MaybeUninit<u8>] {
    into.reserve(room);
    &mut into.spare_capacity_mut()[..room]
}

/// Takes the bytes that an engine laid down into [`spare`] room.
///
/// # Safety
/// The engine has called `commit` after `begin` returned `spare(into, room)`: it promises to have
/// written all of it.
#[inline(always)]
unsafe fn keep(into: &mut Vec<u8>, room: usize) {
    // SAFETY: the caller's promise; `spare` reserved the capacity.
    unsafe { into.set_len(into.len() + room) };
}

/// Appends a value that is held in place.
fn copy_large(value: &impl Value, into: &mut Vec<u8>) {
    into.reserve(value.len());
    let mut offset = 0;
    while offset < value.len() {
        let chunk = value.chunk(offset);
        into.extend_from_slice(chunk);
        offset += chunk.len();
    }
}

/// One value into one buffer.
pub(super) struct CopyOut<'a> {
    into: &'a mut Vec<u8>,
    room: usize,
    /// What was found.
    pub item: Option<Item>,
}

impl<'a> CopyOut<'a> {
    /// To be laid behind what is in `into`.
    pub fn new(into: &'a mut Vec<u8>) -> Self {
        Self {
            into,
            room: 0,
            item: None,
        }
    }
}

impl<V: Value> Replies<V> for CopyOut<'_> {
    #[inline]
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.room = item.value_len;
        self.item = Some(*item);
        spare(self.into, self.room)
    }

    #[inline]
    fn commit(&mut self, _: usize) {
        // SAFETY: `begin` returned this room and the engine has filled it.
        unsafe { keep(self.into, self.room) };
    }

    fn retract(&mut self, _: usize) {
        self.item = None;
    }

    fn large(&mut self, _: usize, item: &Item, value: V) {
        self.item = Some(*item);
        copy_large(&value, self.into);
    }

    fn done(&mut self, _: usize, _: Reply) {}
}

/// Each value into a buffer of its own.
pub(super) struct CopyMany {
    /// One for each request so far.
    pub values: Vec<Option<Vec<u8>>>,
    room: usize,
}

impl CopyMany {
    /// For so many requests.
    pub fn new(requests: usize) -> Self {
        Self {
            values: Vec::with_capacity(requests),
            room: 0,
        }
    }
}

impl<V: Value> Replies<V> for CopyMany {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.room = item.value_len;
        spare(
            self.values
                .push_mut(Some(Vec::new()))
                .get_or_insert_default(),
            self.room,
        )
    }

    fn commit(&mut self, _: usize) {
        if let Some(Some(value)) = self.values.last_mut() {
            // SAFETY: `begin` returned this room and the engine has filled it.
            unsafe { keep(value, self.room) };
        }
    }

    fn retract(&mut self, _: usize) {
        self.values.pop();
    }

    fn large(&mut self, _: usize, _: &Item, value: V) {
        let mut copy = Vec::new();
        copy_large(&value, &mut copy);
        self.values.push(Some(copy));
    }

    fn done(&mut self, _: usize, _: Reply) {
        self.values.push(None);
    }
}

/// The answer of an operation without a value.
pub(super) struct LastReply(pub Reply);

impl<V> Replies<V> for LastReply {
    fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
        // Only asked of reads that want a value, which this face never sends with it.
        &mut []
    }
    fn commit(&mut self, _: usize) {}
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, _: V) {}
    fn done(&mut self, _: usize, reply: Reply) {
        self.0 = reply;
    }
}
