//! How one side waits for the other: it says in a word for what it waits, looks again, and sleeps. The other looks at the
//! word behind each change, and wakes it.
//!
//! Invariants:
//!
//! 1. A side does not sleep on once what it waits for has happened. It stores the word, makes a fence and looks at the
//!    ring; the other stores to the ring, makes a fence and looks at the word. One of the two sees the other's store.
//! 2. The word stands until the other side has rung, or this side reads. A write leaves it: the thread that sleeps may be
//!    another one. It may only add to it, and then looks at the ring again, as in 1.
//! 3. At most one thread of a side sleeps at its bell, and only reads take rings out of it. So who sleeps, or is about to,
//!    finds the ring that is meant for it.
//!
//! The word is a promise to be woken, and nothing else hangs on it: who lies there is woken too often or not at all, and
//! only itself waits for that.

use nuthatch_base::sync::shim::{AtomicU64, Ordering, fence};

use crate::stream::Memory;
use crate::{APART, Side};

/// For what a side waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// That bytes come.
    Bytes,
    /// That bytes come, or there is room for more.
    BytesOrRoom,
}

const BYTES: u64 = 1;
const ROOM: u64 = 2;

/// The two words, as a side uses them.
pub struct Sleep {
    memory: Memory,
    own: usize,
    other: usize,
}

impl Sleep {
    /// That of a side.
    pub fn new(memory: Memory, side: Side) -> Self {
        let word = |side| match side {
            Side::Server => 4 * APART,
            Side::Client => 5 * APART,
        };
        Self {
            memory,
            own: word(side),
            other: word(side.other()),
        }
    }

    /// This side is about to sleep. The caller looks at its ring behind this, and sleeps only if nothing is there.
    pub fn announce(&self, want: Want) {
        let bits = match want {
            Want::Bytes => BYTES,
            Want::BytesOrRoom => BYTES | ROOM,
        };
        self.own().store(bits, Ordering::Relaxed);
        // SeqCst: pairs with the fence of `is_due`.
        fence(Ordering::SeqCst);
    }

    /// This side is awake: it need not be woken.
    pub fn rise(&self) {
        // Relaxed: a bell too many does no harm.
        if self.own().load(Ordering::Relaxed) != 0 {
            self.own().store(0, Ordering::Relaxed);
        }
    }

    /// This side has written bytes. True if the other is to be woken for them.
    pub fn is_due_for_bytes(&self) -> bool {
        self.is_due(BYTES)
    }

    /// This side has made room. True if the other is to be woken for it.
    pub fn is_due_for_room(&self) -> bool {
        self.is_due(ROOM)
    }

    fn is_due(&self, what: u64) -> bool {
        // SeqCst: pairs with the fence of `announce`.
        fence(Ordering::SeqCst);
        let word = &self.memory[self.other];
        // Relaxed: the fences order it. It is woken once for each time that it announces.
        if word.load(Ordering::Relaxed) & what == 0 {
            return false;
        }
        word.store(0, Ordering::Relaxed);
        true
    }

    fn own(&self) -> &AtomicU64 {
        &self.memory[self.own]
    }
}
