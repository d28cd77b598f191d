//! Histories of values that are each written once, judged in little more than one pass.
//!
//! A value that carries its stamp shows which write a read saw. So no search for an order is needed (Gibbons and
//! Korach, "Testing shared memories", 1997): in any order a write and its reads stand together, with no other write of
//! the key between them. If one of them ended before an operation of another value began, all operations of the first
//! value come before all of the other. Two values of a key that each come before the other convict: one was read after
//! it had been overwritten. A removal is a write without reads. A miss proves nothing, since items may expire or be
//! evicted; a value that comes back does.
//!
//! Time is the count of a clock at the batch's begin and end, and inside a batch the order of its
//! requests.

use std::collections::{HashMap, HashSet};

/// A key by its number.
pub type Key = u64;

/// A number that distinguishes a write from all others.
pub type Stamp = u64;

/// When a batch was carried out, and by which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The thread.
    pub thread: usize,
    /// The clock's count before.
    pub began: usize,
    /// And after.
    pub ended: usize,
}

/// What one request of a batch did to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It stored the value with this stamp, or removed the item.
    Wrote(Stamp),
    /// It saw the value with this stamp.
    Read(Stamp),
}

/// What one thread, or several, saw.
#[derive(Debug, Default)]
pub struct Log {
    zones: HashMap<(Key, Stamp), Zone>,
    /// Pairs of values in their order within a batch.
    in_batches: HashSet<(Key, Stamp, Stamp)>,
}

/// A write and its reads.
#[derive(Clone, Copy, Debug)]
struct Zone {
    written: Option<Span>,
    ended_first: Span,
    began_last: Span,
}

impl Log {
    /// Adds a batch: each key's deeds in the order of their requests.
    pub fn batch(&mut self, span: Span, deeds: &[(Key, Action)]) {
        for (index, &(key, deed)) in deeds.iter().enumerate() {
            let (stamp, written) = match deed {
                Action::Wrote(stamp) => (stamp, Some(span)),
                Action::Read(stamp) => (stamp, None),
            };
            let zone = Zone {
                written,
                ended_first: span,
                began_last: span,
            };
            self.add((key, stamp), zone);
            let before = deeds[..index].iter().filter(|(other, _)| *other == key);
            for earlier in before.map(|(_, deed)| deed.stamp()) {
                // A value that is read before the batch writes it comes before itself.
                if earlier != stamp || written.is_some() {
                    self.in_batches.insert((key, earlier, stamp));
                }
            }
        }
    }

    /// Adds what another thread saw.
    pub fn merge(&mut self, other: Log) {
        for (value, zone) in other.zones {
            self.add(value, zone);
        }
        self.in_batches.extend(other.in_batches);
    }

    /// An error names two values, or one, that no order explains.
    pub fn judge(&self) -> Result<(), String> {
        let mut keys: HashMap<Key, Vec<(Stamp, &Zone)>> = HashMap::new();
        for (&(key, stamp), zone) in &self.zones {
            zone.check(key, stamp)?;
            keys.entry(key).or_default().push((stamp, zone));
        }
        for (key, zones) in keys {
            if let Some([one, other]) = entangled(zones) {
                return Err(tell(key, &[one, other]));
            }
        }
        self.judge_batches()
    }

    fn judge_batches(&self) -> Result<(), String> {
        for &(key, earlier, later) in &self.in_batches {
            if earlier == later {
                let told = tell(key, &[(later, &self.zones[&(key, later)])]);
                return Err(format!("{told}and one batch read it before it wrote it"));
            }
            let zones = [earlier, later].map(|stamp| &self.zones[&(key, stamp)]);
            if zones[1].precedes(zones[0]) || self.in_batches.contains(&(key, later, earlier)) {
                let told = tell(key, &[(earlier, zones[0]), (later, zones[1])]);
                return Err(format!(
                    "{told}and one batch met the first before the second"
                ));
            }
        }
        Ok(())
    }

    fn add(&mut self, value: (Key, Stamp), zone: Zone) {
        let known = self.zones.entry(value).or_insert(zone);
        known.written = known.written.or(zone.written);
        if zone.ended_first.ended < known.ended_first.ended {
            known.ended_first = zone.ended_first;
        }
        if zone.began_last.began > known.began_last.began {
            known.began_last = zone.began_last;
        }
    }
}

impl Action {
    fn stamp(self) -> Stamp {
        match self {
            Action::Wrote(stamp) | Action::Read(stamp) => stamp,
        }
    }
}

impl Zone {
    /// True if an operation of this value ended before one of the other began.
    fn precedes(&self, other: &Zone) -> bool {
        self.ended_first.ended < other.began_last.began
    }

    /// True if the key must have had this value for some time, and no other: from the first end to the
    /// last begin.
    fn is_forward(&self) -> bool {
        self.precedes(self)
    }

    /// A value is not read before it is written.
    fn check(&self, key: Key, stamp: Stamp) -> Result<(), String> {
        match self.written {
            Some(written) if written.began < self.ended_first.ended => Ok(()),
            _ => Err(tell(key, &[(stamp, self)])),
        }
    }
}

/// Two values of a key that each come before the other, if there are. Two that the key had for some
/// time must not overlap; one that it may have had for a moment only needs such a moment outside of
/// those times.
fn entangled(zones: Vec<(Stamp, &Zone)>) -> Option<[(Stamp, &Zone); 2]> {
    let (mut forward, moments): (Vec<_>, Vec<_>) =
        zones.into_iter().partition(|(_, zone)| zone.is_forward());
    forward.sort_by_key(|(_, zone)| zone.ended_first.ended);
    let both = |one: &Zone, other: &Zone| one.precedes(other) && other.precedes(one);
    for pair in forward.windows(2) {
        if both(pair[0].1, pair[1].1) {
            return Some([pair[0], pair[1]]);
        }
    }
    for moment in moments {
        let begun = |(_, zone): &(Stamp, &Zone)| zone.precedes(moment.1);
        let last = forward.partition_point(begun).checked_sub(1);
        if let Some(around) = last.map(|last| forward[last])
            && both(around.1, moment.1)
        {
            return Some([around, moment]);
        }
    }
    None
}

/// Describes what was seen of these values of a key.
fn tell(key: Key, zones: &[(Stamp, &Zone)]) -> String {
    let mut told = format!("no order explains what was seen of key {key}:\n");
    for (stamp, zone) in zones {
        let span = |Span {
                        thread,
                        began,
                        ended,
                    }| format!("{began}..{ended} by thread {thread}");
        let written = zone.written.map_or("by nobody".to_string(), span);
        told += &format!("  {stamp:#x} was written {written}\n");
        let mut seen = vec![zone.ended_first];
        if zone.began_last != zone.ended_first {
            seen.push(zone.began_last);
        }
        for read in seen.into_iter().filter(|seen| Some(*seen) != zone.written) {
            told += &format!("  {stamp:#x} was read {}\n", span(read));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = 7;

    /// Each batch has one thread, a begin, an end, and deeds on one key.
    fn verdict(batches: &[(usize, usize, &[Action])]) -> Result<(), String> {
        let mut log = Log::default();
        for &(began, ended, deeds) in batches {
            let span = Span {
                thread: 0,
                began,
                ended,
            };
            let deeds: Vec<_> = deeds.iter().map(|&deed| (KEY, deed)).collect();
            let mut of_a_thread = Log::default();
            of_a_thread.batch(span, &deeds);
            log.merge(of_a_thread);
        }
        log.judge()
    }

    #[test]
    fn what_an_order_explains_is_not_convicted() {
        use Action::{Read, Wrote};
        let right: [&[(usize, usize, &[Action])]; 5] = [
            // One after the other.
            &[(0, 1, &[Wrote(1)]), (2, 3, &[Read(1)]), (4, 5, &[Wrote(2)])],
            // The read began before the second write ended.
            &[(0, 1, &[Wrote(1)]), (2, 5, &[Wrote(2)]), (4, 6, &[Read(1)])],
            // Writes side by side, in whichever order.
            &[
                (0, 9, &[Wrote(1)]),
                (1, 8, &[Wrote(2)]),
                (10, 11, &[Read(1)]),
            ],
            &[
                (0, 9, &[Wrote(1)]),
                (1, 8, &[Wrote(2)]),
                (10, 11, &[Read(2)]),
            ],
            // All in one batch.
            &[(0, 1, &[Wrote(1), Read(1), Wrote(2), Read(2)])],
        ];
        for batches in right {
            assert_eq!(verdict(batches), Ok(()), "{batches:?}");
        }
    }

    #[test]
    fn what_comes_back_is_convicted() {
        use Action::{Read, Wrote};
        let wrong: [&[(usize, usize, &[Action])]; 8] = [
            // Read after it was overwritten, or removed.
            &[(0, 1, &[Wrote(1)]), (2, 3, &[Wrote(2)]), (4, 5, &[Read(1)])],
            // A value that was never written; or only later.
            &[(0, 1, &[Read(1)])],
            &[(0, 1, &[Read(1)]), (2, 3, &[Wrote(1)])],
            &[(0, 1, &[Read(1), Wrote(1)])],
            // Two values that were read in turn.
            &[
                (0, 9, &[Wrote(1)]),
                (0, 9, &[Wrote(2)]),
                (10, 11, &[Read(1)]),
                (12, 13, &[Read(2)]),
                (14, 15, &[Read(1)]),
            ],
            &[
                (0, 99, &[Wrote(1)]),
                (0, 99, &[Wrote(2)]),
                (10, 20, &[Read(1)]),
                (12, 22, &[Read(2)]),
                (30, 31, &[Read(2)]),
                (32, 33, &[Read(1)]),
            ],
            // In a batch: its own write is not seen; the order of two reads differs.
            &[(0, 1, &[Wrote(1)]), (2, 9, &[Wrote(2), Read(1)])],
            &[
                (0, 9, &[Wrote(1)]),
                (0, 9, &[Wrote(2)]),
                (1, 8, &[Read(1), Read(2)]),
                (1, 8, &[Read(2), Read(1)]),
            ],
        ];
        for batches in wrong {
            assert!(verdict(batches).is_err(), "{batches:?}");
        }
    }
}
