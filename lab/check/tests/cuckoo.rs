//! The cuckoo engine under every check.

use std::sync::Arc;

use nuthatch::cuckoo::layout::{Design, Paper};
use nuthatch::{Cuckoo, CuckooConfig, Engine};
use nuthatch_check::conformance::{self, Client, Setup};
use nuthatch_check::history::{self, Plan};
use nuthatch_check::sequence::{self, Misses};
use nuthatch_check::soak;
use nuthatch_check::stress::{self, Load};
use nuthatch_workload::Seed;
use rand::Rng;

fn make(setup: Setup) -> Arc<Cuckoo> {
    of_design(setup)
}

/// MemC3's own: 4 slots, 1-byte tags, one writer.
fn paper(setup: Setup) -> Arc<Cuckoo<Paper>> {
    of_design(setup)
}

fn of_design<D: Design>(setup: Setup) -> Arc<Cuckoo<D>> {
    let config = CuckooConfig {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        ..CuckooConfig::default()
    };
    Arc::new(Cuckoo::new(config).expect("there is address space"))
}

#[test]
fn conforms() {
    conformance::run(make);
}

#[test]
fn the_papers_design_conforms() {
    conformance::run(paper);
}

#[test]
fn the_papers_design_never_misses_residents() {
    assert!(stress::residents(&paper(Setup::AMPLE), &Load::SMOKE) > 0);
}

#[test]
fn the_papers_design_is_linearizable() {
    history::linearizable(&paper(Setup::AMPLE), &Plan::SMOKE);
}

#[test]
fn answers_sequences_as_the_model_does() {
    sequence::property(200 * soak(), Misses::Never, || make(Setup::AMPLE));
}

#[test]
fn forgets_only_whole_items_under_pressure() {
    sequence::property(100 * soak(), Misses::Lawful, || full(make(Setup::TIGHT)));
}

/// Fills an engine with other keys, until it has to evict.
fn full<E: Engine>(engine: Arc<E>) -> Arc<E> {
    let mut client = Client::new(Arc::clone(&engine));
    let mut number = 0_u64;
    while engine.stats().evictions == 0 {
        for _ in 0..1000 {
            client.set(format!("ballast {number}").as_bytes(), &[b'b'; 3000]);
            number += 1;
        }
    }
    engine
}

#[test]
fn stress_in_ample_memory() {
    let seen = stress::everything(&make(Setup::AMPLE), &Load::SMOKE.times(soak()));
    assert!(
        seen.hits > 0 && seen.misses > 0 && seen.changes > 0,
        "{seen:?}"
    );
}

#[test]
fn stress_under_pressure_with_mixed_sizes() {
    let engine = make(Setup::TIGHT);
    let seen = stress::everything(&engine, &Load::MIXED.times(soak()));
    assert!(seen.hits > 0 && seen.changes > 0, "{seen:?}");
    assert!(engine.stats().evictions > 0);
}

#[test]
fn residents_are_never_missed() {
    assert!(stress::residents(&make(Setup::AMPLE), &Load::SMOKE.times(soak())) > 0);
}

#[test]
fn no_increment_is_lost() {
    let load = Load {
        batches: 500,
        ..Load::SMOKE
    };
    stress::counter(&make(Setup::AMPLE), &load.times(soak()));
}

#[test]
fn histories_are_linearizable() {
    let plan = Plan {
        rounds: Plan::SMOKE.rounds * soak(),
        ..Plan::SMOKE
    };
    history::linearizable(&make(Setup::AMPLE), &plan);
}

#[test]
fn any_bytes_make_a_sequence() {
    let mut random = Seed(1).thread(0);
    for _ in 0..100 * soak() {
        let mut bytes = vec![0; random.random_range(0..4000)];
        random.fill(&mut bytes[..]);
        sequence::run_bytes(&make(Setup::AMPLE), &bytes);
    }
}
