//! Removes the items that a FLUSHDB has left: see [`databases`](nuthatch_state::databases). A walk over all items finds
//! them; a second one finds what was moved out of the way of the first.

use std::mem::MaybeUninit;

use nuthatch_engine::namespace::{Mapping, Namespace};
use nuthatch_engine::{
    AnyHandle, AnyValue, Condition, Cursor, Engine, Handle, Item, Key, Op, Removal, Replies, Reply,
    Request,
};
use nuthatch_state::server_state::ServerState;

/// Places that a step looks at.
const BUDGET: usize = 1024;

/// Walks for one sweep.
const WALKS: u32 = 2;

/// A sweep in progress.
#[derive(Default)]
pub(crate) struct Leftovers {
    sweep: Option<Sweep>,
}

struct Sweep {
    /// What was left before it began.
    left: u32,
    cursor: Cursor,
    /// Walks that are not over.
    walks: u32,
}

impl Leftovers {
    /// Takes a step if there is anything to remove. True if there is more to do at once.
    pub(crate) fn step(&mut self, shared: &ServerState, handle: &mut AnyHandle) -> bool {
        if self.sweep.is_none() {
            self.sweep = shared.databases.left_to_sweep().map(|left| Sweep {
                left,
                cursor: Cursor::default(),
                walks: WALKS,
            });
        }
        let Some(sweep) = &mut self.sweep else {
            return false;
        };
        let now = shared.clock.now();
        let is_left = |mapping: &Mapping, key: &[u8]| {
            let (namespace, _) = Namespace::split(key);
            mapping.database_of(namespace).is_none()
        };
        let mapping = shared.databases.mapping();
        let mut met: Vec<(Vec<u8>, u64)> = Vec::new();
        let next = handle.visit(now, sweep.cursor, BUDGET, &mut |visit| {
            if is_left(&mapping, visit.key) {
                met.push((visit.key.to_vec(), visit.item.cas));
            }
        });
        // Asked again: the namespace of an item that was stored just now may be newer than the mapping above.
        let mapping = shared.databases.mapping();
        let removals: Vec<_> = met
            .iter()
            .filter(|(key, _)| is_left(&mapping, key))
            .map(|(key, cas)| Request {
                key: Key::new(key, shared.engine.hasher()),
                op: Op::Remove(Removal {
                    condition: Condition::Cas(*cas),
                    ..Removal::default()
                }),
            })
            .collect();
        handle.execute(now, &removals, &mut Unread);
        sweep.cursor = next.unwrap_or_default();
        sweep.walks -= u32::from(next.is_none());
        if sweep.walks == 0 {
            shared.databases.note_swept(sweep.left);
            self.sweep = None;
        }
        true
    }
}

/// Nobody waits for the answers.
struct Unread;

impl Replies<AnyValue> for Unread {
    fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
        &mut []
    }

    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, _: AnyValue) {}

    fn done(&mut self, _: usize, _: Reply) {}
}
