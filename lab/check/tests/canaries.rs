//! Tests of the checks themselves: engines with a fault, each of which the checks must convict.

mod faulty;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use faulty::{Fault, Faulty};
use nuthatch_check::conformance::{self, Setup};
use nuthatch_check::history::{self, Plan};
use nuthatch_check::sequence::{self, Misses};
use nuthatch_check::stress::{self, Load};
use nuthatch_check::suite::{self, Extent};
use nuthatch_engine::AnyEngine;

/// Few keys, which are requested often.
const LOAD: Load = Load {
    batches: 300,
    keys: 200,
    ..Load::SMOKE
};

const GROWTH: Plan = Plan {
    rounds: 200,
    ..Plan::GROWTH
};

const EVICTION: Plan = Plan {
    rounds: 100,
    ..Plan::EVICTION
};

/// Faults that make an old value come back, or a value disappear silently.
const OF_KEYS: [Fault; 4] = [
    Fault::ServesStale,
    Fault::LosesUpdates,
    Fault::Resurrects,
    Fault::Reorders,
];

/// The panic message of a check, which has to fail.
fn conviction<T>(check: impl FnOnce() -> T) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(check)) else {
        panic!("nothing was seen");
    };
    match panic.downcast::<String>() {
        Ok(words) => *words,
        Err(_) => panic!("it says nothing"),
    }
}

fn assert_says(said: &str, words: &str) {
    println!("{said}");
    assert!(said.contains(words), "not {words:?}, but {said}");
}

#[test]
fn an_engine_without_a_fault_is_acquitted() {
    let make = Faulty::maker(Fault::None);
    stress::everything(&make(Setup::AMPLE), &LOAD);
    stress::everything(&make(Setup::TIGHT), &LOAD);
    history::linearizable(&make(Setup::AMPLE), &GROWTH);
    history::linearizable(&make(Setup::SMALL), &EVICTION);
}

#[test]
fn stress_convicts_what_comes_back() {
    for fault in OF_KEYS {
        for setup in [Setup::AMPLE, Setup::TIGHT] {
            let engine = Faulty::maker(fault)(setup);
            let said = conviction(|| stress::everything(&engine, &LOAD));
            assert_says(&said, "no order explains");
        }
    }
}

#[test]
fn histories_convict_under_growth_and_eviction() {
    for fault in OF_KEYS.into_iter().chain([Fault::CountsInTwoSteps]) {
        for (setup, plan) in [(Setup::AMPLE, GROWTH), (Setup::SMALL, EVICTION)] {
            let engine = Faulty::maker(fault)(setup);
            println!("{fault:?}, {setup:?}:");
            let said = conviction(|| history::linearizable(&engine, &plan));
            assert_says(&said, "histories are not linearizable");
            // The message has only the part that convicts, not the whole history.
            assert!(said.lines().count() < 20, "{fault:?}: {said}");
        }
    }
}

#[test]
fn a_counter_convicts_who_counts_in_two_steps() {
    let engine = Faulty::maker(Fault::CountsInTwoSteps)(Setup::AMPLE);
    conviction(|| stress::counter(&engine, &LOAD));
}

/// All cases convict, except those about missing items, or about no item.
#[test]
fn conformance_convicts_who_forgets_or_refuses_all() {
    const OF_NOTHING: [&str; 6] = [
        "read_missing",
        "remove_of_missing_leaves_nothing",
        "delta_of_missing",
        "batch_of_none",
        "visit_of_none",
        "engine_says_how_it_was_made",
    ];
    let (passed, _) = conformance::judge(&[""], &Faulty::maker(Fault::Refuses));
    assert_eq!(passed, OF_NOTHING);
    // This engine also passes the cases about stores that must be refused.
    const OF_REFUSALS: [&str; 5] = [
        "expiry_dead_on_arrival",
        "size_too_large_goes_first",
        "key_long_and_value_over_the_limit",
        "reserve_panics_on_too_much_and_too_little",
        // The oracle has no index.
        "stats_show_the_index",
    ];
    let (passed, _) = conformance::judge(&[""], &Faulty::maker(Fault::Forgets));
    let more = passed.into_iter().filter(|name| !OF_NOTHING.contains(name));
    assert_eq!(more.collect::<Vec<_>>(), OF_REFUSALS);
}

#[test]
fn conformance_convicts_who_keeps_its_limit() {
    let make = Faulty::maker(Fault::KeepsItsLimit);
    let (passed, failed) = conformance::judge(&["memory_limit_changes", "engine_says"], &make);
    assert_eq!(failed, ["memory_limit_changes"]);
    assert_eq!(passed, ["engine_says_how_it_was_made"]);
}

/// Where misses are lawful, it is not lawful that all reads miss.
#[test]
fn under_pressure_who_forgets_all_is_convicted() {
    let make = || Faulty::maker(Fault::Forgets);
    let extent = Extent::SMOKE.part(20);
    let said = conviction(|| suite::forgets_only_whole_items_under_pressure(&make(), &extent));
    assert_says(&said, "forgotten");
    conviction(|| suite::stress_under_pressure_with_mixed_sizes(&make(), &extent));
    let said = conviction(|| suite::histories_are_linearizable_under_eviction(&make(), &extent));
    assert_says(&said, "hardly anything stays");
    conviction(|| suite::stress_in_ample_memory(&make(), &extent));
    conviction(|| suite::residents_are_never_missed(&make(), &extent));
    conviction(|| suite::no_increment_is_lost(&make(), &extent));
}

#[test]
fn under_pressure_who_refuses_all_is_convicted() {
    let make = || Faulty::maker(Fault::Refuses);
    let extent = Extent::SMOKE.part(20);
    conviction(|| suite::stress_under_pressure_with_mixed_sizes(&make(), &extent));
    conviction(|| suite::histories_are_linearizable_under_eviction(&make(), &extent));
    conviction(|| suite::residents_are_never_missed(&make(), &extent));
}

/// An engine that forgets, where no item may be forgotten.
mod forgetful {
    use super::*;

    fn forgetful(setup: Setup) -> Arc<AnyEngine> {
        Faulty::maker(Fault::None)(Setup {
            memory_limit: 60_000,
            ..setup
        })
    }

    #[test]
    #[should_panic(expected = "size_every_small_one")]
    fn conformance_convicts_it() {
        conformance::run(&["size_every_small_one"], &forgetful);
    }

    #[test]
    // By an answer mostly, but a visit that misses the item will do.
    #[should_panic(expected = "in this sequence")]
    fn sequences_convict_it() {
        sequence::property(500, Misses::Never, || forgetful(Setup::AMPLE));
    }

    #[test]
    #[should_panic(expected = "was missed")]
    fn readers_convict_it() {
        stress::residents(&forgetful(Setup::AMPLE), &LOAD);
    }

    #[test]
    #[should_panic(expected = "histories are not linearizable")]
    fn histories_convict_it() {
        let plan = Plan {
            misses: Misses::Never,
            ballast_max: 40,
            ballast_len: 0..1000,
            ..EVICTION
        };
        history::linearizable(&forgetful(Setup::AMPLE), &plan);
    }
}
