//! Workloads by name: YCSB's, Facebook's pools, Twitter's clusters. What a client of a cache does, whatever it is for.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::seed::Seed;
use crate::traffic::{ItemShape, Traffic, TrafficActions};
use crate::ycsb::{self, Run, Ycsb};
use crate::{facebook, twitter};

/// Bytes of YCSB's keys: `user` and a hash of up to 19 digits (`CoreWorkload`).
const YCSB_KEY: usize = 23;
/// Bytes of YCSB's records: ten fields of 100 (`fieldcount` and `fieldlength` of `CoreWorkload`).
const YCSB_VALUE: usize = 1000;

/// What a client does; items go by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Gets an item.
    Get(u64),
    /// Stores an item.
    Set(u64),
    /// Deletes an item.
    Delete(u64),
    /// Gets several items by one request: the first, and so many in all.
    GetMany(u64, u16),
    /// Gets an item, and stores it again.
    GetThenSet(u64),
}

/// A workload.
#[derive(Clone, Copy, Debug)]
pub enum Workload {
    /// One of YCSB's. A scan gets as many items at once, since caches keep no order.
    Ycsb(Ycsb),
    /// A pool of Facebook's: its name.
    Facebook(&'static str, &'static Traffic),
    /// A cluster of Twitter's: its number.
    Twitter(u8, &'static Traffic),
}

const POOLS: [(&str, &Traffic); 3] = [
    ("etc", &facebook::ETC),
    ("usr", &facebook::USR),
    ("sys", &facebook::SYS),
];

impl FromStr for Workload {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let same = |workload: &Self| workload.to_string() == name;
        Self::all().find(same).ok_or_else(|| {
            let first = Self::all().filter(|workload| !matches!(workload, Self::Twitter(..)));
            let first: Vec<String> = first.map(|workload| workload.to_string()).collect();
            let numbers: Vec<String> = twitter::CLUSTERS
                .iter()
                .map(|(number, _)| number.to_string())
                .collect();
            let (first, numbers) = (first.join(", "), numbers.join(", "));
            format!("`{name}` is no workload; there are {first}, and twitter-N with N {numbers}")
        })
    }
}

impl Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ycsb(workload) => write!(out, "ycsb-{}", format!("{workload:?}").to_lowercase()),
            Self::Facebook(name, _) => out.write_str(name),
            Self::Twitter(number, _) => write!(out, "twitter-{number}"),
        }
    }
}

impl Workload {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let ycsb = Ycsb::ALL.into_iter().map(Self::Ycsb);
        let pools = POOLS
            .into_iter()
            .map(|(name, traffic)| Self::Facebook(name, traffic));
        let clusters = twitter::CLUSTERS
            .iter()
            .map(|(number, traffic)| Self::Twitter(*number, traffic));
        ycsb.chain(pools).chain(clusters)
    }

    /// The item with this number: always the same.
    pub fn item(&self, number: u64) -> ItemShape {
        match self {
            Self::Ycsb(_) => ItemShape {
                key: YCSB_KEY,
                value: YCSB_VALUE,
                lifetime: None,
            },
            Self::Facebook(_, traffic) | Self::Twitter(_, traffic) => traffic.item(number),
        }
    }

    /// False: its sets outnumber its gets, so that they cannot all be of what gets missed.
    pub fn sets_may_be_of_misses(&self) -> bool {
        match self {
            Self::Ycsb(_) => true,
            Self::Facebook(_, traffic) | Self::Twitter(_, traffic) => {
                traffic.gets >= traffic.sets()
            }
        }
    }

    /// What one thread does, without an end. Panics if there is no item, or no such thread.
    pub fn actions(&self, run: Run, seed: Seed, thread: usize) -> Actions {
        match self {
            Self::Ycsb(workload) => Actions::Ycsb(workload.requests(run, seed, thread)),
            Self::Facebook(_, traffic) | Self::Twitter(_, traffic) => {
                Actions::Traffic(traffic.actions(run.records, seed, thread))
            }
        }
    }
}

/// The actions of a thread.
pub enum Actions {
    /// YCSB's.
    Ycsb(ycsb::Requests),
    /// Those of a cache in production.
    Traffic(TrafficActions),
}

impl Actions {
    /// Those of who stores what gets miss. A mix that servers saw has such sets among its own, which are left out.
    pub fn storing_misses(self) -> Self {
        match self {
            Self::Traffic(actions) => Self::Traffic(actions.without_sets()),
            Self::Ycsb(_) => self,
        }
    }

    /// The number behind all items that there are, if each thread has inserted as many.
    pub fn items(&self) -> u64 {
        match self {
            Self::Ycsb(requests) => requests.records(),
            Self::Traffic(actions) => actions.items(),
        }
    }
}

impl Iterator for Actions {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        match self {
            Self::Traffic(actions) => actions.next(),
            Self::Ycsb(requests) => requests.next().map(|request| match request {
                ycsb::Request::Read(number) => Action::Get(number),
                ycsb::Request::Update(number) | ycsb::Request::Insert(number) => {
                    Action::Set(number)
                }
                ycsb::Request::Scan { from, records } => Action::GetMany(from, records),
                ycsb::Request::ReadModifyWrite(number) => Action::GetThenSet(number),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name() {
        for workload in Workload::all() {
            let found: Workload = workload.to_string().parse().unwrap();
            assert_eq!(found.to_string(), workload.to_string());
        }
        let error = "ycsb-g".parse::<Workload>().unwrap_err();
        assert!(
            error.contains("ycsb-f, etc, usr, sys, and twitter-N with N 1, 2, 3"),
            "{error}"
        );
        for none in ["", "ETC", "twitter-5", "twitter-55", "twitter"] {
            assert!(none.parse::<Workload>().is_err(), "{none}");
        }
    }

    #[test]
    fn each_repeats_by_seed_and_asks_for_what_is_there() {
        let run = Run {
            records: 1000,
            requests: 0,
            threads: 1,
        };
        for workload in Workload::all() {
            let drawn = || workload.actions(run, Seed(3), 0).take(500);
            assert!(drawn().eq(drawn()), "{workload}");
            for action in drawn() {
                let (Action::Get(number) | Action::Delete(number) | Action::GetThenSet(number)) =
                    action
                else {
                    continue;
                };
                let item = workload.item(number);
                assert!(
                    (1..=250).contains(&item.key) && item.value > 0,
                    "{workload}"
                );
            }
        }
    }
}
