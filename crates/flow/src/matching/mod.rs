//! Compares a tag with all candidates of a key at once.
//!
//! Slots of a shared table are memory that other threads change, so their words must be loaded
//! atomically; the slots of all tables are compared by the same code.

use crate::entry::Slot;

/// Which comparison a table runs, chosen once when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// One slot after the other: every machine.
    Scalar,
}

impl Vector {
    /// The best that this machine has.
    pub fn detect() -> Self {
        Vector::Scalar
    }

    /// Those that this machine has, the plainest first.
    pub fn available() -> impl Iterator<Item = Vector> {
        [Vector::Scalar].into_iter()
    }

    /// True if this machine has it.
    pub fn is_available(self) -> bool {
        Self::available().any(|one| one == self)
    }

    /// Its name: `scalar`, `sse2`, `avx2`, `avx512`, `neon`.
    pub const fn name(self) -> &'static str {
        match self {
            Vector::Scalar => "scalar",
        }
    }
}

/// A way to compare: a type, so that the loop around it is compiled for it.
pub(crate) trait Matcher: Copy {
    /// Bit `i` is set if slot `i` has this tag. There are 4, 8 or 16 slots.
    fn matches<T: Slot>(slots: &[T], tag: u64) -> u32;
}

/// What to do once the comparison is chosen.
pub(crate) trait Job {
    /// What comes out of it.
    type Output;

    /// Does it. Must be inlined into the function that was compiled for the machine.
    fn run<M: Matcher>(self) -> Self::Output;
}

/// Does a job with the chosen comparison: the one place that asks which one it is.
#[inline(always)]
pub(crate) fn dispatch<J: Job>(vector: Vector, job: J) -> J::Output {
    match vector {
        Vector::Scalar => job.run::<Scalar>(),
    }
}

/// One slot after the other.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Matcher for Scalar {
    #[inline(always)]
    fn matches<T: Slot>(slots: &[T], tag: u64) -> u32 {
        let mut mask = 0;
        for (index, slot) in slots.iter().enumerate() {
            mask |= u32::from(slot.load().tag == tag) << index;
        }
        mask
    }
}

/// What every machine of this kind has: for where choosing would cost more than it gains.
pub(crate) type Baseline = Scalar;
