//! A large value that a reader holds while others work.

use std::mem::MaybeUninit;
use std::sync::Arc;

use nuthatch_engine::{
    Clock, Engine, Handle, Item, Key, Op, Replies, Reply, Request, Store, Value,
};

/// No key of the bench's items has this form.
const KEY: &[u8] = b"!held";

/// Stores a value of so many bytes and holds it where it lies, for as long as the caller has it.
pub fn value<E: Engine>(engine: &Arc<E>, bytes: usize) -> Result<impl Value + use<E>, String> {
    let mut handle = engine.handle();
    let now = Clock::start().now();
    let key = Key::new(KEY, engine.hasher());
    let value = vec![b'h'; bytes];
    let requests = [Op::Store(Store::set(&value)), Op::Get].map(|op| Request { key, op });
    let mut held = Held {
        value: None,
        copied: Vec::new(),
    };
    handle.execute(now, &requests, &mut held);
    held.value
        .ok_or_else(|| format!("no value of {bytes} bytes is held: it is copied, or not stored"))
}

struct Held<V> {
    value: Option<V>,
    /// Room for a value that is copied, which is none to hold.
    copied: Vec<MaybeUninit<u8>>,
}

impl<V> Replies<V> for Held<V> {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.copied.resize(item.value_len, MaybeUninit::uninit());
        &mut self.copied
    }

    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, value: V) {
        self.value = Some(value);
    }

    fn done(&mut self, _: usize, _: Reply) {}
}
