//! Where replies become values of the caller's own.

use std::mem::MaybeUninit;

use nuthatch_cuckoo::handle::COPY_MAX;
use nuthatch_engine::Value;
use nuthatch_engine::reply::{Item, Replies, Reply};

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

/// A copy of a value that is held in place.
pub(super) fn gather(value: &impl Value) -> Vec<u8> {
    let mut copy = Vec::new();
    copy_large(value, &mut copy);
    copy
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

/// One value to be looked at: on the stack, or where it lies.
pub(super) struct InPlace<V> {
    buffer: [MaybeUninit<u8>; COPY_MAX],
    /// What was found.
    pub item: Option<Item>,
    /// Its value, if that is too large to copy.
    pub large: Option<V>,
}

impl<V: Value> InPlace<V> {
    /// Nothing found yet.
    pub fn new() -> Self {
        Self {
            buffer: [const { MaybeUninit::uninit() }; COPY_MAX],
            item: None,
            large: None,
        }
    }

    /// The value, if it is on the stack; empty if none was found or it is large.
    pub fn small(&self) -> &[u8] {
        let len = match (&self.item, &self.large) {
            (Some(item), None) => item.value_len,
            _ => 0,
        };
        let value = &self.buffer[..len];
        // SAFETY: there is an item, and it is not large: so the engine called `commit` after `begin` had returned
        // these bytes, and promises to have written all of them.
        unsafe { std::slice::from_raw_parts(value.as_ptr().cast(), value.len()) }
    }
}

impl<V: Value> Replies<V> for InPlace<V> {
    #[inline]
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.item = Some(*item);
        &mut self.buffer[..item.value_len]
    }

    #[inline]
    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {
        self.item = None;
    }

    fn large(&mut self, _: usize, item: &Item, value: V) {
        self.item = Some(*item);
        self.large = Some(value);
    }

    fn done(&mut self, _: usize, _: Reply) {}
}

/// Each value into a buffer of its own.
pub(super) struct CopyMany {
    /// One for each request so far.
    pub values: Vec<Option<Vec<u8>>>,
    /// What was found for which request, if that is asked for.
    pub items: Vec<(usize, Item)>,
    wants_items: bool,
    /// The value on its way.
    value: Vec<u8>,
    room: usize,
}

impl CopyMany {
    /// For so many requests; `items` if what was found is to be kept beside the values.
    pub fn new(requests: usize, items: bool) -> Self {
        Self {
            values: Vec::with_capacity(requests),
            items: Vec::new(),
            wants_items: items,
            value: Vec::new(),
            room: 0,
        }
    }

    fn note(&mut self, index: usize, item: &Item) {
        if self.wants_items {
            self.items.push((index, *item));
        }
    }
}

impl<V: Value> Replies<V> for CopyMany {
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.note(index, item);
        self.room = item.value_len;
        self.value = Vec::new();
        spare(&mut self.value, self.room)
    }

    fn commit(&mut self, _: usize) {
        // SAFETY: `begin` returned this room and the engine has filled it.
        unsafe { keep(&mut self.value, self.room) };
        self.values.push(Some(std::mem::take(&mut self.value)));
    }

    fn retract(&mut self, _: usize) {
        self.items.pop();
    }

    fn large(&mut self, index: usize, item: &Item, value: V) {
        self.note(index, item);
        self.values.push(Some(gather(&value)));
    }

    fn done(&mut self, _: usize, _: Reply) {
        self.values.push(None);
    }
}

/// The answer of an operation without a value.
pub(super) struct LastReply(pub Reply);

impl<V> Replies<V> for LastReply {
    fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
        // Only asked of reads that want a value, which are never sent with it.
        &mut []
    }
    fn commit(&mut self, _: usize) {}
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, _: V) {}
    fn done(&mut self, _: usize, reply: Reply) {
        self.0 = reply;
    }
}
