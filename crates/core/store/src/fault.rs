//! Protections that a model takes out one at a time, to show that it finds what goes wrong then (`lab/models`).
//!
//! Nothing is taken out of other builds: there the question is answered when they are compiled.

use nuthatch_base::sync::shim::Ordering;

/// A protection that is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What a cleaning decided about a value is carried out on the one that was written over it.
    JudgesTheOneBefore,
    /// No fence between the headers of a run's rest and of the record that was cut off it.
    CutsWithoutFence,
    /// A record is cut off a run while the one before is private.
    CutsBesideAnother,
    /// A run that is closed no longer counts as private, although its last record is.
    ClosesTheBusy,
    /// What was written to a run is not published when its record is settled.
    SettlesUnpublished,
}

#[cfg(loom)]
mod chosen {
    use std::cell::Cell;

    use super::Fault;

    // A model runs all its threads on one thread of the system, and has that to itself.
    thread_local! {
        static CHOSEN: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Takes a protection out of the model that runs on this thread, or none.
    pub fn choose(fault: Option<Fault>) {
        CHOSEN.set(fault);
    }

    pub(crate) fn is(fault: Fault) -> bool {
        CHOSEN.get() == Some(fault)
    }
}

#[cfg(loom)]
pub use chosen::choose;
#[cfg(loom)]
pub(crate) use chosen::is;

/// True if a model has taken this protection out.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn is(_: Fault) -> bool {
    false
}

/// This ordering, or none if a model has taken it out.
#[inline(always)]
pub(crate) fn or_relaxed(ordering: Ordering, fault: Fault) -> Ordering {
    match is(fault) {
        true => Ordering::Relaxed,
        false => ordering,
    }
}
