//! The statistics that a log adds to those of its engine.

use nuthatch_engine::stats::LogStats;

use super::{Log, Queue};
use crate::count::{ClassCount, ClassUse, Count, Figures, Sums};
use crate::memory::arena::{Address, WORD};
use crate::store::Store;

impl Figures for Log {
    fn held_bytes(store: &Store<Self>) -> usize {
        store.log().held_words() * WORD
    }

    /// None beside those that are cleaned, which the threads count.
    fn pages_moved(_: &Store<Self>) -> u64 {
        0
    }

    /// The items of a size have no pages of their own: the figure is the number of pages that they would fill.
    fn class_use(store: &Store<Self>, class: usize, chunks: usize) -> ClassUse {
        ClassUse {
            pages: chunks.div_ceil(store.chunks_per_page(class)),
            used: chunks,
            free: 0,
        }
    }

    fn oldest(_: &Store<Self>, _: usize) -> Option<Address> {
        None
    }

    fn log_stats(store: &Store<Self>, sums: &Sums<'_>) -> Option<LogStats> {
        let log = store.log();
        let [probation_pages, main_pages] = log.queue_lengths();
        Some(LogStats {
            page_bytes: log.page_bytes() as u64,
            probation_pages: probation_pages as u64,
            main_pages: main_pages as u64,
            probation_since: sums.since(log.first_stored(store, Queue::Probation)),
            main_since: sums.since(log.first_stored(store, Queue::Main)),
            moved_to_main: sums.of_classes(ClassCount::MovedToMain),
            moved_within_main: sums.of_classes(ClassCount::MovedWithinMain),
            ghost_bytes: log.history.ghosts.bytes() as u64,
            evicted_probation: sums.of(Count::EvictedProbation),
            evicted_main: sums.of(Count::EvictedMain),
            evicted_slots: sums.of(Count::EvictedSlots),
            ghost_hits: sums.of(Count::GhostHits),
            more_hits: sums.more_hits(),
            pages_cleaned: sums.of(Count::PagesCleaned),
            bytes_moved: sums.of(Count::BytesMoved),
        })
    }
}
