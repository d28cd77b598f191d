//! KEYS, SCAN, RANDOMKEY: walks over the items.

use nuthatch_context::scans::Place;
use nuthatch_engine::{Cursor, Engine, Handle};
use nuthatch_protocol::resp::{Error, Glob, Scan, Writer};

use super::{Phase, State};
use crate::slice::Slice;
use crate::stage::{Flow, Stage};

/// Items that a slice of a walk looks at.
const SLICE: usize = 256;

/// A slice of a walk counts as this many commands.
const SLICE_COST: u32 = 64;

/// The most bytes of the answer to KEYS: all of it must be in memory before its first byte is sent, because its header
/// has the number of keys. For more keys there is SCAN.
const KEYS_LEN_MAX: usize = 16 << 20;

/// The most items that a SCAN looks at.
const SCAN_MAX: u64 = 1000;

/// The most places that a SCAN looks at, most of them without an item: with a smaller number, a client of a server with
/// few items would get empty answers again and again.
const SCAN_PLACES: usize = 16 << 10;

/// Places that a SCAN looks at in one go where there are no items.
const SCAN_STRIDE: usize = 1 << 10;

/// Places that a step of a RANDOMKEY looks at.
const RANDOM_BUDGET: usize = 64;

/// The most items that a DBSIZE counts one by one.
const COUNTED_MAX: u64 = 1000;

/// The most steps of a RANDOMKEY. It passes over places without items. In an engine of thousands of partitions each
/// partition takes a step, and two if the walk began behind the only item.
const RANDOM_STEPS: usize = 1 << 15;

/// A KEYS in progress.
pub struct Walk {
    pattern: Glob,
    cursor: Cursor,
    found: usize,
    /// The keys found, in the format of the answer.
    answer: Vec<u8>,
}

impl Walk {
    pub fn memory(&self) -> usize {
        size_of::<Self>() + Glob::MEMORY + self.answer.capacity()
    }
}

/// Begins a KEYS.
pub fn begin(phase: &mut Phase, pattern: &[u8]) {
    phase.state = State::Walk(Box::new(Walk {
        pattern: Glob::new(pattern),
        cursor: Cursor::default(),
        found: 0,
        answer: Vec::new(),
    }));
}

/// Looks at some more items.
pub fn go_on(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase) -> Flow {
    let version = phase.version;
    let State::Walk(walk) = &mut phase.state else {
        return Flow::Next;
    };
    let Walk {
        pattern,
        cursor,
        found,
        answer,
    } = &mut **walk;
    let next = stage.handle.visit(stage.now, *cursor, SLICE, &mut |visit| {
        if pattern.matches(visit.key) {
            Writer::new(answer, version).bulk(visit.key);
            *found += 1;
        }
    });
    let cost = SLICE_COST * walk.pattern.words() as u32;
    slice.commands_left = slice.commands_left.saturating_sub(cost);
    let too_long = walk.answer.len() > KEYS_LEN_MAX;
    match next {
        Some(next) if !too_long => walk.cursor = next,
        _ => {
            if let State::Walk(walk) = std::mem::take(&mut phase.state) {
                let mut writer = phase.writer(slice);
                if too_long {
                    writer.error(&Error::KEYS_TOO_MANY);
                } else {
                    writer.array(walk.found);
                    slice.output.text().extend_from_slice(&walk.answer);
                }
            }
        }
    }
    Flow::Next
}

/// SCAN.
pub fn scan(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &Phase, scan: &Scan<'_>) {
    let scans = &stage.shared.scans;
    let mut next = match scans.find(scan.cursor) {
        Some(Place::At(cursor)) => Some(cursor),
        Some(Place::End) => None,
        None => return phase.writer(slice).error(&Error::CURSOR_UNKNOWN),
    };
    let pattern = scan.pattern.map(Glob::new);
    let mut found = 0;
    let mut keys = Vec::new();
    let budget = scan.count.min(SCAN_MAX) as usize;
    let (mut looked_at, mut places, mut stride) = (0, 0, budget);
    while let Some(cursor) = next
        && looked_at < budget
        && places < SCAN_PLACES
    {
        let before = looked_at;
        next = stage.handle.visit(stage.now, cursor, stride, &mut |visit| {
            looked_at += 1;
            let wanted = pattern
                .as_ref()
                .is_none_or(|pattern| pattern.matches(visit.key));
            if wanted && scan.of_values {
                Writer::new(&mut keys, phase.version).bulk(visit.key);
                found += 1;
            }
        });
        places += stride;
        stride = match looked_at == before {
            true => (2 * stride).min(SCAN_STRIDE.max(budget)),
            false => budget,
        };
    }
    let number = next.map_or(0, |next| scans.keep(next));
    let mut writer = phase.writer(slice);
    writer.array(2);
    writer.bulk(number.to_string().as_bytes());
    writer.array(found);
    slice.output.text().extend_from_slice(&keys);
    let cost = places * pattern.as_ref().map_or(1, Glob::words) / 4;
    slice.commands_left = slice.commands_left.saturating_sub(cost as u32);
}

/// RANDOMKEY: the key of some item, of another one each time, in an order that a client cannot know.
pub fn random(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &Phase) {
    if stage.shared.engine.stats().items == 0 {
        return phase.writer(slice).null();
    }
    let scans = &stage.shared.random;
    let mut from = *scans.lock();
    let mut ends = 0;
    let mut key: Option<Box<[u8]>> = None;
    for _ in 0..RANDOM_STEPS {
        let next = stage
            .handle
            .visit(stage.now, from, RANDOM_BUDGET, &mut |visit| {
                key.get_or_insert_with(|| visit.key.into());
            });
        ends += usize::from(next.is_none());
        from = next.unwrap_or_default();
        // The walk was at the end twice, so it has passed all items.
        if key.is_some() || ends == 2 {
            break;
        }
    }
    *scans.lock() = from;
    let mut writer = phase.writer(slice);
    match key {
        Some(key) => writer.bulk(&key),
        None => writer.null(),
    }
}

/// DBSIZE. Few items are counted one by one. For many, the number includes items that have expired or were flushed and
/// whose memory is not reclaimed yet.
pub fn size(stage: &mut Stage<'_, '_>) -> u64 {
    let items = stage.shared.engine.stats().items;
    if items > COUNTED_MAX {
        return items;
    }
    let mut live = 0;
    let mut from = Some(Cursor::default());
    while let Some(cursor) = from {
        let handle = &mut stage.handle;
        from = handle.visit(stage.now, cursor, SLICE, &mut |_| live += 1);
    }
    live
}
