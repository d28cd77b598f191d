//! How many connections each address has: one address must not take all of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_security::guesses::Origin;

/// The open connections of each origin. It has no more entries than there are connections.
#[derive(Debug, Default)]
pub struct Origins(Mutex<HashMap<Origin, usize>>);

/// A connection's place, which it gives up when it is closed.
#[derive(Debug)]
pub struct Seat {
    origins: Arc<Origins>,
    origin: Origin,
}

impl Origins {
    /// A place for one more connection of this origin. `None` if it has as many as it may have.
    pub fn take_seat(self: &Arc<Self>, origin: Origin, most: usize) -> Option<Seat> {
        let mut open = self.0.lock();
        match open.entry(origin) {
            Entry::Occupied(count) if *count.get() >= most => return None,
            count => *count.or_default() += 1,
        }
        Some(Seat {
            origins: Arc::clone(self),
            origin,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.origins.0.lock();
        if let Entry::Occupied(mut count) = open.entry(self.origin) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_as_many_as_it_may_and_leaves_nothing_behind() {
        let origins = Arc::new(Origins::default());
        let [one, other] = [1, 2].map(|last| Origin::V4([127, 0, 0, last].into()));
        let first = origins.take_seat(one, 2).unwrap();
        let second = origins.take_seat(one, 2).unwrap();
        assert!(origins.take_seat(one, 2).is_none());
        assert!(origins.take_seat(one, 3).is_some(), "the limit can change");
        let third = origins.take_seat(other, 2).unwrap();
        drop(first);
        assert!(origins.take_seat(one, 2).is_some());
        drop((second, third));
        assert!(origins.0.lock().is_empty());
    }
}
