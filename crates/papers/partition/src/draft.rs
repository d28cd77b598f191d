//! Drafts: new elements made from a long value that is kept. The owner pins the old element and makes room, the
//! requesting thread copies, and the owner puts the new element in place. So no other thread waits for the copy,
//! neither for a lock nor for a server thread.

use nuthatch_engine::request::{Key, Op, StoreMode};

use super::element::Element;
use super::memory::BlockMemory;

/// The owner does not copy a kept value that is longer than this.
pub(super) const COPY_OWNED_MAX: usize = 8192;

/// How often a draft is made for one operation. Each but the last was made from an element that another client replaced
/// meanwhile. Then the owner copies, whatever the length.
pub(super) const DRAFTS_MAX: u32 = 16;

/// A new element that is still to be filled, and the one that it is made from. The holder has a reference to both. It
/// gives them back by [`Partition::finish`](super::Partition::finish), or one by one by
/// [`Partition::decref`](super::Partition::decref).
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    /// The element whose value is kept. It does not change.
    pub source: Element,
    /// The new one: NOT READY.
    pub made: Element,
    /// The number of drafts of the operation so far, this one included.
    pub(super) number: u32,
}

impl Draft {
    /// Writes the new element's key and value, as the operation says that made the draft.
    pub fn fill(&self, memory: &BlockMemory, key: &Key<'_>, op: &Op<'_>) {
        let (before, after) = match op {
            Op::Store(store) if store.mode == StoreMode::Append => (&b""[..], store.value),
            Op::Store(store) => (store.value, &b""[..]),
            _ => (&b""[..], &b""[..]),
        };
        fill(memory, self.made, key, before, Some(self.source), after);
    }
}

/// Writes an element's key and its value: the bytes before the kept value, the kept value of another element, and the
/// bytes behind it.
pub(super) fn fill(
    memory: &BlockMemory,
    made: Element,
    key: &Key<'_>,
    before: &[u8],
    kept: Option<Element>,
    after: &[u8],
) {
    let key_len = key.bytes().len();
    memory.write(made, 0, key.bytes());
    memory.write(made, key_len, before);
    let mut at = key_len + before.len();
    if let Some(source) = kept {
        let len = memory.value_len(source);
        memory.copy((source, key_len), (made, at), len);
        at += len;
    }
    memory.write(made, at, after);
}
