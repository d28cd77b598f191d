//! A visit to all partitions, one after the other, whichever thread owns them.

use nuthatch_base::sync::clock::Time;

use super::element::Element;
use super::memory::{BlockMemory, LINE};
use super::table::Partition;
use nuthatch_engine::reply::Item;
use nuthatch_engine::{Cursor, Footprint, Visit};

/// Places looked at in one stay with a partition, so that no thread waits long for it.
const STEP: usize = 64;

/// A copy of an element that a visit met: made by its owner, and shown elsewhere, where the caller may use the engine.
pub struct ElementCopy {
    item: Item,
    key_len: usize,
    data: Vec<u8>,
}

impl ElementCopy {
    /// Values longer than `copy_max` are left out.
    fn copy(memory: &BlockMemory, element: Element, item: Item, copy_max: usize) -> Self {
        let key_len = memory.key_len(element);
        let value_len = match item.value_len {
            len if len > copy_max => 0,
            len => len,
        };
        Self {
            item,
            key_len,
            data: memory.to_vec(element, 0, key_len + value_len),
        }
    }

    fn show(&self) -> Visit<'_> {
        let (key, value) = self.data.split_at(self.key_len);
        Visit {
            key,
            item: self.item,
            value,
            footprint: footprint(self.key_len, self.item.value_len),
        }
    }
}

/// The memory that an element takes: there are no size classes.
pub fn footprint(key_len: usize, value_len: usize) -> Footprint {
    Footprint {
        class: 1,
        size: (LINE + key_len + value_len).next_multiple_of(LINE),
    }
}

impl Partition {
    /// Copies of the elements that [`Partition::visit`] meets.
    pub fn copies(
        &mut self,
        now: Time,
        from: u32,
        budget: usize,
        copy_max: usize,
    ) -> (Vec<ElementCopy>, Option<u32>) {
        let mut met = Vec::new();
        let mut copy = |memory: &BlockMemory, element, item| {
            met.push(ElementCopy::copy(memory, element, item, copy_max));
        };
        let next = self.visit(now, from, budget, &mut copy);
        (met, next)
    }
}

/// Visits `partitions` from a cursor on, about `budget` places. Returns where to go on, or `None` at the end. `copies`
/// calls [`Partition::copies`] on one of them, from a position on, with a budget.
pub fn visit_all(
    partitions: usize,
    from: Cursor,
    budget: usize,
    mut copies: impl FnMut(usize, u32, usize) -> (Vec<ElementCopy>, Option<u32>),
    visit: &mut dyn FnMut(Visit<'_>),
) -> Option<Cursor> {
    let (mut partition, mut position) = ((from.place >> 32) as usize, from.place as u32);
    let mut left = budget.max(1);
    while partition < partitions {
        if left == 0 {
            return Some(Cursor::at((partition as u64) << 32 | u64::from(position)));
        }
        let step = left.min(STEP);
        let (met, next) = copies(partition, position, step);
        for met in &met {
            visit(met.show());
        }
        left -= step;
        match next {
            Some(next) => position = next,
            None => (partition, position) = (partition + 1, 0),
        }
    }
    None
}
