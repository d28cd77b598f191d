//! Clusters of caches at Twitter: Yang, Yue and Rashmi, "A large scale analysis of hundreds of in-memory cache clusters at
//! Twitter", OSDI 2020, and the statistics of their traces of March 2020 (`stat/2020Mar.md` of github.com/twitter/cache-trace,
//! CC-BY 4.0), from which all these numbers are: mean sizes of keys and values, shares of operations, Zipf's exponent, and the
//! most common lifetimes.
//!
//! What is not in that table is not here: all keys, and all values, of a cluster have its mean sizes. `gets` is a get; `add`,
//! `cas`, `incr` and `prepend` are sets, and so is what the table's shares lack to a hundred. Where the exponent is 0, keys
//! are asked for alike (10, 31, 32, 35, 38, 39).
//!
//! The table's mean frequencies, one-hit wonders and compulsory misses are not modelled either: the keys are the same from the
//! first request to the last, and none is new. So there are no compulsory misses, a cache that holds all keys misses only what has
//! expired or was deleted, and miss ratios are lower than the clusters' were. Nor are the shares of sets those of clients alone:
//! they are of requests that servers saw, and sets of what gets missed are among them.
//!
//! Clusters without an exponent (5, 43, 46)
//! are left out. For their own evaluations the authors recommend 17, 18, 24, 29, 44, 45 and 52 for misses, 12, 15, 31 and
//! 37 for writes, and 6, 7, 11, 18, 19, 22, 25 and 52 for lifetimes.

use crate::distribution::Distribution;
use crate::traffic::{Sizes, Traffic};

const HOUR: u32 = 3600;
const DAY: u32 = 24 * HOUR;

/// So many tenths of an hour.
const fn tenths(hours: u32) -> u32 {
    hours * HOUR / 10
}

/// The clusters by their numbers, in order.
pub const CLUSTERS: &[(u8, Traffic)] = &[
    (1, of(80, 267, 99, 0, 2.6774, &[(240, 100)])),
    (
        2,
        of(21, 68, 100, 0, 1.4908, &[(4 * DAY, 59), (2 * DAY, 41)]),
    ),
    (3, of(19, 120, 99, 0, 1.6414, &[(7 * DAY, 100)])),
    (4, of(67, 2439, 93, 0, 1.1004, MIXED_4)),
    (6, of(44, 252, 98, 0, 1.882, MINUTES_6)),
    (7, of(17, 1936, 82, 0, 1.0666, HOURS_7)),
    (8, of(23, 9497, 50, 0, 1.7366, &[(1380, 95), (1379, 5)])),
    (9, of(32, 39, 99, 0, 1.6796, HOURS_9)),
    (10, of(22, 2333, 50, 0, 0.0, &[(2 * HOUR, 100)])),
    (11, of(24, 170, 97, 0, 1.4891, &[(5 * DAY, 97), (20, 3)])),
    (12, of(44, 1030, 20, 0, 0.3048, &[(300, 98), (299, 2)])),
    (13, of(44, 4266, 38, 0, 0.4565, &[(300, 97), (299, 3)])),
    (14, of(96, 414, 65, 22, 1.2959, &[(DAY, 100)])),
    (15, of(18, 102, 0, 0, 0.0242, &[(30, 100)])),
    (16, of(18, 115, 93, 0, 1.7862, &[(HOUR, 99)])),
    (17, of(19, 212, 99, 0, 2.1106, &[(5 * DAY, 100)])),
    (18, of(18, 37, 97, 0, 2.0994, &[(12 * HOUR, 100)])),
    (19, of(42, 101, 75, 0, 0.735, HOURS_19)),
    (20, of(26, 55, 96, 0, 1.3699, &[(5 * DAY, 99)])),
    (
        21,
        of(
            25,
            1,
            0,
            0,
            0.0521,
            &[(tenths(22), 62), (10, 23), (900, 14)],
        ),
    ),
    (
        22,
        of(54, 4, 72, 0, 0.7624, &[(DAY, 85), (HOUR, 11), (1800, 3)]),
    ),
    (
        23,
        of(35, 224, 36, 2, 0.274, &[(120, 93), (2700, 5), (5, 3)]),
    ),
    (24, of(32, 699, 99, 0, 1.3726, MIXED_24)),
    (25, of(49, 28, 97, 0, 0.9929, &[(30 * DAY, 99)])),
    (26, of(122, 1745, 71, 0, 0.6299, MINUTES_26)),
    (27, of(66, 8, 85, 0, 1.065, MIXED_27)),
    (
        28,
        of(45, 85, 91, 0, 1.503, &[(3 * HOUR, 56), (12 * DAY / 10, 43)]),
    ),
    (
        29,
        of(36, 799, 86, 0, 1.2323, &[(HOUR, 67), (2 * HOUR, 33)]),
    ),
    (30, of(22, 689, 99, 0, 1.4259, HOURS_30)),
    (31, of(41, 15, 6, 0, 0.0, &[(60, 100)])),
    (32, of(41, 138, 2, 0, 0.0, &[(60, 100)])),
    (33, of(24, 1118, 99, 0, 1.354, HOURS_33)),
    (34, of(33, 322, 94, 0, 1.1401, HOURS_34)),
    (35, of(19, 1796, 96, 0, 0.0, &[(60, 100)])),
    (36, of(23, 78, 94, 0, 1.2169, &[(30 * DAY, 100)])),
    (37, of(72, 20134, 63, 0, 0.4251, MIXED_37)),
    (38, of(41, 185, 6, 0, 0.0, &[(60, 100)])),
    (39, of(41, 80, 6, 0, 0.0, &[(60, 100)])),
    (40, of(44, 155, 50, 0, 0.8551, &[(8 * HOUR, 95), (DAY, 5)])),
    (41, of(44, 171, 50, 0, 0.8542, &[(8 * HOUR, 95), (DAY, 5)])),
    (
        42,
        of(
            40,
            4703,
            96,
            0,
            1.5974,
            &[(600, 82), (300, 16), (6 * HOUR, 2)],
        ),
    ),
    (44, of(25, 22, 98, 0, 1.4084, &[(30 * DAY, 100)])),
    (45, of(10, 120, 85, 0, 0.6372, &[(15 * DAY, 100)])),
    (47, of(44, 267, 100, 0, 2.0637, &[(2 * DAY, 100)])),
    (48, of(44, 70, 65, 0, 0.8191, &[(DAY, 100)])),
    (49, of(44, 10658, 57, 0, 1.5095, &[(DAY, 100)])),
    (
        50,
        of(
            18,
            67485,
            52,
            0,
            1.2816,
            &[(900, 73), (1200, 24), (1199, 3)],
        ),
    ),
    (51, of(44, 221, 90, 0, 1.9745, &[(2 * DAY, 100)])),
    (
        52,
        of(
            20,
            273,
            93,
            0,
            1.2117,
            &[(DAY, 65), (14 * DAY, 27), (12 * HOUR, 7)],
        ),
    ),
    (
        53,
        of(36, 9213, 89, 0, 1.2061, &[(30 * DAY, 66), (21 * DAY, 34)]),
    ),
    (54, of(19, 246, 97, 0, 1.611, HOURS_54)),
];

const MIXED_4: &[(u32, u32)] = &[
    (60, 39),
    (300, 24),
    (HOUR, 13),
    (600, 12),
    (4 * HOUR, 9),
    (DAY, 3),
];
const MINUTES_6: &[(u32, u32)] = &[
    (520, 3),
    (510, 3),
    (490, 3),
    (590, 3),
    (540, 3),
    (550, 3),
    (570, 2),
    (500, 2),
    (580, 2),
    (596, 2),
];
const HOURS_7: &[(u32, u32)] = &[
    (tenths(18), 28),
    (tenths(17), 24),
    (tenths(19), 23),
    (tenths(16), 13),
    (tenths(20), 12),
];
const HOURS_9: &[(u32, u32)] = &[
    (tenths(20), 79),
    (tenths(14), 2),
    (tenths(11), 2),
    (tenths(19), 2),
    (tenths(16), 2),
    (tenths(12), 2),
    (tenths(18), 2),
    (tenths(15), 2),
    (tenths(17), 2),
    (tenths(13), 2),
];
const HOURS_19: &[(u32, u32)] = &[
    (tenths(75), 8),
    (tenths(74), 7),
    (tenths(66), 7),
    (tenths(72), 7),
    (tenths(67), 7),
    (tenths(70), 7),
    (tenths(71), 7),
    (tenths(68), 7),
    (tenths(69), 7),
    (tenths(73), 6),
];
const MIXED_24: &[(u32, u32)] = &[(14 * DAY, 71), (60, 19), (30 * DAY, 3), (DAY, 2), (HOUR, 2)];
const MINUTES_26: &[(u32, u32)] = &[(60, 67), (120, 10), (360, 9), (600, 6), (660, 3), (180, 2)];
const MIXED_27: &[(u32, u32)] = &[
    (926 * DAY / 10, 28),
    (DAY, 25),
    (HOUR, 20),
    (4 * HOUR, 18),
    (6 * HOUR, 6),
    (12 * HOUR, 2),
];
const HOURS_30: &[(u32, u32)] = &[
    (tenths(120), 36),
    (tenths(102), 4),
    (tenths(118), 4),
    (tenths(97), 3),
    (tenths(106), 3),
    (tenths(115), 3),
    (tenths(110), 3),
    (tenths(113), 3),
    (tenths(117), 3),
    (tenths(119), 3),
];
const HOURS_33: &[(u32, u32)] = &[
    (tenths(107), 5),
    (tenths(112), 5),
    (tenths(117), 4),
    (tenths(116), 4),
    (tenths(115), 4),
    (tenths(109), 4),
    (tenths(113), 4),
    (tenths(106), 4),
    (tenths(98), 4),
    (tenths(111), 4),
];
const HOURS_34: &[(u32, u32)] = &[
    (tenths(106), 4),
    (tenths(105), 4),
    (tenths(111), 4),
    (tenths(98), 4),
    (tenths(112), 4),
    (tenths(107), 4),
    (tenths(97), 4),
    (tenths(100), 4),
    (tenths(101), 3),
    (tenths(104), 3),
];
const MIXED_37: &[(u32, u32)] = &[(20, 91), (300, 6), (2 * HOUR, 2), (600, 1)];
const HOURS_54: &[(u32, u32)] = &[
    (tenths(38), 13),
    (tenths(33), 13),
    (tenths(34), 13),
    (tenths(39), 12),
    (tenths(35), 12),
    (tenths(36), 12),
    (tenths(37), 11),
    (tenths(40), 7),
    (tenths(32), 6),
];

/// A row of the table: mean bytes of a key and of a value, gets and deletes in percent, the exponent, lifetimes.
const fn of(
    key: usize,
    value: usize,
    gets: u32,
    deletes: u32,
    theta: f64,
    lifetimes: &'static [(u32, u32)],
) -> Traffic {
    Traffic {
        sizes: Sizes::Same { key, value },
        gets: 10 * gets,
        deletes: 10 * deletes,
        popularity: Distribution::Zipf { theta },
        lifetimes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_adds_up() {
        assert_eq!(CLUSTERS.len(), 51);
        assert!(CLUSTERS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (number, traffic) in CLUSTERS {
            assert!(traffic.gets + traffic.deletes <= 1000, "{number}");
            let sum: u32 = traffic.lifetimes.iter().map(|(_, share)| share).sum();
            // The table shows the ten most common lifetimes.
            assert!((25..=101).contains(&sum), "{number}: {sum}");
        }
    }

    #[test]
    fn lifetimes_come_as_often_as_in_the_table() {
        let (_, traffic) = CLUSTERS.iter().find(|(number, _)| *number == 52).unwrap();
        let days = |seconds| {
            let of = |number: &u64| traffic.item(*number).lifetime == Some(seconds);
            (0..10_000).filter(of).count() as f64 / 10_000.0
        };
        assert!((days(DAY) - 0.65 / 0.99).abs() < 0.02);
        assert!((days(14 * DAY) - 0.27 / 0.99).abs() < 0.02);
        assert_eq!(traffic.item(7), traffic.item(7));
    }
}
