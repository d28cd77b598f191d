//! The test suite: every check, on an engine in one configuration.
//!
//! [`suite!`](crate::suite!) makes a test of each check in here. So an engine's own file contains only how its
//! configurations are made, how much of each check they get, and the tests that are particular to it.

use std::sync::Arc;

use nuthatch_engine::{AnyEngine, Engine, Inspect};
use nuthatch_workload::Seed;
use rand::Rng;

use crate::conformance::{self, Client, Setup};
use crate::history::{self, Plan};
use crate::sequence::{self, Misses};
use crate::soak;
use crate::stress::{self, Load};

/// Makes a module of tests, one for each check: its name, a function from a [`Setup`] to a shared
/// engine, and an [`Extent`].
#[macro_export]
macro_rules! suite {
    ($name:ident, $make:expr, $extent:expr) => {
        mod $name {
            use super::*;

            $crate::suite!(@test conforms, $make, $extent);
            $crate::suite!(@test answers_sequences_as_the_model_does, $make, $extent);
            $crate::suite!(@test forgets_only_whole_items_under_pressure, $make, $extent);
            $crate::suite!(@test any_bytes_make_a_sequence, $make, $extent);
            $crate::suite!(@test stress_in_ample_memory, $make, $extent);
            $crate::suite!(@test stress_under_pressure_with_mixed_sizes, $make, $extent);
            $crate::suite!(@test residents_are_never_missed, $make, $extent);
            $crate::suite!(@test no_increment_is_lost, $make, $extent);
            $crate::suite!(@test no_append_to_a_long_value_is_lost, $make, $extent);
            $crate::suite!(@test histories_are_linearizable_under_growth, $make, $extent);
            $crate::suite!(@test histories_are_linearizable_under_flushes, $make, $extent);
            $crate::suite!(@test histories_are_linearizable_under_eviction, $make, $extent);
        }
    };
    (@test $check:ident, $make:expr, $extent:expr) => {
        #[test]
        fn $check() {
            let make = |setup| $crate::Engine::any($make(setup));
            $crate::suite::$check(&make, &$extent);
        }
    };
}

/// The usual amount of each check, which [`soak`] multiplies.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Cases of conformance: those whose names contain one of these.
    pub cases: &'static [&'static str],
    /// Random sequences in ample memory.
    pub sequences: usize,
    /// Random sequences on a full engine.
    pub sequences_full: usize,
    /// Sequences made of random bytes.
    pub sequences_of_bytes: usize,
    /// Threads of each stress.
    pub threads: usize,
    /// Batches a thread in ample memory.
    pub batches: usize,
    /// Batches a thread under pressure, of values of all sizes.
    pub batches_mixed: usize,
    /// Batches a thread that come and go around residents, two operations a request.
    pub batches_of_churn: usize,
    /// Batches a thread of increments.
    pub batches_of_increments: usize,
    /// Rounds of histories.
    pub histories: usize,
}

impl Extent {
    /// Some seconds a check.
    pub const SMOKE: Self = Self {
        cases: &[""],
        sequences: 150,
        sequences_full: 60,
        sequences_of_bytes: 60,
        threads: Load::SMOKE.threads,
        batches: Load::SMOKE.batches,
        batches_mixed: Load::MIXED.batches,
        batches_of_churn: Load::SMOKE.batches,
        batches_of_increments: 500,
        histories: Plan::GROWTH.rounds,
    };

    /// All cases of conformance but these: large values in use may be more than a partition's share, and which partition
    /// has room depends on the hash's seed; and where nothing is evicted, dead items make room only once they are swept.
    pub const CASES_OF_PARTITIONS: &'static [&'static str] = &[
        "read",
        "store",
        "remove",
        "delta",
        "expiry",
        "flush",
        "size",
        "batch",
        "reserve",
        "visit",
        "stats",
        "engine",
        "memory_full",
        "memory_sizes",
        "memory_recent_hits",
        "memory_limit",
    ];

    /// All cases of conformance, and one part in `of` of everything random: for one of several configurations that
    /// share it.
    pub const fn part(&self, of: usize) -> Self {
        Self {
            cases: self.cases,
            sequences: self.sequences.div_ceil(of),
            sequences_full: self.sequences_full.div_ceil(of),
            sequences_of_bytes: self.sequences_of_bytes.div_ceil(of),
            threads: self.threads,
            batches: self.batches.div_ceil(of),
            batches_mixed: self.batches_mixed.div_ceil(of),
            batches_of_churn: self.batches_of_churn.div_ceil(of),
            batches_of_increments: self.batches_of_increments.div_ceil(of),
            histories: self.histories.div_ceil(of),
        }
    }

    fn load(&self, batches: usize, load: Load) -> Load {
        Load {
            threads: self.threads,
            batches: soak(batches),
            ..load
        }
    }
}

/// What every engine must do, case by case: [`conformance`].
pub fn conforms(make: &dyn Fn(Setup) -> Arc<AnyEngine>, extent: &Extent) {
    conformance::run(extent.cases, make);
}

/// Random sequences, all of whose answers are the oracle's.
pub fn answers_sequences_as_the_model_does(
    make: &dyn Fn(Setup) -> Arc<AnyEngine>,
    extent: &Extent,
) {
    let cases = soak(extent.sequences);
    sequence::property(cases, Misses::Never, || make(Setup::AMPLE));
}

/// Random sequences on an engine that evicts: an item may be evicted at any time, but only whole.
pub fn forgets_only_whole_items_under_pressure(
    make: &dyn Fn(Setup) -> Arc<AnyEngine>,
    extent: &Extent,
) {
    let cases = soak(extent.sequences_full);
    sequence::property(cases, Misses::Lawful, || full(make(Setup::TIGHT)));
}

/// Fills an engine with other keys, until it has to evict.
fn full(engine: Arc<AnyEngine>) -> Arc<AnyEngine> {
    let mut client = Client::new(Arc::clone(&engine));
    let mut number = 0_u64;
    while engine.stats().evictions == 0 {
        assert!(
            number * 3000 < 2 * engine.stats().memory_limit,
            "no eviction"
        );
        for _ in 0..1000 {
            client.set(format!("ballast {number}").as_bytes(), &[b'b'; 3000]);
            number += 1;
        }
    }
    engine
}

/// Sequences as fuzz targets make them.
pub fn any_bytes_make_a_sequence(make: &dyn Fn(Setup) -> Arc<AnyEngine>, extent: &Extent) {
    let mut random = Seed(1).thread(0);
    for _ in 0..soak(extent.sequences_of_bytes) {
        let mut bytes = vec![0; random.random_range(0..4000)];
        random.fill(&mut bytes[..]);
        sequence::run_bytes(&make(Setup::AMPLE), &bytes, Misses::Never);
    }
}

/// [`stress::everything`] with room for all keys.
pub fn stress_in_ample_memory(make: &dyn Fn(Setup) -> Arc<AnyEngine>, extent: &Extent) {
    let load = extent.load(extent.batches, Load::SMOKE);
    let seen = stress::everything(&make(Setup::AMPLE), &load);
    assert!(seen.misses > 0 && seen.changes > 0, "{seen:?}");
    assert_it_keeps(seen.hits, seen.misses);
}

/// [`stress::everything`] with room for few.
pub fn stress_under_pressure_with_mixed_sizes(
    make: &dyn Fn(Setup) -> Arc<AnyEngine>,
    extent: &Extent,
) {
    let engine = make(Setup::TIGHT);
    let load = extent.load(extent.batches_mixed, Load::MIXED);
    let seen = stress::everything(&engine, &load);
    assert!(seen.changes > 0, "{seen:?}");
    assert_it_keeps(seen.hits, seen.misses);
    assert!(engine.stats().evictions > 0, "there was no pressure");
}

/// [`stress::residents`].
pub fn residents_are_never_missed(make: &dyn Fn(Setup) -> Arc<AnyEngine>, extent: &Extent) {
    let load = extent.load(extent.batches_of_churn, Load::SMOKE);
    let reads = stress::residents(&make(Setup::AMPLE), &load);
    assert!(reads > 0, "nobody read while others came and went");
}

/// [`stress::counter`].
pub fn no_increment_is_lost(make: &dyn Fn(Setup) -> Arc<AnyEngine>, extent: &Extent) {
    let load = extent.load(extent.batches_of_increments, Load::SMOKE);
    stress::counter(&make(Setup::AMPLE), &load);
}

/// [`stress::appends`].
pub fn no_append_to_a_long_value_is_lost(make: &dyn Fn(Setup) -> Arc<AnyEngine>, extent: &Extent) {
    let batches = extent.batches_of_increments.div_ceil(10);
    let load = extent.load(batches, Load::SMOKE);
    stress::appends(&make(Setup::AMPLE), &load);
}

/// [`history::linearizable`] with room for all keys, of which there are ever more.
pub fn histories_are_linearizable_under_growth(
    make: &dyn Fn(Setup) -> Arc<AnyEngine>,
    extent: &Extent,
) {
    let engine = make(Setup::AMPLE);
    let buckets = || engine.index_histogram(1).map(|index| index.buckets);
    let before = buckets();
    let plan = Plan {
        // A part of the rounds would store too little for the index to grow.
        rounds: soak(extent.histories).max(extent.histories),
        ..Plan::GROWTH
    };
    let seen = history::linearizable(&engine, &plan);
    assert!(seen.hits > 0 && seen.misses > 0, "{seen:?}");
    assert!(
        before.is_none() || before < buckets(),
        "the index did not grow"
    );
}

/// [`history::linearizable`] while all keys are flushed again and again, with room for all and with room for few.
pub fn histories_are_linearizable_under_flushes(
    make: &dyn Fn(Setup) -> Arc<AnyEngine>,
    extent: &Extent,
) {
    let plan = Plan {
        rounds: soak(extent.histories).div_ceil(2),
        ..Plan::FLUSHES
    };
    let seen = history::linearizable(&make(Setup::AMPLE), &plan);
    assert!(seen.hits > 0 && seen.flushes > 0, "{seen:?}");
    let tight = Plan {
        rounds: plan.rounds,
        flushes: 40,
        ..Plan::EVICTION
    };
    // Flushed items make room, so in some runs nothing has to be forgotten.
    let seen = (0..10)
        .map(|_| history::linearizable(&make(Setup::SMALL), &tight))
        .find(|seen| seen.forgotten > 0)
        .expect("there was no pressure");
    assert!(seen.flushes > 0, "{seen:?}");
}

/// [`history::linearizable`] with room for few.
pub fn histories_are_linearizable_under_eviction(
    make: &dyn Fn(Setup) -> Arc<AnyEngine>,
    extent: &Extent,
) {
    let engine = make(Setup::SMALL);
    let plan = Plan {
        rounds: soak(extent.histories).div_ceil(2),
        ..Plan::EVICTION
    };
    let seen = history::linearizable(&engine, &plan);
    assert!(seen.forgotten > 0, "there was no pressure: {seen:?}");
    assert_it_keeps(seen.hits, seen.misses);
}

/// Each miss may be lawful, but it is not lawful that nearly all reads miss.
fn assert_it_keeps(hits: usize, misses: usize) {
    assert!(
        10 * hits > misses,
        "hardly anything stays: {hits} hits, {misses} misses"
    );
}
