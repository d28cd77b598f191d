//! Direct or active: whichever costs less, as measured (Cell, ATC'16).
//!
//! A get without a pointer takes two Gets, one behind the other; a message takes one round trip and some of the server's
//! time, and may wait behind others'. Which is dearer depends on the transport and on the server's load, so both
//! are timed now and then, and the dearer one is tried again now and then.

use crate::config::Operations;

/// One in so many rounds is timed: a look at the clock takes as long as a Get from shared memory.
const TIMED: u32 = 16;

/// One in so many choices goes to the dearer one.
const TRIED: u32 = 64;

/// Nanoseconds of a kind of operation: a moving average.
#[derive(Clone, Copy, Debug, Default)]
struct Cost(f64);

impl Cost {
    fn note(&mut self, nanos: f64) {
        self.0 += match self.0 {
            0.0 => nanos,
            mean => (nanos - mean) / 8.0,
        };
    }
}

/// Chooses, for one server.
#[derive(Debug)]
pub struct Selector {
    operations: Operations,
    direct: Cost,
    active: Cost,
    choices: u32,
    rounds: u32,
}

impl Selector {
    /// With a policy.
    pub fn new(operations: Operations) -> Self {
        Self {
            operations,
            direct: Cost::default(),
            active: Cost::default(),
            choices: 0,
            rounds: 0,
        }
    }

    /// True if blocks that are known are read and written directly.
    #[inline(always)]
    pub fn goes_to_blocks(&self) -> bool {
        self.operations != Operations::Active
    }

    /// True if a get without a pointer reads the bucket itself.
    #[inline]
    pub fn reads_buckets(&mut self) -> bool {
        match self.operations {
            Operations::Direct => return true,
            Operations::Active => return false,
            Operations::Chosen => {}
        }
        self.choices = self.choices.wrapping_add(1);
        let direct = self.direct.0 <= self.active.0;
        match self.choices % TRIED {
            0 => !direct,
            _ => direct,
        }
    }

    /// True if this round is to be timed.
    #[inline]
    pub fn times(&mut self) -> bool {
        self.rounds = self.rounds.wrapping_add(1);
        self.operations == Operations::Chosen && self.rounds.is_multiple_of(TIMED)
    }

    /// So many gets without a pointer took so long.
    pub fn note_direct(&mut self, nanos: u64, gets: usize) {
        self.direct.note(nanos as f64 / gets as f64);
    }

    /// So many messages took so long.
    pub fn note_active(&mut self, nanos: u64, messages: usize) {
        self.active.note(nanos as f64 / messages as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheaper_is_chosen_and_the_other_tried() {
        let mut selector = Selector::new(Operations::Chosen);
        selector.note_direct(1000, 1);
        selector.note_active(3000, 10);
        let direct = (0..640).filter(|_| selector.reads_buckets()).count();
        assert_eq!(direct, 10);
        for _ in 0..20 {
            selector.note_active(20_000, 10);
        }
        let direct = (0..640).filter(|_| selector.reads_buckets()).count();
        assert_eq!(direct, 630);
        assert!((0..32).filter(|_| selector.times()).count() == 2);
    }

    #[test]
    fn a_policy_is_kept() {
        let mut direct = Selector::new(Operations::Direct);
        let mut active = Selector::new(Operations::Active);
        direct.note_direct(1 << 40, 1);
        assert!(direct.reads_buckets() && !active.reads_buckets());
        assert!(direct.goes_to_blocks() && !active.goes_to_blocks());
        assert!((0..100).all(|_| !direct.times()));
    }
}
