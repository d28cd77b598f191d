//! Traces that are made, not recorded: one for each way of using a cache that a policy should not fail on.
//!
//! They are named `made:NAME` where a trace's file is named. Each is the same at every call.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution as _, Exp1, StandardNormal, Zipf};

/// What stands in front of a name.
pub const PREFIX: &str = "made:";

/// A trace that is made.
pub struct Made {
    /// Its name, without the prefix.
    pub name: &'static str,
    /// What it is, for a help text.
    pub help: &'static str,
    make: fn(&mut Maker<'_>) -> Option<()>,
}

/// All of them.
pub static MADE: &[Made] = &[
    Made {
        name: "recent",
        help: "keys are requested four times within some while, and then no more",
        make: |maker| maker.passing(300_000, 4, |random| random.sample::<f64, _>(Exp1) * 8_000.0),
    },
    Made {
        name: "window",
        help: "the same, five times, and within an exact while",
        make: |maker| maker.passing(400_000, 5, |random| random.random_range(0.0..12_000.0)),
    },
    Made {
        name: "once",
        help: "keys are stored, and requested once after some while, as of a queue or of tokens",
        make: |maker| maker.once(),
    },
    Made {
        name: "sets",
        help: "a set of popular keys is followed by another one, six times",
        make: |maker| maker.sets(6, 50_000),
    },
    Made {
        name: "long-sets",
        help: "the same with longer phases",
        make: |maker| maker.sets(5, 150_000),
    },
    Made {
        name: "distances",
        help: "half of the requests are for a key requested lately: the times between are log-uniform",
        make: |maker| maker.distances(),
    },
    Made {
        name: "loop",
        help: "the same keys again and again in their order",
        make: |maker| (0..600_000).try_for_each(|step| maker.get(step % 30_000)),
    },
    Made {
        name: "loop-beside-popular",
        help: "every second request is of a loop, the others are by popularity",
        make: |maker| maker.loop_beside_popular(),
    },
    Made {
        name: "scans",
        help: "popular keys, and scans of new ones",
        make: |maker| maker.scans(),
    },
    Made {
        name: "burst-reads",
        help: "popular keys; three of ten steps store a new key and read it at once, twice",
        make: |maker| maker.bursts(0.3, 200_000, &VALUES_200, Maker::write_and_get_twice),
    },
    Made {
        name: "burst-writes",
        help: "popular keys; three of ten steps write a new key three times",
        make: |maker| maker.bursts(0.3, 200_000, &VALUES_200, Maker::write_thrice),
    },
    Made {
        name: "burst-reads-of-few",
        help: "as burst-reads, six of ten, beside fewer popular keys",
        make: |maker| maker.bursts(0.6, 70_000, &VALUES_200, Maker::write_and_get_twice),
    },
    Made {
        name: "burst-writes-of-few",
        help: "as burst-writes, six of ten, beside fewer popular keys",
        make: |maker| maker.bursts(0.6, 70_000, &VALUES_200, Maker::write_thrice),
    },
    Made {
        name: "burst-sizes",
        help: "as burst-reads, and sizes differ",
        make: |maker| {
            maker.bursts(
                0.3,
                100_000,
                &[50, 200, 200, 1000, 4000],
                Maker::write_and_get_twice,
            )
        },
    },
    Made {
        name: "growing-set",
        help: "as burst-reads, and the number of popular keys grows from 10,000 to 200,000",
        make: |maker| maker.changing_set(10_000.0, 200_000.0),
    },
    Made {
        name: "shrinking-set",
        help: "the same, from 200,000 to 10,000",
        make: |maker| maker.changing_set(200_000.0, 10_000.0),
    },
    Made {
        name: "sizes",
        help: "popular keys that change places, log-normal sizes of mean 38 KB",
        make: |maker| maker.sizes(1.5),
    },
    Made {
        name: "wide-sizes",
        help: "the same, and sizes differ more",
        make: |maker| maker.sizes(2.0),
    },
    Made {
        name: "growing-sizes",
        help: "popular keys, sizes from 100 bytes to 10,000",
        make: |maker| maker.drifting_sizes(100.0, 10_000.0),
    },
    Made {
        name: "shrinking-sizes",
        help: "the same, from 10,000 bytes to 100",
        make: |maker| maker.drifting_sizes(10_000.0, 100.0),
    },
];

/// The trace of this name.
pub fn named(name: &str) -> Option<&'static Made> {
    MADE.iter().find(|made| made.name == name)
}

/// The traces in words, for a help text.
pub fn help() -> String {
    let each = MADE
        .iter()
        .map(|made| format!("{PREFIX}{} ({})", made.name, made.help));
    let zipf = format!("{PREFIX}zipf:KEYS:THETA:REQUESTS (gets of so many keys by Zipf's law)");
    each.chain([zipf]).collect::<Vec<_>>().join(", ")
}

impl Made {
    /// Gives each request to `sink`, until that says `None`.
    pub fn make(&self, sink: &mut dyn FnMut(MadeRequest) -> Option<()>) {
        let mut maker = Maker {
            sink,
            random: SmallRng::seed_from_u64(5),
            size: 1000,
        };
        // None: no more are wanted.
        let _ = (self.make)(&mut maker);
    }
}

/// A request of a made trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeRequest {
    /// The key.
    pub key: u64,
    /// Bytes of its value.
    pub size: u32,
    /// True: it is written, and not read.
    pub writes: bool,
}

/// Values of 200 bytes.
const VALUES_200: [u32; 1] = [200];

/// Keys from here on come once.
const ONCE: u64 = 1 << 40;

/// Makes a trace. Its functions return `None` when no more requests are wanted.
struct Maker<'a> {
    sink: &'a mut dyn FnMut(MadeRequest) -> Option<()>,
    random: SmallRng,
    /// The size of values now.
    size: u32,
}

impl Maker<'_> {
    fn request(&mut self, key: u64, writes: bool) -> Option<()> {
        let size = self.size;
        (self.sink)(MadeRequest { key, size, writes })
    }

    fn get(&mut self, key: u64) -> Option<()> {
        self.request(key, false)
    }

    fn write_and_get_twice(&mut self, key: u64) -> Option<()> {
        self.request(key, true)?;
        (0..2).try_for_each(|_| self.get(key))
    }

    fn write_thrice(&mut self, key: u64) -> Option<()> {
        (0..3).try_for_each(|_| self.request(key, true))
    }

    /// A rank by Zipf's law, from 0 on.
    fn rank(&mut self, keys: f64, theta: f64) -> u64 {
        let law = Zipf::new(keys, theta).expect("at least one key, and an exponent above 0");
        // Rounding may give one rank too many.
        law.sample(&mut self.random).clamp(1.0, keys) as u64 - 1
    }

    /// Each key comes about `times` times, at the `back` steps after its turn.
    fn passing(
        &mut self,
        steps: u64,
        times: u64,
        back: impl Fn(&mut SmallRng) -> f64,
    ) -> Option<()> {
        (0..steps).try_for_each(|step| {
            let behind = back(&mut self.random) as u64;
            self.get((1 << 20) + step / times - behind)
        })
    }

    fn once(&mut self) -> Option<()> {
        (0..150_000_u64).try_for_each(|step| {
            self.get(step)?;
            let behind = self.random.random_range(3_000..9_000);
            step.checked_sub(behind)
                .map_or(Some(()), |key| self.get(key))
        })
    }

    fn sets(&mut self, sets: u64, steps: u64) -> Option<()> {
        (0..sets * steps).try_for_each(|step| {
            let rank = self.rank(30_000.0, 0.9);
            self.get(step / steps * 30_000 + rank)
        })
    }

    fn distances(&mut self) -> Option<()> {
        let mut keys: Vec<u64> = Vec::new();
        (0..400_000_u64).try_for_each(|step| {
            let back = 100_000_f64.powf(self.random.random::<f64>()) as u64;
            let key = match self.random.random_bool(0.5) && back <= step {
                true => keys[(step - back) as usize],
                false => step,
            };
            keys.push(key);
            self.get(key)
        })
    }

    fn loop_beside_popular(&mut self) -> Option<()> {
        (0..600_000).try_for_each(|step| {
            let key = match step % 2 {
                0 => ONCE + step / 2 % 20_000,
                _ => self.rank(30_000.0, 0.9),
            };
            self.get(key)
        })
    }

    fn scans(&mut self) -> Option<()> {
        let mut once = ONCE;
        (0..30).try_for_each(|_| {
            for _ in 0..15_000 {
                let key = self.rank(50_000.0, 0.9);
                self.get(key)?;
            }
            once += 8_000;
            (once - 8_000..once).try_for_each(|key| self.get(key))
        })
    }

    /// A share of the steps is `burst` with a key that comes no more, the others get one of `keys` popular keys. `sizes`
    /// are taken in turn by keys.
    fn bursts(
        &mut self,
        share: f64,
        keys: u32,
        sizes: &[u32],
        burst: impl Fn(&mut Self, u64) -> Option<()>,
    ) -> Option<()> {
        let size_of = |key: u64| sizes[key.wrapping_mul(0x9e37_79b9) as usize % sizes.len()];
        (0..800_000).try_for_each(|step| {
            if self.random.random_bool(share) {
                self.size = size_of(step);
                burst(self, ONCE + step)
            } else {
                let key = self.rank(keys.into(), 0.9);
                self.size = size_of(key);
                self.get(key)
            }
        })
    }

    fn changing_set(&mut self, from: f64, to: f64) -> Option<()> {
        const STEPS: u64 = 800_000;
        self.size = 200;
        (0..STEPS).try_for_each(|step| {
            if self.random.random_bool(0.3) {
                return self.write_and_get_twice(ONCE + step);
            }
            let keys = from * (to / from).powf(step as f64 / STEPS as f64);
            let key = self.rank(keys.floor(), 0.9);
            self.get(key)
        })
    }

    fn sizes(&mut self, sigma: f64) -> Option<()> {
        const KEYS: usize = 60_000;
        let mean = 38_000_f64;
        let sizes: Vec<u32> = (0..KEYS)
            .map(|_| {
                let drawn: f64 = self.random.sample(StandardNormal);
                let size = (mean.ln() - sigma * sigma / 2.0 + sigma * drawn).exp();
                size.clamp(1.0, 4_000_000.0) as u32
            })
            .collect();
        let mut places: Vec<u64> = (0..KEYS as u64).collect();
        (0..400_000).try_for_each(|step| {
            if step % 20 == 0 {
                let (one, other) = (
                    self.random.random_range(0..KEYS),
                    self.random.random_range(0..KEYS),
                );
                places.swap(one, other);
            }
            let key = places[self.rank(KEYS as f64, 0.8) as usize];
            self.size = sizes[key as usize];
            self.get(key)
        })
    }

    fn drifting_sizes(&mut self, from: f64, to: f64) -> Option<()> {
        const STEPS: u64 = 400_000;
        let mut sizes = vec![(0_u64, 0_u32); 55_000];
        (0..STEPS).try_for_each(|step| {
            let key = self.rank(55_000.0, 0.8);
            let over = step as f64 / STEPS as f64;
            // A key's size is that of the time of its first request, and another one each fifty thousand steps.
            let size = &mut sizes[key as usize];
            if size.1 == 0 || size.0 + 50_000 < step {
                *size = (step, (from * (to / from).powf(over)) as u32);
            }
            self.size = size.1;
            self.get(key)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn first(made: &Made, count: usize) -> Vec<MadeRequest> {
        let mut requests = Vec::new();
        made.make(&mut |request| {
            requests.push(request);
            (requests.len() < count).then_some(())
        });
        requests
    }

    #[test]
    fn each_trace_is_the_same_at_every_call() {
        let mut names = HashSet::new();
        for made in MADE {
            let requests = first(made, 20_000);
            assert_eq!(requests.len(), 20_000, "{}", made.name);
            assert_eq!(requests, first(made, 20_000), "{}", made.name);
            assert!(requests.iter().all(|request| request.size > 0));
            assert!(names.insert(made.name) && help().contains(made.name));
        }
    }

    #[test]
    fn bursts_are_for_keys_that_come_no_more() {
        let made = named("burst-writes").unwrap();
        let writes: Vec<MadeRequest> = first(made, 20_000)
            .into_iter()
            .filter(|request| request.writes)
            .collect();
        let keys: HashSet<u64> = writes.iter().map(|request| request.key).collect();
        // The last burst may be cut.
        assert_eq!(keys.len(), writes.len().div_ceil(3));
        assert!(named("none").is_none());
    }
}
