//! The statistics that size classes add to those of their engine.

use nuthatch_base::sync::shim::Ordering;
use nuthatch_engine::stats::LogStats;

use super::Slab;
use crate::count::{ClassUse, Figures, Sums};
use crate::memory::arena::Address;
use crate::store::Store;

impl Figures for Slab {
    fn held_bytes(store: &Store<Self>) -> usize {
        let classes = 0..store.sizes.count();
        classes
            .map(|class| store.class(class).used * store.sizes.chunk(class))
            .sum()
    }

    fn pages_moved(store: &Store<Self>) -> u64 {
        store.slab().pages_moved.load(Ordering::Relaxed)
    }

    fn class_use(store: &Store<Self>, class: usize, _: usize) -> ClassUse {
        let class = store.class(class);
        ClassUse {
            pages: class.pages.len(),
            used: class.used,
            free: class.free_chunks(),
        }
    }

    fn oldest(store: &Store<Self>, class: usize) -> Option<Address> {
        store.slab().policy.oldest(store, class)
    }

    fn log_stats(_: &Store<Self>, _: &Sums<'_>) -> Option<LogStats> {
        None
    }
}
