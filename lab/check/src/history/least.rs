//! Shrinks a history that convicts to the least part of it that still does.
//!
//! The operations left out must not be needed to explain the rest: a part is only taken if it proves that the whole
//! cannot be explained either.

use super::judge::{Event, PENDING, judge};
use crate::sequence::Misses;

/// The least part found of a history that cannot be explained.
pub fn least(history: &[Event], misses: Misses) -> Vec<Event> {
    let convicts = |history: &[Event]| judge(history, misses).is_none();
    let mut part = first_part(history, &convicts);
    loop {
        let before = part.len();
        part = last_part(part, &convicts);
        part = without_idle(part, &convicts);
        if part.len() == before {
            return part;
        }
    }
}

/// One line an operation, in the order in which they began.
pub fn listing(history: &[Event]) -> String {
    let mut events: Vec<_> = history.iter().collect();
    events.sort_by_key(|event| event.began);
    let line = |event: &&Event| {
        let Event {
            thread,
            batch,
            act,
            began,
            now,
            ..
        } = event;
        let ended = match event.ended {
            PENDING => "later".to_string(),
            ended => ended.to_string(),
        };
        let told = event.told.brief();
        let now = now.0;
        format!("  {began}..{ended} at {now} thread {thread}, batch {batch}: {act:?} -> {told}\n")
    };
    events.iter().map(line).collect()
}

/// The history up to the first moment at which no order explains the operations that had ended by then. Operations
/// under way may have taken effect or not. If an order explains the whole, the start of that order explains each such
/// part.
fn first_part(history: &[Event], convicts: &impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let until = |moment: usize| -> Vec<Event> {
        let begun = history.iter().filter(|event| event.began < moment);
        let cut = begun.map(|event| Event {
            ended: if event.ended <= moment {
                event.ended
            } else {
                PENDING
            },
            ..event.clone()
        });
        cut.collect()
    };
    let mut ends: Vec<_> = history.iter().map(|event| event.ended).collect();
    ends.sort_unstable();
    let first = ends.partition_point(|&end| !convicts(&until(end)));
    ends.get(first).map_or(history.to_vec(), |&end| until(end))
}

/// The history from a set on, without the operations that had ended before it began. Operations that overlap the set
/// may take effect before it, so they must be blind too.
fn last_part(history: Vec<Event>, convicts: &impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let resets = |set: &Event| {
        let beside = history
            .iter()
            .filter(|event| event.ended >= set.began && event.began <= set.ended);
        set.act.is_blind() && beside.into_iter().all(|event| event.act.is_blind())
    };
    let mut sets: Vec<&Event> = history.iter().filter(|event| resets(event)).collect();
    sets.sort_by_key(|set| std::cmp::Reverse(set.began));
    let from = |set: &&Event| -> Vec<Event> {
        let after = history.iter().filter(|event| event.ended >= set.began);
        after.cloned().collect()
    };
    let shorter = sets.iter().map(from).find(|part| convicts(part));
    shorter.unwrap_or(history)
}

/// Leaves out operations that changed nothing: they are not needed to explain others.
fn without_idle(mut history: Vec<Event>, convicts: &impl Fn(&[Event]) -> bool) -> Vec<Event> {
    for index in (0..history.len()).rev() {
        if history[index].act.changed_nothing(&history[index].told) {
            let event = history.remove(index);
            if !convicts(&history) {
                history.insert(index, event);
            }
        }
    }
    history
}
