//! Who is told of items that an engine removes: clients that watch, those that track keys, and those that have subscribed
//! to events about keys.

use std::sync::Arc;

use nuthatch_channels::tracking::Tracking;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{Evicted, Evictions};
use nuthatch_settings::key_events::Class;

use crate::key_events::{Event, KeyspaceEvents};
use crate::telemetry::watch::Hub;

/// All of them.
pub struct Witness {
    /// The clients that watch.
    pub watchers: Arc<Hub>,
    /// What clients track.
    pub tracking: Arc<Tracking>,
    /// What subscribers are told of keys.
    pub key_events: Arc<KeyspaceEvents>,
}

impl Evictions for Witness {
    fn are_wanted(&self) -> bool {
        self.watchers.are_wanted()
            || self.tracking.is_used()
            || self.key_events.wants(Class::Evicted)
    }

    fn evicted(&self, item: &Evicted<'_>) {
        if self.tracking.is_used() {
            self.tracking.changed(Namespace::split(item.key).1, None);
        }
        if self.key_events.wants(Class::Evicted) {
            self.key_events.later(Event::Evicted, item.key);
        }
        self.watchers.evicted(item);
    }

    fn are_expiries_wanted(&self) -> bool {
        self.key_events.wants(Class::Expired)
    }

    fn expired(&self, key: &[u8]) {
        self.key_events.later(Event::Expired, key);
    }
}
