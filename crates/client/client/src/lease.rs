//! Values that one client computes for all, in whatever process they are.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::options::deadline;
use crate::{Error, Item, Keep};

/// How a value is computed and kept.
#[derive(Clone, Copy, Debug)]
pub struct Compute {
    /// How the value is kept.
    pub keep: Keep,
    /// How long others wait for the one that computes, in whole seconds, rounded up; ten by default. Then another one computes,
    /// for which they wait as long.
    pub lease: Duration,
    /// When no more than this is left of the value's lifetime, in whole seconds, one client computes it anew, and the others get
    /// the old one meanwhile. None: it is computed when it has expired.
    pub early: Option<Duration>,
}

/// What [`crate::Client::lease`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leased {
    /// A value, and the flags with which it was stored. While another client computes it anew, the old one.
    Value(Vec<u8>, u32),
    /// The caller is to compute the value.
    Mine {
        /// The number under which `cas` stores it. If it is not computed, and nobody has an old one, `delete_cas` lets the next
        /// client compute. None: nobody has computed it within the time of a lease, and it is not to be stored.
        cas: Option<u64>,
        /// The old value and its flags, if there is one.
        old: Option<(Vec<u8>, u32)>,
    },
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComputeError<E> {
    /// The key is invalid.
    Key(Error),
    /// The computation failed.
    Computation(E),
}

impl Compute {
    /// The value is kept like this.
    pub fn new(keep: impl Into<Keep>) -> Self {
        Self {
            keep: keep.into(),
            lease: Duration::from_secs(10),
            early: None,
        }
    }

    /// It is computed anew when no more than this is left of its lifetime.
    pub fn early(self, early: Duration) -> Self {
        Self {
            early: Some(early),
            ..self
        }
    }

    /// Whether this item is a value that nobody is to compute anew. One without bytes may be none.
    pub(crate) fn is_fresh(&self, item: &Item) -> bool {
        let is_early = |early| item.left.is_some_and(|left| left <= early);
        !item.value.is_empty() && !self.early.is_some_and(is_early)
    }

    /// Sets [`Compute::lease`].
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }
}

impl<E: fmt::Display> fmt::Display for ComputeError<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(error) => error.fmt(out),
            Self::Computation(error) => error.fmt(out),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for ComputeError<E> {}

/// Calls a function when it is dropped, unless it was told to forget it.
pub(crate) struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    pub fn new(function: F) -> Self {
        Self(Some(function))
    }

    /// The function is not called.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(function) = self.0.take() {
            function();
        }
    }
}

/// Pauses between looks for another client's value: short ones first, of random length, for as long as two leases take. So if
/// one client dies with the first, all others but one wait for that one, instead of computing as well.
pub(crate) struct Pauses {
    until: std::time::Instant,
    next: Duration,
}

impl Pauses {
    const LEAST: Duration = Duration::from_millis(1);
    const MOST: Duration = Duration::from_millis(50);

    pub fn new(lease: Duration) -> Self {
        // Servers count whole seconds, and may be one late.
        let on_server = lease.saturating_add(Duration::from_secs(2));
        Self {
            until: deadline(on_server.saturating_mul(2)),
            next: Self::LEAST,
        }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if std::time::Instant::now() >= self.until {
            return None;
        }
        let most = self.next;
        self.next = (most * 2).min(Self::MOST);
        let part = RandomState::new().hash_one(most) as f64 / u64::MAX as f64;
        Some(most.mul_f64(0.5 + part / 2.0))
    }
}
