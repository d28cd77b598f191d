//! Pools of memcacheds at Facebook: Atikoglu et al., "Workload analysis of a large-scale key-value store", SIGMETRICS 2012.
//!
//! The authors' slides of the conference give numbers that the paper draws only.
//!
//! | number | where it is from |
//! |---|---|
//! | ETC's sizes | the fitted distributions of section 5 ([`crate::etc`]) |
//! | ETC's 30 gets for each set | the abstract and the slides, which say so of ETC |
//! | ETC's deletes, a quarter of all operations | an assumption. Figure 1 is a bar chart without numbers, and a later reader took a quarter from it (Deckert, "Latency comparison of key-value stores for different cluster sizes", TU Berlin) |
//! | ETC's popularity: half of the keys in 1 % of requests, 1 % of the keys in 55 % | section 4.2.1 and the slides. The law is an assumption: even in the less popular half, Zipf's in the other, its exponent fitted at a million keys |
//! | ETC's arrivals ([`crate::arrival::Spacing::Pareto`]) | the fitted distribution, as two public generators give it; not found in the text at hand |
//! | USR's 99.8 % gets, keys of 16 and 21 bytes, values of 2 bytes | the slides. That half of the keys has each of the two sizes is an assumption |
//! | SYS' mix, two thirds gets, keys up to 40 bytes, seven values of ten of about 500 bytes | from memory: neither the text at hand nor the slides have it. That sizes are spread evenly below is an assumption |
//! | popularity in USR and SYS | an assumption: Zipf with YCSB's 0.99. The paper draws the curves (Figure 5) and fits none |
//! | lifetimes | the paper has none |
//!
//! The mixes are of requests that servers saw: sets of what gets missed are among their sets.

use crate::Seed;
use crate::distribution::Distribution;
use crate::etc;
use crate::traffic::{Sizes, Traffic};
use rand::Rng;

/// The most general pool: hundreds of servers for nothing in particular.
pub const ETC: Traffic = Traffic {
    sizes: Sizes::Of(etc::sizes),
    // 30 gets for each set, of what deletes leave.
    gets: 726,
    deletes: 250,
    popularity: Distribution::Halves {
        theta: 0.893,
        rare: 0.01,
    },
    lifetimes: &[],
};

/// The status of accounts: tiny values, hardly a write.
pub const USR: Traffic = Traffic {
    sizes: Sizes::Of(usr),
    gets: 998,
    deletes: 0,
    popularity: Distribution::YCSB,
    lifetimes: &[],
};

/// Where services are: a small pool with many writes.
pub const SYS: Traffic = Traffic {
    sizes: Sizes::Of(sys),
    gets: 670,
    deletes: 0,
    popularity: Distribution::YCSB,
    lifetimes: &[],
};

fn usr(number: u64) -> (usize, usize) {
    let short = Seed(0x05E).thread(number as usize).random_bool(0.5);
    (if short { 16 } else { 21 }, 2)
}

fn sys(number: u64) -> (usize, usize) {
    let mut random = Seed(0x575).thread(number as usize);
    let key = random.random_range(16..=40);
    let value = match random.random_bool(0.7) {
        true => random.random_range(480..=520),
        false => random.random_range(1..480),
    };
    (key, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Popularity;
    use crate::named::Action;

    #[test]
    fn etc_has_the_published_points_of_popularity() {
        const KEYS: u64 = 1_000_000;
        const DRAWS: usize = 1_000_000;
        let popularity = Popularity::new(ETC.popularity, KEYS);
        let mut ranks = vec![0; KEYS as usize];
        for rank in 1..=KEYS {
            ranks[popularity.key_of_rank(rank) as usize] = rank;
        }
        let mut random = Seed(1).thread(0);
        let (mut top, mut rare) = (0, 0);
        for _ in 0..DRAWS {
            let rank = ranks[popularity.draw(&mut random) as usize];
            top += usize::from(rank <= KEYS / 100);
            rare += usize::from(rank > KEYS / 2);
        }
        let share = |count: usize| count as f64 / DRAWS as f64;
        assert!((share(top) - 0.55).abs() < 0.005, "{}", share(top));
        assert!((share(rare) - 0.01).abs() < 0.0005, "{}", share(rare));
        let ratio = f64::from(ETC.gets) / f64::from(ETC.sets());
        assert!((29.5..30.5).contains(&ratio), "{ratio}");
    }

    #[test]
    fn without_sets_the_rest_keeps_its_shares() {
        let actions = ETC.actions(1000, Seed(1), 0).without_sets().take(100_000);
        let (mut gets, mut sets) = (0, 0);
        for action in actions {
            gets += u32::from(matches!(action, Action::Get(_)));
            sets += u32::from(matches!(action, Action::Set(_)));
        }
        assert_eq!(sets, 0);
        assert!((f64::from(gets) / 100_000.0 - 726.0 / 976.0).abs() < 0.005);
    }

    #[test]
    fn pools_have_their_sizes_and_mixes() {
        let share = |traffic: Traffic, is: fn(&Action) -> bool| {
            let actions = traffic.actions(1000, Seed(1), 0).take(100_000);
            actions.filter(is).count() as f64 / 100_000.0
        };
        let get = |action: &Action| matches!(action, Action::Get(_));
        let delete = |action: &Action| matches!(action, Action::Delete(_));
        for (traffic, gets, deletes) in [(ETC, 0.726, 0.25), (USR, 0.998, 0.0), (SYS, 0.67, 0.0)] {
            assert!((share(traffic, get) - gets).abs() < 0.005);
            assert!((share(traffic, delete) - deletes).abs() < 0.005);
        }
        for number in 0..1000 {
            let (usr, sys) = (USR.item(number), SYS.item(number));
            assert!([16, 21].contains(&usr.key) && usr.value == 2);
            assert!((16..=40).contains(&sys.key) && (1..=520).contains(&sys.value));
            assert_eq!(ETC.item(number).lifetime, None);
        }
    }
}
