//! The search for an order of all operations on a key that explains every answer.
//!
//! It is the search of Wing and Gong, with the memory that Lowe added ("Testing for linearizability", 2017). An
//! operation may come next if no other pending one had ended before it began. A configuration (the position of each
//! thread, and the item) that was met before is not searched again. A thread's operations on the key keep their order,
//! also those of one batch, whose interval is the batch's. So a configuration is a number for each thread and an item,
//! and the cost of a history is about its length times its concurrency.
//!
//! Under memory pressure the item may be forgotten between any two operations. It is not lawful then that it comes
//! back.

use std::collections::HashMap;

use nuthatch_engine::{Reply, Time};

use super::act::{Act, Observed, Register};
use crate::sequence::Misses;

/// An operation with its answer and its time.
#[derive(Clone, Debug)]
pub struct Event {
    /// The thread.
    pub thread: usize,
    /// Which batch of the thread's.
    pub batch: usize,
    /// The moment of the request.
    pub now: Time,
    /// The moment of the answer: a flush that was due between the two may have come first.
    pub until: Time,
    /// The operation.
    pub act: Act,
    /// The answer.
    pub told: Observed,
    /// The clock's count before the batch.
    pub began: usize,
    /// And after it; [`PENDING`] if only the part of the history before that counts.
    pub ended: usize,
}

/// The end of an operation that may have taken effect, or not yet.
pub const PENDING: usize = usize::MAX;

/// An order that explains a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// How often the item has to have been forgotten.
    pub forgotten: usize,
}

/// Looks for an order that explains the history of one key; `None` if there is none. Events of one
/// thread come in its order.
pub fn judge(history: &[Event], misses: Misses) -> Option<Order> {
    let threads = by_thread(history);
    let required: Vec<usize> = threads
        .iter()
        .map(|events| events.iter().filter(|event| event.ended != PENDING).count())
        .collect();
    let mut met: HashMap<Vec<usize>, Vec<Register>> = HashMap::new();
    let start = Configuration {
        done: vec![0; threads.len()],
        item: Register::default(),
        forgotten: 0,
    };
    let mut ahead = vec![start];
    while let Some(here) = ahead.pop() {
        if here
            .done
            .iter()
            .zip(&required)
            .all(|(done, all)| done >= all)
        {
            let forgotten = here.forgotten;
            return Some(Order { forgotten });
        }
        let items = met.entry(here.done.clone()).or_default();
        if items.contains(&here.item) {
            continue;
        }
        items.push(here.item.clone());
        here.push_next(&threads, misses, &mut ahead);
    }
    None
}

/// The position of each thread, and the item.
struct Configuration {
    done: Vec<usize>,
    item: Register,
    forgotten: usize,
}

impl Configuration {
    /// Pushes the configurations that may come next. The last of them is tried first: the operation that ended first,
    /// on an item that is not forgotten.
    fn push_next(&self, threads: &[Vec<&Event>], misses: Misses, ahead: &mut Vec<Self>) {
        let next = threads.iter().zip(&self.done).enumerate();
        let next = next.filter_map(|(thread, (events, &done))| Some((thread, *events.get(done)?)));
        let mut next: Vec<(usize, &Event)> = next.collect();
        // A thread's ends rise, so its next operation ends before all that follow.
        let Some(first_end) = next.iter().map(|(_, event)| event.ended).min() else {
            return;
        };
        next.retain(|(_, event)| event.began <= first_end);
        next.sort_by_key(|(_, event)| std::cmp::Reverse(event.ended));
        let mut push = |thread: usize, event: &Event, item: &Register, forgotten| {
            // Under pressure an operation that finds no memory is refused, and changes nothing.
            let is_refused = event.told == Observed::Plain(Reply::OutOfMemory);
            let after = match misses {
                Misses::Lawful if is_refused => Some(item.clone()),
                _ => item.after(event.now, &event.act, &event.told),
            };
            if let Some(item) = after {
                let mut done = self.done.clone();
                done[thread] += 1;
                ahead.push(Self {
                    done,
                    item,
                    forgotten,
                });
            }
        };
        if misses == Misses::Lawful && !self.item.is_empty() {
            for &(thread, event) in &next {
                push(thread, event, &self.item.forgotten(), self.forgotten + 1);
            }
        }
        for &(thread, event) in &next {
            if let Some(flushed) = self.item.flushed_by(event.until) {
                push(thread, event, &flushed, self.forgotten);
            }
            push(thread, event, &self.item, self.forgotten);
        }
    }
}

fn by_thread(history: &[Event]) -> Vec<Vec<&Event>> {
    let count = history.iter().map(|event| event.thread + 1).max();
    let mut threads = vec![Vec::new(); count.unwrap_or(0)];
    for event in history {
        threads[event.thread].push(event);
    }
    threads
}
