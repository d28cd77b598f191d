//! W-TinyLFU (Einziger, Friedman, Manes, ToS'17), with a fixed window or one that climbs (Einziger, Eytan, Friedman,
//! Manes, Middleware'18).

use super::queue::{NOWHERE, Nodes, Queue};
use super::sketch::Sketch;
use super::{Policy, Room};

/// The default share of the window.
pub const WINDOW: f64 = 0.01;
/// The share of the main part that is protected.
const PROTECTED: f64 = 0.8;
/// The share of the capacity that the window's first step has.
const STEP: f64 = 0.0625;
/// Each step is this part of the one before.
const STEP_DECAY: f64 = 0.98;
/// A hit ratio that changes by this begins the climb anew.
const RESTART: f64 = 0.05;

/// A window with LRU for new items; a main part with segmented LRU (probation and protected); and a sketch of how often
/// keys were requested. An item that leaves the window enters the main part only if it was requested more often than
/// the item that it would evict: with sizes, more often than all such items together.
pub struct WTinyLfu {
    capacity: u64,
    window_max: u64,
    nodes: Nodes,
    window: Queue,
    probation: Queue,
    protected: Queue,
    sketch: Sketch,
    /// Keys that have left the window for the main part and must prove themselves, the oldest last.
    candidates: Vec<u32>,
    climb: Option<Climb>,
}

/// Changes the window's share in the direction in which hits increase.
struct Climb {
    requests: u64,
    hits: u64,
    sample: u64,
    last_ratio: f64,
    /// What the next step adds to the window, or takes from it.
    step: f64,
}

impl WTinyLfu {
    /// An empty cache with a window of this share, which climbs or not.
    pub fn new(room: &Room<'_>, window: f64, climbs: bool) -> Self {
        let sketch = Sketch::new(room.items);
        let climb = Climb {
            requests: 0,
            hits: 0,
            sample: sketch.sample(),
            last_ratio: 0.0,
            step: STEP * room.capacity as f64,
        };
        Self {
            capacity: room.capacity,
            window_max: room.share(window),
            nodes: Nodes::new(room.keys),
            window: Queue::new(1),
            probation: Queue::new(2),
            protected: Queue::new(3),
            sketch,
            candidates: Vec::new(),
            climb: climbs.then_some(climb),
        }
    }

    fn hit(&mut self, key: u32) {
        if self.window.has(&self.nodes, key) {
            self.window.renew(&mut self.nodes, key);
        } else if self.protected.has(&self.nodes, key) {
            self.protected.renew(&mut self.nodes, key);
        } else {
            let charge = self.probation.remove(&mut self.nodes, key);
            self.protected.push(&mut self.nodes, key, charge);
            let main = self.capacity - self.window_max;
            let limit = (main as f64 * PROTECTED) as u64;
            while self.protected.charge() > limit {
                self.protected.pass_on(&mut self.nodes, &mut self.probation);
            }
        }
    }

    fn insert(&mut self, key: u32, charge: u32) {
        self.window.push(&mut self.nodes, key, charge);
        self.candidates.clear();
        while self.window.charge() > self.window_max
            && let Some(key) = self.window.oldest()
        {
            self.window.pass_on(&mut self.nodes, &mut self.probation);
            self.candidates.push(key);
        }
        // The first item that left the window is judged first.
        self.candidates.reverse();
        while self.used() > self.capacity {
            match self.candidates.pop() {
                Some(candidate) => self.judge(candidate),
                None => self.evict(),
            }
        }
    }

    /// Evicts the candidate, or the items whose room it needs to stay.
    fn judge(&mut self, candidate: u32) {
        let excess = self.used() - self.capacity;
        let (mut freed, mut counts) = (0, 0);
        let mut next = self.probation.oldest();
        let mut victims = 0;
        while let Some(victim) = next
            && freed < excess
            && victim != candidate
        {
            freed += u64::from(self.nodes[victim].charge);
            counts += u32::from(self.sketch.count(victim));
            victims += 1;
            next = self.probation.newer(&self.nodes, victim);
        }
        if freed >= excess && u32::from(self.sketch.count(candidate)) > counts {
            for _ in 0..victims {
                self.probation.pop(&mut self.nodes);
            }
        } else {
            self.probation.remove(&mut self.nodes, candidate);
        }
    }

    fn evict(&mut self) {
        for queue in [&mut self.probation, &mut self.protected, &mut self.window] {
            if queue.pop(&mut self.nodes).is_some() {
                return;
            }
        }
    }

    fn climb(&mut self, hit: bool) {
        let Some(climb) = &mut self.climb else { return };
        climb.requests += 1;
        climb.hits += u64::from(hit);
        if climb.requests < climb.sample {
            return;
        }
        let ratio = climb.hits as f64 / climb.requests as f64;
        let change = ratio - climb.last_ratio;
        let step = if change >= 0.0 {
            climb.step
        } else {
            -climb.step
        };
        climb.step = if change.abs() >= RESTART {
            (STEP * self.capacity as f64).copysign(step)
        } else {
            step * STEP_DECAY
        };
        (climb.last_ratio, climb.requests, climb.hits) = (ratio, 0, 0);
        // Items of the window beyond its new share leave it with the next insert.
        let window = self.window_max as f64 + step;
        let most = self.capacity.saturating_sub(1).max(1) as f64;
        self.window_max = window.clamp(1.0, most) as u64;
    }
}

impl Policy for WTinyLfu {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        self.sketch.add(key);
        let hit = self.holds(key);
        if hit {
            self.hit(key);
        } else if u64::from(charge) <= self.capacity {
            self.insert(key, charge);
        }
        self.climb(hit);
        hit
    }

    fn used(&self) -> u64 {
        self.window.charge() + self.probation.charge() + self.protected.charge()
    }

    fn holds(&self, key: u32) -> bool {
        self.nodes[key].queue != NOWHERE
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn worked_by_hand() {
        // Three items, one in the window. d, e, f come once, like a and b, which therefore stay; c left the window
        // when d came, and was not more frequent than a.
        assert_eq!(hits("w-tinylfu", 3, "abcdefab"), "......HH");
        // c was asked for twice: it takes a's place.
        assert_eq!(hits("w-tinylfu", 3, "abccdab"), "...H..H");
    }
}
