//! Replays a trace on a simulated policy.

use crate::policy::{Future, Movement, PolicyName, Room};
use crate::size::By;
use crate::trace::Trace;

/// Requests that hit, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// All requests.
    pub requests: u64,
    /// Requests that found their item.
    pub hits: u64,
    /// Bytes of values requested.
    pub bytes: u64,
    /// Bytes of values found.
    pub hit_bytes: u64,
}

impl Hits {
    /// Counts a request.
    #[inline(always)]
    pub fn count(&mut self, size: u32, hit: bool) {
        let size = u64::from(size);
        self.requests += 1;
        self.bytes += size;
        if hit {
            self.hits += 1;
            self.hit_bytes += size;
        }
    }

    /// Hits / requests.
    pub fn ratio(&self) -> f64 {
        share(self.hits, self.requests)
    }

    /// Bytes found / bytes requested.
    pub fn byte_ratio(&self) -> f64 {
        share(self.hit_bytes, self.bytes)
    }

    /// Misses / requests.
    pub fn miss_ratio(&self) -> f64 {
        1.0 - self.ratio()
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

/// How an item's charge against the capacity is computed.
#[derive(Clone, Copy, Debug)]
pub struct Charging {
    /// What is counted.
    pub by: By,
    /// Bytes for each item beside its value.
    pub overhead: u32,
}

impl Charging {
    /// The charge of an item with a value of this size: at least 1.
    #[inline(always)]
    fn charge(self, size: u32) -> u32 {
        match self.by {
            By::Items => 1,
            By::Bytes => size.saturating_add(self.overhead).max(1),
        }
    }

    /// About how many items of the trace a capacity holds: of their mean charge.
    fn items(self, trace: &Trace, capacity: u64) -> u64 {
        let keys = trace.keys.len() as u64;
        let charge = match self.by {
            By::Items => 1,
            By::Bytes => trace.distinct_bytes() / keys + u64::from(self.overhead),
        };
        (capacity / charge.max(1)).clamp(1, keys)
    }
}

/// Plays a trace on an empty cache of a policy. `future` is the trace's, if the policy must know it. Also returns what
/// a store moved.
pub fn simulate(
    trace: &Trace,
    policy: &PolicyName,
    capacity: u64,
    charging: Charging,
    future: Option<&Future>,
) -> (Hits, Option<Movement>) {
    let mut policy = policy.build(&Room {
        capacity,
        keys: trace.keys.len(),
        items: charging.items(trace, capacity),
        future,
    });
    let mut hits = Hits::default();
    for request in &trace.requests {
        let charge = charging.charge(request.size);
        if request.writes {
            policy.write(request.key, charge);
        } else {
            let hit = policy.request(request.key, charge);
            hits.count(request.size, hit);
        }
    }
    (hits, policy.movement())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::{options, read};

    #[test]
    fn hits_are_counted_by_requests_and_bytes() {
        let trace = read("t", b"a 10\nb 30\na 10\nc 50\nb 30\n", &options()).unwrap();
        let lru = "lru".parse().unwrap();
        let hits = |by, overhead, capacity| {
            let charging = Charging { by, overhead };
            simulate(&trace, &lru, capacity, charging, None).0
        };
        let found = hits(By::Items, 0, 2);
        assert_eq!((found.requests, found.hits), (5, 1));
        assert_eq!((found.bytes, found.hit_bytes), (130, 10));
        assert_eq!(found.ratio(), 0.2);
        assert_eq!(found.byte_ratio(), 10.0 / 130.0);
        assert_eq!(hits(By::Bytes, 0, 90).hits, 2);
        assert_eq!(hits(By::Bytes, 5, 90).hits, 1);
    }
}
