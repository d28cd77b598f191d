//! PUBSUB CHANNELS with a pattern: a walk over the names of channels.

use std::collections::TryReserveError;
use std::sync::Arc;

use nuthatch_base::memory::reserve::spare;
use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_commands::work::Work;
use nuthatch_resp::{Error, Glob, Version, Writer};

/// Names that a step compares. They may have 1024 bytes each.
const STEP: usize = 64;

/// A name's length and the ends of its lines in an answer.
const MARKS: usize = 32;

/// The names to look at, and those that match.
pub struct ChannelNames {
    /// Those of subscriptions, whose connections account for their bytes.
    left: Vec<Arc<[u8]>>,
    found: Vec<Arc<[u8]>>,
    pattern: Glob,
}

impl ChannelNames {
    /// A walk over these names.
    pub fn new(names: Vec<Arc<[u8]>>, pattern: &[u8]) -> Self {
        Self {
            left: names,
            found: Vec::new(),
            pattern: Glob::new(pattern),
        }
    }

    /// Bytes of memory that it holds besides itself.
    pub fn memory(&self) -> usize {
        let names = self.left.capacity() + self.found.capacity();
        names * size_of::<Arc<[u8]>>() + self.pattern.memory()
    }

    /// Looks at some more names. True if these were the last. Errors: there is no memory for those that match.
    pub fn step(&mut self, cx: &mut Context<'_, '_>) -> Result<bool, TryReserveError> {
        spare(|| self.found.try_reserve(STEP))?;
        let from = self.left.len().saturating_sub(STEP);
        let mut compared = 0;
        for name in self.left.drain(from..) {
            compared += name.len();
            if self.pattern.matches(&name) {
                self.found.push(name);
            }
        }
        cx.work.add(Work::of_places(STEP));
        cx.work
            .add(Work::of_bytes(compared).times(self.pattern.words()));
        Ok(self.left.is_empty())
    }

    /// Answers the command.
    pub fn answer(self, turn: &mut Turn, version: Version) {
        let len: usize = self.found.iter().map(|name| name.len() + MARKS).sum();
        if !turn.makes_room(MARKS + len) {
            return Writer::new(turn.output.text(), version).error(&Error::OUT_OF_MEMORY);
        }
        let mut writer = Writer::new(turn.output.text(), version);
        writer.array(self.found.len());
        self.found.iter().for_each(|name| writer.bulk(name));
        turn.spend(Work::of_bytes(len));
    }
}
