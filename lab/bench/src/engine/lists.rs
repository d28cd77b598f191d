//! What is asked in each round, and the room that it takes.

use crate::engine::operations::{Items, Operations};
use crate::engine::{GETS_FOR_A_SET, OPERATIONS, Options, Room, memory_for};

/// The room for all items, and for the new ones of all rounds.
pub(super) fn room(options: &Options, items: &Items) -> Room {
    let new = match options.new_keys {
        true => {
            let sets = operations(options, items) as f64 * (1.0 - options.get_ratio);
            // Some more: which operations are sets is drawn.
            (options.rounds * options.threads) as u64 * (sets * 1.01 + 1000.0) as u64
        }
        false => 0,
    };
    let all = Items {
        count: items.count + new,
        ..*items
    };
    Room {
        memory: options.memory.unwrap_or_else(|| memory_for(&all)),
        // What does not hold all items has an index for those that it holds.
        items: (!options.store_misses).then_some(all.count as usize),
    }
}

/// Operations of each list.
fn operations(options: &Options, items: &Items) -> u64 {
    let count = items.count.clamp(OPERATIONS.0, OPERATIONS.1);
    let most = items.at_most(count);
    // Values of gets are not made beforehand, but copied again and again.
    let most = match options.get_ratio {
        1.0 => most * GETS_FOR_A_SET,
        _ => most,
    };
    count.min(most)
}

/// The lists of the warm-up, which are those of all rounds if there are no new keys; else gets alone.
pub(super) fn warming(options: &Options, items: &Items) -> Vec<Operations> {
    if !options.new_keys {
        return lists(options, items, 0);
    }
    let gets = Options {
        new_keys: false,
        get_ratio: 1.0,
        ..options.clone()
    };
    lists(&gets, items, 0)
}

/// The lists of a round, one for each thread. Without new keys those of all rounds are alike.
pub(super) fn lists(options: &Options, items: &Items, round: usize) -> Vec<Operations> {
    let count = operations(options, items);
    let list = |thread: usize| {
        let mut load = options.load();
        if options.new_keys {
            let number = (round * options.threads + thread) as u64;
            load.new_from = Some(items.count + number * count);
        }
        Operations::random(items, count as usize, &load, thread)
    };
    (0..options.threads).map(list).collect()
}
