//! Gets of keys by Zipf's law, in any number: `made:zipf:KEYS:THETA:REQUESTS`.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution as _, Zipf};

use super::made::MadeRequest;

/// What stands in front of the numbers.
const PREFIX: &str = "zipf:";

/// The most keys: a trace numbers them by 32 bits.
const KEYS_MAX: u64 = 1 << 31;

/// The most requests.
const REQUESTS_MAX: u64 = 1 << 32;

/// A trace of gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByZipf {
    keys: u64,
    theta: f64,
    requests: u64,
}

impl ByZipf {
    /// From a name without `made:`; nothing if the name is of another trace. Errors: numbers that cannot be.
    pub fn named(name: &str) -> Option<Result<Self, String>> {
        let numbers = name.strip_prefix(PREFIX)?;
        Some(Self::parse(numbers).ok_or_else(|| {
            format!("zipf:KEYS:THETA:REQUESTS expected, with 1 to {KEYS_MAX} keys, theta 0 to 10, 1 to {REQUESTS_MAX} requests")
        }))
    }

    fn parse(numbers: &str) -> Option<Self> {
        let mut numbers = numbers.split(':');
        let (keys, theta, requests) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let made = Self {
            keys: keys.parse().ok()?,
            theta: theta.parse().ok()?,
            requests: requests.parse().ok()?,
        };
        let is_possible = numbers.next().is_none()
            && (1..=KEYS_MAX).contains(&made.keys)
            && (0.0..=10.0).contains(&made.theta)
            && (1..=REQUESTS_MAX).contains(&made.requests);
        is_possible.then_some(made)
    }

    /// Gives each request to `sink`, with values of `size` bytes, until that says `None`. The same at every call.
    pub fn make(&self, size: u32, sink: &mut dyn FnMut(MadeRequest) -> Option<()>) {
        let law =
            Zipf::new(self.keys as f64, self.theta).expect("at least one key, and theta from 0 on");
        let mut random = SmallRng::seed_from_u64(7);
        let each = (0..self.requests).try_for_each(|_| {
            sink(MadeRequest {
                // Rounding may give one rank too many.
                key: (law.sample(&mut random) as u64).clamp(1, self.keys) - 1,
                size,
                writes: false,
            })
        });
        // None: no more are wanted.
        let _ = each;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_by_the_law_and_the_same_at_every_call() {
        let made = ByZipf::named("zipf:1000:0.99:20000").unwrap().unwrap();
        let all = || {
            let mut requests = Vec::new();
            made.make(32, &mut |request| {
                requests.push(request);
                Some(())
            });
            requests
        };
        let requests = all();
        assert_eq!(requests, all());
        assert_eq!(requests.len(), 20_000);
        assert!(
            requests
                .iter()
                .all(|one| one.key < 1000 && one.size == 32 && !one.writes)
        );
        // The most popular of a thousand keys has 1 / 7.7 of the requests.
        let first = requests.iter().filter(|one| one.key == 0).count();
        assert!((2300..2900).contains(&first), "{first}");
        let mut count = 0;
        made.make(32, &mut |_| {
            count += 1;
            (count < 5).then_some(())
        });
        assert_eq!(count, 5);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        assert_eq!(ByZipf::named("recent"), None);
        for name in [
            "zipf:",
            "zipf:10",
            "zipf:10:1",
            "zipf:0:1:1",
            "zipf:10:nan:1",
            "zipf:10:-1:1",
            "zipf:10:1:0",
            "zipf:10:1:1:1",
            "zipf:99999999999:1:1",
        ] {
            let refused = ByZipf::named(name).unwrap().unwrap_err();
            assert!(refused.contains("KEYS:THETA:REQUESTS"), "{name}");
        }
    }
}
