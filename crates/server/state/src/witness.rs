//! Who is told of items that an engine evicts: clients that watch, and those that track keys.

use std::sync::Arc;

use nuthatch_channels::tracking::Tracking;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{Evicted, Evictions};

use crate::telemetry::watch::Hub;

/// Both.
pub struct Witness {
    /// The clients that watch.
    pub watchers: Arc<Hub>,
    /// What clients track.
    pub tracking: Arc<Tracking>,
}

impl Evictions for Witness {
    fn are_wanted(&self) -> bool {
        self.watchers.are_wanted() || self.tracking.is_used()
    }

    fn evicted(&self, item: &Evicted<'_>) {
        if self.tracking.is_used() {
            self.tracking.changed(Namespace::split(item.key).1, None);
        }
        self.watchers.evicted(item);
    }
}
