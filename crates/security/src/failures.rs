//! A limit on the log lines of failed logins and handshakes: a client that tries many must not fill a disk with them.

use std::time::Duration;

use nuthatch_engine::Time;
use nuthatch_sync::mutex::Mutex;

/// Lines in a [`SPAN`].
const LINES: u32 = 10;

const SPAN: Duration = Duration::from_secs(10);

/// Recent failures of a kind.
#[derive(Default)]
pub struct Failures(Mutex<Span>);

#[derive(Default)]
struct Span {
    begun: Time,
    lines: u32,
    untold: u64,
}

impl Failures {
    /// Counts a failure. `Some` if it is to be logged, with the number of earlier failures that were not.
    pub fn tell(&self, now: Time) -> Option<u64> {
        let mut span = self.0.lock();
        if now.since(span.begun) >= SPAN {
            (span.begun, span.lines) = (now, 0);
        }
        if span.lines == LINES {
            span.untold += 1;
            return None;
        }
        span.lines += 1;
        Some(std::mem::take(&mut span.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_a_few_are_told_and_none_is_lost() {
        let failures = Failures::default();
        let told: Vec<_> = (0..100).filter_map(|_| failures.tell(Time(5))).collect();
        assert_eq!(told, [0; LINES as usize]);
        let later = Time(5).after(SPAN);
        assert_eq!(failures.tell(later), Some(100 - u64::from(LINES)));
        assert_eq!(failures.tell(later), Some(0));
    }
}
