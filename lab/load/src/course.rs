//! Which action is due when.

use std::iter::Peekable;
use std::ops::Range;
use std::time::{Duration, Instant};

use nuthatch_workload::Action;
use nuthatch_workload::arrival::Moments;
use nuthatch_workload::named::Actions;

use crate::tally::{Done, Kind, Tally, Window};

/// For so long requests are sent that were due before the end: a moment's delay is none of the server's.
const GRACE: Duration = Duration::from_millis(100);

/// So many requests that were never sent are counted one by one. If there are more, the rest are counted by their mean rate, in
/// so many parts of the time: each part is of one kind of operation, and due at its end.
const ONE_BY_ONE: usize = 1 << 20;
const PARTS: u32 = 1000;

/// What a free connection does.
pub enum Next {
    /// This, which was due at this moment.
    Do(Action, Instant),
    /// Nothing until then.
    Wait(Instant),
    /// Nothing any more.
    Over,
}

/// Says what the connections of a thread do, and hears what became of it.
pub trait Course {
    /// What a connection does now, which has been free since that moment.
    fn next(&mut self, now: Instant, free_since: Instant) -> Next;

    /// A request was answered.
    fn done(&mut self, done: &Done);
}

/// Stores items once each, uncounted.
impl Course for Range<u64> {
    fn next(&mut self, now: Instant, _free_since: Instant) -> Next {
        match Iterator::next(self) {
            Some(number) => Next::Do(Action::Set(number), now),
            None => Next::Over,
        }
    }

    fn done(&mut self, _done: &Done) {}
}

/// A thread's part of a round.
pub struct Measured {
    actions: Actions,
    /// None: a closed load, in which a request is due as soon as a connection is free.
    moments: Option<Peekable<Moments>>,
    /// Their mean distance in seconds.
    mean: f64,
    started: Instant,
    window: Window,
    /// What was counted.
    pub tally: Tally,
}

impl Measured {
    /// From `started` on, counting within the window.
    pub fn new(
        actions: Actions,
        moments: Option<Moments>,
        started: Instant,
        window: Window,
    ) -> Self {
        Self {
            actions,
            mean: moments.as_ref().map_or(0.0, Moments::mean),
            moments: moments.map(Iterator::peekable),
            started,
            window,
            tally: Tally::default(),
        }
    }

    /// The number behind all items that are there by now.
    pub fn items(&self) -> u64 {
        self.actions.items()
    }

    /// A request that was due at this moment has no answer now, when the round is cut off. It counts if it was owed within the
    /// window, even from before: else a connection that stands still since then would be among no times.
    pub fn unanswered(&mut self, kind: Kind, due: Instant, now: Instant) {
        if due < self.window.to && now >= self.window.from {
            self.tally
                .unanswered(kind, now.saturating_duration_since(due));
        }
    }

    /// The round has ended now: what was due and never sent has waited in vain.
    pub fn end(&mut self, now: Instant) {
        let Some(moments) = &mut self.moments else {
            return;
        };
        let end = now.min(self.window.to);
        let due = moments.map(|moment| self.started + moment);
        let due = due.take_while(|due| *due < end);
        let mut walked = (0, self.started);
        for due in due.take(ONE_BY_ONE) {
            walked = (walked.0 + 1, due);
            if self.window.has(due) {
                let kind = self.actions.next().map_or(Kind::Get, kind_of);
                self.tally.unserved(kind, 1, now - due);
            }
        }
        if walked.0 == ONE_BY_ONE {
            self.end_in_bulk(walked.1.max(self.window.from), end, now);
        }
    }

    /// Counts what was due between two moments and never sent.
    fn end_in_bulk(&mut self, from: Instant, end: Instant, now: Instant) {
        let part = end.saturating_duration_since(from) / PARTS;
        let until = |parts: u32| (part.as_secs_f64() * f64::from(parts) / self.mean) as u64;
        for number in 1..=PARTS {
            let kind = self.actions.next().map_or(Kind::Get, kind_of);
            let count = until(number) - until(number - 1);
            let waited = now.saturating_duration_since(from + part * number);
            if count > 0 {
                self.tally.unserved(kind, count, waited);
            }
        }
    }
}

/// The kind of operation that an action is.
fn kind_of(action: Action) -> Kind {
    match action {
        Action::Get(_) | Action::GetMany(..) => Kind::Get,
        Action::Set(_) | Action::GetThenSet(_) => Kind::Set,
        Action::Delete(_) => Kind::Delete,
    }
}

impl Course for Measured {
    fn next(&mut self, now: Instant, free_since: Instant) -> Next {
        let due = match &mut self.moments {
            None if now >= self.window.to => return Next::Over,
            None => Instant::now(),
            Some(_) if now >= self.window.to + GRACE => return Next::Over,
            Some(moments) => match moments.peek().map(|&moment| self.started + moment) {
                Some(due) if due >= self.window.to => return Next::Over,
                Some(due) if due > now => return Next::Wait(due),
                Some(due) => {
                    moments.next();
                    due
                }
                None => return Next::Over,
            },
        };
        if self.window.has(due) {
            let lag = now.saturating_duration_since(due);
            self.tally.sent(lag, free_since <= due);
        }
        match self.actions.next() {
            Some(action) => Next::Do(action, due),
            None => Next::Over,
        }
    }

    fn done(&mut self, done: &Done) {
        self.tally.answered += u64::from(done.ends && self.window.has(done.at));
        self.tally.last = self.tally.last.max(Some(done.at));
        if self.window.has(done.due) {
            self.tally.count(done);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nuthatch_workload::arrival::{Arrivals, Spacing};
    use nuthatch_workload::ycsb::Run;
    use nuthatch_workload::{Seed, Workload};

    use super::*;

    fn measured(rate: f64) -> Measured {
        let arrivals = Arrivals {
            spacing: Spacing::Constant,
            rate,
            bursts: None,
        };
        let run = Run {
            records: 10,
            requests: 0,
            threads: 1,
        };
        let workload: Workload = "ycsb-a".parse().unwrap();
        let started = Instant::now();
        let window = Window {
            from: started + Duration::from_secs(1),
            to: started + Duration::from_secs(2),
        };
        let moments = arrivals.of_thread(Seed(1), 0, 1);
        Measured::new(
            workload.actions(run, Seed(1), 0),
            Some(moments),
            started,
            window,
        )
    }

    #[test]
    fn what_is_due_is_due_however_late_it_is() {
        let mut course = measured(10.0);
        let started = course.started;
        let at = |tenths: u64| started + Duration::from_millis(100 * tenths);
        for tenths in 0..13 {
            // Asked late, all of them.
            let Next::Do(_, due) = course.next(at(13), at(11)) else {
                panic!("nothing is due");
            };
            assert!((due - at(tenths)) < Duration::from_micros(1));
        }
        assert!(
            matches!(course.next(at(12), at(0)), Next::Wait(until) if until - at(13) < Duration::from_micros(1))
        );
        assert_eq!(course.tally.lag.len(), 3);
        // The first of them was due before the connection was free, or at that very moment.
        assert!((1..=2).contains(&course.tally.own_lag.len()));
        // A moment after the end the next one is sent, and the other six of the second are not.
        assert!(matches!(course.next(at(20), at(0)), Next::Do(..)));
        assert!(matches!(course.next(at(21), at(0)), Next::Over));
        course.end(at(21));
        assert_eq!(course.tally.unserved, 6);
        let most = course.tally.all().max();
        assert!((690_000_000..=701_000_000).contains(&most), "{most}");
    }

    #[test]
    fn what_a_cut_off_round_still_owes_has_waited_in_vain() {
        let mut course = measured(1000.0);
        let started = course.started;
        let at = |millis| started + Duration::from_millis(millis);
        course.unanswered(Kind::Delete, at(900), at(990));
        course.unanswered(Kind::Delete, at(2000), at(2100));
        course.unanswered(Kind::Set, at(1100), at(1500));
        // Owed from before the window until within it.
        course.unanswered(Kind::Get, at(900), at(1500));
        let tally = &course.tally;
        let counts = (tally.unanswered, tally.gets.len(), tally.writes.len());
        assert_eq!(counts, (2, 1, 1));
        let waited = tally.writes.max();
        assert!((399_000_000..=401_000_000).contains(&waited), "{waited}");
    }

    #[test]
    fn very_many_that_were_never_sent_are_counted_in_bulk() {
        let mut course = measured(1e7);
        course.end(course.started + Duration::from_secs(2));
        let tally = &course.tally;
        let unserved = tally.unserved;
        assert!((9_999_000..=10_001_000).contains(&unserved), "{unserved}");
        assert_eq!(tally.due(), unserved);
        let middle = tally.all().value_at_quantile(0.5);
        assert!((498_000_000..=502_000_000).contains(&middle), "{middle}");
    }

    #[test]
    fn a_round_that_is_cut_off_does_not_count_what_was_not_due_yet() {
        let mut course = measured(1000.0);
        let until = course.started + Duration::from_millis(1500);
        course.end(until);
        assert!((499..=501).contains(&course.tally.unserved));
    }
}
