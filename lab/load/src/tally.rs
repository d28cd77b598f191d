//! What was answered, and how long it took.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::wire::Answer;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A get of one or several keys.
    Get,
    /// A set, or a get with a set behind it.
    Set,
    /// A set of what a get missed.
    Restore,
    /// A delete.
    Delete,
}

/// An answered request.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// What it was.
    pub kind: Kind,
    /// The moment at which it should have been sent.
    pub due: Instant,
    /// The moment at which its answer was seen.
    pub at: Instant,
    /// Keys that had a value.
    pub hits: u64,
    /// Keys that had none.
    pub misses: u64,
    /// The answer.
    pub answer: Answer,
    /// False: a part of an operation, which ends with a later request; or no operation, as the set of what a get missed.
    pub ends: bool,
}

/// The time that counts: requests that are due in it.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its begin.
    pub from: Instant,
    /// Its end, which does not belong to it.
    pub to: Instant,
}

impl Window {
    /// True if a request due at this moment counts.
    pub fn has(&self, due: Instant) -> bool {
        self.from <= due && due < self.to
    }
}

/// Counts and times of a round.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Times of gets, in nanoseconds.
    pub gets: Histogram<u64>,
    /// Times of all others.
    pub writes: Histogram<u64>,
    /// Times of sets of what gets missed, which nothing but the misses asked for: they are no operations.
    pub refills: Histogram<u64>,
    /// How late requests were sent.
    pub lag: Histogram<u64>,
    /// The same of those for which a connection was free when they were due: the load's own lateness.
    pub own_lag: Histogram<u64>,
    /// Keys that had a value.
    pub hits: u64,
    /// Keys that had none.
    pub misses: u64,
    /// Values stored.
    pub stored: u64,
    /// Of them, because a get had missed them.
    pub restored: u64,
    /// Values that the server did not take.
    pub refused: u64,
    /// Items deleted.
    pub deleted: u64,
    /// Requests that were due and that no connection was free for until the end. They are among the times as what they had
    /// waited by then, which is less than what they would have taken.
    pub unserved: u64,
    /// Operations that were sent and not answered when the round was cut off. They are among the times in the same way.
    pub unanswered: u64,
    /// Operations that ended within the window, whenever they were due.
    pub answered: u64,
    /// The last answer.
    pub last: Option<Instant>,
}

impl Default for Tally {
    fn default() -> Self {
        let new = || Histogram::new(3).expect("three digits are lawful");
        Self {
            gets: new(),
            writes: new(),
            refills: new(),
            lag: new(),
            own_lag: new(),
            hits: 0,
            misses: 0,
            stored: 0,
            restored: 0,
            refused: 0,
            deleted: 0,
            unserved: 0,
            unanswered: 0,
            answered: 0,
            last: None,
        }
    }
}

impl Tally {
    /// Counts an answer.
    pub fn count(&mut self, done: &Done) {
        self.hits += done.hits;
        self.misses += done.misses;
        match done.answer {
            Answer::Stored => {
                self.stored += 1;
                self.restored += u64::from(done.kind == Kind::Restore);
            }
            Answer::Refused => self.refused += 1,
            Answer::Deleted => self.deleted += 1,
            Answer::Values | Answer::NotFound => {}
        }
        if done.ends || done.kind == Kind::Restore {
            self.time(done.kind, 1, done.at - done.due);
        }
    }

    /// So many requests that were due so long ago and were never sent.
    pub fn unserved(&mut self, kind: Kind, count: u64, waited: Duration) {
        self.unserved += count;
        self.time(kind, count, waited);
    }

    /// A request that was due so long ago, was sent, and has no answer. A refill is no operation.
    pub fn unanswered(&mut self, kind: Kind, waited: Duration) {
        self.unanswered += u64::from(kind != Kind::Restore);
        self.time(kind, 1, waited);
    }

    /// A request was sent so late. `was_free`: a connection was, when the request was due.
    pub fn sent(&mut self, lag: Duration, was_free: bool) {
        record(&mut self.lag, 1, lag);
        if was_free {
            record(&mut self.own_lag, 1, lag);
        }
    }

    fn time(&mut self, kind: Kind, count: u64, time: Duration) {
        let times = match kind {
            Kind::Get => &mut self.gets,
            Kind::Set | Kind::Delete => &mut self.writes,
            Kind::Restore => &mut self.refills,
        };
        record(times, count, time);
    }

    /// Operations that were due in the window.
    pub fn due(&self) -> u64 {
        self.gets.len() + self.writes.len()
    }

    /// The times of all operations.
    pub fn all(&self) -> Histogram<u64> {
        let mut all = self.gets.clone();
        add(&mut all, &self.writes);
        all
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.gets, &other.gets);
        add(&mut self.writes, &other.writes);
        add(&mut self.refills, &other.refills);
        add(&mut self.lag, &other.lag);
        add(&mut self.own_lag, &other.own_lag);
        self.hits += other.hits;
        self.misses += other.misses;
        self.stored += other.stored;
        self.restored += other.restored;
        self.refused += other.refused;
        self.deleted += other.deleted;
        self.unserved += other.unserved;
        self.unanswered += other.unanswered;
        self.answered += other.answered;
        self.last = self.last.max(other.last);
    }
}

fn record(times: &mut Histogram<u64>, count: u64, time: Duration) {
    times
        .record_n(time.as_nanos() as u64, count)
        .expect("a histogram that resizes takes any value");
}

fn add(times: &mut Histogram<u64>, other: &Histogram<u64>) {
    times
        .add(other)
        .expect("a histogram that resizes takes any other");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_from_the_moment_it_was_due() {
        let due = Instant::now();
        let mut tally = Tally::default();
        let done = Done {
            kind: Kind::Get,
            due,
            at: due + Duration::from_millis(30),
            hits: 1,
            misses: 2,
            answer: Answer::Values,
            ends: true,
        };
        tally.count(&done);
        tally.count(&Done {
            kind: Kind::Restore,
            answer: Answer::Stored,
            ends: false,
            ..done
        });
        tally.unserved(Kind::Set, 1, Duration::from_secs(2));
        tally.unanswered(Kind::Restore, Duration::from_secs(1));
        let mut sum = Tally::default();
        sum.add(&tally);
        assert_eq!((sum.due(), sum.unserved, sum.restored), (2, 1, 1));
        // A refill has a time of its own, and is no operation that waits in vain.
        assert_eq!((sum.writes.len(), sum.refills.len()), (1, 2));
        assert_eq!(sum.unanswered, 0);
        let all = sum.all();
        assert_eq!(all.len(), 2);
        for (found, expected) in [(all.min(), 30e6), (all.max(), 2e9)] {
            // Three digits.
            assert!((found as f64 / expected - 1.0).abs() < 0.001, "{found}");
        }
    }
}
