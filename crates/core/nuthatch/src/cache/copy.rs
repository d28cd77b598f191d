//! The receivers of the engine's replies: each copies a value for the caller, lends it, or keeps the answer alone.

use std::collections::VecDeque;
use std::mem::MaybeUninit;

use nuthatch_cuckoo::handle::COPY_MAX;
use nuthatch_engine::Value;
use nuthatch_engine::reply::{Item, Replies, Reply};
use nuthatch_store::memory::bytes;

/// Makes `room` bytes of spare capacity behind the vector's contents.
#[inline(always)]
fn spare(into: &mut Vec<u8>, room: usize) -> &mut [MaybeUninit<u8>] {
    if into.capacity() == 0 {
        // `reserve` would check for contents to keep: 60 instructions of a get that returns a new vector.
        *into = Vec::with_capacity(room);
    } else {
        into.reserve(room);
    }
    &mut into.spare_capacity_mut()[..room]
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
fn gather(value: &impl Value) -> Vec<u8> {
    let mut copy = Vec::new();
    copy_large(value, &mut copy);
    copy
}

/// What a receiver keeps of the item that was found.
pub(super) trait Kept {
    fn of(item: &Item) -> Self;
}

/// Its whole metadata.
impl Kept for Item {
    #[inline(always)]
    fn of(item: &Item) -> Self {
        *item
    }
}

/// Only that there was one.
impl Kept for () {
    #[inline(always)]
    fn of(_: &Item) {}
}

/// One value into one buffer.
pub(super) struct CopyOut<'a, K = Item> {
    into: &'a mut Vec<u8>,
    room: usize,
    /// What was found.
    pub item: Option<K>,
}

impl<'a, K> CopyOut<'a, K> {
    /// The value will be appended to `into`.
    pub fn new(into: &'a mut Vec<u8>) -> Self {
        Self {
            into,
            room: 0,
            item: None,
        }
    }
}

impl<V: Value, K: Kept> Replies<V> for CopyOut<'_, K> {
    #[inline(always)]
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.room = item.value_len;
        self.item = Some(K::of(item));
        spare(self.into, self.room)
    }

    #[inline(always)]
    fn commit(&mut self, _: usize) {
        let len = self.into.len() + self.room;
        // SAFETY: `begin` returned this room, for which `spare` reserved the capacity, and the engine has filled all of
        // it, as it promises by this call.
        unsafe { self.into.set_len(len) };
    }

    fn retract(&mut self, _: usize) {
        self.item = None;
    }

    fn large(&mut self, _: usize, item: &Item, value: V) {
        self.item = Some(K::of(item));
        copy_large(&value, self.into);
    }

    fn done(&mut self, _: usize, _: Reply) {}
}

/// One value to be lent: copied to the stack, or in place.
pub(super) struct InPlace<V, K = Item> {
    buffer: [MaybeUninit<u8>; COPY_MAX],
    /// Bytes of the value in the buffer.
    len: usize,
    /// What was found.
    pub item: Option<K>,
    /// Its value, if that is too large to copy.
    pub large: Option<V>,
}

impl<V: Value, K> InPlace<V, K> {
    /// Nothing found yet.
    pub fn new() -> Self {
        Self {
            buffer: [const { MaybeUninit::uninit() }; COPY_MAX],
            len: 0,
            item: None,
            large: None,
        }
    }

    /// Lends the value that was found to `read`, and returns its result; lends an empty slice if none was found.
    #[inline(always)]
    pub fn lend<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        match &self.large {
            None => read(self.small()),
            Some(value) if value.chunk(0).len() == value.len() => read(value.chunk(0)),
            Some(value) => read(&gather(value)),
        }
    }

    /// The value, if it is on the stack; empty if none was found or it is large.
    #[inline(always)]
    fn small(&self) -> &[u8] {
        let len = match (&self.item, &self.large) {
            (Some(_), None) => self.len,
            _ => 0,
        };
        let value = &self.buffer[..len];
        // SAFETY: there is an item, and it is not large: so the engine called `commit` after `begin` had returned
        // these bytes, and promises to have written all of them.
        unsafe { bytes::assume_init(value) }
    }
}

impl<V: Value, K: Kept> Replies<V> for InPlace<V, K> {
    #[inline(always)]
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.len = item.value_len;
        self.item = Some(K::of(item));
        &mut self.buffer[..item.value_len]
    }

    #[inline(always)]
    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {
        self.item = None;
    }

    fn large(&mut self, _: usize, item: &Item, value: V) {
        self.item = Some(K::of(item));
        self.large = Some(value);
    }

    fn done(&mut self, _: usize, _: Reply) {}
}

/// The value of a get at once, to be lent: copied to the stack.
pub(super) struct AtOnce {
    buffer: [MaybeUninit<u8>; COPY_MAX],
    /// Bytes that the last `begin` gave out.
    room: usize,
    /// Bytes from the buffer's begin that the engine has written: 0 from `begin` to `commit`.
    written: usize,
}

impl AtOnce {
    /// Nothing copied yet.
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            buffer: [const { MaybeUninit::uninit() }; COPY_MAX],
            room: 0,
            written: 0,
        }
    }

    /// The value, if the get hit; else it is empty.
    #[inline(always)]
    pub fn value(&self) -> &[u8] {
        // SAFETY: `begin` returned these bytes, so that they lie in the buffer, and the engine promises to have written
        // all of them before `commit`.
        unsafe { bytes::assume_init(self.buffer.get_unchecked(..self.written)) }
    }
}

impl<V> Replies<V> for AtOnce {
    #[inline(always)]
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.room = item.value_len;
        self.written = 0;
        &mut self.buffer[..item.value_len]
    }

    #[inline(always)]
    fn commit(&mut self, _: usize) {
        self.written = self.room;
    }

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, _: V) {
        unreachable!("a get at once copies");
    }

    #[inline(always)]
    fn done(&mut self, _: usize, _: Reply) {}
}

/// Each value of a batch lent to a closure, in the order of the keys.
pub(super) struct LendMany<'p, F, V> {
    read: F,
    /// The value that is being received. (Borrowed, because its buffer would otherwise be moved with the rest.)
    place: &'p mut InPlace<V>,
    /// The index of the key that `read` is called with next.
    next: usize,
    /// Indexes of invalid keys, in order: they have no request, and are reported as misses.
    skipped: VecDeque<usize>,
    /// Values lent.
    hits: u64,
    /// Which item was found for which request, if the caller wants that.
    items: Option<Vec<(usize, Item)>>,
}

impl<'p, F: FnMut(usize, Option<&[u8]>), V: Value> LendMany<'p, F, V> {
    /// Lends to `read` the values that arrive in `place`. `items` is true if the items found are to be kept.
    #[inline(always)]
    pub fn new(place: &'p mut InPlace<V>, read: F, items: bool) -> Self {
        Self {
            read,
            place,
            next: 0,
            skipped: VecDeque::new(),
            hits: 0,
            items: items.then(Vec::new),
        }
    }

    /// Marks the key with this index as one without a request. To be called in order, before the batch.
    #[cold]
    pub fn skip(&mut self, index: usize) {
        self.skipped.push_back(index);
    }

    /// Ends the batch: calls `read` for the keys behind the last request. Returns how many values were found, and which
    /// item was found for which request.
    pub fn finish(mut self) -> (u64, Vec<(usize, Item)>) {
        self.tell_skipped();
        (self.hits, self.items.unwrap_or_default())
    }

    fn tell_skipped(&mut self) {
        while self.skipped.front() == Some(&self.next) {
            self.skipped.pop_front();
            (self.read)(self.next, None);
            self.next += 1;
        }
    }

    /// The index of the next request's key, after a call of `read` for each key before it that has no request.
    #[inline(always)]
    fn index(&mut self) -> usize {
        if !self.skipped.is_empty() {
            self.tell_skipped();
        }
        self.next += 1;
        self.next - 1
    }

    /// Lends the value that was found for a request.
    #[inline(always)]
    fn hit(&mut self, request: usize) {
        if let (Some(items), Some(item)) = (&mut self.items, self.place.item) {
            items.push((request, item));
        }
        self.hits += 1;
        let index = self.index();
        self.place.lend(|value| (self.read)(index, Some(value)));
    }
}

impl<F: FnMut(usize, Option<&[u8]>), V: Value> Replies<V> for LendMany<'_, F, V> {
    #[inline(always)]
    fn begin(&mut self, request: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.place.begin(request, item)
    }

    #[inline(always)]
    fn commit(&mut self, request: usize) {
        self.hit(request);
    }

    fn retract(&mut self, request: usize) {
        self.place.retract(request);
    }

    fn large(&mut self, request: usize, item: &Item, value: V) {
        self.place.large(request, item, value);
        self.hit(request);
        self.place.large = None;
    }

    #[inline(always)]
    fn done(&mut self, _: usize, _: Reply) {
        let index = self.index();
        (self.read)(index, None);
    }
}
