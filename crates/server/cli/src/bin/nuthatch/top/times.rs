//! How long requests took between two looks: the buckets of `stats latency_buckets`, and their percentiles.

use std::collections::BTreeMap;

/// The percentiles that are shown, as parts of all requests.
pub(super) const PARTS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Most buckets that are read of each kind.
const BUCKETS_MAX: usize = 4096;

/// Requests by their nanoseconds, of gets, sets and others.
#[derive(Clone, Debug, Default)]
pub(super) struct Times([BTreeMap<u64, u64>; KINDS.len()]);

/// The kinds of requests.
pub(super) const KINDS: [&str; 3] = ["get", "set", "other"];

impl Times {
    /// `STAT get:12.5 7`: seven gets took about 12.5 microseconds.
    pub(super) fn parse(lines: &[String]) -> Self {
        let mut times = Self::default();
        for line in lines {
            let Some((kind, nanoseconds, count)) = bucket(line) else {
                continue;
            };
            let buckets = &mut times.0[kind];
            if buckets.len() < BUCKETS_MAX {
                buckets.insert(nanoseconds, count);
            }
        }
        times
    }

    /// The requests since `before`. If a count is lower than before, the server has restarted, and all its requests
    /// came since.
    pub(super) fn since(&self, before: &Self) -> Self {
        let mut times = self.clone();
        for (now, before) in times.0.iter_mut().zip(&before.0) {
            let fell = |(key, count): (&u64, &u64)| now.get(key).is_none_or(|now| now < count);
            if before.iter().any(fell) {
                continue;
            }
            for (nanoseconds, count) in now.iter_mut() {
                *count -= before.get(nanoseconds).unwrap_or(&0);
            }
        }
        times
    }

    /// The percentiles of a kind: the microseconds that these parts of its requests took at most; `None` if there were
    /// no requests.
    pub(super) fn percentiles(&self, kind: usize) -> Option<[f64; PARTS.len()]> {
        let buckets = &self.0[kind];
        let all: u64 = buckets.values().sum();
        (all > 0).then(|| {
            PARTS.map(|part| {
                let rank = (all as f64 * part).ceil() as u64;
                let mut sum = 0;
                let reached = buckets.iter().find(|(_, count)| {
                    sum += **count;
                    sum >= rank
                });
                reached.map_or(0.0, |(nanoseconds, _)| *nanoseconds as f64 / 1e3)
            })
        })
    }
}

/// The kind, nanoseconds and count of a line.
fn bucket(line: &str) -> Option<(usize, u64, u64)> {
    let (name, count) = line.strip_prefix("STAT ")?.split_once(' ')?;
    let (kind, microseconds) = name.split_once(':')?;
    let kind = KINDS.iter().position(|known| *known == kind)?;
    let microseconds: f64 = microseconds.parse().ok()?;
    Some((
        kind,
        (microseconds * 1e3).round() as u64,
        count.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_came_between_two_looks() {
        let times = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|line| format!("STAT {line}")).collect();
            Times::parse(&lines)
        };
        let before = times(&["get:12.500 1000", "set:3.000 5"]);
        let now = times(&["get:12.500 1001", "get:900.250 9", "set:3.000 5", "what 1"]);
        let between = now.since(&before);
        assert_eq!(between.percentiles(0), Some([900.25; 4]));
        assert_eq!(between.percentiles(1), None);
        assert_eq!(between.percentiles(2), None);
        assert_eq!(now.percentiles(0).unwrap()[0], 12.5);
        // The server was started again: less than before.
        let anew = times(&["get:40.000 3"]).since(&now);
        assert_eq!(anew.percentiles(0), Some([40.0; 4]));
    }
}
