//! Cursors of the walks over all keys that clients make step by step (Redis' SCAN).

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::Cursor;

/// The most steps of SCANs whose cursors are kept. A step is dropped when this many later ones follow.
const SCANS: usize = 16 << 10;

/// All numbers are below this: clients that use floating point can repeat them exactly.
const NUMBERS_MAX: u64 = 1 << 53;

/// Where a SCAN goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// At this cursor.
    At(Cursor),
    /// At the end: for a number that no server returns. Redis accepts any number, and returns next to nothing for -1.
    End,
}

/// Where SCANs go on. A client gets a number, a new one at each step: an engine's cursor does not fit the 53 bits that
/// every client can repeat.
#[derive(Default)]
pub struct Scans(Mutex<Steps>);

#[derive(Default)]
struct Steps {
    /// The number of the oldest step that is kept. The others follow.
    first: u64,
    cursors: VecDeque<Cursor>,
}

impl Scans {
    /// Keeps a cursor, and returns its number.
    #[expect(clippy::disallowed_methods, reason = "no earlier server had it")]
    pub fn keep(&self, cursor: Cursor) -> u64 {
        let mut steps = self.0.lock();
        if steps.cursors.is_empty() {
            // The numbers of an earlier server must not be numbers of this one.
            let unix = SystemTime::now().duration_since(UNIX_EPOCH);
            steps.first = unix.map_or(1, |since| since.as_secs() << 20);
        } else if steps.cursors.len() == SCANS {
            steps.cursors.pop_front();
            steps.first += 1;
        }
        steps.cursors.push_back(cursor);
        steps.first + steps.cursors.len() as u64 - 1
    }

    /// The position of a number. `None` if it is too old, or another server's.
    pub fn find(&self, number: u64) -> Option<Position> {
        match number {
            0 => return Some(Position::At(Cursor::default())),
            NUMBERS_MAX.. => return Some(Position::End),
            _ => {}
        }
        let steps = self.0.lock();
        let at = number.checked_sub(steps.first)?;
        let cursor = steps.cursors.get(usize::try_from(at).ok()?)?;
        Some(Position::At(*cursor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_goes_on_where_it_was() {
        let scans = Scans::default();
        assert_eq!(scans.find(0), Some(Position::At(Cursor::default())));
        assert_eq!(scans.find(1), None);
        assert_eq!(scans.find(u64::MAX), Some(Position::End));
        let numbers: Vec<u64> = (1..=SCANS as u64 + 1)
            .map(|position| scans.keep(Cursor::at(position)))
            .collect();
        // The oldest is dropped.
        assert_eq!(scans.find(numbers[0]), None);
        assert_eq!(scans.find(numbers[1]), Some(Position::At(Cursor::at(2))));
        assert_eq!(
            scans.find(numbers[SCANS]),
            Some(Position::At(Cursor::at(SCANS as u64 + 1)))
        );
        assert_eq!(scans.find(numbers[SCANS] + 1), None);
        assert!(numbers.iter().all(|&number| number < NUMBERS_MAX));
    }
}
