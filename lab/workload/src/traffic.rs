//! The traffic of a cache in production, by its published statistics: how large items are and how long they live, which
//! operations come how often, and how popular keys are.

use rand::Rng;
use rand::rngs::SmallRng;

use crate::distribution::{Distribution, Popularity};
use crate::named::Action;
use crate::seed::Seed;

/// A cache's traffic.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Sizes of its items.
    pub sizes: Sizes,
    /// Gets among a thousand operations.
    pub gets: u32,
    /// Deletes among a thousand. The rest are sets.
    pub deletes: u32,
    /// How popular items are.
    pub popularity: Distribution,
    /// Lifetimes in seconds, each with its weight. None: items do not expire.
    pub lifetimes: &'static [(u32, u32)],
}

/// Bytes of keys and values.
#[derive(Clone, Copy, Debug)]
pub enum Sizes {
    /// The same of all items.
    Same {
        /// Of each key.
        key: usize,
        /// Of each value.
        value: usize,
    },
    /// The function of an item's number.
    Of(fn(u64) -> (usize, usize)),
}

/// An item of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemShape {
    /// Bytes of its key.
    pub key: usize,
    /// Bytes of its value, 1 or more.
    pub value: usize,
    /// Seconds that it lives once it is stored; for ever if there is no number.
    pub lifetime: Option<u32>,
}

impl Traffic {
    /// The item with this number: always the same.
    pub fn item(&self, number: u64) -> ItemShape {
        let (key, value) = match self.sizes {
            Sizes::Same { key, value } => (key, value),
            Sizes::Of(sizes) => sizes(number),
        };
        ItemShape {
            key,
            value,
            lifetime: self.lifetime(number),
        }
    }

    fn lifetime(&self, number: u64) -> Option<u32> {
        let sum: u32 = self.lifetimes.iter().map(|(_, weight)| weight).sum();
        if sum == 0 {
            return None;
        }
        let mut left = Seed(0x771).thread(number as usize).random_range(0..sum);
        let chosen = self.lifetimes.iter().find(|(_, weight)| {
            let is = left < *weight;
            left = left.saturating_sub(*weight);
            is
        });
        chosen.map(|(seconds, _)| *seconds)
    }

    /// Sets among a thousand operations.
    pub fn sets(&self) -> u32 {
        1000 - self.gets - self.deletes
    }

    /// The operations of one thread on so many items, without an end.
    pub fn actions(&self, items: u64, seed: Seed, thread: usize) -> TrafficActions {
        TrafficActions {
            gets: self.gets,
            deletes: self.deletes,
            of: 1000,
            popularity: Popularity::new(self.popularity, items),
            random: seed.thread(thread),
        }
    }
}

/// The operations of a thread.
pub struct TrafficActions {
    gets: u32,
    deletes: u32,
    /// The sum of all shares.
    of: u32,
    popularity: Popularity,
    random: SmallRng,
}

impl TrafficActions {
    /// How many items there are.
    pub fn items(&self) -> u64 {
        self.popularity.count()
    }

    /// The same without sets: who stores what gets miss makes those. There must be gets.
    pub fn without_sets(self) -> Self {
        Self {
            of: self.gets + self.deletes,
            ..self
        }
    }
}

impl Iterator for TrafficActions {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        let drawn = self.random.random_range(0..self.of);
        let number = self.popularity.draw(&mut self.random);
        Some(match drawn {
            drawn if drawn < self.gets => Action::Get(number),
            drawn if drawn < self.gets + self.deletes => Action::Delete(number),
            _ => Action::Set(number),
        })
    }
}
