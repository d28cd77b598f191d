//! Which server a key belongs to: jump consistent hashing (Lamping and Veach, 2014) of the same hash that its bucket
//! comes from.
//!
//! It needs no table, and when a server is added, only that server's share of the keys moves. (Rendezvous hashing would
//! let any server leave, not just the last, at a cost that grows with the number of servers. Servers of a job do not
//! leave alone.)

/// The server of a hash, out of `servers`.
#[inline]
pub fn server(hash: u64, servers: usize) -> usize {
    if servers == 1 {
        return 0;
    }
    // The bucket takes the low bits and the tag the top ones: the function's own steps stir all of them.
    let mut key = hash ^ hash.rotate_left(29);
    let (mut last, mut next) = (0, 0);
    while next < servers as u64 {
        last = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let share = (1_u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        next = ((last + 1) as f64 * share) as u64;
    }
    last as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_base::hash::KeyHasher;

    fn hashes() -> impl Iterator<Item = u64> {
        let hasher = KeyHasher::seeded(4);
        (0..40_000_u32).map(move |key| hasher.hash(&key.to_le_bytes()))
    }

    #[test]
    fn servers_get_equal_shares() {
        for servers in [1, 2, 3, 7, 64] {
            let mut counts = vec![0_u32; servers];
            hashes().for_each(|hash| counts[server(hash, servers)] += 1);
            let mean = 40_000 / servers as u32;
            let spread = 5 * mean.isqrt();
            assert!(counts.iter().all(|&count| count.abs_diff(mean) <= spread));
        }
    }

    #[test]
    fn one_server_more_takes_its_share_and_moves_nothing_else() {
        let moved = hashes().filter(|&hash| match (server(hash, 5), server(hash, 6)) {
            (before, after) if before == after => false,
            (_, after) => {
                assert_eq!(after, 5);
                true
            }
        });
        assert!(moved.count().abs_diff(40_000 / 6) < 400);
    }

    #[test]
    fn within_a_server_buckets_and_tags_are_spread() {
        let mut buckets = [0_u32; 64];
        let ours = hashes().filter(|&hash| server(hash, 4) == 1);
        ours.for_each(|hash| buckets[(hash & 63) as usize] += 1);
        assert!(
            buckets.iter().all(|&count| (90..230).contains(&count)),
            "{buckets:?}"
        );
    }
}
