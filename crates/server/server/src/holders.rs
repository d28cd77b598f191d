//! The connections of a worker that hold much memory, ordered by how much they hold.

use std::collections::BTreeSet;

use nuthatch_state::buffers::SHARE_LEAST;

/// Connections that hold more than [`SHARE_LEAST`], which every connection may hold. Nearly all connections hold less,
/// and are not in this set.
#[derive(Default)]
pub(crate) struct Holders {
    /// Bytes and id of each connection.
    by_size: BTreeSet<(usize, usize)>,
}

impl Holders {
    /// A connection that held `before` bytes now holds `now`.
    #[inline]
    pub(crate) fn change(&mut self, id: usize, before: usize, now: usize) {
        if before > SHARE_LEAST {
            self.by_size.remove(&(before, id));
        }
        if now > SHARE_LEAST {
            self.by_size.insert((now, id));
        }
    }

    /// The ids of the connections that hold more than this, the largest first.
    pub(crate) fn above(&self, share: usize) -> impl Iterator<Item = usize> {
        let above = (share.saturating_add(1), 0)..;
        self.by_size.range(above).rev().map(|&(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_comes_first_and_the_small_not_at_all() {
        let mut holders = Holders::default();
        for (id, bytes) in [
            (1, 10_000),
            (2, SHARE_LEAST),
            (3, 30_000),
            (4, 20_000),
            (5, 20_000),
        ] {
            holders.change(id, 0, bytes);
        }
        assert_eq!(holders.above(0).collect::<Vec<_>>(), [3, 5, 4, 1]);
        assert_eq!(holders.above(10_000).collect::<Vec<_>>(), [3, 5, 4]);
        holders.change(3, 30_000, 12_000);
        holders.change(5, 20_000, 0);
        assert_eq!(holders.above(0).collect::<Vec<_>>(), [4, 3, 1]);
        for (id, bytes) in [(1, 10_000), (2, SHARE_LEAST), (3, 12_000), (4, 20_000)] {
            holders.change(id, bytes, 0);
        }
        assert_eq!(holders.above(0).count(), 0);
    }
}
