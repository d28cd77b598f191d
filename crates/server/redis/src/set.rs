//! The engine's operation for a SET.

use nuthatch_commands::answers::resp::Verb;
use nuthatch_commands::context::Context;
use nuthatch_engine::{Store, StoreMode};
use nuthatch_resp::{Lifetime, Set, SetAnswer, StoreCondition};
use nuthatch_state::changes::Naming;
use nuthatch_state::key_events::Event;

/// The engine's operation for a SET, if one request is enough.
#[inline]
pub fn store<'a>(cx: &Context<'_, '_>, set: &Set<'a>) -> Option<(Store<'a>, Verb)> {
    let mut store = Store::set(set.value);
    match set.lifetime {
        Lifetime::Forever => {}
        Lifetime::Until(moment) => {
            store.expiry = cx.expiry_at(moment);
        }
        Lifetime::Keep => return None,
    }
    store.mode = match set.when {
        StoreCondition::Always => StoreMode::Set,
        StoreCondition::Absent => StoreMode::Add,
        StoreCondition::Present => StoreMode::Replace,
        StoreCondition::Compared(_) => return None,
    };
    let verb = match set.answer {
        SetAnswer::Status => Verb::Status,
        SetAnswer::Number => Verb::Number,
        SetAnswer::Old => return None,
    };
    Some((store, verb))
}

/// The event that a SET is: a lifetime that is kept is not told.
pub fn naming(lifetime: Lifetime) -> Naming {
    match lifetime {
        Lifetime::Keep => Naming::As(Event::Set),
        Lifetime::Forever | Lifetime::Until(_) => Naming::ByOperation,
    }
}
