//! The controller: it decides how many server threads own partitions (CPHash section 8.1).
//!
//! A server thread under load looks at the clock now and then. When an epoch is over, one of them calls the controller.
//! The controller climbs. It tries one thread more when the serving threads are busy, and keeps it if the throughput
//! rises. It tries one less when the rest could do the work, and keeps that unless the throughput falls. A change that
//! did not pay is not tried again for a while, twice as long each time. In an engine without work no thread calls the
//! controller: all threads sleep.

use std::time::Duration;

/// The time over which throughput is measured before a change.
pub(super) const EPOCH: Duration = Duration::from_millis(100);

/// One thread more is tried when those that serve spend more of their time serving than this.
const BUSY: f64 = 0.75;

/// One less is tried when the rest would have to spend less than this.
const IDLE: f64 = 0.6;

/// The share of throughput that one thread more must gain, and that one less may lose.
const GAIN: f64 = 0.03;

/// Epochs before a change that did not pay is tried again, at first and at most.
const PAUSE: u32 = 8;
const PAUSE_MAX: u32 = 512;

/// The measurements of an epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Messages a second.
    pub rate: f64,
    /// Share of the owning threads' time spent serving, 0 to 1.
    pub busy: f64,
}

/// Decides how many threads own partitions.
#[derive(Debug)]
pub(super) struct Controller {
    min: usize,
    max: usize,
    threads: usize,
    /// The number of threads before the change on trial, and their throughput.
    trial: Option<(usize, f64)>,
    pause: u32,
    next_pause: u32,
}

impl Controller {
    pub fn new(min: usize, max: usize) -> Self {
        Self {
            min,
            max,
            threads: min,
            trial: None,
            pause: 0,
            next_pause: PAUSE,
        }
    }

    /// The number of threads that are to own partitions after this epoch.
    pub fn decide(&mut self, sample: Sample) -> usize {
        if let Some((before, rate)) = self.trial.take() {
            let worth = match before < self.threads {
                true => sample.rate > rate * (1.0 + GAIN),
                false => sample.rate > rate * (1.0 - GAIN),
            };
            if worth {
                self.next_pause = PAUSE;
            } else {
                self.threads = before;
                self.pause = self.next_pause;
                self.next_pause = (2 * self.next_pause).min(PAUSE_MAX);
            }
            return self.threads;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return self.threads;
        }
        let work = sample.busy * self.threads as f64;
        let next = if sample.busy > BUSY && self.threads < self.max {
            self.threads + 1
        } else if self.threads > self.min && work < IDLE * (self.threads - 1) as f64 {
            self.threads - 1
        } else {
            return self.threads;
        };
        self.trial = Some((self.threads, sample.rate));
        self.threads = next;
        next
    }
}

/// The thread that is to own a partition when the first `threads` share them out.
pub(super) fn owner(partition: usize, partitions: usize, threads: usize) -> u32 {
    (partition * threads.min(partitions) / partitions) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a controller on a busy machine; `rate` is the throughput of so many threads.
    fn threads_chosen(min: usize, max: usize, rate: impl Fn(usize) -> f64) -> usize {
        let mut controller = Controller::new(min, max);
        let mut threads = min;
        let mut epochs = vec![0; max + 1];
        for _ in 0..1000 {
            threads = controller.decide(Sample {
                rate: rate(threads),
                busy: 1.0,
            });
            epochs[threads] += 1;
        }
        (1..=max)
            .max_by_key(|&threads| epochs[threads])
            .unwrap_or(0)
    }

    #[test]
    fn it_climbs_while_that_pays() {
        assert_eq!(threads_chosen(1, 8, |threads| threads.min(5) as f64), 5);
        assert_eq!(
            threads_chosen(1, 2, |threads| 2.0 - 0.3 * threads as f64),
            1
        );
        assert_eq!(threads_chosen(3, 3, |threads| threads as f64), 3);
    }

    #[test]
    fn threads_that_are_not_needed_go() {
        let mut controller = Controller::new(1, 4);
        controller.threads = 4;
        let idle = Sample {
            rate: 100.0,
            busy: 0.1,
        };
        let threads = (0..6).map(|_| controller.decide(idle)).last();
        assert_eq!(threads, Some(1));
    }

    #[test]
    fn a_loss_is_taken_back() {
        let mut controller = Controller::new(1, 4);
        controller.threads = 2;
        let sample = |rate| Sample { rate, busy: 0.25 };
        assert_eq!(controller.decide(sample(100.0)), 1);
        assert_eq!(controller.decide(sample(80.0)), 2);
        assert_eq!(controller.decide(sample(100.0)), 2, "it pauses");
    }

    #[test]
    fn partitions_are_shared_out_evenly() {
        let owners: Vec<_> = (0..8).map(|partition| owner(partition, 8, 3)).collect();
        assert_eq!(owners, [0, 0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(owner(1, 2, 8), 1);
    }
}
