//! Pools of memcacheds at Facebook: Atikoglu et al., "Workload analysis of a large-scale key-value store", SIGMETRICS 2012.
//!
//! | number | where it is from |
//! |---|---|
//! | ETC's sizes | the fitted distributions of section 5 ([`crate::etc`]) |
//! | ETC's mix | Figure 1 is a bar chart without numbers: 70 % gets, 25 % deletes, 5 % sets are as a later reader took them from it (Deckert, "Latency comparison of key-value stores for different cluster sizes", TU Berlin). The abstract's 30 gets for each set is a mean |
//! | USR's 99.8 % gets, keys of 16 and 21 bytes, values of 2 bytes | sections 3.1 and 3.2, from memory: the text was not at hand. That half of the keys has each of the two sizes is an assumption |
//! | SYS' mix, two thirds gets, keys up to 40 bytes, seven values of ten of about 500 bytes | the same, from memory and not checked. That sizes are spread evenly below is an assumption |
//! | popularity | an assumption: Zipf with YCSB's 0.99. The paper draws the curves (Figure 5) and fits none |
//! | lifetimes | the paper has none |

use crate::Seed;
use crate::etc;
use crate::traffic::{Sizes, Traffic};
use rand::Rng;

/// YCSB's exponent.
const THETA: f64 = 0.99;

/// The most general pool: hundreds of servers for nothing in particular.
pub const ETC: Traffic = Traffic {
    sizes: Sizes::Of(etc::sizes),
    gets: 700,
    deletes: 250,
    theta: THETA,
    lifetimes: &[],
};

/// The status of accounts: tiny values, hardly a write.
pub const USR: Traffic = Traffic {
    sizes: Sizes::Of(usr),
    gets: 998,
    deletes: 0,
    theta: THETA,
    lifetimes: &[],
};

/// Where services are: a small pool with many writes.
pub const SYS: Traffic = Traffic {
    sizes: Sizes::Of(sys),
    gets: 670,
    deletes: 0,
    theta: THETA,
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
    use crate::named::Action;

    #[test]
    fn pools_have_their_sizes_and_mixes() {
        let share = |traffic: Traffic, is: fn(&Action) -> bool| {
            let actions = traffic.actions(1000, Seed(1), 0).take(100_000);
            actions.filter(is).count() as f64 / 100_000.0
        };
        let get = |action: &Action| matches!(action, Action::Get(_));
        let delete = |action: &Action| matches!(action, Action::Delete(_));
        for (traffic, gets, deletes) in [(ETC, 0.7, 0.25), (USR, 0.998, 0.0), (SYS, 0.67, 0.0)] {
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
