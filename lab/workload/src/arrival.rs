//! When requests arrive: evenly, at random, and in bursts. A load that keeps to these moments whatever the server does is an
//! open one: a server that stands still for a while does not make the load wait with it.

use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;

use crate::seed::Seed;

/// The distances between arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// All alike.
    Constant,
    /// Exponentially distributed, as of very many clients that know nothing of each other.
    Poisson,
    /// By the generalised Pareto distribution with the shape that fits ETC of Facebook: 0.154971, at a scale of 16.0292
    /// microseconds. So two public generators give it as of Atikoglu et al., SIGMETRICS 2012 (mutilate and fbworkload); in
    /// the paper's text that was at hand it was not found. It is scaled to the rate: short distances and long ones are both
    /// more frequent than of Poisson's. With several threads each has such distances.
    Pareto,
}

/// ETC's fitted shape.
const PARETO_SHAPE: f64 = 0.154971;

/// Sets the moments' random numbers apart from those of the thread's actions.
const SALT: u64 = 0xA221_7A15;

/// Times without arrivals. The mean rate stays the same: within a burst it is higher by what the pauses lack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// How long a burst is.
    pub on: Duration,
    /// How long the pause behind it is.
    pub off: Duration,
}

/// The arrivals of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrivals {
    /// Their distances.
    pub spacing: Spacing,
    /// How many there are in a second, on average; more than 0.
    pub rate: f64,
    /// Bursts, if they come in any.
    pub bursts: Option<Bursts>,
}

impl Arrivals {
    /// How long a burst is with its pause.
    pub fn period(&self) -> Option<Duration> {
        self.bursts.map(|Bursts { on, off }| on + off)
    }

    /// The arrivals of one of so many threads, which share the rate: times since the start, without an end.
    pub fn of_thread(&self, seed: Seed, thread: usize, threads: usize) -> Moments {
        let busy = self.bursts.map_or(1.0, |Bursts { on, off }| {
            on.as_secs_f64() / (on + off).as_secs_f64()
        });
        let mean = threads as f64 / self.rate;
        Moments {
            spacing: self.spacing,
            bursts: self.bursts,
            mean,
            gap: busy * mean,
            // Even distances stay even over all threads.
            share: thread as f64 / threads as f64,
            count: 0,
            last: 0.0,
            random: Seed(seed.0 ^ SALT).thread(thread),
        }
    }
}

/// The moments at which a thread's requests arrive.
pub struct Moments {
    spacing: Spacing,
    bursts: Option<Bursts>,
    /// The mean distance, in seconds.
    mean: f64,
    /// The mean distance within a burst, in seconds.
    gap: f64,
    share: f64,
    count: u64,
    /// Seconds of bursts before the last arrival.
    last: f64,
    random: SmallRng,
}

impl Moments {
    /// The mean distance, in seconds, over bursts and pauses.
    pub fn mean(&self) -> f64 {
        self.mean
    }
}

impl Iterator for Moments {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.last = match self.spacing {
            // From the count, so that no error adds up.
            Spacing::Constant => (self.count as f64 + self.share) * self.gap,
            Spacing::Poisson => {
                let left: f64 = self.random.random_range(f64::MIN_POSITIVE..1.0);
                self.last - left.ln() * self.gap
            }
            Spacing::Pareto => {
                let left: f64 = self.random.random_range(f64::MIN_POSITIVE..1.0);
                // The mean is the scale / (1 - shape).
                let scale = self.gap * (1.0 - PARETO_SHAPE);
                self.last + scale / PARETO_SHAPE * (left.powf(-PARETO_SHAPE) - 1.0)
            }
        };
        self.count += 1;
        let pauses = self.bursts.map_or(0.0, |Bursts { on, off }| {
            (self.last / on.as_secs_f64()).floor() * off.as_secs_f64()
        });
        Some(Duration::from_secs_f64(self.last + pauses))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 1000.0;

    /// Arrivals of the first 100 seconds.
    fn arrivals(spacing: Spacing, bursts: Option<Bursts>) -> Vec<f64> {
        let arrivals = Arrivals {
            spacing,
            rate: RATE,
            bursts,
        };
        let mut all: Vec<f64> = (0..2)
            .flat_map(|thread| arrivals.of_thread(Seed(1), thread, 2).take(60_000))
            .map(|moment| moment.as_secs_f64())
            .filter(|&moment| moment < 100.0)
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn the_mean_rate_is_kept_by_all_threads_together() {
        let bursts = Some(Bursts {
            on: Duration::from_millis(100),
            off: Duration::from_millis(300),
        });
        for spacing in [Spacing::Constant, Spacing::Poisson, Spacing::Pareto] {
            for bursts in [None, bursts] {
                let count = arrivals(spacing, bursts).len();
                assert!((99_000..=101_000).contains(&count), "{spacing:?}: {count}");
            }
        }
    }

    #[test]
    fn constant_distances_are_alike_and_random_ones_exponential() {
        let gaps = |spacing| -> Vec<f64> {
            let all = arrivals(spacing, None);
            all.windows(2).map(|pair| pair[1] - pair[0]).collect()
        };
        let even = gaps(Spacing::Constant);
        assert!(even.iter().all(|gap| (gap * RATE - 1.0).abs() < 1e-6));
        let random = gaps(Spacing::Poisson);
        let short = random.iter().filter(|&&gap| gap * RATE < 1.0).count();
        // The share of distances below the mean: 1 - 1 / e.
        let share = short as f64 / random.len() as f64;
        assert!((share - 0.632).abs() < 0.01, "{share}");
        let pareto: Vec<f64> = {
            let arrivals = Arrivals {
                spacing: Spacing::Pareto,
                // ETC's own mean distance.
                rate: 1e6 / (16.0292 / (1.0 - PARETO_SHAPE)),
                bursts: None,
            };
            let all: Vec<_> = arrivals.of_thread(Seed(1), 0, 1).take(200_000).collect();
            all.windows(2)
                .map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e6)
                .collect()
        };
        for left in [0.5_f64, 0.1, 0.01] {
            // What the published numbers say of the distance that such a share exceeds.
            let gap = 16.0292 / 0.154971 * (left.powf(-0.154971) - 1.0);
            let longer = pareto.iter().filter(|&&one| one > gap).count() as f64;
            let share = longer / pareto.len() as f64;
            assert!((share / left - 1.0).abs() < 0.08, "{share}, not {left}");
        }
    }

    /// The kind of fault is a long wait that always comes before the same action.
    #[test]
    fn moments_and_actions_draw_different_numbers() {
        let arrivals = Arrivals {
            spacing: Spacing::Poisson,
            rate: RATE,
            bursts: None,
        };
        let mut actions = Seed(1).thread(0);
        let moments = arrivals.of_thread(Seed(1), 0, 1);
        let mut last = Duration::ZERO;
        for moment in moments.take(20) {
            let left: f64 = actions.random_range(f64::MIN_POSITIVE..1.0);
            let gap = (moment - last).as_secs_f64() * RATE;
            assert!((gap + left.ln()).abs() > 1e-6);
            last = moment;
        }
    }

    #[test]
    fn nothing_arrives_in_a_pause() {
        let bursts = Bursts {
            on: Duration::from_millis(250),
            off: Duration::from_millis(750),
        };
        let all = arrivals(Spacing::Poisson, Some(bursts));
        assert!(all.iter().all(|moment| moment.fract() < 0.2501));
        // Four times the rate within.
        let first = all.iter().filter(|&&moment| moment < 1.0).count();
        assert!((850..1150).contains(&first), "{first}");
    }
}
