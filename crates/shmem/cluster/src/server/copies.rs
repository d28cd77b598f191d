//! Long values that sessions take piece by piece: each session has one at most, in the server's own memory.

use std::collections::HashMap;

use crate::message::INLINE_MAX;

/// A session's value.
struct Copy {
    value: Box<[u8]>,
    /// Since this epoch.
    since: u32,
}

/// Epochs after which no session waits for the holder of a copy any more: its PE may stand still.
const LONG: u32 = 2;

/// The values that are being taken.
pub struct Copies {
    of: HashMap<usize, Copy>,
    /// Bytes above which no session gets another copy. Copies that were kept for long are not counted.
    enough: usize,
}

impl Copies {
    /// With room for about `enough` bytes, and one value more.
    pub fn new(enough: usize) -> Self {
        Self {
            of: HashMap::new(),
            enough,
        }
    }

    /// True if another value may be kept.
    pub fn has_room(&self, epoch: u32) -> bool {
        let young = (self.of.values()).filter(|copy| copy.since.saturating_add(LONG) > epoch);
        young.map(|copy| copy.value.len()).sum::<usize>() <= self.enough
    }

    /// Keeps a value for a session, which has none.
    pub fn keep(&mut self, session: usize, value: Box<[u8]>, epoch: u32) {
        let since = epoch;
        self.of.insert(session, Copy { value, since });
    }

    /// A piece of a session's value; empty if the session has no value, or the value fewer pieces.
    pub fn piece(&self, session: usize, number: usize) -> &[u8] {
        let value = self.of.get(&session).map_or(&[][..], |copy| &copy.value);
        value.chunks(INLINE_MAX).nth(number).unwrap_or_default()
    }

    /// True if a piece is the last one of a session's value.
    pub fn is_last(&self, session: usize, number: usize) -> bool {
        let copy = self.of.get(&session);
        copy.is_some_and(|copy| (number + 1).saturating_mul(INLINE_MAX) >= copy.value.len())
    }

    /// A session no longer needs its value.
    pub fn drop_of(&mut self, session: usize) {
        self.of.remove(&session);
    }

    /// Sessions that have held a value since an epoch, or longer.
    pub fn held_since(&self, epoch: u32) -> impl Iterator<Item = usize> {
        let long = self.of.iter().filter(move |(_, copy)| copy.since <= epoch);
        long.map(|(&session, _)| session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_in_pieces_and_goes_with_the_last() {
        let mut copies = Copies::new(10);
        let value: Vec<u8> = (0..2 * INLINE_MAX + 5).map(|at| at as u8).collect();
        copies.keep(3, value.clone().into(), 7);
        assert!(!copies.has_room(7) && !copies.has_room(8));
        // A client that has had it for so long may have stopped.
        assert!(copies.has_room(9));
        let pieces: Vec<_> = (0..4).map(|piece| copies.piece(3, piece)).collect();
        assert_eq!(pieces.concat(), value);
        assert!(!copies.is_last(3, 1) && copies.is_last(3, 2));
        assert!(copies.piece(4, 0).is_empty());
        assert_eq!(copies.held_since(7).collect::<Vec<_>>(), [3]);
        assert_eq!(copies.held_since(6).count(), 0);
        copies.drop_of(3);
        assert!(copies.has_room(7));
    }
}
